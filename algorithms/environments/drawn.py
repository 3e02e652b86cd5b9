"""Common part of environments that draw their rewards."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval


class Drawn:
    """An environment whose rewards are drawn in a range of its own.

    Attributes:
      n_users: rounds that can be asked for.
      n_actions: number of arms, or of actions that each user brings.
      reward_range: where every reward lies.
      names: what the actions are called.
    """

    reward_range: Interval
    _rewards: str = "rewards"

    def clipped(self, reward_range: Interval) -> Self:
        """The same environment, whose rewards must lie in the range.

        Raises:
          ValueError: they do not; clipping would move their means, and a sum that is drawn at once has no single rewards.
        """
        own = self.reward_range
        if reward_range.low > own.low or reward_range.high < own.high:
            raise ValueError(f"{self._rewards} lie in {own}; declare a reward range that holds it, not {reward_range}")
        return self


class DrawnContexts(Drawn):
    """An environment that draws contexts of dimension `context_dimension` too; it answers to those that it offered last."""

    _offered: FloatArray | None = None

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) rewards to the actions among the contexts last offered; 0 where no record is asked for.

        Raises:
          ValueError: more than one record at once, or contexts were not asked for.
        """
        if self._offered is None or len(self._offered) != len(actions) or n_records.max() > 1:
            raise ValueError("each user must be asked alone, after the contexts of that user")
        return self._answers(user, n_records, actions)

    @abstractmethod
    def _answers(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """Rewards of `respond`."""


def action_names(n_actions: int, word: str = "action") -> tuple[str, ...]:
    """Names of actions that have none: `action 0`, `action 1`, and so on."""
    return tuple(f"{word} {a}" for a in range(n_actions))
