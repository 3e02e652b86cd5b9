"""The records that no other outdoes, against a table of what every record of every replicate paid for."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import first

from bandana.privacy_core import (
    ZCDP,
    ConcentratedEvent,
    DiscreteGaussian,
    Exact,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    NoPrivacy,
    PrivacyCurve,
    PureDP,
    Relation,
    TrustModel,
)
from bandana.privacy_core.accounting.book import Book, _unsurpassed

N_RECORDS = 12
GAUSSIANS = [Gaussian(1.0, 1.0), Gaussian(1.0, 2.0), Gaussian(1.0, 0.7)]
LAPLACES = [Laplace(1.0, 1.5), Laplace(1.0, 4.0)]
DISCRETE = [DiscreteGaussian(1.0, 1.0, 1.0), DiscreteGaussian(1.0, 3.0, 1.0)]


@st.composite
def releases(draw, mechanisms, n_reps):
    """Mechanism, replicates, and a span for each, empty ones too."""
    reps = sorted(draw(st.sets(st.integers(0, n_reps - 1), min_size=1)))
    if draw(st.booleans()):
        reps = list(range(n_reps))
    starts = [draw(st.integers(0, N_RECORDS)) for _ in reps]
    stops = [draw(st.integers(start, N_RECORDS)) for start in starts]
    if draw(st.booleans()):
        starts, stops = starts[:1] * len(reps), stops[:1] * len(reps)
    whole = len(reps) == n_reps and draw(st.booleans())
    return draw(st.sampled_from(mechanisms)), None if whole else np.array(reps), starts, stops


def do(ledger, release):
    mechanism, reps, starts, stops = release
    ledger.release(mechanism, np.zeros(len(starts)), records=span(starts, stops), reps=reps)


def paid(entries, n_reps, before=None, rep=None):
    """The events on each record of each replicate that has any."""
    table = [[Counter() for _ in range(N_RECORDS)] for _ in range(n_reps)]
    for mechanism, reps, starts, stops in entries:
        for owner, start, stop in zip(range(n_reps) if reps is None else reps, starts, stops, strict=True):
            if before is None or stop <= before:
                for record in range(start, stop):
                    table[owner][record][mechanism.event] += 1
    rows = table if rep is None else [table[rep]]
    return [cell for row in rows for cell in row if cell]


def amounts(events):
    """What is compared: mu^2 of all Gaussians, rho of all concentrated ones, the number of each Laplace event."""
    gaussian = sum(e.rho * n for e, n in events.items() if isinstance(e, GaussianEvent))
    concentrated = sum(e.rho * n for e, n in events.items() if isinstance(e, ConcentratedEvent))
    return np.array([gaussian, concentrated, *(events[mechanism.event] for mechanism in LAPLACES)])


def outdoes(first, second):
    """At least as much of each."""
    return bool((amounts(first) >= amounts(second) * (1 - 1e-9)).all())


def is_as_bad(first, second):
    """The same, or a dearer Laplace event in place of a cheaper one: each of the second's has its own in the first."""
    one, other = (sorted((e.epsilon for e in events.elements() if isinstance(e, LaplaceEvent)), reverse=True)
                  for events in (first, second))  # fmt: skip
    has_more = len(one) >= len(other) and all(a >= b for a, b in zip(one, other, strict=False))
    return has_more and bool((amounts(first)[:2] >= amounts(second)[:2] * (1 - 1e-9)).all())


MIXES = {
    "Gaussian": GAUSSIANS,
    "Laplace": LAPLACES,
    "Gaussian and Laplace": GAUSSIANS[:2] + LAPLACES,
    "discrete and Gaussian": DISCRETE + GAUSSIANS[:2],
    "all": GAUSSIANS[:2] + LAPLACES + DISCRETE,
}


