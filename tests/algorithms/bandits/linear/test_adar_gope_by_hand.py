"""AdaR-GOPE against sums done by hand, the printed formulas, and its own widths."""

from __future__ import annotations

import math

import kernel_references
import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from hypothesis import given, settings
from hypothesis import strategies as st

from bandana.algorithms.bandits.linear import phases_numba
from bandana.algorithms.bandits.linear.phased_elimination import adar_gope, adar_gope_pure, gope, theorem_8_bound
from bandana.algorithms.environments.linear import LinearArms, random_arms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog, RegretCurve, log_grid
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

UNIT, SIGNED = Interval(0.0, 1.0), Interval(-1.0, 1.0)
seeds = st.integers(0, 10**6)


def arms_of(seed, n_arms, dimension):
    return random_arms(n_arms, dimension, np.random.SeedSequence(seed))


def built(name, features, reward_range=UNIT, *, alpha=2.0, epsilon=1.0, delta=0.1, beta_scale=1.0, origin=None):
    if name == "gope":
        return gope(features, reward_range, delta, beta_scale, origin)
    if name == "pure":
        return adar_gope_pure(features, epsilon, reward_range, delta, beta_scale, origin)
    return adar_gope(features, alpha, epsilon, reward_range, name, delta, beta_scale, origin)


def after_one_phase(algorithm, table, ledger):
    """The released state when phase 1 is complete, and its length."""
    length = int(algorithm.plan(1, np.ones(algorithm.n_actions, dtype=bool)).counts.sum())
    return run(algorithm, table, ledger, horizon=length)[1], length


class TestTwoArmsOnALine:
    """d = 1, arms 1 and -1/2, rewards in [-1, 1]. The design is on arm 0 alone; its leverage is 1, arm 1's is 1/4.

    alpha = 2, epsilon = 4: s = 2 sqrt(2 / 8) = 1. delta = 0.5, beta_1 = 1/2.
    """

    FEATURES = ((1.0,), (-0.5,))

    def test_printed(self):
        """Eq. (8): log(4 2 2 / .5) = log 32 = 3.466; 8 / .25 3.466 + 2 / .5 sqrt(2 2 / 4 1 2 3.466) = 110.90 + 10.53 -> 122.

        Rewards 1/2 of which the sum is 61, noise 1: theta = 62 / 122. The estimates are .508 and -.254, apart by less than
        2 beta = 1, so both stay. In phase 2 they play 1 / 16 for beta: both stay if apart by at most 1/2 -> arm 1 goes.
        """
        algorithm = adar_gope(self.FEATURES, 2.0, 4.0, SIGNED, "printed", 0.5)
        table = RewardTable(np.full((2000, 2), 0.5), SIGNED)
        ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
        released, length = after_one_phase(algorithm, table, ledger)
        assert length == 122
        assert released.estimate[0] == pytest.approx([62 / 122, -31 / 122], rel=1e-9)
        assert released.active.tolist() == [[True, True]]
        assert released.phase.tolist() == [2]
        assert ledger.transcript[0].value.tolist() == [[61.0]]
        # 8 16 log(4 2 6 / .5) + 2 4 sqrt(2 log 96) = 584.24 + 24.17 -> 609
        assert released.counts.tolist() == [[609]]
        log = ActionLog()
        _, released = run(algorithm, table, LiveLedger(1, ConstantNoise(1.0)), observers=[log])
        assert [int(n[0]) for n in log.n_records] == [122, 609, 1269]
        assert released.active.tolist() == [[True, False]]
        assert released.estimate[0] == pytest.approx([305.5 / 609, -305.5 / 1218], rel=1e-9)

    def test_tight(self):
        """z^2 = 2 log(2 2 2 / .5) = 2 log 16 = 5.545: z^2 (n + 1) = n^2 / 4 at n = 23.14 -> 24.

        After 24 rounds h = 1/24, so y = sum / sqrt(24) / sqrt(h) = sum, noise 1: estimate 13 / 24. Width
        sqrt(5.545 / 24 (1 + 1 / 24)) = .4906 for arm 0 and half of it for arm 1: .542 - .491 < -.271 + .245? No: arm 1 goes.
        """
        algorithm = adar_gope(self.FEATURES, 2.0, 4.0, SIGNED, "tight", 0.5)
        table = RewardTable(np.full((100, 2), 0.5), SIGNED)
        ledger = LiveLedger(1, ConstantNoise(1.0), keeps_transcript=True)
        released, length = after_one_phase(algorithm, table, ledger)
        assert length == 24
        assert ledger.transcript[0].value[0, 0] == pytest.approx(12.0, rel=1e-11)
        assert released.estimate[0] == pytest.approx([13 / 24, -13 / 48], rel=1e-9)
        width = math.sqrt(2 * math.log(16) / 24 * (1 + 1 / 24))
        plan = algorithm.plan(1, np.array([True, True]))
        assert plan.width == pytest.approx([width, width / 2], rel=1e-9)
        assert released.active.tolist() == [[True, False]]
        assert released.counts[0, 0] > 10**15, "a single arm is played to the end"

    def test_pure(self):
        """Laplace of scale 2 / epsilon = 1/2 on the sum; the width is the best of Chernoff's bounds on a grid."""
        algorithm = adar_gope_pure(self.FEATURES, 4.0, SIGNED, 0.5)
        table = RewardTable(np.full((100, 2), 0.5), SIGNED)
        ledger = LiveLedger(1, ConstantNoise(2.0), keeps_transcript=True)
        released, length = after_one_phase(algorithm, table, ledger)
        assert ledger.transcript[0].output[0, 0] == pytest.approx(length / 2 + 1.0)
        assert released.estimate[0, 0] == pytest.approx(0.5 + 1 / length)
        widths = [
            kernel_references.laplace_width_reference(1 / n, np.array([0.5 / n]), math.log(16)) for n in (length - 1, length)
        ]
        assert widths[1] <= 0.5 < widths[0], "one round less would not do"
        assert algorithm.plan(1, np.array([True, True])).width[0] == pytest.approx(widths[1], rel=1e-6)

    def test_the_twin(self):
        """Without noise z^2 / n <= 1/4 at n = 22.18 -> 23."""
        table = RewardTable(np.full((100, 2), 0.5), SIGNED)
        released, length = after_one_phase(gope(self.FEATURES, SIGNED, 0.5), table, LiveLedger(1, ConstantNoise()))
        assert length == 23
        assert released.estimate[0] == pytest.approx([0.5, -0.25])


