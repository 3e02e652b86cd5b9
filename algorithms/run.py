"""The one loop: a single online run is the batch of one, an experiment a batch of seeds, an audit a batch of 1e5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bandana.algorithms.coins import Coins, coins_of
from bandana.algorithms.protocol import (
    Algorithm,
    ContextualStream,
    EpisodicStream,
    FloatArray,
    IntArray,
    Observer,
    Record,
    Stream,
)
from bandana.privacy_core import Ledger


def run(
    algorithm: Algorithm,
    stream: Stream | EpisodicStream,
    ledger: Ledger,
    *,
    horizon: int | None = None,
    observers: Sequence[Observer] = (),
    jump: bool = True,
    labels: IntArray | None = None,
    coins: Coins | None = None,
) -> tuple[Any, Any]:
    """Plays `algorithm` against `stream` in every replicate of `ledger`.

    Args:
      algorithm: decides and learns.
      stream: answers; its rewards are clipped to the algorithm's range.
      ledger: the only source of privacy noise, with `n_reps` replicates.
      horizon: number of users, at most the stream's; None means all of them.
      observers: called with each record.
      jump: absorb a phase with one action at once. False plays record by record, with the same decisions, and on a
        table with the same numbers bit for bit. The loop never jumps where users have contexts or episodes, or coins decide.
      labels: (n_reps, n_actions) a public permutation for each replicate: what the algorithm calls action a is the stream's
        action labels[r, a], and contexts are offered in that order. An algorithm that gives ties to its lowest action then
        gives them to a random one. Observers see the stream's actions. Only for algorithms that know nothing of single
        actions beforehand, and not for episodes; None: both number actions alike.
      coins: what an algorithm with `n_coins` randomizes with; no other gets any.

    Raises:
      ValueError: the stream and the algorithm disagree on the number of actions, on the contexts, or on states and length
        of an episode, the horizon does not fit, or coins are missing or made for another number of replicates.
    """
    total = stream.n_users if horizon is None else horizon
    if stream.n_actions != algorithm.n_actions:
        raise ValueError(f"the algorithm has {algorithm.n_actions} actions, the stream {stream.n_actions}")
    is_bandit = not isinstance(stream, ContextualStream | EpisodicStream)
    if not (algorithm.n_actions if is_bandit else 1) <= total <= stream.n_users:
        least = f"the number of actions ({algorithm.n_actions})" if is_bandit else "1"
        raise ValueError(
            f"horizon must lie between {least} and the number of users in the stream ({stream.n_users}), got {total}"
        )
    stream = stream.clipped(algorithm.reward_range)
    _check_episodes(algorithm, stream)
    drawn = _coins(algorithm, coins, ledger.n_reps)
    if isinstance(stream, EpisodicStream):
        if labels is not None:
            raise ValueError("labels cannot be given for episodes: their algorithms know what single actions do")
        return _play_episodes(algorithm, stream, ledger, total, observers, drawn)
    offered = stream if isinstance(stream, ContextualStream) else None
    _check_contexts(algorithm, offered)
    sensitive, released = algorithm.init(ledger.n_reps)
    user = np.zeros(ledger.n_reps, dtype=np.int64)
    rows = np.arange(ledger.n_reps)
    act: Callable[..., IntArray] = algorithm.act
    can_jump = jump and offered is None and not coins_of(algorithm)
    while True:
        context: FloatArray | None = None if offered is None else offered.contexts(user)
        shown = context if context is None or labels is None else _in_order(context, labels)
        tossed = drawn(user, 0)
        actions = act(released, shown, 0, *tossed)
        taken = actions if labels is None else labels[rows, actions]
        left = total - user
        n_records = np.minimum(algorithm.hold(released, actions) if can_jump else 1, left)
        rewards = stream.respond(user, n_records, taken)
        record = Record(user, n_records, context, taken[:, None], rewards[:, None], coins=_recorded(tossed))
        for observer in observers:
            observer.observe(record)
        own = record if labels is None else record._replace(contexts=shown, actions=actions[:, None])
        sensitive, released = algorithm.absorb(sensitive, released, own, ledger)
        user = user + n_records  # a new array: records keep theirs
        if int(user.min()) == total:
            return sensitive, released


def _in_order(contexts: FloatArray, labels: IntArray) -> FloatArray:
    """The contexts (n_reps, n_actions, d) in the algorithm's order; not to be written to, as feature maps remember them."""
    ordered = np.take_along_axis(contexts, labels[:, :, None], axis=1)
    ordered.setflags(write=False)
    return ordered


def _play_episodes(
    algorithm: Algorithm, stream: EpisodicStream, ledger: Ledger, total: int, observers: Sequence[Observer], drawn: _Tosses
) -> tuple[Any, Any]:
    sensitive, released = algorithm.init(ledger.n_reps)
    shape, length = ledger.n_reps, stream.episode_length
    n_records = np.ones(shape, dtype=np.int64)
    act: Callable[..., IntArray] = algorithm.act
    for episode in range(total):
        user = np.full(shape, episode)
        states: IntArray = np.empty((shape, length + 1), dtype=np.int64)
        actions: IntArray = np.empty((shape, length), dtype=np.int64)
        rewards: FloatArray = np.empty((shape, length))
        states[:, 0] = stream.first(user)
        tossed = [drawn(user, step) for step in range(length)]
        for step in range(length):
            actions[:, step] = act(released, states[:, step], step, *tossed[step])
            answers = stream.advance(user, step, states[:, step], actions[:, step])
            states[:, step + 1], rewards[:, step] = answers
        coins = _recorded(tuple(coins for step in tossed for coins in step))
        record = Record(user, n_records, None, actions, rewards, states, coins)
        for observer in observers:
            observer.observe(record)
        sensitive, released = algorithm.absorb(sensitive, released, record, ledger)
    return sensitive, released


_Tosses = Callable[[IntArray, int], tuple[FloatArray, ...]]
"""(user, step) -> the coins of a decision, (n_reps, n_coins); nothing where no coins decide."""


def _coins(algorithm: Algorithm, coins: Coins | None, n_reps: int) -> _Tosses:
    n_coins = coins_of(algorithm)
    if not n_coins:
        return lambda user, step: ()
    if coins is None or coins.n_reps != n_reps:
        given = "none" if coins is None else f"those of {coins.n_reps}"
        raise ValueError(
            f"the algorithm decides by coins: give coins=Coins(seed, {n_reps}), for its {n_reps} replicates, got {given}"
        )
    return lambda user, step: (coins.draw(user, step, n_coins),)


def _recorded(tossed: tuple[FloatArray, ...]) -> FloatArray | None:
    return np.stack(tossed, axis=1) if tossed else None


def _check_episodes(algorithm: Algorithm, stream: Stream | EpisodicStream) -> None:
    for name, shown in (("episode_length", "plays episodes of {} steps"), ("n_states", "knows {} states")):
        wanted, actual = getattr(algorithm, name, None), getattr(stream, name, None)
        if wanted != actual:
            mine = "plays no episodes" if wanted is None else shown.format(wanted)
            theirs = "has no episodes" if actual is None else f"has {name} = {actual}"
            raise ValueError(f"the algorithm {mine}, the stream {theirs}")


def _check_contexts(algorithm: Algorithm, offered: ContextualStream | None) -> None:
    wanted = getattr(algorithm, "context_dimension", None)
    actual = None if offered is None else offered.context_dimension
    if wanted is not None and wanted != actual:
        theirs = "has no contexts" if actual is None else f"has contexts of dimension {actual}"
        raise ValueError(f"the algorithm decides from contexts of dimension {wanted}, the stream {theirs}")
