"""The sweep over span ends and the budget's filter, each against a table of records x replicates."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.privacy_core import BudgetExceeded, Exact, Gaussian, GaussianDP, Laplace, LiveLedger, PureDP

N_REPS, N_RECORDS = 3, 8
MECHANISMS = [Gaussian(1.0, 1.0), Gaussian(1.0, 2.0), Gaussian(5.0, 0.5), Gaussian(1.0, 3.0)]


@st.composite
def releases(draw):
    """One release: mechanism, the replicates, and a span for each."""
    reps = draw(st.sets(st.integers(0, N_REPS - 1), min_size=1).map(sorted))
    starts = [draw(st.integers(0, N_RECORDS - 1)) for _ in reps]
    stops = [draw(st.integers(start + 1, N_RECORDS)) for start in starts]
    whole = len(reps) == N_REPS and draw(st.booleans())
    return draw(st.sampled_from(MECHANISMS)), None if whole else np.array(reps), starts, stops


class Book:
    """The events on every record of every replicate, one by one."""

    def __init__(self):
        self.events = [[Counter() for _ in range(N_RECORDS)] for _ in range(N_REPS)]
        self.stops = []

    def cells(self, release):
        _, reps, starts, stops = release
        for rep, start, stop in zip(range(N_REPS) if reps is None else reps, starts, stops, strict=True):
            for record in range(start, stop):
                yield rep, record

    def add(self, release, before=None):
        _, reps, starts, stops = release
        for rep, start, stop in zip(range(N_REPS) if reps is None else reps, starts, stops, strict=True):
            if before is None or stop <= before:
                for record in range(start, stop):
                    self.events[rep][record][release[0].event] += 1

    def worst(self, rep=None):
        rows = self.events if rep is None else [self.events[rep]]
        return max(rho(events) for row in rows for events in row)

    def holds(self, events, rep=None):
        rows = self.events if rep is None else [self.events[rep]]
        return any(cell == events for row in rows for cell in row)


def rho(events):
    return sum(event.rho * count for event, count in events.items())


def do(ledger, release):
    mechanism, reps, starts, stops = release
    return ledger.release(mechanism, np.zeros(len(starts)), records=span(starts, stops), reps=reps)


@settings(max_examples=150)
@given(st.lists(releases(), max_size=12), st.integers(0, N_RECORDS), st.integers(0, N_REPS - 1))
def test_the_worst_record(entries, before, rep):
    ledger, book, early = LiveLedger(N_REPS, ConstantNoise()), Book(), Book()
    for entry in entries:
        do(ledger, entry)
        book.add(entry)
        early.add(entry, before)
    for found, expected, only in [
        (ledger.worst_record(), book, None),
        (ledger.worst_record(rep=rep), book, rep),
        (ledger.worst_record(before=before), early, None),
        (ledger.worst_record(before=before, rep=rep), early, rep),
    ]:
        assert rho(found) == pytest.approx(expected.worst(only))
        assert expected.holds(found, only), "the events are those of one record"
    if entries:
        assert ledger.guarantee().mu == pytest.approx((2 * book.worst()) ** 0.5)


@settings(max_examples=150)
@given(st.lists(releases(), min_size=1, max_size=14), st.sampled_from([0.6, 1.0, 1.5, 2.0, 2.5, 3.3]))
def test_the_budget_as_a_filter(entries, mu):
    ledger, book = LiveLedger(N_REPS, ConstantNoise(), budget=GaussianDP(mu), keeps_transcript=True), Book()
    for entry in entries:
        before = max(rho(book.events[rep][record]) for rep, record in book.cells(entry))
        after = 2 * (before + entry[0].event.rho)
        calls, worst, kept = ledger.noise.calls, ledger.worst_record(), len(ledger.transcript)
        if after > mu**2 * (1 + 1e-6):
            with pytest.raises(BudgetExceeded, match=f"budget is {GaussianDP(mu)}"):
                do(ledger, entry)
            assert (ledger.noise.calls, ledger.worst_record(), len(ledger.transcript)) == (calls, worst, kept)
        else:
            do(ledger, entry)
            book.add(entry)
            assert ledger.noise.calls == calls + 1
        assert 2 * rho(ledger.worst_record()) <= mu**2 * (1 + 1e-9)
        assert rho(ledger.worst_record()) == pytest.approx(book.worst())


def test_a_refusal_leaves_the_ledger_usable():
    ledger = LiveLedger(2, ConstantNoise(), budget=GaussianDP(1.0))
    unit, both = Gaussian(1.0, 1.0), np.zeros(2)
    ledger.release(unit, both, records=span(0, 4, 2))
    with pytest.raises(BudgetExceeded, match=r"to 1\.41421-GDP; the budget is 1-GDP"):
        ledger.release(unit, both, records=span([4, 3], [6, 5]))
    # The refusal concerned replicate 1 only, but the call is one: nothing of it was charged to replicate 0.
    ledger.release(unit, np.zeros(1), records=span(4, 6), reps=np.array([0]))
    ledger.release(unit, np.zeros(1), records=span(4, 5), reps=np.array([1]))
    assert ledger.noise.calls == 3
    assert ledger.guarantee() == GaussianDP(1.0)


def test_no_budget_allows_a_value_as_it_is():
    ledger = LiveLedger(1, ConstantNoise(), budget=GaussianDP(1e6))
    with pytest.raises(BudgetExceeded, match="without noise"):
        ledger.release(Exact(), np.zeros(1), records=span(0, 1))
    assert ledger.guarantee() is None


def test_laplace_noise_is_charged_the_mu_that_it_really_has():
    """Pure epsilon is not epsilon-GDP: total variation tanh(epsilon / 2) against 2 Phi(epsilon / 2) - 1."""
    mechanism, cost = Laplace(1.0, 1.0), PureDP(1.0).gdp().mu
    assert cost > 1.2
    for mu in (1.0, cost * 0.999):
        with pytest.raises(BudgetExceeded):
            LiveLedger(1, ConstantNoise(), GaussianDP(mu)).release(mechanism, np.zeros(1), records=span(0, 1))
    ledger = LiveLedger(1, ConstantNoise(), GaussianDP((cost**2 + 1) ** 0.5))
    ledger.release(mechanism, np.zeros(1), records=span(0, 3))
    ledger.release(Gaussian(1.0, 1.0), np.zeros(1), records=span(2, 5))
    with pytest.raises(BudgetExceeded):
        ledger.release(Gaussian(1.0, 10.0), np.zeros(1), records=span(2, 3))