@pytest.mark.parametrize("dimension", [2, 3, 4])
def test_equation_8_on_basis_arms(dimension):
    """Basis arms, pi = 1/d: the number of rounds of each arm is the printed formula, in units of half the width."""
    alpha, epsilon, delta = 3.0, 0.7, 0.05
    for reward_range in (SIGNED, UNIT, Interval(-3.0, 1.0)):
        algorithm = adar_gope(np.eye(dimension), alpha, epsilon, reward_range, "printed", delta)
        for phase in (1, 2, 3):
            beta, log_term = 2.0**-phase, math.log(4 * dimension * phase * (phase + 1) / delta)
            printed = 8 / beta**2 * log_term + 2 / beta * math.sqrt(
                2 * alpha / epsilon * dimension * (dimension + 1) * log_term
            )
            plan = algorithm.plan(phase, np.ones(dimension, dtype=bool))
            assert sorted(plan.slots[plan.counts > 0].tolist()) == list(range(dimension))
            assert plan.counts[:dimension].tolist() == [math.ceil(printed * (1 + 1e-12))] * dimension
            assert plan.width == pytest.approx(np.full(dimension, beta * reward_range.width / 2))


@given(
    seeds, st.integers(1, 5), st.integers(0, 15), st.integers(1, 4), st.sampled_from(["printed", "tight", "pure", "gope"])
)
@settings(max_examples=60)
def test_every_phase_keeps_what_it_promises(seed, dimension, more, phase, name):
    """The exact width is at most beta_l for all active arms; what is released moves by at most one unit a unit of reward."""
    features = arms_of(seed, max(dimension + more, 2), dimension)
    algorithm = built(name, features, epsilon=0.3)
    active = np.random.default_rng(seed).random(len(features)) < 0.7
    active[:2] = True
    plan = algorithm.plan(phase, active)
    played, counts = plan.slots[plan.counts > 0], plan.counts[plan.counts > 0]
    m = len(played)
    assert active[played].all()
    assert len(set(played.tolist())) == m <= dimension * (dimension + 1) // 2
    norm = np.abs(plan.encode).sum(axis=1) if name == "pure" else np.linalg.norm(plan.encode, axis=1)
    assert norm.max() <= 1.0
    assert norm[0] == pytest.approx(1.0, rel=1e-8), "the first reward of a phase costs all that is paid for"
    # The estimate is unbiased on every active arm, and its law is that of the widths.
    linear = plan.predict @ plan.encode[:m].T
    assert linear @ (counts[:, None] * features[played]) == pytest.approx(active[:, None] * features, abs=1e-7)
    proxy = (linear**2) @ counts / 4
    scale = algorithm.noise.mechanism.scale
    target = 0.5 * 2.0**-phase
    assert plan.width.max() <= target * (1 + 1e-9)
    log_term = math.log(2 * active.sum() * phase * (phase + 1) / 0.1)
    if name == "pure":
        exact = np.array(
            [
                kernel_references.laplace_width_reference(v, scale * row, log_term, 4001) if v > 0 else 0.0
                for v, row in zip(proxy, plan.predict, strict=True)
            ]
        )
        assert plan.width == pytest.approx(exact, rel=1e-4)
    else:
        exact = np.sqrt(2 * log_term * (proxy + scale**2 * (plan.predict**2).sum(axis=1)))
        if name == "printed":
            assert (exact <= plan.width * active + 1e-12).all(), "beta_l covers the exact width"
        else:
            assert plan.width == pytest.approx(exact, rel=1e-6)


