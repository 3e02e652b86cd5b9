"""Decisions of tests for the best arm, over the replications of a cell: when they stopped, and how often wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict

import numpy as np

from bandana.algorithms.lower_bounds.best_arm import LeastErrors, LeastRounds, least_errors, least_rounds
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.audits.documents.benchmark import Decision
from bandana.audits.reporting.intervals import mean_interval, share_interval
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.privacy_core.arrays import FloatArray


class Outcomes(TypedDict):
    """End of each replication of a test, (n_reps,) each.

    Attributes:
      rounds: until the test stopped, the horizon where it did not.
      stopped: 1 where it did.
      wrong: 1 where it stopped and recommended an arm that is not a best one.
    """

    rounds: FloatArray
    stopped: FloatArray
    wrong: FloatArray


def outcomes(cell: Cell, blocks: Sequence[Mapping[str, FloatArray]]) -> Outcomes | None:
    """Outcomes of a test; None if it recommends nothing, or regret on its data is withheld.

    Args:
      cell: that was played.
      blocks: the arrays of its blocks.
    """
    environment = cell.environment
    if not all("stopped" in arrays for arrays in blocks) or not environment.shows("regret"):
        return None
    stopped, arm = (np.concatenate([arrays[name] for arrays in blocks]) for name in ("stopped", "recommended"))
    means = environment.means
    return {
        "rounds": np.where(stopped > 0, stopped, cell.spec.horizon).astype(float),
        "stopped": (stopped > 0).astype(float),
        "wrong": ((stopped > 0) & (means[arm] < means.max())).astype(float),
    }


def decisions(cell: Cell, ends: Outcomes | None) -> Decision | None:
    """Stopping times and errors of a cell.

    Args:
      cell: that was played.
      ends: its `outcomes`; None: there are none.
    """
    if ends is None:
        return None
    means, count = cell.environment.means, len(ends["wrong"])
    wrong, wrong_low, wrong_high = share_interval(int(ends["wrong"].sum()), count)
    rounds, rounds_low, rounds_high = (float(value) for value in mean_interval(ends["rounds"]))
    bound = _error_bound(cell, means)
    least = _least(cell, means, bound) if bool(ends["stopped"].all()) else None
    least_wrong = _least_wrong(cell, means)
    return {
        "wrong": wrong,
        "wrong_low": wrong_low,
        "wrong_high": wrong_high,
        "rounds": rounds,
        "rounds_low": rounds_low,
        "rounds_high": rounds_high,
        "undecided": float(1 - ends["stopped"].mean()),
        "error_bound": bound,
        "least": None if least is None else least.rounds,
        "least_text": None if least is None else least.text,
        "least_wrong": None if least_wrong is None else least_wrong.share,
        "least_wrong_text": None if least_wrong is None else least_wrong.text,
    }


def _error_bound(cell: Cell, means: FloatArray) -> float | None:
    """Proved bound on an algorithm's errors, on rewards that are drawn independently."""
    if cell.role is not Role.ALGORITHM or not cell.environment.is_drawn or not cell.environment.shows("means"):
        return None
    proved = getattr(cell.algorithm(), "error_bound", None)  # your own algorithm may have none
    return None if proved is None else proved(means)


def _least(cell: Cell, means: FloatArray, bound: float | None) -> LeastRounds | None:
    if bound is None or "error" not in cell.settings.parameters or not cell.environment.is_bernoulli:
        return None
    privacy = Privacy.of(cell.claim() if cell.is_private else None)
    return least_rounds(means, cell.environment.reward_range, privacy, bound)


def _least_wrong(cell: Cell, means: FloatArray) -> LeastErrors | None:
    """For arms in random order, as blocks play them: see `with_coins`."""
    environment = cell.environment
    if cell.role is not Role.ALGORITHM or "budget" not in cell.settings.parameters:
        return None
    if not environment.is_bernoulli or not environment.is_drawn or not environment.shows("means"):
        return None
    privacy = Privacy.of(cell.claim() if cell.is_private else None)
    budget = cell.settings.parameters["budget"] or cell.spec.horizon
    return least_errors(means, environment.reward_range, privacy, budget)
