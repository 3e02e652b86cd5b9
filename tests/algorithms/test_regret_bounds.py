"""Bounds on the regret that the catalog states: by hand, above real runs, and none where nothing is proved."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from kernel_references import laplace_sum_quantile_reference
from pools import KERNEL, SYMMETRIC, pool_of

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCBSettings
from bandana.algorithms.bandits.contextual.oful import adar_oful, oful
from bandana.algorithms.bandits.finite_arm.episodic_ucb import adap_klucb, adap_ucb, ucb
from bandana.algorithms.bandits.finite_arm.regret_bounds import (
    corollary_6_bound,
    elimination_bound,
    episodic_bound,
    largest_regret,
    theorem_5_bound,
    tree_bound,
    ucb_bound,
)
from bandana.algorithms.bandits.finite_arm.successive_elimination import dp_se, successive_elimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import dp_ucb, tree_ucb
from bandana.algorithms.bandits.kernel.gp_ucb import GPUCBSettings
from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.kernel_functions import PooledFunction, random_function
from bandana.algorithms.environments.linear import LinearArms, random_arms
from bandana.algorithms.environments.mdp_instances import patients
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.environments.sphere import LinearLink, LogisticLink, SphereContexts
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.observers import ContextualRegretCurve, EpisodicRegretCurve, RegretCurve, log_grid
from bandana.algorithms.problem import ARMS, EPISODIC, Problem
from bandana.algorithms.rkhs.features import feature_map
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.run import run
from bandana.privacy_core import ZCDP, ApproxDP, Interval, LiveLedger, PureDP, RenyiDP, ReproducibleNoise, TrustModel

UNIT = Interval(0.0, 1.0)
WIDE = Interval(-3.0, 1.0)
LEVELS = {"renyi": RenyiDP(2.0, 1.0), "pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-5), "zcdp": ZCDP(0.5)}
HORIZON, SHORT, N_REPS = 5000, 300, 32
PATIENTS = patients(3)
FEATURES = random_arms(6, 2, np.random.SeedSequence(3))
UNPROVED = {
    ("rl/mixture", "pure", "printed"),  # sums of Laplace noise
    ("bandits/capri", "approximate", "printed"),  # widths as printed, from a number of rounds on that is out of reach
    ("bandits/capri", "approximate", "printed-lemma-6-6"),
}
"""Family, guarantee and calibration whose printed bounds are not proved."""
UNPROVED_ENTRIES = {("ucb-vi joint pure", "as-known")}
"""Entry and calibration of which that is so, while another trust model's is proved: here the bonus of PUCB."""
BOUNDED = [
    (entry, calibration)
    for entry in CATALOG
    if entry.bound is not None
    for calibration in entry.calibrations or (None,)
    if (entry.family, entry.guarantee, calibration) not in UNPROVED and (entry.label, calibration) not in UNPROVED_ENTRIES
]


def settings_of(entry, calibration, **parameters):
    kind = entry.plays_on[0]
    problem = {
        "finite": Problem(3, UNIT, HORIZON),
        "linear": Problem(6, UNIT, HORIZON, tuple(map(tuple, FEATURES.tolist()))),
        "contextual": Problem(4, UNIT, HORIZON, dimension=2),
        "kernel": Problem(3, SYMMETRIC, SHORT, dimension=2, kernel=KERNEL),
        "pooled": Problem(3, SYMMETRIC, SHORT, dimension=2, kernel=KERNEL, pool=pool_of()),
        "linear-mixture": Problem(3, UNIT, SHORT, model=PATIENTS.model),
        "linear-mdp": Problem(2, UNIT, SHORT, model=LinearModel(np.eye(4).reshape(2, 2, 4), 2)),
    }[kind]
    if entry.name == "logistic-ucb":
        problem = LogisticProblem(4, UNIT, HORIZON, dimension=2, logit_bound=2.0)
    known = set(entry.parameters)
    if "diversity" in known:  # true of the contexts below
        parameters = {"diversity": 0.1, **parameters}
    if kind == "linear-mdp" and "batches" in known:  # of other batches nothing is proved
        parameters = {"batches": "static", **parameters}
    if kind == "kernel":
        parameters = {"n_features": 9, **parameters}
    return entry.settings(problem, calibration, LEVELS.get(entry.guarantee), **parameters)