@given(seeds, st.integers(2, 5), st.integers(0, 15))
@settings(max_examples=25)
def test_noise_on_the_vector_is_never_worse_than_noise_on_the_sums(seed, dimension, more):
    """Same design, same privacy, same number of rounds: the largest noise variance over arms."""
    features = arms_of(seed, dimension + more, dimension)
    tight = built("tight", features)
    plan = tight.plan(6, np.ones(len(features), dtype=bool))
    played, counts = plan.slots[plan.counts > 0], plan.counts[plan.counts > 0]
    inverse = np.linalg.inv(features[played].T @ (counts[:, None] * features[played]))
    on_sums = ((features @ inverse @ features[played].T) ** 2).sum(axis=1)
    # Beyond equality by no more than the gap of the design and what rounding counts up changes.
    assert (plan.predict**2).sum(axis=1).max() <= on_sums.max() * 1.01


def test_tight_phases_are_shorter():
    ratio = {}
    for dimension in (2, 5, 8):
        features = arms_of(1, 50, dimension)
        printed, tight = (built(name, features, epsilon=0.1) for name in ("printed", "tight"))
        active = np.ones(50, dtype=bool)
        ratio[dimension] = [
            float(printed.plan(phase, active).counts.sum() / tight.plan(phase, active).counts.sum()) for phase in (1, 6)
        ]
    # Without noise the ratio tends to 4 log(4 K ...) / log(2 K ...); noise adds to it, more in high dimension.
    assert all(value[1] > 4 for value in ratio.values())
    assert ratio[8][0] > ratio[5][0] > ratio[2][0] > 4


@pytest.mark.parametrize("name", ["printed", "tight", "pure", "gope"])
def test_arms_that_span_less_than_the_space(name):
    """Active arms 0, 1, 2 lie in a plane of three dimensions: what is learned is that of the plane, and is exact."""
    features = np.array([[0.8, 0.0, 0.1], [0.0, 0.8, 0.1], [0.4, 0.4, 0.1], [0.0, 0.0, 1.0]])
    algorithm = built(name, features, beta_scale=0.3)
    plan = algorithm.plan(2, np.array([True, True, True, False]))
    played, counts = plan.slots[plan.counts > 0], plan.counts[plan.counts > 0]
    means = 0.5 + features @ [0.2, 0.3, 0.1]
    sums = np.zeros(algorithm.n_slots)
    sums[: len(played)] = counts * means[played]
    found = plan.predict @ (sums @ plan.encode - plan.shift) + 0.5
    assert found[:3] == pytest.approx(means[:3], rel=1e-9)
    assert plan.predict[3].tolist() == [0.0] * algorithm.n_outputs


