"""The binary tree: by hand on a few users, its cost from the ledger, and its noise as an explicit matrix."""

from __future__ import annotations

import numpy as np
import pytest
from doubles import ConstantNoise
from hypothesis import given
from hypothesis import strategies as st
from linear_maps import answers_of, encoder_of, noise_map
from nightly import first

from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    Exact,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    Laplace,
    LaplaceEvent,
    LiveLedger,
    PureDP,
    RenyiDP,
    ReproducibleNoise,
    Tree,
    TreeSum,
    calibrate,
)

UNIT = Gaussian(1.0, 1.0)
BUDGETS = [GaussianDP(0.7), ZCDP(0.3), RenyiDP(4.0, 0.5), ApproxDP(1.0, 1e-5), PureDP(1.5)]
BOTH = pytest.mark.parametrize("honaker", [False, True], ids=["plain", "honaker"])


def lowest(t):
    """The largest power of two that divides t."""
    return t & -t


def play(sums, data, noise=None):
    ledger = LiveLedger(1, noise or ConstantNoise(), keeps_transcript=True)
    return answers_of(sums, ledger, np.asarray(data, dtype=float)[:, None])[:, 0], ledger


def test_noise_one_over_8_users():
    data = 2.0 ** np.arange(8)
    answers, ledger = play(TreeSum(UNIT, 8), data)
    assert (answers - data.cumsum()).tolist() == [1, 1, 2, 1, 2, 2, 3, 1]
    assert ledger.noise.calls == 8


def test_noise_one_over_8_users_by_honakers_estimate():
    """A node over a pair: 2/3 + (1 + 1)/3 = 4/3; over four: 4/7 + 3/7 (4/3 + 4/3) = 12/7; over eight: 8/15 + 7/15 24/7."""
    data = 2.0 ** np.arange(8)
    answers, ledger = play(TreeSum(UNIT, 8, honaker=True), data)
    by_hand = [1, 4 / 3, 7 / 3, 12 / 7, 19 / 7, 64 / 21, 85 / 21, 32 / 15]
    assert answers - data.cumsum() == pytest.approx(by_hand, rel=1e-12)
    assert ledger.noise.calls == 15


def test_honakers_weights_up_to_four_users():
    """Draws in the order leaf 1 | leaf 2, pair 12 | leaf 3 | leaf 4, pair 34, all four."""
    pair = [1 / 3, 1 / 3, 2 / 3]
    by_hand = [
        [1, 0, 0, 0, 0, 0, 0],
        [*pair, 0, 0, 0, 0],
        [*pair, 1, 0, 0, 0],
        [1 / 7, 1 / 7, 2 / 7, 1 / 7, 1 / 7, 2 / 7, 4 / 7],
    ]
    assert noise_map(TreeSum(UNIT, 4, honaker=True), 4) == pytest.approx(np.array(by_hand), abs=1e-15)
    variances = [TreeSum(UNIT, 4, honaker=True).noise_variance(t) for t in (1, 2, 3, 4)]
    assert variances == pytest.approx([1, 2 / 3, 5 / 3, 4 / 7], rel=1e-15)


@pytest.mark.parametrize("n_leaves", [1, 2, 4, 8, 16, 32])
def test_honakers_estimate_is_the_best_of_all_from_below(n_leaves):
    """Least squares on all noisy nodes of a subtree: no unbiased linear estimate of its sum has less variance."""
    nodes = [
        np.isin(np.arange(n_leaves), range(start, start + size))
        for size in 2 ** np.arange(n_leaves.bit_length())
        for start in range(0, n_leaves, size)
    ]
    design = np.array(nodes, dtype=float)
    least = np.linalg.inv(design.T @ design).sum()
    sums = TreeSum(UNIT, n_leaves, honaker=True)
    assert sums.noise_variance(n_leaves) == pytest.approx(least, rel=1e-12)
    last = noise_map(sums, n_leaves)[-1]
    assert last @ last == pytest.approx(least, rel=1e-12)


