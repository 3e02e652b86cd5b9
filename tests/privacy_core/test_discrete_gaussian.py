"""The discrete Gaussian: its law, its deviation, its cost, and values off its grid."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given
from hypothesis import strategies as st
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats

from bandana.privacy_core import (
    ZCDP,
    ConcentratedEvent,
    DiscreteGaussian,
    Gaussian,
    LiveLedger,
    NoSuchConversion,
    ReproducibleNoise,
    SecureNoise,
)

SOURCES = {"reproducible": lambda: ReproducibleNoise(np.random.SeedSequence(3)), "secure": SecureNoise}
FALSE_ALARM = 1e-12


def probabilities(scale):
    """Probabilities of the whole numbers -reach, ..., reach, beyond which less than 1e-30 lies."""
    reach = math.ceil(12 * scale) + 3
    k = np.arange(-reach, reach + 1)
    weight = np.exp(-(k**2) / (2 * scale**2))
    return k, weight / weight.sum()


def fits(samples, scale):
    """Whether the discrete Gaussian is kept (false alarm below 2e-12).

    Where at least 20 are expected by a chi-square test, for the number of all others by a binomial one.
    """
    k, probability = probabilities(scale)
    inside = probability * len(samples) >= 20
    counts = np.array([(samples == value).sum() for value in k[inside]])
    n_inside, share = counts.sum(), probability[inside].sum()
    outside = stats.binomtest(int(len(samples) - n_inside), len(samples), max(0.0, 1 - share)).pvalue
    if outside < FALSE_ALARM or n_inside == 0:
        return False
    return bool(len(counts) == 1 or stats.chisquare(counts, probability[inside] / share * n_inside).pvalue > FALSE_ALARM)


@pytest.mark.parametrize(
    ("source", "scale"),
    [
        *(("reproducible", s) for s in (0.3, 0.9, 1.0, 2.5, 12.0, 40.0)),
        ("secure", 2.5),
        *(pytest.param("secure", s, marks=pytest.mark.nightly) for s in (0.3, 40.0)),
    ],
)
def test_the_law(source, scale):
    samples = SOURCES[source]().discrete_gaussian(scale, (N_SAMPLES,))
    assert samples.dtype == np.int64
    assert fits(samples, scale)
    assert not fits(samples, scale * 1.3)
    assert not fits(samples, scale * 0.7)
    assert not fits(samples + math.ceil(scale / 10), scale)


def test_the_law_at_a_tiny_scale_is_a_point():
    samples = SOURCES["reproducible"]().discrete_gaussian(0.05, (N_SAMPLES,))
    assert not samples.any()


def test_the_comparison_can_fail():
    rng = np.random.default_rng(8)
    assert not fits(np.rint(rng.standard_normal(N_SAMPLES)).astype(np.int64), 1.0), "a rounded Gaussian is none"
    assert not fits(rng.integers(-2, 3, N_SAMPLES), 1.5)
    assert not fits(np.full(N_SAMPLES, 100), 1.0)


@pytest.mark.parametrize(
    ("source", "scale"),
    [("reproducible", 1e3), ("reproducible", 1e9), pytest.param("secure", 1e9, marks=pytest.mark.nightly)],
)
def test_the_law_at_a_large_scale_is_nearly_the_continuous_one(source, scale):
    samples = SOURCES[source]().discrete_gaussian(scale, (N_SAMPLES,)) / scale
    assert is_distributed_as(samples, stats.norm())
    assert not is_distributed_as(samples * 1.3, stats.norm())
    assert not is_distributed_as(samples * 0.7, stats.norm())


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("shape", [7, (), (0,), (3, 0), (4, 5), (2, 3, 4)])
def test_shapes(source, shape):
    drawn = SOURCES[source]().discrete_gaussian(2.0, shape)
    assert drawn.shape == ((shape,) if isinstance(shape, int) else shape)
    assert drawn.dtype == np.int64


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan, math.inf])
def test_scales_that_are_none(source, scale):
    with pytest.raises(ValueError, match=f"scale must be a finite number above 0, got {scale}"):
        SOURCES[source]().discrete_gaussian(scale, (2,))


def test_the_same_seed_gives_the_same_draws():
    first, again, other = (
        ReproducibleNoise(np.random.SeedSequence(seed)).discrete_gaussian(20.0, (1000,)) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert (first == other).mean() < 0.2


def test_the_secure_source_is_not_reproducible():
    first, other = (SecureNoise().discrete_gaussian(1e6, (100,)) for _ in range(2))
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(("source", "n_rows"), [("reproducible", 200), ("secure", 20)])
def test_noise_on_a_grid(source, n_rows):
    mechanism = DiscreteGaussian(2.0, 3.0, grid=0.25)
    value = np.linspace(-64, 63.75, 512).reshape(1, 512).repeat(n_rows, axis=0)
    output = mechanism.draw(SOURCES[source](), value)
    steps = (output - value) / 0.25
    assert np.array_equal(steps, np.rint(steps)), "the noise lies on the grid"
    assert fits(steps.astype(np.int64)[:, :500].ravel(), 24.0)
    assert not fits(steps.astype(np.int64)[:, :500].ravel(), 24.0 * math.sqrt(2))
    assert output.shape == value.shape


@pytest.mark.parametrize("grid", [0.1, 0.25, 1.0, 3.0, 2.0**-30])
def test_multiples_of_the_grid_lie_on_it(grid):
    whole = np.array([[-5.0, 0.0, 1.0, 3.0, 7.0, 2.0**20]])
    assert DiscreteGaussian(1.0, 1.0, grid).draw(ConstantNoise(0.0), whole * grid) == pytest.approx(whole * grid, rel=1e-15)


@pytest.mark.parametrize("value", [0.5000001, 0.1, 1e-300, -0.25, math.nan, math.inf, -math.inf])
def test_values_off_the_grid(value):
    noise = ConstantNoise()
    with pytest.raises(ValueError, match=rf"values must be multiples of the grid 0\.5, got {value}"):
        DiscreteGaussian(1.0, 1.0, 0.5).draw(noise, np.array([[1.0, 0.5], [0.0, value]]))
    assert noise.calls == 0


@pytest.mark.parametrize(
    ("mechanism", "noise", "value"),
    [(DiscreteGaussian(1.0, 1.0, 0.5), ConstantNoise(), 0.3), (Gaussian(1.0, 1.0), SecureNoise(), math.nan)],
    ids=["off the grid", "not a number"],
)
def test_a_value_that_is_refused_is_not_charged(mechanism, noise, value):
    ledger = LiveLedger(1, noise)
    with pytest.raises(ValueError, match="grid"):
        ledger.release(mechanism, np.array([value]), records=span(0, 1))
    assert ledger.guarantee() is None


@pytest.mark.parametrize("scale_over_grid", [0.05, 0.2, 0.3, 0.5, 0.8, 1.0, 1.7, 3.9, 4.1, 30.0])
@pytest.mark.parametrize("grid", [0.25, 1.0, 10.0])
def test_the_deviation(scale_over_grid, grid):
    mechanism = DiscreteGaussian(2.0, scale_over_grid * grid / 2.0, grid)
    assert mechanism.scale == pytest.approx(scale_over_grid * grid)
    with mp.workdps(40):
        s = mp.mpf(mechanism.scale) / mp.mpf(grid)
        # Beyond 15 scales less than 1e-45 is left out.
        weights = [(k, mp.exp(-mp.mpf(k * k) / (2 * s**2))) for k in range(1, math.ceil(15 * s) + 3)]
        variance = 2 * mp.fsum(k * k * weight for k, weight in weights) / (1 + 2 * mp.fsum(weight for _, weight in weights))
        exact = float(mp.mpf(grid) * mp.sqrt(variance))
    assert mechanism.deviation == pytest.approx(exact, rel=1e-9, abs=1e-300)
    assert mechanism.deviation <= mechanism.scale * (1 + 1e-12)


def test_deviation_of_a_sample():
    mechanism = DiscreteGaussian(1.0, 0.6, 1.0)
    samples = mechanism.draw(SOURCES["reproducible"](), np.zeros(N_SAMPLES))
    # The standard error of a variance v is below v sqrt(3 / n); ten of them, false alarm below 1e-20.
    assert samples.var() == pytest.approx(mechanism.deviation**2, rel=10 * math.sqrt(3 / N_SAMPLES))


@pytest.mark.parametrize("shape", [(4000,), (2000, 2)])
def test_the_privacy_loss_is_that_of_the_probabilities(shape):
    mechanism = DiscreteGaussian(2.0, 0.8, 0.5)
    rng = np.random.default_rng(6)
    value = 0.5 * rng.integers(-4, 5, shape)
    neighbor = value + 0.5 * rng.integers(-2, 3, shape)
    output = mechanism.draw(SOURCES["reproducible"](), value)
    k, probability = probabilities(mechanism.scale / 0.5)
    log_probability = np.log(probability)

    def of(exact):
        steps = np.rint((output - exact) / 0.5).astype(int) - k[0]
        return log_probability[steps].reshape(len(output), -1).sum(axis=1)

    found = mechanism.log_density_ratio(output, value, neighbor)
    assert found.shape == (shape[0],)
    assert found == pytest.approx(of(neighbor) - of(value), abs=1e-9)


@given(st.floats(0.3, 50.0), st.integers(1, 40), st.floats(1.001, 60.0))
def test_the_price_bounds_the_divergence(scale, shift, alpha):
    """Computed from the probabilities themselves, summed, for a change of `shift` whole numbers."""
    mechanism = DiscreteGaussian(float(shift), scale / shift, 1.0)
    k = np.arange(-int(200 * scale) - 60 * shift, int(200 * scale) + 60 * shift + 1)
    log_p = -((k / scale) ** 2) / 2
    log_p -= np.logaddexp.reduce(log_p)
    log_q = -(((k - shift) / scale) ** 2) / 2
    log_q -= np.logaddexp.reduce(log_q)
    divergence = float(np.logaddexp.reduce(alpha * log_p - (alpha - 1) * log_q)) / (alpha - 1)
    if (alpha - 1) * shift < 100 * scale:  # the tilted weight lies within what is summed
        assert divergence <= mechanism.event.rdp(alpha) * (1 + 1e-9) + 1e-9


def test_price_and_parameters():
    mechanism = DiscreteGaussian(3.0, 2.0, 0.5)
    assert (mechanism.norm, mechanism.sensitivity, mechanism.scale) == ("L2", 3.0, 6.0)
    assert type(mechanism.event) is ConcentratedEvent
    assert 0.125 < mechanism.event.rho <= 0.125 * (1 + 2e-12)
    assert mechanism.scaled(2.0) == DiscreteGaussian(3.0, 4.0, 0.5)
    assert mechanism.event.rho == DiscreteGaussian(7.0, 2.0, 0.25).event.rho
    assert mechanism.change(np.zeros((1, 2)), np.array([[3.0, -4.0]])).tolist() == [5.0]
    value = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(mechanism.color(mechanism.whiten(value), value.shape), value)
    assert not np.shares_memory(mechanism.whiten(value), value)


def test_a_ledger_of_discrete_noise_promises_zcdp():
    ledger = LiveLedger(1, SOURCES["reproducible"](), budget=ZCDP(1.0 + 1e-6))
    for _ in range(4):
        ledger.release(DiscreteGaussian(1.0, 2**0.5, 1.0), np.zeros(1), records=span(0, 3))
    found = ledger.guarantee()
    assert type(found) is ZCDP
    assert found.rho == pytest.approx(1.0, rel=1e-11)
    with pytest.raises(NoSuchConversion):
        found.gdp()