def test_the_origin_is_the_mean_reward_of_the_zero_vector():
    """Means <theta, a> in [0, 1] without an offset need origin 0; the middle of the range would be wrong for them."""
    features = np.array([[1.0, 0.0], [0.6, 0.8]])
    means = features @ [0.3, 0.5]
    table = RewardTable(np.tile(means, (4000, 1)), UNIT)
    for origin, expected in ((0.0, means), (None, means - 0.5)):
        algorithm = gope(features, UNIT, 0.1, origin=origin)
        released, _ = after_one_phase(algorithm, table, LiveLedger(1, ConstantNoise()))
        assert released.estimate[0] == pytest.approx(expected - (algorithm.origin if origin is not None else 0), abs=1e-6)


@pytest.mark.parametrize(("name", "noisy"), [("printed", True), ("tight", True), ("pure", True), ("gope", False)])
def test_widths_cover(name, noisy):
    """Some estimate of phase 1 misses by its width with probability at most delta / 2 = 0.1.

    20000 runs on Bernoulli rewards of mean near 1/2: the rate is below 0.1 + 5 standard errors, false alarm 3e-7; that it is
    not 0 shows that the widths are not idle (the probability of no miss at all is below 1e-100 at the observed rates).
    """
    features = arms_of(3, 6, 2)
    algorithm = built(name, features, delta=0.2, epsilon=0.05 if noisy else 1.0)
    n_reps = 20_000
    environment = LinearArms(features, [0.05, -0.02], 10**7, np.random.SeedSequence(1))
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))
    released, _ = after_one_phase(algorithm, environment, ledger)
    plan = algorithm.plan(1, np.ones(6, dtype=bool))
    missed = (np.abs(released.estimate - (environment.means - 0.5)) > plan.width).any(axis=1).mean()
    assert missed < 0.1 + 5 * math.sqrt(0.09 / n_reps)
    if name in ("tight", "gope"):
        assert missed > 0.001


@pytest.mark.parametrize("name", ["printed", "tight", "pure"])
def test_noise_of_an_estimate_has_the_variance_of_its_width(name):
    """Rewards without chance: what varies is the noise. 20000 runs, 8 standard errors of a variance, false alarm 1e-14."""
    features = arms_of(4, 7, 3)
    algorithm = built(name, features, epsilon=0.05)
    n_reps = 20_000
    table = RewardTable(np.full((10**5, 7), 0.5), UNIT)
    released, _ = after_one_phase(algorithm, table, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(7))))
    plan = algorithm.plan(1, np.ones(7, dtype=bool))
    expected = algorithm.noise.mechanism.deviation**2 * (plan.predict**2).sum(axis=1)
    # The kurtosis of a sum of Laplace variables is at most 6.
    assert released.estimate.var(axis=0) == pytest.approx(expected, rel=8 * math.sqrt(5 / n_reps))
    assert np.abs(released.estimate.mean(axis=0)).max() < 8 * math.sqrt(expected.max() / n_reps)


@pytest.mark.parametrize("name", ["printed", "tight", "pure", "gope"])
def test_regret_is_below_its_bound_and_sublinear(name):
    features = arms_of(5, 10, 3)
    horizon, n_reps = 10**6, 20
    environment = LinearArms(features, 0.9 * features[0], horizon, np.random.SeedSequence(1))
    grid = log_grid(horizon, 13)
    curve = RegretCurve(environment.means, grid, n_reps)
    algorithm = built(name, features, delta=1e-3)
    _, released = run(algorithm, environment, OwnNoiseLedger(list(range(n_reps))), observers=[curve])
    assert released.active[:, 0].all(), "the best arm is never dropped"
    assert (curve.curve <= algorithm.regret_bound(grid)).all()
    # From 1e5 to 1e6 rounds regret grows by far less than ten times.
    assert curve.curve[:, -1].mean() < 3 * curve.curve[:, np.searchsorted(grid, 10**5)].mean()
    assert curve.curve[:, -1].mean() < 0.02 * horizon


