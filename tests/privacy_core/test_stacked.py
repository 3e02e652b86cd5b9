"""Several pairs in one release: what a change costs block by block, the noise's law, and the sums that carry it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles import ConstantNoise
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats

from bandana.privacy_core import (
    EQUAL,
    GOE,
    Factorized,
    FactorizedSum,
    GaussianDP,
    JointGaussian,
    LiveLedger,
    LocalSum,
    ReproducibleNoise,
    StackedGaussian,
    StackedLaplace,
    TreeSum,
    calibrate,
    stacked_pairs,
)
from bandana.privacy_core.noise.sensitivities import pair_l1_witness

NORMS, VALUES, SHARES = (3.0, 1.0), (2.0, 0.5), (1.5, 0.25)


def pairs(seed, n_rows=400, d=3):
    """Random records at the bounds, in either block."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, n_rows, d))
    x *= np.array(NORMS)[:, None, None] / np.linalg.norm(x, axis=2, keepdims=True)
    y = np.array(VALUES)[:, None] * rng.choice([-1.0, 1.0], (2, n_rows))
    return stacked_pairs(list(x), list(y))


@pytest.mark.parametrize("ratio", [GOE, EQUAL])
def test_gaussian_changes_add_up_as_squares_of_the_pairs_alone(ratio):
    stacked = StackedGaussian(NORMS, VALUES, SHARES, 1.0, vector_ratio=1.7, diagonal_ratio=ratio)
    alone = [JointGaussian(r, y, 1.0, 1.7, ratio) for r, y in zip(NORMS, VALUES, strict=True)]
    one, other = pairs(1), pairs(2)
    parts = [m.change(one[:, i], other[:, i]) / s for i, (m, s) in enumerate(zip(alone, SHARES, strict=True))]
    change = stacked.change(one, other)
    np.testing.assert_allclose(change, np.hypot(*parts), rtol=1e-12)
    bounds = [m.sensitivity / s for m, s in zip(alone, SHARES, strict=True)]
    assert change.max() <= stacked.sensitivity == pytest.approx(math.hypot(*bounds))


def test_the_gaussian_sensitivity_is_attained():
    """x' = -x in every block whose value bound is not below the norm's, at GOE noise."""
    stacked = StackedGaussian((1.0, 2.0), (1.0, 2.0), (1.0, 3.0), 1.0)
    x = [np.array([[1.0, 0.0]]), np.array([[0.0, 2.0]])]
    y = [np.array([1.0]), np.array([2.0])]
    change = stacked.change(stacked_pairs(x, y), stacked_pairs([-v for v in x], y))
    assert change == pytest.approx([stacked.sensitivity], rel=1e-12)
    assert stacked.sensitivity == pytest.approx(math.hypot(2.0, 8 / 3))


def test_laplace_changes_add_up_and_stay_between_the_witness_and_the_bound():
    stacked = StackedLaplace((1.0, 2.0), (1.0, 2.0), (1.0, 0.5), 3, 1.0)
    witness = pair_l1_witness(3) * (1 + 4 / 0.5)
    assert witness <= stacked.sensitivity <= 1.1 * witness
    uneven = StackedLaplace(NORMS, VALUES, SHARES, 3, 1.0, vector_ratio=2.0)
    one, other = pairs(3), pairs(4)
    rows, columns = np.triu_indices(3)
    by_hand = sum(
        (
            np.abs((one - other)[:, i][:, rows, columns]).sum(axis=1)
            + np.abs((one - other)[:, i, :, 3]).sum(axis=1) / 2
        ) / share
        for i, share in enumerate(SHARES)
    )  # fmt: skip
    np.testing.assert_allclose(uneven.change(one, other), by_hand, rtol=1e-12)
    assert by_hand.max() <= uneven.sensitivity


@pytest.mark.parametrize("is_pure", [False, True])
def test_the_noise_of_every_entry(is_pure):
    n, d = N_SAMPLES, 2
    if is_pure:
        mechanism = StackedLaplace(NORMS, VALUES, SHARES, d, 0.3, vector_ratio=2.0)
    else:
        mechanism = StackedGaussian(NORMS, VALUES, SHARES, 0.3, vector_ratio=2.0)
    drawn = mechanism.draw(ReproducibleNoise(np.random.SeedSequence(1)), np.zeros((n, 2, d, d + 1)))
    assert np.array_equal(drawn[:, :, 0, 1], drawn[:, :, 1, 0])
    law = stats.laplace if is_pure else stats.norm
    diagonal = 1.0 if is_pure else math.sqrt(2)
    for i, share in enumerate(SHARES):
        for place, weight in (((0, 0), diagonal), ((0, 1), 1.0), ((1, 1), diagonal), ((0, 2), 2.0), ((1, 2), 2.0)):
            assert is_distributed_as(drawn[(slice(None), i, *place)], law(scale=share * weight * mechanism.scale))
    flat = drawn[:, :, [0, 0, 1, 0, 1], [0, 1, 1, 2, 2]].reshape(n, -1)
    assert np.abs(np.corrcoef(flat.T) - np.eye(10)).max() < 0.05