@pytest.mark.parametrize("n_reps", [1, 3])
@pytest.mark.parametrize("mix", MIXES)
@pytest.mark.parametrize("max_examples", first(1, [20, 60]))
def test_the_worst_records_are_those_that_no_other_outdoes(mix, n_reps, max_examples):
    @settings(max_examples=max_examples)
    @given(st.lists(releases(MIXES[mix], n_reps), max_size=16), st.integers(0, N_RECORDS), st.integers(0, n_reps - 1))
    def check(entries, before, rep):
        ledger = LiveLedger(n_reps, ConstantNoise())
        for entry in entries:
            do(ledger, entry)
        for filters in ({}, {"before": before}, {"rep": rep}, {"before": before, "rep": rep}):
            table = paid(entries, n_reps, **filters)
            found = ledger.worst_records(**filters)
            assert bool(found) == bool(table)
            assert all(any(events == cell for cell in table) for events in found), "the events are those of one record"
            assert all(any(is_as_bad(events, cell) for events in found) for cell in table), "nothing worse is left out"
            for events in found:
                others = [other for other in found if other is not events]
                assert not any(outdoes(other, events) for other in others), "and nothing is told twice"

    check()


@pytest.mark.parametrize("max_examples", first(1, [12, 40]))
def test_the_worst_record_has_the_largest_epsilon(max_examples):
    mixed = releases(MIXES["Gaussian and Laplace"], 2)

    @settings(max_examples=max_examples)
    @given(st.lists(mixed, min_size=1, max_size=8), st.sampled_from([1e-3, 1e-6, 1e-10]))
    def check(entries, delta):
        ledger = LiveLedger(2, ConstantNoise())
        for entry in entries:
            do(ledger, entry)
        table = paid(entries, 2)
        found = ledger.worst_record(delta=delta)
        if not table:
            assert found == Counter()
            assert ledger.curve() is ledger.guarantee() is None
            return
        distinct = {tuple(sorted(cell.items(), key=str)) for cell in table}
        largest = max(PrivacyCurve.of(dict(cell)).epsilon(delta) for cell in distinct)
        # Which of two records that agree to 12 digits is told is open.
        assert PrivacyCurve.of(found).epsilon(delta) == pytest.approx(largest, rel=1e-9)
        assert ledger.curve().epsilon(delta) == pytest.approx(largest, rel=1e-9)

    check()


@settings(max_examples=60)
@given(st.data())
def test_the_guarantee_is_that_of_the_worst_record(data):
    mix = data.draw(st.sampled_from(["Gaussian", "Laplace", "discrete and Gaussian"]))
    entries = data.draw(st.lists(releases(MIXES[mix], 2), min_size=1, max_size=10))
    ledger = LiveLedger(2, ConstantNoise(), trust=TrustModel.LOCAL)
    for entry in entries:
        do(ledger, entry)
    table, found = paid(entries, 2), ledger.guarantee()
    if not table:
        assert found is None
        return
    assert (found.relation, found.trust) == (Relation.REPLACE_RECORD, TrustModel.LOCAL)
    assert (ledger.curve().relation, ledger.curve().trust) == (found.relation, found.trust)
    rho = max(sum(e.rho * n for e, n in cell.items()) for cell in table)
    match mix, found:
        case "Gaussian", GaussianDP(mu):
            assert mu == pytest.approx(math.sqrt(2 * rho), rel=1e-12)
            assert found.epsilon(1e-5) == pytest.approx(ledger.curve().epsilon(1e-5), rel=1e-12)
        case "Laplace", PureDP(epsilon):
            assert epsilon == pytest.approx(max(sum(e.epsilon * n for e, n in cell.items()) for cell in table), rel=1e-12)
        case "discrete and Gaussian", ZCDP(bound):
            assert bound == pytest.approx(rho, rel=1e-12)
        case "discrete and Gaussian", GaussianDP(mu):
            assert not any(isinstance(e, ConcentratedEvent) for cell in table for e in cell)
            assert mu == pytest.approx(math.sqrt(2 * rho), rel=1e-12)
        case _, PrivacyCurve():  # several records, of which none outdoes the others
            assert len(ledger.worst_records()) > 1
            assert found == ledger.curve()
            assert all(found.epsilon(1e-5) >= PrivacyCurve.of(cell).epsilon(1e-5) - 1e-12 for cell in table)
        case _:
            pytest.fail(f"{found} for {mix}")


