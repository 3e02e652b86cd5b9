"""Features of kernels: exact identities, errors against the kernel itself, and a grid that is halved wrongly."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import eval_hermite

from bandana.algorithms.rkhs.features import exact_on, feature_map, linear, projected_on, quadrature_fourier, random_fourier
from bandana.algorithms.rkhs.finite_sets import triangular_features
from bandana.algorithms.rkhs.kernels import Additive, Linear, Matern, ProductMatern, SquaredExponential, gram

SE = SquaredExponential(1.0)
ADDITIVE = Additive.of_coordinates(SquaredExponential(0.6), 5)
PAIRS = Additive(ProductMatern(2.5, 0.8), ((0, 1), (1, 2)))
LINES = Additive(Linear(1.5), ((0, 1), (2,)))
seeds = st.integers(0, 10**6)

MAPS = {
    "gauss-hermite": (SE, quadrature_fourier(SE, 2, 100)),
    "gauss-hermite, odd": (SE, quadrature_fourier(SE, 3, 125)),
    "equally spaced": (SE, quadrature_fourier(SE, 2, 49, rule="equally-spaced")),
    "wide": (SE, quadrature_fourier(SE, 2, 256, -2, 2)),
    "matern 1/2": (Matern(0.5, 0.5), quadrature_fourier(Matern(0.5, 0.5), 1, 64)),
    "matern 3/2": (Matern(1.5, 0.5), quadrature_fourier(Matern(1.5, 0.5), 1, 33)),
    "product matern": (ProductMatern(2.5, 0.7), quadrature_fourier(ProductMatern(2.5, 0.7), 2, 300)),
    "additive": (ADDITIVE, quadrature_fourier(ADDITIVE, 5, 70, rule="best")),
    "pairs": (PAIRS, quadrature_fourier(PAIRS, 3, 512)),
    "linear, additive": (LINES, feature_map(LINES, 3, 8)),
    "random": (SE, random_fourier(SE, 2, 400, 1)),
    "random additive": (ADDITIVE, random_fourier(ADDITIVE, 5, 500, 1)),
    "random matern": (Matern(2.5, 0.5), random_fourier(Matern(2.5, 0.5), 3, 800, 2)),
    "linear": (Linear(2.0), linear(Linear(2.0), 3)),
}


def points_in(found, n, seed):
    return np.random.default_rng(seed).uniform(found.low, found.high, (n, found.dimension))


def largest_error(kernel, found, x):
    features = found(x)
    return float(np.abs(features @ features.T - gram(kernel, x, x)).max())


@pytest.mark.parametrize("name", MAPS)
@given(seed=seeds)
def test_norms_and_errors_are_as_stated(name, seed):
    kernel, found = MAPS[name]
    x = points_in(found, 40, seed)
    features = found(x)
    assert features.shape == (40, found.n_features)
    norms = np.linalg.norm(features, axis=1)
    assert norms.max() <= 1 + 1e-12
    if "linear" not in name:
        assert norms == pytest.approx(np.ones(40), abs=1e-13)
    assert largest_error(kernel, found, x) <= found.error + 1e-15


MEASURED = [name for name in MAPS if "random" not in name and "linear" not in name and name != "pairs"]


@pytest.mark.parametrize("name", MEASURED)
def test_the_stated_error_is_nearly_reached(name):
    """A bound far above the truth would ask for needless features: some pair of points comes within a third of it."""
    kernel, found = MAPS[name]
    d, width = found.dimension, found.high - found.low
    steps = np.linspace(0.0, width, 401)
    rays = [np.eye(d)[0], np.ones(d)] if d > 1 else [np.ones(1)]
    worst = 0.0
    for ray in rays:
        x = found.low + steps[:, None] * ray
        corner = np.full((1, d), found.low)
        worst = max(worst, float(np.abs(found(x) @ found(corner)[0] - kernel(x, corner)).max()))
    assert worst <= found.error
    assert worst >= found.error / 3


@pytest.mark.parametrize(("m", "published"), [(144, 3.4e-3), (256, 2e-5), (400, 4e-8)])
def test_the_error_on_a_ball_of_radius_2(m, published):
    """The paper's experiments, lengthscale 1; the published numbers are the largest over a sample, and no bound."""
    found = quadrature_fourier(SE, 2, m, -2, 2)
    ball = np.random.default_rng(0).standard_normal((300, 2))
    ball *= 2 * np.sqrt(np.random.default_rng(1).random((300, 1))) / np.linalg.norm(ball, axis=1, keepdims=True)
    seen = largest_error(SE, found, ball)
    assert published / 3 <= seen <= 1.5 * published
    assert published <= found.error <= 2 * published
    assert found.error == pytest.approx(
        quadrature_fourier(SquaredExponential(0.5), 2, m).error, rel=1e-6
    )  # only the ratio counts


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (0, 1)])
def test_256_features_do_on_unit_squares(low, high):
    found = quadrature_fourier(SE, 2, 256, low, high)
    assert found.n_features == 256
    assert found.error < 1e-12


