"""Chooses a parameter for every cell of a spec, by one rule, on seeds that its benchmark never shows."""

from __future__ import annotations

from pathlib import Path

from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.running.executors import Resources
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.store import Store, write_whole
from bandana.flows.spec.plan import cells_of
from bandana.flows.spec.spec import Spec
from bandana.flows.spec.tuned import RULE, Tried, Tuned, choose, question, seed_of_tuning, text_of
from bandana.flows.suites.benchmark import benchmark
from bandana.flows.suites.summaries import summarize_cell


def tune(spec: Spec, data: str, resources: Resources | None = None) -> Tuned:
    """Plays every cell with every value, writes what was chosen and tried beside the spec, and returns it.

    Each value is a suite of its own, `NAME-tuning-VALUE`: MLflow shows it, and a rerun plays what is missing.
    """
    assert spec.tuning is not None
    tried: dict[str, list[Tried]] = {}
    for value in spec.tuning.values:
        trial = spec.with_trial(value)
        benchmark(trial, data, resources)
        store = Store(DataFolder(Path(data)).results)
        for cell in cells_of(trial):
            if spec.tuning.parameter in cell.entry.parameters:
                found = mean_interval(summarize_cell(cell, store)["finals"])
                ends = {name: float(end) for name, end in found._asdict().items()}
                tried.setdefault(cell.name, []).append(Tried(value=value, **ends))
    done = Tuned(
        parameter=spec.tuning.parameter, rule=RULE, seed=seed_of_tuning(spec.seed), question=question(spec),
        chosen={name: choose(each) for name, each in tried.items()}, tried=tried,
    )  # fmt: skip
    write_whole(spec.place_of_tuned, text_of(done).encode())
    return done
