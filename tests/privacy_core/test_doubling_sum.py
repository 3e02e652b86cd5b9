"""Running sums over an unknown horizon: segments by hand, their cost, and replicates in different segments."""

from __future__ import annotations

import itertools
import pickle
from functools import partial

import numpy as np
import pytest
from doubles import ConstantNoise, span
from linear_maps import answers_of, noise_map
from nightly import first

from bandana.privacy_core import (
    BudgetExceeded,
    DoublingSum,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LiveLedger,
    LocalSum,
    PureDP,
    ReproducibleNoise,
    Tree,
    TreeSum,
    account,
    calibrate,
)

UNIT = Gaussian(1.0, 1.0)
TREE, HONAKER = partial(TreeSum, UNIT), partial(TreeSum, UNIT, honaker=True)
FACTORIZED, BUFFERED = partial(FactorizedSum, UNIT), partial(FactorizedSum, UNIT, n_buffers=2)


def calibrated_tree(n_steps):
    """Node noise that grows with the number of nodes."""
    return TreeSum(Gaussian(1.0, calibrate(GaussianDP(1.0), Tree(n_steps))), n_steps)


def calibrated_pure_tree(n_steps):
    return TreeSum(Laplace(1.0, calibrate(PureDP(1.0), Tree(n_steps))), n_steps)


def factorized_with_own_noise(n_steps):
    return FactorizedSum(Gaussian(1.0, 1.0 + n_steps / 100), n_steps)


def one_each(n_reps):
    return np.ones(n_reps, dtype=np.int64)


def test_trees_of_2_4_and_8_steps_under_noise_one():
    data = 2.0 ** np.arange(14)
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    answers = answers_of(DoublingSum(TREE, 2, growth=2), ledger, data[:, None])[:, 0]
    segments = [[1, 1], [2, 2, 3, 2], [3, 3, 4, 3, 4, 4, 5, 3]]  # finished segments count 1 each: their last answer
    assert (answers - data.cumsum()).tolist() == list(itertools.chain(*segments))
    spans = [(int(release.records.start[0]), int(release.records.stop[0])) for release in ledger.transcript]
    assert [(a, b) for a, b in spans if a < 2 < b or a < 6 < b] == [], "no node crosses a segment's end"
    assert ledger.worst_record() == {GaussianEvent(1.0): 4}


@pytest.mark.parametrize("first", [1, 2, 3, 32])
def test_segments_are_first_twice_first_and_so_on(first):
    built = []

    def build(n_steps):
        built.append(n_steps)
        return TreeSum(UNIT, n_steps)

    n_steps = 7 * first + 1
    answers_of(DoublingSum(build, first, growth=2), LiveLedger(1, ConstantNoise()), np.zeros((n_steps, 1)))
    assert built == [first, 2 * first, 4 * first, 8 * first]


def test_segments_of_a_kept_sum_do_not_move():
    """The lengths where none are given: a deployed bandit has them in its state, and another release must read it."""
    built = []
    sums = DoublingSum(lambda n_steps: built.append(n_steps) or TreeSum(UNIT, n_steps))
    answers_of(sums, LiveLedger(1, ConstantNoise()), np.zeros((32 + 1024 + 1, 1)))
    assert built == [32, 32**2, 32**3]


@pytest.mark.parametrize("build", [TREE, HONAKER, FACTORIZED, BUFFERED])
@pytest.mark.parametrize("n_steps", [1, 2, 3, 6, 7, 14, 15, 62])
def test_the_whole_costs_what_its_most_costly_segment_costs(build, n_steps):
    ledger = LiveLedger(1, ConstantNoise())
    answers_of(DoublingSum(build, 2, growth=2), ledger, np.zeros((n_steps, 1)))
    expected, left, size = 0, n_steps, 2
    while left > 0:
        part = min(left, size)
        expected = max(expected, part.bit_length() if build in (TREE, HONAKER) else 1)
        left, size = left - part, 2 * size
    assert ledger.worst_record() == {GaussianEvent(1.0): expected}


