"""The adapter to a private part of Opacus: the interval of which its PRV accountant publishes the upper end."""

from __future__ import annotations

from collections.abc import Sequence


def prv_interval(
    history: Sequence[tuple[float, float, int]], delta: float, eps_error: float, delta_error: float
) -> tuple[float, float]:
    """Lower and upper end of epsilon at `delta`, in nats, by Opacus's PRV accountant.

    Args:
      history: (noise multiplier, sampling rate, number of steps) of each group of steps.
      delta: in (0, 1).
      eps_error: error of epsilon that the grid is made for.
      delta_error: error of delta that the grid is made for.

    Raises:
      ValueError: from Opacus, whose grid cannot answer; so is RuntimeError.
    """
    from opacus.accountants.prv import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = list(history)
    discrete = accountant._get_dprv(eps_error=eps_error, delta_error=delta_error)
    low, _, high = discrete.compute_epsilon(delta, delta_error, eps_error)
    return float(low), float(high)
