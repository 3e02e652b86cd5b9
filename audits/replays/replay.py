"""Many replays of an algorithm on a data set and on its neighbor, in blocks that each have a seed of their own."""

from __future__ import annotations

import copy
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.run import run
from bandana.audits.neighbors.pairs import Pair, actions_differ
from bandana.audits.replays.later_actions import Features, LaterActions, Layout
from bandana.privacy_core import LiveLedger, Mechanism, Release, ReproducibleNoise, ScriptedLedger
from bandana.privacy_core.checks import at_least

BLOCK = 8192
WORKERS = "BANDANA_WORKERS"
ARRAYS = ("log_ratio", "action_code", "report_log_ratio", "actions")
_MAX_CODES = 4096
_MOST_WORKERS = 2
_threads: ContextVar[int | None] = ContextVar("threads of replays", default=None)


@dataclass(frozen=True)
class Replays:
    """Data that adversaries get from each replay of one side.

    Attributes:
      log_ratio: (n_replays,) log p(transcript | neighbor) - log p(transcript | data), the exact privacy loss, in nats.
        Minus infinity on a replay of the data whose schedule or actions the neighbor cannot produce, plus infinity on
        one of the neighbor that the data cannot produce.
      action_code: (n_replays,) the arms of the first few phases after the canary, as one number.
      report_log_ratio: (n_replays,) the same sum over the releases that read the canary and no other record: under local
        DP, the messages that this user sends. Each message is compared given what was public before it, which both sides
        share in a replay; 0 where the user sends none. The schedule and the actions are public too: where the neighbor
        cannot produce them the canary's data left by another way than its messages, and the ratio is infinite. In the
        central model it is that of a part of the transcript.
      actions: (n_replays, n_features) what the users after the canary were given, see `Layout`.
      layout: of `actions`; None where there are none.
    """

    log_ratio: FloatArray
    action_code: IntArray
    report_log_ratio: FloatArray = field(default_factory=lambda: np.zeros(0))
    actions: Features = field(default_factory=lambda: np.zeros((0, 0), dtype=np.float32))
    layout: Layout | None = None

    def __post_init__(self) -> None:
        n = len(self.log_ratio)
        if self.layout is None:  # scores of transcripts and codes alone
            object.__setattr__(self, "actions", np.zeros((n, 0), dtype=np.float32))
            if not len(self.report_log_ratio):
                object.__setattr__(self, "report_log_ratio", np.zeros(n))
        for name in ("action_code", "report_log_ratio", "actions"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{name} must have one row a replay, {n}, got {len(getattr(self, name))}")

    def __len__(self) -> int:
        return len(self.log_ratio)

    def __getitem__(self, rows: slice) -> Replays:
        """Some of the replays, in the memory of all."""
        return Replays(
            self.log_ratio[rows], self.action_code[rows], self.report_log_ratio[rows], self.actions[rows], self.layout
        )


Fill = Callable[[Replays, np.random.SeedSequence], None]
"""Fills the memory of a block, of one algorithm, pair and side, with the replays of the block's seed."""
Elsewhere = Callable[[Algorithm, Pair, bool], Fill | None]
"""(algorithm, pair, on_neighbor) -> what plays its replays in another way, such as on a device; None where nothing can."""
_elsewhere: ContextVar[Elsewhere | None] = ContextVar("replays elsewhere", default=None)


@contextmanager
def played(elsewhere: Elsewhere) -> Iterator[None]:
    """While it lasts, replays of this thread are played elsewhere where that can be."""
    token = _elsewhere.set(elsewhere)
    try:
        yield
    finally:
        _elsewhere.reset(token)


def joined(parts: Sequence[Replays]) -> Replays:
    """The replays of several blocks, in this order."""
    logs, codes, reports, actions = ([getattr(part, name) for part in parts] for name in ARRAYS)
    layout = parts[0].layout
    return Replays(np.concatenate(logs), np.concatenate(codes), np.concatenate(reports), np.concatenate(actions), layout)


@contextmanager
def in_threads(n_cores: int) -> Iterator[None]:
    """While it lasts, replays of this thread have so many cores to themselves; more than two are of no use."""
    token = _threads.set(min(_MOST_WORKERS, at_least("n_cores", n_cores, 1)))
    try:
        yield
    finally:
        _threads.reset(token)


def default_workers() -> int:
    """The number of threads: as `in_threads` says, else the environment's BANDANA_WORKERS, else one a core, at most two.

    One in a process or thread that somebody else started: who runs several audits side by side has used the cores already,
    unless `in_threads` says that there are more.

    Raises:
      ValueError: BANDANA_WORKERS is not a whole number of at least 1.
    """
    if (n_threads := _threads.get()) is not None:
        return n_threads
    if multiprocessing.parent_process() is not None or threading.current_thread() is not threading.main_thread():
        return 1
    if given := os.environ.get(WORKERS):
        if not given.isdecimal() or int(given) < 1:
            raise ValueError(f"{WORKERS} must be a whole number of at least 1, got {given!r}")
        return int(given)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_MOST_WORKERS, cores)


