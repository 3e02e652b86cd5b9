"""Releases watched while they run, and the pytest door.

Honest releases are refuted with probability at most the stated level; seeds are fixed.
"""

import math

import numpy as np
import pytest
from nightly import first

from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.watch import watch
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from bandana.testing import SuiteBudget, assert_private

pytest_plugins = ["pytester"]
OFF, ON = [0.0], [1.0]


def gaussian(data, seeds, sigma=1.0):
    return np.sum(data) + sigma * np.array([np.random.default_rng(seed).normal() for seed in np.atleast_1d(seeds)])


def too_little(data, seeds):
    return gaussian(data, seeds, 0.4)


def watched(function, claim, n_runs=6000, seed=0):
    caller = inspect_call(function, OFF, ON, 0)
    return watch(caller, OFF, ON, claim, level=0.05, most_runs=n_runs, seed=seed, seconds=60.0)


CLAIMS = [GaussianDP(1.0), ZCDP(0.5), RenyiDP(2.0, 1.0), ApproxDP(4.3772, 1e-5)]


@pytest.mark.parametrize("claim", first(1, CLAIMS))
def test_an_honest_release_ends_at_its_budget(claim):
    found = watched(gaussian, claim, 3000)
    assert not found.is_refuted
    assert found.n_runs == 3000


@pytest.mark.parametrize("claim", first(1, CLAIMS))
def test_a_broken_release_is_refuted_early(claim):
    found = watched(too_little, claim, 20_000)
    assert found.is_refuted
    assert found.n_runs <= 10_000


def test_a_release_without_noise_is_refuted_at_once():
    assert watched(lambda data, seed: float(np.sum(data)), PureDP(1.0)).n_runs == 1024


@pytest.mark.nightly
def test_honest_releases_are_hardly_ever_refuted():
    """40 honest audits at level 0.05: more than 8 refuted have a probability below 1e-3."""
    rng = np.random.default_rng(0)

    def laplace(data, n_runs, seed):
        return np.sum(data) + rng.laplace(size=n_runs)

    assert sum(watched(laplace, PureDP(1.0), 2048, seed).is_refuted for seed in range(40)) <= 8


def test_levels_of_a_suite_add_up():
    budget = SuiteBudget(0.05)
    levels = [budget.next() for _ in range(1000)]
    assert levels[0] == 0.025
    assert math.fsum(levels) < 0.05
    assert math.fsum(levels) == pytest.approx(0.05, rel=0.01)


def test_assertions_fail_for_broken_code_alone():
    budget = SuiteBudget()
    assert "is not refuted" in str(assert_private(gaussian, OFF, ON, "gdp(mu=1)", runs=2048, budget=budget))
    with pytest.raises(AssertionError, match=r"1-GDP is refuted on this pair by \d+ runs a side"):
        assert_private(too_little, OFF, ON, "gdp(mu=1)", budget=budget)


def test_the_fixture_and_the_summary_work_in_a_suite(pytester):
    pytester.makepyfile("""
        def test_it(private):
            private(lambda data, seed: 1.0, [0], [1], "pure(epsilon=1)", runs=1024)
    """)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")  # its entry point loads it
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["bandana: * assertions of privacy; an honest suite fails with probability at most 0.05"])
