"""A measurement of OpenDP as its tutorial audits it; it draws its own randomness, so numbers differ from run to run."""

import pytest
from own_cases import example

from bandana.audits.outcome import Verdict
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.release import draw, examine
from bandana.privacy_core import ZCDP


@pytest.fixture
def measurements():
    pytest.importorskip("opendp", reason="OpenDP is not installed")
    return example("opendp_tree")


def test_the_claims_are_those_that_the_library_states(measurements):
    assert measurements.tree.map(8) == pytest.approx(0.5)
    assert measurements.histogram.map(8) == pytest.approx(0.5)
    assert len(measurements.nodes([0] * 64)) == 127


@pytest.mark.nightly
def test_the_tree_is_refuted(measurements):
    """In `make test`: `test_the_claims_are_those_that_the_library_states`. The true rho is 1.3; 1,560 runs showed 0.82."""
    zeros, ones = [0] * 64, [1] * 64
    caller = inspect_call(measurements.nodes, zeros, ones, 0)
    assert caller.seed is None
    assert examine(draw(caller, zeros, ones, 4000, 0, 600.0), ZCDP(0.5), confidence=0.999).verdict is Verdict.FAIL