def test_the_formula_of_theorem_8_bounds_the_sum_over_phases():
    horizon = np.geomspace(1, 1e12, 200)
    for dimension, epsilon, delta in ((2, 1.0, 0.1), (5, 0.01, 1e-4), (10, 100.0, 1e-6)):
        algorithm = adar_gope(arms_of(1, 60, dimension), 2.0, epsilon, UNIT, "printed", delta)
        formula = theorem_8_bound(horizon, 60, dimension, 2.0, epsilon, delta, UNIT)
        total = algorithm.regret_bound(horizon)
        assert (total <= formula * (1 + 1e-9)).all()
        assert (total <= horizon).all()
        assert (np.diff(total) >= 0).all()
        # sqrt(T log log T): from 1e10 to 1e12 rounds a factor of ten and little more.
        assert 9 < formula[-1] / formula[np.searchsorted(horizon, 1e10)] < 13
        tight = adar_gope(arms_of(1, 60, dimension), 2.0, epsilon, UNIT, "tight", delta).regret_bound(horizon)
        assert (tight <= total * (1 + 1e-9)).all()
    with pytest.raises(ValueError, match=r"a beta_scale of at least 1, got 0\.5"):
        gope(np.eye(2), UNIT, 0.1, 0.5).regret_bound(10)


@given(seeds, st.integers(1, 12), st.integers(1, 5))
def test_the_playing_kernel(seed, n_reps, n_slots):
    """Beside plain Python: some replicates are done, some slots end, some phases do."""
    rng = np.random.default_rng(seed)
    counts = np.sort(rng.integers(0, 4, (n_reps, n_slots)), axis=1)[:, ::-1].copy()
    counts[:, 0] += 1
    slot = np.array([rng.integers(0, np.count_nonzero(row)) for row in counts])
    left = np.array([rng.integers(1, row[s] + 1) for row, s in zip(counts, slot, strict=True)])
    n_records, rewards = np.array([rng.integers(0, most + 1) for most in left]), rng.random(n_reps)
    sums, stop = rng.random((n_reps, n_slots)), rng.integers(0, 9, n_reps)
    expected = [part.copy() for part in (sums, stop, slot, left)]
    done = []
    for r in range(n_reps):
        if n_records[r]:
            expected[0][r, slot[r]] += rewards[r]
            expected[1][r] += n_records[r]
            expected[3][r] -= n_records[r]
            if expected[3][r] == 0:
                expected[2][r] += 1
                if expected[2][r] < n_slots and counts[r, expected[2][r]]:
                    expected[3][r] = counts[r, expected[2][r]]
                else:
                    done.append(r)
    ended = np.empty(n_reps, dtype=np.int64)
    n_ended = phases_numba.advance(sums, stop, counts, slot, left, rewards, n_records, ended)
    assert ended[:n_ended].tolist() == done
    for mine, theirs in zip((sums, stop, slot, left), expected, strict=True):
        assert np.array_equal(mine, theirs)


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
def test_the_encoding_kernel(seed, n_rows, n_slots, n_outputs):
    rng = np.random.default_rng(seed)
    sums, matrix = rng.normal(size=(n_rows, n_slots)), rng.normal(size=(n_slots, n_outputs))
    rows = np.flatnonzero(rng.random(n_rows) < 0.6)
    out = np.full((n_rows, n_outputs), 7.0)
    phases_numba.encode(sums, rows, matrix, out)
    expected = np.full((n_rows, n_outputs), 7.0)
    expected[rows] = sums[rows] @ matrix
    assert out == pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(seeds, st.integers(1, 12), st.integers(2, 8), st.integers(1, 4))
