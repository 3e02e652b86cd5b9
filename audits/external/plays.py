"""A plain function as what plays: rewards and a seed go in, actions come out, and what is wrong with them is told."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Interval

Play = Callable[..., Any]


class BrokenFunction(ValueError):  # noqa: N818  (it says what the function is)
    """A function whose answers cannot be audited; the message says why, and what to change."""


class RewardStream:
    """Rewards that are read as they are earned: each round once, the played arm only.

    Attributes:
      n_reps: replicates, each of which plays on its own.
      n_rounds: rounds.
      n_arms: arms.
    """

    def __init__(self, rewards: FloatArray) -> None:
        self._rewards = rewards
        self.n_reps, self.n_rounds, self.n_arms = rewards.shape
        self.actions = np.full((self.n_reps, self.n_rounds), -1, dtype=np.int64)
        self._round = 0

    def pull(self, actions: Any) -> FloatArray:
        """(n_reps,) rewards of the given arms in the next round.

        Raises:
          BrokenFunction: the rounds are over, or the actions are no arms, one a replicate.
        """
        if self._round == self.n_rounds:
            raise BrokenFunction(f"it pulls after the last of {self.n_rounds} rounds")
        self.actions[:, self._round] = _checked_actions(np.asarray(actions), (self.n_reps,), self.n_arms, "pull takes")
        earned = self._rewards[np.arange(self.n_reps), self._round, self.actions[:, self._round]]
        self._round += 1
        return np.asarray(earned)


def _checked_actions(actions: np.ndarray, shape: tuple[int, ...], n_arms: int, who: str) -> IntArray:
    if actions.shape != shape or not np.issubdtype(actions.dtype, np.integer):
        raise BrokenFunction(f"{who} whole numbers of shape {shape}, got shape {actions.shape} of {actions.dtype}")
    if actions.size and (actions.min() < 0 or actions.max() >= n_arms):
        raise BrokenFunction(f"{who} arms in [0, {n_arms}), got {int(actions.min())} to {int(actions.max())}")
    return actions.astype(np.int64)


def takes_stream(play: Play) -> bool:
    """Whether the function's first parameter is called `stream`: then it pulls, and need not return its actions."""
    return next(iter(inspect.signature(play).parameters), "") == "stream"


def play_rows(play: Play, table: Table, n_reps: int, seed: int) -> IntArray:
    """(n_reps, n_rounds) actions of independent replicates on one table.

    Raises:
      BrokenFunction: what comes back are no actions, one a replicate and round.
    """
    return play_rewards(play, np.broadcast_to(table.rewards, (n_reps, *table.rewards.shape)), seed)  # read-only


def play_rewards(play: Play, rewards: FloatArray, seed: int) -> IntArray:
    """(n_reps, n_rounds) actions of independent replicates, each on rewards of its own, (n_reps, n_rounds, n_arms).

    Raises:
      BrokenFunction: what comes back are no actions, one a replicate and round.
    """
    n_reps, n_rounds, n_arms = rewards.shape
    actions = played(play, rewards, seed)
    if not takes_stream(play):
        return _checked_actions(actions, (n_reps, n_rounds), n_arms, "it must return")
    if (actions[:, -1] < 0).any():
        raise BrokenFunction(f"it must pull once in each of {n_rounds} rounds, got {int((actions[0] >= 0).sum())}")
    return actions


def played(play: Play, rewards: FloatArray, seed: int) -> IntArray:
    """What the function returns, or the arms that it pulls, unchecked."""
    if not takes_stream(play):
        return np.asarray(play(rewards, seed))
    stream = RewardStream(rewards)
    play(stream, seed)
    return stream.actions


def even_table(rounds: int, n_arms: int, reward_range: Interval) -> RewardTable:
    """Every reward at the lower end: all arms are equal, so that a single reward can tip a decision."""
    return RewardTable(np.full((rounds, n_arms), reward_range.low), reward_range)


def check(play: Play, table: RewardTable, seed: int, n_reps: int = 64) -> None:
    """Refuses a function whose replays would not be what the bounds take them for.

    Raises:
      BrokenFunction: wrong shape, another answer to the same seed, the same answer to every seed, or one draw of noise for
        all replicates.
    """
    seeds = np.random.SeedSequence(seed, spawn_key=(2,)).generate_state(8, np.uint32).tolist()
    plays = [play_rows(play, table, n_reps, number) for number in seeds]
    if not np.array_equal(play_rows(play, table, n_reps, seeds[0]), plays[0]):
        raise BrokenFunction(
            f"two calls with the seed {seeds[0]} return different actions: draw all randomness from the seed, as in "
            "numpy.random.default_rng(seed), and keep nothing between calls; else nobody can repeat the audit"
        )
    if all(np.array_equal(played, plays[0]) for played in plays):
        if all((played == played[0]).all() for played in plays):
            return  # it draws nothing here: what depends on no record needs no noise, and all else will show
        raise BrokenFunction(
            f"it returns the same actions for each of {len(seeds)} seeds: it ignores its seed, so that more calls give no "
            "new replays; draw all randomness from it"
        )
    if all((played == played[0]).all() for played in plays):
        raise BrokenFunction(
            f"all {n_reps} replicates of a call play the same, and other seeds play otherwise: one draw of noise serves all "
            "replicates; draw noise of shape (n_reps, ...), as each row is a run of its own"
        )
