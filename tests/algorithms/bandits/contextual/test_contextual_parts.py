"""Calibrations of contextual linear bandits taken apart: each mixture keeps the claim and differs in its parts alone."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from context_tables import context_table
from doubles import OwnNoiseLedger

from bandana.algorithms.catalog import find
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import ApproxDP, FactorizedSum, GaussianDP, Interval, PhaseTotal, RenyiDP, TreeSum

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
N_ACTIONS, DIMENSION, HORIZON = 4, 3, 60
LEVELS = {"adar-oful": RenyiDP(2.0, 1.0), "linucb joint": ApproxDP(1.0, 1e-5), "linucb local": ApproxDP(1.0, 1e-5)}
MIXTURES = [
    (name, dict(zip(find(name).part_options, choice, strict=True)))
    for name in LEVELS
    for choice in product(*find(name).part_options.values())
]
each_mixture = pytest.mark.parametrize(
    ("name", "parts"), MIXTURES, ids=lambda value: value if isinstance(value, str) else "-".join(value.values())
)


def built(name, parts, span=SYMMETRIC, **more):
    """The algorithm, and the mu of its claim."""
    entry = find(name)
    settings = entry.settings(Problem(N_ACTIONS, span, HORIZON, dimension=DIMENSION), parts, LEVELS[name], **more)
    return entry.build(settings), entry.promise(settings).gaussian.mu


def spent(name, parts, span=SYMMETRIC):
    ledger = OwnNoiseLedger([1, 2])
    run(built(name, parts, span)[0], context_table(HORIZON, N_ACTIONS, DIMENSION, span), ledger)
    return ledger.guarantee().mu


@pytest.mark.parametrize("span", [SYMMETRIC, UNIT], ids=str)
@each_mixture
def test_every_mixture_keeps_the_claim(name, parts, span):
    """Tight noise meets it; the paper's noise spends the same budget whatever the other parts are."""
    found, claim = spent(name, parts, span), built(name, parts, span)[1]
    assert found <= claim * (1 + 1e-9)
    if parts["noise"] == "tight":
        assert found > claim * (1 - 1e-6)
    else:
        assert found == pytest.approx(spent(name, parts["noise"], span), rel=1e-9)


@each_mixture
def test_only_the_noise_and_the_sum_change_what_is_released(name, parts):
    algorithm, _ = built(name, parts)
    other, _ = built(name, {**parts, "width": "exact"} | ({"eigenvalue": "public"} if "eigenvalue" in parts else {}))
    assert algorithm.sums == other.sums
    if "sum" in parts:
        kind = {"tree": TreeSum, "fresh": PhaseTotal, "factorized": FactorizedSum}[parts["sum"]]
        assert isinstance(algorithm.sums, kind)


@pytest.mark.parametrize(("name", "parts"), MIXTURES[2::4])
def test_the_deterministic_audit_finds_nothing_in_mixtures(name, parts):
    algorithm, claim = built(name, parts)
    claimed = GaussianDP(claim * (1 + 1e-9))
    is_private = name != "adar-oful"
    assert search(algorithm, SYMMETRIC, claimed, 15, private_records=is_private) is None


@pytest.mark.parametrize("parts", [parts for name, parts in MIXTURES if name == "adar-oful"])
def test_the_parts_of_adar_oful(parts):
    algorithm, _ = built("adar-oful", parts, UNIT)
    is_printed = parts["width"] == "printed"
    assert (algorithm.reward_scale, algorithm.parameter_bound) == ((1.0, 1.0) if is_printed else (0.5, 0.5))
    assert algorithm.least_share == (pytest.approx(1 / 3) if parts["eigenvalue"] == "printed" else None)
    sums = algorithm.sums
    noise = sums.phases.mechanism if parts["sum"] == "fresh" else sums.mechanism
    assert noise.scale == pytest.approx(math.sqrt(2 * 2 / 1.0) * (1.0 if parts["noise"] == "printed" else 0.5))
    deviations = [sums.noise_deviation(step) for step in range(1, len(algorithm.noise_norms))]
    norms = np.array(algorithm.noise_norms[1:]) / deviations
    assert norms == pytest.approx(np.full(len(norms), norms[0])), "one quantile, times the deviation of the sum's noise"
    assert parts["sum"] == "factorized" or deviations[3] == pytest.approx(2 * deviations[0])


def test_what_a_mixture_of_adar_oful_does_not_take():
    mixed = {"noise": "printed", "sum": "factorized", "width": "exact", "eigenvalue": "public"}
    with pytest.raises(ValueError, match=r"printed is made for rewards in \[-1, 1\]"):
        built("adar-oful", mixed, Interval(0.0, 2.0))
    with pytest.raises(ValueError, match=r"printed is made for rewards in \[-1, 1\]"):
        built("adar-oful", {**mixed, "noise": "tight", "width": "printed"}, Interval(0.0, 2.0))
    built("adar-oful", {**mixed, "noise": "tight"}, Interval(0.0, 2.0))
