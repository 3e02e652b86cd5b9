"""Bandit environments that draw their rewards."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.answers_numba import bernoulli_answers
from bandana.algorithms.environments.drawn import Drawn, action_names
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval


class BernoulliArms(Drawn):
    """Each round answers 1 with its arm's probability, else 0; a phase is one binomial draw.

    Attributes: those of `Drawn`, and
      means: (n_actions,) success probabilities.
    """

    reward_range = Interval(0.0, 1.0)
    _rewards = "Bernoulli rewards"

    def __init__(
        self, means: ArrayLike, n_users: int, seed: np.random.SeedSequence, names: tuple[str, ...] | None = None
    ) -> None:
        array = np.asarray(means, dtype=float)
        if array.ndim != 1 or len(array) < 2:
            raise ValueError(f"means must list at least 2 arms, got shape {array.shape}")
        bad = ~((array >= 0) & (array <= 1))
        if bad.any():
            arm = int(np.argmax(bad))
            raise ValueError(f"means[{arm}] is {array[arm]!r}; a success probability lies in [0, 1]")
        if n_users < 1:
            raise ValueError(f"n_users must be at least 1, got {n_users!r}")
        self.means: FloatArray = array
        self.n_users = n_users
        self.n_actions = len(array)
        self.names = names or action_names(self.n_actions, "arm")
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) number of successes in `n_records` rounds."""
        if n_records.max() > 1:
            return self._generator.binomial(n_records, self.means.take(actions)).astype(float)
        answers = np.empty(len(actions))
        bernoulli_answers(self._generator.random(len(actions)), self.means, n_records, actions, answers)
        return answers
