"""Lower bounds by hand: two Bernoulli arms, one coordinate, one starting state; and which of them speaks of what."""

import math

import numpy as np
import pytest
from doubles import OwnNoiseLedger
from scipy.stats import binom, norm

from bandana.algorithms import catalog
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.lower_bounds import contextual, finite_arms
from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, local_kl, private_kl
from bandana.algorithms.lower_bounds.lower_bound import Privacy, Reach
from bandana.algorithms.lower_bounds.selection import episodes_bound, lower_bound
from bandana.algorithms.lower_bounds.two_problems import summed_errors
from bandana.algorithms.mdp.models import LinearModel, MixtureModel
from bandana.algorithms.observers import RegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, PureDP, RenyiDP, TrustModel

UNIT = Interval(0.0, 1.0)
GRID = np.array([10, 1000, 100_000])
LOCAL, JOINT = TrustModel.LOCAL, TrustModel.JOINT


# --- divergences -----------------------------------------------------------------------------------------------------------


def test_bernoulli_divergence_by_hand():
    # kl(1/2, 3/4) = (1/2) log(2/3) + (1/2) log 2 = (1/2) log(4/3)
    assert bernoulli_kl(0.5, 0.75) == pytest.approx(math.log(4 / 3) / 2)
    assert bernoulli_kl(0.0, 0.5) == pytest.approx(math.log(2))
    assert bernoulli_kl(1.0, 1.0) == 0
    assert bernoulli_kl(0.5, 1.0) == math.inf


def test_private_divergence_lies_below_kl_and_total_variation_and_reaches_both():
    # From epsilon = log 3 on logit(3/4) - epsilon = 0 = logit(1/2): the minimum is at p, and equals kl.
    assert private_kl(0.5, 0.75, math.log(3)) == pytest.approx(math.log(4 / 3) / 2)
    assert private_kl(0.5, 0.75, 5.0) == pytest.approx(math.log(4 / 3) / 2)
    # Between: r = expit(log 3 - log 2) = 3/5; log 2 / 10 + kl(3/5, 3/4).
    between = math.log(2) / 10 + 0.6 * math.log(0.8) + 0.4 * math.log(1.6)
    assert private_kl(0.5, 0.75, math.log(2)) == pytest.approx(between)
    assert private_kl(0.5, 0.75, 1e-6) == pytest.approx(1e-6 / 4, rel=1e-5)
    assert private_kl(0.5, 1.0, 0.3) == pytest.approx(0.15)
    assert private_kl(0.75, 0.5, 0.2) == pytest.approx(float(private_kl(0.25, 0.5, 0.2)))


@pytest.mark.parametrize("epsilon", [0.05, 0.4, 1.0])
def test_private_divergence_is_the_least_of_a_grid(epsilon):
    r = np.linspace(0.3, 0.6, 20_001)
    assert private_kl(0.3, 0.6, epsilon) == pytest.approx(
        float((epsilon * (r - 0.3) + bernoulli_kl(r, 0.6)).min()), rel=1e-6
    )


def test_messages_tell_less_than_data():
    # epsilon = log 3 keeps a bit with probability 3/4: means 0 and 1 become 1/4 and 3/4.
    assert local_kl(1.0, 0.0, math.log(3), None) == pytest.approx(0.5 * math.log(3))
    # A normal law with a mean of 0 or mu: mu^2 / 2 between the two, all of it at large mu, s^2 mu^2 / 2 at small.
    assert local_kl(1.0, 0.0, None, 1.5) == pytest.approx(1.5**2 / 2)
    assert local_kl(0.5, 0.6, None, 30.0) == pytest.approx(float(bernoulli_kl(0.5, 0.6)))
    assert local_kl(0.5, 0.6, None, 15.0) == pytest.approx(float(bernoulli_kl(0.5, 0.6)), rel=1e-6)
    assert local_kl(0.5, 0.6, None, 0.01) == pytest.approx(0.1**2 * 0.01**2 / 2, rel=1e-3)
    assert local_kl(0.5, 0.6, None, None) == pytest.approx(float(bernoulli_kl(0.5, 0.6)))


