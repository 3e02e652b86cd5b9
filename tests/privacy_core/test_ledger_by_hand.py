"""The book on cases that can be counted on fingers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from doubles import ConstantNoise, span

from bandana.privacy_core import (
    Carried,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    NonPrivateEvent,
    NoPrivacy,
    PrivacyCurve,
    PureDP,
    Relation,
    TrustModel,
)
from bandana.privacy_core.accounting.book import Book

UNIT = Gaussian(1.0, 1.0)
DOUBLE = Gaussian(1.0, 2.0)
ONE = np.zeros(1)


def ledger_of(*spans, mechanism=UNIT):
    ledger = LiveLedger(1, ConstantNoise())
    for start, stop in spans:
        ledger.release(mechanism, ONE, records=span(start, stop))
    return ledger


def test_a_release_is_the_value_plus_scaled_noise():
    ledger = LiveLedger(3, ConstantNoise(2.0))
    value = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    found = ledger.release(Gaussian(3.0, 0.5), value, records=span(0, 4, 3))
    assert found.tolist() == [[4.0, 5.0], [6.0, 7.0], [8.0, 9.0]]
    assert ledger.noise.calls == 1


def test_nothing_released_costs_nothing():
    assert ledger_of().worst_record() == Counter()
    assert ledger_of().guarantee() is None


def test_disjoint_spans_compose_in_parallel():
    ledger = ledger_of((0, 5), (5, 6), (6, 100), (200, 201))
    assert ledger.worst_record() == {GaussianEvent(1.0): 1}
    assert ledger.guarantee() == GaussianDP(1.0)


def test_disjoint_spans_in_any_order_compose_in_parallel():
    assert ledger_of((6, 100), (0, 5), (5, 6)).worst_record() == {GaussianEvent(1.0): 1}


def test_the_same_span_composes_in_sequence():
    assert ledger_of((0, 5), (0, 5), (0, 5), (0, 5)).guarantee() == GaussianDP(2.0)


def test_one_common_record_is_enough():
    assert ledger_of((0, 5), (4, 9), (9, 12)).worst_record() == {GaussianEvent(1.0): 2}


def test_the_worst_record_is_not_the_one_with_most_charges():
    ledger = ledger_of((0, 5), (0, 5), (0, 5), mechanism=DOUBLE)
    ledger.release(UNIT, ONE, records=span(7, 8))
    assert ledger.worst_record() == {GaussianEvent(1.0): 1}
    ledger.release(DOUBLE, ONE, records=span(0, 8))
    ledger.release(DOUBLE, ONE, records=span(0, 5))
    # Records 0-4: 5 x 1/4; record 7: 1 + 1/4. Equal, so one more breaks the tie.
    ledger.release(DOUBLE, ONE, records=span(7, 8))
    assert ledger.worst_record() == {GaussianEvent(1.0): 1, GaussianEvent(2.0): 2}
    assert ledger.guarantee().mu == pytest.approx(1.5**0.5)


def test_a_tree_over_8_users():
    """Nodes are released when complete; user t lies in its leaf and in the completed nodes above it."""
    ledger = LiveLedger(1, ConstantNoise())
    values = 2.0 ** np.arange(8)
    nodes = {}
    for t in range(1, 9):
        size = 1
        while t % size == 0 and size <= 8:
            exact = values[t - size : t].sum(keepdims=True)
            nodes[t - size, t] = ledger.release(UNIT, exact, records=span(t - size, t))[0] - exact[0]
            size *= 2
    assert len(nodes) == 15
    assert ledger.worst_record() == {GaussianEvent(1.0): 4}
    assert ledger.guarantee() == GaussianDP(2.0)
    prefix_noise = []
    for t in range(1, 9):
        noise, start = 0.0, 0
        for size in (8, 4, 2, 1):
            if t & size:
                noise += nodes[start, start + size]
                start += size
        prefix_noise.append(noise)
    assert prefix_noise == [1, 1, 2, 1, 2, 2, 3, 1]
    # Before the tree's root closes, no record has paid for it.
    assert ledger.worst_record(before=7) == {GaussianEvent(1.0): 3}
    assert ledger.worst_record(before=3) == {GaussianEvent(1.0): 2}
    assert ledger.worst_record(before=0) == Counter()


def test_replicates_have_their_own_spans():
    ledger = LiveLedger(3, ConstantNoise())
    ledger.release(UNIT, np.zeros(3), records=span([0, 0, 0], [5, 3, 8]))
    ledger.release(UNIT, np.zeros(2), records=span([5, 2], [9, 6]), reps=np.array([0, 1]))
    ledger.release(UNIT, np.zeros(2), records=span([9, 7], [10, 9]), reps=np.array([0, 2]))
    assert [ledger.worst_record(rep=rep) for rep in range(3)] == [
        {GaussianEvent(1.0): 1},
        {GaussianEvent(1.0): 2},
        {GaussianEvent(1.0): 2},
    ]
    assert ledger.worst_record() == {GaussianEvent(1.0): 2}
    assert ledger.worst_record(before=6) == {GaussianEvent(1.0): 2}
    assert ledger.worst_record(before=6, rep=2) == Counter()
    assert ledger.worst_record(before=5) == {GaussianEvent(1.0): 1}


def test_one_replicate_is_looked_at_again_after_more_releases_and_beside_others():
    book = Book(2)
    book.add(GaussianEvent(1.0), np.array([0, 5]), np.array([3, 6]), None)
    assert [book.worst(rep=rep) for rep in (0, 1, 0)] == [[{GaussianEvent(1.0): 1}]] * 3
    book.add(GaussianEvent(1.0), np.array([2]), np.array([4]), np.array([0]))
    assert [book.worst(rep=rep) for rep in (0, 1)] == [[{GaussianEvent(1.0): 2}], [{GaussianEvent(1.0): 1}]]
    assert [book.worst(before=before, rep=0) for before in (2, 3, 4)] == [
        [], [{GaussianEvent(1.0): 1}], [{GaussianEvent(1.0): 2}],
    ]  # fmt: skip
    book.add(GaussianEvent(1.0), 2, 3, None)  # the same in every replicate
    assert book.worst(rep=0) == [{GaussianEvent(1.0): 3}]


def test_what_is_released_as_it_is_dominates():
    ledger = ledger_of((0, 5), (0, 5))
    ledger.release(Exact(), ONE, records=span(7, 8))
    assert ledger.worst_record() == {NonPrivateEvent(): 1}
    assert ledger.guarantee() == NoPrivacy()


def test_laplace_adds():
    ledger = ledger_of((0, 5), (4, 9), mechanism=Laplace(1.0, 4.0))
    assert ledger.guarantee() == PureDP(0.5)


def test_a_mixture_has_no_closed_form():
    ledger = ledger_of((0, 5))
    ledger.release(Laplace(1.0, 4.0), ONE, records=span(0, 5))
    assert ledger.worst_record() == {GaussianEvent(1.0): 1, LaplaceEvent(4.0): 1}
    assert ledger.guarantee() == PrivacyCurve.of({GaussianEvent(1.0): 1, LaplaceEvent(4.0): 1})


def test_the_transcript_is_kept_only_if_asked_for():
    assert ledger_of((0, 5)).transcript == []
    ledger = LiveLedger(2, ConstantNoise(), keeps_transcript=True)
    reps = np.array([1])
    ledger.release(UNIT, np.array([3.0]), records=span(0, 4), reps=reps)
    (entry,) = ledger.transcript
    assert entry.mechanism == UNIT
    assert entry.value.tolist() == [3.0]
    assert entry.output.tolist() == [4.0]
    assert entry.reps.tolist() == [1]
    assert (entry.records.start.tolist(), entry.records.stop.tolist()) == ([0], [4])


def test_replicates_over_the_same_records_pay_together():
    """Two runs, each with a release of its own to records 0 and 1, and one to record 2 of the second alone."""
    ledger = LiveLedger(2, ConstantNoise())
    assert ledger.composed_record() == Counter()
    ledger.release(DOUBLE, np.zeros((2, 1)), records=span(1, 1, 2))
    assert ledger.composed_record() == Counter()
    ledger.release(UNIT, np.zeros((2, 1)), records=span(0, 2, 2))
    ledger.release(DOUBLE, ONE, records=span(2, 3), reps=np.array([1]))
    assert ledger.composed_record() == Counter({UNIT.event: 2})
    ledger.release(Laplace(1.0, 1.0), ONE, records=span(2, 3), reps=np.array([0]))
    # Record 2 paid the Laplace event, which no other did: both are named, each as often as the record that paid most.
    assert ledger.composed_record() == Counter({UNIT.event: 2, DOUBLE.event: 1, LaplaceEvent(1.0): 1})
    ledger.release(Exact(), np.zeros((2, 1)), records=span(5, 6, 2))
    assert ledger.composed_record() == Counter({NonPrivateEvent(): 1})


def test_a_transcript_holds_on_to_no_exact_state():
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    sums = FactorizedSum(UNIT, 3)
    sums.close(sums.add(sums.init(1, (1,)), np.ones((1, 1)), np.ones(1, dtype=np.int64)), ledger)
    (release,) = ledger.transcript
    assert release.carried.label == ""
    assert release.carried.columns == sums.factorization
    assert release.carried.rest is None


def test_the_row_that_carries_wrong_records_is_named():
    ledger = LiveLedger(2, ConstantNoise())
    with pytest.raises(ValueError, match=r"carried records must be .*, \[-1, -1\); got \[3, 4\)"):
        ledger.release(UNIT, np.zeros((2, 1)), records=span(4, 5, 2), carried=Carried("", np.array([4, 3])))


def test_a_curve_is_of_the_ledger_s_relation_and_trust():
    ledger = LiveLedger(1, ConstantNoise(), trust=TrustModel.LOCAL)
    assert ledger.curve() is None
    ledger.release(Gaussian(1.0, 1.0, Relation.REPLACE_REWARD), ONE, records=span(0, 1))
    assert (ledger.curve().relation, ledger.curve().trust) == (Relation.REPLACE_REWARD, TrustModel.LOCAL)
