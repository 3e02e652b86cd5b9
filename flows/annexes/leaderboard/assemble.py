"""A benchmark's leaderboard as a document, from what is in the store alone; and the files that it is written as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TypedDict

import numpy as np

from bandana.algorithms import catalog
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.algorithms.protocol import FloatArray
from bandana.audits.contents import PROVENANCE
from bandana.audits.documents.audit import Verdict
from bandana.audits.outcome import MU, Outcome
from bandana.audits.reporting.intervals import quantiles, words
from bandana.audits.summary import finite
from bandana.flows.annexes.leaderboard import document as documents
from bandana.flows.annexes.leaderboard.benchmark_folder import QUICK_RULE, Benchmark, Problem, every_of
from bandana.flows.annexes.leaderboard.best import place_of
from bandana.flows.annexes.leaderboard.columns import (
    Values,
    agreements,
    contests,
    exploration_of,
    kind_of,
    mark_fronts,
    together,
    tuned_row,
)
from bandana.flows.annexes.leaderboard.contest import UNLEARNED
from bandana.flows.annexes.leaderboard.document import Leaderboard, LowerBound, Row
from bandana.flows.annexes.leaderboard.measures import NAMES, Measured, allowed_error, measured
from bandana.flows.annexes.leaderboard.replications import finished
from bandana.flows.annexes.leaderboard.tuning import tuned_plan
from bandana.flows.annexes.leaderboard.win_rates import win_rates
from bandana.flows.cells.audits import stored_audit
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.keys import provenance
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.flows.problems.environment import UNIFORM
from bandana.flows.results.audit_report import write_document
from bandana.flows.results.summaries import Summary
from bandana.flows.spec.aims import aim_of
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import GaussianDP, PureDP


class Audited(TypedDict):
    """Measurement of an entry at a level, on the first problem whose audit of it is finished."""

    mu: float | None
    verdict: Verdict
    problem: str
    failure: float


def assemble(benchmark: Benchmark, store: Store, command: str) -> Leaderboard:
    """The leaderboard's document, see `leaderboard.schema.json`: of every cell whose blocks are all in the store.

    Args:
      benchmark: whose data are pinned.
      store: results.
      command: that makes the page, as it is typed.

    Raises:
      SpecError: the store holds nothing of this benchmark.
    """
    audits, made = _audits(benchmark, store)
    failure = sum(each["failure"] for each in audits.values())
    shown = []
    for problem in benchmark.problems:
        tuned = tuned_plan(problem, benchmark.folder)
        played = _finished(problem.plan.played, store, benchmark)
        over = _finished(() if tuned is None else tuned.cells, store, benchmark)
        for block in (block for cell, _ in (*played.values(), *over.values()) for block in cell.blocks()):
            record = (store.describe(BENCHMARK, block.key) or {}).get(PROVENANCE)
            made.append(("blocks", provenance.shown(record, is_anonymous=store.is_anonymous)))
        wanted = () if tuned is None else tuned.cells
        shown.append(_problem(problem, played, over, [cell.name for cell in wanted if cell.name not in over], audits, store))
    if not any(problem["rows"] for problem in shown):
        raise SpecError("the store has no results of this benchmark, or only results of other code; run it first")
    origin = provenance.summary(made)
    return {
        "schema": "bandana/leaderboard/5",
        "kind": "leaderboard",
        "title": benchmark.title,
        "suite": f"version {benchmark.version}, {'quick' if benchmark.is_quick else 'whole'} form",
        "version": benchmark.version,
        "form": "quick" if benchmark.is_quick else "whole",
        "rule": QUICK_RULE if benchmark.is_quick else None,
        "created": origin["ended"],
        "levels": benchmark.levels,
        "audits": {"number": len(audits), "confidence": max(0.0, 1 - failure) if audits else None},
        "columns": together([each for problem in shown for each in problem["agreement"]]),
        "problems": shown,
        "win_rates": win_rates(benchmark, shown, store),
        "commands": [command],
        "provenance": {**origin},
    }


def _audits(
    benchmark: Benchmark, store: Store
) -> tuple[dict[str, Audited], list[tuple[provenance.Kind, provenance.Record | None]]]:
    """Measurement of each entry and level, on the first problem whose audit of it is finished; who measured it."""
    audits: dict[str, Audited] = {}
    made: list[tuple[provenance.Kind, provenance.Record | None]] = []
    for problem in benchmark.problems:
        for cell in problem.plan.private:
            if _subject(cell) in audits or (outcome := stored_audit(cell, store)) is None:
                continue
            audits[_subject(cell)] = {
                "mu": measured_mu(outcome),
                "verdict": outcome.verdict.value,
                "problem": problem.name,
                "failure": 1 - outcome.effort.confidence,
            }
            record = provenance.shown(outcome.provenance, is_anonymous=store.is_anonymous)
            made.append(("audits", record))
    return audits, made


def measured_mu(outcome: Outcome) -> float | None:
    """The measured number as mu; where the claim's own quantity was measured, the mu that the claim would have with it."""
    if MU in outcome.numbers:
        return finite(outcome.numbers[MU].measured)
    main, value = outcome.main, outcome.numbers[outcome.main].measured
    if not 0 < value < np.inf:
        return None if value > 0 else 0.0
    match main.name:
        case "epsilon" if main.delta == 0:
            return PureDP(value).gdp().mu
        case "epsilon":
            return GaussianDP.from_epsilon_delta(value, main.delta).mu
        case "divergence":
            return float(np.sqrt(2 * value / main.alpha))
    return float(np.sqrt(2 * value))


