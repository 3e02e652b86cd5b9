"""A plain function as what plays: rewards and a seed go in, actions come out, and what is wrong with them is told."""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from numpy.random import SeedSequence  # by this name it is not watched: it derives seeds, and no noise
from numpy.typing import ArrayLike

from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.outcome import MIN_REPLAYS
from bandana.flows.annexes.anything.functions.drawn import BEYOND
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, Caller, Guard, by_signature
from bandana.privacy_core import Interval

Play = Callable[[FloatArray, int], object]
"""(n_reps, n_rounds, n_arms) rewards and a seed -> (n_reps, n_rounds) actions, unchecked; see `adapted`."""

Shape = tuple[int, int]
"""Rounds and arms."""


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

    def pull(self, actions: ArrayLike) -> FloatArray:
        """(n_reps,) rewards of the given arms in the next round.

        Raises:
          BrokenSubject: the rounds are over, or the actions are no arms, one a replicate.
        """
        if self._round == self.n_rounds:
            raise BrokenSubject(f"it pulls after the last of {self.n_rounds} rounds")
        self.actions[:, self._round] = _checked_actions(np.asarray(actions), (self.n_reps,), self.n_arms, "pull takes")
        earned = self._rewards[np.arange(self.n_reps), self._round, self.actions[:, self._round]]
        self._round += 1
        return np.asarray(earned)


def adapted(function: Callable[..., object], shape: Shape, span: Interval, guard: Guard = nullcontext) -> Play:
    """The function as (rewards, seed) -> actions, for rewards of shape (n_reps, n_rounds, n_arms).

    Args:
      function: takes such rewards, of one run (n_rounds, n_arms), or a `RewardStream`; and a seed, a generator or none.
      shape: rounds and arms.
      span: declared range of rewards.
      guard: what calls are wrapped in.

    Raises:
      BrokenSubject: it answers neither form with actions; the message names the shapes.
    """
    caller = _caller(function, guard)
    if _takes_stream(function):
        return lambda rewards, seed: _pulled(caller, rewards, seed)
    if _is_batched(caller, shape, span):
        return caller.called

    def one_by_one(rewards: FloatArray, seed: int) -> np.ndarray:
        seeds = SeedSequence(seed).generate_state(len(rewards), np.uint32).tolist()
        return np.array([np.asarray(caller.called(row, one)) for row, one in zip(rewards, seeds, strict=True)])

    return one_by_one


def plays_many(function: Callable[..., object], shape: Shape, span: Interval, guard: Guard = nullcontext) -> bool:
    """True if it is called with the rewards of many runs, or pulls arms of many at once; see `adapted`."""
    if _takes_stream(function):
        return True
    try:
        return _is_batched(_caller(function, guard), shape, span)
    except Exception:  # whatever it says of rewards of many runs
        return False


def _caller(function: Callable[..., object], guard: Guard) -> Caller:
    try:
        return replace(by_signature(function), guard=guard)
    except BrokenSubject as error:
        raise BrokenSubject(f"{error} (here the data are rewards)") from error


def _takes_stream(function: Callable[..., object]) -> bool:
    """True if the function's first parameter is called `stream`: then it pulls, and need not return its actions."""
    return next(iter(inspect.signature(function).parameters), "") == "stream"


def _pulled(caller: Caller, rewards: FloatArray, seed: int) -> IntArray:
    """The arms that the function pulls."""
    stream = RewardStream(rewards)
    caller.called(stream, seed)
    if (stream.actions[:, -1] < 0).any():
        raise BrokenSubject(
            f"it must pull once in each of {stream.n_rounds} rounds, got {int((stream.actions[0] >= 0).sum())}"
        )
    return stream.actions


def _is_batched(caller: Caller, shape: Shape, span: Interval) -> bool:
    """True if it plays many runs at once; where neither form gives actions, the error of the first."""
    n_reps = 5 if shape[0] != 5 else 7
    rewards = np.broadcast_to(np.full(shape, span.low), (n_reps, *shape))
    seen: list[Exception | str] = []
    for data, expected in ((rewards, (n_reps, shape[0])), (rewards[0], (shape[0],))):
        try:
            answer = np.asarray(caller.called(data, 1))
        except Exception as error:
            seen.append(error)
            continue
        if answer.shape == expected:
            return expected != (shape[0],)
        seen.append(f"{answer.shape} of {answer.dtype}")
    if isinstance(seen[0], Exception) and isinstance(seen[1], Exception):
        raise seen[0]
    shown = [f"{type(one).__name__}: {one}" if isinstance(one, Exception) else f"shape {one}" for one in seen]
    raise BrokenSubject(
        f"it must return whole numbers of shape ({n_reps}, {shape[0]}) for rewards of shape {rewards.shape}, or of shape "
        f"({shape[0]},) for those of one run, {shape}; got {shown[0]}, and {shown[1]}"
    )


