"""Continual sums as their tutorial audits them: a tree, with the epsilon of dp-accounting, and one that is no tree."""

import numpy as np
import pytest
from own_cases import example

from bandana.audits.outcome import Verdict
from bandana.flows.annexes.anything.foreign.frozen import examine as examine_frozen
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.release import draw, examine
from bandana.privacy_core import ApproxDP, GaussianDP

ZEROS = [0] * 32


@pytest.fixture(scope="module")
def sums():
    return example("continual_sum")


def changed(place):
    return [*ZEROS[:place], 1, *ZEROS[place + 1 :]]


def run(function):
    return lambda data, seed: function(data, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def stated(sums):
    return ApproxDP(sums.epsilon(32, 1e-5), 1e-5)


def test_the_library_counts_the_nodes_that_a_record_enters(sums, stated):
    """Each of 32 records enters six nodes, one of each size; the library converts from Renyi divergences."""
    exact = GaussianDP(6**0.5 / sums.NOISE).epsilon(1e-5)
    assert exact < stated.epsilon < 1.1 * exact


@pytest.mark.parametrize("place", [0, 15, 31])
def test_frozen_nodes_of_the_tree_keep_the_claim(sums, stated, place):
    found = examine_frozen(run(sums.tree), ZEROS, changed(place), stated, 0, seconds=2.0)
    assert not found.findings
    assert found.n_calls == 63
    assert found.accounted == pytest.approx(GaussianDP(6**0.5 / sums.NOISE).epsilon(1e-5))


def test_frozen_sums_that_are_no_tree_exceed_it(sums, stated):
    found = examine_frozen(run(sums.fresh), ZEROS, changed(0), stated, 0, seconds=2.0)
    assert "the calls compose to epsilon at delta 1e-05 = 6.57297" in found.findings[0]
    assert "is the same on both data sets" in found.line


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "verdict"), [("tree", Verdict.NOT_REFUTED), ("fresh", Verdict.FAIL)])
def test_replays_agree(sums, stated, name, verdict):
    """In `make test`: frozen nodes. The tree is refuted with probability at most 0.001; the other measured 4.06."""
    caller = inspect_call(getattr(sums, name), ZEROS, changed(0), 0)
    assert examine(draw(caller, ZEROS, changed(0), 20_000, 0, 500.0), stated, confidence=0.999).verdict == verdict
