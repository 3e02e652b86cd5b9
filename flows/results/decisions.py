"""What tests for the best arm decided, over the replications of a cell: when they stopped, and how often wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bandana.algorithms.lower_bounds.best_arm import LeastErrors, LeastRounds, least_errors, least_rounds
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.audits.reporting.intervals import mean_interval, share_interval
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.privacy_core.arrays import FloatArray


def outcomes(cell: Cell, blocks: Sequence[Mapping[str, FloatArray]]) -> dict[str, FloatArray] | None:
    """What each replication of a test came to; None if it recommends nothing, or regret on its data is withheld.

    Returns:
      (n_reps,) each: `rounds` until the test stopped, the horizon where it did not; `stopped`, 1 where it did; `wrong`, 1
      where it stopped and recommended an arm that is not a best one.
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


def decisions(cell: Cell, found: Mapping[str, FloatArray] | None) -> dict[str, Any] | None:
    """Stopping times and errors of a cell.

    Args:
      cell: that was played.
      found: its `outcomes`; None: there are none.

    Returns:
      `rounds`, `rounds_low`, `rounds_high`: mean until the test stopped, with its 95 % interval, the horizon where it did
      not; `undecided`: share of tests that did not stop; `wrong`, `wrong_low`, `wrong_high`: share that stopped and
      recommended an arm that is not a best one; `error_bound`: what is proved of that share, or None; `least`: the least
      mean of `rounds` that any test with this claim and error bound has, `least_text` the theorem, or None;
      `least_wrong`, `least_wrong_text`: of a fixed budget the least share of errors of any test with this claim and budget.
    """
    if found is None:
        return None
    means, count = cell.environment.means, len(found["wrong"])
    wrong = share_interval(int(found["wrong"].sum()), count)
    told = {f"wrong{end}": float(value) for end, value in zip(_ENDS, wrong, strict=True)}
    told |= {f"rounds{end}": float(value) for end, value in zip(_ENDS, mean_interval(found["rounds"]), strict=True)}
    bound = _error_bound(cell, means)
    least = _least(cell, means, bound) if bool(found["stopped"].all()) else None
    least_wrong = _least_wrong(cell, means)
    return {
        **told,
        "undecided": float(1 - found["stopped"].mean()),
        "error_bound": bound,
        "least": None if least is None else least.rounds,
        "least_text": None if least is None else least.text,
        "least_wrong": None if least_wrong is None else least_wrong.share,
        "least_wrong_text": None if least_wrong is None else least_wrong.text,
    }


_ENDS = ("", "_low", "_high")


def _error_bound(cell: Cell, means: FloatArray) -> float | None:
    """What is proved of an algorithm's errors, on rewards that are drawn independently."""
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
