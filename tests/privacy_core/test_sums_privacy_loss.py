"""The exact privacy loss of sums over streams that are chosen from earlier answers: what the ledger says, and no more.

For Gaussian noise the log-likelihood ratio of a transcript on a least favorable pair is N(-mu^2/2, mu^2). Kolmogorov-Smirnov
at 1e5 replicates; false alarm 1e-20 a test.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from linear_maps import agree
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats

from bandana.privacy_core import (
    EQUAL,
    DoublingSum,
    FactorizedSum,
    Gaussian,
    JointGaussian,
    LiveLedger,
    LocalSum,
    PhaseSum,
    ReproducibleNoise,
    ScriptedLedger,
    SymmetricGaussian,
    TreeSum,
)

SCALAR = Gaussian(1.0, 0.8)
SYMMETRIC = SymmetricGaussian.of_outer_products(1.0, 0.8)
EQUAL_ENTRIES = SymmetricGaussian.of_outer_products(1.0, 0.8, EQUAL)
JOINT = JointGaussian(1.0, 1.0, 0.8, vector_ratio=1.5)


def pair_of(mechanism):
    """Two contributions of one record, as far apart as the sensitivity."""
    if isinstance(mechanism, JointGaussian):
        square = mechanism.norm_bound**2
        cosine = min(square, (mechanism.value_bound / mechanism.vector_ratio) ** 2) / square
        x = np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]]) * mechanism.norm_bound
        return tuple(mechanism.statistic(x, np.array([1.0, -1.0]) * mechanism.value_bound))
    if isinstance(mechanism, SymmetricGaussian):
        return np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    return np.array(0.0), np.array(mechanism.sensitivity)


def play(sums, ledger, contribution, record, n_steps, own_clocks=False):
    """A stream in which each next value is a function of the last answer; `record` contributes what is given."""
    n_reps, shape = ledger.n_reps, contribution.shape
    state, last = sums.init(n_reps, shape), np.zeros((n_reps, *shape))
    for t in range(n_steps):
        value = np.broadcast_to(contribution, last.shape) if t == record else np.tanh(last) * (1 + t % 3)
        state = sums.add(state, value, np.ones(n_reps, dtype=np.int64))
        if not own_clocks:
            state, last, _ = sums.close(state, ledger)
            continue
        # A replicate closes at every step or at every second one, as its last answer was.
        waits = (last.reshape(n_reps, -1)[:, 0] > 0) & (t % 2 == 0)
        reps = np.flatnonzero(~waits)
        if len(reps):
            state, answers, _ = sums.close(state, ledger, reps)
            last[reps] = answers


def log_ratios(sums, mechanism, record, n_steps, n_reps=N_SAMPLES, seed=1, own_clocks=False):
    """(log-likelihood ratio, accounted mu, sum of squared changes over the scale) of each replicate."""
    one, two = pair_of(mechanism)
    assert mechanism.change(one[None], two[None]) == pytest.approx([mechanism.sensitivity], rel=1e-12)
    live = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    play(sums, live, one, record, n_steps, own_clocks)
    scripted = ScriptedLedger(n_reps, live.transcript, keeps_values=True)
    play(sums, scripted, two, record, n_steps, own_clocks)
    scripted.finish()
    assert (scripted.diverged == -1).all(), "the schedule is a function of what was released"
    spent, n_releases = np.zeros(n_reps), np.zeros(n_reps, dtype=int)
    for release, value in zip(live.transcript, scripted.values, strict=True):
        rows = slice(None) if release.reps is None else release.reps
        n_releases[rows] += 1
        change = release.mechanism.change(release.value, value)
        spent[rows] += (change / release.mechanism.scale) ** 2
        assert (change[~release.reads(record)] < 1e-9).all()
    assert (len(np.unique(n_releases)) > 1) == own_clocks
    return scripted.log_ratio, live.guarantee().mu, spent


CASES = {
    # name: (sum, mechanism, record, number of steps)
    "phase": (PhaseSum(SCALAR), SCALAR, 2, 5),
    "local": (LocalSum(SCALAR), SCALAR, 2, 5),
    "tree": (TreeSum(SCALAR, 8), SCALAR, 0, 8),
    "honaker": (TreeSum(SCALAR, 8, honaker=True), SCALAR, 0, 8),
    "dense, first": (FactorizedSum(SCALAR, 12), SCALAR, 0, 12),
    "dense, middle": (FactorizedSum(SCALAR, 12), SCALAR, 5, 12),
    "dense, last": (FactorizedSum(SCALAR, 12), SCALAR, 11, 12),
    "buffered, first": (FactorizedSum(SCALAR, 40), SCALAR, 0, 40),
    "buffered, middle": (FactorizedSum(SCALAR, 40), SCALAR, 17, 40),
    "two buffers": (FactorizedSum(SCALAR, 20, 2), SCALAR, 3, 20),
    "doubling": (DoublingSum(partial(FactorizedSum, SCALAR), 2, growth=2), SCALAR, 7, 14),
    "doubling buffers": (DoublingSum(partial(FactorizedSum, SCALAR, n_buffers=2), 4, growth=2), SCALAR, 4, 12),
    "matrix": (FactorizedSum(SYMMETRIC, 8), SYMMETRIC, 1, 8),
    "matrix, equal, buffered": (FactorizedSum(EQUAL_ENTRIES, 9, 2), EQUAL_ENTRIES, 1, 9),
    "matrix in a tree": (TreeSum(SYMMETRIC, 4), SYMMETRIC, 0, 4),
    "pair": (FactorizedSum(JOINT, 8), JOINT, 1, 8),
    "pair in honaker's tree": (TreeSum(JOINT, 4, honaker=True), JOINT, 0, 4),
}


@pytest.mark.parametrize("name", list(CASES))
def test_the_log_likelihood_ratio_is_that_of_the_accounted_mu(name):
    sums, mechanism, record, n_steps = CASES[name]
    log_ratio, mu, spent = log_ratios(sums, mechanism, record, n_steps)
    assert agree(spent, mu**2, rel=1e-9), "in each replicate, whatever was answered"
    assert is_distributed_as(log_ratio, stats.norm(-(mu**2) / 2, mu))
    for wrong in (0.7 * mu, 1.3 * mu):
        assert not is_distributed_as(log_ratio, stats.norm(-(wrong**2) / 2, wrong))
    # Mean and variance within 10 of their standard deviations.
    assert log_ratio.mean() == pytest.approx(-(mu**2) / 2, abs=10 * mu / math.sqrt(N_SAMPLES))
    assert log_ratio.var() == pytest.approx(mu**2, rel=10 * math.sqrt(2 / N_SAMPLES))


@pytest.mark.parametrize("record", range(0, 40, 3))
def test_every_record_of_a_factorized_sum_pays_the_same(record):
    """Columns all have norm 1: no record is better protected than another."""
    for sums in (FactorizedSum(SCALAR, 40), FactorizedSum(SCALAR, 40, 1)):
        _, mu, spent = log_ratios(sums, SCALAR, record, 40, n_reps=5)
        assert spent == pytest.approx(mu**2, rel=1e-10)


@pytest.mark.parametrize("honaker", [False, True])
def test_no_record_of_a_tree_pays_more_than_the_first(honaker):
    found = [log_ratios(TreeSum(SCALAR, 13, honaker), SCALAR, record, 13, n_reps=3)[2].max() for record in range(13)]
    assert found[0] == pytest.approx(4 / 0.8**2, rel=1e-12)
    assert max(found) <= found[0] * (1 + 1e-12)


@pytest.mark.parametrize(
    "sums",
    [
        FactorizedSum(SCALAR, 24),
        FactorizedSum(SCALAR, 24, 2),
        DoublingSum(partial(FactorizedSum, SCALAR, n_buffers=1), 2, growth=2),
        DoublingSum(partial(FactorizedSum, SCALAR), 2, growth=2),
    ],
    ids=["dense", "buffered", "doubling buffered", "doubling dense"],
)
@pytest.mark.parametrize("record", [0, 5, 14])
def test_replicates_that_close_when_their_answers_tell_them_to(sums, record):
    """Clocks part: the loss of each replicate, over its own steps, costs at most what was paid.

    Loss plus half the squared changes so far is a martingale, also where answers decide how many steps there are: its sum
    over the replicates is within 10 standard deviations of 0.
    """
    log_ratio, mu, spent = log_ratios(sums, SCALAR, record, 24, n_reps=2000, own_clocks=True)
    assert (spent <= mu**2 * (1 + 1e-9)).all()
    assert log_ratio.sum() == pytest.approx(-spent.sum() / 2, abs=10 * math.sqrt(spent.sum()))


@pytest.mark.parametrize("honaker", [False, True])
def test_trees_that_close_when_their_answers_tell_them_to(honaker):
    log_ratio, mu, spent = log_ratios(TreeSum(SCALAR, 24, honaker), SCALAR, 0, 24, n_reps=2000, own_clocks=True)
    assert (spent <= mu**2 * (1 + 1e-9)).all()
    assert log_ratio.sum() == pytest.approx(-spent.sum() / 2, abs=10 * math.sqrt(spent.sum()))


def test_the_answers_do_steer_the_stream():
    """Otherwise nothing above would be adaptive."""
    live = LiveLedger(50, ReproducibleNoise(np.random.SeedSequence(1)), keeps_transcript=True)
    play(FactorizedSum(SCALAR, 6), live, np.array(0.0), 0, 6)
    assert np.std([release.value for release in live.transcript[1:]], axis=1).min() > 0.1