@BOTH
@pytest.mark.parametrize("n_steps", [*range(1, 41), 1023, 1024])
def test_the_first_record_lies_in_as_many_nodes_as_n_steps_has_digits(n_steps, honaker):
    sums = TreeSum(UNIT, n_steps, honaker)
    _, ledger = play(sums, np.zeros(n_steps))
    assert ledger.worst_record() == {GaussianEvent(1.0): n_steps.bit_length()}
    assert ledger.worst_record() == sums.structure.events(1.0, GaussianEvent)
    assert sums.structure == Tree(n_steps)
    assert len(ledger.transcript) == (2 * n_steps - n_steps.bit_count() if honaker else n_steps)


def test_before_a_node_is_complete_nobody_has_paid_for_it():
    _, ledger = play(TreeSum(UNIT, 16), np.zeros(16))
    assert [ledger.worst_record(before=t).total() for t in range(17)] == [t.bit_length() for t in range(17)]


@BOTH
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=70))
def test_each_release_is_the_sum_of_its_span(honaker, data):
    answers, ledger = play(TreeSum(UNIT, len(data), honaker), data, ConstantNoise(0.0))
    if not honaker:
        assert answers.tolist() == np.cumsum(data).tolist()
    assert answers == pytest.approx(np.cumsum(data), rel=1e-12, abs=1e-9)
    prefix = np.concatenate([[0], np.cumsum(data)])
    for release in ledger.transcript:
        (start,), (stop,) = release.records
        assert release.value.tolist() == [prefix[stop] - prefix[start]]
        assert stop % (stop - start) == 0, "a node begins and ends at multiples of its length"
    spans = {(int(release.records.start[0]), int(release.records.stop[0])) for release in ledger.transcript}
    assert len(spans) == len(ledger.transcript), "no node is released twice"


@BOTH
def test_the_twin_is_exact(honaker):
    data = np.random.default_rng(1).integers(-50, 50, 100).astype(float)
    answers, _ = play(TreeSum(Exact(), 100, honaker), data, ConstantNoise())
    assert answers == pytest.approx(data.cumsum(), rel=1e-13, abs=1e-11)


def test_a_node_keeps_its_noise():
    """The answers' noise is that of the nodes of the digits of t, and of no other: no draw is ever repeated."""
    n_steps = 40
    expected = np.zeros((n_steps, n_steps))
    for t in range(1, n_steps + 1):
        rest = t
        while rest:
            expected[t - 1, rest - 1] = 1  # the node that was completed, and released, at step `rest`
            rest -= lowest(rest)
    assert np.array_equal(noise_map(TreeSum(UNIT, n_steps), n_steps), expected)


@BOTH
def test_a_record_moves_only_nodes_that_hold_it(honaker):
    encoder = encoder_of(TreeSum(UNIT, 13, honaker), 13)
    assert set(encoder.ravel()) == {0.0, 1.0}
    assert (encoder.sum(axis=0) <= (13).bit_length()).all()
    assert encoder[:, 0].sum() == (13).bit_length()


@pytest.mark.parametrize("is_staggered", [False, True], ids=["lockstep", "own clocks"])
@pytest.mark.parametrize("mechanism", [Gaussian(2.0, 0.75), Laplace(2.0, 0.75)])
@BOTH
def test_the_stated_deviation_is_that_of_the_matrix(honaker, mechanism, is_staggered):
    sums = TreeSum(mechanism, 45, honaker)
    found = np.linalg.norm(noise_map(sums, 45, is_staggered), axis=1)
    draw = 1.0 if isinstance(mechanism, Gaussian) else np.sqrt(2)  # deviation of one standard draw
    assert [sums.noise_deviation(t) for t in range(1, 46)] == pytest.approx(found * draw, rel=1e-12)


@pytest.mark.parametrize("n_steps", first(2, [1024, 10_000, 100_000]))
def test_reference_variances_at_equal_privacy(reference, n_steps):
    known = reference["h_continual_release"][str(n_steps)]
    for honaker, name in [(False, "binary_tree"), (True, "honaker_online")]:
        sums = TreeSum(Gaussian(1.0, calibrate(GaussianDP(1.0), Tree(n_steps))), n_steps, honaker)
        found = np.array([sums.noise_deviation(t) for t in range(1, n_steps + 1)]) ** 2
        assert sums.structure.n_nodes == known[name]["levels"]
        assert found.max() == pytest.approx(known[name]["max"], rel=1e-9)
        assert found.mean() == pytest.approx(known[name]["mean"], rel=1e-9)


