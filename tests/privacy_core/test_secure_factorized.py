"""Secure noise on factorized sums: rows in whole numbers, what a record pays for all of them, and planted faults."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from doubles import GridOnly, span
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_maps import answers_of, encoder_of
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats
from scipy.linalg import solve_triangular

from bandana.privacy_core import (
    BudgetExceeded,
    Carried,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    GaussianEvent,
    JointGaussian,
    LiveLedger,
    ReproducibleNoise,
    SecureNoise,
    SymmetricGaussian,
)
from bandana.privacy_core.accounting.factorization import DenseFactorization, factorize

UNIT = Gaussian(1.0, 1.0)
SIZES = [(5, None), (40, None), (40, 2), (90, 8)]


class KeepsRows(LiveLedger):
    """Keeps each row as floating point gives it, and the rest."""

    rows = ()

    def release(self, mechanism, value, **reads):
        self.rows = (*self.rows, (value.copy(), reads["carried"].rest()))
        return super().release(mechanism, value, **reads)


def exact_encoder(sums):
    """C in fractions, of the numbers of floating point that define it."""
    factors, n = sums.factorization, sums.n_steps
    if isinstance(factors, DenseFactorization):
        return [[Fraction(entry) for entry in row] for row in factors.encoder.tolist()]
    pairs = [(Fraction(theta), Fraction(omega)) for theta, omega in zip(factors.theta, factors.omega, strict=True)]
    norms = [Fraction(norm) for norm in (1 / factors.column_norms).tolist()]
    toeplitz = [Fraction(1), *(sum(omega * theta**k for theta, omega in pairs) for k in range(n - 1))]
    return [[toeplitz[t - s] * norms[s] if s <= t else Fraction(0) for s in range(n)] for t in range(n)]


def test_two_steps_by_hand():
    """C = (2, 0; 1, sqrt 5) / sqrt 5. A unit of the grid is 2^-13 / sqrt 2 of the noise, which is 1.0004396 wide."""
    source = GridOnly()
    answers = answers_of(FactorizedSum(UNIT, 2), LiveLedger(1, source), np.array([[[1.0]], [[0.0]]]))
    # 2^13 sqrt 2 / 1.0004396 = 11580.15 units make 1; times 2 / sqrt 5 and 1 / sqrt 5: 10357.60 and 5178.80.
    assert np.ravel(source.whole).tolist() == [10358, 5179]
    assert source.scales == pytest.approx([2.0**13 * math.sqrt(2)] * 2, rel=1e-14)
    assert np.ravel(answers) == pytest.approx([10358 / 11580.15 * math.sqrt(5) / 2] * 2, abs=1e-4)
    # The record moves the rows by 0.99960 of the noise; mu = 1 allows 1 / (1 + 2.6 / 2^13) = 0.99968.
    assert math.hypot(*np.ravel(source.whole)) / source.scales[0] == pytest.approx(0.99960, abs=5e-6)


@pytest.mark.parametrize(("n_steps", "n_buffers"), SIZES)
def test_rows_and_their_rest_are_the_product_of_the_matrix(n_steps, n_buffers):
    """To 2^-60, although terms are a million times the noise: floating point alone is right to 2^-33."""
    sums = FactorizedSum(Gaussian(2.0, 0.75), n_steps, n_buffers)
    data = np.random.default_rng(n_steps).normal(size=(n_steps, 2, 3)) * 2.0**20
    ledger = KeepsRows(2, GridOnly())
    answers_of(sums, ledger, data)
    encoder = exact_encoder(sums)
    for t, (row, rest) in enumerate(ledger.rows):
        for rep, entry in np.ndindex(2, 3):
            exact = sum(encoder[t][s] * Fraction(data[s, rep, entry]) for s in range(t + 1))
            assert abs(Fraction(row[rep, entry]) + Fraction(rest[rep, entry]) - exact) < Fraction(1, 2**60)
            assert abs(rest[rep, entry]) < 1e-6


@pytest.mark.parametrize("n_steps", [33, 1000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_columns_of_fixed_point_have_norm_1(n_steps):
    """Bounded from above in whole numbers, with every floor replaced by a ceiling."""
    factors = factorize(n_steps)
    theta, omega = ([math.floor(math.ldexp(x, 96)) for x in part] for part in (factors.theta, factors.omega))
    powers, total = list(omega), (1 << 96) ** 2
    squares = [total]
    for _ in range(n_steps - 1):
        total += (sum(powers) + len(powers)) ** 2
        squares.append(total)
        powers = [(power * decay >> 96) + 1 for power, decay in zip(powers, theta, strict=True)]
    norms = factors.column_norms.tolist()[::-1]
    assert all(
        math.sqrt(Fraction(square, 1 << 192)) <= norm * (1 + 1e-8) for square, norm in zip(squares, norms, strict=True)
    )


def rows_of(source, sums, data):
    """(n_steps, n_free) whole numbers that the rows become."""
    source.whole.clear()
    answers_of(sums, LiveLedger(1, source), data)
    return np.concatenate(source.whole)


def moved(source, sums, step, rng, is_hard=True):
    """Distance of the rows of two data sets over the noise's scale, times what mu allows: above 1 refutes the charge.

    Hard are first data sets whose rows lie just below the middle of two points of the grid: all of the second round up.
    """
    mechanism, n = sums.mechanism, sums.n_steps
    shape = {"Gaussian": (3,), "SymmetricGaussian": (2, 2), "JointGaussian": (2, 3)}[type(mechanism).__name__]
    change = np.abs(rng.normal(size=(1, *shape))) + 1e-3
    if len(shape) > 1:
        change[..., 1, 0] = change[..., 0, 1]
    change *= mechanism.sensitivity / mechanism.change(np.zeros((1, *shape)), change)[0]
    data = rng.normal(size=(n, 1, *shape)) * mechanism.sensitivity
    if is_hard:
        rows_of(source, sums, data)
        places = (rng.integers(-1000, 1000, (n, 3)) + 0.5 - 1e-3) * source.units[-1]
        data = solve_triangular(encoder_of(sums, n), places, lower=True).reshape(n, 1, 3)
    other = data.copy()
    other[step] += change[0]
    difference = rows_of(source, sums, data) - rows_of(source, sums, other)
    distance = math.sqrt(sum(int(whole) ** 2 for whole in difference.ravel()))
    return distance / source.scales[-1] * (1 + 2.6 * 2.0**-13) * mechanism.noise_multiplier


MAKERS = (lambda m: Gaussian(0.7, m), lambda m: SymmetricGaussian(2.0, m), lambda m: JointGaussian(1.0, 0.5, m))


@settings(max_examples=40)
@given(st.data(), st.integers(1, 50), st.sampled_from([None, 1, 2, 8]), st.integers(0, 2), st.integers(0, 10**6))
def test_no_record_moves_the_rows_by_more_than_it_paid_for(data, n_steps, n_buffers, kind, seed):
    """The search for a counterexample: exact, without statistics."""
    multiplier, step = 10.0 ** data.draw(st.floats(-2, 3)), data.draw(st.integers(0, n_steps - 1))
    sums = FactorizedSum(MAKERS[kind](multiplier), n_steps, n_buffers)
    assert moved(GridOnly(), sums, step, np.random.default_rng(seed), is_hard=not kind) <= 1 + 1e-9


class OneRowsGrid(GridOnly):
    """Grid too coarse: each row is rounded as if the record were in no other."""

    def spread(self, n_rows):
        return self


class ChargesNoRounding(GridOnly):
    """Noise is wider for the lattice alone: rows are rounded after encoding, and nothing pays for it."""

    _WIDER_GAUSSIAN = SecureNoise._LATTICE


class CoarseGrid(GridOnly):
    """A grid of 2^-7 with the charge of one of 2^-13."""

    _STEP = 2.0**-7


@pytest.mark.parametrize("n_buffers", [None, 2])
@pytest.mark.parametrize("fault", [OneRowsGrid, ChargesNoRounding, CoarseGrid])
def test_the_search_finds_planted_faults(fault, n_buffers):
    sums = FactorizedSum(UNIT, 64, n_buffers)
    assert moved(fault(), sums, 0, np.random.default_rng(1)) > 1 + 1e-5
    assert 1 - 2e-4 < moved(GridOnly(), sums, 0, np.random.default_rng(1)) <= 1


class Seeded(SecureNoise):
    """Fault: noise from a seed that is kept."""

    def __init__(self):
        self._kept = ReproducibleNoise(np.random.SeedSequence(7))

    def discrete_gaussian(self, scale, shape):
        return self._kept.discrete_gaussian(scale, shape)


def test_nobody_can_draw_the_noise_again():
    """The memory follows from the data alone, and a second run from the same memory meets other noise."""

    def played(source):
        sums = FactorizedSum(UNIT, 40)
        state, rows = sums.init(1, (2,)), []
        ledger = LiveLedger(1, source(), keeps_transcript=True)
        for step in range(6):
            state, _, _ = sums.close(sums.add(state, np.full((1, 2), step / 8), np.ones(1, dtype=np.int64)), ledger)
            rows.append(ledger.transcript[-1].output)
        return np.concatenate(rows), state.memory

    (first, memory), (second, other) = played(SecureNoise), played(SecureNoise)
    assert (first != second).all()
    assert memory.fixed == other.fixed
    assert np.array_equal(memory.encoder, other.encoder)
    planted = [played(Seeded)[0] for _ in range(2)]
    assert (planted[0] == planted[1]).all(), "the same look must see the planted fault"


@pytest.mark.parametrize("source", [SecureNoise, Seeded], ids=["opendp", "own sampler"])
def test_the_noise_of_rows_is_as_large_as_it_says_and_fresh_in_each(source):
    n_steps, mechanism = 8, Gaussian(2.0, 0.75)
    n_reps = N_SAMPLES // n_steps
    ledger, sums = LiveLedger(n_reps, source(), keeps_transcript=True), FactorizedSum(mechanism, n_steps)
    answers = answers_of(sums, ledger, np.full((n_steps, n_reps, 1), 0.3))
    noise = np.stack([np.ravel(release.output - release.value) for release in ledger.transcript])
    assert is_distributed_as(noise, stats.norm(scale=mechanism.scale))
    assert not is_distributed_as(noise * 1.3, stats.norm(scale=mechanism.scale))
    assert not is_distributed_as(noise * 0.7, stats.norm(scale=mechanism.scale))
    # 28 correlations, each near N(0, 1 / n_reps): 10 standard deviations, false alarm below 1e-21.
    assert np.abs(np.corrcoef(noise) - np.eye(n_steps)).max() < 10 / math.sqrt(n_reps)
    for step in (1, n_steps):
        errors = np.ravel(answers[step - 1]) - 0.3 * step
        assert errors.std() == pytest.approx(sums.noise_deviation(step), rel=10 / math.sqrt(2 * n_reps))


@pytest.mark.parametrize(("n_steps", "n_buffers"), SIZES)
def test_replicates_with_clocks_of_their_own_get_the_same_rows(n_steps, n_buffers):
    sums, data = FactorizedSum(UNIT, n_steps, n_buffers), np.random.default_rng(3).normal(size=(n_steps, 4, 2))
    together, apart = (
        answers_of(sums, LiveLedger(4, GridOnly()), data, is_staggered=is_staggered) for is_staggered in (False, True)
    )
    assert apart == pytest.approx(together, abs=1e-9)


@pytest.mark.parametrize("n_steps", [8, 40])
def test_a_row_that_was_refused_leaves_no_trace(n_steps):
    sums, data = FactorizedSum(UNIT, n_steps), np.random.default_rng(3).normal(size=(n_steps, 1, 2))
    expected = answers_of(sums, LiveLedger(1, GridOnly()), data)
    ledger, answers, one = LiveLedger(1, GridOnly()), [], np.ones(1, dtype=np.int64)
    state = sums.init(1, (2,))
    for step, value in enumerate(data):
        if step == 3:
            for bad in (math.nan, math.inf, 1e30, 1e300):
                memory = state.memory
                records = span(3, 4)
                with pytest.raises(ValueError, match="cannot be put on a grid"):
                    sums.push(memory, np.full((1, 2), bad), records, ledger, None)
            assert ledger.worst_record() == {GaussianEvent(1.0): 1}
        state, answer, _ = sums.close(sums.add(state, value, one), ledger)
        answers.append(answer)
    assert np.array_equal(np.stack(answers), expected)


def test_one_price_for_the_whole_sequence_as_with_continuous_noise():
    ledger = LiveLedger(1, SecureNoise(), budget=GaussianDP(0.5))
    answers_of(FactorizedSum(Gaussian(1.0, 2.0), 50), ledger, np.zeros((50, 1, 1)))
    assert ledger.worst_record() == {GaussianEvent(2.0): 1}
    assert ledger.guarantee() == GaussianDP(0.5)
    tight = LiveLedger(1, SecureNoise(), budget=GaussianDP(0.49))
    with pytest.raises(BudgetExceeded):
        answers_of(FactorizedSum(Gaussian(1.0, 2.0), 50), tight, np.zeros((50, 1, 1)))


def test_the_twin_runs_on_it():
    data = np.random.default_rng(1).normal(size=(40, 1, 2))
    answers = answers_of(FactorizedSum(Exact(), 40), LiveLedger(1, SecureNoise()), data)
    assert answers == pytest.approx(np.cumsum(data, axis=0), abs=1e-12)


class TestRefusals:
    def test_rows_that_do_not_tell_what_floating_point_lost(self):
        """Before a record has paid: errors of the encoder would add up over the rows, and nobody knows how far."""
        for columns in (None, factorize(8)):
            ledger = LiveLedger(1, SecureNoise())
            with pytest.raises(ValueError, match="must tell columns and rest, as FactorizedSum does"):
                ledger.release(UNIT, np.zeros((1, 1)), records=span(0, 1), carried=Carried("", np.array([0]), columns))
            assert ledger.worst_records() == []

    def test_more_steps_than_column_norms_are_known_for(self):
        with pytest.raises(ValueError, match="n_steps: 134217729 are more than the 2\\^27"):
            SecureNoise().spread(2**27 + 1)

    def test_more_noise_than_whole_numbers_hold(self):
        with pytest.raises(ValueError, match="smaller noise multiplier, fewer coordinates or fewer steps"):
            answers_of(FactorizedSum(Gaussian(1.0, 1e8), 40), LiveLedger(1, SecureNoise()), np.zeros((40, 1, 1)))
