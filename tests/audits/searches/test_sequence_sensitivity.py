"""The deterministic audit on sums that are paid for once: columns that are too long are found, honest ones are not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.audits.searches.checks import _outgrown
from bandana.audits.searches.deterministic import Case, examine, search
from bandana.privacy_core import (
    Carried,
    DoublingSum,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    Interval,
    LiveLedger,
    ReproducibleNoise,
    ScriptedLedger,
    Span,
    TreeSum,
)
from bandana.privacy_core.accounting.factorization import BufferedFactorization, DenseFactorization, factorize
from bandana.privacy_core.sums import RunningSum

UNIT = Interval(0.0, 1.0)
MECHANISM = Gaussian(1.0, 2.0)
CLAIM = GaussianDP(0.5)
N_ROUNDS = 12


@dataclass(frozen=True)
class Following:
    """A bandit of two arms that keeps the running sum of its rewards, and plays by the last answer's parity."""

    sums: RunningSum
    n_actions: int = 2
    reward_range: Interval = UNIT

    def init(self, n_reps):
        return self.sums.init(n_reps), np.zeros(n_reps)

    def act(self, released, context, step):
        return (np.floor(released) % 2).astype(np.int64)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive, released, record, ledger):
        sensitive = self.sums.add(sensitive, record.rewards[:, 0], record.n_records)
        sensitive, answer, _ = self.sums.close(sensitive, ledger)
        return sensitive, answer


class LongColumns(BufferedFactorization):
    """Column norms that are two thirds of the true ones: the columns of C have norm 1.5, and B C = A still holds."""

    stretch = 1.5

    @property
    def column_norms(self):
        return BufferedFactorization.column_norms.func(self) / self.stretch


class LongDenseColumns(DenseFactorization):
    stretch = 1.5

    @property
    def encoder(self):
        return DenseFactorization.encoder.func(self) * self.stretch

    @property
    def decoder(self):
        return DenseFactorization.decoder.func(self)


def plant(monkeypatch, kind, stretch=1.5):
    def planted(n_steps, n_buffers=None):
        honest = factorize(n_steps, n_buffers)
        buffers = (honest.theta, honest.omega) if isinstance(honest, BufferedFactorization) else ()
        found = kind(n_steps, *buffers)
        object.__setattr__(found, "stretch", stretch)
        return found

    monkeypatch.setattr("bandana.privacy_core.factorized.factorize", planted)


def case(record=0, change=1.0, n_rounds=N_ROUNDS):
    """Rewards of 0, and one record that answers `change` to either arm on the neighbor."""
    return Case(tuple((0.0, 0.0) for _ in range(n_rounds)), record, (change, change), 3)


HONEST = {
    "dense": FactorizedSum(MECHANISM, N_ROUNDS),
    "buffered": FactorizedSum(MECHANISM, N_ROUNDS, 2),
    "doubling": DoublingSum(partial(FactorizedSum, MECHANISM), 3, growth=2),
    "doubling buffered": DoublingSum(partial(FactorizedSum, MECHANISM, n_buffers=2), 3, growth=2),
}


@pytest.mark.parametrize("name", list(HONEST))
def test_an_honest_sum_has_no_counterexample(name):
    algorithm = Following(HONEST[name])
    for record in range(N_ROUNDS):
        assert examine(algorithm, case(record), UNIT, CLAIM) is None
    assert search(algorithm, UNIT, CLAIM, max_examples=60, max_rounds=N_ROUNDS) is None


@pytest.mark.parametrize("name", list(HONEST))
def test_the_claim_is_that_of_one_event(name):
    found = examine(Following(HONEST[name]), case(), UNIT, GaussianDP(0.499))
    assert found is not None
    assert "compose to 0.5-GDP" in str(found)


