"""The two columns of a leaderboard, defaults and tuned: fronts and contests of each, and how far their rankings agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import numpy as np
from scipy.stats import kendalltau, spearmanr

from bandana.algorithms.protocol import FloatArray
from bandana.audits.documents.fields import present
from bandana.flows.annexes.leaderboard.contest import WITHIN, contest, within
from bandana.flows.annexes.leaderboard.document import Agreement, Best, Columns, Ranked, Row, TunedRow
from bandana.flows.annexes.leaderboard.measures import Measured
from bandana.flows.annexes.leaderboard.scaled import knob_of
from bandana.flows.plan.cells import Cell
from bandana.privacy_core import ApproxDP, Guarantee, PureDP

Column = Literal["defaults", "tuned"]
Kind = Literal["pure", "concentrated", "approximate"]
COLUMNS: tuple[Column, ...] = ("defaults", "tuned")
KINDS: tuple[Kind, ...] = ("pure", "concentrated", "approximate")
_FEWEST = 3
"""Rows of which two orders are compared."""


def kind_of(guarantee: Guarantee) -> Kind:
    """Kind of a guarantee: pure, approximate, or concentrated: Renyi, zero-concentrated and Gaussian DP."""
    if isinstance(guarantee, PureDP):
        return "pure"
    return "approximate" if isinstance(guarantee, ApproxDP) else "concentrated"


def exploration_of(cell: Cell) -> str | None:
    """The cell's parameter of exploration with its value; None where its algorithm has none."""
    name = knob_of(cell.entry)
    return None if name is None else f"{name} = {cell.settings.parameters[name]:g}"


def tuned_row(cell: Cell, measured: Measured) -> TunedRow:
    """The part of a row that is ranked, with the exploration that was tuned for it."""
    return {
        "exploration": exploration_of(cell),
        "mean": measured.mean,
        "low": measured.low,
        "high": measured.high,
        "replications": len(measured.values),
        "is_on_front": False,
        "is_on_own_front": False,
    }


def ranked(row: Row, column: Column) -> Ranked:
    """The part of a row that a column ranks."""
    return row if column == "defaults" else present(row["tuned"])


def mark_fronts(able: Sequence[Row]) -> None:
    """Marks the rows of each column's fronts: of their trust model, and of their kind of guarantee in it.

    Args:
      able: rows with a claim, which keep their error.
    """
    for column in COLUMNS:
        rows = _in(able, column)
        for row in rows:
            others = [other for other in rows if other["privacy_model"] == row["privacy_model"]]
            alike = [other for other in others if other["guarantee"] == row["guarantee"]]
            ranked(row, column)["is_on_front"] = not any(_dominates(other, row, column) for other in others)
            ranked(row, column)["is_on_own_front"] = not any(_dominates(other, row, column) for other in alike)


def _in(rows: Iterable[Row], column: Column) -> list[Row]:
    """The rows that a column has."""
    return [row for row in rows if column == "defaults" or row["tuned"] is not None]


def _dominates(other: Row, row: Row, column: Column) -> bool:
    """True if another row promises as much and loses less."""
    mine, theirs = present(row["mu_claimed"]), present(other["mu_claimed"])
    is_as_private, is_more_private = theirs <= mine * (1 + WITHIN), theirs < mine * (1 - WITHIN)
    own, less = ranked(row, column)["mean"], ranked(other, column)["mean"]
    return is_as_private and (less < own or (less == own and is_more_private))


Values = Mapping[Column, Mapping[str, FloatArray]]
"""Column -> label of a row -> (n_reps,) its measure in each replication."""


