"""The exhaustive walk: every record changes in many contexts and by many values, one case a replicate.

`bandana.audits.searches.deterministic` tries a hundred cases, one after the other, and shrinks what it finds. Here each
replicate of one batch is a case of its own: a table, a record of it, and what that record is on both data sets. So every
record of a table as long as a replay changes hundreds of times, from and to every value of its lists, and a leak may show at
any later round: in an action, a schedule, a release, or a field of the released state. Since every replicate also has noise
of its own, an event of probability p that shows the record is met with probability 1 - (1 - p)^n in n changes of it. In
half of the replicates one release is drawn with a larger scale (`bandana.audits.searches.widened`), to meet leaks in tails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.environments.data_sets import DataSet
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.audits.coverage import Coverage
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.searches import checks
from bandana.audits.searches.cases import Case, CaseSpace
from bandana.audits.searches.constants import constants_of
from bandana.audits.searches.counterexample import Counterexample
from bandana.audits.searches.drawn import SHARE, Between
from bandana.audits.searches.lines import LinesRun, file_of
from bandana.audits.searches.sides import Sides, play, play_streams
from bandana.audits.searches.states import leaves
from bandana.audits.searches.widened import FIRST_READER, NEVER, rarest_tail
from bandana.privacy_core import GaussianDP, Interval, Release

BATCH = 4096
VIEWS = ("schedules", "releases", "released state", "actions")
_MOST_CASES, _LARGEST_WORK = 1 << 15, 1 << 31
_N_TABLES, _MOST_OWN = 128, 16
_KEY = 0x77_616C_6B
_ATTEMPTS = 4
_LONGEST_ERROR = 200
_FIRST_READERS = 1 / 4
"""Share of the cases in which the first release that reads the record is widened; in as many it is any other."""


def values_of(algorithm: Algorithm, table: Table) -> tuple[list[float], list[float]]:
    """Lists the rewards that a record may have, on the data set and on its neighbor.

    The ends of the range, its middle and a quarter, the data's own values, and numbers that stand in the algorithm's source
    or in its fields; on the neighbor also values just and far outside the range.
    """
    span = table.reward_range
    space = CaseSpace(algorithm.n_actions, span, table.n_users)
    own = np.unique(table.rewards)
    own = own[np.unique(np.linspace(0, len(own) - 1, _MOST_OWN).astype(int))]
    known = [value for number in constants_of(algorithm) for value in (number, -number) if span.low <= value <= span.high]
    inside = list(dict.fromkeys([*space.inside, *own.tolist(), *known]))
    return inside, list(dict.fromkeys([*space.anywhere, *inside]))


def n_cases_of(algorithm: Algorithm, table: Table, wanted: int) -> int:
    """Counts the cases to try: as many as wanted, unless the released state is so large that this takes too long."""
    _, released = algorithm.init(1)
    size = sum(leaf.size for _, leaf in leaves(released)) * table.n_users
    return max(256, min(wanted, _MOST_CASES, _LARGEST_WORK // max(1, 64 * size)))


def rarest_of(table: Table, n_cases: int) -> float:
    """The probability of an event at one record that four of its changes meet on average."""
    return min(1.0, 4 * table.n_users / n_cases)


def tail_of(transcript: Iterable[Release], rarest: float) -> float:
    """The probability of a tail of one release's noise that four changes of one record meet on average.

    Args:
      transcript: releases of a run.
      rarest: see `rarest_of`.
    """
    return rarest_tail((entry.mechanism for entry in transcript), min(1.0, rarest / _FIRST_READERS))


def walk(
    algorithm: Algorithm,
    table: Table,
    claim: GaussianDP | None,
    n_cases: int,
    seed: int,
    private_records: bool = False,
    shortens: bool = True,
) -> tuple[Counterexample | None, Coverage]:
    """Changes every record of a table in many contexts, and checks every replicate.

    Args:
      algorithm: what to audit.
      table: its own data are one context, and its covariates are those of all.
      claim: see `bandana.audits.searches.deterministic.examine`.
      n_cases: how many cases.
      seed: of cases and noise.
      private_records: whether a record is what its user brings and the rewards, or the rewards alone.
      shortens: look for a shorter counterexample; without, any one will do.
    """
    inside, anywhere = values_of(algorithm, table)
    rarest = rarest_of(table, n_cases)
    coverage = Coverage(
        VIEWS, tuple(range(table.n_users)), table.n_users, tuple(sorted({*inside, *anywhere})), n_cases,
        rarest, "round" if table.n_steps == 1 else "episode",
    )  # fmt: skip
    tails: list[float] = []
    drawn: list[FloatArray] = []
    between, most_releases, lines = Between.of(algorithm, table), table.n_users, LinesRun(file_of(algorithm))
    for place, start in enumerate(range(0, n_cases, BATCH)):
        n_reps, values = min(BATCH, n_cases - start), (inside, anywhere, between)
        batch = Batch.drawn(table, n_reps, start, values, private_records, (seed, place), most_releases)
        with lines:
            try:
                sides, error = batch.play(algorithm)
            except Exception as refusal:  # anybody's code may refuse covariates that are none of the data set's
                if not len(batch.moved):
                    raise
                batch, coverage = batch.unmoved(), replace(coverage, refused_covariates=_shown(refusal))
                sides, error = batch.play(algorithm)
        drawn.append(batch.drawn_rewards)
        coverage = replace(
            coverage, refused=coverage.refused or error, drawn=len(np.unique(np.concatenate(drawn))),
            drawn_covariates=coverage.drawn_covariates + len(batch.moved),
        )  # fmt: skip
        violation = checks.first_violation(sides, claim)
        if violation is not None:
            return shorter(algorithm, violation, table.reward_range, claim) if shortens else violation, coverage
        transcript = sides.live.transcript
        most_releases = max(1, len(transcript))
        tails.append(tail_of(transcript, rarest) if (sides.widened >= 0).any() else 1.0)
    return None, replace(coverage, tail=max(tails), never_ran=lines.never)


@dataclass(frozen=True)
class Batch:
    """Cases side by side.

    Attributes:
      tables: the contexts.
      table: (n_reps,) which one.
      record: (n_reps,) which record differs.
      rows: (2 n_reps,) records as rows of a data set: on D, then on D'.
      hidden: (n_reps,) the record where its covariates differ, else -1.
      wide: (n_reps,) which release is drawn with a larger scale, see `WideningLedger`.
      seed: of the noise.
      drawn_rewards: values on D' that are none of the listed ones.
      moved: replicates whose record has drawn covariates.
    """

    tables: list[Table]
    table: IntArray
    record: IntArray
    rows: Table
    hidden: IntArray
    wide: IntArray
    seed: int
    drawn_rewards: FloatArray = field(default_factory=lambda: np.zeros(0))
    moved: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @classmethod
    def drawn(
        cls,
        table: Table,
        n_reps: int,
        start: int,
        values: tuple[list[float], list[float], Between],
        private_records: bool,
        seed: tuple[int, int],
        most_releases: int,
    ) -> Batch:
        """Cases whose records go round and round, in drawn contexts, from one value to another."""
        sequence = np.random.SeedSequence(seed[0], spawn_key=(_KEY, seed[1]))
        coin, beside = (np.random.Generator(np.random.SFC64(one)) for one in (sequence, *sequence.spawn(1)))
        tables = list(_contexts(table, values[0], coin))
        record = (start + np.arange(n_reps)) % table.n_users
        # The data's own context has an eighth of the cases; the others share the rest.
        chosen = np.where(coin.random(n_reps) < 1 / 8, 0, coin.integers(0, len(tables), n_reps))
        shape = table.rewards.shape[1:]
        rewards = np.stack([one.rewards for one in tables])[chosen, record]
        before = np.where(_each(coin.random(n_reps) < 0.5, shape), _drawn(values[0], n_reps, shape, coin), rewards)
        after = _drawn(values[1], n_reps, shape, coin)
        is_between = beside.random(n_reps) < SHARE
        between = values[2].draw_rewards(int(is_between.sum()), beside)
        after[is_between] = _each(between, shape)
        same = (before == after).reshape(n_reps, -1).all(axis=1)
        low, high = table.reward_range.low, table.reward_range.high
        after[same] = np.where(before[same] < high, high, low)
        covariates, hidden, moved = None, np.full(n_reps, -1, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if table.covariates is not None:
            mine, theirs = costly_covariates(table, record, private_records, coin)
            moved = np.flatnonzero(beside.random(n_reps) < SHARE)
            mine[moved] = values[2].draw_covariates(table, len(moved), beside)
            stays = moved[beside.random(len(moved)) < 0.5] if private_records else moved
            theirs[stays] = mine[stays]
            hidden = np.where((mine != theirs).reshape(n_reps, -1).any(axis=1), record, -1)
            covariates = np.concatenate([mine, theirs])
        both = np.concatenate([before, after])
        wide = Interval(min(low, float(both.min())), max(high, float(both.max())))
        rows = table.with_rows(both, covariates, wide)
        kind = coin.random(n_reps) / _FIRST_READERS
        any_release = np.where(kind < 2, coin.integers(0, most_releases, n_reps), NEVER)
        widened = np.where(kind < 1, FIRST_READER, any_release)
        return cls(tables, chosen, record, rows, hidden, widened, int(sequence.generate_state(1)[0]), between, moved)

    def unmoved(self) -> Batch:
        """The same cases, with the data set's own covariates in place of drawn ones."""
        kept, n_reps, moved = self.rows.covariates, len(self.record), self.moved
        assert kept is not None
        kept = kept.copy()
        kept[moved] = kept[n_reps + moved] = self.tables[0].covariates[self.record[moved]]  # type: ignore[index]
        rows = self.rows.with_rows(self.rows.rewards, kept)
        return replace(self, rows=rows, hidden=np.where(np.isin(np.arange(n_reps), moved), -1, self.hidden), moved=moved[:0])

    def play(self, algorithm: Algorithm) -> tuple[Sides, str]:
        """Runs all cases at once, on both sides; with noise of its own size where the algorithm raises under any other."""
        n_reps, stack = len(self.record), self.tables[0].stack
        data, neighbor = (
            stack(self.tables, self.table, self.record, self.rows, np.arange(n_reps) + first) for first in (0, n_reps)
        )
        given = algorithm, (data, neighbor), self.seed, self.case, self.record, self.hidden
        try:
            return play_streams(*given, self.wide), ""
        except Exception as error:  # what anybody's code does with noise that it never met before
            return play_streams(*given), _shown(error)

    def case(self, rep: int) -> Case:
        """Returns the case that a replicate plays."""
        table, record, n_reps = self.tables[self.table[rep]], int(self.record[rep]), len(self.record)
        rewards, kept = self.rows.rewards[[rep, n_reps + rep]], self.rows.covariates
        mine, theirs = (None, None) if kept is None else kept[[rep, n_reps + rep]]
        span = self.rows.reward_range
        data = table.replaced(record, rewards[0], covariates=mine)
        return Case.of(Pair(data, data.replaced(record, rewards[1], span, theirs), record), self.seed)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".partition("\n")[0][:_LONGEST_ERROR]


