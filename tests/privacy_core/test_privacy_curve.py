"""The curve of a run: monotone, consistent with itself, exact for Gaussians, and the larger one of several records."""

from __future__ import annotations

import json
import math

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.privacy_core import (
    ZCDP,
    ConcentratedEvent,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    Mixture,
    NonPrivateEvent,
    PrivacyCurve,
    PureDP,
    Relation,
    TrustModel,
    account,
)

deltas = st.floats(-40, -0.05).map(lambda exponent: 10.0**exponent)
gaussian_events = st.dictionaries(st.floats(0.3, 300.0).map(GaussianEvent), st.integers(1, 2000), min_size=1, max_size=4)
zcdp_event = st.floats(0.3, 30.0).map(GaussianEvent) | st.floats(1e-3, 4.0).map(ConcentratedEvent)
zcdp_events = st.dictionaries(zcdp_event, st.integers(1, 9), min_size=1, max_size=4)
UNLIKE = {
    "gaussian": {GaussianEvent(2.0): 3},
    "laplace": {LaplaceEvent(3.0): 4},
    "two laplaces": {LaplaceEvent(3.0): 2, LaplaceEvent(10.0): 5},
    "mixture": {GaussianEvent(4.0): 1, LaplaceEvent(2.0): 1},
    "concentrated": {ConcentratedEvent(0.1): 2},
    "gaussian, concentrated": {GaussianEvent(2.0): 1, ConcentratedEvent(0.1): 2},
    "all three": {GaussianEvent(4.0): 2, ConcentratedEvent(0.02): 1, LaplaceEvent(5.0): 3},
}
"""Events whose composition takes every way that there is."""
CURVES = {name: PrivacyCurve.of(events) for name, events in UNLIKE.items()}
CURVES["two records"] = PrivacyCurve.of(UNLIKE["gaussian"], UNLIKE["mixture"], UNLIKE["laplace"])
DELTAS = 10.0 ** np.array([-30.0, -14, -11, -9, -8.5, -8, -7.5, -7, -6, -5, -4, -3, -2, -1, -0.3])


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_epsilon_falls_with_delta(curve):
    epsilons = [curve.epsilon(float(delta)) for delta in DELTAS]
    assert (np.diff(epsilons) <= 0).all()
    assert epsilons[-1] >= 0
    assert epsilons == [curve.epsilon_at(float(delta)) for delta in DELTAS]


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_delta_falls_with_epsilon(curve):
    found = np.array([curve.delta(float(epsilon)) for epsilon in np.linspace(0.0, curve.epsilon(1e-12) * 1.1, 150)])
    assert ((found >= 0) & (found <= 1)).all()
    assert (np.diff(found) <= 1e-15).all()


@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_epsilon_and_delta_are_inverse(curve):
    for delta in DELTAS:
        epsilon = curve.epsilon(float(delta))
        assert curve.delta(epsilon) <= delta * (1 + 1e-5) + 1e-18
        if epsilon > 0:
            assert curve.delta(epsilon * 0.9999) >= delta * (1 - 1e-5)
            back = curve.epsilon(float(curve.delta(epsilon)) * (1 + 1e-9)) if curve.delta(epsilon) > 0 else epsilon
            assert back <= epsilon * (1 + 1e-5)


@settings(max_examples=100)
@given(gaussian_events, deltas, st.floats(0.0, 20.0), st.floats(1.01, 100.0))
def test_gaussians_are_one_gaussian(events, delta, epsilon, alpha):
    curve, exact = PrivacyCurve.of(events), account(events)
    assert type(exact) is GaussianDP
    # Not to the last bit: the events of a curve are sorted, which changes the order of a sum.
    assert curve.epsilon(delta) == pytest.approx(exact.epsilon(delta), rel=1e-12, abs=1e-15)
    assert curve.delta(epsilon) == pytest.approx(exact.delta(epsilon), rel=1e-10)
    assert curve.rdp(alpha) == pytest.approx(exact.rdp(alpha), rel=1e-13)
    fpr = np.linspace(0, 1, 7)
    assert curve.tradeoff(fpr) == pytest.approx(exact.tradeoff(fpr), rel=1e-12)


@given(zcdp_events, deltas)
def test_concentrated_events_are_zcdp(events, delta):
    rho = sum(event.rho * count for event, count in events.items())
    curve = PrivacyCurve.of(events)
    if any(isinstance(event, ConcentratedEvent) for event in events):
        assert account(events) == ZCDP(sum(event.rho * count for event, count in events.items()))
        assert curve.epsilon(delta) == pytest.approx(ZCDP(rho).epsilon_at(delta), rel=1e-12)
    assert curve.epsilon(delta) <= ZCDP(rho).epsilon_at(delta) * (1 + 1e-12)
    assert account(events).epsilon_at(delta) == pytest.approx(curve.epsilon(delta), rel=1e-12)


