"""The command leaderboard: plays and audits a benchmark, and renders its page."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandana import ready
from bandana.flows.commands import options
from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.suites import DaskAddress, begin, resources_of, warm_up, while_the_server_starts
from bandana.flows.folder.settings import DataFolder

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard.benchmark_folder import Benchmark
    from bandana.flows.plan.plan import Plan
    from bandana.flows.running.executors import Resources

DEFAULT = Path("experiments/benchmark")


@dataclass(frozen=True)
class Choice:
    """The benchmark, and the part of it that is wanted."""

    folder: Annotated[Path, typer.Argument(help="The benchmark: a spec for each problem, and version.json.")] = DEFAULT
    quick: Annotated[bool, typer.Option("--quick", help="The quick form, by a rule that the page states.")] = False
    rows: Annotated[
        Path | None,
        typer.Option(
            help="Folder of rows of your own, one YAML file or several; by default `rows` in the benchmark.",
            show_default=False,
        ),
    ] = None
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="A problem; give it several times. All if left out.", show_default=False),
    ] = None

    @property
    def place(self) -> Path:
        """The folder; where there is none, the one of that name that is installed with the product."""
        return ready.place(self.folder)

    @property
    def command(self) -> str:
        """The command line that makes the same choice."""
        words = ["bandana", "leaderboard", *([str(self.folder)] if self.folder != DEFAULT else [])]
        words += ["--quick"] if self.quick else []
        words += ["--rows", str(self.rows)] if self.rows is not None else []
        words += [word for name in self.only or () for word in ("--only", name)]
        return shlex.join(words)


@dataclass(frozen=True)
class Running:
    """Steps on the benchmark, and their executor."""

    audit: Annotated[bool, typer.Option("--audit/--no-audit", help="Audit every private entry too.")] = True
    report_only: Annotated[bool, typer.Option("--report-only", help="Play nothing: render what is stored.")] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what is left to do; do nothing.")] = False
    executor: options.ExecutorName = None
    workers: options.Workers = None
    dask_address: DaskAddress = None
    device: options.Device = None
    yes: options.Yes = False


@dataclass(frozen=True)
class Output:
    """Results: their folder, and their form on standard output."""

    anonymous: options.Anonymous = False
    as_json: options.AsJson = False
    data: options.Data = None
    debug: options.Debug = False


@grouped
def leaderboard(choice: Choice, running: Running, output: Output) -> None:
    """Play and audit a benchmark, and render its leaderboard: regret against privacy on every problem, as HTML and JSON."""
    with failures(output.debug):
        from bandana.flows.annexes.leaderboard.benchmark_folder import read
        from bandana.flows.own.data import pinned

        resources = resources_of(running.executor or "processes", running.workers, running.dask_address)
        benchmark = read(choice.place, choice.rows and ready.place(choice.rows), choice.only, is_quick=choice.quick)
        place = options.open_data(output.data)
        problems = tuple(replace(each, spec=pinned(each.spec, place.root)) for each in benchmark.problems)
        benchmark = replace(benchmark, problems=problems)
        if running.dry_run:
            _say_what_is_left(benchmark, place, is_audited=running.audit)
            return
        if not running.report_only:
            _play(benchmark, place, resources, is_audited=running.audit, is_agreed=running.yes, source=str(choice.place))
        from bandana.flows.annexes.leaderboard.assemble import assemble, write
        from bandana.flows.annexes.leaderboard.best import lines
        from bandana.flows.folder.store import Store

        document = assemble(benchmark, Store(place.results), choice.command)
        files = write(document, place)
        if output.as_json:
            typer.echo(json.dumps(document, indent=1, allow_nan=False))
            return
        options.echo(*lines(document))
        options.echo_files(files)


def _play(
    benchmark: Benchmark, place: DataFolder, resources: Resources, *, is_audited: bool, is_agreed: bool, source: str
) -> None:
    """Plays what is missing of every problem, and audits each entry and level once; all is checked before work starts."""
    from bandana.flows.annexes.leaderboard.benchmark_folder import audit_plans
    from bandana.flows.cells.audits import check_audits

    audits = audit_plans(benchmark) if is_audited else []
    plans = [*_plans(benchmark).values()]
    every = [cell for plan in plans for cell in plan.cells]
    check_audits(cell for plan in audits for cell in plan.private)
    work = [Work(plan, ["benchmark"]) for plan in plans]
    work += [Work(plan, ["audit"]) for plan in audits]
    ask(source, work, place.root, resources, is_agreed=is_agreed)
    begin(place)
    warm_up(every, ["benchmark", *(["audit"] if audits else [])], resources)
    from bandana.flows.annexes.leaderboard.replications import longer_plan
    from bandana.flows.folder.store import Store, write_whole
    from bandana.flows.spec.spec import standing_alone
    from bandana.flows.suites.step_flows import run_step

    while_the_server_starts(place)
    place.sweep()
    for problem in benchmark.problems:
        text = standing_alone(problem.spec, problem.text)
        write_whole(place.suite(problem.spec.name) / "spec.yaml", text.encode())
    run_step("benchmark", plans, str(place.root), resources)
    if not benchmark.is_quick:
        store = Store(place.results)
        more = [longer for plan in plans if (longer := longer_plan(plan, store)) is not None]
        run_step("benchmark", more, str(place.root), resources)
    run_step("audit", audits, str(place.root), resources)


def _plans(benchmark: Benchmark) -> dict[str, Plan]:
    """Name -> plan of each problem with the defaults, and with what was tuned for it."""
    from bandana.flows.annexes.leaderboard.tuning import tuned_plan

    plans = {}
    for problem in benchmark.problems:
        plans[problem.name] = problem.plan
        if (tuned := tuned_plan(problem, benchmark.folder)) is not None:
            plans[f"{problem.name}, tuned"] = tuned
    return plans


def _say_what_is_left(benchmark: Benchmark, place: DataFolder, *, is_audited: bool) -> None:
    from bandana.flows.annexes.leaderboard.benchmark_folder import audit_plans
    from bandana.flows.annexes.leaderboard.replications import longer_plan
    from bandana.flows.cells.audits import stored_audit
    from bandana.flows.cells.play import is_played
    from bandana.flows.folder.store import Store

    store = Store(place.results)
    for name, plan in _plans(benchmark).items():
        longer = None if benchmark.is_quick else longer_plan(plan, store)
        blocks = [*plan.blocks(), *(() if longer is None else longer.blocks())]
        missing = sum(not is_played(block, store) for block in blocks)
        options.echo(f"{name}: {missing} of {len(blocks)} blocks are left to play")
    if is_audited:
        cells = [cell for plan in audit_plans(benchmark) for cell in plan.private]
        missing = sum(stored_audit(cell, store) is None for cell in cells)
        options.echo(f"audits: {missing} of {len(cells)} are left")