# --- two problems ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "s"), [(1, 0.999), (7, 0.3), (400, 0.05)])
def test_summed_errors_are_below_the_exact_sums(n, s):
    t = np.arange(n)
    assert summed_errors(n, s, Privacy()) <= (np.exp(-t * bernoulli_kl((1 + s) / 2, (1 - s) / 2)) / 2).sum() + 1e-12
    pure = [(binom.pmf(np.arange(k + 1), k, s) * 2 / (1 + np.exp(0.2 * np.arange(k + 1)))).sum() for k in t]
    assert summed_errors(n, s, Privacy(epsilon=0.2)) <= sum(pure)
    normal = [(binom.pmf(np.arange(k + 1), k, s) * 2 * norm.cdf(-0.1 * np.arange(k + 1))).sum() for k in t]
    assert summed_errors(n, s, Privacy(mu=0.2)) <= sum(normal)


def test_summed_errors_by_hand():
    many = 10**9
    assert summed_errors(many, 1.0, Privacy(epsilon=0.1)) == pytest.approx(2 * math.log(2) / 0.1)
    assert summed_errors(many, 1.0, Privacy(mu=0.1)) == pytest.approx(4 / (0.1 * math.sqrt(2 * math.pi)))
    assert summed_errors(many, 0.5, Privacy()) == pytest.approx(1 / (math.log(3)))  # k = log(3) / 2
    assert summed_errors(3, 1.0, Privacy(epsilon=1e-9)) == pytest.approx(3)
    assert summed_errors(0, 1.0, Privacy(epsilon=1.0)) == 0


# --- finitely many arms ----------------------------------------------------------------------------------------------------


def test_asymptotic_bounds_of_two_arms_by_hand():
    means, log = [0.75, 0.5], np.log(GRID)
    kl = math.log(4 / 3) / 2
    plain = finite_arms.asymptotic_bound(GRID, means, UNIT, Privacy())
    assert plain.reach is Reach.THIS_PROBLEM
    # kl(1/2, 3/4), not kl(3/4, 1/2); never above the gap times t.
    assert plain.values == pytest.approx(np.minimum(0.25 * log / kl, 0.25 * GRID))
    assert plain.text.startswith("leading term")
    # The best arm's place does not matter, a range of another width scales all, and arms as good as the best cost nothing.
    swapped = finite_arms.asymptotic_bound(GRID, [-1.0, 0.0, 0.0], Interval(-3.0, 1.0), Privacy())
    assert swapped.values == pytest.approx(4 * plain.values)
    pure = finite_arms.asymptotic_bound(GRID, means, UNIT, Privacy(epsilon=0.01))
    assert pure.values[2:] == pytest.approx(0.25 * log[2:] / float(private_kl(0.5, 0.75, 0.01)))
    assert pure.values[2:] == pytest.approx(log[2:] / 0.01, rel=0.02)  # log T / epsilon: kl is about 14 epsilon TV
    gaussian = finite_arms.asymptotic_bound(10.0 ** np.array([30, 300]), means, UNIT, Privacy(mu=0.05))
    big = np.array([30, 300]) * math.log(10)
    assert gaussian.values == pytest.approx([math.sqrt(2 * big[0]) / 0.05, 0.25 * big[1] / kl])
    local = finite_arms.asymptotic_bound(GRID, means, UNIT, Privacy(epsilon=math.log(3), trust=LOCAL))
    assert local.values == pytest.approx(np.minimum(0.25 * log / bernoulli_kl(0.5, 0.625), 0.25 * GRID))


def test_no_arm_can_be_better_than_a_certain_one():
    assert finite_arms.asymptotic_bound(GRID, [1.0, 0.5], UNIT, Privacy()) is None