@pytest.mark.parametrize(
    ("sums", "kind"),
    [
        (HONEST["dense"], LongDenseColumns),
        (HONEST["buffered"], LongColumns),
        (HONEST["doubling"], LongDenseColumns),
        (HONEST["doubling buffered"], LongColumns),
    ],
    ids=list(HONEST),
)
@pytest.mark.parametrize("record", [0, 4])
def test_columns_that_are_too_long_are_found_although_each_row_is_within_bounds(monkeypatch, sums, kind, record):
    """A change of 0.75 moves no row by more than 1, and all rows together by 1.125."""
    algorithm = Following(sums)
    assert examine(algorithm, case(record, 0.75), UNIT, CLAIM) is None
    plant(monkeypatch, kind)
    found = examine(algorithm, case(record, 0.75), UNIT, CLAIM)
    assert found is not None
    assert found.release == -1
    assert "the rows of the sequence '' together moved by 1.125, 1.125 times the sensitivity 1 that is paid for once" in str(
        found
    )
    marked = [row for row in found.rows if row.is_offending]
    assert all(0 < row.moved <= row.allowed == 1.0 for row in marked)
    assert sum(row.moved**2 for row in marked) == pytest.approx(1.125**2)
    assert any(line.startswith("the rows that are marked, as one vector, together moved by 1.125") for line in found.lines())
    assert found.describe()["total"]["found"] == pytest.approx(1.125)


@pytest.mark.parametrize(("name", "kind"), [("dense", LongDenseColumns), ("buffered", LongColumns)])
def test_the_search_finds_them_by_itself(monkeypatch, name, kind):
    plant(monkeypatch, kind)
    found = search(Following(HONEST[name]), UNIT, CLAIM, max_examples=60, max_rounds=N_ROUNDS)
    assert found is not None
    assert "times" in found.reason


@pytest.mark.parametrize("stretch", [1.0, 1.0 + 1e-12])
def test_rounding_is_no_violation(monkeypatch, stretch):
    plant(monkeypatch, LongColumns, stretch)
    for record in range(N_ROUNDS):
        assert examine(Following(HONEST["buffered"]), case(record), UNIT, CLAIM) is None


def test_one_part_in_a_million_is(monkeypatch):
    plant(monkeypatch, LongColumns, 1 + 1e-6)
    found = examine(Following(HONEST["buffered"]), case(), UNIT, CLAIM)
    assert found is not None
    assert "together moved by 1," in found.reason


def test_a_row_that_alone_is_too_large_is_found_first(monkeypatch):
    plant(monkeypatch, LongColumns, 3.0)
    found = examine(Following(HONEST["buffered"]), case(), UNIT, CLAIM)
    assert found is not None
    assert found.release == 0
    assert "times its sensitivity" in found.reason


@dataclass(frozen=True)
class EnteringTwice(Following):
    """0.7 times every reward enters with its own step, and 0.7 times with the next one."""

    def init(self, n_reps):
        return (self.sums.init(n_reps), np.zeros(n_reps)), np.zeros(n_reps)

    def absorb(self, sensitive, released, record, ledger):
        state, last = sensitive
        state = self.sums.add(state, 0.7 * (record.rewards[:, 0] + last), record.n_records)
        state, answer, _ = self.sums.close(state, ledger)
        return (state, record.rewards[:, 0].copy()), answer


@pytest.mark.parametrize("record", range(N_ROUNDS - 2))
@pytest.mark.parametrize("name", ["dense", "buffered"])
def test_a_record_that_enters_two_steps_is_found(name, record):
    """No row moves by more than 1 and none reads beyond its records, but the record's vector is two columns long."""
    found = examine(EnteringTwice(HONEST[name]), case(record), UNIT, CLAIM)
    assert found is not None
    assert "the rows of the sequence '' together moved by" in found.reason


class Denying:
    """A ledger's door behind which every row claims to begin a sequence of its own."""

    def __init__(self, ledger):
        self.ledger, self.n_reps = ledger, ledger.n_reps

    def release(self, mechanism, value, *, records, reps=None, carried=None):
        return self.ledger.release(
            mechanism, value, records=records, reps=reps, carried=Carried(carried.label, records.start.copy())
        )