def test_halving_each_coordinate_approximates_another_kernel():
    """The known defect: only positive nodes in each dimension. The sum of weights is right, so norms are 1 all the same."""
    for q in (6, 8, 12):
        nodes, weights = np.polynomial.hermite.hermgauss(q)
        nodes, weights = math.sqrt(2) * nodes[nodes > 0], 2 * weights[nodes > 0] / math.sqrt(math.pi)
        frequencies = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
        product = np.outer(weights, weights).ravel()
        assert product.sum() == pytest.approx(1)
        x = np.random.default_rng(0).uniform(-1, 1, (200, 2))
        difference = x[:, None] - x[None]
        wrong = np.cos(difference @ frequencies.T) @ product
        assert np.abs(wrong - SE(x[:, None], x[None])).max() > 0.3
        assert largest_error(SE, quadrature_fourier(SE, 2, q**2), x) < 3e-3


@given(q=st.integers(1, 24), seed=seeds)
def test_gauss_and_hermite_are_exact_for_polynomials(q, seed):
    """Exact for degrees below 2 q, under the normal law; and the weights are the formula's, with the square of H_(q-1)."""
    found = quadrature_fourier(SE, 1, q)
    frequencies = np.concatenate([-found.frequencies[:, 0], found.frequencies[:, 0], [0.0] * (q % 2)])
    weights = np.concatenate([found.weights / 2, found.weights / 2, [found.constant] * (q % 2)])
    assert weights.min() > 0
    for degree in range(0, 2 * q, 2):
        moment = math.prod(range(1, degree, 2))
        assert weights @ frequencies**degree == pytest.approx(moment, rel=1e-9)
    if q > 1:
        z = frequencies / math.sqrt(2)
        formula = 2.0 ** (q - 1) * math.factorial(q) / (q * eval_hermite(q - 1, z)) ** 2
        assert weights == pytest.approx(formula, rel=1e-8)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (3, 1), (4, 4), (8, 4), (9, 9), (99, 81), (100, 100)])
def test_the_grid_is_the_largest_that_fits(m, n):
    assert quadrature_fourier(SE, 2, m).n_features == n
    if m >= 4:
        assert feature_map(SE, 2, m).n_features == n


def test_the_better_rule_is_taken():
    wide = SquaredExponential(0.2)
    errors = {rule: quadrature_fourier(wide, 1, 20, rule=rule).error for rule in ("gauss-hermite", "equally-spaced", "best")}
    assert errors["best"] == errors["equally-spaced"] < 1e-4 < 0.1 < errors["gauss-hermite"]
    near = SquaredExponential(5.0)
    assert quadrature_fourier(near, 1, 6, rule="best").error == quadrature_fourier(near, 1, 6).error < 1e-6


@pytest.mark.parametrize(("nu", "rate"), [(0.5, 1), (1.5, 3), (2.5, 5)])
def test_matern_errors_fall_at_the_rate_of_the_spectrum(nu, rate):
    """The tail beyond the last of q frequencies holds about q^(-2 nu) of the spectrum."""
    few, many = (quadrature_fourier(Matern(nu, 0.3), 1, q).error for q in (40, 160))
    assert 0.55 * rate <= math.log(few / many) / math.log(4) <= 1.2 * rate


def test_random_features_are_those_of_the_seed():
    one, same, other = (random_fourier(SE, 2, 64, seed) for seed in (3, 3, 4))
    assert np.array_equal(one.frequencies, same.frequencies)
    assert not np.array_equal(one.frequencies, other.frequencies)


@pytest.mark.parametrize(
    ("kernel", "d"), [(SE, 2), (Matern(1.5, 0.5), 3), (ProductMatern(2.5, 0.5), 2), (Matern(0.5, 0.5), 2)], ids=str
)
def test_random_features_are_unbiased(kernel, d):
    """Over 4000 pairs of features the mean is within 5 deviations, at most 1 / sqrt(4000): false alarm below 1e-5 in all."""
    found = random_fourier(kernel, d, 8000, 5)
    x = np.random.default_rng(0).uniform(-1, 1, (8, d))
    assert largest_error(kernel, found, x) < 5 / math.sqrt(4000)


def test_random_features_converge_slowly():
    assert random_fourier(SE, 2, 10_000, 0).error < random_fourier(SE, 2, 1000, 0).error < 1
    assert random_fourier(Matern(0.5, 1.0), 2, 1000, 0).error == 2.0  # frequencies have no mean: what always holds


