"""Commands: serve, what runs by the clock; account and share, users of a shared MLflow server; prune and doctor, upkeep."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo

import typer

from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.options import FAILURE, Anonymous, AsJson, Data, Debug, Yes, console, echo, open_data
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.folder.shared import ADDRESS

if TYPE_CHECKING:
    from prefect.deployments.runner import RunnerDeployment

    from bandana.flows.annexes.operations.clock import Times


@dataclass(frozen=True)
class Schedule:
    """Specs and times of `bandana serve`."""

    specs: Annotated[
        list[str] | None, typer.Argument(metavar="[SPEC]...", help="YAML files; the built-in demo if none is given.")
    ] = None
    nightly: Annotated[str, typer.Option(metavar="CRON", help="When specs are benchmarked.")] = "0 2 * * *"
    weekly: Annotated[str, typer.Option(metavar="CRON", help="When the whole catalog is audited.")] = "0 3 * * 0"
    timezone: Annotated[str, typer.Option(help="Time zone of both schedules, such as Europe/Berlin.")] = "UTC"
    audit: Annotated[bool, typer.Option("--audit", help="Audit the specs each night too.")] = False
    run: Annotated[list[str] | None, typer.Option(help="Run it at once, too: a spec's name, or whole-catalog.")] = None

    def cron(self, name: str) -> str:
        """Schedule of a deployment, by its name."""
        from bandana.flows.suites.audit_all import SUITE

        return self.weekly if name == SUITE else self.nightly


@dataclass(frozen=True)
class Reporting:
    """Prefect's server, and the address of its alerts."""

    alert: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="BANDANA_ALERT",
            help="Where failures and missing nights are sent: a webhook, or an address of apprise, such as mailto://.",
        ),
    ] = None
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of Prefect's pages, on the loopback interface.")] = 4200
    server: Annotated[
        str | None, typer.Option(metavar="URL", help="API of a Prefect server that runs already; none is started.")
    ] = None
    insecure: Annotated[bool, typer.Option("--insecure", help="Allow a --server of another machine without TLS.")] = False

    def open(self, data: Path | None) -> DataFolder:
        """Opens the data folder, and puts what Prefect's client needs into this process's environment.

        Raises:
          SpecError: the port is in use, or the address may not be used.
        """
        from bandana.flows.annexes.operations import shared_server
        from bandana.flows.annexes.operations.service import SERVICE, service_settings
        from bandana.flows.servers import login
        from bandana.flows.servers.loopback import check_port

        if self.server is None:
            check_port(self.port)
            folder = open_data(data)
            settings = service_settings(self.port, login.keep(folder.login))
        else:
            shared_server.check_address(self.server, self.insecure)
            folder, settings = open_data(data), shared_server.client_settings(self.server)
        os.environ.update({**settings, SERVICE: str(os.getpid())})
        folder.prepare()
        return folder


@dataclass(frozen=True)
class Running:
    """Options that `bandana serve` has in common with other commands."""

    yes: Yes = False
    anonymous: Anonymous = False
    data: Data = None
    debug: Debug = False


@grouped
def serve(schedule: Schedule, reporting: Reporting, running: Running) -> None:
    """Serve Prefect's pages, a nightly benchmark of each spec, and a weekly audit of the whole catalog."""
    with failures(running.debug):
        folder = reporting.open(running.data)
        from bandana.flows.annexes.operations.clock import Times

        times = Times(schedule.nightly, schedule.weekly, schedule.timezone)
        times.check()
        from bandana.flows.annexes.operations import alerts

        if reporting.alert is not None:
            alerts.check(reporting.alert)
        deployments = _deployments(schedule, times, folder, is_agreed=running.yes)
        names = [str(deployment.name) for deployment in deployments]
        from bandana.flows.texts.mistakes import SpecError

        if unknown := [name for name in schedule.run or () if name not in names]:
            raise SpecError(f"--run: {unknown[0]!r} is not served; there are {', '.join(names)}")
        _serve(deployments, schedule, reporting, folder)


def _deployments(schedule: Schedule, times: Times, folder: DataFolder, *, is_agreed: bool) -> list[RunnerDeployment]:
    """Deployments of all specs, each read once, and of the catalog; more than a day of work a night must be agreed to."""
    from bandana.flows.annexes.operations.schedule import DEMO, NIGHTLY_STEPS, Nightly, deployments

    steps = ["benchmark", "audit", *NIGHTLY_STEPS[1:]] if schedule.audit else NIGHTLY_STEPS
    read = []
    for spec in schedule.specs or ():
        read.append(Nightly.of(spec, folder.root))
        ask(f"{spec}, each night", [Work(read[-1].plan, steps)], folder.root, None, is_agreed=is_agreed)
    return deployments(read or [Nightly.of(DEMO, folder.root)], times, str(folder.root), steps)


