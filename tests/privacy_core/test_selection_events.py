"""Costs of selections: curves by hand, against the worst case that they stand for, and against other libraries."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from bandana.privacy_core import (
    ZCDP,
    BoundedRangeEvent,
    ConcentratedEvent,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    LiveLedger,
    Mixture,
    NoNoise,
    PrivacyCurve,
    PureDP,
    PureEvent,
    RenyiDP,
    ResponseEvent,
    SecureNoise,
    account,
    calibrate,
)
from bandana.privacy_core.accounting import composition, gaussian
from bandana.privacy_core.accounting.accountant import accounted_mu
from bandana.privacy_core.accounting.spending import cost_of

EPSILONS = (0.01, 0.3, 1.0, 3.0, 12.0)
ALONE = [event for e in EPSILONS for event in (ResponseEvent(e), ResponseEvent(e, 5), PureEvent(e), BoundedRangeEvent(e))]


def test_a_response_by_hand():
    event = ResponseEvent(math.log(3), 3)
    assert (event.true, event.other) == pytest.approx((0.6, 0.2))
    assert float(event.delta(0.0)) == pytest.approx(0.4)
    assert float(event.delta(math.log(2))) == pytest.approx(0.6 - 2 * 0.2)
    assert event.rdp(2) == pytest.approx(math.log(0.36 / 0.2 + 0.04 / 0.6 + 0.2))
    assert event.mu == pytest.approx(float(ndtri(0.6) - ndtri(0.2)))


def test_a_bounded_range_by_hand():
    """e^epsilon = 4: delta(x) = (2 - e^(x/2))^2 / 3, and the worst case at order 2 has x = 15/8."""
    event = BoundedRangeEvent(math.log(4))
    assert float(event.delta(0.0)) == pytest.approx(1 / 3)
    assert float(event.delta(math.log(2.25))) == pytest.approx(0.25 / 3)
    assert float(event.delta(math.log(4))) == 0
    # A = 4 - 1/4 and B = 1 - 1/4, so that x = A / (2 B) = 2.5, and E e^L = A x / (2 * 3).
    assert event.rdp(2) == pytest.approx(math.log(3.75 * 2.5 / 6))
    assert event.rho == pytest.approx(math.log(4) ** 2 / 8)
    assert event.mu == pytest.approx(2 * float(ndtri(2 / 3)))


def _worst_range(epsilon, n=2000):
    """(n, 2) losses and (n, 2) their probabilities under P: the generalized randomized responses, one a row."""
    t = np.linspace(0, epsilon, n + 2)[1:-1]
    first = np.expm1(epsilon - t) / (np.expm1(epsilon - t) - np.expm1(-t))
    return np.stack([t, t - epsilon], axis=1), np.stack([first, 1 - first], axis=1)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_bounded_range_is_the_worst_of_its_kind(epsilon):
    """The curve and the divergences are at least those of every generalized randomized response, and nearly attained."""
    event, (loss, share) = BoundedRangeEvent(epsilon), _worst_range(epsilon)
    assert np.allclose((share * np.exp(-loss)).sum(axis=1), 1)
    for x in np.linspace(-0.99, 0.99, 23) * epsilon:
        largest = (share * np.maximum(0, -np.expm1(x - loss))).sum(axis=1).max()
        assert float(event.delta(x)) >= largest - 1e-12
        assert float(event.delta(x)) == pytest.approx(largest, rel=1e-2, abs=1e-5)
    for alpha in (1.01, 2, 16):
        divergence = np.log((share * np.exp((alpha - 1) * loss)).sum(axis=1)).max() / (alpha - 1)
        assert event.rdp(alpha) >= divergence * (1 - 1e-9)
        assert event.rdp(alpha) == pytest.approx(divergence, rel=1e-3)
        assert event.rdp(alpha) <= alpha * event.rho * (1 + 1e-12)


@pytest.mark.parametrize("event", ALONE, ids=repr)
def test_the_mu_is_the_smallest_that_the_curve_allows(event):
    x = np.linspace(0, event.epsilon, 400)
    own = event.delta(x)

    def covers(mu):
        return (np.array([gaussian.delta_of(mu, float(at)) for at in x]) >= own - 1e-12).all()

    assert covers(event.mu * (1 + 1e-9))
    assert not covers(event.mu * 0.999)
    assert accounted_mu(((event, 1),)) <= PureDP(event.epsilon).gdp().mu * (1 + 1e-12)


@pytest.mark.parametrize("event", ALONE, ids=repr)
def test_the_curve_of_one_event_is_exact_and_solved(event):
    curve = PrivacyCurve.of({event: 1})
    for delta in (1e-9, 1e-4, 0.01):
        epsilon = curve.epsilon(delta)
        assert 0 <= epsilon <= event.epsilon
        assert curve.delta(epsilon) == pytest.approx(delta, rel=1e-6) or epsilon == 0
    assert curve.delta(event.epsilon) == pytest.approx(0, abs=1e-15)
    assert PrivacyCurve.from_dict(curve.to_dict()) == curve


@pytest.mark.parametrize("event", [event for event in ALONE if event.epsilon <= 3], ids=repr)
def test_the_curve_is_symmetric(event):
    """delta(-x) = 1 - e^-x (1 - delta(x)): the losses of both directions are one."""
    x = np.linspace(0, 1.5 * event.epsilon, 50)
    assert np.allclose(event.delta(-x), 1 - np.exp(-x) * (1 - event.delta(x)), atol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 40])
@pytest.mark.parametrize("event", [ResponseEvent(0.3, 4), PureEvent(0.3), BoundedRangeEvent(0.3)], ids=repr)
def test_compositions_lie_between_the_worst_case_and_every_bound(event, count):
    """At least the exact curve of `count` equal responses, and no more than basic composition."""
    events = ((event, count),)
    curve = PrivacyCurve.of({event: count})
    if isinstance(event, BoundedRangeEvent):
        loss, share = _worst_range(0.3, 5)
        own, weight = loss[2], share[2]
    else:
        response = event if isinstance(event, ResponseEvent) else ResponseEvent(0.3)
        own = np.array([0.3, -0.3, 0.0])
        weight = np.array([response.true, response.other, (response.n_options - 2) * response.other])
    losses = np.random.default_rng(0).choice(own, p=weight, size=(100_000, count)).sum(axis=1)
    for x in (0.0, 0.2 * math.sqrt(count)):
        gain = np.maximum(0, -np.expm1(np.minimum(0, x - losses)))
        # Five deviations of the mean.
        assert curve.delta(x) >= gain.mean() - 5 * gain.std() / math.sqrt(len(gain))
        assert curve.delta(x) <= composition.renyi_delta(events, x)
    assert curve.epsilon(1e-6) <= 0.3 * count
    derived = account({event: count})
    assert isinstance(derived, PureDP)
    assert derived.epsilon == pytest.approx(0.3 * count)


def test_a_bounded_range_costs_half_of_what_is_known_of_pure_dp():
    """Ten selections at 0.3: zCDP of 0.1125 in place of 0.45."""
    ranges, pure = ({kind(0.3): 10} for kind in (BoundedRangeEvent, PureEvent))
    assert cost_of(BoundedRangeEvent(0.3), ZCDP(1.0)) == pytest.approx(cost_of(PureEvent(0.3), ZCDP(1.0)) / 4)
    assert PrivacyCurve.of(ranges).epsilon(1e-6) < 0.72 * PrivacyCurve.of(pure).epsilon(1e-6)


def test_the_library_composes_responses_alike():
    from dp_accounting.pld import privacy_loss_distribution as pld

    event = ResponseEvent(0.3, 4)
    other = pld.from_randomized_response(4 * event.other, 4, value_discretization_interval=1e-4).self_compose(40)
    assert composition.pld_epsilon(((event, 40),), 1e-6) == pytest.approx(other.get_epsilon_for_delta(1e-6), rel=1e-3)


def test_opendp_pays_the_same_for_noisy_maxima():
    """Its scale for scores that move by 1 each is that of a range of 2."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.linf_distance(T="f64")
    for measure, cost in ((dp.max_divergence(), 2 / 3), (dp.zero_concentrated_divergence(), BoundedRangeEvent(2 / 3).rho)):
        assert dp.m.make_noisy_max(*space, measure, scale=3.0).map(1.0) == pytest.approx(cost)


