"""The command baseline: what later results are held against."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Data, Debug, open_data
from bandana.flows.folder.settings import DataFolder

if TYPE_CHECKING:
    from bandana.flows.results.baseline import Baseline


def baseline(
    spec: Annotated[Path | None, typer.Argument(help="The experiment, a YAML file.", show_default=False)] = None,
    all_: Annotated[bool, typer.Option("--all", help="The last audit of the whole catalog instead.")] = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Record the present results as the baseline that later ones are held against; nothing is computed anew."""
    with failures(debug):
        from bandana.flows.texts.mistakes import SpecError

        if (spec is None) is not all_:
            raise SpecError("record the baseline of one: a SPEC, or the whole catalog with --all")
        folder = open_data(data)
        _record_catalog(folder) if spec is None else _record_spec(spec, folder)


def _record_spec(path: Path, folder: DataFolder) -> None:
    from bandana.flows.folder.store import Store
    from bandana.flows.own.data import pinned
    from bandana.flows.plan.plan import Plan
    from bandana.flows.results import baseline as baselines
    from bandana.flows.spec.spec import load_spec
    from bandana.flows.texts.mistakes import SpecError

    plan = Plan.of(pinned(load_spec(path), folder.root))
    spec = plan.spec
    recorded = baselines.record(plan, path.read_text(encoding="utf-8"), Store(folder.results))
    if not recorded.cells:
        named = shlex.quote(str(path))
        raise SpecError(
            f"nothing of the suite {spec.name!r} that may be shown is in the store, by the present code: "
            f"`bandana run {named}` or `bandana audit {named}` first"
        )
    _write(recorded, baselines.place_of(spec, folder), folder)
    for environment in baselines.withheld(plan):
        typer.echo(f"regret on {environment.label} is private: it stands in no baseline")


def _record_catalog(folder: DataFolder) -> None:
    from bandana.audits.evidence import UnusableEvidence, read
    from bandana.flows.results import baseline as baselines
    from bandana.flows.suites.audit_all import SUITE
    from bandana.flows.texts.mistakes import SpecError

    outcomes = {}
    for path in sorted((folder.suite(SUITE) / "evidence").glob("*.npz")):
        try:
            outcome = read(path).outcome
        except UnusableEvidence as error:
            raise SpecError(f"{path}: {error}") from error
        outcomes[outcome.subject["name"]] = outcome
    if not outcomes:
        raise SpecError("the whole catalog was not audited yet: `bandana audit-catalog` first")
    _write(baselines.record_audits(SUITE, outcomes), baselines.place_in(folder, SUITE), folder)


def _write(baseline: Baseline, place: Path, folder: DataFolder) -> None:
    from bandana.flows.results import baseline as baselines
    from bandana.flows.tracking.tracker import Tracker

    word = "replaced" if place.exists() else "recorded"
    baselines.write(place, baseline)
    n_runs = Tracker.open(folder.root).mark_baseline(baseline.suite, {cell.label for cell in baseline.cells})
    n_regrets = sum(cell.regret is not None for cell in baseline.cells)
    n_audits = sum(cell.audit is not None for cell in baseline.cells)
    typer.echo(f"{word}: {place} (regret of {n_regrets} cells, {n_audits} audit{'s' * (n_audits != 1)})")
    typer.echo(f"in MLflow {n_runs} runs are tagged baseline = true")