@given(st.permutations([*UNLIKE["all three"].items(), *UNLIKE["two laplaces"].items()]))
def test_the_order_of_events_does_not_matter(items):
    first = [*UNLIKE["all three"].items(), *UNLIKE["two laplaces"].items()]
    assert PrivacyCurve.of(dict(items)) == PrivacyCurve.of(dict(first))
    assert hash(PrivacyCurve.of(dict(items))) == hash(PrivacyCurve.of(dict(first)))


MORE = [GaussianEvent(50.0), LaplaceEvent(50.0), ConcentratedEvent(1e-4), LaplaceEvent(3.0), GaussianEvent(0.5)]


@pytest.mark.parametrize(
    ("name", "more"),
    [
        # A large Gaussian beside Laplace noise has a privacy loss distribution on the widest grid; small ones stay.
        pytest.param(name, more, id=f"{name}-{more}",
                     marks=pytest.mark.nightly if more == GaussianEvent(0.5) and "laplace" in name else ())
        for name in UNLIKE for more in MORE
    ],
)  # fmt: skip
def test_one_event_more_never_lowers_epsilon(name, more):
    events = UNLIKE[name]
    both = PrivacyCurve.of(events | {more: events.get(more, 0) + 1})
    fpr = np.linspace(0.01, 0.99, 5)
    for delta in (1e-12, 1e-7, 1e-5, 1e-2):
        assert both.epsilon(delta) >= CURVES[name].epsilon(delta) - 2e-9
    for alpha in (1.1, 4.0, 50.0):
        assert both.rdp(alpha) > CURVES[name].rdp(alpha)
    assert both.delta(0.3) >= CURVES[name].delta(0.3) * (1 - 1e-9)
    if name == "gaussian" and not isinstance(more, LaplaceEvent):
        assert (both.tradeoff(fpr) <= CURVES[name].tradeoff(fpr) + 1e-7).all()


@pytest.mark.parametrize("name", UNLIKE)
def test_more_noise_is_never_less_private(name):
    """Noise added afterwards is post-processing."""
    more = PrivacyCurve.of(Mixture(UNLIKE[name]).events(1.25, GaussianEvent))
    for delta in DELTAS:
        assert more.epsilon(float(delta)) <= CURVES[name].epsilon(float(delta))
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        assert more.delta(epsilon) <= CURVES[name].delta(epsilon)
    for alpha in (1.1, 4.0, 50.0):
        assert more.rdp(alpha) < CURVES[name].rdp(alpha)
    if name in ("gaussian", "concentrated"):
        fpr = np.linspace(0, 1, 11)
        assert (more.tradeoff(fpr) >= CURVES[name].tradeoff(fpr) - 1e-6).all()


def test_several_records_are_as_private_as_the_worst_one():
    records = [UNLIKE["gaussian"], UNLIKE["mixture"], UNLIKE["laplace"]]
    each, curve = [PrivacyCurve.of(events) for events in records], PrivacyCurve.of(*records)
    for delta in DELTAS:
        assert curve.epsilon(float(delta)) == max(one.epsilon(float(delta)) for one in each)
    for epsilon in (0.0, 0.4, 1.0, 2.5):
        assert curve.delta(epsilon) == max(one.delta(epsilon) for one in each)
    for alpha in (1.2, 5.0, 90.0):
        assert curve.rdp(alpha) == max(one.rdp(alpha) for one in each)
    fpr, (gaussian, concentrated) = np.linspace(0, 1, 9), (UNLIKE["gaussian"], UNLIKE["concentrated"])
    both = [PrivacyCurve.of(events).tradeoff(fpr) for events in (gaussian, concentrated)]
    assert np.array_equal(PrivacyCurve.of(gaussian, concentrated).tradeoff(fpr), np.min(both, axis=0))


def test_which_record_is_worst_depends_on_delta():
    """Laplace noise has a sharp end, Gaussian noise a tail."""
    pure, gaussian = {LaplaceEvent(1.0): 1}, {GaussianEvent(3.0): 1}
    curve = PrivacyCurve.of(pure, gaussian)
    assert curve.epsilon(1e-2) == PrivacyCurve.of(pure).epsilon(1e-2)
    assert curve.epsilon(1e-12) == PrivacyCurve.of(gaussian).epsilon(1e-12) > 1.0


