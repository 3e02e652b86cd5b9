"""Arms whose rewards are real numbers, and arms whose means change with time."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtr

from bandana.algorithms.environments.drawn import Drawn, action_names
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least, positive


class OneByOne(Drawn, ABC):
    """Arms whose rewards are drawn one by one, and summed over a phase.

    Args:
      n_actions: number of arms.
      n_users: rounds that can be asked for.
      seed: of the rewards.
    """

    def __init__(self, n_actions: int, n_users: int, seed: np.random.SeedSequence) -> None:
        if n_actions < 2:
            raise ValueError(f"means must list at least 2 arms, got {n_actions}")
        self.n_actions, self.n_users = n_actions, at_least("n_users", n_users, 1)
        self.names = action_names(n_actions, "arm")
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sums of the rewards of users user, ..., user + n_records - 1."""
        rows = np.repeat(np.arange(len(actions)), n_records)
        place = np.arange(len(rows)) - np.repeat(np.cumsum(n_records) - n_records, n_records)
        rewards = self.drawn(user[rows] + place, actions[rows])
        return np.asarray(np.bincount(rows, rewards, minlength=len(actions)), dtype=float)

    @abstractmethod
    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""


class GaussianArms(OneByOne):
    """Each round answers its arm's center plus Gaussian noise, moved into the declared range.

    Attributes:
      means: (n_actions,) means of the rewards that are seen, after they were moved into the range.
      reward_range: the declared range.

    Args: `n_users` and `seed` of `OneByOne`, and
      centers: (n_actions,) centers of the normal laws.
      deviation: standard deviation of the noise.
      reward_range: where rewards are moved to.
    """

    _rewards = "Gaussian rewards, once they were moved into their range,"

    def __init__(
        self, centers: ArrayLike, deviation: float, reward_range: Interval, n_users: int, seed: np.random.SeedSequence
    ) -> None:
        self._centers = np.asarray(centers, dtype=float)
        super().__init__(len(self._centers), n_users, seed)
        self._deviation, self.reward_range = positive("deviation", deviation), reward_range
        self.means: FloatArray = clipped_mean(self._centers, deviation, reward_range)

    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""
        noise = self._deviation * self._generator.standard_normal(len(actions))
        return np.clip(self._centers[actions] + noise, self.reward_range.low, self.reward_range.high)


def clipped_mean(centers: FloatArray, deviation: float, interval: Interval) -> FloatArray:
    """(n,) means of normal laws whose values are moved into an interval."""
    low, high = ((end - centers) / deviation for end in (interval.low, interval.high))
    inside = ndtr(high) - ndtr(low)
    density = np.exp([-(low**2) / 2, -(high**2) / 2]) / np.sqrt(2 * np.pi)
    middle = centers * inside + deviation * (density[0] - density[1])
    return np.asarray(middle + interval.low * ndtr(low) + interval.high * ndtr(-high))


class BetaArms(OneByOne):
    """Each round answers a number in [0, 1] from a beta law with the arm's mean.

    Attributes:
      means: (n_actions,), strictly between 0 and 1.

    Args: `n_users` and `seed` of `OneByOne`, and
      means: of the arms.
      concentration: sum of the law's two parameters, above 0; the variance is mean (1 - mean) / (concentration + 1).
    """

    reward_range = Interval(0.0, 1.0)
    _rewards = "beta rewards"

    def __init__(self, means: ArrayLike, concentration: float, n_users: int, seed: np.random.SeedSequence) -> None:
        self.means: FloatArray = _inside(means)
        super().__init__(len(self.means), n_users, seed)
        self._concentration = positive("concentration", concentration)

    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""
        mean = self.means[actions]
        return np.asarray(self._generator.beta(self._concentration * mean, self._concentration * (1 - mean)))


class ParetoArms(OneByOne):
    r"""Each round answers a Pareto number, moved down to 1 if it is above: most are small, a few are very large.

    A reward is min(X, 1) with P(X > x) = (s / x)^a for x >= s, s the arm's scale and a the tail. Without the 1, moments of
    order a and above are infinite. The mean, which fixes s, is the integral of P(X > x) from 0 to 1,

        s + s^a \int_s^1 x^-a dx = s + (s - s^a) / (a - 1).

    Attributes:
      means: (n_actions,) of the rewards that are seen, strictly between 0 and 1.

    Args: `n_users` and `seed` of `OneByOne`, and
      means: of the arms.
      tail: above 1; the smaller, the heavier.
    """

    reward_range = Interval(0.0, 1.0)
    _rewards = "Pareto rewards, once they were moved into their range,"

    def __init__(self, means: ArrayLike, tail: float, n_users: int, seed: np.random.SeedSequence) -> None:
        self.means: FloatArray = _inside(means)
        super().__init__(len(self.means), n_users, seed)
        if not 1 < tail < np.inf:
            raise ValueError(f"tail must be a finite number above 1, got {tail!r}")
        scales = [brentq(lambda s, m=mean: s + (s - s**tail) / (tail - 1) - m, 0.0, 1.0, xtol=1e-15) for mean in self.means]
        self._scales, self._tail = np.array(scales), tail

    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""
        uniform = 1.0 - self._generator.random(len(actions))  # above 0
        return np.asarray(np.minimum(self._scales[actions] * uniform ** (-1 / self._tail), 1.0))


def _inside(means: ArrayLike) -> FloatArray:
    array = np.asarray(means, dtype=float)
    if not ((array > 0) & (array < 1)).all():
        raise ValueError(f"means of these arms must lie strictly between 0 and 1, got {array.tolist()}")
    return array


class DriftingArms(OneByOne):
    """Each round answers 1 with its arm's probability at that time, else 0.

    Attributes:
      path: (n_users, n_actions) success probabilities, round by round.
      means: (n_actions,) their averages over the rounds.

    Args:
      path: success probabilities, round by round.
      seed: of the rewards.
    """

    reward_range = Interval(0.0, 1.0)
    _rewards = "Bernoulli rewards"

    def __init__(self, path: FloatArray, seed: np.random.SeedSequence) -> None:
        super().__init__(path.shape[1], len(path), seed)
        self.path = path
        self.means: FloatArray = path.mean(axis=0)

    def drawn(self, users: IntArray, actions: IntArray) -> FloatArray:
        """(n,) one reward of each user."""
        return (self._generator.random(len(actions)) < self.path[users, actions]).astype(float)


def path_of(points: ArrayLike, n_users: int, *, is_smooth: bool) -> FloatArray:
    """(n_users, n_actions) means that pass through the points, evenly spaced in time: on straight lines, or in steps.

    Args:
      points: (n_points, n_actions) means.
      n_users: rounds.
      is_smooth: whether means move on straight lines from the first point to the last, or stay at each point for an equal
        share of the rounds.
    """
    values = np.asarray(points, dtype=float)
    if not is_smooth:
        return values[np.arange(n_users) * len(values) // n_users]
    times = np.linspace(0, len(values) - 1, n_users)
    return np.stack([np.interp(times, np.arange(len(values)), arm) for arm in values.T], axis=1)
