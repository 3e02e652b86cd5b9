"""Environments that a user wrote: each answer is looked at, so that a mistake is a line and no wrong number."""

from __future__ import annotations

from typing import Any

import numpy as np

from bandana.algorithms.environments.drawn import Drawn, action_names
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

_ROUNDING = 1e-9
_MEMBERS = {"n_actions": "a whole number of at least 2", "reward_range": "a bandana.privacy_core.Interval"}


class BrokenStream(ValueError):  # noqa: N818  (it says what the stream is)
    """An environment that answers wrongly; the message says to what, and how."""


class _Own(Drawn):
    """Common part of all environments of users."""

    _rewards = "rewards of the environment"

    def __init__(self, made: Any, n_users: int) -> None:
        for name, form in _MEMBERS.items():
            if not hasattr(made, name):
                raise BrokenStream(f"{type(made).__name__} has no {name}, {form}")
        if not isinstance(made.n_actions, int | np.integer) or made.n_actions < 2:
            raise BrokenStream(f"n_actions must be a whole number of at least 2, got {made.n_actions!r}")
        if not isinstance(made.reward_range, Interval):
            raise BrokenStream(f"reward_range must be a bandana.privacy_core.Interval, got {made.reward_range!r}")
        self._made, self.n_users = made, n_users
        self.n_actions, self.reward_range = int(made.n_actions), made.reward_range
        self.names = tuple(getattr(made, "names", action_names(self.n_actions)))
        if len(self.names) != self.n_actions or len(set(self.names)) != self.n_actions:
            raise BrokenStream(f"names must be {self.n_actions} different names, got {self.names!r}")

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) sums of the rewards of users user, ..., user + n_records - 1.

        Raises:
          BrokenStream: they are of another shape, not finite, or outside their range.
        """
        answers = _numbers("respond", self._made.respond(user, n_records, actions), (len(actions),))
        room = _ROUNDING * np.maximum(1.0, n_records)
        low, high = self.reward_range.low * n_records, self.reward_range.high * n_records
        if (wrong := np.flatnonzero((answers < low - room) | (answers > high + room))).size:
            rep = int(wrong[0])
            raise BrokenStream(
                f"respond answered {answers[rep]:.6g} for {n_records[rep]} rounds of action {actions[rep]}; each reward "
                f"must lie in [{self.reward_range.low:g}, {self.reward_range.high:g}]"
            )
        return np.clip(answers, low, high)


class OwnArms(_Own):
    """Finitely many arms.

    Attributes:
      means: (n_actions,) mean rewards; regret is counted with them.
    """

    def __init__(self, made: Any, n_users: int) -> None:
        super().__init__(made, n_users)
        if not hasattr(made, "means"):
            raise BrokenStream("it has no means, (n_actions,) mean rewards that regret is counted with")
        self.means = _numbers("means", made.means, (self.n_actions,))
        _check_inside("means", self.means, self.reward_range)


class OwnContexts(_Own):
    """Users who bring their actions as vectors.

    Attributes:
      context_dimension: of the vectors.
    """

    def __init__(self, made: Any, n_users: int) -> None:
        super().__init__(made, n_users)
        self.context_dimension = int(made.context_dimension)
        for name in ("contexts", "mean_rewards"):
            if not callable(getattr(made, name, None)):
                raise BrokenStream(f"it has no {name}; see bandana.algorithms.environments.own_streams")

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, n_actions, d) what the users are offered, norm at most 1; read-only.

        Raises:
          BrokenStream: they are of another shape, not finite, or too long.
        """
        shape = (len(user), self.n_actions, self.context_dimension)
        offered = _numbers("contexts", self._made.contexts(user), shape).copy()
        longest = float(np.linalg.norm(offered, axis=2).max())
        if longest > 1 + _ROUNDING:
            raise BrokenStream(f"contexts must be of norm at most 1, got {longest:.6g}")
        offered /= max(longest, 1.0)
        offered.setflags(write=False)
        return offered

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) mean rewards of what the users were offered; regret is counted with them."""
        means = _numbers("mean_rewards", self._made.mean_rewards(user, contexts), contexts.shape[:2])
        _check_inside("mean_rewards", means, self.reward_range)
        return means


def _check_inside(name: str, values: FloatArray, interval: Interval) -> None:
    if values.min() < interval.low - _ROUNDING or values.max() > interval.high + _ROUNDING:
        raise BrokenStream(
            f"{name} must lie in [{interval.low:g}, {interval.high:g}], got {values.min():.6g} to {values.max():.6g}"
        )


def _numbers(name: str, answer: Any, shape: tuple[int, ...]) -> FloatArray:
    try:
        array = np.asarray(answer, dtype=float)
    except (TypeError, ValueError) as error:
        raise BrokenStream(f"{name} must be numbers of shape {shape}, got {type(answer).__name__}") from error
    if array.shape != shape:
        raise BrokenStream(f"{name} must be of shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise BrokenStream(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def check_repeatable(first: Any, second: Any) -> None:
    """Plays two streams that were made with one seed by the same actions, alone and over phases.

    Raises:
      BrokenStream: they answer differently: one of them draws from something other than its seed.
    """
    n_reps = 4
    for start in range(min(8, first.n_users)):
        user, actions = np.full(n_reps, start), np.arange(n_reps) % first.n_actions
        if hasattr(first, "contexts") and not np.array_equal(*(stream.contexts(user) for stream in (first, second))):
            raise BrokenStream("two environments with the same seed offer other contexts: draw from the seed alone")
        left = first.n_users - start
        longest = 1 if hasattr(first, "contexts") else min(3, left)
        for length in dict.fromkeys((1, longest)):
            arguments = (user, np.full(n_reps, length), actions)
            if not np.array_equal(*(stream.respond(*arguments) for stream in (first, second))):
                raise BrokenStream("two environments with the same seed answer differently: draw from the seed alone")
            if hasattr(first, "contexts"):
                break
