"""What charges of a book compose to, by hand and record by record."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.audits.claims import parse
from bandana.flows.annexes.books.bookkeeping import spending
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.own.budgets import BudgetSpec
from bandana.privacy_core import (
    ApproxDP,
    Exact,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    NoNoise,
    NonPrivateEvent,
    PrivacyCurve,
    PureDP,
    PureEvent,
    ReproducibleNoise,
    Span,
)
from bandana.privacy_core.checks import LEAST_LEVEL, MOST_DELTA, MOST_LEVEL

BUDGET = ApproxDP(3.0, 1e-6)


def charge(events, start=0, stop=10, **facts):
    return Charge(events, start, stop, facts)


def test_gaussian_runs_over_the_same_rows_compose_to_one_curve():
    charges = [charge({GaussianEvent(10.0): 4}), charge({GaussianEvent(5.0): 3})]
    mu = math.sqrt(4 * 0.01 + 3 * 0.04)
    assert spending.level(charges, BUDGET) == pytest.approx(mu**2)
    assert spending.epsilon_of(charges, BUDGET) == pytest.approx(GaussianDP(mu).epsilon_at(1e-6))
    full = GaussianDP.from_epsilon_delta(3.0, 1e-6).mu
    assert spending.left(mu**2, BUDGET) == pytest.approx(GaussianDP(math.sqrt(full**2 - mu**2)).epsilon_at(1e-6))


def test_disjoint_users_compose_in_parallel():
    first, second, both = (charge({GaussianEvent(4.0): 1}, *span) for span in ((0, 5), (5, 9), (2, 7)))
    one = spending.epsilon_of([first], BUDGET)
    assert spending.epsilon_of([first, second], BUDGET) == one
    assert spending.epsilon_of([first, second, both], BUDGET) == spending.epsilon_of(
        [charge({GaussianEvent(4.0): 2})], BUDGET
    )


def test_gaussian_and_pure_runs_are_one_curve():
    events = {GaussianEvent(2.0): 3, PureEvent(0.2): 2}
    charges = [charge({event: n}) for event, n in events.items()]
    assert spending.epsilon_of(charges, BUDGET) == PrivacyCurve.of(events).epsilon(1e-6)
    assert spending.at(spending.level(charges, BUDGET), BUDGET) > spending.epsilon_of(charges, BUDGET), (
        "a filter counts more"
    )


def test_a_pure_budget_adds_epsilons_and_refuses_gaussian_noise():
    charges = [charge({PureEvent(0.5): 2}), charge({LaplaceEvent(4.0): 1}, 0, 3)]
    assert spending.epsilon_of(charges, PureDP(2.0)) == pytest.approx(1.25)
    assert spending.left(1.25, PureDP(2.0)) == pytest.approx(0.75)
    assert spending.left(2.5, PureDP(2.0)) == 0.0
    with pytest.raises(ValueError, match="cannot count GaussianEvent"):
        spending.level([charge({GaussianEvent(1.0): 1})], PureDP(2.0))


spans = st.tuples(st.integers(0, 9), st.integers(1, 10)).map(lambda ends: (min(ends), max(min(ends) + 1, *ends)))
events = st.sampled_from([GaussianEvent(3.0), GaussianEvent(7.0), LaplaceEvent(5.0)])


@settings(max_examples=10)
@given(st.lists(st.tuples(spans, events, st.integers(1, 4)), min_size=1, max_size=8))
def test_each_record_pays_for_the_charges_that_hold_it(given_charges):
    charges = [charge({event: n}, *span) for span, event, n in given_charges]
    paid = [Counter() for _ in range(11)]
    for (start, stop), event, n in given_charges:
        for record in range(start, stop):
            paid[record][event] += n
    costs = [math.fsum(spending.cost_of(event, GaussianDP(1.0)) * n for event, n in one.items()) for one in paid]
    assert spending.level(charges, BUDGET) == pytest.approx(max(costs))
    if not any(isinstance(event, LaplaceEvent) for _, event, _ in given_charges):
        assert spending.epsilon_of(charges, BUDGET) == pytest.approx(GaussianDP(math.sqrt(max(costs))).epsilon_at(1e-6))
    else:
        by_hand = max(PrivacyCurve.of(one).delta(1.0) for one in paid if one)
        assert spending.composed(charges).delta(1.0) == pytest.approx(by_hand)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.lists(spans, min_size=3, max_size=3), events), min_size=1, max_size=5))
def test_replicates_over_the_same_records_compose(releases):
    """Against counting every record by hand, in three replicates; with one kind of noise the worst record is exact."""
    ledger = LiveLedger(3, ReproducibleNoise(np.random.SeedSequence(1)))
    paid = [Counter() for _ in range(11)]
    for found, event in releases:
        noise = Laplace if isinstance(event, LaplaceEvent) else Gaussian
        starts, stops = (np.array(ends) for ends in zip(*found, strict=True))
        ledger.release(noise(1.0, event.noise_multiplier), np.zeros(3), records=Span(starts, stops))
        for start, stop in found:
            for record in range(start, stop):
                paid[record][event] += 1
    total = ledger.composed_record()
    gaussian = [sum(e.rho * n for e, n in one.items() if isinstance(e, GaussianEvent)) for one in (*paid, total)]
    assert max(gaussian[:-1]) <= gaussian[-1] * (1 + 1e-9)
    assert max(one[LaplaceEvent(5.0)] for one in paid) <= total[LaplaceEvent(5.0)]
    if LaplaceEvent(5.0) not in total:
        assert max(gaussian[:-1]) == pytest.approx(gaussian[-1])


def test_of_a_run_without_noise_nothing_composes():
    ledger = LiveLedger(2, NoNoise())
    assert ledger.composed_record() == {}
    ledger.release(Exact(), np.zeros(2), records=Span(np.zeros(2, int), np.ones(2, int)))
    assert ledger.composed_record() == {NonPrivateEvent(): 1}


@given(st.dictionaries(events | st.sampled_from([PureEvent(0.3)]), st.integers(1, 10**6), max_size=4))
def test_events_are_read_as_they_were_written(found):
    assert spending.read(spending.written(found)) == found


@pytest.mark.parametrize("epsilon", [LEAST_LEVEL, 1e-3, 1.0, 1e3, MOST_LEVEL])
@pytest.mark.parametrize("delta", [None, 1e-300, 1e-12, MOST_DELTA])
def test_the_arithmetic_of_budgets_carries_every_level_that_is_taken(epsilon, delta):
    budget = BudgetSpec(epsilon=epsilon, delta=delta).guarantee
    left = spending.left(0.0, budget)
    assert math.isfinite(left)
    assert left == pytest.approx(epsilon, rel=1e-3)
    claim = f"pure(epsilon={epsilon}" if delta is None else f"approx(epsilon={epsilon}, delta={delta}"
    assert math.isfinite(parse(f"{claim}, relation=record)").gaussian.mu)
