"""Bounds by name: recomputable from name, parameters, level and scores; each below the truth where that is known."""

import math
import re
from types import MappingProxyType

import numpy as np
import pytest
from nightly import one_of_each
from scipy.stats import binom, norm

from bandana.audits.bounds import one_run_methods
from bandana.audits.bounds.bound import QuantityKind
from bandana.audits.bounds.divergence_bounds import ORDERS
from bandana.audits.bounds.methods import METHODS, WORDS, bound
from bandana.privacy_core import GaussianDP
from tests.score_pairs import gaussian, laplace, worst_case

PARAMETERS = {
    "epsilon-coins": {"delta": 0.02},
    "epsilon-e-process": {"delta": 0.02},
    "epsilon-threshold": {"delta": 0.02},
    "hockey-stick": {"epsilon": 0.3},
    "renyi": {"alpha": 2.0},
}
EVERY = pytest.mark.parametrize("name", METHODS)


def of_gaussian(mu):
    promise = GaussianDP(mu)
    return {
        QuantityKind.MU: mu, QuantityKind.EPSILON: promise.epsilon(0.02), QuantityKind.DELTA: promise.delta(0.3),
        QuantityKind.DIVERGENCE: mu**2, QuantityKind.RHO: mu**2 / 2, "pure": math.inf,
    }  # fmt: skip


def of_laplace(epsilon):
    """Laplace noise of scale 1 / epsilon for a shift by 1: its delta at x is 1 - e^((x - epsilon) / 2)."""
    mu = 2 * norm.isf(math.exp(-epsilon / 2) / 2)  # the middle threshold, where both error rates are equal, tells most

    def renyi(a):
        return math.log((a * math.exp((a - 1) * epsilon) + (a - 1) * math.exp(-a * epsilon)) / (2 * a - 1)) / (a - 1)

    return {
        QuantityKind.MU: mu, QuantityKind.EPSILON: epsilon + 2 * math.log1p(-0.02),
        QuantityKind.DELTA: -math.expm1((0.3 - epsilon) / 2), QuantityKind.DIVERGENCE: renyi(2.0),
        QuantityKind.RHO: max(renyi(alpha) / alpha for alpha in (1.0001, *ORDERS)), "pure": epsilon,
    }  # fmt: skip


def of_worst_case(epsilon, delta):
    """delta is 0.02 or 0; at 0 its rho is that of order 1, epsilon tanh(epsilon / 2)."""
    right = 1 / (1 + math.exp(-epsilon))
    divergence = math.log(right**2 / (1 - right) + (1 - right) ** 2 / right)
    return {
        QuantityKind.MU: math.inf if delta else 2 * norm.ppf(right),
        QuantityKind.EPSILON: epsilon if delta else math.log((right - 0.02) / (1 - right)),
        QuantityKind.DELTA: delta + (1 - delta) * (right - math.exp(0.3) * (1 - right)),
        QuantityKind.DIVERGENCE: math.inf if delta else divergence,
        QuantityKind.RHO: math.inf if delta else epsilon * math.tanh(epsilon / 2),
        "pure": math.inf if delta else epsilon,
    }  # fmt: skip


KNOWN = {
    "gaussian 0.5": (lambda n, seed: gaussian(0.5, n, seed), of_gaussian(0.5)),
    "gaussian 2": (lambda n, seed: gaussian(2.0, n, seed), of_gaussian(2.0)),
    "gaussian 2, rounded": (lambda n, seed: tuple(np.round(s) for s in gaussian(2.0, n, seed)), of_gaussian(2.0)),
    "laplace 1": (lambda n, seed: laplace(1.0, n, seed), of_laplace(1.0)),
    "closest to (1, 0)": (lambda n, seed: worst_case(1.0, 0.0, n, seed), of_worst_case(1.0, 0.0)),
    "closest to (0.5, 0.02)": (lambda n, seed: worst_case(0.5, 0.02, n, seed), of_worst_case(0.5, 0.02)),
    "equal sides": (
        lambda n, seed: tuple(np.random.default_rng(seed).normal(size=(2, n))),
        {**dict.fromkeys(QuantityKind, 0.0), "pure": 0.0},
    ),
}  # fmt: skip


def truth_of(name, values):
    return values["pure" if name == "pure-event" else METHODS[name].quantity]