def _contexts(table: Table, inside: list[float], coin: np.random.Generator) -> Iterator[Table]:
    """Tables on which decisions are close, totals take every value, and streaks are long; the first is the data's own."""
    yield table
    shape, n_users = table.rewards.shape, table.n_users
    low, high = table.reward_range.low, table.reward_range.high
    middle = low + table.reward_range.width / 2
    turns = np.where(np.arange(n_users) % 2, high, low)
    columns = [np.full(n_users, low), np.full(n_users, high), np.full(n_users, middle), turns]
    for column in columns:
        yield table.with_rewards(np.broadcast_to(_each(column, shape[1:]), shape))
    for place in range(_N_TABLES):
        share = coin.random(shape[1:])
        rewards = np.where(coin.random(shape) < share, high, low)
        if place % 4 == 1:  # streaks: each reward repeats that of some rounds before
            length = int(coin.integers(2, 9))
            rewards = np.repeat(rewards[::length], length, axis=0)[:n_users]
        if place % 4 == 2:  # all arms alike, so that what is played does not matter
            rewards = np.broadcast_to(rewards.reshape(n_users, -1)[:, :1].reshape(n_users, *[1] * (len(shape) - 1)), shape)
        if place % 4 == 3:
            rewards = np.array(inside)[coin.integers(0, len(inside), shape)]
        yield table.with_rewards(rewards)