def replay(
    algorithm: Algorithm,
    pair: Pair,
    on_neighbor: bool,
    n_replays: int,
    seed: np.random.SeedSequence,
    workers: int | None = None,
) -> Replays:
    """Replays one side of a pair.

    Every replay is recorded live on its own side; then the algorithm runs on the other side with a scripted ledger, so
    that both act alike and the exact values of each release stand side by side. Their log density ratio, summed over
    the releases, is the likelihood ratio of the transcripts: the Neyman-Pearson statistic, for any algorithm.

    Args:
      algorithm: what to audit; each block plays a copy, so that threads share nothing; without one, in one thread.
      pair: the two data sets.
      on_neighbor: replay the neighbor instead of the data set.
      n_replays: at least 1.
      seed: one child a block; the result depends neither on the block order nor on the number of workers.
      workers: threads, which suffice since all that takes time releases the interpreter; None: `default_workers`.
    """
    return _replay(algorithm, pair, {on_neighbor: seed}, n_replays, workers)[0]


def replay_both(
    algorithm: Algorithm,
    pair: Pair,
    n_replays: int,
    seeds: tuple[np.random.SeedSequence, np.random.SeedSequence],
    workers: int | None = None,
) -> tuple[Replays, Replays]:
    """Replays both sides of a pair, those of the data set first, each with its seed: the same as two calls of `replay`."""
    data, neighbor = _replay(algorithm, pair, {False: seeds[0], True: seeds[1]}, n_replays, workers)
    return data, neighbor


def _replay(
    algorithm: Algorithm, pair: Pair, sides: dict[bool, np.random.SeedSequence], n_replays: int, workers: int | None
) -> list[Replays]:
    """The sides, whether each is the neighbor and its seed; the blocks of all side by side."""
    at_least("n_replays", n_replays, 1)
    n_workers = default_workers() if workers is None else at_least("workers", workers, 1)
    can_copy, elsewhere = _is_copyable(algorithm), _elsewhere.get()
    fills = {side: None if elsewhere is None else elsewhere(algorithm, pair, side) for side in sides}
    sets = [_empty(algorithm, pair, n_replays) for _ in sides]
    blocks = [
        (on_neighbor, sets[side][start : start + BLOCK], child)
        for side, (on_neighbor, seed) in enumerate(sides.items())
        for start, child in zip(range(0, n_replays, BLOCK), seed.spawn(n_blocks(n_replays)), strict=True)
    ]

    def fill(on_neighbor: bool, part: Replays, child: np.random.SeedSequence) -> None:
        if (own := fills[on_neighbor]) is not None:
            own(part, child)
        else:
            _replay_block(copy.deepcopy(algorithm) if can_copy else algorithm, pair, on_neighbor, part, child)

    if min(n_workers, len(blocks)) == 1 or not can_copy:
        for block in blocks:
            fill(*block)
        return sets
    with ThreadPoolExecutor(n_workers, thread_name_prefix="replay") as pool:
        try:
            for _ in pool.map(fill, *zip(*blocks, strict=True)):
                pass
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise
    return sets