@pytest.mark.parametrize("is_pure", [False, True])
def test_the_privacy_loss_is_that_of_the_free_entries(is_pure):
    build = StackedLaplace(NORMS, VALUES, SHARES, 3, 2.0) if is_pure else StackedGaussian(NORMS, VALUES, SHARES, 2.0)
    one, other = pairs(5, 50), pairs(6, 50)
    output = build.draw(ReproducibleNoise(np.random.SeedSequence(2)), one)
    rows, columns = np.triu_indices(3)
    law, diagonal = (stats.laplace, 1.0) if is_pure else (stats.norm, math.sqrt(2))
    expected = np.zeros(50)
    for i, share in enumerate(SHARES):
        matrix = law(scale=share * build.scale * np.where(rows == columns, diagonal, 1.0))
        vector = law(scale=share * build.scale)
        for value, sign in ((other, 1), (one, -1)):
            missed = (output - value)[:, i]
            expected += sign * matrix.logpdf(missed[:, rows, columns]).sum(axis=1)
            expected += sign * vector.logpdf(missed[:, :, 3]).sum(axis=1)
    np.testing.assert_allclose(build.log_density_ratio(output, one, other), expected, rtol=1e-9, atol=1e-9)


def test_packing_and_unpacking():
    mechanism = StackedGaussian(NORMS, VALUES, SHARES, 1.0)
    value = pairs(7, 4)
    np.testing.assert_allclose(mechanism.color(mechanism.whiten(value), value.shape), value, rtol=1e-14)
    tampered = value.copy()
    tampered[:, :, 2, 0] = 99.0
    assert np.array_equal(mechanism.whiten(tampered), mechanism.whiten(value))
    with pytest.raises(ValueError, match=r"value must have the shape \(n_rows, 2, d, d \+ 1\), got \(4, 2, 3, 3\)"):
        mechanism.whiten(np.zeros((4, 2, 3, 3)))


@pytest.mark.parametrize("n_steps", [6, 40])
def test_running_sums_carry_it(n_steps):
    """A tree's first node, a local sum, and dense and buffered factorized sums, without noise the exact sums."""
    value = pairs(8, n_steps)[:, None]
    noise = StackedGaussian(NORMS, VALUES, SHARES, 1.0)
    for sums in (TreeSum(noise, n_steps), LocalSum(noise), FactorizedSum(noise, n_steps)):
        ledger, state = LiveLedger(1, ConstantNoise(0.0)), sums.init(1, (2, 3, 4))
        for step in range(n_steps):
            state, noisy, _ = sums.close(sums.add(state, value[step], np.ones(1, dtype=np.int64)), ledger)
            np.testing.assert_allclose(noisy[0], value[: step + 1, 0].sum(axis=0), rtol=1e-9, atol=1e-9)


def test_a_factorized_sum_pays_once():
    noise = StackedGaussian(NORMS, VALUES, SHARES, calibrate(GaussianDP(0.7), Factorized(5)))
    sums, ledger = FactorizedSum(noise, 5), LiveLedger(2, ReproducibleNoise(np.random.SeedSequence(3)))
    state = sums.init(2, (2, 3, 4))
    for step in range(5):
        state, _, _ = sums.close(sums.add(state, pairs(step, 2), np.ones(2, dtype=np.int64)), ledger)
    assert ledger.guarantee().gdp().mu == pytest.approx(0.7, rel=1e-9)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shares": (1.0,)}, "must name the same blocks, one at least, got 2, 2 and 1"),
        ({"norm_bounds": (1.0, 0.0)}, r"norm_bounds\[1\]"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"vector_ratio": -1.0}, "vector_ratio"),
    ],
)
def test_refusals(changed, message):
    usual = {"norm_bounds": NORMS, "value_bounds": VALUES, "shares": SHARES, "noise_multiplier": 1.0}
    with pytest.raises(ValueError, match=message):
        StackedGaussian(**(usual | changed))
    with pytest.raises(ValueError, match=message):
        StackedLaplace(**(usual | changed), dimension=3)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 3.0])
def test_the_laplace_sensitivity_of_vectors_with_other_noise(ratio):
    """That of vectors shorter by the ratio; in one dimension all pairs of records are tried, which none exceeds."""
    stacked = StackedLaplace(NORMS, VALUES, SHARES, 1, 1.0, vector_ratio=ratio)
    largest = 0.0
    for r, bound, share in zip(NORMS, VALUES, SHARES, strict=True):
        x, other = (side.ravel() for side in np.meshgrid(np.linspace(-r, r, 201), np.linspace(-r, r, 201)))
        vectors = np.maximum(np.abs(x - other), np.abs(x + other)) * bound / ratio
        largest += (np.abs(x**2 - other**2) + vectors).max() / share
    assert largest <= stacked.sensitivity * (1 + 1e-12)
    shorter = StackedLaplace(NORMS, tuple(bound / ratio for bound in VALUES), SHARES, 1, 1.0)
    assert stacked.sensitivity == pytest.approx(shorter.sensitivity, rel=1e-12)
