"""Commands on the users of a shared MLflow server: account, share."""

from __future__ import annotations

import sys
from typing import Annotated, Literal

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Debug
from bandana.flows.folder.settings import data_root


def account(
    user: Annotated[str, typer.Argument(help="Name of the user.", show_default=False)],
    remove: Annotated[bool, typer.Option("--remove", help="Remove the user; experiments and runs stay.")] = False,
    debug: Debug = False,
) -> None:
    """Create a user of the MLflow server, or change a password, which is read from standard input."""
    with failures(debug):
        from bandana.flows.annexes.operations.accounts import Accounts

        accounts = Accounts(data_root())
        if remove:
            accounts.remove(user)
            typer.echo(f"removed: {user}")
            return
        is_new = accounts.keep(user, _password())
        typer.echo(f"created: {user}" if is_new else f"changed: the password of {user}")


def share(
    suite: Annotated[str, typer.Argument(help="The suite, whose name is also that of its experiment.", show_default=False)],
    user: Annotated[str, typer.Argument(help="Who gets access.", show_default=False)],
    may: Annotated[
        Literal["READ", "EDIT", "MANAGE", "NOTHING"],
        typer.Option(help="READ looks, EDIT writes runs, MANAGE shares and deletes; NOTHING takes access back."),
    ] = "READ",
    debug: Debug = False,
) -> None:
    """Share the experiment of a suite with a user of the MLflow server."""
    with failures(debug):
        from bandana.flows.annexes.operations.accounts import Accounts

        Accounts(data_root()).share(suite, user, None if may == "NOTHING" else may)
        typer.echo(f"{user} may {may} {'in ' if may == 'NOTHING' else ''}the experiment {suite!r}")


def _password() -> str:
    """One line of standard input; asked for twice, and not shown, at a terminal."""
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().strip()
