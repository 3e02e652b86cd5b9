"""Commands on live policies: serve one, show one, list what can be deployed, and audit one."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, AsJson, Debug
from bandana.layers import demand

app = typer.Typer(help="A private bandit between real users: serve, show, list.", no_args_is_help=True)
TOKEN = "BANDANA_LIVE_TOKEN"
RouterPath = Annotated[Path, typer.Argument(help="Settings, a YAML file.", metavar="ROUTER", show_default=False)]


def _check_installed() -> None:
    for extra in ("pipeline", "secure", "live"):
        demand(extra)


@app.command()
def serve(
    router: RouterPath,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1.", min=1, max=65535)] = 4280,
    debug: Debug = False,
) -> None:
    """Serve a policy on this machine alone; BANDANA_LIVE_TOKEN is its token, or a fresh one is printed."""
    with failures(debug):
        _check_installed()
        import uvicorn

        from bandana.flows.annexes.live.api import open_router
        from bandana.flows.annexes.live.policy import World
        from bandana.flows.annexes.live.router import read_router
        from bandana.flows.annexes.live.secrecy import KEY, Secrecy
        from bandana.flows.annexes.live.service import log, service
        from bandana.flows.annexes.live.store import Store
        from bandana.flows.servers.loopback import HOST, check_port

        check_port(port)
        settings = read_router(router)
        world = replace(World(), publish=log)
        policy = open_router(settings, Store(settings.store), Secrecy(os.environ.get(KEY)), world)
        token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
        if TOKEN not in os.environ:
            typer.echo(f"open http://{HOST}:{port}/?token={token}", err=True)
        uvicorn.run(service(policy, token), host=HOST, port=port, access_log=False, log_level="warning")


@app.command()
def show(router: RouterPath, as_json: AsJson = False, debug: Debug = False) -> None:
    """Show privacy, counts and, where arms have them, released means with intervals."""
    with failures(debug):
        _check_installed()
        from bandana.flows.annexes.live.api import open_router
        from bandana.flows.annexes.live.estimates import arm_means
        from bandana.flows.annexes.live.policy import World
        from bandana.flows.annexes.live.router import read_router
        from bandana.flows.annexes.live.secrecy import KEY, Secrecy
        from bandana.flows.annexes.live.store import Store

        settings = read_router(router)
        policy = open_router(settings, Store(settings.store), Secrecy(os.environ.get(KEY)), World())
        if as_json:
            typer.echo(json.dumps(policy.evidence(), indent=1))
            return
        for name, value in {**policy.privacy()._asdict(), **policy.counts()}.items():
            typer.echo(f"{name}: {value}")
        for mean in [] if settings.is_contextual else arm_means(policy):
            typer.echo(f"arm {mean.arm}: {mean.mean:.3f} in [{mean.low:.3f}, {mean.high:.3f}], {mean.n_rewards} rewards")


@app.command("list")
def list_(debug: Debug = False) -> None:
    """List which private entries of the catalog can be deployed, and why the others cannot."""
    with failures(debug):
        _check_installed()
        from bandana.flows.annexes.live.router import deployable

        for entry, calibration, reason in deployable():
            typer.echo(f"{entry.label:28} {calibration:14} {f'no: {reason}' if reason else 'can be deployed'}")


def pointer() -> list[str]:
    """The lines below `bandana list`; no algorithm is imported, which takes seconds."""
    rows = json.loads(resources.files("bandana.flows").joinpath("catalog.json").read_bytes())
    served = {"central", "joint"}, {"finite", "linear", "contextual"}
    names = [row[0] for row in rows if served[0] & {*row[1].split()} and served[1] & {*row[3].split()}]
    return [
        f"Can be deployed, with secure noise, between real users: {', '.join(names)}.",
        "`bandana live list` shows their calibrations, and why others cannot.",
    ]


def audit_live(
    router: RouterPath,
    persons: Annotated[int, typer.Option(help="Length of the script; every person is replaced in turn.", min=4)] = 26,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Audit a live policy: its own code, store and deadlines on neighboring feedback, and planted faults of its own."""
    with failures(debug):
        _check_installed()
        from bandana.flows.annexes.live.audit import audit
        from bandana.flows.annexes.live.faults import FAULTS
        from bandana.flows.annexes.live.router import read_router

        outcome = audit(read_router(router), FAULTS, persons)
        if as_json:
            typer.echo(json.dumps(outcome._asdict(), indent=1))
        else:
            typer.echo(f"{outcome.verdict}: {outcome.violation or f'{outcome.n_pairs} pairs of data sets, no violation'}")
            typer.echo("; ".join(outcome.caveats))
            for name, how in outcome.faults.items():
                typer.echo(f"{'caught' if how else 'MISSED'}: {name}{f': {how}' if how else ''}")
        if outcome.verdict != "PASS":
            raise typer.Exit(FAILURE)