def _subject(cell: Cell) -> str:
    """Subject of an audit, whatever problem it plays on: a promise and its noise depend on none."""
    stated = (cell.entry.source, cell.name) if cell.entry.stated else ()
    promised = None if cell.promised is None else str(cell.promised)
    return repr((cell.entry.label, cell.settings.calibration, sorted(cell.settings.level().items()), promised, stated))


_Finished = dict[str, tuple[Cell, Summary]]
"""Cell's name -> the cell with all its replications, and its numbers."""


def _finished(cells: Sequence[Cell], store: Store, benchmark: Benchmark) -> _Finished:
    """The cells of a plan that are finished."""
    done = ((cell.name, finished(cell, store, is_quick=benchmark.is_quick)) for cell in cells)
    return {name: of_cell for name, of_cell in done if of_cell is not None}


def _measured(problem: Problem, cells: _Finished) -> dict[str, tuple[Cell, Measured]]:
    known = ((cell, measured(problem.aim, cell, summary)) for cell, summary in cells.values())
    return {cell.name: (cell, of_cell) for cell, of_cell in known if of_cell is not None}


def _problem(
    problem: Problem, played: _Finished, tuned: _Finished, missing: Sequence[str], audits: dict[str, Audited], store: Store
) -> documents.Problem:
    spec, cells = problem.spec, problem.plan.played
    described = problem.plan.environments[0].describe()
    measures, over = _measured(problem, played), _measured(problem, tuned)
    uniform = next((of_cell.values for cell, of_cell in measures.values() if cell.entry.name == UNIFORM), None)
    rows = [
        _row(cell, played[cell.name][1], of_cell, uniform, audits.get(_subject(cell)), store)
        for cell, of_cell in measures.values()
    ]
    _add_tuned(rows, measures, over)
    error = allowed_error(problem.aim, cells)
    kept = (row for row in rows if row["mu_claimed"] is not None and row["verdict"] != "FAIL")
    able = [row for row in kept if measures[row["label"]][1].keeps(error)]
    mark_fronts(able)
    levels = sorted({mu for item in every_of(spec) for mu in item.mu or ()})
    values: Values = {
        "defaults": {label: of_cell.values for label, (_, of_cell) in measures.items()},
        "tuned": {label: of_cell.values for label, (_, of_cell) in {**measures, **over}.items()},
    }
    best = contests(able, levels, values, {name: values["defaults"][name] for name in UNLEARNED if name in measures})
    return {
        "name": problem.name,
        "title": spec.title or problem.name,
        "description": spec.description,
        "kind": problem.kind,
        "data": described["data"],
        "about": described["description"],
        "measure": NAMES[problem.aim],
        "unit": described["unit"],
        "horizon": spec.horizon,
        "replications": spec.replications,
        "band": words(spec.replications),
        "is_changed": problem.is_changed,
        "levels": levels,
        "parameters": {name: value for item in every_of(spec) for name, value in item.parameters.items()},
        "rows": sorted(rows, key=_order),
        "lower_bounds": _lower_bounds([*measures.values()]),
        "best": best,
        "agreement": agreements(rows, best),
        "missing": [*(cell.title for cell in cells if cell.name not in played), *(f"{name}, tuned" for name in missing)],
        "left_out": _left_out(problem, cells),
    }


def _add_tuned(
    rows: Sequence[Row], measures: Mapping[str, tuple[Cell, Measured]], tuned: Mapping[str, tuple[Cell, Measured]]
) -> None:
    """Gives rows their part of the tuned column: without exploration to tune they are there as they are, if anything is."""
    for row in rows:
        label = row["label"]
        is_same = bool(tuned) and row["role"] != "reference" and row["exploration"] is None
        if label in tuned or is_same:
            row["tuned"] = tuned_row(*tuned.get(label, measures[label]))


