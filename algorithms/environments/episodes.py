"""Fixed data sets of episodes: where each user's every action would lead, and what it would earn."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.protocol import FloatArray, IntArray
from privacy_core import Interval


class EpisodeTable:
    """Row k holds the whole tree of user k: first state, and next state and reward of every step, state and action.

    Attributes:
      first_states: (n_users,)
      next_states: (n_users, horizon, n_states, n_actions)
      rewards: (n_users, horizon, n_states, n_actions)
      reward_range: where every reward lies.
    """

    def __init__(self, first_states: ArrayLike, next_states: ArrayLike, rewards: ArrayLike, reward_range: Interval) -> None:
        self.first_states: IntArray = np.array(first_states, dtype=np.int64)
        self.next_states: IntArray = np.array(next_states, dtype=np.int64)
        self.rewards: FloatArray = np.array(rewards, dtype=float)
        if self.next_states.ndim != 4 or self.rewards.shape != self.next_states.shape:
            raise ValueError(
                "next_states and rewards must both be of shape (n_users, horizon, n_states, n_actions), got "
                f"{self.next_states.shape} and {self.rewards.shape}"
            )
        self.n_users, self.episode_length, self.n_states, self.n_actions = self.next_states.shape
        self.reward_range = reward_range

    def clipped(self, reward_range: Interval) -> EpisodeTable:
        """The table with every reward moved into the range."""
        return EpisodeTable(self.first_states, self.next_states, reward_range.clip(self.rewards), reward_range)

    def first(self, user: IntArray) -> IntArray:
        """(n_reps,) first states."""
        return self.first_states[user]

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """(n_reps,) next states and (n_reps,) rewards."""
        place = user, step, states, actions
        return self.next_states[place], self.rewards[place]
