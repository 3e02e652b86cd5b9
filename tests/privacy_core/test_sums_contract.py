"""What every sum promises, whatever its noise: batches, own clocks, shapes, refusals, and whose memory is whose."""

from __future__ import annotations

import copy
import math
import pickle
import re
from functools import partial
from itertools import product

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger, span
from linear_maps import agree, noise_map

from bandana.privacy_core import (
    EQUAL,
    BudgetExceeded,
    DoublingSum,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    JointGaussian,
    Laplace,
    LiveLedger,
    LocalSum,
    PhaseSum,
    PureDP,
    SymmetricGaussian,
    TreeSum,
)

N_STEPS = 40
"""Most steps of the sums that have a limit."""
KINDS = {
    "phase": PhaseSum,
    "local": LocalSum,
    "tree": partial(TreeSum, n_steps=N_STEPS),
    "honaker": partial(TreeSum, n_steps=N_STEPS, honaker=True),
    "dense": partial(FactorizedSum, n_steps=30),
    "buffered": partial(FactorizedSum, n_steps=N_STEPS),
    "one buffer": partial(FactorizedSum, n_steps=N_STEPS, n_buffers=1),
    "doubling tree": lambda mechanism: DoublingSum(partial(TreeSum, mechanism), 2, growth=2),
    "doubling honaker": lambda mechanism: DoublingSum(partial(TreeSum, mechanism, honaker=True), 1, growth=2),
    "doubling dense": lambda mechanism: DoublingSum(partial(FactorizedSum, mechanism), 2, growth=2),
    "doubling buffered": lambda mechanism: DoublingSum(partial(FactorizedSum, mechanism, n_buffers=2), 2, growth=2),
}
LIMITED = ["tree", "honaker", "dense", "buffered", "one buffer"]
MATRIX = [
    (SymmetricGaussian.of_outer_products(1.0, 2.0), (3, 3)),
    (SymmetricGaussian(1.0, 2.0, EQUAL), (2, 2, 2)),
    (JointGaussian(1.0, 0.5, 2.0, vector_ratio=3.0), (3, 4)),
]
GAUSS, LAPLACE = Gaussian(1.0, 2.0), Laplace(1.0, 2.0)
SHAPES = [(), (3,), (2, 3, 3), (1, 1)]
every_kind = pytest.mark.parametrize("kind", list(KINDS))


def takes_one_record(kind):
    return kind == "local"


def rounds(kind, n_reps, shape, seed=0, n_rounds=25):
    """A random schedule: (value, n_records, the replicates that close after it); now and then all of them do."""
    generator = np.random.default_rng(seed)
    waiting = np.zeros(n_reps, dtype=np.int64)
    for _ in range(n_rounds):
        n_records = generator.integers(0, 2 if takes_one_record(kind) else 4, n_reps)
        if takes_one_record(kind):
            n_records[waiting > 0] = 0
        waiting += n_records
        value = generator.integers(-8, 9, (n_reps, *shape)).astype(float)
        value[n_records == 0] = 0.0
        chosen = np.flatnonzero(generator.random(n_reps) < 0.6)
        reps = None if generator.random() < 0.3 or not len(chosen) else chosen
        waiting[slice(None) if reps is None else reps] = 0
        yield value, n_records, reps


def only(schedule, rep):
    """The same schedule as one replicate sees it; None where it does not close."""
    for value, n_records, reps in schedule:
        closes = reps is None or rep in reps
        yield value[rep : rep + 1], n_records[rep : rep + 1], closes


def arrays_of(state):
    """Every array in a state, in order."""
    if isinstance(state, np.ndarray):
        return [state]
    return [array for part in state or () for array in arrays_of(part)] if isinstance(state, tuple | list) else []


