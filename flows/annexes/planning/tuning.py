"""Chooses a parameter for every cell of a spec, by one rule, on seeds that its benchmark never shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import is_played
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, write_whole
from bandana.flows.own.data import pinned
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.results.summaries import summarize_cell
from bandana.flows.running.executors import Resources
from bandana.flows.spec import tuned
from bandana.flows.spec.spec import Spec
from bandana.flows.spec.tuned import PRIVATE_RULE, RULE, Tried, Tuned, choose, question, seed_of_tuning, text_of
from bandana.flows.suites.step_flows import run_step
from bandana.flows.texts.mistakes import SpecError


def tune(spec: Spec, trials: Mapping[float, Plan], data: str, resources: Resources | None = None) -> Tuned:
    """Plays every cell with every value, writes what was chosen and tried beside the spec, and returns it.

    `trials` are the plans of the spec's trials, see `Spec.with_trial`, by the value of the parameter.

    Each value is a suite of its own, `NAME-tuning-VALUE`: MLflow shows it, and a rerun plays what is missing. On rows with a
    budget book all trials and choices must fit together before any is played; a choice that was made stays.
    """
    assert spec.tuning is not None
    folder, tuning = DataFolder(Path(data)), spec.tuning
    store, spec = Store(folder.results), pinned(spec, folder.root)
    plans = {value: trial.bound(folder.root) for value, trial in trials.items()}
    takes = tuning.parameter
    cells = {value: [cell for cell in plan.cells if takes in cell.entry.parameters] for value, plan in plans.items()}
    waiting = [block for each in cells.values() for cell in each for block in cell.blocks() if not is_played(block, store)]
    known = _chosen_before(spec)
    first = cells[tuning.values[0]]
    book_keeper().check_affords(waiting, [cell for cell in first if _is_private(cell) and cell.name not in known])
    run_step("benchmark", [*plans.values()], data, resources)
    tried: dict[str, list[Tried]] = {}
    chosen: dict[str, float] = {}
    for place, cell in enumerate(first):
        finals = [summarize_cell(cells[value][place], store)["finals"] for value in tuning.values]
        if _is_private(cell):
            means = [float(regrets.mean()) for regrets in finals]
            chosen[cell.name] = known.get(cell.name) or tuning.values[book_keeper().choose(cell, means)]
            tried[cell.name] = [Tried(value=value, mean=None, low=None, high=None) for value in tuning.values]
        else:
            ends = [mean_interval(regrets)._asdict() for regrets in finals]
            tried[cell.name] = [
                Tried(value=value, **{name: float(end) for name, end in interval.items()})
                for value, interval in zip(tuning.values, ends, strict=True)
            ]
            chosen[cell.name] = choose(tried[cell.name])
    rules = [RULE, *([PRIVATE_RULE.format(epsilon=tuning.epsilon)] if tuning.epsilon is not None else [])]
    done = Tuned(
        parameter=tuning.parameter, rule="; ".join(rules), seed=seed_of_tuning(spec.seed), question=question(spec),
        chosen=chosen, tried=tried,
    )  # fmt: skip
    write_whole(spec.place_of_tuned, text_of(done).encode())
    return done


def _is_private(cell: Cell) -> bool:
    return cell.environment.item.book is not None


def _chosen_before(spec: Spec) -> dict[str, float]:
    """Values that were drawn for the same question: drawing again would be charged again."""
    if spec.tuning is None or spec.tuning.epsilon is None or not spec.place_of_tuned.exists():
        return {}
    try:
        return tuned.read(spec.place_of_tuned, spec)
    except SpecError:
        return {}
