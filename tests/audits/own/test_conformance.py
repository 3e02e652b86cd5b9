"""Strangers' algorithms: what breaks the protocol, or draws its own randomness, is told and not audited."""

import os
from dataclasses import dataclass

import numpy as np
import pytest
from own_cases import ROOT, UNIT, EveryRound, example

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb
from bandana.algorithms.environments.tables import random_table
from bandana.audits.own.conformance import ProtocolError, check, draws, missing_members
from bandana.privacy_core import FactorizedSum, Gaussian, LocalSum, Relation, TreeSum

GAUSSIAN = Gaussian(1.0, 1.0, Relation.REPLACE_REWARD)
TABLE = random_table(16, 2, UNIT, 0)
Bandit = example("own_bandit").EpisodicGreedy


@pytest.mark.parametrize(
    "algorithm",
    [
        Bandit(), Bandit(length=3), adar_ucb(2, 2.0, 1.0, 3.1, UNIT, "tight"), EveryRound(LocalSum(GAUSSIAN)),
        EveryRound(TreeSum(GAUSSIAN, 16)), EveryRound(FactorizedSum(GAUSSIAN, n_steps=16)), example("broken_bandit").bandit,
    ],
    ids=lambda a: type(a).__name__,
)  # fmt: skip
def test_algorithms_that_keep_the_protocol_are_accepted(algorithm):
    check(algorithm, TABLE, 0)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import numpy as np\n\nz = np.random.normal()", 3),
        ("import numpy as np\nr = np.random.default_rng()", 2),
        ("import random", 1),
        ("x = 1\nimport secrets", 2),
        ("from numpy.random import default_rng", 1),
        ("from numpy import random", 1),
        ("import numpy.random as r", 1),
        ("import os\nos.urandom(8)", 2),
        ("from os import urandom", 1),
        ("from scipy.stats import norm", 1),
        ("from bandana.privacy_core import ReproducibleNoise", 1),
        ("def f(bits):\n    return Generator(bits)", 2),
        ("class A:\n    def act(self):\n        import random", 3),
    ],
)
def test_randomness_is_found_with_its_line(source, line):
    found = draws(source)
    assert found
    assert found[0].line == line
    assert found[0].what in source.replace("\n", " ") or found[0].what.startswith("from")


def test_what_is_no_randomness_is_not_taken_for_it():
    clean = "import numpy as np\nfrom numpy.typing import NDArray\nrandomized = ledger.release(np.zeros(3))\nrandom = 3"
    assert draws(clean) == []
    assert draws("if __name__ == '__main__':\n    import random") == []
    assert draws((ROOT / "examples" / "own_bandit.py").read_text()) == []
    assert draws((ROOT / "examples" / "black_box.py").read_text())


def test_missing_members_are_listed_with_their_form():
    class Half:
        n_actions = 2

        def init(self, n_reps):
            return None, None

        hold = 3

    lacks = missing_members(Half())
    assert [text.split(":")[0] for text in lacks] == ["reward_range", "act", "hold", "absorb"]
    with pytest.raises(ProtocolError, match=r"missing are\n.*\n  act: act\(released, context, step\)"):
        check(Half(), TABLE, 0)


def _bandit(**methods):
    return dataclass(frozen=True)(type("Changed", (Bandit,), methods))()


def _unseeded(self, released, context, step):
    return np.frombuffer(os.urandom(8 * len(released.clock)), dtype=np.uint64).astype(np.int64) % 2


_COUNT = [0]


def _remembering(self, released, context, step):
    _COUNT[0] += 1
    return np.full(len(released.clock), int(_COUNT[0] % 3 == 0))


def _mixing(self, released, context, step):
    return np.full(len(released.clock), int(released.total.sum() > 4.5))


def _too_long(self, released, actions):
    return np.full(len(actions), 7)


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        (_bandit(act=_unseeded), "two runs with the same noise from the ledger differ"),
        (_bandit(act=_remembering), "two runs with the same noise from the ledger differ"),
        (_bandit(act=_mixing), "plays other actions than alone"),
        (_bandit(hold=_too_long), "hold promises that act keeps its answer"),
        (_bandit(act=lambda self, *_: 0), r"act must answer an array of whole numbers of shape \(4,\), got shape \(\)"),
        (_bandit(act=lambda self, released, *_: released.clock * 0.0), "act must answer .* of float64"),
        (_bandit(act=lambda self, released, *_: released.clock * 0 + 2), r"act must answer actions in \[0, 2\), got \[2, 2"),
        (_bandit(hold=lambda self, released, _: released.clock * 0), "hold must answer at least 1 round"),
        (_bandit(init=lambda self, n_reps: None), "init must return the sensitive and the released state, got NoneType"),
        (_bandit(absorb=lambda self, *_: 1), "absorb must return the sensitive and the released state, got int"),
        (Bandit(n_actions=3), "n_actions is 3, but it plays a table of 2 arms"),
        (Bandit(n_actions=1), "n_actions must be a whole number of at least 2"),
        (Bandit(reward_range=(0, 1)), "reward_range must be a bandana.privacy_core.Interval"),
    ],
)
def test_what_breaks_the_protocol_is_told(algorithm, message):
    with pytest.raises(ProtocolError, match=message):
        check(algorithm, TABLE, 0)


def test_a_release_of_the_wrong_shape_is_told():
    def absorb(self, sensitive, released, record, ledger):
        ledger.release(self.sums.mechanism, np.zeros(1), records=None, reps=None)

    with pytest.raises(ProtocolError, match="a release to 4 replicates needs a value with as many rows"):
        check(_bandit(absorb=absorb), TABLE, 0)


def test_a_mechanism_that_is_none_is_told_with_what_it_lacks():
    class OnlyDraws:
        scale = sensitivity = 1.0

        def draw(self, noise, value):
            return value

    with pytest.raises(ProtocolError, match="OnlyDraws is no mechanism; it lacks relation, norm, deviation, event, whiten"):
        check(EveryRound(LocalSum(OnlyDraws())), TABLE, 0)