def _checked_actions(actions: np.ndarray, shape: tuple[int, ...], n_arms: int, who: str) -> IntArray:
    if actions.shape != shape or not np.issubdtype(actions.dtype, np.integer):
        raise BrokenSubject(f"{who} whole numbers of shape {shape}, got shape {actions.shape} of {actions.dtype}")
    if actions.size and (actions.min() < 0 or actions.max() >= n_arms):
        raise BrokenSubject(f"{who} arms in [0, {n_arms}), got {int(actions.min())} to {int(actions.max())}")
    return actions.astype(np.int64)


def play_rows(play: Play, table: Table, n_reps: int, seed: int) -> IntArray:
    """(n_reps, n_rounds) actions of independent replicates on one table.

    Raises:
      BrokenSubject: what comes back are no actions, one a replicate and round.
    """
    return play_rewards(play, np.broadcast_to(table.rewards, (n_reps, *table.rewards.shape)), seed)  # read-only


def play_rewards(play: Play, rewards: FloatArray, seed: int) -> IntArray:
    """(n_reps, n_rounds) actions of independent replicates, each on rewards of its own, (n_reps, n_rounds, n_arms).

    Raises:
      BrokenSubject: what comes back are no actions, one a replicate and round.
    """
    n_reps, n_rounds, n_arms = rewards.shape
    return _checked_actions(np.asarray(play(rewards, seed)), (n_reps, n_rounds), n_arms, "it must return")


def even_table(rounds: int, n_arms: int, reward_range: Interval) -> RewardTable:
    """Every reward at the lower end: all arms are equal, so that a single reward can tip a decision."""
    return RewardTable(np.full((rounds, n_arms), reward_range.low), reward_range)


def check(play: Play, table: RewardTable, seed: int, n_reps: int = 64) -> None:
    """Refuses a function whose replays would not be what the bounds take them for.

    Raises:
      BrokenSubject: wrong shape, another answer to the same seed, one answer to every seed, or one noise for all replicates.
    """
    seeds = SeedSequence(seed, spawn_key=(2,)).generate_state(8, np.uint32).tolist()
    plays = [play_rows(play, table, n_reps, number) for number in seeds]
    if not np.array_equal(play_rows(play, table, n_reps, seeds[0]), plays[0]):
        raise BrokenSubject(
            f"two calls with the seed {seeds[0]} return different actions: draw all randomness from the seed, as in "
            "numpy.random.default_rng(seed), and keep nothing between calls; else nobody can repeat the audit"
        )
    if all(np.array_equal(played, plays[0]) for played in plays):
        if all((played == played[0]).all() for played in plays):
            return  # it draws nothing here: what depends on no record needs no noise, and all else will show
        raise BrokenSubject(
            f"it returns the same actions for each of {len(seeds)} seeds: it ignores its seed, so that more calls give no "
            "new replays; draw all randomness from it"
        )
    if all((played == played[0]).all() for played in plays):
        raise BrokenSubject(
            f"all {n_reps} replicates of a call play the same, and other seeds play otherwise: one draw of noise serves all "
            "replicates; draw noise of shape (n_reps, ...), as each row is a run of its own"
        )


def accepts_outside(play: Play, shape: tuple[int, int], span: Interval) -> bool:
    """True if it plays on when rewards lie outside of the declared range: to refuse them is as good as to clip them."""
    far = np.full((4, *shape), span.high + BEYOND * span.width)
    try:
        play_rewards(play, np.broadcast_to(far, far.shape), 1)
    except Exception:
        return False
    return True


_RUNS_OF_AN_AUDIT = 7
"""Runs that an audit of a function makes for each replay: drawn rewards, a pair, and planted faults."""


def affordable(play: Play, shape: tuple[int, int], span: Interval, replays: int, seconds: float) -> int:
    """Replays that fit into the time, at most those that were asked for.

    Raises:
      BrokenSubject: not even the fewest that show anything fit.
    """
    rewards = np.broadcast_to(np.full(shape, span.low), (64, *shape))
    begun = time.monotonic()
    play_rewards(play, rewards, 1)
    one = (time.monotonic() - begun) / len(rewards)
    fits = int(seconds / max(_RUNS_OF_AN_AUDIT * one, 1e-12))
    if fits < MIN_REPLAYS:
        raise BrokenSubject(
            f"a run takes {one:.2g} s, and {MIN_REPLAYS} replays, the fewest that show anything, would take "
            f"{math.ceil(_RUNS_OF_AN_AUDIT * one * MIN_REPLAYS)} s: allow that with --seconds, play fewer --rounds, or let "
            "one call play many runs"
        )
    return min(replays, fits)


def constants(source: str) -> tuple[float, ...]:
    """Numbers that a Python text names, in order; none of what cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError):
        return ()
    numbers = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return tuple(dict.fromkeys(float(n) for n in numbers if isinstance(n, int | float) and not isinstance(n, bool)))