def _drawn(values: list[float], n_reps: int, shape: tuple[int, ...], coin: np.random.Generator) -> FloatArray:
    """(n_reps, *shape) listed values: in three cases of four one for the whole record, else one an entry."""
    listed = np.array(values)
    whole = _each(listed[coin.integers(0, len(listed), n_reps)], shape)
    return np.where(_each(coin.random(n_reps) < 0.75, shape), whole, listed[coin.integers(0, len(listed), (n_reps, *shape))])


def _each(values: NDArray[np.generic], shape: tuple[int, ...]) -> NDArray[np.generic]:
    """(n, 1, ...) so that one value a row meets records of the given shape."""
    return values.reshape(len(values), *[1] * len(shape))


def costly_covariates(
    table: DataSet, record: IntArray, private_records: bool, coin: np.random.Generator
) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """(n_reps, ...) covariates on both sides: the user's own; for half of the private ones a costly change, or another's."""
    own = table.covariates
    assert own is not None
    mine, theirs = own[record].copy(), own[record].copy()
    if not private_records:
        return mine, theirs
    changes = [change.covariates for change in table.changes() if change.covariates is not None]
    moves = np.flatnonzero(coin.random(len(record)) < 0.5)
    for rep in moves:
        kind = int(coin.integers(0, len(changes) + 1))
        if kind < len(changes):
            mine[rep], theirs[rep] = (table.covariates_of(short) for short in changes[kind])
        else:
            theirs[rep] = own[int(coin.integers(0, table.n_users))]
    return mine, theirs


