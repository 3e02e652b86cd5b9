"""MLflow's server with users, started as `mlflow server --app-name basic-auth` is, without its Assistant.

MLflow 3.17.2 lets every user with a login configure the Assistant, also one who may only read, and the Assistant's tools run
commands as the account of the server. No setting turns it off, so its routes answer 404 here, to everybody.
"""

from __future__ import annotations

from bandana.flows.tracking.pages_server import FirstScreen
from bandana.flows.tracking.store.mlflow_private import replace_app

_APP = "bandana.flows.tracking.team_server:create_app"
_WITH_USERS = "basic-auth"


def create_app() -> FirstScreen:
    """MLflow's application with users, behind `FirstScreen`."""
    from mlflow.server.auth import create_app as with_users

    return FirstScreen(with_users())


def main() -> None:
    """Runs MLflow's command line, whose server with users is the one above."""
    from mlflow.cli import cli

    replace_app(_WITH_USERS, _APP)
    cli()


if __name__ == "__main__":
    main()
