"""Carried records: which rows the ledger takes for the continuation of a sequence, what they cost, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_maps import answers_of

from bandana.privacy_core import (
    BudgetExceeded,
    Carried,
    DiscreteGaussian,
    DoublingSum,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    JointGaussian,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    ReproducibleNoise,
    ScriptedLedger,
    SymmetricGaussian,
    TreeSum,
)

UNIT, OTHER = Gaussian(1.0, 1.0), Gaussian(1.0, 2.0)


def row(ledger, start, stop, first, *, label="", mechanism=UNIT, reps=None, value=0.0):
    """Releases one row of a sequence that began at `first`."""
    n_rows = ledger.n_reps if reps is None else len(reps)
    records = span(start, stop, n_rows)
    begun = np.broadcast_to(np.asarray(first, dtype=np.int64), n_rows).copy()
    reps = None if reps is None else np.array(reps)
    return ledger.release(mechanism, np.full(n_rows, value), records=records, reps=reps, carried=Carried(label, begun))


def new_ledger(n_reps=1, **options):
    return LiveLedger(n_reps, ConstantNoise(), keeps_transcript=True, **options)


def is_refused(ledger, *arguments, **options):
    calls, kept, book = ledger.noise.calls, len(ledger.transcript), ledger.worst_record()
    with pytest.raises(ValueError, match="carried records must be those that entered the sequence"):
        row(ledger, *arguments, **options)
    assert (ledger.noise.calls, len(ledger.transcript), ledger.worst_record()) == (calls, kept, book)


@pytest.fixture(params=[None, [0]], ids=["all", "by index"])
def reps(request):
    """The two ways of naming all replicates of a ledger of one: their books are kept in two ways."""
    return request.param


def test_a_sequence_is_paid_for_once(reps):
    ledger = new_ledger(budget=GaussianDP(1.0))
    for start, stop in [(0, 3), (3, 4), (4, 4), (4, 9)]:
        row(ledger, start, stop, 0, reps=reps)
    assert ledger.worst_record() == {GaussianEvent(1.0): 1}
    assert ledger.guarantee() == GaussianDP(1.0)
    assert [release.reads(2).tolist() for release in ledger.transcript] == [[True]] * 4
    assert [release.reads(4).tolist() for release in ledger.transcript] == [[False], [False], [False], [True]]


@pytest.mark.parametrize(("start", "stop", "first"), [
    (6, 7, 0),  # leaves out record 5
    (4, 7, 0),  # record 4 again
    (5, 7, 1),  # another beginning
    (5, 7, 4),
    (0, 5, 0),  # the same once more
    (3, 9, 3),  # begins inside what has entered
    (4, 4, 4),
    (2, 5, 0),
], ids=str)  # fmt: skip
def test_rows_that_do_not_continue_what_entered(start, stop, first, reps):
    ledger = new_ledger()
    row(ledger, 0, 2, 0, reps=reps)
    row(ledger, 2, 5, 0, reps=reps)
    is_refused(ledger, start, stop, first, reps=reps)
    row(ledger, 5, 6, 0, reps=reps)
    assert ledger.noise.calls == 3, "the sequence itself goes on"


def test_rows_of_a_sequence_that_never_began(reps):
    is_refused(new_ledger(), 3, 4, 0, reps=reps)
    is_refused(new_ledger(), 0, 4, 3, reps=reps)
    ledger = new_ledger()
    row(ledger, 0, 3, 0, label="another", reps=reps)
    is_refused(ledger, 3, 4, 0, label="", reps=reps)


def test_other_noise_in_the_same_sequence(reps):
    """Less noise later would undo what was paid for more of it."""
    ledger = new_ledger()
    row(ledger, 0, 3, 0, mechanism=OTHER, reps=reps)
    is_refused(ledger, 3, 4, 0, mechanism=UNIT, reps=reps)
    row(ledger, 3, 4, 0, mechanism=Gaussian(1.0, 2.0), reps=reps)  # equal is the same


def test_a_sequence_may_begin_anew_after_its_end_with_other_noise(reps):
    ledger = new_ledger()
    row(ledger, 0, 3, 0, reps=reps)
    row(ledger, 3, 5, 3, mechanism=OTHER, reps=reps)
    row(ledger, 5, 6, 3, mechanism=OTHER, reps=reps)
    is_refused(ledger, 6, 7, 0, mechanism=UNIT, reps=reps)
    is_refused(ledger, 6, 7, 3, mechanism=UNIT, reps=reps)
    row(ledger, 8, 9, 8, reps=reps)
    assert ledger.worst_record() == {GaussianEvent(1.0): 1}


def test_the_message_names_the_label_and_both_spans():
    ledger = new_ledger()
    row(ledger, 0, 3, 0, label="rewards")
    with pytest.raises(
        ValueError, match=r"sequence 'rewards' so far, \[0, 3\); got \[0, 5\); give each of several sums a label"
    ):
        row(ledger, 5, 6, 0, label="rewards")


def test_two_sums_need_two_labels():
    for labels in [("", ""), ("a", "b")]:
        ledger = LiveLedger(2, ConstantNoise())
        sums = [FactorizedSum(UNIT, 8, label=label) for label in labels]
        states = [each.init(2) for each in sums]
        for step in range(3):
            for i, each in enumerate(sums):
                states[i] = each.add(states[i], np.ones(2), np.ones(2, dtype=np.int64))
                if labels[0] == labels[1] and i == 1:
                    with pytest.raises(ValueError, match="label of its own"):
                        each.close(states[i], ledger)
                else:
                    states[i], _, _ = each.close(states[i], ledger)
            del step
        assert ledger.worst_record() == {GaussianEvent(1.0): len(set(labels))}


def test_two_sums_need_two_labels_even_if_both_begin_without_records():
    ledger, nobody = LiveLedger(1, ConstantNoise()), np.zeros(1, dtype=np.int64)
    sums = [FactorizedSum(UNIT, 8) for _ in range(2)]
    states = [each.init(1) for each in sums]
    for i, each in enumerate(sums):
        states[i], _, _ = each.close(each.add(states[i], np.zeros(1), nobody), ledger)
    states[0], _, _ = sums[0].close(sums[0].add(states[0], np.ones(1), nobody + 1), ledger)
    with pytest.raises(ValueError, match="label of its own"):
        sums[1].close(sums[1].add(states[1], np.ones(1), nobody + 1), ledger)


def test_two_labels_pay_twice_and_a_budget_sees_it():
    ledger = new_ledger(budget=GaussianDP(1.0))
    row(ledger, 0, 3, 0, label="a")
    with pytest.raises(BudgetExceeded):
        row(ledger, 0, 3, 0, label="b")
    row(ledger, 3, 4, 3, label="b")
    with pytest.raises(BudgetExceeded):
        row(ledger, 3, 4, 0, label="a")


def test_a_refusal_by_the_budget_leaves_the_sequence_where_it_was(reps):
    ledger = new_ledger(budget=GaussianDP(1.2))
    row(ledger, 0, 3, 0, reps=reps)
    ledger.release(UNIT, np.zeros(1), records=span(3, 4))
    with pytest.raises(BudgetExceeded):
        row(ledger, 3, 5, 0, reps=reps)
    is_refused(ledger, 5, 6, 0, reps=reps)
    ledger.budget = GaussianDP(2.0)
    row(ledger, 3, 5, 0, reps=reps)
    assert ledger.worst_record() == {GaussianEvent(1.0): 2}


def test_replicates_have_sequences_of_their_own():
    ledger = new_ledger(3)
    row(ledger, 0, 2, 0, reps=[0, 2])
    row(ledger, [2, 0], [3, 4], 0, reps=[0, 1])
    is_refused(ledger, [3, 3], [5, 5], 0, reps=[0, 2])
    is_refused(ledger, 3, 5, 0)
    row(ledger, [3, 4, 2], [5, 5, 5], 0)
    row(ledger, 5, 6, 0)
    row(ledger, 6, 7, [0, 6, 0])  # replicate 1 begins anew
    is_refused(ledger, 7, 8, 0)
    row(ledger, 7, 8, [0, 6, 0])
    assert [ledger.worst_record(rep=rep) for rep in range(3)] == [{GaussianEvent(1.0): 1}] * 3


def test_replicates_that_enter_the_same_records_may_not_carry_different_ones():
    """The first replicate continues its sequence; the second one claims one that began a record later."""
    ledger = new_ledger(2)
    row(ledger, 0, 2, 0)
    is_refused(ledger, 2, 3, [0, 1])
    row(ledger, 2, 3, [0, 0])
    assert ledger.worst_record() == {UNIT.event: 1}


def test_a_replicate_cannot_borrow_the_noise_of_another():
    """Replicate 0 paid for noise 2; that replicate 1 began its own sequence with noise 1 is no reason to go on with that."""
    ledger = new_ledger(2)
    row(ledger, 0, 3, 0, mechanism=OTHER, reps=[0])
    row(ledger, 0, 3, 0, mechanism=UNIT, reps=[1])
    is_refused(ledger, 3, 4, 0, mechanism=UNIT, reps=[0])


def test_each_replicate_goes_on_with_its_own_noise():
    ledger = new_ledger(2)
    row(ledger, 0, 3, 0, mechanism=OTHER, reps=[0])
    row(ledger, 0, 3, 0, mechanism=UNIT, reps=[1])
    row(ledger, 3, 4, 0, mechanism=OTHER, reps=[0])
    row(ledger, 3, 4, 0, mechanism=UNIT, reps=[1])


@pytest.mark.parametrize("first", [[], [0], [0, 0], [0, 0, 0, 0]], ids=len)
def test_as_many_carried_rows_as_rows(first):
    ledger = new_ledger(3)
    with pytest.raises(ValueError, match="carried needs 3 rows"):
        ledger.release(UNIT, np.zeros(3), records=span(0, 2, 3), carried=Carried("", np.array(first, dtype=np.int64)))


@pytest.mark.parametrize(
    ("mechanism", "value"),
    [
        (SymmetricGaussian(1.0, 1.0), np.zeros((1, 3, 2))),
        (JointGaussian(1.0, 1.0, 1.0), np.zeros((1, 3))),
        (DiscreteGaussian(1.0, 1.0, 0.5), np.array([0.3])),
    ],
    ids=["no matrix", "no pair", "off the grid"],
)
def test_what_the_mechanism_refuses_is_not_charged(mechanism, value):
    ledger = new_ledger()
    with pytest.raises(ValueError, match="value"):
        ledger.release(mechanism, value, records=span(0, 1), carried=Carried("", np.array([0])))
    assert not ledger.worst_record()
    row(ledger, 0, 1, 0)


def test_pure_noise_cannot_be_paid_for_once():
    ledger = new_ledger()
    with pytest.raises(ValueError, match="Laplace"):
        row(ledger, 0, 1, 0, mechanism=Laplace(1.0, 1.0))


class Sequences:
    """Every record of every sequence that entered, one by one: what the ledger must agree with."""

    def __init__(self, n_reps):
        self.entered = [{} for _ in range(n_reps)]

    def accepts(self, label, reps, starts, stops, firsts):
        for rep, start, stop, first in zip(reps, starts, stops, firsts, strict=True):
            known = self.entered[rep].get(label)
            begins = first == start and (known is None or known[1] <= start)
            continues = known is not None and known == (first, start)
            if not (begins or continues) or stop < start:
                return False
        return True

    def enter(self, label, reps, stops, firsts):
        for rep, stop, first in zip(reps, stops, firsts, strict=True):
            self.entered[rep][label] = (first, stop)


@st.composite
def steps(draw):
    """One row of a sequence in some of two replicates: often the right one, sometimes not."""
    reps = draw(st.sampled_from([None, [0], [1], [0, 1]]))
    width = draw(st.integers(0, 2))
    shifts = [draw(st.sampled_from([0, 0, 0, 0, 1, -1])) for _ in range(2)]
    anew = [draw(st.sampled_from([False, False, False, True])) for _ in range(2)]
    return draw(st.sampled_from("ab")), reps, width, shifts, anew


@settings(max_examples=200)
@given(st.lists(steps(), max_size=14))
def test_against_a_table_of_what_entered(entries):
    ledger, table = new_ledger(2), Sequences(2)
    for label, reps, width, shifts, anew in entries:
        owners = [0, 1] if reps is None else reps
        known = [table.entered[rep].get(label, (0, 0)) for rep in owners]
        starts = [max(0, end + shifts[rep]) for rep, (_, end) in zip(owners, known, strict=True)]
        firsts = [start if anew[rep] else first for rep, start, (first, _) in zip(owners, starts, known, strict=True)]
        stops = [start + width for start in starts]
        calls = ledger.noise.calls
        if table.accepts(label, owners, starts, stops, firsts):
            row(ledger, starts, stops, firsts, label=label, reps=reps)
            table.enter(label, owners, stops, firsts)
            assert ledger.noise.calls == calls + 1
        else:
            is_refused(ledger, starts, stops, firsts, label=label, reps=reps)


class TestScripts:
    """A script knows carried rows from others."""

    def recorded(self):
        live = LiveLedger(3, ReproducibleNoise(np.random.SeedSequence(2)), keeps_transcript=True)
        row(live, 0, 2, 0, value=1.0)
        row(live, 2, 3, 0, reps=[0, 2], value=2.0)
        return live.transcript

    def test_the_same_rows_in_other_calls(self):
        transcript = self.recorded()
        scripted = ScriptedLedger(3, transcript, keeps_values=True)
        for rep in (2, 0, 1):
            row(scripted, 0, 2, 0, reps=[rep], value=1.5)
        row(scripted, 2, 3, 0, reps=[2], value=2.0)
        row(scripted, 2, 3, 0, reps=[0], value=2.0)
        scripted.finish()
        assert scripted.diverged.tolist() == [-1, -1, -1]
        change = [(release.value - value).tolist() for release, value in zip(transcript, scripted.values, strict=True)]
        assert change == [[-0.5] * 3, [0.0, 0.0]]

    @pytest.mark.parametrize(("label", "first"), [("other", 0), ("", 1)])
    @pytest.mark.parametrize("whole", [True, False], ids=["all at once", "one by one"])
    def test_another_sequence_diverges(self, label, first, whole):
        scripted = ScriptedLedger(3, self.recorded())
        if not whole:
            row(scripted, 0, 2, 0, reps=[0, 1])
            row(scripted, 0, 2, 0, reps=[2])
        else:
            row(scripted, 0, 2, 0)
        row(scripted, 2, 3, first, label=label, reps=[0, 2])
        scripted.finish()
        assert scripted.diverged.tolist() == [1, -1, 1]

    def test_a_row_that_carries_nobody_diverges(self):
        for reps in (None, np.array([0, 1, 2])):
            scripted = ScriptedLedger(3, self.recorded())
            scripted.release(UNIT, np.ones(3), records=span(0, 2, 3), reps=reps)
            assert scripted.diverged.tolist() == [0, 0, 0]


def test_a_script_keeps_values_that_are_no_integers():
    """Although the recorded ones were."""
    live = LiveLedger(2, ConstantNoise(), keeps_transcript=True)
    live.release(UNIT, np.array([3, 4]), records=span(0, 1, 2))
    scripted = ScriptedLedger(2, live.transcript, keeps_values=True)
    assert np.isnan(scripted.values[0]).all()
    scripted.release(UNIT, np.array([3.5, 4.0]), records=span(0, 1, 2))
    assert scripted.values[0].tolist() == [3.5, 4.0]


def _factorized(n):
    return FactorizedSum(UNIT, n, label="doubling")


def test_sums_of_several_kinds_in_one_ledger():
    """Trees pay for each node, a factorized sum once; both over the same records."""
    ledger = LiveLedger(2, ConstantNoise())
    kinds = [TreeSum(UNIT, 8), FactorizedSum(UNIT, 8), DoublingSum(_factorized, 1, growth=2)]
    for sums in kinds:
        answers_of(sums, ledger, np.zeros((8, 2)), is_staggered=True)
    assert ledger.worst_record() == {GaussianEvent(1.0): 4 + 1 + 1}


@pytest.mark.parametrize("rep", [0, 1])
def test_a_replicate_that_some_events_do_not_touch(rep):
    """Asked for one replicate, or for an early time, the ledger leaves out families that occur elsewhere only."""
    ledger = LiveLedger(2, ConstantNoise())
    for owner, mechanism in enumerate([Laplace(1.0, 2.0), Gaussian(1.0, 2.0)]):
        ledger.release(mechanism, np.zeros(1), records=span(0, 3), reps=np.array([owner]))
        ledger.release(mechanism, np.zeros(1), records=span(2, 5), reps=np.array([owner]))
    ledger.release(Laplace(1.0, 9.0), np.zeros(2), records=span(7, 9, 2))
    event = [LaplaceEvent(2.0), GaussianEvent(2.0)][rep]
    assert {event: 2} in ledger.worst_records(rep=rep)
    assert {event: 1} in ledger.worst_records(rep=rep, before=3)
    assert len(ledger.worst_records(rep=rep, before=5)) == 1