@pytest.mark.parametrize("name", ["gaussian", "mixture", "all three", "laplace"])
def test_the_trade_off_is_convex_and_below_every_line_of_the_curve(name):
    curve, fpr, lower = CURVES[name], np.linspace(0, 1, 101), np.linspace(0.001, 0.2, 50)
    fnr, low = np.split(curve.tradeoff(np.concatenate([fpr, lower])), [len(fpr)])
    assert fnr.shape == fpr.shape
    assert ((fnr >= 0) & (fnr <= 1 - fpr + 1e-12)).all()
    assert (np.diff(fnr) <= 1e-12).all()
    assert (np.diff(fnr, 2) >= -1e-9).all()
    # delta(epsilon) = sup over fpr of 1 - fnr - e^epsilon fpr, of a function that the curve allows: never above it.
    for epsilon in (0.0, 0.2, 0.7, 1.5):
        implied = float((1 - fnr - math.exp(epsilon) * fpr).max())
        assert implied <= curve.delta(epsilon) + 1e-3
        assert implied >= curve.delta(epsilon) - 2e-2
    for epsilon in np.linspace(0, 3, 13):
        assert (low >= 1 - curve.delta(float(epsilon)) - math.exp(epsilon) * lower - 1e-3).all()


def test_the_trade_off_of_a_mixture_lies_between_what_is_known():
    """Above the one that GDP of both parts implies, below the one of the Gaussian alone."""
    curve, fpr = CURVES["mixture"], np.linspace(0.01, 0.99, 33)
    both = GaussianDP(math.hypot(0.25, PureDP(0.5).gdp().mu))
    assert (curve.tradeoff(fpr) <= GaussianDP(0.25).tradeoff(fpr)).all()
    assert (curve.tradeoff(fpr) >= both.tradeoff(fpr) - 2e-3).all()


def test_the_trade_off_of_laplace_noise():
    """The exact curve of one release is known (Dong, Roth, Su 2022, Example 2.4): three pieces."""
    e, fpr = 0.5, np.linspace(0.001, 0.999, 57)
    half = math.exp(-e) / 2
    exact = np.where(
        fpr < half, 1 - math.exp(e) * fpr, np.where(fpr <= 0.5, math.exp(-e) / (4 * fpr), math.exp(-e) * (1 - fpr))
    )
    found = PrivacyCurve.of({LaplaceEvent(1 / e): 1}).tradeoff(fpr)
    assert (found <= exact + 1e-12).all()
    assert (found >= exact - 1e-4).all()


def test_a_trade_off_at_a_large_epsilon():
    assert (PrivacyCurve.of({ConcentratedEvent(700.0): 1}).tradeoff([0.0, 0.3, 1.0]) <= [1.0, 0.7, 0.0]).all()


def test_bounds_of_a_library_around_ours():
    from dp_accounting.pld import privacy_loss_distribution as pld

    for name in ("laplace", "two laplaces", "mixture"):
        bounds = []
        for is_pessimistic in (False, True):
            total = None
            for event, count in UNLIKE[name].items():
                make = pld.from_laplace_mechanism if isinstance(event, LaplaceEvent) else pld.from_gaussian_mechanism
                one = make(event.noise_multiplier, value_discretization_interval=1e-4, pessimistic_estimate=is_pessimistic)
                total = one.self_compose(count) if total is None else total.compose(one.self_compose(count))
            bounds.append(total)
        for delta in (1e-2, 1e-4, 1e-6):
            optimistic, pessimistic = (one.get_epsilon_for_delta(delta) for one in bounds)
            assert optimistic - 1e-9 <= CURVES[name].epsilon(delta) <= pessimistic + 1e-9


@pytest.mark.parametrize("trust", TrustModel)
@pytest.mark.parametrize("relation", Relation)
def test_a_curve_survives_json(relation, trust):
    curve = PrivacyCurve.of(*UNLIKE.values(), relation=relation, trust=trust)
    again = PrivacyCurve.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert again == curve
    assert again.epsilon(1e-5) == curve.epsilon(1e-5)
    bare = PrivacyCurve.of({NonPrivateEvent(): 2, GaussianEvent(1 / 3): 7})
    assert PrivacyCurve.from_dict(json.loads(json.dumps(bare.to_dict()))) == bare


GOOD = PrivacyCurve.of({GaussianEvent(2.0): 3}).to_dict()
EVENT = GOOD["records"][0][0]


