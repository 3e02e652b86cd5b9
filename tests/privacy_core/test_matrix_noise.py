"""Noise on symmetric matrices: what a change costs by brute force, and what the noise of each entry really is."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from doubles import ConstantNoise, span
from hypothesis import given, settings
from hypothesis import strategies as st
from noise_fit import N_SAMPLES, is_distributed_as
from scipy import stats
from scipy.optimize import minimize

from bandana.privacy_core import (
    EQUAL,
    GOE,
    GaussianDP,
    GaussianEvent,
    JointGaussian,
    LiveLedger,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
    SymmetricGaussian,
)
from bandana.privacy_core.noise.matrices import frobenius_factor


def with_deviation(off, ratio):
    """Mechanism of a Frobenius bound and of the deviation of the entries that a law is built from."""

    def build(frobenius, deviation):
        unit = SymmetricGaussian.of_frobenius(frobenius, 1.0, ratio)
        return unit.scaled(off * deviation / unit.sensitivity)

    return build


LAWS = {
    # name: (mechanism, off-diagonal and diagonal standard deviation at deviation 1); half is (Z + Z^T) / 2
    "goe": (with_deviation(1.0, GOE), 1.0, math.sqrt(2)),
    "half": (with_deviation(1 / math.sqrt(2), GOE), 1 / math.sqrt(2), 1.0),
    "equal": (with_deviation(1.0, EQUAL), 1.0, 1.0),
}
every_law = pytest.mark.parametrize("law", list(LAWS))


def outer(x):
    return x[:, :, None] * x[:, None, :]


def draw_from(mechanism, value, seed=1):
    return mechanism.draw(ReproducibleNoise(np.random.SeedSequence(seed)), value)


def free_entries(value, n_columns=None):
    """(n_rows, n_free): upper triangle, then the vector, by nothing but their meaning."""
    d = value.shape[-2]
    rows, columns = np.triu_indices(d)
    upper = value[:, rows, columns]
    return np.concatenate([upper, value[:, :, d]], axis=1) if value.shape[-1] > d else upper


def deviations(mechanism, d, has_vector):
    """(n_free,) standard deviation of each free entry's noise, from the definition of the law."""
    rows, columns = np.triu_indices(d)
    upper = np.where(rows == columns, math.sqrt(mechanism.diagonal_ratio), 1.0) * mechanism.scale
    return np.concatenate([upper, np.full(d, mechanism.scale * mechanism.vector_ratio)]) if has_vector else upper