def contests(
    able: Sequence[Row], levels: Sequence[float], values: Values, references: Mapping[str, FloatArray]
) -> list[Best]:
    """Every contest of a problem: of each trust model, level and column, among all rows and among those of each guarantee.

    Args:
      able: rows that may win.
      levels: as mu.
      values: of each row.
      references: label -> measure of reference rows that need no learning.
    """
    private = [row for row in able if row["role"] == "private"]
    ended = []
    for trust in dict.fromkeys(row["privacy_model"] for row in private):
        trusted = [row for row in private if row["privacy_model"] == trust]
        kinds: list[Kind | None] = [kind for kind in KINDS if any(row["guarantee"] == kind for row in trusted)]
        for column in COLUMNS:
            for kind in [None, *kinds]:
                rows = [row for row in _in(trusted, column) if kind in (None, row["guarantee"])]
                if rows or column == "defaults":
                    for level in levels:
                        head: Best = {**_NOBODY, "mu": level, "privacy_model": trust, "guarantee": kind, "column": column}
                        ended.append(_ended(head, rows, values[column], references))
    return ended


_NOBODY: Best = {
    "mu": 1.0, "privacy_model": "", "guarantee": None, "column": "defaults", "label": None, "mu_claimed": None, "mean": None,
    "low": None, "high": None, "candidates": 0, "best_set": [], "not_beaten": [],
}  # fmt: skip


def _ended(head: Best, rows: Sequence[Row], values: Mapping[str, FloatArray], references: Mapping[str, FloatArray]) -> Best:
    """The contest within a level: each entry plays once, with the weakest claim that it has there."""
    able = within(rows, head["mu"], head["privacy_model"])
    if not able:
        return head
    ended = contest({row["label"]: values[row["label"]] for row in able}, references)
    first = next(row for row in able if row["label"] == ended.first)
    part = ranked(first, head["column"])
    return {
        **head,
        "label": first["label"],
        "mu_claimed": first["mu_claimed"],
        "mean": part["mean"],
        "low": part["low"],
        "high": part["high"],
        "candidates": len(able),
        "best_set": list(ended.best),
        "not_beaten": list(ended.not_beaten),
    }


def agreements(rows: Sequence[Row], best: Sequence[Best]) -> list[Agreement]:
    """Agreement of both columns, contest by contest among all guarantees.

    Args:
      rows: of a problem.
      best: its contests.
    """
    overall = {(each["privacy_model"], each["mu"], each["column"]): each for each in best if each["guarantee"] is None}
    ended = []
    for (trust, level, column), ours in overall.items():
        theirs = overall.get((trust, level, "tuned"))
        if column == "tuned" or theirs is None:
            continue
        both = within([row for row in rows if row["tuned"] is not None], level, trust)
        pairs = np.array([(row["mean"], present(row["tuned"])["mean"]) for row in both]).reshape(-1, 2)
        winners = [None if each["not_beaten"] else each["label"] for each in (ours, theirs)]
        agreement: Agreement = {
            "mu": level,
            "privacy_model": trust,
            "rows": len(both),
            "kendall": _of(kendalltau, pairs),
            "spearman": _of(spearmanr, pairs),
            "defaults": winners[0],
            "tuned": winners[1],
        }
        ended.append(agreement)
    return ended


def _of(correlation: object, pairs: FloatArray) -> float | None:
    """A rank correlation of (n, 2) pairs; None of fewer than three, or where all of a column are equal."""
    if len(pairs) < _FEWEST or not np.ptp(pairs, axis=0).all():
        return None
    return float(correlation(*pairs.T).statistic)  # type: ignore[operator]


def together(agreements: Sequence[Agreement]) -> Columns:
    """The same over all contests of a page."""
    kendall = [each["kendall"] for each in agreements if each["kendall"] is not None]
    spearman = [each["spearman"] for each in agreements if each["spearman"] is not None]
    won = [(each["defaults"], each["tuned"]) for each in agreements if each["defaults"] or each["tuned"]]
    return {
        "contests": len(agreements),
        "ranked": len(kendall),
        "kendall": None if not kendall else float(np.mean(kendall)),
        "spearman": None if not spearman else float(np.mean(spearman)),
        "won": len(won),
        "holds": None if not won else float(np.mean([ours == theirs for ours, theirs in won])),
    }
