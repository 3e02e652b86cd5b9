"""Every conversion between guarantees holds on the worst mechanisms there are, or is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from discrete_pairs import Pair, distributions, leaky_response, pairs, randomized_response
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    NoPrivacy,
    NoSuchConversion,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)

DELTA = 1e-5
KINDS = {
    "pure": PureDP(0.8),
    "gdp": GaussianDP(0.7),
    "zcdp": ZCDP(0.3),
    "renyi": RenyiDP(4.0, 0.5),
    "approx": ApproxDP(1.2, DELTA),
    "none": NoPrivacy(),
}
HOLDS = {
    "pure": {"pure", "gdp", "zcdp", "renyi", "approx"},
    "gdp": {"gdp", "zcdp", "renyi", "approx"},
    "zcdp": {"zcdp", "renyi", "approx"},
    "renyi": {"renyi", "approx"},
    "approx": {"approx"},
    "none": set(),
}
CONVERT = {
    "pure": lambda g: g.pure(),
    "gdp": lambda g: g.gdp(),
    "zcdp": lambda g: g.zcdp(),
    "renyi": lambda g: g.renyi(3.0),
    "approx": lambda g: g.approx(DELTA),
}
TYPES = {"pure": PureDP, "gdp": GaussianDP, "zcdp": ZCDP, "renyi": RenyiDP, "approx": ApproxDP}


@pytest.mark.parametrize("target", CONVERT)
@pytest.mark.parametrize("kind", KINDS)
def test_which_guarantee_follows_from_which(kind, target):
    if target in HOLDS[kind]:
        assert type(CONVERT[target](KINDS[kind])) is TYPES[target]
    else:
        with pytest.raises(NoSuchConversion, match="does not follow from") as refused:
            CONVERT[target](KINDS[kind])
        assert str(KINDS[kind]) in str(refused.value)


@pytest.mark.parametrize("trust", TrustModel)
@pytest.mark.parametrize("relation", Relation)
def test_a_conversion_keeps_relation_and_trust(relation, trust):
    scope = {"relation": relation, "trust": trust}
    for guarantee in (
        PureDP(0.8, **scope),
        GaussianDP(0.7, **scope),
        ZCDP(0.3, **scope),
        RenyiDP(4.0, 0.5, **scope),
        ApproxDP(1.2, DELTA, **scope),
        GaussianDP.from_epsilon_delta(1.0, DELTA, **scope),
        GaussianDP.from_renyi(2.0, 1.0, **scope),
    ):
        for convert in CONVERT.values():
            try:
                found = convert(guarantee)
            except NoSuchConversion:
                continue
            assert (found.relation, found.trust) == (relation, trust)
    assert ApproxDP(1.2, DELTA, **scope) != ApproxDP(1.2, DELTA) or (relation, trust) == (
        Relation.REPLACE_RECORD,
        TrustModel.CENTRAL,
    )


def everything_that_follows(guarantee, orders=(1.001, 1.5, 2.0, 8.0, 64.0), deltas=(0.3, 1e-2, 1e-5, 1e-12)):
    attempts = [guarantee.pure, guarantee.gdp, guarantee.zcdp]
    attempts += [lambda a=a: guarantee.renyi(a) for a in orders]
    attempts += [lambda d=d: guarantee.approx(d) for d in deltas]
    for attempt in attempts:
        try:
            yield attempt()
        except NoSuchConversion:
            continue


def tightest(pair):
    """The smallest guarantees of each kind that the pair keeps."""
    yield PureDP(pair.pure)
    yield GaussianDP(pair.mu)
    yield ZCDP(pair.rho * (1 + 1e-6))
    for alpha in (1.01, 1.5, 2.0, 6.0, 100.0):
        yield RenyiDP(alpha, pair.renyi(alpha))
    for epsilon in (0.0, 0.1, 1.0, 4.0):
        if 0 < pair.delta(epsilon) < 1:
            yield ApproxDP(epsilon, pair.delta(epsilon))


@settings(max_examples=150)
@given(pairs() | pairs(2) | pairs(5))
def test_what_follows_holds_on_arbitrary_mechanisms(pair):
    for guarantee in tightest(pair):
        assert pair.keeps(guarantee)
        for found in everything_that_follows(guarantee):
            assert pair.keeps(found), (guarantee, found)


@given(st.floats(1e-3, 30.0))
def test_what_follows_from_pure_dp_holds_on_randomized_response(epsilon):
    pair, pure = randomized_response(epsilon), PureDP(epsilon)
    for found in everything_that_follows(pure):
        assert pair.keeps(found), found
    for delta in (0.2, 1e-3, 1e-9):  # and is attained by it
        at = pure.approx(delta).epsilon
        assert at == 0 or pair.delta(at) == pytest.approx(delta, rel=1e-5)
    for alpha in (1.5, 2.0, 30.0):
        assert pure.renyi(alpha).epsilon == pytest.approx(pair.renyi(alpha), rel=1e-9)
    if epsilon < 20:
        assert pair.mu == pytest.approx(pure.gdp().mu, rel=1e-6)


@given(st.floats(0.0, 8.0), st.floats(-9, -0.5).map(lambda e: 10.0**e), st.floats(1.0001, 100.0))
def test_what_follows_from_a_pair_holds_on_its_worst_mechanism(epsilon, delta, factor):
    pair, guarantee = leaky_response(epsilon, delta), ApproxDP(epsilon, delta)
    assert pair.keeps(guarantee)
    larger = min(delta * factor, 0.9)
    found = guarantee.approx(larger)
    assert pair.keeps(found)
    assert found.epsilon == 0 or pair.delta(found.epsilon) == pytest.approx(larger, rel=1e-9), "attained"
    if delta < larger:
        with pytest.raises(NoSuchConversion, match="no finite epsilon follows at that delta"):
            ApproxDP(epsilon, larger).approx(delta)


@given(st.floats(1e-3, 20.0), st.floats(-12, -0.3).map(lambda e: 10.0**e), st.floats(1.001, 100.0))
def test_what_follows_from_gdp_holds_on_the_gaussian(mu, delta, alpha):
    exact = GaussianDP(mu)
    assert exact.gdp() is exact
    assert exact.approx(delta) == ApproxDP(exact.epsilon(delta), delta)
    # N(0, 1) against N(mu, 1): the divergence of order alpha is alpha mu^2 / 2.
    assert exact.renyi(alpha).epsilon == pytest.approx(alpha * mu**2 / 2, rel=1e-14)
    assert exact.zcdp().rho == pytest.approx(mu**2 / 2, rel=1e-14)
    for weaker in (exact.zcdp(), exact.renyi(alpha), exact.zcdp().renyi(alpha)):
        assert weaker.approx(delta).epsilon >= exact.epsilon(delta) - 1e-12
    if exact.epsilon(delta) > 0:  # the pair says nothing that the Gaussian does not keep
        pair = exact.approx(delta)
        for other in (delta * 1.5, delta * 20):
            if other < 1:
                assert pair.approx(other).epsilon >= exact.epsilon(other) - 1e-12


@given(st.floats(1e-3, 5.0), st.floats(1.01, 60.0), st.floats(0.01, 1.0))
def test_rdp_of_a_lower_order(rho, alpha, share):
    lower = 1 + (alpha - 1) * share
    assert RenyiDP(alpha, rho).renyi(lower) == RenyiDP(lower, rho)
    if lower < alpha:
        with pytest.raises(NoSuchConversion, match="higher order may be larger"):
            RenyiDP(lower, rho).renyi(alpha)


def test_rdp_of_one_order_bounds_no_higher_one():
    """So `renyi` must refuse: P puts little mass where Q has much less."""
    pair = Pair(np.array([1 - 1e-6, 1e-6]), np.array([1 - 1e-12, 1e-12]))
    assert pair.renyi(1.1) < 1e-4
    assert pair.renyi(3.0) > 1.0


@pytest.mark.parametrize(("relation", "asked"), list(itertools.product(Relation, Relation)))
@pytest.mark.parametrize("kind", KINDS)
def test_which_relation_follows_from_which(kind, relation, asked):
    reward, record, trajectory, add_remove = (
        Relation.REPLACE_REWARD, Relation.REPLACE_RECORD, Relation.REPLACE_TRAJECTORY, Relation.ADD_REMOVE,
    )  # fmt: skip
    once = {(record, reward), (trajectory, reward)}
    twice = {(add_remove, record), (add_remove, reward)}
    (guarantee,) = (with_scope(g, relation=relation) for g in [KINDS[kind]])
    if relation is asked or (relation, asked) in once:
        assert guarantee.weakened(relation=asked) == with_scope(KINDS[kind], relation=asked)
    elif (relation, asked) in twice:
        found = guarantee.weakened(relation=asked)
        assert found.relation is asked
        assert found == with_scope(two_steps(KINDS[kind]), relation=asked)
    else:
        with pytest.raises(
            NoSuchConversion, match=f"relation '{asked.value}' does not follow.*it holds for '{relation.value}'"
        ):
            guarantee.weakened(relation=asked)


def with_scope(guarantee, **scope):
    values = {name: getattr(guarantee, name) for name in guarantee.__dataclass_fields__}
    return type(guarantee)(**(values | scope))


def two_steps(guarantee):
    match guarantee:
        case PureDP(epsilon):
            return PureDP(2 * epsilon)
        case GaussianDP(mu):
            return GaussianDP(2 * mu)
        case ZCDP(rho):
            return ZCDP(4 * rho)
        case RenyiDP(alpha, epsilon):
            return RenyiDP(alpha / 2, 3 * epsilon)
        case ApproxDP(epsilon, delta):
            return ApproxDP(2 * epsilon, (1 + math.exp(epsilon)) * delta)
    return guarantee


@pytest.mark.parametrize(("trust", "asked"), list(itertools.product(TrustModel, TrustModel)))
@pytest.mark.parametrize("kind", KINDS)
def test_which_trust_model_follows_from_which(kind, trust, asked):
    strength = [TrustModel.JOINT, TrustModel.CENTRAL, TrustModel.SHUFFLE, TrustModel.LOCAL]
    guarantee = with_scope(KINDS[kind], trust=trust)
    if strength.index(asked) <= strength.index(trust):
        assert guarantee.weakened(trust=asked) == with_scope(KINDS[kind], trust=asked)
    else:
        with pytest.raises(NoSuchConversion, match=f"the {asked.value} model.*in the {trust.value} model"):
            guarantee.weakened(trust=asked)


def test_both_are_weakened_at_once_or_neither():
    local = GaussianDP(1.0, relation=Relation.ADD_REMOVE, trust=TrustModel.LOCAL)
    found = local.weakened(relation=Relation.REPLACE_RECORD, trust=TrustModel.JOINT)
    assert found == GaussianDP(2.0, relation=Relation.REPLACE_RECORD, trust=TrustModel.JOINT)
    assert local.weakened() == local
    with pytest.raises(NoSuchConversion):
        found.weakened(relation=Relation.REPLACE_REWARD, trust=TrustModel.LOCAL)


@settings(max_examples=200)
@given(st.tuples(distributions(3), distributions(3), distributions(3)))
def test_two_steps_hold_on_arbitrary_mechanisms(three):
    """P to Q to R: what both steps keep, weakened, is kept by P and R."""
    first, second, third = three
    one, two, both = Pair(first, second), Pair(second, third), Pair(first, third)
    assume(all(float(np.abs(pair.p - pair.q).max()) > 1e-6 for pair in (one, two, both)))
    scope = {"relation": Relation.ADD_REMOVE}
    steps = [
        PureDP(max(one.pure, two.pure), **scope),
        GaussianDP(max(one.mu, two.mu), **scope),
        ZCDP(max(one.rho, two.rho) * (1 + 1e-6), **scope),
        *(RenyiDP(a, max(one.renyi(a), two.renyi(a)), **scope) for a in (4.0, 5.0, 40.0)),
    ]
    for epsilon in (0.0, 0.5, 2.0):
        delta = max(one.delta(epsilon), two.delta(epsilon))
        if 0 < delta * (1 + math.exp(epsilon)) < 1:
            steps.append(ApproxDP(epsilon, delta, **scope))
    for step in steps:
        assert both.keeps(step.weakened(relation=Relation.REPLACE_RECORD)), step


def test_two_steps_of_rdp_need_an_order_of_four():
    assert RenyiDP(4.0, 0.5, relation=Relation.ADD_REMOVE).weakened(relation=Relation.REPLACE_RECORD) == RenyiDP(2.0, 1.5)
    with pytest.raises(NoSuchConversion, match="order of at least 4"):
        RenyiDP(3.999, 0.5, relation=Relation.ADD_REMOVE).weakened(relation=Relation.REPLACE_REWARD)


@pytest.mark.parametrize("pair", [(8.0, 1e-2), (800.0, 1e-5), (0.0, 0.5)])
def test_two_steps_that_leave_nothing_of_a_pair(pair):
    """The delta of two steps, (1 + e^epsilon) delta, is 1 or more."""
    guarantee = ApproxDP(*pair, relation=Relation.ADD_REMOVE)
    with pytest.raises(NoSuchConversion):
        guarantee.weakened(relation=Relation.REPLACE_RECORD)


def test_two_steps_of_a_pair_beyond_the_largest_power():
    guarantee = ApproxDP(710.0, 1e-305, relation=Relation.ADD_REMOVE)
    with pytest.raises(NoSuchConversion):  # (1 + e^710) 1e-305 is above 2000
        guarantee.weakened(relation=Relation.REPLACE_RECORD)


deltas = st.floats(-300, -1e-9).map(lambda exponent: 10.0**exponent)
sizes = st.floats(-8, 8).map(lambda exponent: 10.0**exponent)


@settings(max_examples=300)
@given(
    st.sampled_from(["pure", "gdp", "zcdp", "renyi", "approx"]), sizes, deltas, st.floats(-6, 6).map(lambda e: 1 + 10.0**e)
)
def test_no_epsilon_is_negative_or_silently_infinite(kind, size, delta, alpha):
    guarantee = {
        "pure": lambda: PureDP(size),
        "gdp": lambda: GaussianDP(size),
        "zcdp": lambda: ZCDP(size),
        "renyi": lambda: RenyiDP(alpha, size),
        "approx": lambda: ApproxDP(size, delta / 2),
    }[kind]()
    epsilon = guarantee.epsilon_at(delta)
    assert 0 <= epsilon < math.inf
    assert guarantee.approx(delta) == ApproxDP(epsilon, delta)
    for found in everything_that_follows(guarantee, orders=(alpha,), deltas=(delta,)):
        values = [getattr(found, name) for name in type(found).__match_args__]
        assert all(0 <= value < math.inf for value in values), found


@pytest.mark.parametrize("guarantee", [GaussianDP(2.0), ZCDP(2.0), RenyiDP(3.0, 2.0), PureDP(2.0), ApproxDP(2.0, 1e-9)])
def test_epsilon_falls_with_delta(guarantee):
    epsilons = [guarantee.epsilon_at(10.0**exponent) for exponent in np.linspace(-9, -1e-4, 300)]
    assert (np.diff(epsilons) <= 0).all()
    assert epsilons[0] > 0


def test_the_largest_epsilon_of_pure_dp_is_its_own():
    assert PureDP(0.3).epsilon_at(0.0) == 0.3
    with pytest.raises(ValueError, match=r"delta must lie strictly between 0 and 1, got 0\.0"):
        PureDP(0.3).approx(0.0)


@pytest.mark.parametrize("alpha", [1.5, 3.0, 40.0])
def test_rdp_of_a_tiny_pure_epsilon_by_hand(alpha):
    """Alpha e^2 / 2 up to a share of e; never more than e."""
    for e in (1e-9, 1e-5, 0.99e-4):
        assert PureDP(e).rdp(alpha) == pytest.approx(alpha * e * e / 2, rel=1e-6)
    assert PureDP(1e-5).rdp(1e7) == 1e-5


def test_a_huge_rho_by_hand():
    """Rho + 2 sqrt(rho log(1 / delta)); the last digits show the second term."""
    for rho in (1e16, 1e20):
        exact = rho + 2 * math.sqrt(rho * math.log(1e5))
        assert ZCDP(rho).epsilon_at(1e-5) == pytest.approx(exact, rel=1e-13)
    assert ZCDP(0.9e15).epsilon_at(1e-5) == pytest.approx(0.9e15 + 2 * math.sqrt(0.9e15 * math.log(1e5)), rel=1e-9)