def environment_of(settings):
    seed, problem = np.random.SeedSequence(1), settings.problem
    if problem.kind == "linear-mdp":
        return FiniteMDP(np.tile([0.5, 0.5], (2, 2, 2, 1)), [[[0.8, 0.5], [0.2, 0.6]]] * 2, SHORT, seed)
    if problem.kind == "linear-mixture":
        return PATIENTS.stream(SHORT, seed)
    if problem.kind in ("kernel", "pooled"):
        pool = pool_of()
        values = random_function(KERNEL, pool.points[0], np.random.SeedSequence(1), 1.0)(pool.points)
        return PooledFunction(pool, values, SHORT, seed, SYMMETRIC, law="two-point")
    if isinstance(problem, LogisticProblem):
        return SphereContexts([1.2, -1.6], problem.n_actions, HORIZON, seed, LogisticLink())
    if problem.kind == "contextual":
        return SphereContexts([0.3, 0.3], problem.n_actions, HORIZON, seed, LinearLink(UNIT))
    if problem.kind == "linear":
        return LinearArms(FEATURES, 0.9 * FEATURES[0], HORIZON, seed)
    return BernoulliArms([0.8, 0.5, 0.8], HORIZON, seed)


PLAYED = [
    # In `make test` the twins' runs, and those of the tight noise where an entry has it.
    pytest.param(
        entry, calibration, id=f"{entry.label}-{calibration}",
        marks=pytest.mark.nightly if "tight" in entry.calibrations and calibration != "tight" else (),
    )
    for entry, calibration in BOUNDED
]  # fmt: skip


@pytest.mark.parametrize(("entry", "calibration"), PLAYED)
def test_the_mean_regret_of_real_runs_is_below_its_bound(entry, calibration):
    settings = settings_of(entry, calibration)
    environment, grid = environment_of(settings), log_grid(settings.problem.horizon, 20)
    if settings.problem.kind not in (*ARMS, *EPISODIC):
        curve, means = ContextualRegretCurve(environment, grid, N_REPS), None
    elif settings.problem.kind in EPISODIC:
        curve, means = EpisodicRegretCurve(environment.best.gaps, grid, N_REPS), None
    else:
        curve, means = RegretCurve(environment.means, grid, N_REPS), environment.means
    ledger = LiveLedger(N_REPS, ReproducibleNoise(np.random.SeedSequence(2)))
    run(entry.build(settings), environment, ledger, observers=[curve], coins=Coins(np.random.SeedSequence(3), N_REPS))
    bound = entry.bound(settings, means, grid)
    assert bound.values.shape == grid.shape
    assert (curve.curve.mean(axis=0) <= bound.values * (1 + 1e-9)).all()
    assert (np.diff(bound.values) >= -1e-9).all()
    assert "\n" not in bound.text


def test_who_has_a_bound():
    """All but Thompson sampling, Gaussian indices, policies on regressions, and tests for the best arm."""
    without = {entry.label for entry in CATALOG if entry.name == "dp-thompson" or entry.family == "bandits/best_arm"}
    without |= {"dp-klucb renyi", "dp-imed renyi"}
    without |= {entry.label for entry in CATALOG if entry.name in ("squarecb", "fastcb", "bpo", "vpo")}
    assert {entry.label for entry, _ in BOUNDED} == {entry.label for entry in CATALOG} - without


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("adar-ucb", {"beta": 3.0}),
        ("ucb", {"beta": 2.0}),
        ("dp-ucb", {"beta": 2.0}),
        ("gope", {"beta_scale": 0.99}),
        ("adar-gope", {"beta_scale": 0.99}),
        ("adar-gope pure", {"beta_scale": 0.5}),
        ("oful", {"beta_scale": 0.99}),
        ("linucb non-private", {"beta_scale": 0.99}),
        ("gp-ucb local", {"beta_scale": 0.99}),
        ("gp-ucb-pool joint", {"beta_scale": 0.99}),
        ("ucrl-vtr joint", {"beta_scale": 0.99}),
        ("ucrl-vtr-plus non-private", {"beta_scale": 0.99}),
        ("linucb joint", {"beta_scale": 0.99}),
        ("lsvi-ucb non-private", {"batches": "geometric"}),
        ("lsvi-ucb joint", {"beta_scale": 0.99}),
        ("linucb local", {"beta_scale": 0.99}),
        ("logistic-ucb joint", {"beta_scale": 0.99}),
        ("logistic-ucb joint", {"floor": 1.0}),
        ("adar-oful", {"beta_scale": 0.5}),
        ("capri joint", {"error_scale": 0.25}),
        ("capri local", {"beta_scale": 0.99}),
    ],
)
def test_there_is_no_bound_where_nothing_is_proved(name, parameters):
    entry = find(name)
    for calibration in entry.calibrations or (None,):
        settings = settings_of(entry, calibration, **parameters)
        assert entry.bound(settings, np.array([0.8, 0.5, 0.8]), np.array([10, 100])) is None


