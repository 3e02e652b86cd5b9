"""The budget in every currency, against a table of what each record of each replicate has spent."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import first

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    BudgetExceeded,
    DiscreteGaussian,
    Exact,
    Gaussian,
    GaussianDP,
    Laplace,
    LiveLedger,
    NoPrivacy,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)

N_RECORDS = 40
GAUSSIANS = [Gaussian(1.0, m) for m in (1.0, 2.0, 3.5)]
LAPLACES = [Laplace(2.0, m) for m in (1.0, 2.5, 7.0)]
DISCRETE = [DiscreteGaussian(1.0, m, 0.5) for m in (1.0, 2.2)]


def gdp_price(mechanism):
    m = mechanism.noise_multiplier
    return PureDP(1 / m).gdp().mu ** 2 if isinstance(mechanism, Laplace) else 1 / m**2


def rdp_price(alpha):
    def price(mechanism):
        m = mechanism.noise_multiplier
        if isinstance(mechanism, Laplace):
            terms = [
                math.log(alpha / (2 * alpha - 1)) + (alpha - 1) / m,
                math.log((alpha - 1) / (2 * alpha - 1)) - alpha / m,
            ]
            return float(np.logaddexp(*terms)) / (alpha - 1)
        return alpha / (2 * m**2)

    return price


CURRENCIES = {
    "GDP": (GaussianDP(1.6), GAUSSIANS + LAPLACES, gdp_price, 1.6**2),
    "zCDP": (ZCDP(1.3), GAUSSIANS + LAPLACES + DISCRETE, lambda mechanism: 0.5 / mechanism.noise_multiplier**2, 1.3),
    "RDP": (RenyiDP(3.0, 3.1), GAUSSIANS + LAPLACES + DISCRETE, rdp_price(3.0), 3.1),
    "RDP near 1": (RenyiDP(1.2, 1.5), GAUSSIANS + LAPLACES + DISCRETE, rdp_price(1.2), 1.5),
    "pure": (PureDP(2.03), LAPLACES, lambda mechanism: 1 / mechanism.noise_multiplier, 2.03),
    "pair": (ApproxDP(5.0, 1e-4), GAUSSIANS + LAPLACES, gdp_price, GaussianDP.from_epsilon_delta(5.0, 1e-4).mu ** 2),
}


@st.composite
def releases(draw, mechanisms, n_reps):
    """One release: to all replicates with one span, to all with spans of their own, or to some; spans may be empty."""
    mechanism = draw(st.sampled_from(mechanisms))
    kind = draw(st.sampled_from(["lockstep", "own", "some"]))
    n = n_reps if kind == "own" else 1
    reps = None
    if kind == "some":
        reps = np.array(sorted(draw(st.sets(st.integers(0, n_reps - 1), min_size=1))))
        n = len(reps)
    starts = [draw(st.integers(0, N_RECORDS)) for _ in range(n)]
    stops = [min(N_RECORDS, start + draw(st.sampled_from([0, 1, 1, 2, 3, 7, N_RECORDS]))) for start in starts]
    if kind == "lockstep":
        starts, stops = starts * n_reps, stops * n_reps
    return mechanism, reps, starts, stops


def cells(release):
    _, reps, starts, stops = release
    rows = range(len(starts)) if reps is None else reps
    return [(rep, slice(start, stop)) for rep, start, stop in zip(rows, starts, stops, strict=True)]


def do(ledger, release, value=0.0):
    mechanism, reps, starts, stops = release
    return ledger.release(mechanism, np.full(len(starts), value), records=span(starts, stops), reps=reps)


@pytest.mark.parametrize(
    ("currency", "n_reps"),
    # A lone replicate shares one step function with all; one currency shows that this is counted right.
    [*((name, 3) for name in CURRENCIES), *(pytest.param(name, 1, marks=() if name == "GDP" else pytest.mark.nightly)
                                            for name in CURRENCIES)],
)  # fmt: skip
@pytest.mark.parametrize("max_examples", first(1, [20, 60]))
def test_a_release_is_refused_exactly_when_a_record_would_overspend(currency, n_reps, max_examples):
    budget, mechanisms, price, limit = CURRENCIES[currency]

    @settings(max_examples=max_examples)
    @given(st.lists(releases(mechanisms, n_reps), min_size=10, max_size=60))
    def check(entries):
        ledger = LiveLedger(n_reps, ConstantNoise(), budget=budget, keeps_transcript=True, n_records=N_RECORDS)
        spent = np.zeros((n_reps, N_RECORDS))
        for entry in entries:
            amount = price(entry[0])
            most = max((float(spent[rep, records].max(initial=-1)) for rep, records in cells(entry)), default=-1)
            calls = ledger.noise.calls
            assert abs(most + amount - limit) > 1e-6, "no case may hang on rounding"
            if most >= 0 and most + amount > limit:
                kept = calls, len(ledger.transcript), ledger.worst_records()
                with pytest.raises(BudgetExceeded, match="would raise a record's privacy loss to"):
                    do(ledger, entry)
                assert (ledger.noise.calls, len(ledger.transcript), ledger.worst_records()) == kept
            else:
                assert (do(ledger, entry, 2.0) > 2.0).all()
                assert ledger.noise.calls == calls + 1
                for rep, records in cells(entry):
                    spent[rep, records] += amount
        assert spent.max() <= limit

    check()


@pytest.mark.parametrize("n_reps", [1, 2])
def test_nothing_is_lost_while_the_table_of_spans_grows(n_reps):
    """A step function of many steps is moved to larger memory in the middle of a charge."""
    half = Gaussian(1.0, 2.0**0.5)
    ledger = LiveLedger(n_reps, ConstantNoise(), budget=GaussianDP(1.0))
    ledger.release(Gaussian(1.0, 1e4), np.zeros(n_reps), records=span(0, 500, n_reps))
    ledger.release(Gaussian(1.0, 1e4), np.zeros(n_reps), records=span(0, 500, n_reps))
    for start in range(0, 500, 2):
        ledger.release(Gaussian(1.0, 1.01), np.zeros(n_reps), records=span(start, start + 1, n_reps))
        for records in (span(start, start + 1, n_reps), span(start, 500, n_reps)):
            with pytest.raises(BudgetExceeded):
                ledger.release(half, np.zeros(n_reps), records=records)
    assert ledger.guarantee().mu <= 1.0


@pytest.mark.parametrize("budget", [GaussianDP(1.0), ZCDP(0.5), RenyiDP(4.0, 2.0), ApproxDP(4.3771780956, 1e-5)], ids=str)
def test_the_last_release_that_fits_fits(budget):
    """Four releases of a quarter each, of which the sum is the budget up to rounding."""
    quarter = Gaussian(3.0, 2.0 * (1 + 1e-11))
    ledger = LiveLedger(1, ConstantNoise(), budget=budget)
    for _ in range(4):
        ledger.release(quarter, np.zeros(1), records=span(3, 5))
    with pytest.raises(BudgetExceeded):
        ledger.release(Gaussian(3.0, 1e3), np.zeros(1), records=span(4, 9))
    ledger.release(quarter, np.zeros(1), records=span(5, 9))
    assert ledger.noise.calls == 5
    assert ledger.guarantee().mu == pytest.approx(1.0)


def test_the_message_speaks_the_language_of_the_budget():
    cases = [
        (GaussianDP(1.0), Gaussian(1.0, 0.5), "to 2-GDP; the budget is 1-GDP"),
        (ZCDP(0.1), Gaussian(1.0, 1.0), "to 0.5-zCDP; the budget is 0.1-zCDP"),
        (RenyiDP(3.0, 0.1), Gaussian(1.0, 1.0), r"to \(3, 1.5\)-RDP; the budget is \(3, 0.1\)-RDP"),
        (PureDP(0.5), Laplace(1.0, 1.0), "to 1-DP; the budget is 0.5-DP"),
        (ApproxDP(1.0, 1e-5), Gaussian(1.0, 1.0), "to 1-GDP; the budget is 0.268051-GDP"),
    ]
    for budget, mechanism, message in cases:
        with pytest.raises(BudgetExceeded, match=message):
            LiveLedger(1, ConstantNoise(), budget).release(mechanism, np.zeros(1), records=span(0, 1))


@pytest.mark.parametrize(
    ("budget", "mechanism"),
    [
        (GaussianDP(9.0), DiscreteGaussian(1.0, 1.0, 1.0)),
        (ApproxDP(9.0, 1e-5), DiscreteGaussian(1.0, 1.0, 1.0)),
        (PureDP(9.0), DiscreteGaussian(1.0, 1.0, 1.0)),
        (PureDP(9.0), Gaussian(1.0, 1.0)),
    ],
    ids=str,
)
def test_what_a_currency_cannot_count(budget, mechanism):
    ledger = LiveLedger(1, ConstantNoise(), budget)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"cannot count .*; state the budget as zCDP or RDP, or change the mechanism"):
            ledger.release(mechanism, np.zeros(1), records=span(0, 1))
    assert ledger.noise.calls == 0
    assert ledger.guarantee() is None


@pytest.mark.parametrize("budget", [GaussianDP(1e6), ZCDP(1e6), RenyiDP(2.0, 1e6), PureDP(1e6), ApproxDP(1e3, 0.5)], ids=str)
def test_no_budget_allows_a_value_as_it_is(budget):
    ledger = LiveLedger(1, ConstantNoise(), budget)
    with pytest.raises(BudgetExceeded, match="without noise"):
        ledger.release(Exact(), np.zeros(1), records=span(0, 1))
    assert ledger.guarantee() is None
    assert ledger.transcript == []


def test_what_is_no_budget():
    with pytest.raises(ValueError, match=r"budget must be GDP, RDP, zCDP, pure or .*got no privacy"):
        LiveLedger(1, ConstantNoise(), NoPrivacy())


def test_a_budget_fixes_the_relation():
    ledger = LiveLedger(1, ConstantNoise(), GaussianDP(1.0, relation=Relation.ADD_REMOVE), trust=TrustModel.JOINT)
    with pytest.raises(ValueError, match="one ledger holds one neighboring relation: it is 'add or remove one record'"):
        ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 1))
    ledger.release(Gaussian(1.0, 2.0, Relation.ADD_REMOVE), np.zeros(1), records=span(0, 1))
    assert ledger.guarantee() == GaussianDP(0.5, relation=Relation.ADD_REMOVE, trust=TrustModel.JOINT)
    # A pair is kept as a GDP budget, of the same relation.
    pair = ApproxDP(1.0, 1e-5, relation=Relation.REPLACE_REWARD)
    assert LiveLedger(1, ConstantNoise(), pair).relation is Relation.REPLACE_REWARD


def test_noise_may_be_chosen_after_earlier_outputs():
    """All that is left is spent by a release whose noise depends on what came out."""
    ledger = LiveLedger(1, ConstantNoise(0.3), budget=GaussianDP(1.0))
    seen = ledger.release(Gaussian(1.0, 2.0), np.zeros(1), records=span(0, 10))
    left = math.sqrt(1.0 - 0.25)
    ledger.release(Gaussian(float(seen[0]), 1 / left), np.zeros(1), records=span(2, 4))
    with pytest.raises(BudgetExceeded):
        ledger.release(Gaussian(1.0, 50.0), np.zeros(1), records=span(3, 4))
    ledger.release(Gaussian(1.0, 1 / left), np.zeros(1), records=span(4, 10))
    assert ledger.guarantee().mu == pytest.approx(1.0, rel=1e-12)


def test_a_span_outside_the_stream():
    ledger = LiveLedger(2, ConstantNoise(), n_records=10)
    for records in (span(0, 11, 2), span([0, 3], [1, 12]), span(11, 11, 2)):
        with pytest.raises(ValueError, match=r"records must lie in a stream of 10, got a span to 1[12]"):
            ledger.release(Gaussian(1.0, 1.0), np.zeros(2), records=records)
    assert ledger.noise.calls == 0
    assert ledger.guarantee() is None
    ledger.release(Gaussian(1.0, 1.0), np.zeros(2), records=span([0, 10], [10, 10]))