class TestWhatAChangeCosts:
    @every_law
    def test_mu_of_one_change_by_hand(self, law):
        """mu^2 = sum_i D_ii^2 / diagonal variance + sum_(i<j) D_ij^2 / off-diagonal variance."""
        build, off, on = LAWS[law]
        mechanism = build(5.0, 0.7)
        change = np.array([[[1.0, -2.0, 0.5], [-2.0, 3.0, 0.0], [0.5, 0.0, -1.0]]])
        by_hand = (1 + 9 + 1) / (0.7 * on) ** 2 + (4 + 0.25) / (0.7 * off) ** 2
        found = mechanism.change(np.zeros((1, 3, 3)), change) / mechanism.scale
        assert found == pytest.approx([math.sqrt(by_hand)], rel=1e-12)

    @settings(max_examples=100)
    @given(st.lists(st.floats(-3, 3), min_size=6, max_size=6), st.floats(0.1, 9.0))
    def test_frobenius_bounds(self, entries, entry_sd):
        """No D costs more than its Frobenius norm allows; a GOE's every D costs just that."""
        upper = np.zeros((1, 3, 3))
        upper[0][np.triu_indices(3)] = entries
        change = upper + np.swapaxes(upper, 1, 2) - upper * np.eye(3)
        norm = float(np.linalg.norm(change))
        if norm < 1e-6:
            return
        for law, (build, off, _) in LAWS.items():
            mechanism = build(norm, entry_sd)
            assert mechanism.scale == pytest.approx(entry_sd * off, rel=1e-12)
            cost = mechanism.change(np.zeros((1, 3, 3)), change)[0]
            assert cost <= mechanism.sensitivity * (1 + 1e-12)
            if law != "equal":
                assert cost == pytest.approx(mechanism.sensitivity, rel=1e-9)
            by_law = {"goe": 1 / math.sqrt(2), "half": 1.0, "equal": 1.0}[law]
            assert 1 / mechanism.noise_multiplier == pytest.approx(by_law * norm / entry_sd, rel=1e-12)

    @every_law
    def test_the_bound_of_equal_variances_is_attained_on_the_diagonal(self, law):
        change = np.diag([1.0, -1.0])[None]
        mechanism = LAWS[law][0](math.sqrt(2), 1.0)
        assert mechanism.change(np.zeros((1, 2, 2)), change) == pytest.approx([mechanism.sensitivity], rel=1e-12)

    @pytest.mark.parametrize("ratio", [0.25, 1.0, 1.5, 2.0, 3.0, 8.0])
    def test_the_factor_for_any_diagonal_ratio(self, ratio):
        """The worst D is diagonal below ratio 2 and off-diagonal above."""
        on, off = np.diag([1.0, -1.0])[None], np.array([[[0.0, 1.0], [1.0, 0.0]]])
        mechanism = SymmetricGaussian.of_frobenius(math.sqrt(2), 1.0, ratio)
        costs = [mechanism.change(np.zeros((1, 2, 2)), change)[0] for change in (on, off)]
        assert max(costs) == pytest.approx(mechanism.sensitivity, rel=1e-12)
        assert frobenius_factor(ratio) == pytest.approx(mechanism.sensitivity / math.sqrt(2), rel=1e-12)

    def test_the_reference(self, reference):
        known = reference["i_symmetric_matrix"]
        for law, ratio in [("goe", GOE), ("equal", EQUAL)]:
            mechanism = SymmetricGaussian.of_outer_products(1.0, 1.0, ratio)
            times_s = mechanism.scale / mechanism.noise_multiplier
            stated = known[law]["replace_mu_times_s"]
            assert times_s == pytest.approx(math.sqrt(2) if stated == "sqrt(2)" else stated, rel=1e-12)


def parametrized(theta, d, norm_bound, value_bound):
    """Two records of the largest norms from any numbers."""
    x, other = theta[:d], theta[d : 2 * d]
    y, other_y = value_bound * np.sign(theta[2 * d :])
    return (
        norm_bound * x / np.linalg.norm(x), y, norm_bound * other / np.linalg.norm(other), other_y
    )  # fmt: skip


def worst_pair(cost, d, value_bound, seed, n_starts=6):
    """The largest cost that local searches find from random starts, over records on the sphere and both signs of y."""
    generator, best = np.random.default_rng(seed), 0.0
    signs = [(1.0, 1.0), (1.0, -1.0)] if value_bound else [(1.0, 1.0)]
    for (y, other_y), _ in itertools.product(signs, range(n_starts)):

        def negative(theta, y=y, other_y=other_y):
            return -cost(np.concatenate([theta, [y, other_y]]))

        start = generator.normal(size=2 * d)
        best = max(best, -minimize(negative, start, method="L-BFGS-B", options={"maxiter": 400}).fun)
    return best