@pytest.mark.parametrize(("build", "budget"), [(calibrated_tree, GaussianDP(1.0)), (calibrated_pure_tree, PureDP(1.0))])
def test_trees_calibrated_segment_by_segment_keep_the_budget_for_any_horizon(build, budget):
    ledger = LiveLedger(1, ConstantNoise(), budget=budget)
    answers_of(DoublingSum(build, 4, growth=2), ledger, np.zeros((300, 1)))
    kind = type(budget)
    spent = [account(events) for events in ledger.worst_records()]
    assert all(isinstance(guarantee, kind) for guarantee in spent)
    worst = max(guarantee.mu if kind is GaussianDP else guarantee.epsilon for guarantee in spent)
    assert worst == pytest.approx(1.0, rel=1e-9)
    assert worst <= 1.0


@pytest.mark.parametrize("is_staggered", [False, True], ids=["lockstep", "own clocks"])
@pytest.mark.parametrize("build", [TREE, HONAKER, FACTORIZED, BUFFERED, calibrated_tree, calibrated_pure_tree])
def test_the_stated_deviation_is_that_of_the_matrix(build, is_staggered):
    """With different noise in each segment, too."""
    n_steps, sums = 50, DoublingSum(build, 3, growth=2)
    draw = np.sqrt(2) if isinstance(sums.mechanism, Laplace) else 1.0
    found = np.linalg.norm(noise_map(sums, n_steps, is_staggered), axis=1) * draw
    assert [sums.noise_deviation(t) for t in range(1, n_steps + 1)] == pytest.approx(found, rel=1e-12)


def test_a_sum_without_noise_has_no_deviation():
    assert [DoublingSum(partial(TreeSum, Exact()), 2, growth=2).noise_deviation(t) for t in (1, 2, 3, 20)] == [0.0] * 4


@pytest.mark.parametrize(
    "kind", [TreeSum, partial(TreeSum, honaker=True), FactorizedSum, partial(FactorizedSum, n_buffers=3)]
)
def test_the_twin_is_exact(kind):
    data = np.random.default_rng(2).integers(-9, 9, (200, 2)).astype(float)
    answers = answers_of(DoublingSum(partial(kind, Exact()), 3, growth=2), LiveLedger(2, ConstantNoise()), data)
    assert answers == pytest.approx(data.cumsum(axis=0), rel=1e-10, abs=1e-10)


def test_doubling_an_endless_sum_changes_nothing():
    def local(n_steps):
        return LocalSum(UNIT)

    assert np.array_equal(noise_map(DoublingSum(local, 2, growth=2), 20), np.tril(np.ones((20, 20))))


def test_only_segments_that_somebody_still_fills_are_kept():
    sums, ledger = DoublingSum(TREE, 2, growth=2), LiveLedger(2, ConstantNoise(0.0))
    state = sums.init(2)

    def close(reps):
        nonlocal state
        state = sums.add(state, np.ones(2), one_each(2))
        state, _, _ = sums.close(state, ledger, np.array(reps))
        return [memory is not None for memory in state.memory.memories]

    assert [close([1])[-1] for _ in range(2)] == [True, True]
    assert close([1]) == [True, True], "replicate 0 has not begun"
    close([0])
    assert close([0]) == [False, True]
    for _ in range(4):
        close([1])
    assert close([0]) == [False, True, True]
    for _ in range(2):
        close([0])
    assert close([0]) == [False, False, True]
    assert state.memory.n_steps.tolist() == [6, 7]


def test_replicates_in_different_segments_answer_their_own_sums():
    """Replicate r closes after every r + 1 records."""
    n_reps = 4
    for build in (TREE, HONAKER, FACTORIZED, BUFFERED):
        sums, ledger = DoublingSum(build, 1, growth=2), LiveLedger(n_reps, ConstantNoise(0.0))
        state, data = sums.init(n_reps), np.random.default_rng(4).integers(0, 9, (40, n_reps)).astype(float)
        for t in range(40):
            state = sums.add(state, data[t], one_each(n_reps))
            reps = np.flatnonzero((t + 1) % (1 + np.arange(n_reps)) == 0)
            state, answers, n_records = sums.close(state, ledger, None if len(reps) == n_reps else reps)
            assert answers == pytest.approx(data[: t + 1, reps].sum(axis=0), rel=1e-10)
            assert n_records.tolist() == (1 + reps).tolist()
        assert ledger.worst_record().total() == (5 if build in (TREE, HONAKER) else 1)


