"""How a plain function wants to be called: many runs at once or one, and where its seed goes."""

from __future__ import annotations

import ast
import math
import textwrap
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.random import SeedSequence

from bandana.algorithms.protocol import FloatArray
from bandana.audits.external.drawn import BEYOND
from bandana.audits.external.plays import BrokenFunction, Play, play_rewards, takes_stream
from bandana.audits.external.releases.calls import BrokenRelease, Caller, Guard, by_signature
from bandana.audits.outcome import MIN_REPLAYS
from bandana.privacy_core import Interval


def adapted(function: Any, shape: tuple[int, int], span: Interval, guard: Guard = nullcontext) -> Play:
    """The function as (rewards, seed) -> actions, for rewards of shape (n_reps, n_rounds, n_arms).

    Args:
      function: takes such rewards, or those of one run, (n_rounds, n_arms), or a stream; and a seed or a generator of any
        name, or none.
      shape: rounds and arms.
      span: declared range of rewards.
      guard: what calls are wrapped in.

    Raises:
      BrokenFunction: it answers neither form with actions; the message names the shapes.
    """
    try:
        caller = by_signature(function)
    except BrokenRelease as error:
        raise BrokenFunction(f"{error} (here the data are rewards)") from error

    def call(data: Any, seed: int) -> Any:
        with guard():
            return caller.function(data) if caller.seed is None else _with_seed(caller, data, seed)

    if takes_stream(function):

        def pulls(stream: Any, seed: int) -> Any:
            return call(stream, seed)

        return pulls

    def all_at_once(rewards: FloatArray, seed: int) -> Any:
        return call(rewards, seed)

    def one_by_one(rewards: FloatArray, seed: int) -> Any:
        seeds = SeedSequence(seed).generate_state(len(rewards), np.uint32).tolist()
        return np.array([np.asarray(call(row, one)) for row, one in zip(rewards, seeds, strict=True)])

    return all_at_once if _is_batched(call, shape, span) else one_by_one


def plays_many(function: Any, shape: tuple[int, int], span: Interval, guard: Guard = nullcontext) -> bool:
    """Whether it is called with the rewards of many runs, or pulls arms of many at once; see `adapted`."""
    if takes_stream(function):
        return True
    try:
        play = adapted(function, shape, span, guard)
    except Exception:  # whatever it says of rewards of many runs
        return False
    return play.__name__ == "all_at_once"


def _with_seed(caller: Caller, data: Any, seed: int) -> Any:
    assert caller.seed is not None
    coin = np.random.default_rng(seed) if caller.is_generator else seed
    return caller.function(data, **{caller.seed: coin}) if caller.is_keyword else caller.function(data, coin)


def _is_batched(call: Any, shape: tuple[int, int], span: Interval) -> bool:
    """Whether it plays many runs at once.

    Raises:
      BrokenFunction: neither form gives actions.
      Exception: both forms fail; what the first one raised.
    """
    n_reps = 5 if shape[0] != 5 else 7
    rewards = np.broadcast_to(np.full(shape, span.low), (n_reps, *shape))
    seen: list[Any] = []
    for data, expected in ((rewards, (n_reps, shape[0])), (rewards[0], (shape[0],))):
        try:
            answer = np.asarray(call(data, 1))
        except Exception as error:
            seen.append(error)
            continue
        if answer.shape == expected:
            return expected != (shape[0],)
        seen.append(f"{answer.shape} of {answer.dtype}")
    if isinstance(seen[0], Exception) and isinstance(seen[1], Exception):
        raise seen[0]
    told = [f"{type(one).__name__}: {one}" if isinstance(one, Exception) else f"shape {one}" for one in seen]
    raise BrokenFunction(
        f"it must return whole numbers of shape ({n_reps}, {shape[0]}) for rewards of shape {rewards.shape}, or of shape "
        f"({shape[0]},) for those of one run, {shape}; got {told[0]}, and {told[1]}"
    )


def accepts_outside(play: Play, shape: tuple[int, int], span: Interval) -> bool:
    """Whether it plays on when rewards lie outside of the declared range: to refuse them is as good as to clip them."""
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
      BrokenFunction: not even the fewest that show anything fit.
    """
    rewards = np.broadcast_to(np.full(shape, span.low), (64, *shape))
    begun = time.monotonic()
    play_rewards(play, rewards, 1)
    one = (time.monotonic() - begun) / len(rewards)
    fits = int(seconds / max(_RUNS_OF_AN_AUDIT * one, 1e-12))
    if fits < MIN_REPLAYS:
        raise BrokenFunction(
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
