"""Claims on users: all rewards of one user replaced, for algorithms and functions; what is tried, and what it shows.

Seeds are fixed. A bound on an honest subject exceeds its claim with probability at most 0.05.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[5] / "examples"))

import black_box
import own_bandit

import bandana
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, Caller
from bandana.flows.annexes.anything.pairs.neighbors import MOST, base_tables, replaced_users, users_of
from bandana.flows.annexes.anything.pairs.subject import NoTables, Subject
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
IN_TURN = [t % 4 for t in range(16)]


@pytest.mark.parametrize(
    ("given", "users"), [(2, [0, 0, 1, 1, 2]), (list("abacb"), list("abacb")), (np.arange(5), [0, 1, 2, 3, 4])]
)  # fmt: skip
def test_users_are_given_or_consecutive(given, users):
    assert users_of(given, 5) == users


@pytest.mark.parametrize("given", [0, 6, True, 1.5, "abc", [1, 2], [[1], [2], [3], [4], [5]], {"a": 1}])
def test_what_names_no_user_for_each_round_is_refused(given):
    with pytest.raises(BrokenSubject, match=r"^users: "):
        users_of(given, 5)


def tried(users, bases=None, **options):
    """What is tried; each with its tables in place of data and neighbor."""
    bases = bases or base_tables((len(users), 2), UNIT, 0)
    against = lambda tables: Subject(Caller(print), *tables)  # noqa: E731
    return replaced_users(against, bases, users, UNIT, 0, **{"goes_outside": False, **options})


def test_tables_differ_in_all_rounds_of_one_user_and_in_no_other():
    found = tried(["a", "b", "a", "c", "b"])
    assert found.words == "all rewards of each of 3 users replaced"
    differ = [(one.data.rewards != one.neighbor.rewards).all(axis=1).tolist() for one in found.subjects]
    assert [1, 0, 1, 0, 0] in differ
    assert sorted(map(sum, differ)) == [1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]
    for one, is_changed in zip(found.subjects, differ, strict=True):
        kept = ~np.array(is_changed)
        assert (one.data.rewards[kept] == one.neighbor.rewards[kept]).all()
    assert "user 'a', 2 rounds: every reward 0 becomes 1; all other rewards drawn" in {one.words for one in found.subjects}


def test_rewards_of_the_largest_user_go_far_outside_where_that_is_allowed():
    (*_, last) = [one for one in tried(["a", "b", "b"], goes_outside=True).subjects if "becomes 5" in one.words]
    assert last.words == "user 'b', 2 rounds: every reward 0 becomes 5; all other rewards 0"
    assert last.neighbor.rewards[1:].tolist() == [[5, 5], [5, 5]]
    assert last.neighbor.reward_range == Interval(0.0, 5.0)


def test_of_many_users_some_are_drawn():
    found = tried(list(range(100)))
    assert len(found.subjects) == 4 * MOST
    assert found.words == f"all rewards of {MOST} of 100 users replaced"


def test_users_are_replaced_in_the_given_table():
    table = np.random.default_rng(0).random((4, 2))
    alike, apart, *_ = tried([0, 0, 1, 1], base_tables((4, 2), UNIT, 0, table)).subjects
    np.testing.assert_allclose(alike.data.rewards[2:], table[2:], rtol=1e-6)
    assert alike.neighbor.rewards[:2].tolist() == [[1, 1], [1, 1]]
    assert apart.data.rewards[:2].tolist() == [[0, 1], [0, 1]]
    assert apart.neighbor.rewards[:2].tolist() == [[1, 0], [1, 0]]
    with pytest.raises(NoTables, match="must have 4 rounds and 3 arms"):
        base_tables((4, 3), UNIT, 0, table)


def audit(subject, claim, users, **options):
    given = {"replays": 2000, "rounds": 16, "isolated": False, **options}
    return bandana.audit(subject, f"{claim[:-1]}, relation=user)", users=users, **given)


def test_an_algorithm_that_is_private_for_rewards_is_not_for_users():
    """Four rewards of one sum: mu is 4; four of different sums, 2."""
    alike = audit(own_bandit.bandit, "gdp(mu=1)", 4)
    assert alike.verdict == "FAIL"
    assert 3.2 < alike.numbers["mu"].measured < 4
    assert "covers all rewards of each of 4 users replaced" in alike.text()
    apart = audit(own_bandit.bandit, "gdp(mu=2)", IN_TURN)
    assert apart.verdict == "NOT REFUTED"
    assert 1.6 < apart.numbers["mu"].measured < 2


def test_a_function_is_audited_by_its_actions():
    assert audit(black_box.leaky, "gdp(mu=2)", IN_TURN).verdict == "FAIL"
    assert audit(black_box.play, "gdp(mu=2)", IN_TURN).verdict == "NOT REFUTED"


def test_a_function_of_one_run_is_audited_too():
    def play(rewards, seed):
        return black_box.play(rewards[None], seed)[0]

    assert audit(play, "gdp(mu=2)", IN_TURN, replays=1000).verdict == "NOT REFUTED"


def test_users_of_given_data_are_replaced():
    data = np.random.default_rng(0).random((12, 2))
    found = audit(own_bandit.bandit, "gdp(mu=1)", 4, data=data)
    assert found.verdict == "FAIL"
    assert "all other rewards as given" in found.text()
    assert found.outcome.about.table.startswith("12 rounds x 2 arms")


@pytest.mark.parametrize(
    ("claim", "options", "said"),
    [
        ("gdp(mu=1, relation=user)", {}, "users: relation=user needs whose each round is"),
        ("gdp(mu=1, relation=reward)", {"users": 4}, "users: only with relation=user"),
        ("gdp(mu=1, relation=reward)", {"data": [[0, 1]] * 16}, "data: only with relation=user"),
        ("gdp(mu=1, relation=user)", {"users": [1, 2]}, "users: one for each of 16 records must be given, got 2"),
        ("gdp(mu=1, relation=user)", {"users": 4, "probes": [3]}, "probe: not with relation=user"),
        ("gdp(mu=1, relation=user)", {"users": 4, "pair": ([[0, 1]] * 16, [[1, 1]] * 16)}, "the pair is the relation"),
        ("gdp(mu=1, relation=user, trust=local)", {"users": 4}, "local"),
        ("gdp(mu=1, relation=user)", {"users": 4, "data": np.zeros((16, 3))}, "data: must have 16 rounds and 2 arms"),
    ],
)
def test_what_does_not_fit_is_refused(claim, options, said):
    with pytest.raises(bandana.SpecError, match=said):
        bandana.audit(black_box.play, claim, rounds=16, isolated=False, **options)


def test_episodes_of_a_user_are_refused_before_any_work():
    class Episodes:
        episode_length, n_states, n_actions, reward_range = 2, 3, 2, UNIT

        def init(self, n_reps): ...
        def act(self, released, context, step): ...
        def hold(self, released, actions): ...
        def absorb(self, sensitive, released, record, ledger): ...

    with pytest.raises(bandana.SpecError, match="plays episodes, and no search replays all episodes of one user"):
        audit(Episodes(), "gdp(mu=1)", 4)


def test_a_function_that_fails_says_so():
    def fails(rewards, seed):
        raise RuntimeError("no rewards wanted")

    with pytest.raises((bandana.SpecError, BrokenSubject, RuntimeError), match="no rewards wanted"):
        audit(fails, "gdp(mu=1)", 4)