def same_state(first, second):
    ours, theirs = arrays_of(first), arrays_of(second)
    return len(ours) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def play(sums, ledger, schedule, shape):
    """(replicate, answer, number of records) of each row that was answered."""
    state, found = sums.init(ledger.n_reps, shape), []
    for value, n_records, reps in schedule:
        state = sums.add(state, value, n_records)
        state, answers, n_closed = sums.close(state, ledger, reps)
        owners = np.arange(ledger.n_reps) if reps is None else reps
        assert answers.shape == (len(owners), *shape)
        assert n_closed.shape == (len(owners),)
        found += [(rep, answer.copy(), int(n)) for rep, answer, n in zip(owners.tolist(), answers, n_closed, strict=True)]
    return found


def releases_of(transcript, rep):
    """What one replicate released: mechanism, span, first carried record, exact value and output."""
    for release in transcript:
        reps = np.arange(len(release.value)) if release.reps is None else release.reps
        for row in np.flatnonzero(reps == rep):
            carried = None if release.carried is None else int(release.carried.start[row])
            records = int(release.records.start[row]), int(release.records.stop[row])
            yield (release.mechanism, records, carried), release.value[row], release.output[row]


def is_lone_run(kind, mechanism, shape, seed):
    n_reps, sums = 5, KINDS[kind](mechanism)
    schedule = list(rounds(kind, n_reps, shape, seed))
    ledger = OwnNoiseLedger(list(range(10, 10 + n_reps)), keeps_transcript=True)
    together = play(sums, ledger, schedule, shape)
    for rep in range(n_reps):
        alone, state, mine = OwnNoiseLedger([10 + rep], keeps_transcript=True), sums.init(1, shape), []
        for value, n_records, closes in only(schedule, rep):
            state = sums.add(state, value, n_records)
            if closes:
                state, answer, n_closed = sums.close(state, alone)
                mine.append((answer[0].copy(), int(n_closed[0])))
        batched = [(answer, n) for owner, answer, n in together if owner == rep]
        assert [n for _, n in batched] == [n for _, n in mine]
        for (answer, _), (expected, _) in zip(batched, mine, strict=True):
            assert agree(answer, expected, rel=1e-11, abs=1e-10)
        ours, theirs = list(releases_of(ledger.transcript, rep)), list(releases_of(alone.transcript, 0))
        assert [entry[0] for entry in ours] == [entry[0] for entry in theirs]
        for (_, value, output), (_, lone_value, lone_output) in zip(ours, theirs, strict=True):
            assert agree(value, lone_value, rel=1e-11, abs=1e-10)
            assert agree(output, lone_output, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_kind
def test_a_replicate_of_a_batch_is_its_lone_run(kind, shape, seed):
    is_lone_run(kind, GAUSS, shape, seed)


@pytest.mark.parametrize(("mechanism", "shape"), MATRIX, ids=["symmetric", "equal", "joint"])
@every_kind
def test_a_replicate_of_a_batch_of_matrices_is_its_lone_run(kind, mechanism, shape):
    is_lone_run(kind, mechanism, shape, 3)


@pytest.mark.parametrize("kind", ["phase", "local", "tree", "honaker", "doubling tree"])
def test_a_replicate_of_a_batch_with_laplace_noise_is_its_lone_run(kind):
    is_lone_run(kind, LAPLACE, (2,), 4)


@every_kind
def test_the_order_of_equal_closings_does_not_matter(kind):
    """All at once, or one replicate after another."""
    sums, n_reps = KINDS[kind](GAUSS), 3
    data = np.random.default_rng(1).integers(-9, 9, (12, n_reps, 2)).astype(float)
    answers = []
    for one_by_one in (False, True):
        ledger, state = OwnNoiseLedger([1, 2, 3]), sums.init(n_reps, (2,))
        for value in data:
            state = sums.add(state, value, np.ones(n_reps, dtype=np.int64))
            if one_by_one:
                parts = []
                for rep in range(n_reps):
                    state, answer, _ = sums.close(state, ledger, np.array([rep]))
                    parts.append(answer[0])
                answers.append(np.array(parts))
            else:
                state, answer, _ = sums.close(state, ledger)
                answers.append(answer.copy())
    for first, second in zip(answers[:12], answers[12:], strict=True):
        assert first == pytest.approx(second, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@every_kind
def test_the_twin_sums_exactly(kind, shape):
    n_reps, sums = 4, KINDS[kind](Exact())
    schedule = list(rounds(kind, n_reps, shape, seed=5))
    noise = ConstantNoise()
    found = play(sums, LiveLedger(n_reps, noise), schedule, shape)
    assert noise.calls == 0
    expected, total, n_open = [], np.zeros((n_reps, *shape)), np.zeros(n_reps, dtype=int)
    for value, n_records, reps in schedule:
        total, n_open = total + value, n_open + n_records
        for rep in range(n_reps) if reps is None else reps.tolist():
            expected.append((rep, total[rep].copy(), int(n_open[rep])))
            n_open[rep] = 0
            if kind == "phase":
                total[rep] = 0.0
    assert [(rep, n) for rep, _, n in found] == [(rep, n) for rep, _, n in expected]
    for (_, answer, _), (_, truth, _) in zip(found, expected, strict=True):
        assert agree(answer, truth, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize(("mechanism", "shape"), MATRIX, ids=["symmetric", "equal", "joint"])
@every_kind
def test_matrices_are_answered_symmetric_and_read_above_the_diagonal_only(kind, mechanism, shape):
    sums, n_reps = KINDS[kind](mechanism), 2
    d = shape[-2]
    below = np.tril(np.ones((d, d), dtype=bool), -1)
    ledgers = [OwnNoiseLedger([1, 2]) for _ in range(2)]
    states = [sums.init(n_reps, shape) for _ in range(2)]
    generator = np.random.default_rng(2)
    exact = np.zeros((n_reps, *shape))
    for _ in range(9):
        value = generator.normal(size=(n_reps, *shape))
        value[..., :d] += np.swapaxes(value[..., :d], -1, -2)
        exact = value.copy() if kind == "phase" else exact + value
        other = value.copy()
        other[..., :d][..., below] = 1e9
        answers = []
        for i, side in enumerate((value, other)):
            states[i] = sums.add(states[i], side, np.ones(n_reps, dtype=np.int64))
            states[i], answer, _ = sums.close(states[i], ledgers[i])
            answers.append(answer)
        assert np.array_equal(answers[0], answers[1])
        assert np.array_equal(answers[0][..., :d], np.swapaxes(answers[0][..., :d], -1, -2))
        assert np.abs(answers[0] - exact).max() < 100 * mechanism.scale


UNIT, DEAR, BUDGET = Gaussian(1.0, 1.0), Gaussian(1.0, 0.8), GaussianDP(1.5)


class TestRefusalsOfTheBudget:
    """The sum's own records are paid for; one that the next step reads has been spent elsewhere."""

    def until_refused(self, kind, spent_at=2, n_before=2, mechanism=UNIT, elsewhere=DEAR, budget=BUDGET):
        """A sum of two replicates after `n_before` steps, and with an open phase that replicate 1 cannot pay for."""
        sums = KINDS[kind](mechanism)
        ledger, state = LiveLedger(2, ConstantNoise(1.0), budget=budget, keeps_transcript=True), sums.init(2, (2,))
        for t in range(n_before):
            state = sums.add(state, np.full((2, 2), t + 1.0), np.ones(2, dtype=np.int64))
            state, _, _ = sums.close(state, ledger)
        ledger.release(elsewhere, np.zeros(1), records=span(spent_at, spent_at + 1), reps=np.array([1]))
        state = sums.add(state, np.full((2, 2), 64.0), np.ones(2, dtype=np.int64))
        return sums, ledger, state

    def is_refused(self, sums, ledger, state):
        calls, kept = ledger.noise.calls, len(ledger.transcript)
        books = [ledger.worst_record(rep=rep) for rep in range(2)]
        for reps in (None, np.array([1]), np.array([0, 1])):
            with pytest.raises(BudgetExceeded, match="would raise a record's privacy loss"):
                sums.close(state, ledger, reps)
            assert ledger.noise.calls == calls, "no noise is drawn for what is refused"
            assert len(ledger.transcript) == kept
            assert [ledger.worst_record(rep=rep) for rep in range(2)] == books

    @every_kind
    def test_nothing_of_what_was_refused_is_kept(self, kind):
        n_before = 3 if kind.startswith("doubling") and kind != "doubling honaker" else 2  # inside a segment
        sums, ledger, state = self.until_refused(kind, n_before, n_before)
        before = copy.deepcopy(state)
        self.is_refused(sums, ledger, state)
        assert same_state(before, state)

    @every_kind
    def test_the_sum_goes_on(self, kind):
        """In replicate 0 at once; in both, with a larger budget, as if nothing had happened."""
        sums, ledger, state = self.until_refused(kind)
        self.is_refused(sums, ledger, state)
        state, first, _ = sums.close(state, ledger, np.array([0]))
        ledger.budget = GaussianDP(9.0)
        state, second, _ = sums.close(state, ledger, np.array([1]))
        for value in (5.0, 6.0):
            state = sums.add(state, np.full((2, 2), value), np.ones(2, dtype=np.int64))
            state, last, _ = sums.close(state, ledger)
        free, expected, undisturbed = LiveLedger(2, ConstantNoise(1.0)), [], sums.init(2, (2,))
        for value in (1.0, 2.0, 64.0, 5.0, 6.0):
            undisturbed = sums.add(undisturbed, np.full((2, 2), value), np.ones(2, dtype=np.int64))
            undisturbed, answer, _ = sums.close(undisturbed, free)
            expected.append(answer.copy())
        assert first == pytest.approx(expected[2][:1], rel=1e-12)
        assert second == pytest.approx(expected[2][1:], rel=1e-12)
        assert last == pytest.approx(expected[4], rel=1e-12)

    @pytest.mark.parametrize("kind", ["phase", "local", "tree", "honaker", "doubling tree", "doubling honaker"])
    def test_laplace_noise(self, kind):
        sums, ledger, state = self.until_refused(
            kind,
            *[3 if kind == "doubling tree" else 2] * 2,
            mechanism=Laplace(1.0, 1.0),
            elsewhere=Laplace(1.0, 0.5),
            budget=PureDP(2.5),
        )
        before = copy.deepcopy(state)
        self.is_refused(sums, ledger, state)
        assert same_state(before, state)

    @pytest.mark.parametrize(
        ("kind", "spent_at"),
        [
            ("tree", 0),
            ("doubling tree", 0),
        ],
    )
    def test_an_old_record_that_has_nothing_left(self, kind, spent_at):
        """The step completes a node that reads it again: then the step is refused as a whole."""
        sums, ledger, state = self.until_refused(kind, spent_at, n_before=spent_at + 1, elsewhere=UNIT)
        before = copy.deepcopy(state)
        self.is_refused(sums, ledger, state)
        assert same_state(before, state)

    @pytest.mark.parametrize(("kind", "spent_at"), [("honaker", 0), ("doubling honaker", 1)])
    def test_a_pair_that_is_refused_after_its_leaf(self, kind, spent_at):
        """The leaf was released and is paid for; the sum has not moved."""
        sums, ledger, state = self.until_refused(kind, spent_at, n_before=spent_at + 1, elsewhere=UNIT)
        before, calls = copy.deepcopy(state), ledger.noise.calls
        with pytest.raises(BudgetExceeded):
            sums.close(state, ledger)
        assert ledger.noise.calls == calls + 1
        assert same_state(before, state)

    @every_kind
    def test_a_release_without_noise(self, kind):
        sums = KINDS[kind](Exact())
        ledger = LiveLedger(2, ConstantNoise(), budget=GaussianDP(100.0))
        state = sums.add(sums.init(2), np.ones(2), np.ones(2, dtype=np.int64))
        with pytest.raises(BudgetExceeded, match="without noise"):
            sums.close(state, ledger)


class TestRefusalsOfTheCaller:
    @pytest.mark.parametrize("kind", LIMITED)
    def test_too_many_steps(self, kind):
        sums = KINDS[kind](GAUSS)
        ledger, state = LiveLedger(2, ConstantNoise()), sums.init(2)
        one = np.ones(2, dtype=np.int64)
        for t in range(2 * sums.n_steps):
            state = sums.add(state, np.ones(2), one)
            state, _, _ = sums.close(state, ledger, None if t % 2 else np.array([1]))
            if int(state.memory.n_steps[1]) == sums.n_steps:
                break
        state = sums.add(state, np.ones(2), one)
        before, calls = copy.deepcopy(state), ledger.noise.calls
        for reps in (None, np.array([1])):
            with pytest.raises(ValueError, match=rf"{sums.n_steps} steps, this is step {sums.n_steps + 1}; use DoublingSum"):
                sums.close(state, ledger, reps)
        assert ledger.noise.calls == calls
        assert same_state(before, state)
        state, _, _ = sums.close(state, ledger, np.array([0]))
        assert ledger.noise.calls > calls, "the other replicate has steps left"

    @pytest.mark.parametrize("wrong", [(2,), (3,), (2, 4), (1, 3), (2, 3, 1), ()], ids=str)
    @every_kind
    def test_values_of_another_shape(self, kind, wrong):
        sums = KINDS[kind](GAUSS)
        state = sums.add(sums.init(2, (3,)), np.ones((2, 3)), np.ones(2, dtype=np.int64))
        before = copy.deepcopy(state)
        with pytest.raises(ValueError, match=re.escape(f"value must have the sum's shape (2, 3), got {wrong}")):
            sums.add(state, np.ones(wrong), np.ones(2, dtype=np.int64))
        assert same_state(before, state)

    @pytest.mark.parametrize("n_records", [np.ones(3, dtype=np.int64), np.ones(2)], ids=["three", "floats"])
    def test_numbers_of_records_of_another_shape(self, n_records):
        sums = TreeSum(GAUSS, 8)
        state = sums.init(2)
        before = copy.deepcopy(state)
        with pytest.raises((ValueError, TypeError)):
            sums.add(state, np.ones(2), n_records)
        assert same_state(before, state)

    @pytest.mark.parametrize("reps", [[1, 0], [1, 1], [-1], [-2, 1]], ids=str)
    @every_kind
    def test_replicates_that_are_not_increasing_indices(self, kind, reps):
        sums = KINDS[kind](GAUSS)
        ledger, state = LiveLedger(2, ConstantNoise()), sums.init(2)
        for _ in range(2):
            state = sums.add(state, np.ones(2), np.ones(2, dtype=np.int64))
            if not ledger.noise.calls:
                state, _, _ = sums.close(state, ledger)
        calls, phase, book = ledger.noise.calls, copy.deepcopy(state), ledger.worst_record()
        with pytest.raises(ValueError, match="increasing indices"):
            sums.close(state, ledger, np.array(reps))
        assert (ledger.noise.calls, ledger.worst_record()) == (calls, book)
        assert same_state(phase[0], state[0]), "the phase stays open"

    @pytest.mark.parametrize("n_reps", [0, -1])
    @every_kind
    def test_no_replicate(self, kind, n_reps):
        with pytest.raises(ValueError, match="n_reps must be a whole number of at least 1"):
            KINDS[kind](GAUSS).init(n_reps)


class CopyingLedger(LiveLedger):
    """Keeps a copy of each release, as it was when it was made."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.copies = []

    def release(self, mechanism, value, *, records, reps=None, carried=None):  # type: ignore[no-untyped-def]
        output = super().release(mechanism, value, records=records, reps=reps, carried=carried)
        self.copies.append(copy.deepcopy(self.transcript[-1]))
        return output


class TestWhoseMemory:
    def with_copies(self, kind, mechanism, shape, spoils=False):
        sums = KINDS[kind](mechanism)
        ledger, state, answers = CopyingLedger(4, ConstantNoise(0.5), keeps_transcript=True), sums.init(4, shape), []
        for value, n_records, reps in rounds(kind, 4, shape, seed=7):
            state = sums.add(state, value, n_records)
            state, answer, n_closed = sums.close(state, ledger, reps)
            answers.append((answer, answer.copy()))
            if spoils:
                answer += 1e6
                n_closed += 1000
        return ledger, answers

    @pytest.mark.parametrize(("mechanism", "shape"), [(GAUSS, ()), (GAUSS, (2, 2)), MATRIX[0], (Exact(), (2,))])
    @every_kind
    def test_what_was_released_and_answered_is_never_changed(self, kind, mechanism, shape):
        ledger, answers = self.with_copies(kind, mechanism, shape)
        assert len(ledger.copies) == len(ledger.transcript) >= 20
        for entry, kept in zip(ledger.transcript, ledger.copies, strict=True):
            assert same_state(tuple(entry), tuple(kept))
        assert all(np.array_equal(answer, kept) for answer, kept in answers)

    @every_kind
    @pytest.mark.parametrize("mechanism", [GAUSS, Exact()], ids=["noise", "twin"])
    def test_an_answer_is_the_readers_own(self, kind, mechanism):
        """Who writes into it changes neither a later answer nor the transcript."""
        spoiled, _ = self.with_copies(kind, mechanism, (2,), spoils=True)
        clean, _ = self.with_copies(kind, mechanism, (2,))
        for entry, kept in zip(spoiled.transcript, clean.transcript, strict=True):
            assert same_state(tuple(entry), tuple(kept))

    @every_kind
    def test_a_later_answer_does_not_hold_what_a_reader_wrote(self, kind):
        _, spoiled = self.with_copies(kind, GAUSS, (2,), spoils=True)
        _, clean = self.with_copies(kind, GAUSS, (2,))
        for (_, answer), (_, expected) in zip(spoiled, clean, strict=True):
            assert np.array_equal(answer, expected)

    @pytest.mark.parametrize("mechanism", [GAUSS, MATRIX[0][0], Exact()], ids=["noise", "matrix", "twin"])
    @every_kind
    def test_values_are_not_touched_and_not_kept(self, kind, mechanism):
        sums, shape = KINDS[kind](mechanism), (2, 2)
        ledger, state = LiveLedger(3, ConstantNoise(0.0)), sums.init(3, shape)
        total = np.zeros((3, *shape))
        for value, n_records, reps in rounds(kind, 3, shape, seed=8):
            value = value + np.swapaxes(value, 1, 2)
            value.setflags(write=False)
            n_records.setflags(write=False)
            state = sums.add(state, value, n_records)
            total = total + value
            if reps is not None:
                reps.setflags(write=False)
            state, answer, _ = sums.close(state, ledger, reps)
            rows = slice(None) if reps is None else reps
            if kind == "phase":
                assert answer == pytest.approx(total[rows], abs=1e-9)
                total[rows] = 0.0
            else:
                assert answer == pytest.approx(total[rows], abs=1e-9)
            value.setflags(write=True)
            value[:] = np.nan  # the caller uses the memory again

    @every_kind
    def test_two_sums_share_nothing(self, kind):
        sums = KINDS[kind](GAUSS)
        first, second = sums.init(2), sums.init(2)
        before = copy.deepcopy(second)
        play_on = LiveLedger(2, ConstantNoise())
        for _ in range(5):
            first = sums.add(first, np.ones(2), np.ones(2, dtype=np.int64))
            first, _, _ = sums.close(first, play_on)
        assert same_state(before, second)


@pytest.mark.parametrize(
    ("kind", "mechanism"),
    [
        *[(kind, Gaussian(2.0, 0.75)) for kind in KINDS],
        *[(kind, Laplace(2.0, 0.75)) for kind in KINDS if "dense" not in kind and "buffer" not in kind],
    ],
)
def test_the_stated_deviation_is_that_of_the_noise(kind, mechanism):
    """Its explicit matrix, of unit draws, times the deviation of one draw."""
    sums, draw = KINDS[kind](mechanism), math.sqrt(2) if isinstance(mechanism, Laplace) else 1.0
    for is_staggered in (False, True):
        found = np.linalg.norm(noise_map(sums, 30, is_staggered), axis=1) * draw
        assert [sums.noise_deviation(t) for t in range(1, 31)] == pytest.approx(found, rel=1e-12)
    twin = KINDS[kind](Exact())
    assert [twin.noise_deviation(t) for t in (1, 2, 30)] == [0.0] * 3
    for step in (0, -1, 1.5):
        with pytest.raises(ValueError, match="step must be a whole number of at least 1"):
            sums.noise_deviation(step)
    assert sums.noise_deviation(np.int64(7)) == sums.noise_deviation(7)


@pytest.mark.parametrize("how", ["pickled", "copied"])
@every_kind
def test_a_sum_can_be_put_away_and_taken_up_again(kind, how):
    shape, n_reps = (2,), 3
    sums, schedule = KINDS[kind](GAUSS), list(rounds(kind, n_reps, shape, seed=9))
    answers = []
    for is_put_away in (False, True):
        ledger, state = LiveLedger(n_reps, ConstantNoise(0.25)), sums.init(n_reps, shape)
        for turn, (value, n_records, reps) in enumerate(schedule):
            if is_put_away and turn % 3 == 2:
                state = pickle.loads(pickle.dumps(state)) if how == "pickled" else copy.deepcopy(state)
            state = sums.add(state, value, n_records)
            state, answer, _ = sums.close(state, ledger, reps)
            answers.append(answer.copy())
    half = len(answers) // 2
    assert all(np.array_equal(a, b) for a, b in zip(answers[:half], answers[half:], strict=True))


@every_kind
def test_the_sum_itself_can_be_pickled(kind):
    sums = KINDS[kind](GAUSS)
    again = pickle.loads(pickle.dumps(sums))
    assert again == sums or kind.startswith("doubling")  # partial functions are compared by identity
    assert [again.noise_deviation(t) for t in (1, 2, 7)] == [sums.noise_deviation(t) for t in (1, 2, 7)]


@every_kind
def test_a_step_without_records_charges_nobody(kind):
    sums = KINDS[kind](GAUSS)
    ledger, state = LiveLedger(2, ConstantNoise(0.0)), sums.init(2)
    for _ in range(3):
        state, answer, n_records = sums.close(state, ledger)
        assert answer.tolist() == n_records.tolist() == [0, 0]
    assert not ledger.worst_record()
    state = sums.add(state, np.array([4.0, 0.0]), np.array([1, 0]))
    state, answer, n_records = sums.close(state, ledger)
    assert answer == pytest.approx([4.0, 0.0], abs=1e-12)
    assert n_records.tolist() == [1, 0]
    assert ledger.worst_record(rep=0).total() > 0
    assert not ledger.worst_record(rep=1)


@pytest.mark.parametrize(("mechanism", "shape"), [(GAUSS, (3,)), (Exact(), ()), *MATRIX])
@every_kind
def test_no_replicate_closes(kind, mechanism, shape):
    sums = KINDS[kind](mechanism)
    ledger, state = LiveLedger(2, ConstantNoise(0.0), keeps_transcript=True), sums.init(2, shape)
    for closes_before in (False, True):
        if closes_before:
            state, _, _ = sums.close(state, ledger)
        state = sums.add(state, np.ones((2, *shape)), np.ones(2, dtype=np.int64))
        before = copy.deepcopy(state)
        state, answer, n_records = sums.close(state, ledger, np.array([], dtype=np.int64))
        assert answer.shape == (0, *shape)
        assert n_records.shape == (0,)
        assert same_state(before[0], state[0])


@pytest.mark.parametrize(("kind", "n_reps"), list(product(KINDS, [1, 4])))
def test_a_statistic_without_entries(kind, n_reps):
    sums = KINDS[kind](GAUSS)
    ledger, state = LiveLedger(n_reps, ConstantNoise(0.0)), sums.init(n_reps, (0,))
    for _ in range(3):
        state = sums.add(state, np.ones((n_reps, 0)), np.ones(n_reps, dtype=np.int64))
        state, answer, _ = sums.close(state, ledger)
        assert answer.shape == (n_reps, 0)


@every_kind
def test_integers_are_summed_too(kind):
    sums = KINDS[kind](GAUSS)
    ledger, state = LiveLedger(1, ConstantNoise(0.0)), sums.init(1)
    state = sums.add(state, np.array([3]), np.array([1]))
    _, answer, _ = sums.close(state, ledger)
    assert answer == pytest.approx([3.0])
