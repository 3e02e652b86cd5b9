"""Claims as users write them, and what counts of errors say about each kind."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from bandana.audits.bounds.methods import bound, method_of
from bandana.audits.claims import ClaimError, Quantity, as_gdp, assumes_gaussian_noise, binary_divergence, parse, text_of
from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    GaussianDP,
    NoSuchConversion,
    PrivacyCurve,
    PureDP,
    Relation,
    RenyiDP,
    TrustModel,
)

REWARD = {"relation": Relation.REPLACE_REWARD}
CLAIMS = {
    "gdp(mu=1, relation=reward)": GaussianDP(1.0, **REWARD),
    "rdp(alpha=2, epsilon=1, relation=reward)": RenyiDP(2.0, 1.0, **REWARD),
    "zcdp(rho=0.5, relation=record)": ZCDP(0.5),
    "pure(epsilon=1e-1, relation=trajectory)": PureDP(0.1, relation=Relation.REPLACE_TRAJECTORY),
    "gdp(mu=1, relation=pair)": GaussianDP(1.0, relation=Relation.GIVEN_PAIR),
    "pure(epsilon=1, relation=add-remove)": PureDP(1.0, relation=Relation.ADD_REMOVE),
    "approx(epsilon=1, delta=1e-5, relation=reward, trust=joint)": ApproxDP(1.0, 1e-5, trust=TrustModel.JOINT, **REWARD),
}


@pytest.mark.parametrize(("text", "stated"), CLAIMS.items())
def test_each_kind_is_read_and_written(text, stated):
    claim = parse(text)
    assert claim.stated == stated
    assert (claim.relation, claim.trust) == (stated.relation, stated.trust)
    assert (claim.gaussian.relation, claim.gaussian.trust) == (stated.relation, stated.trust)
    assert parse(text_of(claim.stated)).stated == stated


def test_spaces_and_capitals_do_not_matter():
    assert parse(" GDP ( mu = 1 ,relation=reward ) ").stated == GaussianDP(1.0, **REWARD)


def test_relation_and_trust_may_stand_beside_the_claim():
    claim = parse("gdp(mu=1)", relation="record", trust="joint")
    assert (claim.relation, claim.trust) == (Relation.REPLACE_RECORD, TrustModel.JOINT)
    assert parse("gdp(mu=1, relation=reward)", relation="reward").relation is Relation.REPLACE_REWARD


@pytest.mark.parametrize(
    ("text", "mu", "assumed"),
    [
        ("gdp(mu=2, relation=reward)", 2.0, False),
        ("rdp(alpha=2, epsilon=1, relation=reward)", 1.0, True),
        ("zcdp(rho=0.5, relation=reward)", 1.0, True),
        ("pure(epsilon=1, relation=reward)", PureDP(1.0).gdp().mu, False),
        ("approx(epsilon=4.377178095681225, delta=1e-5, relation=reward)", 1.0, True),
    ],
)
def test_what_a_claim_is_tested_as_and_what_that_assumes(text, mu, assumed):
    claim = parse(text)
    assert claim.gaussian.mu == pytest.approx(mu, rel=1e-12)
    assert as_gdp(claim.stated)[0] == claim.gaussian
    assert assumes_gaussian_noise(claim.stated) is assumed
    assert ("for Gaussian noise the same as" in claim.statement) is assumed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gdp(mu=1)", "add relation=reward"),
        ("gdp", "must be of the form NAME"),
        ("gdp(mu=1", "must be of the form NAME"),
        ("", "must be of the form NAME"),
        ("ddp(mu=1, relation=reward)", "unknown definition 'ddp'; known are gdp, rdp, zcdp, pure, approx"),
        ("gdp(relation=reward)", "gdp needs mu"),
        ("rdp(alpha=2, relation=reward)", "rdp needs epsilon"),
        ("gdp(mu=1, rho=1, relation=reward)", "unknown part 'rho'; gdp takes mu, relation, trust"),
        ("gdp(mu=1, mu=2, relation=reward)", "mu is given twice"),
        ("gdp(mu=one, relation=reward)", "mu must be a number such as 1000, 0.5 or 1e-5, got 'one'"),
        ("gdp(mu=0, relation=reward)", "mu must lie between"),
        ("gdp(mu=nan, relation=reward)", "mu must be a number"),
        ("gdp(mu=inf, relation=reward)", "mu must be a number"),
        ("rdp(alpha=1, epsilon=1, relation=reward)", "alpha must be a finite Renyi order above 1"),
        ("approx(epsilon=1, delta=0, relation=reward)", "delta must be above 0 and at most 0.1"),
        (
            "gdp(mu=1, relation=rewards)",
            "relation must be one of reward, record, trajectory, add-remove, user, pair, got 'rewards'",
        ),
        ("gdp(mu=1, relation=reward, trust=nobody)", "trust must be one of central, joint, shuffle, local"),
        ("gdp(mu=1, relation)", "the part 'relation' must be of the form NAME=VALUE"),
        ("gdp(1, relation=reward)", "the part '1' must be of the form NAME=VALUE"),
    ],
)
def test_what_is_wrong_with_a_claim_is_named(text, message):
    with pytest.raises(ClaimError, match="claim") as caught:
        parse(text)
    assert message in str(caught.value)


def test_a_relation_that_is_given_twice_must_be_one():
    with pytest.raises(ClaimError, match="'reward' in the claim and 'record' beside it"):
        parse("gdp(mu=1, relation=reward)", relation="record")


def test_what_has_no_written_form_is_refused():
    with pytest.raises(ClaimError, match="no claim that an audit can be asked for"):
        text_of(PrivacyCurve(((),)))


def test_the_binary_divergence_of_randomized_response_is_exact():
    for epsilon in (0.1, 1.0, 5.0):
        lie = 1 / (1 + math.exp(epsilon))
        for alpha in (1.5, 2.0, 8.0):
            assert binary_divergence(lie, lie, alpha) == pytest.approx(PureDP(epsilon).rdp(alpha), rel=1e-9)


@pytest.mark.parametrize("alpha", [1.1, 2.0, 16.0])
def test_a_binned_divergence_never_exceeds_the_true_one(alpha):
    for cut in np.linspace(-3, 4, 29):
        rates = float(ndtr(-cut)), float(ndtr(cut - 1.0))
        assert 0 <= binary_divergence(*rates, alpha) <= alpha / 2
    assert binary_divergence(0.6, 0.4, alpha) == 0
    assert binary_divergence(0.7, 0.7, alpha) == 0


QUANTITIES = [
    Quantity("mu"), Quantity("epsilon"), Quantity("epsilon", delta=1e-2), Quantity("divergence", alpha=2.0), Quantity("rho"),
]  # fmt: skip


@pytest.mark.parametrize("quantity", QUANTITIES, ids=str)
def test_the_method_of_each_quantity_bounds_it_from_counted_answers(quantity):
    """Randomized answers that are wrong in 3 or in 2 of 10 replays; 6000 replays a side, exact proportions."""
    found = []
    for wrong in (0.3, 0.2):
        n = 6000
        data = np.random.default_rng(0).permutation(np.arange(n) < wrong * n).astype(float)
        method, parameters = method_of(quantity, 0, is_learned=True)
        found.append(bound(method, data, 1 - data, 0.05, **parameters))
    assert 0 < found[0] < found[1]


@pytest.mark.parametrize("stated", [PureDP(1.0), RenyiDP(2.0, PureDP(1.0).rdp(2.0)), ApproxDP(1.0, 1e-5)], ids=str)
def test_bounds_on_randomized_response_cover_what_it_promises(stated):
    """50 repeats at level 0.05: more than 9 misses have a probability below 2e-4."""
    rng, lie = np.random.default_rng(0), 1 / (1 + math.e)
    quantity = Quantity.of(stated)
    limit = quantity.limit(stated)
    method, parameters = method_of(quantity, 0, is_learned=True)
    answers = [[(rng.random(5000) < share).astype(float) for share in (lie, 1 - lie)] for _ in range(50)]
    lower = [bound(method, *sides, 0.05, **parameters) for sides in answers]
    assert sum(value > limit for value in lower) <= 9
    assert np.median(lower) > 0.8 * limit


def test_the_limit_of_a_claim_is_what_it_implies():
    assert Quantity("epsilon", delta=1e-5).limit(GaussianDP(1.0)) == pytest.approx(4.377178, abs=1e-6)
    assert Quantity("rho").limit(GaussianDP(1.0)) == 0.5
    with pytest.raises(NoSuchConversion):
        Quantity("mu").limit(ApproxDP(1.0, 1e-5))


def test_an_unknown_quantity_is_refused():
    with pytest.raises(ValueError, match="name must be mu"):
        Quantity("sigma")
