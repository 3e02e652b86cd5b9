"""Bandits whose mean reward is linear in known features of the arms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.answers_numba import bernoulli_answers
from bandana.algorithms.environments.drawn import Drawn, action_names
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_BITS = 16


class LinearArms(Drawn):
    r"""Arms a of norm at most 1, mean reward middle + (width / 2) <theta, a>: the affine map of [-1, 1] to the reward range.

    The rewards of an arm are independent and lie in the range. `bernoulli` ones are one of its ends. `uniform` ones are the
    mean plus noise that is uniform on 2^16 equally spaced points of the largest symmetric interval that fits for all arms.
    The sum of n rewards is drawn at once and with its exact law: one binomial, or, as each bit of a uniform point is an
    independent coin, one binomial a bit.

    Attributes: those of `Drawn`, and
      features: (n_actions, d).
      theta: (d,)
      means: (n_actions,), in units of reward.
    """

    def __init__(
        self,
        features: ArrayLike,
        theta: ArrayLike,
        n_users: int,
        seed: np.random.SeedSequence,
        *,
        rewards: str = "bernoulli",
        reward_range: Interval | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        arms, direction = np.asarray(features, dtype=float), np.asarray(theta, dtype=float)
        if arms.ndim != 2 or len(arms) < 2:
            raise ValueError(f"features must be of shape (n_actions, d), n_actions >= 2, got {arms.shape}")
        if direction.shape != arms.shape[1:]:
            raise ValueError(f"theta must be of shape ({arms.shape[1]},), as the features, got {direction.shape}")
        for name, array in (("features", arms), ("theta", direction)):
            if not np.isfinite(array).all():
                place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
                raise ValueError(f"{name} must be finite, got {float(array[place])!r} at index {place}")
        norms = np.linalg.norm(arms, axis=1)
        if norms.max() > 1 + 1e-9:
            arm = int(np.argmax(norms))
            raise ValueError(f"features must have norm at most 1; arm {arm} has {norms[arm]:.6g}: scale them down")
        values = arms @ direction
        if np.abs(values).max() > 1 + 1e-9:
            arm = int(np.argmax(np.abs(values)))
            raise ValueError(f"<theta, a> must lie in [-1, 1]; arm {arm} has {values[arm]:.6g}: scale theta down")
        if rewards not in ("bernoulli", "uniform"):
            raise ValueError(f"rewards must be 'bernoulli' or 'uniform', got {rewards!r}")
        if n_users < 1:
            raise ValueError(f"n_users must be at least 1, got {n_users!r}")
        self.features: FloatArray = arms
        self.theta: FloatArray = direction
        self.reward_range = reward_range or Interval(0.0, 1.0)
        self.n_users = n_users
        self.n_actions = len(arms)
        self.names = names or action_names(self.n_actions, "arm")
        values = np.clip(values, -1.0, 1.0)
        self._chances: FloatArray = (1 + values) / 2
        self.means: FloatArray = self.reward_range.low + self.reward_range.width * self._chances
        self._spread = self.reward_range.width * (1 - float(np.abs(values).max())) / 2
        self._is_uniform = rewards == "uniform"
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sum of the rewards of `n_records` rounds."""
        if self._is_uniform:
            if n_records.max() > 1:
                total = np.zeros(len(actions))
                for bit in range(_BITS):
                    total += 2.0**bit * self._generator.binomial(n_records, 0.5)
            else:
                total = self._generator.integers(0, 2**_BITS, len(actions)) * n_records.astype(float)
            centered = 2 * total / (2**_BITS - 1) - n_records
            return np.asarray(self.means.take(actions) * n_records + self._spread * centered)
        high = np.empty(len(actions))
        if len(actions) == 1 and n_records[0] > 1:  # the same draw: setting up arrays takes NumPy seven times as long
            high[0] = self._generator.binomial(n_records[0], self._chances[actions[0]])
        elif n_records.max() > 1:
            high[:] = self._generator.binomial(n_records, self._chances.take(actions))
        else:
            bernoulli_answers(self._generator.random(len(actions)), self._chances, n_records, actions, high)
        high *= self.reward_range.width
        high += self.reward_range.low * n_records
        return high


def random_arms(n_arms: int, dimension: int, seed: np.random.SeedSequence) -> FloatArray:
    """(n_arms, dimension) directions that are uniform on the unit sphere."""
    drawn = np.random.Generator(np.random.SFC64(seed)).standard_normal((n_arms, dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))


def fan_arms(n_arms: int) -> FloatArray:
    """(n_arms, 2) unit vectors in the plane, evenly spaced over half a turn; the optimal design on them is uniform."""
    turn = np.pi * np.arange(n_arms) / n_arms
    return np.asarray(np.stack([np.cos(turn), np.sin(turn)], axis=1))