def _left_out(problem: Problem, cells: Sequence[Cell]) -> list[str]:
    """Entries of this kind of problem and aim that do not play."""
    entries = {name for cell in cells for name in (cell.entry.label, cell.entry.seed_name)}
    return [
        entry.label
        for entry in catalog.known()
        if aim_of(entry) is problem.aim
        and set(problem.spec.environment[0].played_as) & set(entry.plays_on)
        and not entries & {entry.label, "" if entry.is_private else entry.seed_name}
    ]


def _row(
    cell: Cell, summary: Summary, of_cell: Measured, uniform: FloatArray | None, audit: Audited | None, store: Store
) -> Row:
    claim = cell.claim() if cell.is_private else None
    _, median, quantile_90 = quantiles(of_cell.values)
    is_share = of_cell.is_share
    return {
        "label": cell.name,
        "algorithm": cell.entry.name,
        "entry": cell.entry.label,
        "calibration": cell.settings.calibration,
        "privacy_model": cell.entry.privacy_model,
        "role": "reference" if cell.role is Role.REFERENCE else "private" if cell.is_private else "non-private",
        "is_own": cell.entry.family == "own",
        "source": cell.entry.source,
        "claim": None if claim is None else claim.statement,
        "relation": None if claim is None else claim.relation.value,
        "mu_claimed": None if claim is None else finite(claim.gaussian.mu),
        "mu_accounted": summary["mu"] if cell.is_private else None,
        "mu_measured": None if audit is None else audit["mu"],
        "verdict": None if audit is None else audit["verdict"],
        "audited_on": None if audit is None else audit["problem"],
        "guarantee": None if claim is None else kind_of(claim.stated),
        "exploration": exploration_of(cell),
        "mean": of_cell.mean,
        "low": of_cell.low,
        "high": of_cell.high,
        "replications": len(of_cell.values),
        "tuned": None,
        "caution": of_cell.caution,
        "median": None if is_share else median,
        "quantile_90": None if is_share else quantile_90,
        "no_better_than_uniform": _lost_as_much(of_cell.values, uniform),
        "lower_bound": of_cell.least,
        "over_lower_bound": of_cell.mean / of_cell.least if of_cell.least else None,
        "test": of_cell.test,
        "seconds": None if cell.is_expected else _seconds(cell, store),
        "is_on_front": False,
        "is_on_own_front": False,
    }


def _lost_as_much(values: FloatArray, uniform: FloatArray | None) -> float | None:
    """Share of replications that lost as much as uniform play; None if it was not played. It has the first ones alone."""
    if uniform is None:
        return None
    both = min(len(values), len(uniform))
    return float((values[:both] >= uniform[:both]).mean())


def _order(row: Row) -> tuple[int, float, float, str]:
    """Private rows by level and regret, then those that are not private, then reference rows."""
    place = ("private", "non-private", "reference").index(row["role"])
    return place, round(row["mu_claimed"] or 0.0, 3), row["mean"], row["label"]


def _lower_bounds(cells: Sequence[tuple[Cell, Measured]]) -> list[LowerBound]:
    """The least that any algorithm comes to, once for each trust model, kind of guarantee and level; and without privacy."""
    bounds: dict[str, LowerBound] = {}
    for cell, of_cell in cells:
        if of_cell.text is None or of_cell.least is None:
            continue
        claim = cell.claim() if cell.is_private else None
        bounds.setdefault(
            of_cell.text,
            {
                "class": str(Privacy.of(claim)),
                "privacy_model": cell.entry.privacy_model,
                "guarantee": cell.entry.guarantee,
                "mu": None if claim is None else finite(claim.gaussian.mu),
                "value": of_cell.least,
                "text": of_cell.text,
            },
        )
    return sorted(bounds.values(), key=lambda each: (each["mu"] is not None, each["privacy_model"], each["mu"] or 0.0))


def _seconds(cell: Cell, store: Store) -> float | None:
    """Seconds of one replication on one core, as the blocks were played; None where that was not recorded."""
    total = 0.0
    for block in cell.blocks():
        record = provenance.read((store.describe(BENCHMARK, block.key) or {}).get(PROVENANCE))
        if record is None:
            return None
        ended, began = (datetime.fromisoformat(time) for time in (record["ended"], record["began"]))
        total += (ended - began).total_seconds()
    return total / cell.spec.replications


def write(document: Leaderboard, folder: DataFolder) -> dict[str, Path]:
    """Checks a leaderboard and writes its page and its JSON; kind -> where it lies."""
    return write_document(document, place_of(folder) / document["form"], ("html", "json"))
