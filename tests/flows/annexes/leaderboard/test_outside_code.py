"""Rows of outside code: the adapters on stand-ins of its interface, and on the code itself where somebody has cloned it."""

from __future__ import annotations

import importlib
import math
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from doubles import ConstantNoise

from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise, account

UNIT = Interval(0.0, 1.0)
FOLDER = Path(__file__).parents[4] / "experiments" / "outside"
TEST = """
import numpy as np


class AdaPTopTwo:
    '''Pulls its leader on heads and the next arm on tails, and is sure after 40 pulls.'''

    def __init__(self, config):
        self.K, self.eps, self.beta = config["K"], config["eps"], config["beta"]
        for name in ("counts", "values", "phase", "ph_counts", "ph_rewards", "last_ph_counts"):
            setattr(self, name, np.zeros(self.K))
        self.ph_best = None

    def compute_priv_ucb_leader(self):
        return np.argmax(self.values)

    def select_arm(self):
        leader = self.compute_priv_ucb_leader()
        return leader if np.random.uniform() <= self.beta else (leader + 1) % self.K

    def doubled_counts(self, arm):
        return self.ph_counts[arm] == self.counts[arm]

    def check_stopping(self):
        return self.counts.sum() >= 40

    def update(self, arm):
        n = self.ph_counts[arm]
        self.phase[arm] += 1
        self.counts[arm] += n
        self.last_ph_counts[arm] = n
        self.values[arm] = self.ph_rewards[arm] / n + np.random.laplace(scale=NOISE / (self.eps * n))
        self.ph_best = self.compute_priv_ucb_leader()
        self.ph_counts[arm] = self.ph_rewards[arm] = 0
"""
ELIMINATION = """
rng = None
import numpy as np


class DPSE:
    '''Epochs of 2, 4, 8, ... pulls an arm; what is 0.3 behind the best goes.'''

    def __init__(self, env, n, params):
        self.eps, self.ActiveSet = env.epsilon, np.arange(env.K)
        self.BatchNo, self.BatchSize, self.RoundCount, self.TotalRoundsDone = 1, 2, 0, 0

    def central_rand(self):
        return self.rewards + rng.laplace(0, 1 / self.eps)

    def update(self, t, arm, r):
        if self.RoundCount == 0:
            self.rewards = np.zeros(len(self.ActiveSet))
        self.rewards[np.where(self.ActiveSet == arm)] += r
        self.RoundCount += 1
        if self.RoundCount == self.BatchSize * len(self.ActiveSet):
            mean = self.central_rand() / self.BatchSize
            self.ActiveSet = self.ActiveSet[mean >= mean.max() - 0.3]
            self.BatchNo, self.BatchSize, self.RoundCount = self.BatchNo + 1, 2 * self.BatchSize, 0
"""
SEPARATE = ELIMINATION.replace("1 / self.eps)", "1 / self.eps, len(self.ActiveSet))")


@pytest.fixture
def adapters(monkeypatch, tmp_path):
    """The adapters as (adap_tt, dp_se), with a function that puts a text in place of each one's outside code."""
    monkeypatch.syspath_prepend(str(FOLDER))
    outside = importlib.import_module("outside_code")
    modules = importlib.import_module("adap_tt"), importlib.import_module("dp_se")

    def stand_in(module, text):
        clone = tmp_path / module.AUTHORS.repository.rpartition("/")[2] / module.AUTHORS.file
        clone.parent.mkdir(parents=True, exist_ok=True)
        clone.write_text(text)
        monkeypatch.setattr(outside, "PLACE", tmp_path)
        monkeypatch.setattr(module, "AUTHORS", module.AUTHORS._replace(digest=sha256(text.encode()).hexdigest()))

    return *modules, stand_in


