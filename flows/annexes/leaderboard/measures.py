"""Measure of a benchmark's problem: regret, rounds until a test stops, or its errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.documents.benchmark import StoppedTests
from bandana.audits.reporting.intervals import caution
from bandana.flows.plan.cells import Cell
from bandana.flows.results.summaries import CURVES, Summary
from bandana.flows.spec.aims import Aim

NAMES: dict[Aim, Literal["regret", "rounds", "errors"]] = {
    Aim.REGRET: "regret",
    Aim.FIXED_CONFIDENCE: "rounds",
    Aim.FIXED_BUDGET: "errors",
}
"""Name of each aim's measure in a leaderboard's document."""


class Measured(NamedTuple):
    """One row's measure.

    Attributes:
      mean: over replications.
      low: of its 95 % interval.
      high: of it.
      values: (n_reps,) of each replication, for paired comparisons.
      caution: why the interval may be too short; None: nothing speaks for it.
      least: the least mean of any algorithm with the claim; None: not known.
      text: its theorem; None: none.
      test: what tests for the best arm came to; None: regret is measured.
    """

    mean: float
    low: float
    high: float
    values: FloatArray
    caution: str | None
    least: float | None
    text: str | None
    test: StoppedTests | None

    @property
    def is_share(self) -> bool:
        """True if each replication is right or wrong, so that quantiles say nothing."""
        return self.test is not None and set(np.unique(self.values)) <= {0.0, 1.0}

    def keeps(self, error: float) -> bool:
        """True if nothing speaks against an error of so much: tests that err more often win nothing."""
        return self.test is None or bool(self.test["wrong_low"] <= error)


def allowed_error(aim: Aim, cells: Sequence[Cell]) -> float:
    """The error that a problem's tests may have: of fixed confidence what its algorithms are given, else any."""
    given = [cell.settings.parameters["error"] for cell in cells if "error" in cell.settings.parameters]
    return max(given, default=1.0) if aim is Aim.FIXED_CONFIDENCE else 1.0


def measured(aim: Aim, cell: Cell, summary: Summary) -> Measured | None:
    """Measure of a cell; None if a test is asked for, and it recommends no arm.

    Args:
      aim: of the problem.
      cell: that was played.
      summary: of it, see `summarize_cell`.
    """
    if aim is Aim.REGRET:
        bound = cell.lower_bound(summary["grid"][-1:])
        least = None if bound is None else float(bound.values[-1])
        mean, low, high = (float(summary[name][-1]) for name in CURVES)
        finals = summary["finals"]
        return Measured(mean, low, high, finals, caution(finals), least, None if bound is None else bound.text, None)
    decided, outcomes = summary["decision"], summary["outcomes"]
    if decided is None or outcomes is None:
        return None
    test: StoppedTests = {
        "rounds": decided["rounds"],
        "undecided": decided["undecided"],
        "wrong": decided["wrong"],
        "wrong_low": decided["wrong_low"],
        "wrong_high": decided["wrong_high"],
        "error_bound": decided["error_bound"],
    }
    if aim is Aim.FIXED_CONFIDENCE:
        values = outcomes["rounds"]
        ends = decided["rounds"], decided["rounds_low"], decided["rounds_high"]
        return Measured(*ends, values, caution(values), decided["least"], decided["least_text"], test)
    ends = decided["wrong"], decided["wrong_low"], decided["wrong_high"]
    # The interval of a share is exact.
    return Measured(*ends, outcomes["wrong"], None, decided["least_wrong"], decided["least_wrong_text"], test)