@pytest.mark.parametrize("budget", [GaussianDP(1.0), ZCDP(0.5), RenyiDP(4.0, 1.0), PureDP(1.0)], ids=repr)
@pytest.mark.parametrize("event", [ResponseEvent(0.3, 4), PureEvent(0.3), BoundedRangeEvent(0.3)], ids=repr)
def test_a_budget_counts_them(event, budget):
    assert 0 < cost_of(event, budget) < 0.31
    if not isinstance(budget, PureDP):
        factor = calibrate(budget, Mixture({event: 10, GaussianEvent(3.0): 2}))
        spent = Mixture({event: 10, GaussianEvent(3.0): 2}).events(factor, GaussianEvent)
        limit = (
            budget.mu**2 if isinstance(budget, GaussianDP) else budget.rho if isinstance(budget, ZCDP) else budget.epsilon
        )
        assert sum(cost_of(one, budget) * count for one, count in spent.items()) == pytest.approx(limit)


def test_noise_without_a_grid_costs_what_it_is():
    assert SecureNoise().cost(BoundedRangeEvent(1.0)).epsilon == pytest.approx(1.0, rel=1e-9)
    response = SecureNoise().cost(ResponseEvent(1.0, 7))
    assert (response.epsilon, response.n_options) == (pytest.approx(1.0, rel=1e-9), 7)
    assert 1.0 < SecureNoise().cost(PureEvent(1.0)).epsilon < 1.0005
    assert LiveLedger(1, NoNoise()).noise.cost(PureEvent(1.0)).rho == math.inf