def shorter(
    algorithm: Algorithm, counterexample: Counterexample, reward_range: Interval, claim: GaussianDP | None
) -> Counterexample:
    """A counterexample on fewer rounds and a plainer table, where a few replicates show it; else what was found."""

    def examine(case: Case) -> Counterexample | None:
        for seed in range(_ATTEMPTS):
            again = checks.first_violation(play(algorithm, replace(case, seed=seed), reward_range), claim)
            if again is not None:
                return again
        return None

    small = examine(counterexample.case)
    if small is None:
        return counterexample
    for changed in _plainer(small.case, reward_range):
        small = examine(changed) or small
    least = max(small.case.record, algorithm.n_actions) + 1
    low, high = least, len(small.case.rewards)
    while low < high:
        middle = (low + high) // 2
        if (again := examine(_first(small.case, middle))) is not None:
            small, high = again, middle
        else:
            low = middle + 1
    return small


def _plainer(case: Case, reward_range: Interval) -> Iterator[Case]:
    """Cases with all other rewards at one end, then with a simpler change."""
    record, row = case.record, case.rewards[case.record]
    for value in (reward_range.high, reward_range.low):
        rows = [(value,) * len(row)] * len(case.rewards)
        rows[record] = row
        yield replace(case, rewards=tuple(rows))


def _first(case: Case, rounds: int) -> Case:
    """The first rounds of a case."""
    covariates = None if case.covariates is None else case.covariates[:rounds]
    return replace(case, rewards=case.rewards[:rounds], covariates=covariates)
