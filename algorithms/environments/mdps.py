"""Finite Markov decision processes whose users live through one episode each."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.environments.drawn import Drawn, action_names
from bandana.algorithms.mdp.models import checked_rewards, checked_transitions
from bandana.algorithms.mdp.planning import Plan, plan
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval
from bandana.privacy_core.checks import at_least


class FiniteMDP(Drawn):
    """Episodes drawn from known transitions; a reward is 0 or 1 with the mean as probability, or the mean itself.

    Attributes:
      transitions: (horizon, n_states, n_actions, n_states)
      mean_rewards: (horizon, n_states, n_actions), in [0, 1]
      n_users: episodes that can be asked for.
      episode_length: H.
      reward_range: [0, 1].

    Args:
      start: (n_states,) distribution of the first state; None: always state 0.
      law: of rewards, `bernoulli` or `exact`.
    """

    reward_range = Interval(0.0, 1.0)

    def __init__(
        self,
        transitions: ArrayLike,
        rewards: ArrayLike,
        n_users: int,
        seed: np.random.SeedSequence,
        start: ArrayLike | None = None,
        law: str = "exact",
    ) -> None:
        self.transitions = checked_transitions(transitions)
        self.episode_length, self.n_states, self.n_actions = self.transitions.shape[:3]
        self.mean_rewards = checked_rewards(rewards, self.transitions.shape[1:3])
        if len(self.mean_rewards) != self.episode_length:
            raise ValueError(
                f"rewards must be of {self.episode_length} steps, as transitions are, got {len(self.mean_rewards)}"
            )
        if law not in ("bernoulli", "exact"):
            raise ValueError(f"law must be 'bernoulli' or 'exact', got {law!r}")
        first = checked_start(start, self.n_states)
        self.n_users = at_least("n_users", n_users, 1)
        self.names = action_names(self.n_actions)
        self._is_exact = law == "exact"
        self._first = np.cumsum(first)
        self._cumulative = np.cumsum(self.transitions, axis=3)
        self._generator = np.random.Generator(np.random.SFC64(seed))

    @cached_property
    def best(self) -> Plan:
        """Values of the best policy: regret is counted with its gaps."""
        return plan(self.transitions, self.mean_rewards)

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states, drawn."""
        drawn = np.searchsorted(self._first, self._generator.random(len(user)), side="right")
        return np.asarray(np.minimum(drawn, self.n_states - 1))

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards, drawn."""
        bounds = self._cumulative[step, states, actions]
        after = (self._generator.random(len(states))[:, None] >= bounds).sum(axis=1)
        means = self.mean_rewards[step, states, actions]
        rewards = means if self._is_exact else (self._generator.random(len(states)) < means).astype(float)
        return np.minimum(after, self.n_states - 1), rewards


def checked_start(start: ArrayLike | None, n_states: int) -> FloatArray:
    """(n_states,) the distribution of first states; None: always state 0.

    Raises:
      ValueError: it is no distribution over the states.
    """
    first = np.eye(1, n_states)[0] if start is None else np.array(start, dtype=float)
    if first.shape != (n_states,) or not (first >= 0).all() or not abs(first.sum() - 1) <= 1e-9:
        raise ValueError(f"start must be a distribution over {n_states} states, got {first.tolist()}")
    return first