def test_the_book_keeps_different_selections_apart():
    from bandana.privacy_core.accounting.book import Book

    book = Book(1)
    for place, event in enumerate((ResponseEvent(1.0, 2), ResponseEvent(1.0, 9), PureEvent(0.5), LaplaceEvent(1.0))):
        book.add(event, place, place + 1, None)
    assert len(book.worst()) == 4
    assert len(book.most_costly()) == 4


@pytest.mark.parametrize(("kind", "more"), [(PureEvent, ()), (BoundedRangeEvent, ()), (ResponseEvent, (3,))])
def test_what_is_no_event_is_refused(kind, more):
    with pytest.raises(ValueError, match="epsilon must be"):
        kind(0.0, *more)
    with pytest.raises(ValueError, match="n_options must be a whole number of at least 2"):
        ResponseEvent(1.0, 1)


@pytest.mark.parametrize("kind", [PureEvent, lambda epsilon: ResponseEvent(epsilon, 3)])
def test_concentrated_cost_of_what_is_pure(kind):
    """Half of the square, and enough: no divergence of order alpha exceeds alpha rho."""
    for epsilon in EPSILONS:
        event = kind(epsilon)
        assert event.rho == pytest.approx(epsilon**2 / 2, rel=1e-12)
        assert all(event.rdp(alpha) <= alpha * event.rho * (1 + 1e-9) for alpha in (1.1, 2, 7, 50))


def test_mu_of_a_mixture_by_hand():
    """The root of the sum of squares; of pure events alone what their sum implies, where that is less."""
    assert accounted_mu(()) == 0
    gaussian_event, pure = GaussianEvent(2.0), PureEvent(0.8)
    one = PureDP(0.8).gdp().mu
    assert accounted_mu(((gaussian_event, 3), (pure, 2))) == pytest.approx(math.sqrt(3 / 4 + 2 * one**2), rel=1e-12)
    assert accounted_mu(((gaussian_event, 3), (ConcentratedEvent(0.1), 1))) == math.inf
    assert accounted_mu(((ConcentratedEvent(0.1), 1), (gaussian_event, 3))) == math.inf
    many, large = ((pure, 9),), ((PureEvent(9.0), 2),)
    assert accounted_mu(many) == pytest.approx(3 * one, rel=1e-12)
    assert 3 * one < PureDP(7.2).gdp().mu
    assert accounted_mu(large) == pytest.approx(min(math.sqrt(2) * PureDP(9.0).gdp().mu, PureDP(18.0).gdp().mu), rel=1e-12)