@pytest.mark.parametrize(
    "case",
    one_of_each([(name, mechanism) for name in METHODS for mechanism in KNOWN], lambda case: case[0], "-".join),
)
def test_hardly_any_bound_exceeds_the_truth(case):
    """In at most 10 % of 40 audits, of 80 cheap ones (each case fails by chance < 1e-6); every other ratio is learned."""
    name, mechanism = case
    draw, values = KNOWN[mechanism]
    repeats = 40 if name in ("epsilon-coins", "epsilon-e-process") else 80
    wrong = 0
    for seed in range(repeats):
        learned = {"is_learned": bool(seed % 2)} if "is_learned" in METHODS[name].parameters else {}
        found = bound(name, *draw(400, seed), 0.1, **PARAMETERS.get(name, {}), **learned)
        assert found >= 0
        wrong += found > truth_of(name, values) + 1e-12
    assert wrong <= binom.ppf(1 - 1e-6, repeats, 0.1)


@EVERY
def test_every_method_sees_a_gaussian_and_says_the_same_again(name):
    data, neighbor = gaussian(1.0, 20_000, 1)
    found = bound(name, data, neighbor, 0.05, **PARAMETERS.get(name, {}))
    truth = truth_of(name, of_gaussian(1.0))
    assert 0 < found < truth
    assert math.isinf(truth) or found > 0.5 * truth
    assert bound(name, data.copy(), neighbor.tolist(), 0.05, **PARAMETERS.get(name, {})) == found
    assert bound(name, data, neighbor, 1e-9, **PARAMETERS.get(name, {})) < found
    narrow = bound(name, data.astype(np.float32), neighbor.astype(np.float32), 0.05, **PARAMETERS.get(name, {}))
    assert narrow == pytest.approx(found, rel=0.1)


@EVERY
def test_one_score_everywhere_certifies_nothing(name):
    assert bound(name, np.ones(300), np.ones(300), 0.05, **PARAMETERS.get(name, {})) == 0


@EVERY
def test_unusable_scores_and_levels_are_refused(name):
    fine = np.linspace(-1, 1, 200)
    for data, neighbor, level, words in (
        (np.append(fine[:-1], np.nan), fine, 0.05, "data must hold no NaN, got 1 among 200 scores"),
        (fine, fine[None], 0.05, "neighbor must have one axis"),
        (fine[:99], fine[:99], 0.05, "at least 100 scores"),
        (fine, fine, 1.0, "level must lie strictly between 0 and 1, got 1.0"),
    ):
        with pytest.raises(ValueError, match=words):
            bound(name, data, neighbor, level, **PARAMETERS.get(name, {}))


@pytest.mark.parametrize("name", [*METHODS, *one_run_methods.METHODS])
def test_every_method_says_what_it_is(name):
    method = {**METHODS, **one_run_methods.METHODS}[name]
    assert WORDS[name] == method.words
    assert method.name == name
    assert re.search(r"\b(19|20)\d\d\b", method.theorem)
    assert method.assumption.endswith((".", "`."))
    assert method.words.endswith(".")
    assert isinstance(method.quantity, QuantityKind)


def test_unknown_names_and_parameters_are_refused():
    fine = np.linspace(-1, 1, 200)
    with pytest.raises(ValueError, match=r"name must be one of mu-curve, .*, got 'mu'"):
        bound("mu", fine, fine, 0.05)
    with pytest.raises(ValueError, match="mu-curve takes no parameter 'delta'; its parameters: none"):
        bound("mu-curve", fine, fine, 0.05, delta=0.1)
    with pytest.raises(ValueError, match="takes no parameter 'alpha'; its parameters: delta, seed, is_learned"):
        bound("epsilon-coins", fine, fine, 0.05, alpha=2.0)
    with pytest.raises(ValueError, match="renyi needs the parameter 'alpha'"):
        bound("renyi", fine, fine, 0.05)
    for name, parameters, words in (
        ("epsilon-coins", {"delta": 1.0}, "delta must"), ("renyi", {"alpha": 1.0}, "alpha must"),
        ("hockey-stick", {"epsilon": -1.0}, "epsilon must"), ("pure-event", {"seed": -1}, "seed must"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            bound(name, fine, fine, 0.05, **parameters)


def test_the_registry_is_frozen():
    assert isinstance(METHODS, MappingProxyType)
    with pytest.raises(AttributeError):
        METHODS["mu-curve"].name = "other"
    assert METHODS["epsilon-coins"].parameters["seed"] == 0


def test_a_seed_changes_coins_and_not_the_verdict():
    data, neighbor = laplace(1.0, 20_000, 1)
    found = [bound("epsilon-coins", data, neighbor, 0.05, delta=0.0, seed=seed) for seed in range(4)]
    assert len(set(found)) > 1
    assert 0.9 < min(found) <= max(found) < 1.02
