"""A museum of plain functions whose generators rewards seed, and of their honest twins.

No replay can tell these apart, as noise from another generator is as good as fresh; seeds that are compared can. Nothing
here is left to chance but the bounds of whole audits, which fail an honest function with probability at most 0.05; seeds are
fixed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from nightly import first
from seeded import BROKEN, HONEST, by_arm, each_run

from bandana.flows.annexes.anything.files import FUNCTION, Loaded
from bandana.flows.annexes.anything.functions.drawn import Menu
from bandana.flows.annexes.anything.functions.plays import adapted
from bandana.flows.annexes.anything.own import Request, audit_own
from bandana.flows.annexes.anything.pairs.coupling import compare_plays, is_telling
from bandana.privacy_core import Interval
from bandana.testing import SuiteBudget, assert_private

pytestmark = pytest.mark.usefixtures("few_first_calls")
UNIT, SHAPE, CLAIM = Interval(0.0, 1.0), (32, 2), "gdp(mu=1, relation=reward)"


def coupling(function, seed=0):
    return compare_plays(adapted(function, SHAPE, UNIT), Menu.of(UNIT), SHAPE, seed)


@pytest.mark.parametrize("seed", first(1, range(2)))
@pytest.mark.parametrize("name", BROKEN)
def test_generators_that_rewards_seed_are_found(name, seed):
    assert "seeds another generator on a neighbor that differs in record" in coupling(BROKEN[name], seed).finding


@pytest.mark.parametrize("seed", first(1, range(2)))
@pytest.mark.parametrize("name", HONEST)
def test_generators_that_the_seed_seeds_are_not(name, seed):
    found = coupling(HONEST[name], seed)
    assert not found.finding
    assert found.n_seen


def test_generators_of_one_arm_each_are_seeded_otherwise_after_another_action():
    """What the search must not compare: without its rule, the honest twin would be told."""
    seeds = []
    rewards = np.zeros(SHAPE)
    for paid in (0.0, 1.0):
        rewards[:4] = paid
        seen = []
        noise = by_arm(rewards, [0, 0])
        each_run(lambda row, seed, noise=noise, seen=seen: lambda *given: seen.append(given[:2]) or noise(*given))(
            rewards[None], 0
        )
        seeds.append(set(seen))
    assert seeds[0] - seeds[1]
    assert seeds[1] - seeds[0]


@pytest.mark.parametrize(
    ("data", "neighbor", "expected"),
    [
        ([0, 1, 0, 1], [0, 1, 0, 1], True),
        ([0, 1, 0, 1], [0, 1, 0, 0], False),
        ([0, 1, 0, 1], [0, 1, 1, 1], False),
        ([0, 1, 0, 1], [0, 0, 0, 1], True),
        ([0, 1, 0, 1], [1, 1, 1, 1], True),
    ],
)
def test_seeds_are_compared_where_no_action_explains_them(data, neighbor, expected):
    assert is_telling(np.array(data), np.array(neighbor), 1) is expected


def test_a_run_that_fails_is_not_compared():
    def fails(rewards, seed):
        raise RuntimeError("always")

    assert compare_plays(fails, Menu.of(UNIT), SHAPE, 0).n_seen == 0


def table(rows=()):
    rewards = np.zeros(SHAPE)
    rewards[list(rows)] = 1.0
    return rewards


@pytest.mark.parametrize("name", ["all rewards", "the total", "Python's generator, one run", "a stream"])
def test_a_test_fails_where_the_data_seed_the_noise(name):
    with pytest.raises(AssertionError, match=r"(?s)^INCONCLUSIVE .*its noise depends on the data"):
        assert_private(BROKEN[name], table(), table([5]), "gdp(mu=1)", runs=1024, budget=SuiteBudget())


def test_a_test_holds_for_the_honest_twin():
    """A bound on an honest function exceeds the claim with probability at most 0.025."""
    honest = HONEST["a stream"]
    outcome = assert_private(honest, table(), table([5]), "gdp(mu=1)", runs=1024, budget=SuiteBudget())
    assert str(outcome).startswith("NOT REFUTED ")


def audited(function, **options):
    loaded = Loaded(FUNCTION, function, Path("seeded.py"), "subject", "")
    return audit_own(Request("seeded.py:subject", CLAIM, **options), loaded)[1]


def test_an_audit_of_a_function_says_that_its_rewards_seed_its_noise():
    outcome = audited(BROKEN["a stream"], replays=1000, rounds=20)
    assert outcome.verdict.value == "INCONCLUSIVE"
    assert any("its noise depends on the data" in reason for reason in outcome.reasons)


def test_an_audit_says_that_it_compared_seeds():
    outcome = audited(HONEST["a stream"], replays=1000, rounds=20)
    assert not any("its noise depends" in reason for reason in outcome.reasons)
    assert "actions, seeds of generators" in outcome.coverage.lines()[1]


@pytest.mark.nightly
@pytest.mark.parametrize("name", BROKEN)
def test_no_broken_function_is_accepted(name):
    """In `make test`: `test_an_audit_of_a_function_says_that_its_rewards_seed_its_noise`."""
    assert audited(BROKEN[name], replays=4000).verdict.value in ("FAIL", "INCONCLUSIVE")


@pytest.mark.nightly
@pytest.mark.parametrize("name", HONEST)
def test_no_honest_function_fails(name):
    """In `make test`: `test_an_audit_says_that_it_compared_seeds`."""
    outcome = audited(HONEST[name], replays=4000)
    assert outcome.verdict.value != "FAIL", outcome.reasons
