"""Commands on specs: demo, check, run."""

from __future__ import annotations

import gc
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandana.flows.commands.agreement import Work, ask
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import (
    FAILURE,
    Anonymous,
    AsJson,
    Data,
    Debug,
    Device,
    DryRun,
    ExecutorName,
    SpecPath,
    Workers,
    Yes,
    console,
    echo,
    echo_files,
    open_data,
)
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.folder.shared import address_in
from bandana.flows.running.memory import keep_freed
from bandana.flows.texts.json_text import JsonObject

if TYPE_CHECKING:
    from bandana.flows.plan.cells import Cell
    from bandana.flows.plan.plan import Plan
    from bandana.flows.running.executors import Resources
    from bandana.flows.spec.spec import Spec

DaskAddress = Annotated[
    str | None, typer.Option(help="A running cluster's scheduler, such as tls://10.0.0.5:8786.", show_default=False)
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow a scheduler of another machine without TLS: who reaches it runs code as you."),
]


def demo(
    executor: ExecutorName = None,
    workers: Workers = None,
    dry_run: DryRun = False,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """The main job: benchmark, audits and report on a real trial, in one go."""
    with failures(debug):
        from bandana.flows.spec.spec import parse_spec

        text = resources.files("bandana.flows").joinpath("demo.yaml").read_text(encoding="utf-8")
        given = parse_spec(text, "demo.yaml", Path.cwd()), text, "demo.yaml"
        steps, how = ["benchmark", "audit", "report"], resources_of(executor, workers)
        run_spec(given, data, steps, how, dry_run=dry_run, is_agreed=True, as_json=as_json)


def run(
    spec: SpecPath,
    audit: Annotated[bool, typer.Option("--audit", help="Audit it too.")] = False,
    executor: ExecutorName = None,
    workers: Workers = None,
    device: Device = None,
    dask_address: DaskAddress = None,
    insecure: Insecure = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Benchmark a spec: regret and privacy spent, tracked in MLflow, and the report."""
    with failures(debug):
        steps = ["benchmark", *(["audit"] if audit else []), "report"]
        how = resources_of(executor, workers, dask_address, insecure)
        run_spec(read(spec), data, steps, how, dry_run=dry_run, is_agreed=yes, as_json=as_json)


def check(spec: SpecPath, as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Check a spec, and explain what it will do: its cells and their claims; `bandana run --dry-run` estimates the time."""
    with failures(debug):
        from bandana import configuration
        from bandana.flows.plan.plan import Plan
        from bandana.flows.spec.spec import load_spec

        plan = Plan.of(load_spec(spec), data_root(data))
        _explain(plan, ["benchmark", "audit", "report"], if_there(data), None, as_json=as_json, is_timed=False)
        if not as_json:
            echo(*(f"settings: {settings}" for settings in [configuration.read()] if settings), f"{spec}: correct")


def read(path: Path) -> tuple[Spec, str, str]:
    """The spec in a file, its text, and how mistakes name it."""
    from bandana.flows.spec.spec import load_spec

    return load_spec(path), path.read_text(encoding="utf-8"), str(path)


def resources_of(
    executor: str | None, workers: int | None, dask_address: str | None = None, insecure: bool = False
) -> Resources:
    """Resources to run on, checked."""
    from bandana.flows.running.executors import Executor, Resources

    chosen = Resources(
        executor=executor and Executor(executor), workers=workers, dask_address=dask_address, insecure=insecure
    )
    chosen.check()
    return chosen


def run_spec(
    given: tuple[Spec, str, str],
    data: Path | None,
    steps: list[str],
    resources: Resources | None = None,
    *,
    dry_run: bool = False,
    is_agreed: bool = False,
    as_json: bool = False,
) -> None:
    """Checks the data and audits of a spec, see `read`, runs the steps, and says where everything lies."""
    from bandana.audits.names import with_titles
    from bandana.flows.plan.cell_checks import check_cells
    from bandana.flows.plan.plan import Plan
    from bandana.flows.texts.mistakes import SpecError

    spec, text, source = given
    plan = Plan.of(spec, data_root(data))
    check_cells(plan.cells)
    if steps[0] == "audit" and not plan.private:
        raise SpecError(f"{source}: algorithms: there is nothing to audit, no algorithm here is private")
    if "audit" in steps:
        from bandana.flows.cells.audits import check_audits

        check_audits(plan.private)
    if dry_run:
        _explain(plan, steps, if_there(data), resources.workers if resources else None, as_json=as_json, is_timed=True)
        return
    ask(source, [Work(plan, steps)], if_there(data), resources, is_agreed=is_agreed)
    folder = open_data(data)
    begin(folder)
    warm_up(plan.cells, steps, resources)
    from bandana.flows.folder.store import write_whole
    from bandana.flows.spec.spec import standing_alone
    from bandana.flows.suites.suite import suite

    while_the_server_starts(folder)
    write_whole(folder.suite(spec.name) / "spec.yaml", standing_alone(spec, text).encode())
    done = suite(plan.bound(folder.root), text, str(folder.root), steps, resources)
    if as_json:
        typer.echo(for_machines(spec.name, done["audits"], done["files"], done["gate"], done["alarm"]))
    else:
        _say_what_was_done(with_titles(done, plan.titles), data)
    if done["alarm"] is not None:
        typer.echo(f"error: {done['alarm']}", err=True)
        raise typer.Exit(FAILURE)


def begin(folder: DataFolder) -> None:
    """Sets up what must precede the import of Prefect: its settings, its server, and how the command stops."""
    folder.prepare()
    keep_freed()
    gc.disable()  # while everything is imported: nothing of that is garbage
    from bandana.flows.running.interrupt import server_ended, stop, stop_at_once_on_interrupt
    from bandana.flows.servers import prefect_health, temporary_server
    from bandana.flows.tracking.tracker import Tracker

    Tracker.check(folder.root)
    stop_at_once_on_interrupt(FAILURE)

    def end(words: str) -> None:
        stop(server_ended(words, folder.root), FAILURE)

    if (home := temporary_server.start(folder.prefect, end)) is None:
        prefect_health.watch(end)
    else:
        prefect_health.check_database(home)


def warm_up(cells: Sequence[Cell], steps: Sequence[str], resources: Resources | None) -> None:
    """Prepares what workers are forked from, if there will be any."""
    from bandana.flows.plan.plan import is_small
    from bandana.flows.running import warm_start
    from bandana.flows.running.executors import Executor

    chosen = None if resources is None else resources.executor
    if chosen is Executor.PROCESSES or (chosen is None and ("audit" in steps or not is_small(cells))):
        warm_start.warm_up(["bandana.flows.suites.step_flows", "bandana.flows.cells.own_replays"])


def while_the_server_starts(folder: DataFolder) -> None:
    """Imports what takes seconds anyway: MLflow with its tables, and what draws the report."""
    from bandana.audits.reporting import render
    from bandana.flows.tracking.tracker import Tracker

    Tracker.open(folder.root)
    render.load()
    gc.freeze()  # what was imported stays: the collector need not search a million objects again and again
    gc.enable()


def if_there(data: Path | None) -> Path | None:
    """The data folder, if it exists: explaining makes none."""
    root = data_root(data)
    return root if root.is_dir() else None


def _explain(plan: Plan, steps: list[str], data: Path | None, workers: int | None, *, as_json: bool, is_timed: bool) -> None:
    from bandana.flows.queries.explain import explain, render

    explained = explain(plan, steps, data, workers, None if is_timed else 0)
    if as_json:
        typer.echo(json.dumps(explained, indent=1, allow_nan=False))
    else:
        console(150).print(render(explained))


def for_machines(
    suite: str,
    audits: Iterable[Mapping[str, object]],
    files: dict[str, str],
    gate: Mapping[str, object] | None = None,
    alarm: str | None = None,
) -> str:
    """Returns what was done, as one JSON object."""
    shown = ("label", "verdict", "delta", "main", "mu", "epsilon", "reasons")
    rows = [{name: outcome[name] for name in shown} for outcome in audits]
    document = {"suite": suite, "audits": rows, "gate": gate, "alarm": alarm, "files": files}
    return json.dumps(document, indent=1, allow_nan=False)


def _say_what_was_done(done: JsonObject, data: Path | None) -> None:
    from bandana.flows.results import gate

    for outcome in done["audits"]:
        main = outcome["main"]
        shown = "  >=  ".join(
            f"{name} {'infinite' if main[name] is None else format(main[name], '.4f')}"
            for name in ("claimed", "accounted", "measured")
        )
        typer.echo(f"{outcome['verdict']:<13} {outcome['label']:<28} {main['quantity']}: {shown}")
        echo(*(f"              {line}" for line in outcome["coverage"][1:3]))
        if outcome["verdict"] not in ("PASS", "NOT REFUTED"):
            example = outcome["deterministic"]["counterexample"] or {"lines": ()}
            echo(*(f"              {line}" for line in (*outcome["reasons"], *example["lines"])))
    echo(*gate.lines(done["gate"]))
    echo_files(done["files"])
    option = "" if data is None else f" --data {shlex.quote(address_in(str(data)) or str(data))}"
    program = Path(sys.argv[0])
    if program.name == "__main__.py":
        command = "python -m bandana"
    else:
        is_on_path = str(program.parent) in os.environ.get("PATH", "").split(os.pathsep)
        command = "bandana" if is_on_path else shlex.quote(str(program))
    typer.echo(f"Compare the runs in MLflow:  {command} ui{option}")


def suites_of(folder: DataFolder) -> list[str]:
    """Names of the suites of a data folder."""
    parent = folder.suite("x").parent
    return sorted(path.name for path in parent.iterdir()) if parent.exists() else []
