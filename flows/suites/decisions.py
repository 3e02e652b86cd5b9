"""What tests for the best arm decided, over the replications of a cell: when they stopped, and how often wrongly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bandana.algorithms.lower_bounds.best_arm import least_rounds
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.audits.reporting.intervals import mean_interval, share_interval
from bandana.flows.spec.plan import Cell
from bandana.flows.spec.roles import Role
from bandana.privacy_core.arrays import FloatArray


def decisions(cell: Cell, blocks: Sequence[Mapping[str, FloatArray]]) -> dict[str, Any] | None:
    """Stopping times and errors of a cell; None if its algorithm recommends nothing, or regret on its data is withheld.

    Args:
      cell: that was played.
      blocks: the arrays of its blocks.

    Returns:
      `rounds`, `rounds_low`, `rounds_high`: mean until the test stopped, with its 95 % interval, the horizon where it did
      not; `undecided`: share of tests that did not stop; `wrong`, `wrong_low`, `wrong_high`: share that stopped and
      recommended an arm that is not a best one; `error_bound`: what is proved of that share, or None; `least`: the least
      mean of `rounds` that any test with this claim and error bound has, `least_text` the theorem, or None.
    """
    environment = cell.environment
    if not all("stopped" in arrays for arrays in blocks) or not environment.shows("regret"):
        return None
    stopped, arm = (np.concatenate([arrays[name] for arrays in blocks]) for name in ("stopped", "recommended"))
    means, horizon = environment.means, cell.spec.horizon
    found = mean_interval(np.where(stopped > 0, stopped, horizon))
    wrong = share_interval(int(((stopped > 0) & (means[arm] < means.max())).sum()), len(arm))
    told = {f"wrong{end}": float(value) for end, value in zip(_ENDS, wrong, strict=True)}
    told |= {f"rounds{end}": float(value) for end, value in zip(_ENDS, found, strict=True)}
    bound = _error_bound(cell, means)
    least = _least(cell, means, bound) if bool((stopped > 0).all()) else None
    return {
        **told,
        "undecided": float((stopped == 0).mean()),
        "error_bound": bound,
        "least": None if least is None else least[0],
        "least_text": None if least is None else least[1],
    }


_ENDS = ("", "_low", "_high")


def _error_bound(cell: Cell, means: FloatArray) -> float | None:
    """What is proved of an algorithm's errors, on rewards that are drawn independently."""
    if cell.role is not Role.ALGORITHM or not cell.environment.is_drawn or not cell.environment.shows("means"):
        return None
    bound: float | None = cell.algorithm().error_bound(means)  # type: ignore[attr-defined]
    return bound


def _least(cell: Cell, means: FloatArray, bound: float | None) -> tuple[float, str] | None:
    if bound is None or "error" not in cell.settings.parameters or not cell.environment.is_bernoulli:
        return None
    privacy = Privacy.of(cell.claim() if cell.is_private else None)
    return least_rounds(means, cell.environment.reward_range, privacy, bound)
