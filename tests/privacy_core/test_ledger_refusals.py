"""What the door refuses, it refuses before noise is drawn and before the book is touched."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from doubles import ConstantNoise, span

from bandana.privacy_core import Gaussian, LiveLedger

UNIT = Gaussian(1.0, 1.0)


@pytest.mark.parametrize(
    ("value", "records", "reps"),
    [
        (np.zeros(2), span(0, 1, 3), None),
        (np.zeros(()), span(0, 1, 3), None),
        (np.zeros(3), span(0, 1, 2), None),
        (np.zeros(3), span([0, 0, 0], [1, 1]), None),
        (np.zeros((3, 2)), span(0, 1, 3), np.array([0, 2])),
        (np.zeros(2), span(0, 1, 3), np.array([0, 2])),
    ],
)
def test_shapes_that_disagree(value, records, reps):
    refused(value, records, reps, "needs as many rows")


@pytest.mark.parametrize("records", [span([0, 5, 0], [1, 4, 1]), span([0, -1, 0], [1, 4, 1])], ids=["backwards", "negative"])
def test_spans_that_would_charge_nobody(records):
    refused(np.zeros(3), records, None, r"row 1 is \[(5|-1), 4\)")


@pytest.mark.parametrize("reps", [[0, 0], [2, 1], [0, 3], [-1, 0]])
def test_replicates_that_are_not_increasing_indices(reps):
    refused(np.zeros(2), span(0, 1, 2), np.array(reps), "increasing indices")


def refused(value, records, reps, message):
    ledger = LiveLedger(3, ConstantNoise(), keeps_transcript=True)
    with pytest.raises(ValueError, match=message):
        ledger.release(UNIT, value, records=records, reps=reps)
    assert ledger.noise.calls == 0
    assert ledger.worst_record() == Counter()
    assert ledger.transcript == []
