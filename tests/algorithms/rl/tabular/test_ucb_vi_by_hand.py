"""UCB-VI against what can be computed by hand, and against the algorithm as it is written, with a memory of all episodes."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest
from doubles import ConstantNoise

from bandana.algorithms.environments.episodes import EpisodeTable, random_episodes
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Record
from bandana.algorithms.rl.tabular.forms import UCBVISettings
from bandana.algorithms.rl.tabular.statistics import Layout, published, with_visits
from bandana.algorithms.run import run
from bandana.privacy_core import (
    ApproxDP,
    FactorizedSum,
    Interval,
    LiveLedger,
    PureDP,
    ReproducibleNoise,
    TreeSum,
    TrustModel,
)

UNIT = Interval(0.0, 1.0)
S, A, H, K = 3, 2, 3, 40
TABLE = random_episodes(K, H, S, A, UNIT, 5)
JOINT, LOCAL = TrustModel.JOINT, TrustModel.LOCAL
FORMS = {
    "joint": (ApproxDP(1.0, 1e-5), JOINT, "tight"),
    "joint pure": (PureDP(1.0), JOINT, "tight"),
    "joint pure as-known": (PureDP(1.0), JOINT, "as-known"),
    "local": (ApproxDP(1.0, 1e-5), LOCAL, "tight"),
    "local pure": (PureDP(1.0), LOCAL, "tight"),
    "local pure as-known": (PureDP(1.0), LOCAL, "as-known"),
}


def built(name, **more):
    settings = UCBVISettings(S, A, H, K, **more)
    return settings.twin() if name == "twin" else settings.private(*FORMS[name])


def played(algorithm, ledger, data=TABLE):
    log = ActionLog()
    _, released = run(algorithm, data, ledger, observers=[log])
    return np.array(log.actions).T.reshape(ledger.n_reps, data.n_users, -1), released


# --- the algorithm as it is written --------------------------------------------------------------------------------------


def between(m, high, low, top, errors, log, s):
    """Bounds on the mean of a function between two others, from noisy counts: every end of the box is tried."""
    ends = [m @ (np.array(corner) - top / 2) for corner in itertools.product(*zip(low, high, strict=True))]
    n = max(m.sum(), 1.0)
    x = min(max(top / 2 + (max(ends) + min(ends)) / 2 / n, 0.0), top)
    square = np.maximum((high - x) ** 2, (low - x) ** 2)
    w = max(m @ square + errors.total * max(square), 0.0)
    width = math.sqrt(2 * log * w) + 3 * top * log + errors.function * (max(high) - min(low))
    width = s * (width + top / 2 * max(1 - m.sum(), 0.0))
    return top / 2 + (max(ends) + width) / n, top / 2 + (min(ends) - width) / n


def as_written(algorithm, data, noise):
    """Actions (K, H), and values and lower ones (2, H + 1, S) of the last look: every look counts all episodes anew.

    `noise(look, k)` is what the running sum has at the look-th look, after k episodes: (H, S, A, width).
    """
    layout, s, log = algorithm.layout, algorithm.beta_scale, algorithm.log
    n_states, n_actions, length = algorithm.n_states, algorithm.n_actions, algorithm.episode_length
    policy, values, low, episodes, actions = None, None, None, [], []
    for k in range(data.n_users):
        state, episode, chosen = int(data.first_states[k]), [], []
        for h in range(length):
            a = k // n_actions**h % n_actions if policy is None else policy[h][state]
            after, reward = int(data.next_states[k, h, state, a]), data.rewards[k, h, state, a]
            episode.append((h, state, a, after, reward))
            chosen.append(a)
            state = after
        episodes.append(episode)
        actions.append(chosen)
        if k + 1 not in algorithm.looks:
            continue
        look = algorithm.looks.index(k + 1)
        table = noise(look + 1, k + 1)
        for h, state, a, after, reward in itertools.chain(*episodes):
            table[h, state, a, after] += 1
            table[h, state, a, n_states] += reward - layout.reward_center
            if layout.count_weight:
                table[h, state, a, n_states + 1] += layout.count_weight
        errors = algorithm.errors[look]
        values, policy = np.zeros((length + 1, n_states)), [[0] * n_states for _ in range(length)]
        low = np.zeros((length + 1, n_states))
        for h in reversed(range(length)):
            for state in range(n_states):
                index, floor = [], []
                for a in range(n_actions):
                    m, rho = table[h, state, a, :n_states], table[h, state, a, n_states]
                    if algorithm.published:
                        big, log_published = algorithm.published
                        n, e = table[h, state, a, n_states + 1], s * big
                        if n < 2 * e:
                            index.append(2.0 * length)
                            continue
                        phi, psi = math.sqrt(2 * log_published / max(n - e, 1)), 3 * e / n + 2 * (e / n) ** 2
                        index.append((rho + m @ values[h + 1]) / n + s * (length + 1) * phi + (1 + n_states * length) * psi)
                        continue
                    top = algorithm.caps[h + 1]
                    c, z = top / 2, layout.reward_center
                    reach = max(z, 1 - z)
                    own = table[h, state, a, n_states + 1] / layout.count_weight if layout.count_weight else 0.0
                    n = layout.count_share * own + (1 - layout.count_share) * m.sum()
                    u = max(n + s * errors.visits, 1.0)
                    slack = max(2 * s * errors.visits, s if n + s * errors.visits < 1 else 0.0)
                    if algorithm.bonus == "bernstein":
                        above, below = between(m, values[h + 1], low[h + 1], top, errors, log, s) if top else (0.0, 0.0)
                        width = reach * slack + s * (errors.reward + math.sqrt(u * log / 2))
                        index.append(z + (rho + width) / u + above)
                        floor.append(z + (rho - width) / u + below)
                        continue
                    e = (1 + top) * math.sqrt(u * log / 2)
                    bonus = (reach + c) * slack + s * (errors.reward + c * errors.total + e)
                    index.append(z + c + (rho + m @ (values[h + 1] - c) + bonus) / u)
                best = max(index)
                policy[h][state] = next(a for a in range(n_actions) if index[a] >= best - 1e-9 * abs(best))
                values[h, state] = min(max(best, 0.0), algorithm.caps[h])
                low[h, state] = min(max(*floor, 0.0), algorithm.caps[h]) if floor else 0.0
    return np.array(actions), np.array([values, low])


@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_the_twin_is_the_algorithm_as_written(bonus, scale):
    algorithm = built("twin", bonus=bonus, beta_scale=scale)
    actions, released = played(algorithm, LiveLedger(2, ConstantNoise()))
    expected, values = as_written(algorithm, TABLE, lambda look, k: np.zeros(algorithm.shape))
    for r in range(2):
        assert np.array_equal(actions[r], expected)
        np.testing.assert_allclose([released.values[r], released.lower[r]], values, rtol=1e-9)
    assert len({tuple(row) for row in expected[algorithm.looks[0] :].tolist()}) > 1


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("bonus", ["hoeffding", "bernstein"])
@pytest.mark.parametrize("size", [1e-3, -1e-3])
def test_constant_noise_enters_where_it_should(name, bonus, size):
    """Noise of 1e-3, or of -1e-3: a prefix of a tree holds as many as its nodes, messages as many as they are."""
    if "joint pure as-known" in name and bonus == "bernstein":
        with pytest.raises(ValueError, match="bonus must be hoeffding"):
            built(name, bonus=bonus)
        return
    algorithm = built(name, bonus=bonus, beta_scale=1e-4)
    unit = size * algorithm.sums.mechanism.scale

    def noise(look, k):
        if isinstance(algorithm.sums, TreeSum):
            times = look.bit_count()
        elif isinstance(algorithm.sums, FactorizedSum):
            times = algorithm.sums.factorization.decoder[look - 1, :look].sum()
        else:
            times = k
        return np.full(algorithm.shape, times * unit)

    actions, released = played(algorithm, LiveLedger(1, ConstantNoise(size)))
    expected, values = as_written(algorithm, TABLE, noise)
    assert np.array_equal(actions[0], expected)
    np.testing.assert_allclose([released.values[0], released.lower[0]], values, rtol=1e-7)
    assert (released.lower.max() > 0) == (bonus == "bernstein")


def test_with_noise_of_its_own_the_algorithm_as_written_has_the_same_values_on_average():
    """A z-test of 60 against 400 runs on each of 9 values; a true algorithm fails with probability below 1e-5 (5 sigma)."""
    algorithm = built("local pure", beta_scale=0.002)
    algorithm = dataclasses.replace(
        algorithm, sums=dataclasses.replace(algorithm.sums, mechanism=algorithm.sums.mechanism.scaled(0.05))
    )
    _, released = played(algorithm, LiveLedger(400, ReproducibleNoise(np.random.SeedSequence(1))))
    generator, scale, naive = np.random.default_rng(2), algorithm.sums.mechanism.scale, []
    for _ in range(60):
        messages = generator.laplace(0.0, scale, (K, *algorithm.shape)).cumsum(axis=0)
        naive.append(as_written(algorithm, TABLE, lambda look, k, all_=messages: all_[k - 1].copy())[1][0, :H])
    ours, theirs = released.values[:, :H], np.array(naive)
    error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
    assert theirs.std() > 0.1
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) <= 5 * error + 1e-9).all()


# --- by hand -------------------------------------------------------------------------------------------------------------


def test_one_state_and_one_step_by_hand():
    """Four users take action 0, 1, 0, 1 and earn 1, 0, 1, 0; one look, after the second."""
    rewards = np.array([[1.0, 0.0]] * 4).reshape(4, 1, 1, 2)
    data = EpisodeTable(np.zeros(4, dtype=int), np.zeros((4, 1, 1, 2), dtype=int), rewards, UNIT)
    algorithm = UCBVISettings(1, 2, 1, 4, looks=2, failure=0.3).twin()
    assert algorithm.looks == (2,)
    actions, released = played(algorithm, LiveLedger(1, ConstantNoise()), data)
    assert actions[0].ravel().tolist() == [0, 1, 0, 0]
    log = math.log(9 * 2 * 4 / 0.3)
    assert algorithm.log == pytest.approx(log)
    # One visit each, rewards less 1/2 are 1/2 and -1/2: 1/2 + 1/2 + sqrt(l / 2) is above 1, the cap.
    assert released.values.ravel() == pytest.approx([1.0, 0.0])
    narrow = dataclasses.replace(algorithm, beta_scale=0.1)
    _, released = played(narrow, LiveLedger(1, ConstantNoise()), data)
    assert released.values.ravel() == pytest.approx([min(1.0, 1 + 0.1 * math.sqrt(log / 2)), 0.0])


def test_where_noise_is_small_pucb_uses_what_it_learned():
    """PUCB's bonus by hand: n = 30 visits of one action in one state, E = 10."""
    algorithm = UCBVISettings(1, 2, 1, K).private(PureDP(1.0), JOINT, "as-known")
    algorithm = dataclasses.replace(algorithm, published=(10.0, 2.0), beta_scale=0.5)
    _, released = algorithm.init(1)
    noisy = np.zeros((1, 1, 1, 2, 3))
    noisy[0, 0, 0, 0] = 30.0, 6.0, 30.0
    noisy[0, 0, 0, 1] = 5.0, 5.0, 5.0  # below 2 E: unknown, index 2 H
    algorithm.plan(noisy, released)
    assert released.policy.ravel().tolist() == [1]
    noisy[0, 0, 0, 1] = 30.0, 3.0, 30.0
    small = dataclasses.replace(algorithm, published=(0.3, 2.0))
    small.plan(noisy, released)
    part = 0.15 / 30
    index = 6 / 30 + 0.5 * 2 * math.sqrt(2 * 2 / (30 - 0.15)) + 2 * (3 * part + 2 * part**2)
    assert released.policy.ravel().tolist() == [0]
    assert released.values.ravel() == pytest.approx([index, 0.0])