# --- finite sets -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [SquaredExponential(0.3), Matern(1.5, 0.5), Linear(2.0)], ids=str)
def test_a_finite_set_is_exact(kernel):
    w = np.random.default_rng(2).uniform(-1, 1, (120, 3))
    found = exact_on(kernel, w)
    assert found.error < 1e-10
    assert largest_error(kernel, found, w) <= found.error
    chosen = np.random.default_rng(3).integers(0, 120, (4, 7))
    assert np.array_equal(found(w[chosen]), found(w)[chosen])
    assert np.linalg.norm(found(w), axis=1).max() <= 1 + 1e-12
    assert found.n_features == (3 if isinstance(kernel, Linear) else pytest.approx(120, abs=30))


def test_repeated_points_of_a_finite_set_have_one_vector():
    w = np.array([[0.1, 0.2], [0.5, 0.5], [0.1, 0.2], [0.0, -0.0]])
    found = exact_on(SquaredExponential(0.5), w)
    features = found(w)
    assert found.n_features == 3
    assert np.array_equal(features[0], features[2])
    assert np.array_equal(found(np.array([[-0.0, 0.0]])), features[3:])


@pytest.mark.parametrize("n", [60, 300])
def test_fewer_features_of_a_finite_set_say_their_error(n):
    kernel, w = SquaredExponential(0.4), np.random.default_rng(2).uniform(-1, 1, (n, 2))
    found = exact_on(kernel, w, 20)
    assert found.n_features == 20
    assert 1e-4 < largest_error(kernel, found, w) <= found.error < 1


def test_strangers_to_a_finite_set_are_taken_for_the_nearest():
    w = np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 0.0]])
    found = exact_on(SE, w)
    brought = np.array([[0.5, 0.500001], [0.0, 0.0], [0.9, 0.1], [np.inf, np.nan], [-1e200, 0.1]])
    assert np.array_equal(found(brought), found(w[[1, 0, 2, 2, 0]]))


@pytest.mark.parametrize("build", [quadrature_fourier, linear], ids=["quadrature", "linear"])
def test_points_outside_the_domain_are_moved_into_it(build):
    found = build(SE, 2, 30) if build is quadrature_fourier else build(Linear(2.0), 2)
    brought = np.array([[10.0, 0.5], [-np.inf, 1e200], [np.nan, -0.3], [0.2, 0.4]])
    inside = np.array([[1.0, 0.5], [-1.0, 1.0], [0.0, -0.3], [0.2, 0.4]])
    assert np.array_equal(found(brought), found(inside))
    with pytest.raises(ValueError, match=r"shape \(..., 2\)"):
        found(np.zeros((3, 1)))


@pytest.mark.parametrize("kernel", [SquaredExponential(0.5), Matern(1.5, 0.5), Matern(0.5, 1.0), Linear(2.0)], ids=str)
@pytest.mark.parametrize("m", [3, 25, 200])
def test_a_projection_has_norms_at_most_1_everywhere_and_its_error_on_the_set(kernel, m):
    """For kernels without a product spectrum too; k - k~ is positive semidefinite, on the set and elsewhere."""
    w = np.random.default_rng(2).uniform(-1, 1, (150, 2))
    found = projected_on(kernel, w, m)
    assert found.n_features <= m
    assert largest_error(kernel, found, w) <= found.error
    assert found.error < (1e-8 if m == 200 or isinstance(kernel, Linear) else 1.0)
    x = np.random.default_rng(3).uniform(-1, 1, (80, 2))
    features = found(x)
    assert np.linalg.norm(features, axis=1).max() <= 1 + 1e-12
    left = gram(kernel, x, x) - features @ features.T
    assert np.linalg.eigvalsh(left).min() > -1e-8
    best = exact_on(kernel, w, m)
    assert np.abs(found(w) @ found(w).T - best(w) @ best(w).T).max() < 1e-7


def test_a_projection_needs_fewer_features_than_a_grid():
    kernel = SquaredExponential(0.5)
    net = np.stack(np.meshgrid(*[np.linspace(-1, 1, 25)] * 2), axis=-1).reshape(-1, 2)
    found, x = projected_on(kernel, net, 49), np.random.default_rng(4).uniform(-1, 1, (200, 2))
    assert largest_error(kernel, found, x) < 1e-3 < largest_error(kernel, feature_map(kernel, 2, 49), x)
    assert np.array_equal(found(np.array([[1.5, 0.0]])), found(np.array([[1.0, 0.0]])))


# --- shared points ------------------------------------------------------------------------------------------------------


def test_points_that_replicates_share_are_mapped_once():
    found = feature_map(SE, 2, 64)
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    shared = found(np.broadcast_to(x, (5, 30, 2)))
    assert shared.shape == (5, 30, 64)
    assert shared.strides[0] == 0
    assert np.array_equal(shared[3], found(x))
    one_by_one = np.stack([x, x[::-1]])
    assert np.array_equal(found(one_by_one)[1], found(x)[::-1])


