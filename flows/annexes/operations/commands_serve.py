"""The command serve: what runs by the clock."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Anonymous, Data, Debug, Yes, open_data


def serve(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="[SPEC]...", help="YAML files; the built-in demo if none is given.")
    ] = None,
    nightly: Annotated[str, typer.Option(metavar="CRON", help="When specs are benchmarked.")] = "0 2 * * *",
    weekly: Annotated[str, typer.Option(metavar="CRON", help="When the whole catalog is audited.")] = "0 3 * * 0",
    timezone: Annotated[str, typer.Option(help="Time zone of both schedules, such as Europe/Berlin.")] = "UTC",
    audit: Annotated[bool, typer.Option("--audit", help="Audit the specs each night too.")] = False,
    run: Annotated[list[str] | None, typer.Option(help="Run it at once, too: a spec's name, or whole-catalog.")] = None,
    alert: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="BANDANA_ALERT",
            help="Where failures and missing nights are sent: a webhook, or an address of apprise, such as mailto://.",
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Prefect's pages, on the loopback interface.")] = 4200,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="API of a Prefect server that runs already; none is started."),
    ] = None,
    insecure: Annotated[
        bool,
        typer.Option("--insecure", help="Allow a --server of another machine without TLS."),
    ] = False,
    yes: Yes = False,
    anonymous: Anonymous = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Serve Prefect's pages, a nightly benchmark of each spec, and a weekly audit of the whole catalog."""
    with failures(debug):
        from bandana.flows.annexes.operations import shared_server
        from bandana.flows.annexes.operations.service import SERVICE, service_settings
        from bandana.flows.servers import login
        from bandana.flows.servers.loopback import check_port

        if server is None:
            check_port(port)
        else:
            shared_server.check_address(server, insecure)
        folder = open_data(data)
        settings = (
            service_settings(port, login.keep(folder.login)) if server is None else shared_server.client_settings(server)
        )
        os.environ.update({**settings, SERVICE: str(os.getpid())})
        folder.prepare()
        from bandana.flows.annexes.operations.clock import Times

        times = Times(nightly, weekly, timezone)
        times.check()
        from bandana.flows.annexes.operations import alerts

        if alert is not None:
            alerts.check(alert)
        from bandana.flows.annexes.operations.schedule import DEMO, NIGHTLY_STEPS, deployments, read_spec
        from bandana.flows.annexes.operations.service import register, run_until_stopped
        from bandana.flows.annexes.operations.service import server as own_server
        from bandana.flows.suites.audit_all import SUITE
        from bandana.flows.texts.mistakes import SpecError

        steps = ["benchmark", "audit", *NIGHTLY_STEPS[1:]] if audit else NIGHTLY_STEPS
        for spec in specs or ():
            ask(f"{spec}, each night", [Work(read_spec(spec, folder.root)[0], steps)], folder.root, None, is_agreed=yes)
        runners = deployments(specs or [DEMO], times, str(folder.root), steps)
        names = [str(deployment.name) for deployment in runners]
        if unknown := [name for name in run or () if name not in names]:
            raise SpecError(f"--run: {unknown[0]!r} is not served; there are {', '.join(names)}")
        log = folder.prefect / "server.log"
        if server is None:
            typer.echo("Prefect starts; this takes up to a minute.", err=True)
        with own_server(port, log) if server is None else shared_server.connected(server) as pages:
            served = register(runners)
            crons = {name: weekly if name == SUITE else nightly for name in names}
            silence = {name: alerts.longest_gap(cron, timezone) + alerts.GRACE for name, cron in crons.items()}
            ids = dict(zip(names, served.ids, strict=True))
            alerts.watch(alert, {name: alerts.Watched(ids[name], silence[name]) for name in names})
            full = {str(deployment.name): f"{deployment.flow_name}/{deployment.name}" for deployment in runners}
            if server is None:
                typer.echo(f"Prefect's pages:  {pages}   (this machine only; the server's log: {log})")
                typer.echo(f"They ask for a password: the whole line in {folder.login}, which you alone can read.\n")
            else:
                typer.echo(f"Prefect's pages:  {pages}   (a server of its own; it stays when this ends)\n")
            for name in names:
                when = served.times[name].astimezone(ZoneInfo(timezone))
                typer.echo(f"  {full[name]:<36} {crons[name]:<12} next {when:%a %d %b %Y %H:%M} {timezone}")
            secret = _from_file(login.CLIENT, folder.login) if server is None else f"{login.CLIENT}=..."
            typer.echo(f"\nRun one at once:  export PREFECT_API_URL={pages}/api {secret}")
            typer.echo(f"                  prefect deployment run {shlex.quote(full[names[0]])}")
            typer.echo(f"Ctrl-C ends it{', with the server' if server is None else ''}; finished work is kept.\n")
            sys.stdout.flush()
            run_until_stopped(served, [full[name] for name in run or ()])


def _from_file(variable: str, path: Path) -> str:
    """A word of a shell's `export` that reads the value from a file, so that no command line shows the value itself."""
    return f'{variable}="$(cat {shlex.quote(str(path))})"'