def test_many_kinds_of_laplace_noise_add():
    """More than the eight kinds that are told apart."""
    ledger = LiveLedger(1, ConstantNoise())
    for i in range(20):
        ledger.release(Laplace(1.0, 10.0 + i), np.zeros(1), records=span(i, 40 - i))
    assert ledger.guarantee().epsilon == pytest.approx(sum(1 / (10 + i) for i in range(20)), rel=1e-12)
    assert ledger.worst_records() == [{LaplaceEvent(10.0 + i): 1 for i in range(20)}]


@pytest.mark.parametrize("with_gaussian", [False, True])
def test_many_kinds_of_laplace_noise_hide_no_record(with_gaussian):
    ledger = LiveLedger(1, ConstantNoise())
    for i in range(10):
        for _ in range(12):
            ledger.release(Laplace(1.0, 100.0 + i), np.zeros(1), records=span(0, 1))
    ledger.release(Laplace(1.0, 1.0), np.zeros(1), records=span(1, 2))
    lonely = {LaplaceEvent(1.0): 1}
    if with_gaussian:
        ledger.release(Gaussian(1.0, 5.0), np.zeros(1), records=span(0, 2))
        lonely[GaussianEvent(5.0)] = 1
    assert ledger.curve().epsilon(1e-5) >= PrivacyCurve.of(lonely).epsilon(1e-5)
    assert ledger.worst_record(delta=1e-5) == lonely


def test_very_many_kinds_of_laplace_noise_hide_no_record():
    ledger = LiveLedger(1, ConstantNoise())
    for i in range(70):
        for _ in range(2):
            ledger.release(Laplace(1.0, 100.0 + i), np.zeros(1), records=span(0, 1))
    # One release of 0.91 is far worse at delta = 1e-5 than 140 of 0.006 to 0.01, although these add up to 1.06.
    ledger.release(Laplace(1.0, 1.1), np.zeros(1), records=span(1, 2))
    assert ledger.curve().epsilon(1e-5) >= PrivacyCurve.of({LaplaceEvent(1.1): 1}).epsilon(1e-5)


def test_records_without_overlap():
    """No record is charged twice: of each kind of noise the most costly remains."""
    ledger = LiveLedger(2, ConstantNoise())
    for i, mechanism in enumerate([GAUSSIANS[1], LAPLACES[0], GAUSSIANS[2], DISCRETE[1], LAPLACES[1], DISCRETE[0]]):
        ledger.release(mechanism, np.zeros(2), records=span([2 * i, 2 * i], [2 * i + 1, 2 * i + 2]))
    expected = [{GAUSSIANS[2].event: 1}, {LAPLACES[0].event: 1}, {DISCRETE[0].event: 1}]
    assert sorted(map(str, ledger.worst_records())) == sorted(str(Counter(events)) for events in expected)
    assert type(ledger.guarantee()) is PrivacyCurve


def test_empty_spans_touch_nobody():
    ledger = LiveLedger(2, ConstantNoise())
    for records in (span(3, 3, 2), span([3, 5], [3, 5]), span(0, 0, 2)):
        ledger.release(GAUSSIANS[0], np.zeros(2), records=records)
    assert ledger.noise.calls == 3
    assert ledger.worst_records() == ledger.worst_records(rep=1) == []
    assert ledger.worst_record() == Counter()
    assert ledger.guarantee() is ledger.curve() is None
    # In one replicate only.
    ledger.release(GAUSSIANS[0], np.zeros(2), records=span([0, 7], [0, 8]))
    assert ledger.worst_records() == ledger.worst_records(rep=1) == [{GaussianEvent(1.0): 1}]
    assert ledger.worst_records(rep=0) == []