def test_the_bound_of_2025_is_never_below_that_of_2022():
    rng = np.random.default_rng(1)
    p, q = np.sort(rng.random((2, 200)), axis=0)
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        assert (private_kl(p, q, epsilon) <= np.minimum(bernoulli_kl(p, q), 6 * epsilon * (q - p)) + 1e-15).all()


def test_minimax_bounds_of_two_arms_by_hand():
    # m = (T - m) e^(-epsilon m) at m = log(T / m - 1) / epsilon; the regret is m / 2.
    (half,) = finite_arms.pure_minimax(np.array([1e4]), 2, 0.1)
    assert 2 * half == pytest.approx(math.log(1e4 / (2 * half) - 1) / 0.1, rel=1e-6)
    # Without a round to learn from all is lost: epsilon -> 0 gives T / 4, half of the worse of 0 and 1 against 1/2.
    assert finite_arms.pure_minimax(np.array([100.0]), 2, 1e-9) == pytest.approx(25.0, rel=1e-6)
    assert finite_arms.gaussian_minimax(np.array([100.0]), 2, 1e-9) <= 25.0
    (root,) = finite_arms.gaussian_minimax(np.array([1e6]), 2, 0.1)
    assert root == pytest.approx(math.sqrt(2 * math.log(1e6)) / 0.1 / 2, rel=0.6)
    assert finite_arms.minimax_bound([100], 4, UNIT, Privacy()).values == pytest.approx([1.0])  # sqrt(400) / 20


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0])
def test_the_minimax_bound_exceeds_that_of_bretagnolle_and_huber(epsilon):
    for n_arms in (2, 5, 50):
        rounds = np.array([2 * n_arms / epsilon])
        assert finite_arms.pure_minimax(rounds, n_arms, epsilon) > (n_arms - 1) / (16 * math.e * epsilon)


def test_private_minimax_bounds_grow_as_privacy_does():
    every = [
        [
            finite_arms.minimax_bound([10**5], 5, UNIT, Privacy(**{name: x, "trust": trust})).values[0]
            for x in (0.01, 0.1, 1, 9)
        ]
        for name, trust in (("epsilon", TrustModel.CENTRAL), ("mu", TrustModel.CENTRAL), ("epsilon", LOCAL), ("mu", LOCAL))
    ]
    plain = finite_arms.minimax_bound([10**5], 5, UNIT, Privacy()).values[0]
    for falling in every:
        assert falling == sorted(falling, reverse=True)
        assert falling[-1] == plain < falling[0]


def test_linear_arms_are_unrelated_ones_at_worst():
    found = finite_arms.linear_minimax_bound(GRID, 3, UNIT, Privacy(epsilon=0.1))
    assert found.values == pytest.approx(finite_arms.minimax_bound(GRID, 3, UNIT, Privacy(epsilon=0.1)).values)
    assert "d = 3" in found.text
    assert finite_arms.linear_minimax_bound(GRID, 1, UNIT, Privacy()) is None


# --- users who bring contexts, and episodes --------------------------------------------------------------------------------


def test_contextual_bounds_by_hand():
    # One coordinate, s = 1: the sum of errors is 2 log 2 / epsilon, the gap the width, the regret half of both.
    pure = contextual.minimax_bound([10**4], 1, Interval(-1.0, 1.0), Privacy(epsilon=0.01, trust=JOINT))
    assert pure.values == pytest.approx([2 * math.log(2) / 0.01], rel=1e-6)
    gaussian = contextual.minimax_bound([10**5], 3, UNIT, Privacy(mu=0.01, trust=JOINT))
    assert gaussian.values == pytest.approx([3 * 2 / (0.01 * math.sqrt(2 * math.pi))], rel=1e-6)
    # Order d sqrt T, whatever T.
    plain = contextual.minimax_bound(np.array([10**4, 10**6, 10**8]), 4, UNIT, Privacy())
    assert plain.values[1:] / plain.values[:-1] == pytest.approx([10, 10], rel=0.01)
    assert 0.1 < plain.values[1] / (4 * 1000 / 2) < 0.2
    local = contextual.minimax_bound(np.array([10**8]), 4, UNIT, Privacy(epsilon=0.1, trust=LOCAL))
    assert local.values == pytest.approx([plain.values[2] / math.tanh(0.05)], rel=0.01)
    assert contextual.minimax_bound([3], 4, UNIT, Privacy()).values == [0]