class TestTheWorstPair:
    """The sensitivity is attained, and by nothing exceeded: local searches on the sphere, and 20 000 pairs in the ball."""

    @pytest.mark.parametrize("d", [2, 4])
    @pytest.mark.parametrize("norm_bound", [1.0, 0.5, 3.0])
    @pytest.mark.parametrize("ratio", [GOE, EQUAL, 5.0])
    def test_outer_products(self, ratio, norm_bound, d):
        mechanism = SymmetricGaussian.of_outer_products(norm_bound, 1.0, ratio)

        def cost(theta):
            x, _, other, _ = parametrized(theta, d, norm_bound, 1.0)
            return mechanism.change(outer(x[None]), outer(other[None]))[0]

        found = worst_pair(cost, d, None, seed=d)
        assert found == pytest.approx(mechanism.sensitivity, rel=1e-5)
        assert found <= mechanism.sensitivity * (1 + 1e-12)
        x, other = in_the_ball(d, norm_bound, 2)
        assert mechanism.change(outer(x), outer(other)).max() <= mechanism.sensitivity * (1 + 1e-12)

    @pytest.mark.parametrize("d", [2, 4])
    @pytest.mark.parametrize(
        ("norm_bound", "value_bound", "vector_ratio"),
        [(1, 1, 1), (1, 1, 0.5), (1, 1, 1.5), (1, 1, 4), (1, 0.1, 1), (2, 1, 1), (0.5, 3, 1), (2, 1, 0.3), (1, 2, 3)],
    )
    @pytest.mark.parametrize("ratio", [GOE, EQUAL])
    def test_pairs_with_a_vector(self, ratio, norm_bound, value_bound, vector_ratio, d):
        mechanism = JointGaussian(norm_bound, value_bound, 1.0, vector_ratio, ratio)

        def statistic(x, y):
            return mechanism.statistic(x[None], np.array([y]))

        def cost(theta):
            x, y, other, other_y = parametrized(theta, d, norm_bound, value_bound)
            return mechanism.change(statistic(x, y), statistic(other, other_y))[0]

        found = worst_pair(cost, d, value_bound, seed=d)
        assert found == pytest.approx(mechanism.sensitivity, rel=1e-5)
        assert found <= mechanism.sensitivity * (1 + 1e-12)
        x, other = in_the_ball(d, norm_bound, 2)
        y, other_y = np.random.default_rng(3).uniform(-value_bound, value_bound, (2, len(x)))
        costs = mechanism.change(mechanism.statistic(x, y), mechanism.statistic(other, other_y))
        assert costs.max() <= mechanism.sensitivity * (1 + 1e-12)

    @pytest.mark.parametrize("ratio", [0.5, 1.5, 4.0])
    @pytest.mark.parametrize("vector_ratio", [0.7, 2.0])
    def test_pairs_under_other_diagonal_ratios(self, vector_ratio, ratio):
        mechanism = JointGaussian(1.0, 1.0, 1.0, vector_ratio, ratio)

        def cost(theta):
            x, y, other, other_y = parametrized(theta, 3, 1.0, 1.0)
            sides = [mechanism.statistic(a[None], np.array([b])) for a, b in ((x, y), (other, other_y))]
            return mechanism.change(*sides)[0]

        found = worst_pair(cost, 3, 1.0, seed=4)
        assert found == pytest.approx(mechanism.sensitivity, rel=1e-5)
        assert found <= mechanism.sensitivity * (1 + 1e-12)

    @pytest.mark.parametrize(("deviation", "vector_deviation"), [(1.0, 1.0), (1.0, 3.0), (2.0, 0.5), (0.7, 0.7), (3.0, 3.5)])
    def test_unit_bounds_in_closed_form(self, deviation, vector_deviation):
        """mu = 1/s + s/w^2 if w >= s, else 2/w, for the GOE."""
        mechanism = JointGaussian(1.0, 1.0, 1.0, vector_deviation / deviation)
        mu = mechanism.sensitivity / deviation
        known = 1 / deviation + deviation / vector_deviation**2 if vector_deviation >= deviation else 2 / vector_deviation
        assert mu == pytest.approx(known, rel=1e-12)
        assert mu <= math.hypot(1 / deviation, 2 / vector_deviation), "less than both worst cases together"

    @pytest.mark.parametrize("value", [0.1, 0.7, 1.0, 1.3, 3.0])
    def test_equal_deviations_in_closed_form(self, value):
        goe = (1 + value**2) ** 2 if value <= 1 else 4 * value**2
        equal = 2 + 2 * value**2 + value**4 / 2 if value**2 <= 2 else 4 * value**2
        assert JointGaussian(1.0, value, 1.0).sensitivity ** 2 == pytest.approx(goe, rel=1e-12)
        assert JointGaussian(1.0, value, 1.0, diagonal_ratio=EQUAL).sensitivity ** 2 == pytest.approx(equal, rel=1e-12)

    @given(
        st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0.2, 6),
        st.lists(st.floats(-1, 1), min_size=8, max_size=8),
    )  # fmt: skip
    def test_no_pair_exceeds_it(self, norm_bound, value_bound, vector_ratio, ratio, numbers):
        mechanism = JointGaussian(norm_bound, value_bound, 1.0, vector_ratio, ratio)
        x, y = np.array(numbers[:6]).reshape(2, 3), np.array(numbers[6:]) * value_bound
        x *= norm_bound / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
        one, two = mechanism.statistic(x, y)
        assert mechanism.change(one[None], two[None])[0] <= mechanism.sensitivity * (1 + 1e-12)


