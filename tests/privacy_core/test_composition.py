"""Composition against brute force: every combination of answers of randomized responses, and closed forms."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.privacy_core import (
    ConcentratedEvent,
    GaussianDP,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PrivacyCurve,
    PureDP,
)
from bandana.privacy_core.accounting.composition import (
    PLD_DELTA,
    basic_delta,
    basic_epsilon,
    optimal_delta,
    optimal_epsilon,
    pld_delta,
    pld_epsilon,
    renyi_delta,
    renyi_divergence,
    renyi_epsilon,
    split,
)

multipliers = st.floats(-1, 3).map(lambda exponent: 10.0**exponent)
small_books = st.lists(multipliers, min_size=1, max_size=6).map(lambda ms: Counter(LaplaceEvent(m) for m in ms))


def book(events):
    (found,) = PrivacyCurve.of(events).books
    return found


def brute_force_delta(events, epsilon):
    """Sum over all 2^k answers of max(0, P - e^epsilon Q), at 40 digits."""
    with mp.workdps(40):
        total = mp.mpf(0)
        each = [mp.mpf(event.epsilon) for event, count in events.items() for _ in range(count)]
        for signs in itertools.product((1, -1), repeat=len(each)):
            p = mp.fprod(1 / (1 + mp.exp(-sign * e)) for sign, e in zip(signs, each, strict=True))
            loss = mp.fsum(sign * e for sign, e in zip(signs, each, strict=True))
            total += max(mp.mpf(0), p * (1 - mp.exp(mp.mpf(epsilon) - loss)))
        return float(total)


@settings(max_examples=120)
@given(small_books, st.floats(0.0, 1.2))
def test_optimal_delta_is_that_of_all_randomized_responses(events, share):
    epsilon = share * sum(event.epsilon * count for event, count in events.items())
    exact = brute_force_delta(events, epsilon)
    # At the rim the loss itself is rounded: the allowance is that of epsilon.
    assert optimal_delta(book(events), epsilon) == pytest.approx(exact, rel=1e-9, abs=4e-16 * (1 + epsilon))
    assert optimal_delta(book(events), epsilon) >= exact * (1 - 1e-12) - 4e-16 * (1 + epsilon)


@settings(max_examples=120)
@given(small_books, st.floats(-6.0, 0.0).map(lambda exponent: 10.0**exponent))
def test_optimal_epsilon_is_the_smallest_at_delta(events, share):
    delta = share * min(0.999, brute_force_delta(events, 0.0))
    found = optimal_epsilon(book(events), delta)
    assert brute_force_delta(events, found) <= delta * (1 + 1e-9) + 1e-15
    if found > 1e-6:
        assert brute_force_delta(events, found * (1 - 1e-7)) > delta * (1 - 1e-9)


@given(small_books)
def test_optimal_composition_of_much_delta_is_zero(events):
    enough = (1 + brute_force_delta(events, 0.0)) / 2
    assert enough == 1 or optimal_epsilon(book(events), enough) == 0
    assert optimal_delta(book(events), sum(e.epsilon * n for e, n in events.items()) * 1.001) == 0


@given(multipliers, st.floats(-9, -0.1).map(lambda exponent: 10.0**exponent))
def test_one_randomized_response(multiplier, delta):
    event = LaplaceEvent(multiplier)
    exact = PureDP(event.epsilon).epsilon_at(delta)
    assert optimal_epsilon(book({event: 1}), delta) == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert basic_epsilon(book({event: 1}), delta) == exact


@pytest.mark.parametrize("multiplier", [1000.0, 10.0, 1.0, 0.2, 0.02])
def test_a_thousand_releases_do_not_overflow(multiplier):
    events = book({LaplaceEvent(multiplier): 1000})
    last = math.inf
    for exponent in (-100, -30, -12, -8, -5, -2, -0.2):
        found = optimal_epsilon(events, 10.0**exponent)
        assert 0 <= found <= min(last, 1000 / multiplier * (1 + 1e-11))
        last = found
        if 0 < found < 0.99 * 1000 / multiplier:
            assert optimal_delta(events, found) == pytest.approx(10.0**exponent, rel=1e-6)


def test_a_thousand_releases_tend_to_a_gaussian():
    """k responses of epsilon e are nearly mu-GDP, mu = e sqrt k; to within e / sqrt k or so."""
    events = book({LaplaceEvent(1000.0): 10_000})
    for delta in (1e-2, 1e-5):
        assert optimal_epsilon(events, delta) == pytest.approx(GaussianDP(0.1).epsilon(delta), rel=2e-3)


def test_too_many_outcomes_are_left_to_the_other_ways():
    events = book({LaplaceEvent(10.0 + i): 20 for i in range(6)})
    assert optimal_epsilon(events, 1e-5) == math.inf
    assert optimal_delta(events, 0.1) == 1.0


laplaces = st.dictionaries(multipliers.map(LaplaceEvent), st.integers(1, 50), min_size=1, max_size=3)
gaussians = st.dictionaries(st.floats(0.3, 100.0).map(GaussianEvent), st.integers(1, 50), min_size=1, max_size=3)
concentrated = st.dictionaries(st.floats(1e-4, 3.0).map(ConcentratedEvent), st.integers(1, 9), min_size=1, max_size=3)
deltas = st.floats(-30, -0.5).map(lambda exponent: 10.0**exponent)


@given(gaussians, concentrated, laplaces, st.floats(1.001, 300.0))
def test_divergences_add(gaussian, concentrate, laplace, alpha):
    mu, pure = split(book(gaussian | laplace))
    assert mu == pytest.approx(math.sqrt(sum(count / event.noise_multiplier**2 for event, count in gaussian.items())))
    assert pure == pytest.approx(sum(count / event.noise_multiplier for event, count in laplace.items()))
    both = 2 * alpha - 1
    closed = alpha * mu**2 / 2 + sum(alpha * event.rho * count for event, count in concentrate.items())
    for event, count in laplace.items():
        e = event.epsilon
        terms = [math.log(alpha / both) + (alpha - 1) * e, math.log((alpha - 1) / both) - alpha * e]
        closed += count * float(np.logaddexp(*terms)) / (alpha - 1)
    events = book(gaussian | concentrate | laplace)
    assert renyi_divergence(events, alpha) == pytest.approx(closed, rel=1e-6)
    assert PrivacyCurve.of(gaussian | concentrate | laplace).rdp(alpha) == renyi_divergence(events, alpha)


@given(gaussians | concentrated | laplaces, deltas)
def test_the_renyi_conversion_finds_the_best_order(events, delta):
    found = renyi_epsilon(book(events), delta)
    excess = np.geomspace(1e-6, 1e6, 3001)
    divergence = np.array([renyi_divergence(book(events), 1 + float(x)) for x in excess])
    best = (divergence + np.log(excess / (1 + excess)) - np.log(delta * (1 + excess)) / excess).min()
    assert found <= max(0.0, best) + 1e-9 * abs(best)
    if found > 0:
        assert delta * 0.99 <= renyi_delta(book(events), found) <= delta * (1 + 1e-6)


@given(gaussians, deltas)
def test_basic_composition_of_gaussians_is_exact(events, delta):
    mu, pure = split(book(events))
    assert pure == 0
    assert basic_epsilon(book(events), delta) == GaussianDP(mu).epsilon(delta)
    assert basic_delta(book(events), 0.7) == GaussianDP(mu).delta(0.7)


@given(laplaces, deltas)
def test_basic_composition_of_pure_events_adds(events, delta):
    pure = PureDP(split(book(events))[1])
    assert basic_epsilon(book(events), delta) == pure.epsilon_at(delta)
    assert basic_delta(book(events), pure.epsilon) == 0
    if pure.epsilon_at(delta) > 1e-6:
        rounding = 1e-15 * (1 + pure.epsilon)
        assert basic_delta(book(events), pure.epsilon_at(delta)) == pytest.approx(delta, rel=1e-6, abs=rounding)


@given(gaussians, laplaces, deltas)
def test_basic_composition_of_both(gaussian, laplace, delta):
    events = book(gaussian | laplace)
    mu, pure = split(events)
    assert basic_epsilon(events, delta) == pure + GaussianDP(mu).epsilon(delta)
    assert basic_delta(events, pure * 0.999) == 1.0
    assert basic_delta(events, pure + 0.5) == pytest.approx(GaussianDP(mu).delta(0.5), rel=1e-6)


@pytest.mark.parametrize("other", [ConcentratedEvent(0.1), NonPrivateEvent()])
def test_what_a_way_does_not_cover_it_leaves_to_others(other):
    events = book({LaplaceEvent(2.0): 1, other: 1})
    assert [way(events, 1e-5) for way in (basic_epsilon, optimal_epsilon, pld_epsilon)] == [math.inf] * 3
    assert [way(events, 0.3) for way in (basic_delta, optimal_delta, pld_delta)] == [1.0] * 3


@given(laplaces, st.floats(-8, -0.5).map(lambda exponent: 10.0**exponent))
def test_every_way_is_above_the_smallest_one_possible(events, delta):
    """One record's Laplace noises, of which the largest alone is a lower bound."""
    largest = min(event.noise_multiplier for event in events)
    # One Laplace release: delta(epsilon) = 1 - e^((epsilon - e) / 2), so epsilon = e + 2 ln(1 - delta).
    exact = max(0.0, 1 / largest + 2 * math.log1p(-delta))
    for way in (basic_epsilon, optimal_epsilon, renyi_epsilon):
        assert way(book(events), delta) >= exact - 1e-12


def test_the_privacy_loss_distribution_is_not_asked_below_its_delta():
    events = book({GaussianEvent(4.0): 1, LaplaceEvent(2.0): 1})
    assert math.isfinite(pld_epsilon(events, PLD_DELTA))
    assert pld_epsilon(events, PLD_DELTA * 0.99) == math.inf
    at = pld_epsilon(events, PLD_DELTA)
    assert pld_delta(events, at * 0.99) == pytest.approx(PLD_DELTA, rel=0.5)