def _mixture(n_states, dimension, bound):
    features = np.zeros((n_states, 2, n_states, dimension))
    features[..., 0] = 1 / n_states
    return MixtureModel(features, np.zeros((5, n_states, 2)), bound)


def test_bounds_of_episodes_by_hand():
    # d = 2, S = 3: one starting state, s = 1 as |w| = sqrt 2; the gap is H - 1 = 4, the regret 2 (2 log 2 / epsilon).
    found = episodes_bound([10**5], _mixture(3, 2, 2.0), Privacy(epsilon=0.01, trust=JOINT))
    assert found.values == pytest.approx([4 * math.log(2) / 0.01], rel=1e-6)
    assert episodes_bound([10**5], _mixture(3, 2, 1.0), Privacy()) is None  # |w| = 1 leaves no room for s
    assert episodes_bound([10**5], _mixture(2, 2, 2.0), Privacy()) is None
    linear = LinearModel(np.full((5, 2, 9), 1 / 3), 5)  # g = 3 = min(6, 3), g s^2 <= 3/2
    found = episodes_bound([10**6], linear, Privacy(mu=0.01, trust=JOINT))
    assert found.values == pytest.approx([3 * 2 * 4 / (0.01 * math.sqrt(2 * math.pi))], rel=1e-4)
    assert episodes_bound([10], LinearModel(np.full((5, 2, 6), 0.1), 5), Privacy()) is None


def test_the_worst_processes_are_of_their_class():
    g, s = 3, 0.5
    d, n_states = g + 1, g + 2
    features = np.zeros((n_states, 2, n_states, d))
    for j in range(g):
        for action, sign in enumerate((1, -1)):
            features[j, action, g, 0] = features[j, action, g + 1, 0] = 0.5
            features[j, action, g, j + 1], features[j, action, g + 1, j + 1] = sign / 2, -sign / 2
    features[g, :, g, 0] = features[g + 1, :, g + 1, 0] = 1.0
    w = np.append(1.0, np.full(g, s))
    model = MixtureModel(features, np.zeros((2, n_states, 2)), float(np.linalg.norm(w)))
    p = model.transitions(np.array([w, w]))
    assert p[0, 1, 0, g] == pytest.approx((1 + s) / 2)
    assert p[0, 1, 1, g] == pytest.approx((1 - s) / 2)


def test_the_worst_linear_process_is_of_its_class():
    d, n_states = 9, 5
    g = min(d - 3, n_states - 2)
    s = min(1.0, math.sqrt((d - 6) / 2 / g))
    features, measures = np.zeros((n_states, 2, d)), np.zeros((n_states, d))
    for j in range(g):
        for action, sign in enumerate((1, -1)):
            features[j, action, [0, j + 1]] = 1 / math.sqrt(2), sign / math.sqrt(2)
    features[g, :, g + 1] = features[g + 1, :, g + 2] = 1.0
    measures[g, 0] = measures[g + 1, 0] = 1 / math.sqrt(2)
    measures[g, 1 : g + 1], measures[g + 1, 1 : g + 1] = s / math.sqrt(2), -s / math.sqrt(2)
    measures[g, g + 1] = measures[g + 1, g + 2] = 1.0
    p = LinearModel(features, 2).transitions(np.array([measures, measures]))
    assert p[0, 0, 0, g] == pytest.approx((1 + s) / 2)
    assert p[1, g, 0, g] == pytest.approx(1)