def in_the_ball(d, norm_bound, n_sides, n_pairs=20_000):
    directions = np.random.default_rng(d).normal(size=(n_sides, n_pairs, d))
    directions /= np.linalg.norm(directions, axis=2, keepdims=True)
    return norm_bound * directions * np.random.default_rng(1).uniform(size=(n_sides, n_pairs, 1)) ** 0.2


MECHANISMS = {
    "goe": (LAWS["goe"][0](2.0, 0.7), 3, False),
    "half": (LAWS["half"][0](2.0, 0.7), 3, False),
    "equal": (LAWS["equal"][0](2.0, 0.7), 3, False),
    "any ratio": (SymmetricGaussian(1.5, 0.8, 0.3), 2, False),
    "joint": (JointGaussian(1.0, 0.5, 0.8, 2.5), 2, True),
    "joint, equal": (JointGaussian(2.0, 1.0, 0.3, 0.4, EQUAL), 3, True),
}
every_mechanism = pytest.mark.parametrize("name", list(MECHANISMS))


class TestTheNoise:
    def symmetric(self, n_rows, d, has_vector, seed=0):
        value = np.random.default_rng(seed).normal(size=(n_rows, d, d + has_vector))
        value[:, :, :d] += np.swapaxes(value[:, :, :d], 1, 2)
        return value

    @every_mechanism
    def test_each_entry_has_its_deviation_and_30_percent_off_is_seen(self, name):
        mechanism, d, has_vector = MECHANISMS[name]
        value = self.symmetric(N_SAMPLES, d, has_vector)
        noise = free_entries(draw_from(mechanism, value) - value)
        for entry, deviation in enumerate(deviations(mechanism, d, has_vector)):
            known = stats.norm(scale=deviation)
            assert is_distributed_as(noise[:, entry], known)
            assert not is_distributed_as(noise[:, entry] * 1.3, known)
            assert not is_distributed_as(noise[:, entry] * 0.7, known)
        # Near N(0, 1/n) each: 10 standard deviations, false alarm below 1e-20 for all of them.
        correlation = np.corrcoef(noise.T) - np.eye(noise.shape[1])
        assert np.abs(correlation).max() < 10 / math.sqrt(N_SAMPLES)

    @every_law
    def test_the_named_laws(self, law):
        build, off, on = LAWS[law]
        noise = draw_from(build(2.0, 0.7), np.zeros((N_SAMPLES, 2, 2)))
        assert is_distributed_as(noise[:, 0, 1], stats.norm(scale=0.7 * off))
        assert is_distributed_as(noise[:, 0, 0], stats.norm(scale=0.7 * on))
        assert is_distributed_as(noise[:, 1, 1], stats.norm(scale=0.7 * on))

    @pytest.mark.parametrize(("law", "divisor"), [("goe", math.sqrt(2)), ("half", 2.0)])
    def test_it_is_the_law_of_a_symmetrized_square(self, law, divisor):
        """Eigenvalues of (Z + Z^T) over sqrt 2, or 2: two-sample KS, false alarm 1e-20."""
        noise = draw_from(LAWS[law][0](2.0, 0.7), np.zeros((20_000, 3, 3)))
        square = np.random.default_rng(5).normal(scale=0.7, size=(20_000, 3, 3))
        truth = np.linalg.eigvalsh((square + np.swapaxes(square, 1, 2)) / divisor)
        found = np.linalg.eigvalsh(noise)
        assert stats.ks_2samp(found[:, 0], truth[:, 0]).pvalue > 1e-20
        assert stats.ks_2samp(found[:, 0] * 1.3, truth[:, 0]).pvalue < 1e-20

    @every_mechanism
    @pytest.mark.parametrize("stack", [(), (2,), (2, 3)], ids=str)
    def test_outputs_are_symmetric_and_the_lower_triangle_is_not_read(self, name, stack):
        mechanism, d, has_vector = MECHANISMS[name]
        n = math.prod(stack)
        value = self.symmetric(7 * n, d, has_vector).reshape(7, *stack, d, d + has_vector)
        other, kept = value.copy(), value.copy()
        other[..., :d][..., np.tril(np.ones((d, d), dtype=bool), -1)] = np.nan
        first, second = draw_from(mechanism, value), draw_from(mechanism, other)
        assert np.array_equal(first, second)
        assert first.shape == value.shape
        assert np.array_equal(value, kept)
        assert np.array_equal(first[..., :d], np.swapaxes(first[..., :d], -1, -2))
        assert np.array_equal(mechanism.change(value, other), np.zeros(7))
        flat = first - value
        assert len(np.unique(free_entries(flat.reshape(-1, d, d + has_vector)))) == 7 * n * (
            d * (d + 1) // 2 + d * has_vector
        ), "every free entry of every matrix has noise of its own"

    @every_mechanism
    def test_whitening_and_coloring_undo_each_other(self, name):
        mechanism, d, has_vector = MECHANISMS[name]
        value = self.symmetric(10, d, has_vector).reshape(5, 2, d, d + has_vector)
        whitened = mechanism.whiten(value)
        assert whitened.shape == (5, 2 * (d * (d + 1) // 2 + d * has_vector))
        assert mechanism.color(whitened, value.shape) == pytest.approx(value, rel=1e-15)
        for made in (whitened, mechanism.color(whitened, value.shape)):
            assert not np.shares_memory(made, value)
        assert mechanism.whiten(value[:0]).shape == (0, whitened.shape[1])
        assert mechanism.color(whitened[:0], (0, *value.shape[1:])).shape == (0, *value.shape[1:])

    @every_mechanism
    def test_the_log_density_ratio(self, name):
        mechanism, d, has_vector = MECHANISMS[name]
        generator = np.random.default_rng(7)
        value, neighbor = self.symmetric(20, d, has_vector, 8), self.symmetric(20, d, has_vector, 9)
        output = value + self.symmetric(20, d, has_vector, 10)
        output[:, :, :d][:, np.tril(np.ones((d, d), dtype=bool), -1)] = generator.normal()  # must not be read
        covariance = np.diag(deviations(mechanism, d, has_vector) ** 2)
        expected = [
            stats.multivariate_normal(mean=two, cov=covariance).logpdf(at)
            - stats.multivariate_normal(mean=one, cov=covariance).logpdf(at)
            for at, one, two in zip(*(free_entries(array) for array in (output, value, neighbor)), strict=True)
        ]
        assert mechanism.log_density_ratio(output, value, neighbor) == pytest.approx(expected, rel=1e-9, abs=1e-9)

    @every_mechanism
    def test_a_stack_is_one_release(self, name):
        """Costs and log ratios add over the matrices of a stack: change by squares, log ratios as they are."""
        mechanism, d, has_vector = MECHANISMS[name]
        value, neighbor, output = (self.symmetric(12, d, has_vector, seed) for seed in (1, 2, 3))
        stacked = [array.reshape(4, 3, d, d + has_vector) for array in (output, value, neighbor)]
        single = mechanism.log_density_ratio(output, value, neighbor).reshape(4, 3).sum(axis=1)
        assert mechanism.log_density_ratio(*stacked) == pytest.approx(single, rel=1e-9)
        changes = np.sqrt((mechanism.change(value, neighbor) ** 2).reshape(4, 3).sum(axis=1))
        assert mechanism.change(*stacked[1:]) == pytest.approx(changes, rel=1e-12)

    @every_mechanism
    def test_the_privacy_loss_of_the_worst_pair_is_gaussian(self, name):
        """N(-mu^2/2, mu^2) with mu = 1 / noise multiplier, at a change as large as the sensitivity; false alarm 1e-20."""
        mechanism, d, has_vector = MECHANISMS[name]
        value, direction = self.symmetric(1, d, has_vector, 1), self.symmetric(1, d, has_vector, 2)
        neighbor = value + direction * mechanism.sensitivity / mechanism.change(value, value + direction)
        values, neighbors = (np.repeat(side, N_SAMPLES, axis=0) for side in (value, neighbor))
        live = LiveLedger(N_SAMPLES, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
        live.release(mechanism, values, records=span(0, 1, N_SAMPLES))
        scripted = ScriptedLedger(N_SAMPLES, live.transcript)
        scripted.release(mechanism, neighbors, records=span(0, 1, N_SAMPLES))
        mu = live.guarantee().mu
        assert mu == pytest.approx(1 / mechanism.noise_multiplier, rel=1e-12)
        assert is_distributed_as(scripted.log_ratio, stats.norm(-(mu**2) / 2, mu))
        assert not is_distributed_as(scripted.log_ratio, stats.norm(-((0.7 * mu) ** 2) / 2, 0.7 * mu))


class TestPriceAndParameters:
    @every_mechanism
    def test_the_price(self, name):
        mechanism, d, has_vector = MECHANISMS[name]
        ledger = LiveLedger(1, ConstantNoise(), budget=GaussianDP(1 / mechanism.noise_multiplier))
        ledger.release(mechanism, np.zeros((1, d, d + has_vector)), records=span(0, 5))
        assert ledger.worst_record() == {GaussianEvent(mechanism.noise_multiplier): 1}
        assert mechanism.relation is Relation.REPLACE_RECORD
        assert mechanism.deviation == mechanism.scale == mechanism.sensitivity * mechanism.noise_multiplier

    @every_mechanism
    def test_scaled_noise(self, name):
        mechanism, d, has_vector = MECHANISMS[name]
        twice = mechanism.scaled(2.0)
        assert twice.sensitivity == mechanism.sensitivity
        zeros = np.zeros((3, d, d + has_vector))
        first, second = draw_from(mechanism, zeros), draw_from(twice, zeros)
        assert second == pytest.approx(2 * first, rel=1e-12)

    def test_constant_noise_shows_the_weights(self):
        drawn = SymmetricGaussian(2.0, 1.5).draw(ConstantNoise(1.0), np.zeros((1, 2, 2)))
        assert drawn[0] == pytest.approx(3.0 * np.array([[math.sqrt(2), 1.0], [1.0, math.sqrt(2)]]))
        joint = JointGaussian(1.0, 1.0, 1.0, vector_ratio=0.5, diagonal_ratio=EQUAL)
        drawn = joint.draw(ConstantNoise(1.0), np.zeros((1, 2, 3)))
        assert drawn[0] == pytest.approx(joint.sensitivity * np.array([[1.0, 1.0, 0.5], [1.0, 1.0, 0.5]]))
        assert joint.vector_scale == pytest.approx(joint.scale / 2)

    def test_the_statistic(self):
        x, y = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([10.0, -1.0])
        assert JointGaussian.statistic(x, y).tolist() == [[[1, 2, 10], [2, 4, 20]], [[0, 0, 0], [0, 9, -3]]]

    @pytest.mark.parametrize("shape", [(3,), (3, 3), (2, 3, 2), (2, 3, 4), (2, 3), (2, 2, 3, 5)], ids=str)
    def test_values_that_are_no_matrices(self, shape):
        with pytest.raises(ValueError, match=r"value must have the shape \(n_rows, ..., d, d\), got .* axes that end in"):
            SymmetricGaussian(1.0, 1.0).draw(ConstantNoise(), np.zeros(shape))

    @pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 3), (2, 3, 5), (2, 4, 3)], ids=str)
    def test_values_that_are_no_pairs(self, shape):
        with pytest.raises(ValueError, match=r"value must have the shape \(n_rows, ..., d, d \+ 1\), got"):
            JointGaussian(1.0, 1.0, 1.0).draw(ConstantNoise(), np.zeros(shape))

    @pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
    def test_parameters_that_are_not_positive(self, value):
        symmetric = [
            ("sensitivity_weighted", lambda v: SymmetricGaussian(v, 1.0)),
            ("noise_multiplier", lambda v: SymmetricGaussian(1.0, v)),
            ("diagonal_ratio", lambda v: SymmetricGaussian(1.0, 1.0, v)),
            ("diagonal_ratio", lambda v: SymmetricGaussian.of_frobenius(1.0, 1.0, v)),
            ("frobenius", lambda v: SymmetricGaussian.of_frobenius(v, 1.0)),
            ("norm_bound", lambda v: SymmetricGaussian.of_outer_products(v, 1.0)),
        ]
        names = ["norm_bound", "value_bound", "noise_multiplier", "vector_ratio", "diagonal_ratio"]
        joint = [
            (name, lambda v, i=i: JointGaussian(*[v if j == i else 1.0 for j in range(5)])) for i, name in enumerate(names)
        ]
        for name, build in symmetric + joint:
            with pytest.raises(ValueError, match=f"{name} must be a finite number above 0"):
                build(value)
