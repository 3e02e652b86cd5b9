"""Phase sums on a case that can be added up by hand."""

from __future__ import annotations

import numpy as np
from doubles import ConstantNoise

from bandana.privacy_core import Gaussian, GaussianEvent, LiveLedger, PhaseSum

NOISE = 0.5
SUMS = PhaseSum(Gaussian(2.0, 3.0))


def test_phases_of_each_replicates_own_length():
    ledger = LiveLedger(2, ConstantNoise(NOISE), keeps_transcript=True)
    phase = SUMS.init(2)
    phase = SUMS.add(phase, np.array([1.0, 10.0]), np.array([2, 5]))
    phase = SUMS.add(phase, np.array([0.5, 20.0]), np.array([1, 2]))
    assert phase.total.tolist() == [1.5, 30.0]
    assert phase.start.tolist() == [0, 0]
    assert phase.stop.tolist() == [3, 7]
    phase, noisy, n_records = SUMS.close(phase, ledger, np.array([1]))
    assert noisy.tolist() == [33.0], "30 plus 2 * 3 * 0.5"
    assert n_records.tolist() == [7]
    assert phase.total.tolist() == [1.5, 0.0]
    assert phase.start.tolist() == [0, 7]
    phase = SUMS.add(phase, np.array([1.0, 4.0]), np.array([1, 1]))
    phase, noisy, n_records = SUMS.close(phase, ledger)
    assert noisy.tolist() == [5.5, 7.0]
    assert n_records.tolist() == [4, 1]
    assert phase.total.tolist() == [0.0, 0.0]
    assert phase.start.tolist() == phase.stop.tolist() == [4, 8]
    spans = [(entry.records.start.tolist(), entry.records.stop.tolist()) for entry in ledger.transcript]
    assert spans == [([0], [7]), ([0, 7], [4, 8])]
    assert [entry.value.tolist() for entry in ledger.transcript] == [[30.0], [2.5, 4.0]]
    assert ledger.worst_record() == {GaussianEvent(3.0): 1}, "a record lies in one phase"


def test_vectors():
    ledger = LiveLedger(1, ConstantNoise(NOISE))
    phase = SUMS.init(1, (2, 2))
    phase = SUMS.add(phase, np.array([[[1.0, 2.0], [3.0, 4.0]]]), np.array([1]))
    phase = SUMS.add(phase, np.ones((1, 2, 2)), np.array([1]))
    phase, noisy, _ = SUMS.close(phase, ledger)
    assert noisy.tolist() == [[[5.0, 6.0], [7.0, 8.0]]]
    assert not phase.total.any()


def test_the_book_does_not_follow_the_phase():
    """The state's memory is reused; what was charged and recorded stays."""
    ledger = LiveLedger(1, ConstantNoise(0.0), keeps_transcript=True)
    phase = SUMS.init(1)
    for n in (3, 4):
        phase = SUMS.add(phase, np.array([float(n)]), np.array([n]))
        phase, _, _ = SUMS.close(phase, ledger)
    spans = [(int(entry.records.start[0]), int(entry.records.stop[0])) for entry in ledger.transcript]
    assert spans == [(0, 3), (3, 7)]
    assert [float(entry.value[0]) for entry in ledger.transcript] == [3.0, 4.0]
