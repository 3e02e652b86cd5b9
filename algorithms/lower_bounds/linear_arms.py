"""Lower bounds for arms with known features: those of unrelated arms, which are linear arms too."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bandana.algorithms.lower_bounds import finite_arms
from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy
from bandana.privacy_core import Interval


def minimax_bound(grid: ArrayLike, dimension: int, reward_range: Interval, privacy: Privacy) -> LowerBound | None:
    """On the worst linear problem in d dimensions, for all algorithms of the class, at each horizon.

    Arms whose features are the d unit vectors have any means in the range, so that `finite_arms.minimax_bound` with K = d
    holds. On given features nothing is said: they may be easier, and their own asymptotic bound (Graves and Lai 1997) is an
    optimization over them that is not computed here. Azize and Basu (2022) have d / epsilon for rewards of normal noise on
    [-1, 1]^d.

    Args:
      grid: (n_grid,) numbers of rounds.
      dimension: d.
      reward_range: of rewards.
      privacy: of the class of algorithms; replace one reward.

    Returns:
      None in one dimension, where there is one arm.
    """
    if dimension < 2:
        return None
    bound = finite_arms.minimax_bound(grid, dimension, reward_range, privacy)
    words = f"the problems with d = {dimension} arms, the unit vectors, in as many dimensions"
    return bound._replace(text=bound.text.replace(f"the problems with K = {dimension} arms", f"{words} (K = d)"))
