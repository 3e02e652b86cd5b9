"""The walk over a benchmark's whole horizon: what begins after the last round of a replay is met as well.

Replays are short: of a benchmark of 100,000 rounds they play 64. Here some replicates play all rounds on both sides, the
second time with the released values of the first, as in a proof of adaptive composition. Schedules, actions and released
states must then be equal however many records differ, so in some replicates all records differ at once, or each second one,
or all of the second half: whatever round leaks, it is met. In the others one record differs, so that spans and sensitivities
are compared too: the first and the last, those around each power of two, and those at which phases begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.run import run
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.searches import checks
from bandana.audits.searches.cases import Case
from bandana.audits.searches.counterexample import Counterexample
from bandana.audits.searches.sides import Sides, play, play_streams
from bandana.audits.searches.states import StateLog
from bandana.audits.searches.walk import Batch, costly_covariates, shorter
from bandana.audits.searches.widened import NEVER
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

_MOST, _LEAST, _TOGETHER = 64, 4, 8
"""Replicates that differ in one record, at most and at least; replicates that differ in many."""
_MOST_BYTES = 1 << 30
"""Memory for what both sides keep of all replicates."""
_MOST_PHASES, _MANY_PHASES, _FEW = 1 << 14, 1 << 11, 8
"""Rounds of an algorithm that does not jump: so many are walked at most; beyond so many, few replicates differ alone."""
_PILOT = 512
_KEY = 0x686F_727A


class Walked(NamedTuple):
    """A walk over the whole horizon.

    Attributes:
      rounds: that both sides played.
      alone: records that differed alone.
    """

    rounds: int
    alone: int


def walk_horizon(
    algorithm: Algorithm, table: Table, seed: int, private_records: bool
) -> tuple[Counterexample | None, Walked]:
    """Plays all rounds of a data set on both sides, and checks every replicate.

    Args: as in `bandana.audits.searches.walk.walk`, where
      algorithm: what to audit, as the benchmark plays it.
      table: as long as the benchmark.
      seed: of noise and of the changes of covariates.

    Returns:
      a counterexample, on as few rounds as show it, or None; and what was walked.
    """
    n_rounds = min(table.n_users, max(_PILOT, algorithm.n_actions))
    n_bytes, starts = _pilot(algorithm, table, n_rounds, seed)
    is_dense = 2 * len(starts) >= n_rounds - 2  # later phases are as long or longer
    if is_dense and table.n_users > _MOST_PHASES:
        table = first_rows(table, _MOST_PHASES)
    n_alone = int(np.clip(_MOST_BYTES // int(n_bytes * table.n_users + 1), _LEAST, _MOST))
    if is_dense and table.n_users > _MANY_PHASES:
        n_alone = min(n_alone, _FEW)
    n_together = min(_TOGETHER, n_alone)
    starts = np.arange(table.n_users) if is_dense else _pilot(algorithm, table, table.n_users, seed)[1]
    records = positions(table.n_users, starts, n_alone)
    sides = _play(algorithm, n_together, _one_each(table, records, seed, private_records))
    walked = Walked(table.n_users, len(records))
    violation = checks.decisions(sides) or checks.states(sides)
    if violation is not None and violation.replicate < n_together:
        return _by_one_record(algorithm, table, violation, sides), walked
    for release, value in zip(sides.live.transcript, sides.scripted.values, strict=True):
        many = slice(n_together) if release.reps is None else release.reps < n_together
        value[many] = release.value[many]  # moved by many records, for which no sensitivity is declared
    violation = checks.first_violation(sides, None)
    return None if violation is None else shorter(algorithm, violation, table.reward_range, None), walked


def positions(n_users: int, starts: Iterable[int], most: int) -> IntArray:
    """(n,) records of the design: both ends, around each power of two, and where phases begin and end; increasing.

    Args:
      n_users: records of the data set.
      starts: first records of phases, of which as many are left out as do not fit.
      most: n, at most.
    """
    powers = 1 << np.arange(n_users.bit_length())
    near = np.concatenate([[0, 1, n_users - 2, n_users - 1], powers - 1, powers, powers + 1])
    near = np.unique(near[(near >= 0) & (near < n_users)])
    first = np.array(sorted(starts), dtype=np.int64)
    phases = np.setdiff1d(np.concatenate([first, first - 1]), [-1, *near])
    room = max(0, most - len(near))
    if len(phases) > room:
        phases = phases[np.unique(np.linspace(0, len(phases) - 1, room).astype(int))] if room else phases[:0]
    records = np.sort(np.concatenate([near, phases]))
    if len(records) > most:
        records = records[np.unique(np.linspace(0, len(records) - 1, most).astype(int))]
    return records.astype(np.int64)


def _pilot(algorithm: Algorithm, table: Table, n_rounds: int, seed: int) -> tuple[float, IntArray]:
    """Bytes that both sides keep of a round of one replicate, and first records of phases but the first, from one run."""
    root = np.random.SeedSequence(seed)
    ledger, noted = LiveLedger(1, ReproducibleNoise(root), keeps_transcript=True), StateLog(algorithm, 1)
    run(noted, table, ledger, horizon=n_rounds, coins=Coins(root, 1))
    kept = sum(entry.value.nbytes + entry.output.nbytes for entry in ledger.transcript)
    kept += 8 * sum(map(len, noted.marks)) + 64 * len(noted.last)
    return 2 * kept / n_rounds, np.concatenate(noted.last)[:-1] + 1


def _play(algorithm: Algorithm, n_together: int, alone: Batch) -> Sides:
    """Both sides of replicates in which many records differ, and then of those in which one does."""
    table, low, high = alone.tables
    flipped = table.with_rewards(table.reward_range.low + table.reward_range.high - table.rewards)
    place = np.arange(table.n_users).reshape(-1, *[1] * (table.rewards.ndim - 1))
    parts = (place % 2 == 1, place >= table.n_users // 2)
    tables = [*alone.tables, flipped, *(table.with_rewards(np.where(part, low.rewards, high.rewards)) for part in parts)]
    pairs = np.array([(1, 2), (0, 3), (1, 4), (1, 5)])[np.arange(n_together) % 4]
    nobody, order = np.full(n_together, -1), np.arange(len(alone.record))
    records, hidden = (np.concatenate([nobody, own]) for own in (alone.record, alone.hidden))
    kinds = [np.concatenate([side, alone.table]) for side in pairs.T]
    rows = [np.concatenate([nobody, order + first]) for first in (0, len(order))]
    data, neighbor = (table.stack(tables, kind, records, alone.rows, row) for kind, row in zip(kinds, rows, strict=True))

    def case_of(rep: int) -> Case:
        if rep >= n_together:
            return alone.case(rep - n_together)
        return Case.of(Pair(tables[pairs[rep, 0]], tables[pairs[rep, 1]], table.n_users - 1), alone.seed)

    return play_streams(algorithm, (data, neighbor), alone.seed, case_of, records, hidden)


def first_rows(table: Table, n_rounds: int, rewards: FloatArray | None = None) -> Table:
    """The first records of a data set, with other rewards where they are given."""
    covariates = None if table.covariates is None else table.covariates[:n_rounds]
    return table.with_rows((table.rewards if rewards is None else rewards)[:n_rounds], covariates)


def _one_each(table: Table, records: IntArray, seed: int, private_records: bool) -> Batch:
    """Replicates that differ in one record each, which goes from one end of the range to the other."""
    span, n_reps = table.reward_range, len(records)
    tables = [table, *(table.with_rewards(np.full(table.rewards.shape, end)) for end in (span.low, span.high))]
    chosen = np.arange(n_reps) % len(tables)
    before = np.stack([tables[which].rewards[record] for which, record in zip(chosen, records, strict=True)])
    after = np.where(before < span.high, span.high, span.low)
    covariates, hidden = None, np.full(n_reps, -1, dtype=np.int64)
    if table.covariates is not None:
        coin = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(_KEY,))))
        mine, theirs = costly_covariates(table, records, private_records, coin)
        hidden = np.where((mine != theirs).reshape(n_reps, -1).any(axis=1), records, -1)
        covariates = np.concatenate([mine, theirs])
    rows = table.with_rows(np.concatenate([before, after]), covariates, Interval(span.low, span.high))
    return Batch(tables, chosen, records, rows, hidden, np.full(n_reps, NEVER), seed)


def _by_one_record(algorithm: Algorithm, table: Table, violation: Counterexample, sides: Sides) -> Counterexample:
    """The violation on as few rounds as it takes, by one record where one suffices."""
    parted = sides.parted.record[violation.replicate]
    last = violation.difference.round if violation.difference is not None else int(parted)
    span = table.reward_range
    data, changed = (first_rows(table, last + 1, np.full(table.rewards.shape, end)) for end in (span.low, span.high))
    for record in (last, max(0, last - 1), 0):
        case = Case.of(Pair(data, data.replaced(record, changed.rewards[record]), record), violation.case.seed)
        if (one := checks.first_violation(play(algorithm, case, span), None)) is not None:
            return shorter(algorithm, one, span, None)
    return replace(violation, reason=f"{violation.reason}; D' differs in many records")