@dataclass(frozen=True)
class ForgetfulSum(FactorizedSum):
    def push(self, memory, value, records, ledger, reps):
        return super().push(memory, value, records, Denying(ledger), reps)


@pytest.mark.parametrize("n_buffers", [None, 2])
def test_rows_that_hide_what_they_carry_are_found(n_buffers):
    """The ledger takes each for the first row of a new sequence; the values say otherwise."""
    algorithm = Following(ForgetfulSum(MECHANISM, N_ROUNDS, n_buffers))
    found = examine(algorithm, case(3), UNIT, CLAIM)
    assert found is not None
    assert found.release == 4
    assert "release 4 declares the records [4, 5), yet its exact value moved" in found.reason


class Twice:
    """Releases two rows by hand, for each of four replicates: the exact values are what the caller says."""

    def __init__(self, ledger):
        self.ledger = ledger

    def row(self, value, start, stop, label="", mechanism=MECHANISM, reps=None):
        n_rows = 4 if reps is None else len(reps)
        records = Span(np.full(n_rows, start), np.full(n_rows, stop))
        self.ledger.release(
            mechanism,
            np.full(n_rows, value),
            records=records,
            reps=reps,
            carried=Carried(label, np.zeros(n_rows, dtype=int)),
        )
        return self


def compared(*sides):
    """`_outgrown` on what a live and a scripted ledger saw."""
    live = LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    sides[0](Twice(live))
    scripted = ScriptedLedger(4, live.transcript, keeps_values=True)
    sides[1](Twice(scripted))
    scripted.finish()
    assert (scripted.diverged == -1).all()
    return _outgrown(live, scripted)


def test_squares_add_over_the_rows_of_a_sequence():
    def side(first, second):
        return lambda book: book.row(first, 0, 1).row(second, 1, 2)

    assert compared(side(0.0, 0.0), side(0.6, 0.8)) is None
    assert compared(side(0.0, 0.0), side(-0.6, 0.8)) is None
    label, worst, limit, _ = compared(side(0.0, 0.0), side(0.9, -1.2))
    assert (label, limit) == ("", 1.0)
    assert worst == pytest.approx(1.5)


def test_sequences_are_told_apart_by_their_label():
    def side(first, second):
        return lambda book: book.row(first, 0, 1, "a").row(second, 0, 1, "b")

    assert compared(side(0.0, 0.0), side(0.9, 0.9)) is None
    assert compared(side(0.0, 0.0), side(0.9, 1.1)) == pytest.approx(("b", 1.1, 1.0, 0))


def test_replicates_are_told_apart():
    def side(first, second, third):
        evens, odds = np.array([0, 2]), np.array([1, 3])
        return lambda book: book.row(first, 0, 1, reps=evens).row(second, 0, 1, reps=odds).row(third, 1, 2)

    assert compared(side(0, 0, 0), side(0.9, 0.3, 0.3)) is None
    label, worst, limit, replicate = compared(side(0, 0, 0), side(0.3, 0.9, 0.9))
    assert (label, limit, replicate) == ("", 1.0, 1)
    assert worst == pytest.approx(0.9 * np.sqrt(2))


def test_releases_that_carry_nobody_are_not_added_up():
    """A tree pays for each node."""
    data = RewardTable([(0.0, 0.0)] * 8, UNIT)
    algorithm = Following(TreeSum(MECHANISM, 8))
    live = LiveLedger(4, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    run(algorithm, data, live)
    scripted = ScriptedLedger(4, live.transcript, keeps_values=True)
    run(algorithm, data.replaced(0, (1.0, 1.0)), scripted)
    assert (
        sum(abs(value[0] - release.value[0]) for release, value in zip(live.transcript, scripted.values, strict=True)) == 4
    )
    assert _outgrown(live, scripted) is None
    assert examine(algorithm, case(0, n_rounds=8), UNIT, GaussianDP(1.0)) is None
    assert examine(algorithm, case(0, n_rounds=8), UNIT, GaussianDP(0.999)) is not None