@pytest.mark.parametrize(
    "name",
    [
        entry.label
        for entry in CATALOG
        if entry.family == "bandits/finite_arm" and entry.bound and entry.name not in ("adar-ucb", "adac-ucb", "dp-exp3")
    ],
)
def test_a_bound_in_gaps_needs_them(name):
    entry = find(name)
    settings = settings_of(entry, (entry.calibrations or (None,))[-1])
    assert entry.bound(settings, None, np.array([10])) is None


def test_corollary_6_by_hand():
    """At T = e^16, K = 3, beta = 4, alpha / epsilon = 4: sqrt(32 4 2 T 16) + 2 (8 sqrt(4 4 16) + 8); at most T."""
    horizon = np.exp([4.0, 16.0])
    found = corollary_6_bound(horizon, 3, 2.0, 0.5, 4.0, UNIT)
    assert found[0] == horizon[0]
    assert found[1] == pytest.approx(math.exp(8) * math.sqrt(32 * 4 * 2 * 16) + 2 * (8 * math.sqrt(4 * 4 * 16) + 8))
    assert corollary_6_bound(horizon, 3, 2.0, 0.5, 4.0, WIDE) == pytest.approx(4 * found)
    with pytest.raises(ValueError, match="beta above 3"):
        corollary_6_bound(10, 2, 2.0, 0.5, 3, UNIT)


@pytest.mark.parametrize("beta", [3.1, 5.0])
def test_corollary_6_is_above_theorem_5_at_every_gap(beta):
    rounds = np.geomspace(10, 1e8, 30)
    largest = np.max(
        [theorem_5_bound(rounds, [0.0, gap, gap], 2.0, 0.1, beta, UNIT) for gap in np.geomspace(1e-6, 1, 200)], axis=0
    )
    assert (largest <= corollary_6_bound(rounds, 3, 2.0, 0.1, beta, UNIT)).all()


def test_a_bound_for_all_means_needs_none_and_helps_where_gaps_are_small():
    entry, grid = find("adar-ucb"), np.array([1000, 10**6])
    settings = settings_of(entry, "tight", beta=4.0)
    of_all = entry.bound(settings, None, grid)
    assert of_all.values == pytest.approx(corollary_6_bound(grid, 3, 2.0, 1.0, 4.0, UNIT))
    assert "whatever the means" in of_all.text
    close = entry.bound(settings, np.array([0.5, 0.4999, 0.4999]), grid)
    assert (close.values <= of_all.values).all()
    assert entry.bound(settings, np.array([0.9, 0.1, 0.1]), grid).values[1] < of_all.values[1]


def test_theorem_5_by_hand():
    found = theorem_5_bound([1, 10**6], [0.5, 0.9, 0.7], 2.0, 0.5, 4.0, UNIT)
    log = math.log(10**6)
    assert found[1] == pytest.approx(sum(32 * log / gap + 8 * math.sqrt(16 * log) + 8 for gap in (0.4, 0.2)))
    assert found[0] == pytest.approx(0.4), "one round costs the largest gap at most"
    # A range that is four times as wide: gaps in its units, the bound in units of reward.
    scaled = theorem_5_bound(10**6, [-1.0, 0.6, -0.2], 2.0, 0.5, 4.0, WIDE)
    assert scaled == pytest.approx(4 * found[1])
    assert theorem_5_bound(100, [0.5, 0.5], 2.0, 0.5, 4.0, UNIT) == 0.0
    with pytest.raises(ValueError, match="a beta above 3, got 3"):
        theorem_5_bound(10, [0.5, 0.9], 2.0, 0.5, 3, UNIT)