@pytest.mark.parametrize("layout", [Layout(2), with_visits(2), published(2), Layout(2, 0.5, 0.9)])
@pytest.mark.parametrize("length", [1, 2, 3])
def test_the_sensitivity_is_that_of_all_pairs_of_episodes(layout, length):
    """Every pair of episodes in two states with two actions and rewards at both ends; attained where episodes never meet."""
    algorithm = UCBVISettings(2, 2, length, 1).twin()
    algorithm = dataclasses.replace(algorithm, layout=layout)
    paths = list(itertools.product(range(2), repeat=2 * length + 1))
    states, actions = np.array(paths)[:, : length + 1], np.array(paths)[:, length + 1 :]
    ones = np.ones(len(paths), dtype=np.int64)
    found = []
    for reward in (0.0, 1.0):
        out = np.zeros((len(paths), *algorithm.shape))
        algorithm.count(Record(0 * ones, ones, None, actions, np.full(actions.shape, reward), states), out)
        found.append(out.reshape(len(paths), -1))
    tables = np.concatenate(found)
    l1 = max(np.abs(tables - row).sum(axis=1).max() for row in tables)
    l2 = max(np.linalg.norm(tables - row, axis=1).max() for row in tables)
    assert l1 <= layout.sensitivity_l1(length) * (1 + 1e-12)
    assert l2 <= layout.sensitivity_l2(length) * (1 + 1e-12)
    is_apart = 2 + 2 * max(layout.reward_center, 1 - layout.reward_center) + 2 * layout.count_weight >= 3
    if is_apart and length == 1:
        assert l1 == pytest.approx(layout.sensitivity_l1(length))
    if layout == with_visits(2):
        assert l2 == pytest.approx(math.sqrt(3 * length))
    if layout == published(2):
        assert l1 == pytest.approx(6 * length), "the papers' noise is made for half of it"


def test_rewards_outside_the_range_are_moved_into_it():
    algorithm, ones = built("joint"), np.ones(1, dtype=np.int64)
    states, actions = np.zeros((1, H + 1), dtype=np.int64), np.zeros((1, H), dtype=np.int64)
    found = []
    for reward in (1.0, 50.0):
        found.append(np.zeros((1, *algorithm.shape)))
        algorithm.count(Record(0 * ones, ones, None, actions, np.full((1, H), reward), states), found[-1])
    assert np.array_equal(*found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"horizon": 0}, "horizon must"),
        ({"looks": 0}, "looks must"),
        ({"bonus": "chernoff"}, "bonus must be one of"),
        ({"failure": 1.5}, "failure must"),
        ({"beta_scale": -1.0}, "beta_scale must"),
    ],
)
def test_settings_out_of_their_range_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        UCBVISettings(**{"n_states": S, "n_actions": A, "episode_length": H, "horizon": K, **changed}).twin()
