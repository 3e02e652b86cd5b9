"""Audits on two data sets that the claim names: bandits by their releases or their actions, and any other release.

Seeds are fixed. An honest subject would be refuted by another seed with probability at most 0.05.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[5] / "examples"))

import black_box
import broken_bandit
import broken_thompson
import own_bandit

from bandana.audits.claims import ClaimError, split_pair
from bandana.flows.annexes.anything.pairs.release import draw, examine
from bandana.flows.annexes.anything.pairs.subject import NoTables, prepared
from bandana.privacy_core import GaussianDP, Interval, PureDP
from bandana.testing import SuiteBudget, assert_private

UNIT = Interval(0.0, 1.0)


def table(*records):
    rewards = np.zeros((32, 2))
    rewards[list(records)] = 1.0
    return rewards


def audited(subject, claim, data, neighbor, n_runs=8000):
    ready = prepared(subject, data, neighbor, UNIT, 0)
    return examine(draw(ready.caller, ready.data, ready.neighbor, n_runs, 0, 60.0), claim)


@pytest.mark.parametrize(
    ("text", "rest", "pair"),
    [
        ("gdp(mu=1, pair=(a.npy, b.npy))", "gdp(mu=1, relation=pair)", ("a.npy", "b.npy")),
        ("pure(epsilon=1, pair=([1, 0], [(1, 2), 1]), trust=joint)", "pure(epsilon=1, relation=pair, trust=joint)",
         ("[1, 0]", "[(1, 2), 1]")),
        ("gdp(mu=1, relation=reward)", "gdp(mu=1, relation=reward)", None),
    ],
)  # fmt: skip
def test_a_claim_names_its_pair(text, rest, pair):
    assert split_pair(text) == (rest, pair)


@pytest.mark.parametrize(
    "text",
    ["gdp(mu=1, pair=(a.npy))", "gdp(mu=1, pair=(a, b, c))", "gdp(mu=1, pair=(a, ))",
     "gdp(mu=1, pair=(a, b), relation=reward)", "gdp(mu=1, pair=(a, b), pair=(a, b))"],
)  # fmt: skip
def test_what_is_no_pair_is_refused(text):
    with pytest.raises(ClaimError, match="pair"):
        split_pair(text)


def test_an_algorithm_is_measured_by_its_releases():
    assert 0.9 < audited(own_bandit.bandit, GaussianDP(1.0), table(), table(5)).measured <= 1.0


def test_two_records_of_one_episode_cost_twice_as_much():
    """Both rewards enter one sum of noise 1: mu is 2, and a claim of 1 for this pair is false."""
    assert 1.8 < audited(own_bandit.bandit, GaussianDP(1.0), table(), table(5, 6)).measured <= 2.0


@pytest.mark.parametrize("subject", [broken_bandit.bandit, broken_thompson.bandit, black_box.leaky])
def test_broken_bandits_fail_on_a_pair(subject):
    assert audited(subject, GaussianDP(1.0), table(), table(5)).verdict == "FAIL"


def test_a_function_of_many_runs_shows_its_actions():
    outcome = audited(black_box.play, GaussianDP(1.0), table(), table(5))
    assert outcome.verdict == "NOT REFUTED"
    assert outcome.n_values == 32


def test_a_table_that_is_no_bandits_data_is_a_release():
    def column_sums(data, seed):
        return data.sum(axis=0) + np.random.default_rng(seed).laplace(0, 0.2, size=data.shape[1])

    outcome = audited(column_sums, PureDP(1.0), table(), table(5))
    assert outcome.verdict == "FAIL"
    assert outcome.n_values == 2


@pytest.mark.parametrize(
    ("data", "neighbor", "words"),
    [
        (table(), table()[:-1], r"got \(32, 2\) and \(31, 2\)"),
        (np.zeros((8, 3)), np.ones((8, 3)), "3 arms, the algorithm 2"),
        ([1, 2], [1, 3], "two tables of rewards"),
        (np.full((8, 2), np.nan), np.zeros((8, 2)), "finite"),
    ],
)
def test_an_algorithm_needs_two_tables_of_its_arms(data, neighbor, words):
    with pytest.raises(NoTables, match=words):
        prepared(own_bandit.bandit, data, neighbor, UNIT, 0)


def test_an_algorithm_is_asserted_to_be_private():
    assert_private(own_bandit.bandit, table(), table(5), "gdp(mu=1)", runs=2048, budget=SuiteBudget())
    with pytest.raises(AssertionError, match=r"FAIL +.*claimed mu = 0.5, found >= 0\.[5-9]"):
        assert_private(own_bandit.bandit, table(), table(5), "gdp(mu=0.5)", budget=SuiteBudget())
