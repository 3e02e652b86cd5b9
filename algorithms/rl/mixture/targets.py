"""Targets of a value-targeted regression: the steps that teach something, and how large their values can be.

Rewards of a linear-mixture MDP are public, so that it is known beforehand what can still be earned after a step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.mixture.value_targets_numba import reach

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Targets:
    """The regressions of an algorithm, one a step that teaches something, and the range of its values.

    Attributes:
      steps: (n_blocks,) the step of each, from 0.
      center: (n_blocks,) c, what is taken from the values before they are regressed.
      norm_bound: (n_blocks,) bound on |x|.
      value_bound: (n_blocks,) bound on |y|.
      spread: (n_blocks,) half the range of the values: y is that much sub-Gaussian around its mean.
      low: (horizon + 1,) least value of each step, and 0 after the last.
      high: (horizon + 1,) largest value.
    """

    steps: tuple[int, ...]
    center: tuple[float, ...]
    norm_bound: tuple[float, ...]
    value_bound: tuple[float, ...]
    spread: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def n_blocks(self) -> int:
        """Number of regressions."""
        return len(self.steps)

    @property
    def bounds(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """(n_blocks,) bounds on |x| and on |y|."""
        return self.norm_bound, self.value_bound

    def block_of_step(self, horizon: int) -> IntArray:
        """(horizon,) the block of each step, -1 for none."""
        blocks = np.full(horizon, -1, dtype=np.int64)
        blocks[list(self.steps)] = np.arange(self.n_blocks)
        return blocks


def printed_targets(model: MixtureModel) -> Targets:
    """The targets of the algorithm box: all values in [0, H], all steps but the last, |x|, y <= H, nothing is centered.

    Raises:
      ValueError: there is one step only, and nothing to learn.
    """
    length = model.horizon
    if length < 2:
        raise ValueError(
            "horizon must be at least 2: in episodes of one step the known rewards decide, and nothing is learned"
        )
    n, top = length - 1, float(length)
    same, zeros = (top,) * n, (0.0,) * n
    return Targets(tuple(range(n)), zeros, same, same, (top / 2,) * n, (0.0,) * (length + 1), (*(top,) * length, 0.0))


def centered_targets(model: MixtureModel) -> Targets:
    r"""Values between what must and what can still be earned, measured from the middle.

    V_(h+1) lies in [low, high], the sums of the least and of the largest rewards of the steps after h, which is H - h at
    most and much less where rewards are rare. As transitions are distributions, <phi_1(s, a), w_h> = 1, so that regressing V
    - c on phi_(V - c) is as good as V on phi_V, for any c: with c in the middle |y| <= (high - low)/2, and |x| is at most
    that times `reach`, which is between 1 and 2 of the largest |phi_v|, v in [0, 1], and exactly computed from the features.
    A step after which all is known has no regression.

    Raises:
      ValueError: no step teaches anything.
    """
    rewards = np.asarray(model.rewards)
    low, high = (_to_go(rewards.min(axis=(1, 2))), _to_go(rewards.max(axis=(1, 2))))
    steps = np.flatnonzero(high[1:] - low[1:] > _ROUNDING)
    if not len(steps):
        raise ValueError(
            "rewards after the first step are the same in all states and for all actions (or there is one step only): where "
            "an action leads is worth nothing, and nothing is learned"
        )
    spread, center = (high - low)[steps + 1] / 2, (high + low)[steps + 1] / 2
    norm = spread * reach(np.asarray(model.features))
    columns = (center, norm, spread, spread, low, high)
    return Targets(tuple(int(h) for h in steps), *(tuple(float(v) for v in column) for column in columns))


def _to_go(rewards: FloatArray) -> FloatArray:
    """(horizon + 1,) sums of the rewards of this step and all later ones."""
    return np.append(np.cumsum(rewards[::-1])[::-1], 0.0)
