"""The noise that is calibrated keeps its guarantee, and a billionth less does not: every guarantee, every structure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    ConcentratedEvent,
    Factorized,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    Mixture,
    NonPrivateEvent,
    NoPrivacy,
    PrivacyCurve,
    PureDP,
    Releases,
    RenyiDP,
    Tree,
    account,
    calibrate,
)
from bandana.privacy_core.accounting.gaussian import log_delta
from bandana.privacy_core.accounting.spending import cost_of

sizes = st.floats(-3, 1.5).map(lambda exponent: 10.0**exponent)
deltas = st.floats(-40, -0.3).map(lambda exponent: 10.0**exponent)
orders = st.floats(-2, 2.5).map(lambda exponent: 1 + 10.0**exponent)
GAUSSIAN = {
    "GDP": sizes.map(GaussianDP),
    "zCDP": sizes.map(ZCDP),
    "RDP": st.builds(RenyiDP, orders, sizes),
    "pair": st.builds(ApproxDP, st.just(0.0) | sizes, deltas),
}
STRUCTURES = {
    "releases": st.integers(1, 10_000).map(Releases),
    "tree": st.integers(1, 10**7).map(Tree),
    "factorized": st.integers(1, 10**7).map(Factorized),
    "mixture": st.dictionaries(
        st.floats(0.1, 50.0).map(GaussianEvent), st.integers(1, 100), min_size=1, max_size=3
    ).map(Mixture),
}  # fmt: skip


def is_kept(guarantee, structure, multiplier, noise=GaussianEvent):
    """By what the accountant says of the events, in the words of the guarantee."""
    events = structure.events(multiplier, noise)
    found = account(events)
    match guarantee:
        case GaussianDP(mu):
            return found.gdp().mu <= mu
        case ZCDP(rho):
            return found.zcdp().rho <= rho
        case RenyiDP(alpha, epsilon):
            return PrivacyCurve.of(events).rdp(alpha) <= epsilon
        case PureDP(epsilon):
            return found.epsilon <= epsilon
        case ApproxDP(epsilon, delta):
            return log_delta(found.mu, epsilon) <= math.log(delta) and found.epsilon_at(delta) <= epsilon
    raise TypeError(guarantee)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("guarantee", GAUSSIAN)
def test_gaussian_noise(guarantee, structure):
    @given(GAUSSIAN[guarantee], STRUCTURES[structure])
    def check(guarantee, structure):
        multiplier = calibrate(guarantee, structure)
        assert is_kept(guarantee, structure, multiplier)
        assert not is_kept(guarantee, structure, multiplier * (1 - 1e-9))

    check()


@pytest.mark.parametrize("structure", ["releases", "tree"])
def test_laplace_noise(structure):
    @given(sizes.map(PureDP), STRUCTURES[structure])
    def check(guarantee, structure):
        multiplier = calibrate(guarantee, structure)
        assert is_kept(guarantee, structure, multiplier, LaplaceEvent)
        assert not is_kept(guarantee, structure, multiplier * (1 - 1e-9), LaplaceEvent)

    check()


@given(sizes, st.dictionaries(st.floats(0.1, 50.0).map(LaplaceEvent), st.integers(1, 100), min_size=1, max_size=3))
def test_a_mixture_of_laplace_noises(epsilon, parts):
    structure, guarantee = Mixture(parts), PureDP(epsilon)
    multiplier = calibrate(guarantee, structure)
    assert is_kept(guarantee, structure, multiplier, LaplaceEvent)
    assert not is_kept(guarantee, structure, multiplier * (1 - 1e-9), LaplaceEvent)


multipliers, rhos = st.floats(0.3, 30.0), st.floats(1e-3, 1.0)
events = multipliers.map(GaussianEvent) | multipliers.map(LaplaceEvent) | rhos.map(ConcentratedEvent)
parts = st.dictionaries(events, st.integers(1, 9), min_size=1, max_size=3)


@pytest.mark.parametrize("kind", ["zCDP", "RDP"])
def test_mixtures_in_what_every_event_has(kind):
    @given(GAUSSIAN[kind], parts.map(Mixture))
    def check(guarantee, structure):
        multiplier = calibrate(guarantee, structure)

        def spent(m):
            return sum(cost_of(event, guarantee) * count for event, count in structure.events(m, GaussianEvent).items())

        limit = guarantee.rho if isinstance(guarantee, ZCDP) else guarantee.epsilon
        assert spent(multiplier) <= limit
        # Laplace divergences of a tiny epsilon are bounded in another way (below 1e-4), and step there.
        steps = any(e.noise_multiplier * multiplier > 9e3 for e in structure.parts if isinstance(e, LaplaceEvent))
        assert steps or spent(multiplier * (1 - 1e-9)) > limit

    check()


@given(sizes, parts)
def test_mixtures_in_gdp(mu, parts):
    kept = {event: count for event, count in parts.items() if not isinstance(event, ConcentratedEvent)}
    if not kept:
        return
    structure = Mixture(kept)
    multiplier = calibrate(GaussianDP(mu), structure)

    def spent(m):
        events = structure.events(m, GaussianEvent).items()
        return sum((e.mu if isinstance(e, GaussianEvent) else PureDP(e.epsilon).gdp().mu) ** 2 * n for e, n in events)

    assert spent(multiplier) <= mu**2
    assert spent(multiplier * (1 - 1e-9)) > mu**2


MIXTURES = [
    {GaussianEvent(1.0): 3, LaplaceEvent(2.0): 1},
    {LaplaceEvent(1.0): 5},
    {ConcentratedEvent(0.5): 2},
    {ConcentratedEvent(0.5): 1, GaussianEvent(1.0): 1},
    {ConcentratedEvent(0.5): 1, LaplaceEvent(1.0): 2},
]
PAIRS = [(0.5, 1e-3), (1.0, 1e-6), (4.0, 1e-10)]


@pytest.mark.parametrize(
    ("parts", "pair"),
    [
        # Gaussian with Laplace noise takes a privacy loss distribution for each try: in `make test` at one delta.
        pytest.param(parts, pair, marks=pytest.mark.nightly if (i, j) in ((0, 0), (1, 0)) else (), id=f"{i}-{pair}")
        for i, parts in enumerate(MIXTURES)
        for j, pair in enumerate(PAIRS)
    ],
)
def test_mixtures_in_pairs(parts, pair):
    epsilon, delta = pair
    structure = Mixture(parts)
    multiplier = calibrate(ApproxDP(epsilon, delta), structure)
    assert PrivacyCurve.of(structure.events(multiplier, GaussianEvent)).epsilon(delta) <= epsilon
    # The privacy loss distribution lies on a grid of 1e-4, and its epsilon is no smooth function of the noise.
    assert PrivacyCurve.of(structure.events(multiplier * (1 - 2e-4), GaussianEvent)).epsilon(delta) > epsilon


@pytest.mark.nightly
@settings(max_examples=25)
@given(st.floats(0.1, 8.0), st.floats(-10, -1).map(lambda e: 10.0**e), parts)
def test_any_mixture_in_any_pair(epsilon, delta, parts):
    structure = Mixture(parts)
    multiplier = calibrate(ApproxDP(epsilon, delta), structure)
    assert PrivacyCurve.of(structure.events(multiplier, GaussianEvent)).epsilon(delta) <= epsilon
    assert PrivacyCurve.of(structure.events(multiplier * 0.999, GaussianEvent)).epsilon(delta) > epsilon


@given(st.sampled_from(["GDP", "zCDP", "RDP", "pair"]).flatmap(GAUSSIAN.get), st.integers(1, 10**6), st.floats(1.01, 100.0))
def test_more_releases_and_less_budget_need_more_noise(guarantee, n, factor):
    one = calibrate(guarantee, Releases(1))
    assert calibrate(guarantee) == calibrate(guarantee, 1) == one
    assert calibrate(guarantee, n) == calibrate(guarantee, Releases(n)) == pytest.approx(one * math.sqrt(n), rel=1e-11)
    assert calibrate(guarantee, Tree(n)) == calibrate(guarantee, n.bit_length())
    assert calibrate(guarantee, Factorized(n)) == one
    match guarantee:
        case GaussianDP(mu):
            assert calibrate(GaussianDP(mu * factor), n) < calibrate(guarantee, n)
        case ApproxDP(epsilon, delta):
            assert calibrate(ApproxDP(epsilon * factor + 0.01, delta), n) < calibrate(guarantee, n)


REFUSED = [
    (PureDP(1.0), Factorized(8), "takes Gaussian noise"),
    (PureDP(1.0), Mixture({GaussianEvent(1.0): 1}), "1-DP cannot count GaussianEvent"),
    (PureDP(1.0), Mixture({LaplaceEvent(1.0): 1, ConcentratedEvent(1.0): 1}), "1-DP cannot count ConcentratedEvent"),
    (GaussianDP(1.0), Mixture({ConcentratedEvent(1.0): 1}), "1-GDP cannot count ConcentratedEvent"),
    (ApproxDP(0.0, 1e-5), Mixture({LaplaceEvent(1.0): 1}), r"epsilon must be above 0.*got 0\.0"),
    (ApproxDP(0.0, 1e-5), Mixture({ConcentratedEvent(1.0): 1}), r"epsilon must be above 0.*got 0\.0"),
    *((NoPrivacy(), s, "no noise is calibrated to no privacy") for s in (1, Releases(3), Tree(9), Factorized(9))),
    (NoPrivacy(), Mixture({LaplaceEvent(1.0): 1}), "no noise is calibrated to no privacy"),
    (GaussianDP(1.0), True, "releases must be a whole number of at least 1, got True"),
    (GaussianDP(1.0), -1, "releases must be a whole number of at least 1, got -1"),
]


@pytest.mark.parametrize(("guarantee", "structure", "message"), REFUSED, ids=str)
def test_what_no_noise_keeps(guarantee, structure, message):
    with pytest.raises(ValueError, match=message):
        calibrate(guarantee, structure)


@pytest.mark.parametrize("value", [0, -4, 2.0, True, None])
def test_sizes_of_structures(value):
    for make, name in ((Releases, "count"), (Tree, "n_steps"), (Factorized, "n_steps")):
        with pytest.raises(ValueError, match=f"{name} must be a whole number of at least 1, got {value}"):
            make(value)
    with pytest.raises(ValueError, match=f"the count of GaussianEvent.* whole number of at least 1, got {value}"):
        Mixture({GaussianEvent(1.0): value})


def test_mixtures_that_cannot_be_scaled():
    with pytest.raises(ValueError, match="parts must hold at least one event"):
        Mixture({})
    with pytest.raises(ValueError, match="cannot be scaled"):
        Mixture({GaussianEvent(1.0): 1, NonPrivateEvent(): 1})
    for value in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"multiplier must be .*got {value}"):
            Mixture({GaussianEvent(1.0): 1}).events(value, GaussianEvent)


def test_a_mixture_keeps_its_proportions():
    structure = Mixture({GaussianEvent(2.0): 3, LaplaceEvent(5.0): 1, ConcentratedEvent(0.5): 2})
    assert structure.events(3.0, GaussianEvent) == {
        GaussianEvent(6.0): 3,
        LaplaceEvent(15.0): 1,
        ConcentratedEvent(0.5 / 9): 2,
    }


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 1023, 1024, 99_999, 2**40])
def test_nodes_of_a_tree(n):
    longest = math.floor(math.log2(n)) if n < 2**40 else 40
    assert Tree(n).n_nodes == longest + 1
    assert Tree(n).events(2.0, LaplaceEvent) == {LaplaceEvent(2.0): longest + 1}


@pytest.mark.parametrize("n", [np.int64(4), np.int32(4)])
def test_numbers_of_numpy(n):
    assert Tree(n).n_nodes == 3
    assert Releases(n).events(1.0, GaussianEvent) == {GaussianEvent(1.0): 4}


@pytest.mark.parametrize(("structure", "message"), [(np.int64(0), "releases must"), (2.5, "releases|structure")])
def test_numbers_of_releases_of_another_type(structure, message):
    assert calibrate(GaussianDP(1.0), np.int64(4)) == calibrate(GaussianDP(1.0), 4)
    with pytest.raises(ValueError, match=message):
        calibrate(GaussianDP(1.0), structure)


def test_one_release_where_no_number_is_given():
    assert Releases() == Releases(1)
    assert calibrate(GaussianDP(0.5)) == calibrate(GaussianDP(0.5), Releases()) == pytest.approx(2.0, rel=1e-11)