def test_the_bound_of_ucb1_is_that_of_its_paper_or_less():
    gap, horizon = 0.3, 10**5
    found = float(ucb_bound(horizon, [0.5, 0.5 + gap], 4.0, UNIT))
    assert found == pytest.approx(8 * math.log(horizon) / gap + 4 * gap)
    assert found < 8 * math.log(horizon) / gap + (1 + math.pi**2 / 3) * gap
    with pytest.raises(ValueError, match="a beta above 2, got 2"):
        ucb_bound(10, [0.5, 0.9], 2, UNIT)


def test_the_worst_arms_come_first():
    gaps, pulls = np.array([0.1, 0.5, 0.3]), np.array([4.0, 2.0, 5.0])
    for rounds in range(14):
        most = max((0.1 * a + 0.5 * b + 0.3 * c) for a, b, c in product(range(5), range(3), range(6)) if a + b + c <= rounds)
        assert float(largest_regret(np.array(float(rounds)), gaps, pulls)) == pytest.approx(most)
    several = largest_regret(np.array([1.0, 3.0]), gaps, np.array([[4.0, 0.5, 5.0], [4.0, 2.0, 5.0]]))
    assert several == pytest.approx([0.5 * 0.5 + 0.5 * 0.3, 1.3])


def rare_pulls(horizon, n_arms, beta, misses):
    """Repeats the formula of the docstring, term by term."""
    total, k = 0.0, 0
    while 2**k + n_arms <= horizon:
        total += 2**k * misses * (2**k + n_arms) ** -beta
        total += 2**k * misses * sum((2**j + 2**k + n_arms - 1) ** -beta for j in range(60))
        k += 1
    return total


@pytest.mark.parametrize("horizon", [10, 1000, 10**7])
def test_the_bound_of_episodes_by_hand(horizon):
    gap, beta, log = 0.4, 4.0, math.log(horizon)
    # All episodes count: after k of them the variance proxy is 1 / (4 2^k).
    k = max([0, *(k + 1 for k in range(40) if 2 * math.sqrt(2 * beta * log / (4 * 2**k)) >= gap)])
    found = float(episodic_bound(ucb(2, beta, UNIT, doubling=True), horizon, [0.5, 0.9]))
    assert found == pytest.approx(gap * min(horizon, 2**k + rare_pulls(horizon, 2, beta, 1.0)))
    # The last episode alone counts, with the noise of 1 / epsilon on its sum; the two arms have one gap each.
    last = [(1, 1), *((2**k, 2 ** (k - 1)) for k in range(1, 40))]

    def width(n, more):
        return math.sqrt(beta * (log + more) / (2 * n)) + beta * log / 0.5 / n

    for algorithm, more in ((adap_ucb(3, 0.5, beta, UNIT, "printed"), math.log(2)), (adap_klucb(3, 0.5, beta, UNIT), 0.0)):
        pulls = [
            max([1, *(2 * pulled for pulled, n in last if 2 * width(n, more) >= gap)]) + rare_pulls(horizon, 3, beta, 1.5)
            for gap in (0.4, 0.2)
        ]
        first = min(horizon, pulls[0])
        expected = 0.4 * first + 0.2 * min(horizon - first, pulls[1])
        assert float(episodic_bound(algorithm, horizon, [0.5, 0.9, 0.7])) == pytest.approx(expected)
    with pytest.raises(ValueError, match="single rounds"):
        episodic_bound(ucb(2, beta, UNIT), horizon, [0.5, 0.9])


def test_a_bound_scales_with_the_range():
    wide = [-3 + 4 * mean for mean in (0.5, 0.9, 0.7)]
    for build, bound in (
        (lambda span: adap_ucb(3, 1.0, 3.1, span, "tight"), episodic_bound),
        (lambda span: dp_se(3, 1.0, 0.01, span), elimination_bound),
        (lambda span: dp_ucb(3, 1.0, 4.0, span, 1000), tree_bound),
    ):
        found = bound(build(UNIT), [1, 100, 1000], [0.5, 0.9, 0.7])
        assert found[0] == pytest.approx(0.4), "one round costs the largest gap at most"
        assert bound(build(WIDE), [1, 100, 1000], wide) == pytest.approx(4 * found)
        assert bound(build(UNIT), 100, [0.5, 0.5]) == 0.0