# --- which bound -----------------------------------------------------------------------------------------------------------


def test_privacy_is_read_off_the_claim():
    entry = catalog.find("adar-ucb", "central")
    settings = entry.settings(Problem(2, UNIT, 100), "tight", RenyiDP(2, 0.5))
    assert Privacy.of(entry.promise(settings)).mu == pytest.approx(math.sqrt(0.5))
    assert Privacy.of(None).is_none
    pure = catalog.find("adap-ucb", "central")
    assert Privacy.of(pure.promise(pure.settings(Problem(2, UNIT, 100), "tight", PureDP(0.5)))).epsilon == 0.5


def test_the_asymptotic_bound_needs_means_and_bernoulli_rewards():
    entry = catalog.find("adap-ucb", "central")
    settings = entry.settings(Problem(2, UNIT, 100), "tight", PureDP(0.5))
    claim, means = entry.promise(settings), np.array([0.75, 0.5])
    assert lower_bound(settings, claim, means, GRID, is_bernoulli=True).reach is Reach.THIS_PROBLEM
    assert lower_bound(settings, claim, means, GRID).reach is Reach.WORST_PROBLEM
    assert lower_bound(settings, claim, None, GRID, is_bernoulli=True).reach is Reach.WORST_PROBLEM
    text, worst = lower_bound(settings, claim, means, GRID, is_bernoulli=True).text, lower_bound(settings, claim, None, GRID)
    assert text.startswith("leading term")
    assert text.endswith(f"at each horizon: {worst.values[-1]:.4g} after 100000 rounds")


@pytest.mark.parametrize("label", ["oful", "linucb joint", "linucb local", "gope", "adar-gope"])
def test_every_kind_of_bandit_has_a_bound(label):
    entry = catalog.find(label)
    given = {"dimension": 3} if "contextual" in entry.plays_on else {"features": ((1.0, 0.0), (0.0, 1.0))}
    problem = Problem(2, UNIT, 1000, **given)
    privacy = {None: None, "renyi": RenyiDP(2, 0.5), "approximate": ApproxDP(1.0, 1e-5), "pure": PureDP(1.0)}[
        entry.guarantee
    ]
    settings = entry.settings(problem, entry.calibrations[0] if entry.calibrations else None, privacy)
    found = lower_bound(settings, entry.promise(settings) if entry.promise else None, None, GRID)
    assert found.values.shape == GRID.shape
    assert (np.diff(found.values) >= 0).all()
    assert found.reach is Reach.WORST_PROBLEM
    if entry.guarantee == "approximate":
        assert f"{GaussianDP.from_epsilon_delta(1.0, 1e-5).mu:.4g}-GDP" in found.text


# --- played ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("label", "privacy"), [
    ("adap-ucb", PureDP(0.2)), ("adap-klucb", PureDP(0.2)), ("dp-se", PureDP(0.2)), ("dp-ucb", PureDP(0.2)),
    ("adar-ucb", RenyiDP(2.0, 0.02)),
])  # fmt: skip
def test_no_algorithm_beats_the_minimax_bound_on_its_two_problems(label, privacy):
    """Arm 0 pays 1/2 and arm 1 nothing or always, as in the proof; the worse regret of 100 runs is above the bound."""
    entry, horizon = find(label), 2000
    settings = entry.settings(Problem(2, UNIT, horizon), entry.calibrations[-1], privacy)
    least = lower_bound(settings, entry.promise(settings), None, np.array([horizon])).values[0]
    assert least > 5
    regret = []
    for second in (0.0, 1.0):
        table = RewardTable(np.tile([0.5, second], (horizon, 1)), UNIT)
        curve = RegretCurve(np.array([0.5, second]), np.array([horizon]), 100)
        run(entry.build(settings), table, OwnNoiseLedger(list(range(100))), observers=[curve])
        regret.append(curve.curve[:, -1].mean())
    assert max(regret) > least