def n_blocks(n_replays: int) -> int:
    """Counts the blocks in which one side's replays are made."""
    return -(-n_replays // BLOCK)


def replay_block(
    algorithm: Algorithm, pair: Pair, on_neighbor: bool, n_replays: int, seed: np.random.SeedSequence, block: int
) -> Replays:
    """One block of one side's replays, the same that `replay` makes with these arguments.

    Args: as in `replay`, where
      n_replays: of the whole side.
      seed: of the whole side; nothing was spawned from it.
      block: which block, in [0, n_blocks(n_replays)).
    """
    size = min(BLOCK, n_replays - block * BLOCK)
    replays = _empty(algorithm, pair, size)
    can_copy = _is_copyable(algorithm)
    child = seed.spawn(n_blocks(n_replays))[block]
    _replay_block(copy.deepcopy(algorithm) if can_copy else algorithm, pair, on_neighbor, replays, child)
    return replays


def _empty(algorithm: Algorithm, pair: Pair, n_replays: int) -> Replays:
    """Memory for so many replays."""
    layout = Layout(algorithm.n_actions, (pair.data.n_users - pair.record - 1) * pair.data.n_steps)
    return Replays(
        np.empty(n_replays), np.empty(n_replays, dtype=np.int64), np.empty(n_replays),
        np.empty((n_replays, layout.n_features), dtype=np.float32), layout,
    )  # fmt: skip


def _is_copyable(algorithm: Algorithm) -> bool:
    try:
        copy.deepcopy(algorithm)
    except Exception:  # whatever a user's object refuses with
        return False
    return True


def _replay_block(algorithm: Algorithm, pair: Pair, on_neighbor: bool, block: Replays, seed: np.random.SeedSequence) -> None:
    """Fills `block`, the memory of one block, with that many replays."""
    n_reps, record = len(block), pair.record
    here, there = (pair.neighbor, pair.data) if on_neighbor else (pair.data, pair.neighbor)
    live = LiveLedger(n_reps, ReproducibleNoise(seed), keeps_transcript=True, n_records=here.n_users)
    actions = ActionLog()
    later = LaterActions(record, here.n_users, algorithm.n_actions, n_reps, block.actions, here.n_steps)
    coins = Coins(seed, n_reps)  # the same on both sides: the score is that of the releases given the coins
    run(algorithm, here, live, observers=[actions, later], coins=coins)
    scripted = ScoringLedger(n_reps, live.transcript, record)
    shadow = ActionLog()
    run(algorithm, there, scripted, observers=[shadow], coins=coins)
    scripted.finish()
    differs = (scripted.diverged >= 0) | actions_differ(actions, shadow, pair.hidden_record)
    sign = -1.0 if on_neighbor else 1.0
    block.log_ratio[:] = sign * np.where(differs, -np.inf, scripted.log_ratio)
    block.report_log_ratio[:] = sign * np.where(differs, -np.inf, scripted.report_log_ratio)
    block.action_code[:] = action_codes(actions, record, algorithm.n_actions)


class ScoringLedger(ScriptedLedger):
    """A scripted ledger that also keeps the score of the releases that read one record and no other.

    Attributes:
      report_log_ratio: (n_reps,) sum over those releases of log p(output | D') - log p(output | D), in nats.
    """

    def __init__(self, n_reps: int, transcript: list[Release], record: int) -> None:
        super().__init__(n_reps, transcript)
        self.report_log_ratio = np.zeros(n_reps)
        self._record = record

    def _compare(
        self, call: int, there: slice | IntArray, reps: slice | IntArray, mechanism: Mechanism, value: FloatArray
    ) -> None:
        recorded = self._transcript[call]
        ratio = mechanism.log_density_ratio(recorded.output[there], recorded.value[there], value)
        self.log_ratio[reps] += ratio
        start, stop = recorded.records.start[there], recorded.records.stop[there]
        is_own = (start == self._record) & (stop == start + 1)
        if recorded.carried is not None:
            is_own &= recorded.carried.start[there] == start
        if is_own.any():
            self.report_log_ratio[reps] += np.where(is_own, ratio, 0.0)


def action_codes(log: ActionLog, record: int, n_actions: int) -> IntArray:
    """(n_reps,) the arms of the first phases, or steps, that begin after `record`, read as digits in base n_actions + 1.

    As many phases as keep the number of codes at or below 4096. A phase that a replicate does not reach adds no digit;
    digits start at 1, so shorter sequences have codes of their own.
    """
    base = n_actions + 1
    most = int(np.log(_MAX_CODES) / np.log(base))
    code = np.zeros(len(log.actions[0]), dtype=np.int64)
    taken = np.zeros(len(code), dtype=np.int64)
    for user, n_records, actions in zip(log.user, log.n_records, log.actions, strict=True):
        later = (user > record) & (n_records > 0) & (taken < most)
        code = np.where(later, code * base + actions + 1, code)
        taken += later
        if (taken == most).all():
            break
    return code
