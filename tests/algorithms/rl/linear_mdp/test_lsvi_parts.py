"""Calibrations of batched LSVI-UCB taken apart: each mixture keeps the claim and differs in its parts alone."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from lsvi_cases import DELTA, HORIZON, MODEL, TABLE, D, played

from bandana.algorithms.problem import Problem
from bandana.algorithms.rl.linear_mdp.entries import ENTRIES
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.rl.linear_mdp.noise import Releases
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import ApproxDP, FactorizedSum, GaussianDP, Interval, PureDP, TreeSum

UNIT = Interval(0.0, 1.0)
PROMISES = {"approximate": ApproxDP(1.0, DELTA), "pure": PureDP(1.0)}
OF_GUARANTEE = {entry.guarantee: entry for entry in ENTRIES if entry.is_private}
MIXTURES = [
    (guarantee, dict(zip(entry.part_options, choice, strict=True)))
    for guarantee, entry in OF_GUARANTEE.items()
    for choice in product(*entry.part_options.values())
]
each_mixture = pytest.mark.parametrize(
    ("guarantee", "parts"), MIXTURES, ids=lambda value: value if isinstance(value, str) else "-".join(value.values())
)


def built(guarantee, parts, horizon=HORIZON, **more):
    entry, problem = OF_GUARANTEE[guarantee], Problem(2, UNIT, horizon, model=MODEL)
    return entry.build(entry.settings(problem, parts, PROMISES[guarantee], **more))


def limit(guarantee):
    promise = PROMISES[guarantee]
    return 1.0 if guarantee == "pure" else GaussianDP.from_epsilon_delta(promise.epsilon, promise.delta).mu


@cache
def spent(guarantee, *options):
    """What a run costs in which as many updates are made as are paid for: mu, or a pure epsilon."""
    names = OF_GUARANTEE[guarantee].part_options
    algorithm = built(guarantee, dict(zip(names, options, strict=True)), n_batches=6)
    ledger = OwnNoiseLedger([1])
    played(algorithm.most_costly(), ledger)
    found = ledger.guarantee()
    return found.epsilon if guarantee == "pure" else found.mu


@each_mixture
def test_every_mixture_keeps_the_claim(guarantee, parts):
    """Tight noise meets it; printed noise spends the same budget whatever the other parts are."""
    found, claim = spent(guarantee, *parts.values()), limit(guarantee)
    if parts["noise"] == "tight":
        assert claim * (1 - 1e-9) < found <= claim
    else:
        printed = OF_GUARANTEE[guarantee].parts["printed"]
        assert found == pytest.approx(spent(guarantee, *(printed[name] for name in parts)), rel=1e-9)
        assert found < claim


@each_mixture
def test_every_mixture_is_what_its_parts_say(guarantee, parts):
    algorithm = built(guarantee, parts, 4096)
    schedule, caps = algorithm.schedule, np.array(algorithm.caps)
    assert (schedule.log_growth is None) == (parts["schedule"] == "static")
    assert isinstance(algorithm.matrices, FactorizedSum if parts.get("sum") == "factorized" else TreeSum)
    assert (algorithm.width is None) == (parts["width"] == "exact")
    assert algorithm.margin == (1.0 if parts["width"] == "exact" else D)
    is_centered = parts["values"] == "centered"
    assert caps.tolist() == ([3.0, 2.0, 1.0] if is_centered else [3.0, 3.0, 3.0])
    assert algorithm.centers == (tuple(caps / 2) if is_centered else (0.0, 0.0, 0.0))
    unit = math.sqrt(D) if guarantee == "pure" else 1.0
    moved = [3.0, 2.0, 1.0] if is_centered else [8.0, 8.0, 2.0]
    assert [mechanism.sensitivity for mechanism in algorithm.vectors] == pytest.approx([unit * y for y in moved])


@each_mixture
def test_the_width_changes_nothing_that_is_released(guarantee, parts):
    exact, printed = (built(guarantee, {**parts, "width": width}, 4096) for width in ("exact", "printed"))
    assert (exact.matrices, exact.vectors, exact.schedule) == (printed.matrices, printed.vectors, printed.schedule)
    assert max(exact.matrix_norms) < max(printed.matrix_norms)


@pytest.mark.parametrize(("guarantee", "parts"), MIXTURES[3::7])
def test_the_deterministic_audit_finds_nothing_in_mixtures(guarantee, parts):
    algorithm = built(guarantee, parts, 16, n_batches=4, switch=1e-9)
    claim = None if guarantee == "pure" else GaussianDP(limit(guarantee) * (1 + 1e-9))
    assert search(algorithm, UNIT, claim, 25, private_records=True) is None


def test_calibrations_have_the_names_of_their_parts():
    for guarantee, entry in OF_GUARANTEE.items():
        for name, parts in entry.parts.items():
            assert entry.calibrated(dict(parts))[0] == name
            direct = LSVI(MODEL, 4096).private(PROMISES[guarantee], name)
            assert built(guarantee, dict(parts), 4096) == direct


def test_static_batches_take_no_other_scheme():
    with pytest.raises(ValueError, match="batches must be static or left out, got 'geometric'"):
        built("approximate", {**OF_GUARANTEE["approximate"].parts["tight"], "schedule": "static"}, batches="geometric")


def test_printed_noise_at_the_printed_schedule_is_the_printed_one():
    """With exact widths, and with a factorized sum at the printed tree's budget."""
    parts = dict(OF_GUARANTEE["approximate"].parts["printed"])
    printed, exact = (built("approximate", {**parts, "width": width}, n_batches=6) for width in ("printed", "exact"))
    assert (exact.matrices, exact.vectors) == (printed.matrices, printed.vectors)
    other = built("approximate", {**parts, "sum": "factorized"}, n_batches=6)
    nodes = (len(printed.schedule.looks)).bit_length()
    ratio = printed.matrices.mechanism.noise_multiplier / other.matrices.mechanism.noise_multiplier
    assert ratio == pytest.approx(math.sqrt(nodes))
    assert other.vectors == printed.vectors
    assert played(other, OwnNoiseLedger([1]), TABLE)[2].n_updates[0] == 5