@pytest.mark.parametrize("epsilon", [None, 0.1])
def test_the_bound_of_elimination_by_hand(epsilon):
    failure, gap, noise = 0.01, 0.3, 0.0 if epsilon is None else 1 / epsilon
    algorithm = successive_elimination(2, failure, UNIT) if epsilon is None else dp_se(2, epsilon, failure, UNIT)
    pulls = epoch = 0
    reach = math.inf
    while reach >= gap:
        epoch += 1
        sampling, tail = math.log(16 * epoch**2 / failure), math.log(8 * epoch**2 / failure)
        n = math.floor(max(32 * sampling * 4**epoch, 8 * tail * noise * 2**epoch)) + 1
        pulls, reach = pulls + n, 4 * (math.sqrt(sampling / (2 * n)) + noise * tail / n)
    assert reach <= 2.0**-epoch, "an epoch settles the gaps that it is made for"
    for horizon in (10, pulls, 10 * pulls):
        assert float(elimination_bound(algorithm, horizon, [0.5, 0.8])) == pytest.approx(gap * min(horizon, pulls))


def test_the_bound_of_a_tree_by_hand():
    horizon, gap, beta = 10**6, 0.3, 4.0
    found = float(tree_bound(tree_ucb(2, beta, UNIT, horizon), horizon, [0.5, 0.8]))
    n = 2 * beta * math.log(horizon) / gap**2
    rare = 2 * (2**-2 / 2 + 2**-3 / 3)
    assert found == pytest.approx(gap * (n + 1 + rare))
    assert rare >= 2 * sum(t**-3 + t**-4 for t in range(3, 10**5))
    private = dp_ucb(2, 1.0, beta, UNIT, horizon)
    n = float(tree_bound(private, horizon, [0.5, 0.8])) / gap - 1 - rare
    noise = private.sums.mechanism.scale * laplace_sum_quantile_reference(19, beta * math.log(horizon))
    assert math.sqrt(2 * beta * math.log(horizon) / n) + 2 * noise / n == pytest.approx(gap)
    with pytest.raises(ValueError, match="a beta above 2, got 2"):
        tree_bound(dp_ucb(2, 1.0, 2.0, UNIT, 10), 10, [0.5, 0.8])


def test_the_bound_of_oful_by_hand():
    d, horizon, span = 3, 10_000, Interval(-1.0, 1.0)
    twin = oful(5, d, horizon, span, failure=0.01)
    growth = d * math.log1p(horizon / d)
    width = math.sqrt(2 * math.log(100) + growth) + 1
    expected = 2 * math.sqrt(2) * width * math.sqrt(horizon * growth / math.log(2))
    assert float(twin.regret_bound(horizon)) == pytest.approx(expected)
    private = adar_oful(5, d, horizon, 2.0, 1.0, span, "tight", failure=0.01)
    noise = 2 * math.sqrt(2) * max(private.noise_norms) * math.sqrt(horizon * growth / math.log(2))
    assert float(private.regret_bound(horizon)) == pytest.approx(min(2 * horizon, expected + noise))
    assert float(twin.regret_bound(1)) <= 2
    # At a scale of 2 the widths are twice as large.
    assert float(oful(5, d, horizon, span, failure=0.01, beta_scale=2.0).regret_bound(10**12)) == pytest.approx(
        2 * float(twin.regret_bound(10**12))
    )


def test_what_a_bound_says_of_the_regularizers_is_that_of_the_last_round():
    """Under local privacy they grow from round to round."""
    entry = find("linucb local")
    settings, grid = settings_of(entry, "tight"), np.array([10, 100, 1000])
    shifts = [entry.build(settings).shift(t) for t in grid.tolist()]
    assert len({f"{largest:.3g}" for _, _, largest in shifts}) == 3
    found = entry.bound(settings, None, grid)
    assert f"a_t = {shifts[-1][1]:.3g} and b_t = {shifts[-1][2]:.3g} at the end" in found.text