def test_relations_do_not_mix():
    ledger = LiveLedger(1, ConstantNoise())
    assert ledger.relation is None
    ledger.release(Gaussian(1.0, 1.0, Relation.REPLACE_TRAJECTORY), np.zeros(1), records=span(0, 1))
    assert ledger.relation is Relation.REPLACE_TRAJECTORY
    for other in (Gaussian(1.0, 1.0), Laplace(1.0, 1.0, Relation.ADD_REMOVE), DiscreteGaussian(1.0, 1.0, 1.0)):
        with pytest.raises(ValueError, match="one neighboring relation: it is 'replace one trajectory', the mechanism's is"):
            ledger.release(other, np.zeros(1), records=span(0, 1))
    assert ledger.noise.calls == 1
    assert ledger.guarantee() == GaussianDP(1.0, relation=Relation.REPLACE_TRAJECTORY)
    # What bounds nothing may stand beside any relation.
    ledger.release(Exact(), np.zeros(1), records=span(4, 5))
    assert ledger.guarantee() == NoPrivacy(relation=Relation.REPLACE_TRAJECTORY)


def test_what_is_released_as_it_is():
    ledger = LiveLedger(2, ConstantNoise())
    ledger.release(GAUSSIANS[0], np.zeros(2), records=span(0, 5, 2))
    ledger.release(Exact(), np.zeros(1), records=span(2, 3), reps=np.array([1]))
    assert ledger.worst_records() == [{NonPrivateEvent(): 1}]
    assert ledger.worst_record() == {NonPrivateEvent(): 1}
    assert ledger.guarantee() == NoPrivacy()
    assert ledger.curve().epsilon(0.5) == math.inf
    assert ledger.noise.calls == 1


@pytest.mark.parametrize(
    ("n_reps", "n_charges"),
    [(1, 5_000), (4, 5_000), *(pytest.param(n, 100_000, marks=pytest.mark.nightly) for n in (1, 4))],
)
def test_many_charges(n_reps, n_charges):
    ledger = LiveLedger(n_reps, ConstantNoise(0.0), budget=GaussianDP(100.0), n_records=10**6)
    value = np.zeros(n_reps)
    total = n_charges // n_reps
    for i in range(total):
        if n_reps == 1 or i % 4:
            ledger.release(GAUSSIANS[i % 3], value, records=span(i, i + 1 + i % 5, n_reps))
        else:
            ledger.release(GAUSSIANS[i % 3], value, records=span([i, i + 1, i + 2, i], [i + 3] * 4))
    table = np.zeros(total + 8, dtype=np.longdouble)
    for i in range(total):
        if n_reps == 1 or i % 4:
            table[i : i + 1 + i % 5] += GAUSSIANS[i % 3].event.rho
        else:
            table[i : i + 3] += GAUSSIANS[i % 3].event.rho  # replicate 0
    found = ledger.worst_record(rep=0)
    assert sum(e.rho * n for e, n in found.items()) == pytest.approx(float(table.max()), rel=1e-12)
    assert ledger.guarantee().mu >= math.sqrt(2 * float(table.max())) * (1 - 1e-12)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_totals_are_compared_to_twelve_digits_whatever_their_size(unit):
    totals = [np.array(column, dtype=np.longdouble) * unit for column in ([2.0, 1.0, 1.0], [1.0, 2.0, 1.0])]
    assert sorted(_unsurpassed(totals)) == [0, 1]


@pytest.mark.parametrize("n_kinds", [5, 8, 9, 64, 65, 300])
def test_kinds_beyond_a_limit_count_as_the_most_costly_of_their_group(n_kinds):
    book = Book(1)
    for i in range(n_kinds):
        book.add(LaplaceEvent(1.0 + i), 0, 1, None)
    book.add(GaussianEvent(3.0), 0, 1, None)
    for n_edges, limit in ((10, 64), (10**7, 8)):
        events = book._told_apart(n_edges)
        assert events[-1] == GaussianEvent(3.0)
        assert all(event.noise_multiplier <= 1.0 + i for i, event in enumerate(events[:-1]))
        assert len(set(events[:-1])) == min(n_kinds, limit)