@pytest.mark.parametrize(("epsilon", "is_long"), [(1e6, True), (1.0, False)])
def test_the_printed_width_by_hand(epsilon, is_long):
    """Appendix E.1: beta = 24 H sqrt(d lambda) log chi, chi of Lemma 20 with the longest weight vector, at least 1."""
    algorithm, k, h = LSVI(MODEL, 4096).private(ApproxDP(epsilon, DELTA), "printed"), 4096, 3
    least = algorithm.ridge + D * algorithm.matrix_norms[1]
    longest = 2 * h * math.sqrt(D * k / least) + algorithm.vector_norms[0] / least
    assert (longest > 2) if is_long else (longest < 1)
    chi = 24**2 * 18 * k**2 * D * max(1.0, longest) * h / algorithm.failure
    assert algorithm.width == pytest.approx(24 * h * math.sqrt(D * least) * math.log(chi), rel=1e-12)


@pytest.mark.parametrize(("is_factorized", "times"), [(False, 3.0), (True, 5.0)])
def test_printed_bounds_on_matrices_have_the_deviation_of_a_tree_or_of_the_factorized_sum(is_factorized, times):
    """A tree over four batches has log2 4 + 1 = 3 levels; the factorized sum's largest deviation is here 5 of a draw's."""
    sums = SimpleNamespace(noise_deviation=lambda t: 2.0 * (6 - t), mechanism=SimpleNamespace(scale=2.0))
    releases = Releases(ApproxDP(1.0, DELTA), 3, 4, (1.0, 1.0), is_factorized, 100, 0.1)
    log = math.log(6 * 100 * 2 / 0.1)  # three norms on two sides, in each episode and step
    norm = 1.5 * times * (4 * math.sqrt(3) + 2 * log)
    assert releases.printed_matrix_norms(sums, 4, 1.5) == pytest.approx((0.0, *(norm,) * 4))
    log += math.log(3)  # Laplace noise: in each coordinate
    norm = 1.5 * times * (2 * 3 + 2 * math.sqrt(3 * log) + log)
    pure = replace(releases, promise=PureDP(1.0))
    assert pure.printed_matrix_norms(sums, 4, 1.5) == pytest.approx((0.0, *(norm,) * 4))


def test_printed_bounds_on_vectors_by_hand():
    """Three Gaussian coordinates: sd (sqrt 3 + 2 sqrt log); three Laplace ones: sd sqrt 3 log, with log d in the log."""
    releases = Releases(ApproxDP(1.0, DELTA), 3, 4, (1.0, 1.0), False, 100, 0.1)
    log = math.log(6 * 100 * 2 / 0.1)
    assert releases.printed_vector_norms([1.0, 2.5]) == pytest.approx(
        [s * (math.sqrt(3) + 2 * math.sqrt(log)) for s in (1, 2.5)]
    )
    pure = replace(releases, promise=PureDP(1.0))
    norm = math.sqrt(3) * (log + math.log(3))
    assert pure.printed_vector_norms([1.0, 2.5]) == pytest.approx([norm, 2.5 * norm])