def test_the_bound_of_linucb_by_hand():
    d, horizon, span, failure = 3, 500, Interval(-1.0, 1.0), 0.01
    twin = LinUCBSettings(5, d, horizon, span, failure=failure).twin()
    growth = d * math.log1p(horizon / d)
    last = d * math.log((horizon - 1) / d + 1)
    width = math.sqrt(2 * math.log(200) + last) + 1
    cost = 2 * width * math.sqrt(horizon * growth / math.log(2))
    assert float(twin.regret_bound(horizon)) == pytest.approx(min(2 * horizon, 2 + cost))
    assert float(twin.regret_bound(1)) == 2
    # In each message one variance: the norms grow with sqrt t, and so do both bounds on the regularizer.
    horizon = 20_000
    local = LinUCBSettings(5, d, horizon, span, failure=failure).private(ApproxDP(1e4, 1e-2), TrustModel.LOCAL, "tight")
    t = horizon - 1
    least, largest = local.shift(t)[1:]
    deviation = local.sums.noise_deviation(t)
    width = math.sqrt(2 * math.log(2 / failure) + d * math.log((t / d + largest) / local.shift(1)[1]))
    width += math.sqrt(largest) + local.vector_norm * deviation / math.sqrt(least)
    growth = d * math.log1p(horizon / (d * local.shift(1)[1]))
    found = float(local.regret_bound(horizon))
    assert found == pytest.approx(2 + 2 * width * math.sqrt(horizon * growth / math.log(2)))
    assert found < 2 * horizon
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        LinUCBSettings(5, d, horizon, span, beta_scale=0.5).twin().regret_bound(10)


@pytest.mark.parametrize(("d", "is_union"), [(3, False), (5, True)])
def test_the_width_of_linucb_holds_for_every_regularizer_of_the_run(d, is_union):
    horizon, span = 100, Interval(-1.0, 1.0)
    local = LinUCBSettings(3, d, horizon, span).private(ApproxDP(1.0, 1e-5), TrustModel.LOCAL, "tight")
    spread = d * math.log(local.shift(horizon)[1] / local.shift(1)[1])
    assert (spread > 2 * math.log(horizon)) is is_union
    assert local.regularizers == ((None, horizon) if is_union else (local.shift(1)[1], 1))
    settings = LinUCBSettings(3, d, horizon, span)
    twin, printed = settings.twin(), settings.private(ApproxDP(1.0, 1e-5), TrustModel.JOINT, "printed")
    assert (twin.regularizers, printed.regularizers) == ((1.0, 1), (printed.shift(1)[1], 1))
    for algorithm in (local, twin, printed):
        _, model = algorithm.init(1)
        radius = math.sqrt(2 * math.log(2 * algorithm.regularizers[1] * horizon))
        assert float(model.width[0]) == pytest.approx(radius + 1)


def test_the_bound_of_gp_ucb_pays_for_what_the_features_miss():
    features = feature_map(SquaredExponential(0.7), 2, 100)
    exact, missing = (
        replace(
            GPUCBSettings(3, replace(features, error=error), 10**4, SYMMETRIC, norm_bound=1e-3).twin(), reward_scale=1e-3
        )
        for error in (0.0, 0.01)
    )
    # The widths are so small that a round costs no more than the range allows.
    assert float(missing.regret_bound(10**4) - exact.regret_bound(10**4)) == pytest.approx(2 * 1e-5 * 10**4)


def test_the_printed_width_of_oful_has_a_formula_and_no_proof():
    printed = adar_oful(5, 3, 1000, 2.0, 1.0, UNIT, "printed")
    with pytest.raises(ValueError, match="assumes what no contexts meet"):
        printed.regret_bound(10)
    with pytest.raises(ValueError, match="the printed width"):
        oful(5, 3, 1000, UNIT).theorem_10_formula(10)
    with pytest.raises(ValueError, match=r"at least 1, got 0\.5"):
        oful(5, 3, 1000, UNIT, beta_scale=0.5).regret_bound(10)
    entry = find("adar-oful")
    found = entry.bound(settings_of(entry, "printed"), None, np.array([10, 1000]))
    assert "stated by the paper, its assumption fails" in found.text
    # With alpha / epsilon going to 0 what remains is the formula without noise.
    free = adar_oful(5, 3, 10**9, 2.0, 1e12, UNIT, "printed", failure=0.01)
    growth = 3 * math.log1p(10**9 / 3)
    beta = math.sqrt(2 * math.log(100) + growth) + 1
    expected = 2 * math.sqrt(2) * beta * math.sqrt(2 * 10**9 * growth)
    assert float(free.theorem_10_formula(10**9)) == pytest.approx(expected, rel=1e-3)
