"""Releases watched while they run, and the pytest door.

Honest releases are refuted with probability at most the stated level; seeds are fixed.
"""

import math
import re
import threading

import numpy as np
import pytest
from nightly import first

from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.watch import watch
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP
from bandana.testing import SuiteBudget, assert_private

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.usefixtures("few_first_calls")
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
    assert str(assert_private(gaussian, OFF, ON, "gdp(mu=1)", runs=2048, budget=budget)).startswith("NOT REFUTED")
    assert "1 number an output, all of them, in 2,048 runs a side" in budget.passed[1]
    with pytest.raises(AssertionError) as failure:
        assert_private(too_little, OFF, ON, "gdp(mu=1)", budget=budget)
    first, read, advice = str(failure.value).splitlines()[:3]
    assert re.fullmatch(r"FAIL +too_little: 1-GDP .*; claimed mu = 1, found >= [\d.]+ \(as epsilon .*\)", first)
    assert "could be seen" in read
    assert advice.startswith("  next: ")
    assert "e+" not in str(failure.value)


def test_an_assertion_does_not_call_seen_what_it_did_not_read():
    def opaque(data, seed):
        return [float(gaussian(data, seed)[0]), threading.Lock()]

    with pytest.raises(AssertionError, match=r"INCONCLUSIVE +opaque(.|\n)*but not \[1\]: _thread.lock"):
        assert_private(opaque, OFF, ON, "gdp(mu=1)", runs=1024, budget=SuiteBudget())


def test_an_assertion_sees_first_calls_and_seeds_in_outputs():
    calls = []

    def exact_at_first(data, seed):
        calls.append(seed)
        return float(np.sum(data)) if len(calls) == 1 else float(gaussian(data, seed)[0])

    with pytest.raises(AssertionError, match="the first call of a process returns something else"):
        assert_private(exact_at_first, OFF, ON, "gdp(mu=1)", runs=2048, budget=SuiteBudget())
    with pytest.raises(AssertionError, match="the output holds the seed of its noise"):
        assert_private(lambda data, seed: [float(gaussian(data, seed)[0]), seed], OFF, ON, "gdp(mu=1)",
                       runs=2048, budget=SuiteBudget())  # fmt: skip


def test_the_fixture_and_the_summary_work_in_a_suite(pytester):
    pytester.makepyfile("""
        def test_it(private):
            private(lambda data, seed: 1.0, [0], [1], "pure(epsilon=1)", runs=1024)
    """)
    done = pytester.runpytest_inprocess("-p", "no:cacheprovider")  # its entry point loads it
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines([
        "bandana: * assertions of privacy; an honest suite fails with probability at most 0.05",
        "NOT REFUTED   <lambda>: 1-DP on the given pair; claimed epsilon = 1, found >= 0",
        "  read: 1 number an output, all of them, in 1,024 runs a side, * could be seen",
    ])  # fmt: skip