def test_code_that_is_absent_or_another_version_is_refused_with_the_command_that_gets_it(adapters, tmp_path):
    adap_tt, _, stand_in = adapters
    stand_in(adap_tt, "x = 1")
    with pytest.raises(ValueError, match=r"must have SHA-256 0000, got [0-9a-f]{64}; get it with: git clone https"):
        adap_tt.AUTHORS._replace(digest="0000").load()
    with pytest.raises(FileNotFoundError, match=r"other.py is not there; get it with: git clone .* checkout c8d8be2"):
        adap_tt.AUTHORS._replace(file="other.py").load()
    assert adap_tt.AUTHORS.load()[0].x == 1


def test_outside_code_draws_from_what_it_is_handed_and_from_nothing_else(adapters):
    adap_tt, _, stand_in = adapters
    stand_in(adap_tt, "import numpy as np\ndraw = lambda: np.random.laplace(scale=3)\nother = lambda: np.random.normal()")
    module, handed = adap_tt.AUTHORS.load()
    handed.answer = 0.25
    assert module.draw() == 0.25
    assert handed.request == (3.0, True)
    with pytest.raises(AttributeError, match="normal"):
        module.other()
    with pytest.raises(ValueError, match="centered at 0, got location 1"):
        handed.laplace(1.0, 2.0)


def in_their_order(adap_tt, means, noise, coins):
    """Their loop, round by round, on arms that always pay their mean: (arms of ended episodes in turn, counts, best arm)."""
    module, handed = adap_tt.AUTHORS.load()
    handed.coins = iter(coins)
    test, ended = module.AdaPTopTwo({"K": len(means), "eps": 2.0, "beta": 0.5, "delta": 0.1}), []

    def update(arm):
        handed.answer = noise / test.ph_counts[arm]
        test.update(arm)
        ended.append(int(arm))

    for arm in range(len(means)):
        test.ph_counts[arm], test.ph_rewards[arm] = 1, means[arm]
        update(arm)
    while True:
        arm = test.select_arm()
        test.ph_counts[arm] += 1
        test.ph_rewards[arm] += means[arm]
        if test.doubled_counts(arm):
            update(arm)
            if test.check_stopping():
                return ended, test.counts, int(np.argmax(test.values))


def test_the_order_of_pulls_changes_no_episode_no_stop_and_no_recommendation(adapters):
    """Arms pay their mean and noise is one number, so both orders must agree exactly; three replicates toss other coins."""
    adap_tt, _, stand_in = adapters
    stand_in(adap_tt, TEST.replace("NOISE", "1"))
    means, keys = np.array([0.3, 0.7, 0.6]), np.array([0, 5, 9])
    algorithm = adap_tt.AdaPTT(3, 2.0, 0.1, coins=keys)
    ledger = LiveLedger(3, ConstantNoise(0.5), keeps_transcript=True)
    _, released = run(algorithm, RewardTable(np.tile(means, (400, 1)), UNIT), ledger)
    decided = algorithm.decide(released)
    for row, key in enumerate(keys):
        coins = adap_tt.uniform(key, np.arange(400)).tolist()
        ended, counts, best = in_their_order(adap_tt, means, 0.5 * 0.5, coins)
        assert decided.arm[row] == best
        assert decided.stopped[row] == counts.sum()
        np.testing.assert_array_equal(released.counts[row], counts)
        np.testing.assert_array_equal(released.phase[row], np.bincount(ended, minlength=3))
    assert len({tuple(row) for row in released.counts.tolist()}) > 1, "coins must matter"


@pytest.mark.parametrize(("noise", "paid"), [(1.0, 2.0), (0.5, 4.0)])
def test_the_ledger_charges_the_noise_that_the_code_asks_for(adapters, noise, paid):
    """eps is 2; code that asks for half of the noise pays twice as much, whatever it claims."""
    adap_tt, _, stand_in = adapters
    stand_in(adap_tt, TEST.replace("NOISE", str(noise)))
    ledger = LiveLedger(2, ReproducibleNoise(np.random.SeedSequence(1)))
    run(adap_tt.AdaPTT(2, 2.0), RewardTable(np.full((50, 2), 0.5), UNIT), ledger)
    assert account(ledger.worst_record()).epsilon == pytest.approx(paid)