@pytest.mark.parametrize("first", [0, -2, 1.5])
def test_first_segments_without_a_step(first):
    with pytest.raises(ValueError, match="first must be a whole number of at least 1"):
        DoublingSum(TREE, first, growth=2)


def test_it_can_be_pickled_where_its_builder_can():
    sums = DoublingSum(calibrated_tree, 4, growth=2)
    assert pickle.loads(pickle.dumps(sums)) == sums
    assert pickle.loads(pickle.dumps(DoublingSum(BUFFERED, 4, growth=2))).noise_deviation(9) == DoublingSum(
        BUFFERED, 4, growth=2
    ).noise_deviation(9)


@pytest.mark.parametrize("build", [TREE, FACTORIZED])
def test_a_refusal_in_one_segment_counts_nothing_twice(build):
    """Replicate 1 is a segment ahead, and its next record has no budget left; replicate 0 has taken its step, once."""
    sums, ledger = DoublingSum(build, 1, growth=2), LiveLedger(2, ConstantNoise(0.0), budget=GaussianDP(1.0))
    state = sums.add(sums.init(2), np.array([0.0, 10.0]), np.array([0, 1]))
    state, _, _ = sums.close(state, ledger, np.array([1]))
    ledger.release(UNIT, np.zeros(1), records=span(1, 2), reps=np.array([1]))
    state = sums.add(state, np.array([3.0, 5.0]), one_each(2))
    with pytest.raises(BudgetExceeded):
        sums.close(state, ledger)
    assert state.memory.n_steps.tolist() == [1, 1]
    assert state.phase.total.tolist() == [0.0, 5.0]
    state = sums.add(state, np.array([4.0, 0.0]), np.array([1, 0]))
    state, answer, _ = sums.close(state, ledger, np.array([0]))
    assert answer.tolist() == [7.0]


def test_replicates_in_segments_of_different_noise():
    sums, ledger = DoublingSum(factorized_with_own_noise, 2, growth=2), LiveLedger(2, ConstantNoise(0.0))
    state = sums.init(2)
    for t in range(20):
        state = sums.add(state, np.ones(2), one_each(2))
        reps = np.array([1]) if t % 2 else np.array([0, 1])
        state, answers, _ = sums.close(state, ledger, reps)
        assert answers == pytest.approx(t + 1.0)


def test_segments_of_different_noise_in_lockstep():
    ledger = LiveLedger(3, ReproducibleNoise(np.random.SeedSequence(1)))
    answers_of(DoublingSum(factorized_with_own_noise, 2, growth=2), ledger, np.zeros((40, 3)))
    assert ledger.worst_record() == {GaussianEvent(1.02): 1}, "the first segment's records pay most"


@pytest.mark.parametrize("n_steps", first(1, [15, 60]))
def test_longer_segments_cost_less_than_doubling(n_steps):
    """The worst ratio to the variance of a known horizon, at up to 30,000 steps."""
    worst = {}
    for growth in (2, 32):
        sums = DoublingSum(partial(FactorizedSum, Gaussian(1.0, 1.0), n_buffers=4), growth=growth)
        steps = np.geomspace(33, 30_000, n_steps).astype(int).tolist()
        known = [FactorizedSum(Gaussian(1.0, 1.0), step, n_buffers=4).noise_deviation(step) ** 2 for step in steps]
        worst[growth] = max(sums.noise_variance(step) / variance for step, variance in zip(steps, known, strict=True))
    assert worst[32] < 3.3 < 6 < worst[2] < 6.6
