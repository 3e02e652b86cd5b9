"""Work by the clock: a nightly benchmark of a spec, a weekly audit of the whole catalog, and when they run next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple, cast

from prefect import flow
from prefect.client.schemas.objects import State
from prefect.deployments.runner import RunnerDeployment
from prefect.runtime import flow_run
from prefect.schedules import Cron
from prefect.types.entrypoint import EntrypointType

from bandana.audits.subjects import EFFORT, subjects
from bandana.flows.annexes.operations import nights
from bandana.flows.annexes.operations.clock import Times
from bandana.flows.annexes.operations.fresh_nights import FRESH
from bandana.flows.annexes.operations.service import end_with_service
from bandana.flows.folder.settings import DataFolder, data_root
from bandana.flows.folder.store import write_whole
from bandana.flows.plan.plan import Plan
from bandana.flows.running.executors import Executor, Resources, task_runner
from bandana.flows.spec.spec import load_spec, parse_spec, standing_alone
from bandana.flows.suites.alarms import AlarmRaised
from bandana.flows.suites.audit_all import SUITE, audit_all_flow
from bandana.flows.suites.suite import suite_flow
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError
from bandana.flows.tracking.experiments import IS_NIGHT

DEMO = "demo"
NIGHTLY_STEPS = ("benchmark", "gate", "report", FRESH)


def _run_name() -> str:
    """Name of a scheduled run: the spec, or the whole catalog, and the day, not a path."""
    scheduled = flow_run.scheduled_start_time
    return f"{Path(flow_run.parameters.get('spec', SUITE)).stem} {scheduled:%Y-%m-%d %H:%M}"


@flow(name="nightly-benchmark", flow_run_name=_run_name, persist_result=False)
def nightly_benchmark(
    spec: str = DEMO, data: str | None = None, steps: list[str] | None = None
) -> JsonObject | State[AlarmRaised]:
    """Benchmarks a spec, holds it against its baseline, and writes the report.

    What did not change since the last night is not computed again: results belong to the code and the spec. The step `fresh`
    adds replays with the night's own seed to those of all nights before (see `fresh_nights`).

    Args:
      spec: path of a YAML file, or `demo` for the built-in one.
      data: the data folder; None for BANDANA_DATA, or `bandana_data` in the working directory.
      steps: any of benchmark, audit, gate, report, fresh; None for all but audit.
    """
    end_with_service()
    plan, text = read_spec(spec, data_root(data))
    folder = DataFolder.open(data)
    plan, checked = plan.bound(folder.root), plan.spec
    write_whole(folder.suite(checked.name) / "spec.yaml", standing_alone(checked, text).encode())
    ended = _by_the_clock(partial(suite_flow.fn, plan, text, str(folder.root), list(steps or NIGHTLY_STEPS)))
    nights.close(plan, text, folder, ended)
    return ended


@flow(
    name="weekly-audit",
    flow_run_name=_run_name,
    persist_result=False,
    task_runner=task_runner(Resources(), Executor.PROCESSES, "bandana.flows.suites.audit_all"),
)
def weekly_audit(
    data: str | None = None, only: list[str] | None = None, replays: int = 100_000, examples: int = 100, seed: int = 0
) -> JsonObject | State[AlarmRaised]:
    """Audits every private algorithm of the catalog and every building block.

    Args:
      data: the data folder; None for BANDANA_DATA, or `bandana_data` in the working directory.
      only: labels to audit; None for all.
      replays: on each side of each neighboring pair.
      examples: cases of the deterministic audit.
      seed: root of all replay seeds.
    """
    end_with_service()
    effort = replace(EFFORT, replays=replays, examples=examples, seed=seed)
    labels = [label for label in subjects() if not only or label in only]
    return _by_the_clock(partial(audit_all_flow.fn, labels, effort, str(DataFolder.open(data).root)))


def _by_the_clock(run: Callable[[], JsonObject | State[AlarmRaised]]) -> JsonObject | State[AlarmRaised]:
    """Runs what writes to the experiments of nights."""
    before = IS_NIGHT.set(True)
    try:
        return run()
    finally:
        IS_NIGHT.reset(before)


class Nightly(NamedTuple):
    """A spec that is benchmarked each night.

    Attributes:
      source: its absolute path, or `demo`.
      plan: of the spec, with its data checked.
    """

    source: str
    plan: Plan

    @classmethod
    def of(cls, spec: str, root: Path) -> Nightly:
        """Reads a spec; for the arguments and errors see `read_spec`."""
        return cls(spec if spec == DEMO else str(Path(spec).absolute()), read_spec(spec, root)[0])


def read_spec(spec: str, root: Path) -> tuple[Plan, str]:
    """The plan and the text of a spec, from a path, or of the built-in one; with its data checked.

    Args:
      spec: path of a YAML file, or `demo`.
      root: the data folder.

    Raises:
      SpecError: see `bandana.flows.spec.spec.load_spec`.
    """
    if spec == DEMO:
        text = resources.files("bandana.flows").joinpath("demo.yaml").read_text(encoding="utf-8")
        checked = parse_spec(text, spec, Path.cwd())
    else:
        checked = load_spec(Path(spec))
        text = Path(spec).read_text(encoding="utf-8")
    return Plan.of(checked, root), text


def deployments(
    specs: Sequence[Nightly], times: Times, data: str, steps: Sequence[str] = NIGHTLY_STEPS
) -> list[RunnerDeployment]:
    """Deployments of `bandana serve`: one nightly benchmark a spec, and the weekly audit; never two runs of one at once.

    Args:
      specs: each with its plan.
      times: when they run.
      data: the data folder.
      steps: of each night.

    Raises:
      SpecError: two specs have one name.
    """
    names = [plan.spec.name for _, plan in specs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise SpecError(f"two specs have the name {twice[0]!r}; each is scheduled under its own")
    made = [
        nightly_benchmark.to_deployment(
            plan.spec.name,
            schedules=[Cron(times.nightly, timezone=times.timezone)],
            parameters={"spec": source, "data": data, "steps": list(steps)},
            description=f"{plan.spec.title or plan.spec.name}: {', '.join(steps)}. {plan.spec.description}".strip(),
            tags=list(dict.fromkeys(["bandana", "nightly", plan.spec.name])),
            concurrency_limit=1,
            entrypoint_type=EntrypointType.MODULE_PATH,
        )
        for source, plan in specs
    ]
    audit = weekly_audit.to_deployment(
        SUITE,
        schedules=[Cron(times.weekly, timezone=times.timezone)],
        parameters={"data": data},
        description="Audits every private algorithm of the catalog and every building block, with planted faults.",
        tags=["bandana", "weekly", "audit"],
        concurrency_limit=1,
        entrypoint_type=EntrypointType.MODULE_PATH,
    )
    return cast(list[RunnerDeployment], [*made, audit])  # coroutines only where a loop runs