@pytest.mark.parametrize(
    "tree",
    [
        GOOD | {"records": []},
        GOOD | {"records": [[]]},
        GOOD | {"records": [[EVENT], []]},
        GOOD | {"relation": "swap everything"},
        GOOD | {"trust": "nobody"},
        GOOD | {"records": [[EVENT | {"event": "cauchy"}]]},
        *(GOOD | {"records": [[EVENT | {"noise_multiplier": value}]]} for value in (0.0, -1.0, math.inf, math.nan)),
        *(GOOD | {"records": [[EVENT | {"count": value}]]} for value in (0, -2)),
    ],
)  # fmt: skip
def test_nonsense_is_refused(tree):
    with pytest.raises(ValueError):  # noqa: PT011  (of many places)
        PrivacyCurve.from_dict(tree)


def test_an_unknown_event_is_named():
    with pytest.raises(ValueError, match=r"unknown event 'cauchy'; known are .*gaussian"):
        PrivacyCurve.from_dict(GOOD | {"records": [[EVENT | {"event": "cauchy"}]]})


@pytest.mark.parametrize(
    "tree",
    [
        GOOD | {"records": [[EVENT | {"count": 2.7}]]},
        GOOD | {"records": [[EVENT, EVENT | {"count": 5}]]},
        GOOD | {"records": [[EVENT | {"noise_multiplier": "2.0"}]]},
        {name: value for name, value in GOOD.items() if name != "trust"},
        {name: value for name, value in GOOD.items() if name != "records"},
        GOOD | {"records": [[{name: value for name, value in EVENT.items() if name != "noise_multiplier"}]]},
        GOOD | {"records": [[{name: value for name, value in EVENT.items() if name != "count"}]]},
    ],
)  # fmt: skip
def test_what_does_not_say_what_it_means_is_refused(tree):
    """A part of a count, an event that stands there twice, a field of another type or none."""
    with pytest.raises(ValueError):  # noqa: PT011  (of many places)
        PrivacyCurve.from_dict(tree)


@pytest.mark.parametrize("make", [account, PrivacyCurve.of])
@pytest.mark.parametrize("count", [0, -1])
def test_counts_start_at_one(make, count):
    with pytest.raises(ValueError, match=rf"the count of GaussianEvent.*at least 1, got {count}"):
        make({GaussianEvent(1.0): count})


@pytest.mark.parametrize("make", [account, PrivacyCurve.of])
@pytest.mark.parametrize("count", [1.5, math.nan])
def test_counts_are_whole_numbers(make, count):
    with pytest.raises(ValueError, match=rf"the count of GaussianEvent.*at least 1, got {count}"):
        make({GaussianEvent(1.0): count})


def test_counts_of_numpy():
    assert PrivacyCurve.of({GaussianEvent(1.0): np.int64(4)}).epsilon(1e-5) == GaussianDP(2.0).epsilon(1e-5)


def test_a_curve_needs_an_event():
    for books in ([], [{}], [{GaussianEvent(1.0): 1}, {}]):
        with pytest.raises(ValueError, match="at least one event"):
            PrivacyCurve.of(*books)


def test_without_privacy():
    curve = PrivacyCurve.of({NonPrivateEvent(): 1, GaussianEvent(1.0): 1}, {GaussianEvent(1.0): 1})
    assert curve.epsilon(0.5) == math.inf
    assert curve.delta(1e3) == 1.0
    assert curve.rdp(2.0) == math.inf
    assert not curve.tradeoff([0.0, 0.3, 1.0]).any()
    with pytest.raises(ValueError, match="without noise"):
        curve.points()


@pytest.mark.parametrize("name", ["gaussian", "mixture", "two records"])
def test_points_and_plot(name):
    mpl.use("Agg")
    from matplotlib.figure import Figure

    curve = CURVES[name]
    epsilons, found = curve.points(20, smallest_delta=1e-6)
    assert epsilons.shape == found.shape == (20,)
    assert epsilons[0] == 0
    assert epsilons[-1] == curve.epsilon(1e-6)
    assert found[0] == curve.delta(0.0)
    assert found[-1] == pytest.approx(1e-6, rel=1e-6)
    axes = Figure().subplots()
    curve.plot(axes, color="black", label="ours")
    (line,) = axes.lines
    assert line.get_label() == "ours"
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_yscale()) == ("epsilon", "delta", "log")
    assert np.isfinite(line.get_ydata()).all()
    assert (np.asarray(line.get_ydata()) > 0).all()
    drawn = curve.points()
    assert np.array_equal(line.get_xdata(), drawn[0])
    assert np.array_equal(line.get_ydata(), np.maximum(drawn[1], np.finfo(float).tiny))


def test_a_curve_in_words():
    assert str(PrivacyCurve.of({GaussianEvent(2.0): 3}, {LaplaceEvent(1.0): 1})) == (
        "composition of 3 x GaussianEvent(noise_multiplier=2.0); or 1 x LaplaceEvent(noise_multiplier=1.0)"
    )
