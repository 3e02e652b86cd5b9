"""The running sum of messages that each record noised itself."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise
from hypothesis import given
from hypothesis import strategies as st
from linear_maps import answers_of, encoder_of, noise_map

from bandana.privacy_core import (
    Exact,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    LocalSum,
    PureDP,
)

UNIT = Gaussian(1.0, 1.0)


def test_each_message_brings_noise_of_its_own():
    data = np.array([[3.0, 1.0], [0.0, 2.0], [5.0, -4.0]])
    ledger = LiveLedger(2, ConstantNoise(0.5), keeps_transcript=True)
    answers = answers_of(LocalSum(Gaussian(2.0, 3.0)), ledger, data)
    assert answers.tolist() == [[6.0, 4.0], [9.0, 9.0], [17.0, 8.0]], "the running sums plus 3, 6, 9"
    assert [release.value.tolist() for release in ledger.transcript] == data.tolist()
    spans = [(release.records.start.tolist(), release.records.stop.tolist()) for release in ledger.transcript]
    assert spans == [([0, 0], [1, 1]), ([1, 1], [2, 2]), ([2, 2], [3, 3])]


@pytest.mark.parametrize(("mechanism", "event", "guarantee"), [
    (Gaussian(1.0, 2.0), GaussianEvent(2.0), GaussianDP(0.5)),
    (Laplace(1.0, 2.0), LaplaceEvent(2.0), PureDP(0.5)),
])  # fmt: skip
@pytest.mark.parametrize("n_steps", [1, 2, 100])
def test_a_record_pays_for_its_own_message_only(mechanism, event, guarantee, n_steps):
    ledger = LiveLedger(1, ConstantNoise(), budget=guarantee)
    answers_of(LocalSum(mechanism), ledger, np.zeros((n_steps, 1)))
    assert ledger.worst_record() == {event: 1}
    assert ledger.guarantee() == guarantee


def test_it_is_the_identity_and_its_noise_the_running_sum():
    assert np.array_equal(encoder_of(LocalSum(UNIT), 9), np.eye(9))
    for is_staggered in (False, True):
        assert np.array_equal(noise_map(LocalSum(UNIT), 9, is_staggered), np.tril(np.ones((9, 9))))


@pytest.mark.parametrize("mechanism", [Gaussian(2.0, 0.75), Laplace(2.0, 0.75)])
def test_the_stated_deviation_is_that_of_the_matrix(mechanism):
    sums = LocalSum(mechanism)
    found = np.linalg.norm(noise_map(sums, 30), axis=1) * (1.0 if isinstance(mechanism, Gaussian) else np.sqrt(2))
    assert [sums.noise_deviation(t) for t in range(1, 31)] == pytest.approx(found, rel=1e-12)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=50))
def test_the_twin_is_exact(data):
    answers = answers_of(LocalSum(Exact()), LiveLedger(1, ConstantNoise()), np.array(data, dtype=float)[:, None])
    assert answers[:, 0].tolist() == np.cumsum(data).tolist()


def test_two_records_in_one_message_are_refused():
    ledger = LiveLedger(3, ConstantNoise())
    sums = LocalSum(UNIT)
    state = sums.add(sums.init(3), np.array([1.0, 2.0, 3.0]), np.array([1, 0, 5]))
    with pytest.raises(ValueError, match=r"this step holds 5 records: close after every record"):
        sums.close(state, ledger)
    with pytest.raises(ValueError, match=r"this step holds 5 records"):
        sums.close(state, ledger, np.array([2]))
    assert ledger.noise.calls == 0
    state, answer, n_records = sums.close(state, ledger, np.array([0, 1]))
    assert answer.tolist() == [2.0, 3.0]
    assert n_records.tolist() == [1, 0]
    assert state.memory.n_steps.tolist() == [1, 1, 0]
    assert ledger.worst_record() == {GaussianEvent(1.0): 1}


def test_two_records_added_one_by_one_are_refused_too():
    sums = LocalSum(UNIT)
    state = sums.init(1)
    for _ in range(2):
        state = sums.add(state, np.ones(1), np.ones(1, dtype=np.int64))
    with pytest.raises(ValueError, match="holds 2 records"):
        sums.close(state, LiveLedger(1, ConstantNoise()))


@pytest.mark.parametrize("step", [0, -1, 0.5])
def test_steps_that_are_none(step):
    with pytest.raises(ValueError, match="step must be a whole number of at least 1"):
        LocalSum(UNIT).noise_deviation(step)