def test_thresholds_are_named_and_rewards_lie_in_the_unit_range(adapters):
    adap_tt, dp_se, _ = adapters
    with pytest.raises(ValueError, match="threshold must be used, written, proved, got 'none'"):
        adap_tt.AdaPTT(2, 1.0, threshold="none")
    with pytest.raises(ValueError, match="noise must be used or separate, got 'none'"):
        dp_se.DPSE(2, 1.0, noise="none")
    for make in (adap_tt.AdaPTT, dp_se.DPSE):
        with pytest.raises(ValueError, match=r"reward_range must be \[0, 1\]"):
            make(2, 1.0, reward_range=Interval(0.0, 2.0))
    assert [adap_tt.episode(n) for n in (1, 2, 4, 8)] == [2, 3, 4, 5]


@pytest.mark.parametrize(("text", "noise", "epsilon"), [
    (ELIMINATION, "used", math.inf), (ELIMINATION, "separate", 1.0), (SEPARATE, "used", 1.0),
])  # fmt: skip
def test_one_number_for_all_arms_shows_exact_differences(adapters, text, noise, epsilon):
    """The ledger is infinite where the code asks for one number; eliminations are as by hand on arms that pay their mean.

    Means 0.9, 0.8, 0.5 and 0.2, noise 1 on sums: epochs of 2, 4 and 8 pulls, and with one number arms 2 and 3 go after the
    first; so do they with a constant number for each arm.
    """
    _, dp_se, stand_in = adapters
    stand_in(dp_se, text)
    ledger = LiveLedger(2, ConstantNoise(1.0))
    algorithm = dp_se.DPSE(4, 1.0, noise=noise)
    _, released = run(algorithm, RewardTable(np.tile([0.9, 0.8, 0.5, 0.2], (20, 1)), UNIT), ledger)
    assert released.active.tolist() == [[True, True, False, False]] * 2
    assert released.epoch.tolist() == [3, 3]
    assert released.clock.tolist() == [20 - 4 * 2 - 2 * 4] * 2
    spent = account(ledger.worst_record())
    assert getattr(spent, "epsilon", math.inf) == pytest.approx(epsilon)


def cloned(module):
    path = importlib.import_module("outside_code").PLACE / module.AUTHORS.repository.rpartition("/")[2]
    if not path.is_dir():
        pytest.skip(f"{path} is not cloned")


@pytest.mark.slow
def test_the_authors_of_adap_tt_stop_when_the_row_says(adapters):
    """Their own loop and generator beside the row: means of 60 stopping times within 5 standard errors."""
    adap_tt, _, _ = adapters
    cloned(adap_tt)
    means = [0.8, 0.4, 0.3]
    theirs, pulls, _ = importlib.import_module("adap_tt_play").ended(means, 1.0, 60, 1).T
    assert (pulls > theirs).mean() > 0.9, "what they return leaves out pulls of open episodes"
    ours = adap_tt.AdaPTT(3, 1.0, coins=np.arange(60))
    ledger = LiveLedger(60, ReproducibleNoise(np.random.SeedSequence(2)))
    _, released = run(ours, BernoulliArms(means, 100_000, np.random.SeedSequence(3)), ledger)
    assert (released.stopped > 0).all()
    error = math.sqrt((theirs.var() + released.stopped.var()) / 60)
    assert abs(theirs.mean() - released.stopped.mean()) < 5 * error


@pytest.mark.slow
def test_one_reward_decides_what_the_public_dp_se_plays_next(adapters):
    _, dp_se, _ = adapters
    cloned(dp_se)
    code = importlib.import_module("dp_se_play")
    last = {zeros: {int(code.play(code.edge(zeros), seed)[-1]) for seed in range(10)} for zeros in (50, 51)}
    assert last == {50: {0}, 51: {1}}