def test_only_points_that_cannot_change_are_remembered():
    found = feature_map(SE, 2, 64)
    x = np.random.default_rng(0).uniform(-1, 1, (30, 2))
    view = x[:]
    view.setflags(write=False)  # its base can be written to
    before = found(view).copy()
    x[0] = 0.0
    assert not np.array_equal(found(view)[0], before[0])
    x.setflags(write=False)
    first = found(x)
    assert found(x) is first
    assert found(x[:]) is first
    assert not first.flags.writeable
    other = x + 0.0
    other.setflags(write=False)
    assert found(other) is not first
    assert np.array_equal(found(other), first)
    assert np.array_equal(pickle.loads(pickle.dumps(found))(x), first)


def test_a_fixed_set_that_is_gone_is_not_taken_for_another():
    """The memory of an array that is not kept alive is given to the next one: the map keeps it."""
    found = feature_map(SE, 1, 8)
    for value in np.linspace(-1, 1, 50):
        x = np.full((1000, 1), value)
        x.setflags(write=False)
        assert found(x)[0] == pytest.approx(found(np.array([[value]]))[0], abs=1e-15)
        del x


# --- what is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (lambda: feature_map(Matern(1.5, 1.0), 2, 100), "no product spectrum in 2 dimensions: use a ProductMatern"),
        (lambda: feature_map(SE, 7, 127), "n_features must be at least 128, two frequencies along each coordinate, got 127"),
        (lambda: feature_map(PAIRS, 3, 7), "n_features must be at least 8, two .* coordinate of a group, got 7"),
        (lambda: quadrature_fourier(Linear(1.0), 1, 10), "not stationary"),
        (lambda: quadrature_fourier(SE, 2, 0), "n_features must be a whole number of at least 1, got 0"),
        (lambda: quadrature_fourier(SE, 0, 4), "dimension must be .* got 0"),
        (lambda: quadrature_fourier(SE, 1, 4, 1.0, 1.0), "low must be below high"),
        (lambda: quadrature_fourier(SE, 1, 4, rule="simpson"), "rule must be one of gauss-hermite"),
        (lambda: quadrature_fourier(ADDITIVE, 4, 40), "must name all coordinates from 0 to 3"),
        (lambda: quadrature_fourier(ADDITIVE, 6, 40), "must name all coordinates from 0 to 5"),
        (lambda: quadrature_fourier(ADDITIVE, 5, 4), "n_features must be at least 5, one for each group, got 4"),
        (lambda: random_fourier(SE, 2, 1, 0), "n_features must be at least 2"),
        (lambda: random_fourier(Linear(1.0), 2, 10, 0), "not stationary"),
        (lambda: linear(Linear(1.0), 2), "lengthscale of a linear kernel must be at least 1.41421"),
        (lambda: feature_map(Linear(2.0), 3, 2), "n_features of a linear kernel must be at least the dimension 3, got 2"),
        (lambda: exact_on(Linear(1.0), np.ones((2, 2))), r"k\(x, x\) must be at most 1, got 2 at point 0: .* to 1.41421"),
        (lambda: projected_on(Linear(1.0), np.zeros((1, 2)), 2), "lengthscale of a linear kernel must be at least 1.41421"),
        (lambda: projected_on(SE, np.array([[2.0]]), 2), "must lie in the domain"),
        (lambda: projected_on(SE, np.array([[0.5]]), 0), "n_features must be .* got 0"),
        (lambda: exact_on(SE, np.zeros(3)), r"shape \(n, d\)"),
        (lambda: exact_on(SE, np.array([[np.nan]])), "finite, got nan"),
        (lambda: feature_map(SE, 2, 64)(np.zeros((4, 3))), r"shape \(..., 2\)"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(build, told):
    with pytest.raises(ValueError, match=told):
        build()


@pytest.mark.parametrize("tolerance", [1e-3, 1e-8, 0.0])
def test_triangular_features_miss_no_more_than_the_tolerance(tolerance):
    points = np.random.default_rng(1).uniform(-1, 1, (60, 2))
    points[7] = points[3]  # a point that is there twice makes the kernel's matrix singular
    matrix = gram(SE, points, points)
    features, error = triangular_features(matrix, tolerance)
    left = matrix - features @ features.T
    assert error <= tolerance
    assert np.abs(left).max() <= error + 1e-14
    assert np.linalg.eigvalsh(left).min() > -1e-13
    assert features.shape[1] <= 59
    if tolerance == 1e-3:
        assert features.shape[1] < 25
        f = matrix @ np.random.default_rng(2).standard_normal(60)
        theta = np.linalg.lstsq(features, f, rcond=None)[0]
        assert np.abs(features @ theta - f).max() <= math.sqrt(f @ np.linalg.pinv(matrix, 1e-10) @ f * error) * 1.01