def _serve(deployments: Sequence[RunnerDeployment], schedule: Schedule, reporting: Reporting, folder: DataFolder) -> None:
    """Registers the deployments with the server, and runs what is due until it is stopped."""
    from bandana.flows.annexes.operations import alerts, shared_server
    from bandana.flows.annexes.operations.service import register, run_until_stopped, server

    log = folder.prefect / "server.log"
    if reporting.server is None:
        typer.echo("Prefect starts; this takes up to a minute.", err=True)
    with server(reporting.port, log) if reporting.server is None else shared_server.connected(reporting.server) as pages:
        served = register(deployments)
        full = {str(deployment.name): f"{deployment.flow_name}/{deployment.name}" for deployment in deployments}
        ids = dict(zip(full, served.ids, strict=True))
        silence = {name: alerts.longest_gap(schedule.cron(name), schedule.timezone) + alerts.GRACE for name in full}
        alerts.watch(reporting.alert, {name: alerts.Watched(ids[name], silence[name]) for name in full})
        is_own = reporting.server is None
        if is_own:
            typer.echo(f"Prefect's pages:  {pages}   (this machine only; the server's log: {log})")
            typer.echo(f"They ask for a password: the whole line in {folder.login}, which you alone can read.\n")
        else:
            typer.echo(f"Prefect's pages:  {pages}   (a server of its own; it stays when this ends)\n")
        for name in full:
            when = served.times[name].astimezone(ZoneInfo(schedule.timezone))
            typer.echo(f"  {full[name]:<36} {schedule.cron(name):<12} next {when:%a %d %b %Y %H:%M} {schedule.timezone}")
        _say_how_to_run(next(iter(full.values())), pages, folder.login if is_own else None)
        sys.stdout.flush()
        run_until_stopped(served, [full[name] for name in schedule.run or ()])


def _say_how_to_run(deployment: str, pages: str, login_file: Path | None) -> None:
    """Prints how a deployment is run at once, and what ends the service; without a login file, the server is another's."""
    from bandana.flows.servers import login

    secret = f"{login.CLIENT}=..." if login_file is None else _from_file(login.CLIENT, login_file)
    typer.echo(f"\nRun one at once:  export PREFECT_API_URL={pages}/api {secret}")
    typer.echo(f"                  prefect deployment run {shlex.quote(deployment)}")
    typer.echo(f"Ctrl-C ends it{'' if login_file is None else ', with the server'}; finished work is kept.\n")


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
        from bandana.flows.texts.mistakes import SpecError

        seconds, folder = seconds_of(keep), DataFolder(data_root(data))
        if not folder.root.is_dir():
            raise SpecError(f"--data: {folder.root} does not exist")
        if (folder.root / ADDRESS).exists():
            raise SpecError(f"--data: prune needs a folder; the results of {folder.root} lie in a store of several machines")
        folder.set_environment()
        results = clear(folder, seconds, is_dry=dry_run)
        runs = prune_runs(folder, seconds, is_dry=dry_run)
        history = prune_history(folder, seconds, is_dry=dry_run)
        if as_json:
            shown = {
                "removed": [str(path) for path in results.removed],
                "bytes": results.n_bytes,
                "kept": results.kept,
                "notes": results.notes,
                "mlflow": {"removed": [asdict(run) for run in runs.removed], "kept": runs.kept, "is_purged": runs.is_purged},
                "prefect": None if history is None else asdict(history),
            }
            typer.echo(json.dumps(shown, indent=1))
            return
        echo(*(f"note: {note}" for note in results.notes))
        what = "would be removed" if dry_run else "removed"
        typer.echo(f"{what}: {len(results.removed)} results, {results.n_bytes / 2**20:,.1f} MiB")
        typer.echo(f"kept: {sum(results.kept.values())} results{_reasons(results.kept)}")
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
    reasons = ", ".join(f"{number} {why}" for why, number in sorted(kept.items()))
    return f" ({reasons})" if reasons else ""


def doctor(as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Look for what is wrong: versions, ports, disk, databases, unfinished files, locks, what would be computed again."""
    with failures(debug):
        from rich.table import Table

        from bandana.flows.annexes.operations.doctor import State, examine

        root = data_root(data)
        findings = examine(DataFolder(root) if root.is_dir() else None)
        if as_json:
            shown = [{"what": each.what, "state": each.state, "said": each.words} for each in findings]
            typer.echo(json.dumps(shown, indent=1))
        else:
            table = Table("what", "", "found")
            for each in findings:
                table.add_row(each.what, str(each.state), each.words)
            console(150).print(table)
        if any(each.state is State.BAD for each in findings):
            raise typer.Exit(FAILURE)
