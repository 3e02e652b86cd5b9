"""A step of Opacus as its tutorial audits it: a defect that one pair of runs shows, and that replays refute."""

import numpy as np
import pytest
from own_cases import example

from bandana.audits.outcome import Verdict
from bandana.flows.annexes.anything.foreign.frozen import examine as examine_frozen
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.release import draw, examine
from bandana.privacy_core import ApproxDP, GaussianDP

TWO, THREE = np.zeros((2, 500)), np.zeros((3, 500))
LAST = np.vstack([TWO, np.ones(500)])


@pytest.fixture(scope="module")
def opacus():
    pytest.importorskip("opacus", reason="Opacus is not installed")
    return example("opacus_step")


@pytest.mark.slow
def test_the_claim_is_what_the_library_states(opacus):
    assert opacus.epsilon(1e-5) == pytest.approx(1.013, abs=1e-3)


@pytest.mark.slow
def test_frozen_noise_shows_that_the_number_of_records_leaks(opacus):
    found = examine_frozen(opacus.engine, TWO, THREE, ApproxDP(1.013, 1e-5), 0)
    assert "the primitives released the same, and the output differs" in found.findings[0]


@pytest.mark.slow
@pytest.mark.parametrize("neighbor", [THREE, LAST])
def test_with_a_public_batch_size_nothing_but_the_noisy_sum_is_released(opacus, neighbor):
    found = examine_frozen(opacus.public_size, TWO, neighbor, ApproxDP(1.013, 1e-5), 0)
    assert not found.findings
    assert not found.note
    reached = GaussianDP(0.25).epsilon(1e-5) if neighbor is LAST else 0.0
    assert found.accounted == pytest.approx(reached)


@pytest.mark.slow
def test_a_sampled_training_is_frozen_and_left_to_replays(opacus):
    found = examine_frozen(opacus.training, np.zeros((8, 20)), np.vstack([np.zeros((7, 20)), np.ones(20)]),
                           ApproxDP(opacus.epsilon(1e-5, 2.0, 0.25, 8), 1e-5), 0, seconds=2.0)  # fmt: skip
    assert not found.findings
    assert not found.note
    assert found.n_calls == 8
    assert found.accounted is None


@pytest.mark.nightly
def test_replays_refute_the_step(opacus):
    """In `make test`: `test_frozen_noise_shows_that_the_number_of_records_leaks`.

    500 numbers with noise of 2 or of 4/3 are told apart but with probability below 1e-20: the bound is that of 825 runs a
    side without a mistake.
    """
    caller = inspect_call(opacus.engine, TWO, THREE, 0)
    found = examine(draw(caller, TWO, THREE, 1500, 0, 500.0), ApproxDP(1.013, 1e-5))
    assert found.verdict is Verdict.FAIL
    assert found.measured > 6
