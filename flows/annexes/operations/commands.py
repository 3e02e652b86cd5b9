"""Commands: serve, what runs by the clock; account and share, users of a shared MLflow server; prune and doctor, upkeep."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

import typer

from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, Anonymous, AsJson, Data, Debug, Yes, console, echo, open_data
from bandana.flows.folder.settings import DataFolder, data_root


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
        found = deployments(specs or [DEMO], times, str(folder.root), steps)
        names = [str(deployment.name) for deployment in found]
        if unknown := [name for name in run or () if name not in names]:
            raise SpecError(f"--run: {unknown[0]!r} is not served; there are {', '.join(names)}")
        log = folder.prefect / "server.log"
        if server is None:
            typer.echo("Prefect starts; this takes up to a minute.", err=True)
        with own_server(port, log) if server is None else shared_server.connected(server) as pages:
            served = register(found)
            crons = {name: weekly if name == SUITE else nightly for name in names}
            silence = {name: alerts.longest_gap(cron, timezone) + alerts.GRACE for name, cron in crons.items()}
            ids = dict(zip(names, served.ids, strict=True))
            alerts.watch(alert, {name: alerts.Watched(ids[name], silence[name]) for name in names})
            full = {str(deployment.name): f"{deployment.flow_name}/{deployment.name}" for deployment in found}
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


def prune(
    keep: Annotated[str, typer.Option(metavar="TIME", help="Younger results stay, such as 30d, 12h or 4w.")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Remove old results, superseded runs in MLflow and old history of Prefect; reports, evidence and baselines stay."""
    with failures(debug):
        from bandana.flows.annexes.operations.prune import prune as clear
        from bandana.flows.annexes.operations.prune import prune_history, prune_runs, seconds_of

        seconds, folder = seconds_of(keep), DataFolder(_there(data))
        folder.set_environment()
        found = clear(folder, seconds, is_dry=dry_run)
        runs = prune_runs(folder, seconds, is_dry=dry_run)
        history = prune_history(folder, seconds, is_dry=dry_run)
        if as_json:
            shown = {
                "removed": [str(path) for path in found.removed],
                "bytes": found.n_bytes,
                "kept": found.kept,
                "notes": found.notes,
                "mlflow": {"removed": [asdict(run) for run in runs.removed], "kept": runs.kept, "is_purged": runs.is_purged},
                "prefect": None if history is None else asdict(history),
            }
            typer.echo(json.dumps(shown, indent=1))
            return
        echo(*(f"note: {note}" for note in found.notes))
        what = "would be removed" if dry_run else "removed"
        typer.echo(f"{what}: {len(found.removed)} results, {found.n_bytes / 2**20:,.1f} MiB")
        typer.echo(f"kept: {sum(found.kept.values())} results{_reasons(found.kept)}")
        n_bytes = sum(run.n_bytes for run in runs.removed)
        typer.echo(f"MLflow, {what}: {len(runs.removed)} superseded runs, {n_bytes / 2**20:,.1f} MiB of files")
        if dry_run:
            echo(*(f"  {run.suite}: {run.name} ({run.run_id})" for run in runs.removed))
        if runs.kept:
            typer.echo(f"MLflow, kept: {sum(runs.kept.values())} superseded runs{_reasons(runs.kept)}")
        if runs.removed and not runs.is_purged:
            typer.echo("note: the MLflow server marks them as deleted; `mlflow gc` there removes their rows and files")
        if history is not None:
            freed = "" if dry_run else f", {history.n_bytes / 2**20:,.1f} MiB"
            typer.echo(f"Prefect, {what}: {history.flow_runs} flow runs with their logs, {history.events} events{freed}")


def _reasons(kept: Mapping[str, int]) -> str:
    """Why something stays, in brackets."""
    said = ", ".join(f"{number} {why}" for why, number in sorted(kept.items()))
    return f" ({said})" if said else ""


def doctor(as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Look for what is wrong: versions, ports, disk, databases, unfinished files, locks, what would be computed again."""
    with failures(debug):
        from rich.table import Table

        from bandana.flows.annexes.operations.doctor import State, examine

        root = data_root(data)
        found = examine(DataFolder(root) if root.is_dir() else None)
        if as_json:
            typer.echo(json.dumps([asdict(each) for each in found], indent=1))
        else:
            table = Table("what", "", "found")
            for each in found:
                table.add_row(each.what, str(each.state), each.said)
            console(150).print(table)
        if any(each.state is State.BAD for each in found):
            raise typer.Exit(FAILURE)


def _there(data: Path | None) -> Path:
    """The data folder, which must exist."""
    from bandana.flows.texts.mistakes import SpecError

    root = data_root(data)
    if not root.is_dir():
        raise SpecError(f"--data: {root} does not exist")
    return root