@pytest.mark.parametrize("n_steps", [1024, 10_000])
def test_reference_variances_of_pure_privacy(reference, n_steps):
    known = reference["h_continual_release"][str(n_steps)]["pure_dp_eps1"]["binary_laplace"]
    sums = TreeSum(Laplace(1.0, calibrate(PureDP(1.0), Tree(n_steps))), n_steps)
    found = np.array([sums.noise_deviation(t) for t in range(1, n_steps + 1)]) ** 2
    assert found.max() == pytest.approx(known["max"], rel=1e-9)
    assert found.mean() == pytest.approx(known["mean"], rel=1e-9)


@BOTH
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n_steps", [1, 7, 8, 33])
def test_calibrated_noise_spends_the_budget_and_no_more(budget, n_steps, honaker):
    make = Laplace if isinstance(budget, PureDP) else Gaussian
    sums = TreeSum(make(2.0, calibrate(budget, Tree(n_steps))), n_steps, honaker)
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1)), budget=budget)
    answers_of(sums, ledger, np.zeros((n_steps, 1)))
    spent = ledger.worst_record()
    assert spent.total() == n_steps.bit_length()
    derived = ledger.guarantee()
    found, limit = {
        GaussianDP: lambda: (derived.mu, budget.mu),
        ZCDP: lambda: (derived.zcdp().rho, budget.rho),
        RenyiDP: lambda: (derived.renyi(4.0).epsilon, budget.epsilon),
        ApproxDP: lambda: (derived.epsilon_at(1e-5), budget.epsilon),
        PureDP: lambda: (derived.epsilon, budget.epsilon),
    }[type(budget)]()
    assert found <= limit
    assert found == pytest.approx(limit, rel=1e-9)


@BOTH
def test_laplace_noise_adds_over_the_nodes(honaker):
    _, ledger = play(TreeSum(Laplace(1.0, 4.0), 11, honaker), np.zeros(11))
    assert ledger.worst_record() == {LaplaceEvent(4.0): 4}
    assert ledger.guarantee() == PureDP(1.0)


def test_steps_of_many_records():
    """Nodes count steps, spans count records."""
    ledger = LiveLedger(1, ConstantNoise(), keeps_transcript=True)
    sums = TreeSum(UNIT, 4)
    state = sums.init(1)
    sizes, answers = [5, 2, 0, 7], []
    for size in sizes:
        state = sums.add(state, np.array([10.0 * size]), np.array([size]))
        state, answer, n_records = sums.close(state, ledger)
        answers.append(answer[0])
        assert n_records.tolist() == [size]
    assert answers == [51, 71, 72, 141]
    spans = [(int(release.records.start[0]), int(release.records.stop[0])) for release in ledger.transcript]
    assert spans == [(0, 5), (0, 7), (7, 7), (0, 14)]
    assert ledger.worst_record() == {GaussianEvent(1.0): 3}


def test_memory_is_logarithmic():
    for honaker in (False, True):
        nodes = TreeSum(UNIT, 1_000_000, honaker).init(3, (2,)).memory
        assert nodes.exact.shape == (20, 3, 2)
        assert nodes.estimate.shape[0] == (20 if honaker else 0)


@pytest.mark.parametrize("step", [0, -1, 1.5, True])
def test_steps_that_are_none(step):
    with pytest.raises(ValueError, match=r"step must be a whole number of at least 1"):
        TreeSum(UNIT, 4).noise_deviation(step)


@pytest.mark.parametrize("n_steps", [0, -3, 2.0])
def test_trees_of_no_step(n_steps):
    with pytest.raises(ValueError, match=r"n_steps must be a whole number of at least 1"):
        TreeSum(UNIT, n_steps)