def test_the_elimination_kernel(seed, n_rows, n_arms, n_outputs):
    rng = np.random.default_rng(seed)
    # Few distinct values, so that ends of intervals meet.
    noisy, shift = rng.integers(-2, 3, (n_rows, n_outputs)).astype(float), rng.integers(-1, 2, n_outputs).astype(float)
    predict, width = rng.integers(-1, 2, (n_arms, n_outputs)) / 2, rng.integers(0, 4, n_arms) / 2
    active = rng.random((2 * n_rows, n_arms)) < 0.6
    active[:, 0] = True
    reps = np.sort(rng.permutation(2 * n_rows)[:n_rows])
    estimate = np.full((2 * n_rows, n_arms), np.nan)
    found, stays = kernel_references.eliminate_reference(noisy, shift, predict, width, active[reps])
    expected = active.copy()
    expected[reps] = stays
    was = active.copy()
    phases_numba.eliminate(noisy, np.arange(n_rows), reps, shift, predict, width, active, estimate)
    assert np.array_equal(active, expected)
    assert active.any(axis=1).all(), "somebody stays"
    assert np.array_equal(estimate[reps][was[reps]], found[was[reps]])


@given(st.floats(1e-6, 1e3), st.lists(st.floats(-50.0, 50.0), min_size=1, max_size=6), st.floats(0.5, 40.0))
def test_the_laplace_width_kernel(proxy, scales, log_term):
    scales = np.array(scales)
    found = phases_numba.laplace_width(proxy, scales, log_term)
    assert found == pytest.approx(kernel_references.laplace_width_reference(proxy, scales, log_term), rel=1e-3)
    assert found >= math.sqrt(2 * proxy * log_term) * (1 - 1e-9)
    n = phases_numba.laplace_samples(proxy, scales, log_term, 0.25)
    assert phases_numba.laplace_width(proxy / n, scales / n, log_term) == pytest.approx(0.25, rel=1e-5)


def test_the_laplace_width_bounds_the_tail():
    """Three Laplace variables and a normal one, 4e5 draws: misses of probability 1e-2 and 1e-3, 6 standard errors."""
    rng = np.random.default_rng(0)
    scales = np.array([1.0, -0.5, 0.2])
    drawn = rng.laplace(size=(400_000, 3)) @ scales + 0.7 * rng.standard_normal(400_000)
    for p in (1e-2, 1e-3):
        missed = (drawn > phases_numba.laplace_width(0.49, scales, math.log(1 / p))).mean()
        assert p / 50 < missed < p + 6 * math.sqrt(p / len(drawn))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"features": [[1.0, 0.0], [0.5, 0.0]]}, "the 2 arms span 1 of 2 dimensions; leave out features"),
        ({"features": [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]}, "the 2 arms span 2 of 3 dimensions"),
        ({"features": [[1.0, 0.0], [0.9, 0.9]]}, r"norm at most 1; arm 1 has 1\.27.*divide all features"),
        ({"features": [[1.0, float("nan")], [0.0, 1.0]]}, "features must be finite; arm 0 has nan at index 1"),
        ({"features": [[1.0], [float("-inf")]]}, "features must be finite; arm 1 has -inf at index 0"),
        ({"features": [[1.0]]}, r"at least 2 arms, got shape \(1, 1\)"),
        ({"features": [1.0, 0.5]}, r"got shape \(2,\)"),
        ({"features": [[1.0, 0.0], [1.0]]}, "features must be numbers, one vector of the same length an arm"),
        ({"features": [["a"], ["b"]]}, "features must be numbers"),
        ({"alpha": 1.0}, r"alpha must be a finite Renyi order above 1, got 1\.0"),
        ({"epsilon": 0.0}, r"epsilon must be .* got 0\.0"),
        ({"delta": 1.0}, r"delta must lie strictly between 0 and 1, got 1\.0"),
        ({"beta_scale": -1.0}, r"beta_scale must be .* got -1\.0"),
        ({"origin": float("nan")}, "origin must be a finite number, got nan"),
        ({"calibration": "loose"}, "calibration must be 'printed' or 'tight', got 'loose'"),
    ],
)
def test_refusals(change, message):
    arguments = {"features": np.eye(2), "alpha": 2.0, "epsilon": 1.0, "calibration": "tight", "delta": 0.1}
    with pytest.raises(ValueError, match=message):
        adar_gope(reward_range=UNIT, **{**arguments, **change})
