"""Simulations that are fitted to logged rounds: users whose contexts were logged, and rewards by a model of their means.

The fit has no noise: what is played here depends on the logged people in ways that no privacy claim covers.
"""

from __future__ import annotations

import numpy as np

from bandana.algorithms.environments.drawn import Drawn, DrawnContexts
from bandana.algorithms.environments.off_policy import Log
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_RIDGE = 1.0


def features_of(contexts: FloatArray, n_actions: int) -> FloatArray:
    r"""(n, n_actions, n_actions (p + 1)) features: a block (1, x) / sqrt(p + 1) for each action; norm at most 1.

    Args:
      contexts: (n, p) in [0, 1].
      n_actions: number of actions.
    """
    n, p = contexts.shape
    block = np.concatenate([np.ones((n, 1)), contexts], axis=1) / np.sqrt(p + 1)
    features = np.zeros((n, n_actions, n_actions, p + 1))
    features[:, np.arange(n_actions), np.arange(n_actions)] = block[:, None, :]
    return features.reshape(n, n_actions, n_actions * (p + 1))


class RewardModel:
    """A linear model of mean rewards for each action, fitted to logged rounds by ridge regression around the mean.

    Without contexts it is the mean reward of the action, weighted by 1 / propensity, and the mean of all rounds for an
    action that was never taken.

    Args:
      log: rounds to fit.
      reward_range: where predictions are moved to.
    """

    def __init__(self, log: Log, reward_range: Interval) -> None:
        self._range = reward_range
        self._offset = float(np.average(log.rewards, weights=1 / log.propensities))
        p = log.contexts.shape[1]
        self._weights = np.zeros((log.n_actions, p + 1))
        for action in range(log.n_actions):
            taken = log.actions == action
            rows = np.concatenate([np.ones((int(taken.sum()), 1)), log.contexts[taken]], axis=1)
            excess = log.rewards[taken] - self._offset
            if p == 0:
                self._weights[action, 0] = np.average(excess, weights=1 / log.propensities[taken]) if taken.any() else 0.0
            else:
                self._weights[action] = np.linalg.solve(rows.T @ rows + _RIDGE * np.eye(p + 1), rows.T @ excess)

    def predict(self, contexts: FloatArray) -> FloatArray:
        """(n, n_actions) mean rewards in contexts (n, p), inside the range."""
        rows = np.concatenate([np.ones((len(contexts), 1)), contexts], axis=1)
        return np.clip(self._offset + rows @ self._weights.T, self._range.low, self._range.high)


class _TwoPoint(Drawn):
    """Rewards at the ends of the range, with given means."""

    _rewards = "simulated rewards"

    def __init__(self, names: tuple[str, ...], reward_range: Interval, n_users: int, seed: np.random.SeedSequence) -> None:
        self.names, self.n_actions, self.n_users, self.reward_range = names, len(names), n_users, reward_range
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def _drawn(self, means: FloatArray, n_records: IntArray) -> FloatArray:
        span = self.reward_range
        high = self._generator.binomial(n_records, np.clip((means - span.low) / span.width, 0.0, 1.0))
        return np.asarray(span.low * n_records + span.width * high)


class SimulatedArms(_TwoPoint):
    """Arms with the means of a model.

    Attributes:
      means: (n_actions,)
    """

    def __init__(
        self, means: FloatArray, names: tuple[str, ...], reward_range: Interval, n_users: int, seed: np.random.SeedSequence
    ) -> None:
        super().__init__(names, reward_range, n_users, seed)
        self.means = means

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sums of the rewards of so many rounds."""
        return self._drawn(self.means[actions], n_records)


class SimulatedUsers(_TwoPoint, DrawnContexts):
    """Users drawn with replacement from logged ones, who bring a block of features for each action."""

    def __init__(
        self,
        features: FloatArray,
        means: FloatArray,
        names: tuple[str, ...],
        reward_range: Interval,
        n_users: int,
        seed: np.random.SeedSequence,
    ) -> None:
        super().__init__(names, reward_range, n_users, seed)
        self._features, self._means = features, means
        self.context_dimension = features.shape[2]
        self._shown = np.zeros(0, dtype=np.int64)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) features of a user who is drawn for each replicate."""
        self._shown = self._generator.integers(0, len(self._features), len(user))
        self._offered = self._features[self._shown]
        self._offered.setflags(write=False)
        return self._offered

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) means of those who were shown last."""
        return np.asarray(self._means[self._shown])

    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        return self._drawn(self._means[self._shown, actions], n_records)
