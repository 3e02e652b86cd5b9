"""Environments of a spec: what benchmarks play on, what audits replay, and what both are described as."""

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from small_spec import SMALL_LINEAR, SMALL_SPHERE

from bandana.algorithms.observers import ContextualRegretCurve, RegretCurve
from bandana.algorithms.run import run
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.problems.kinds import environment_of, environments_of
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

GIVEN = {"kind": "linear", "features": [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], "theta": [0.5, -0.5]}
DRAWN = {"kind": "linear", "arms": 5, "dimension": 3, "low": -1.0, "high": 3.0, "rewards": "uniform"}
SPHERE = {"kind": "sphere", "actions": 4, "dimension": 3}
FIXED = SPHERE | {"kind": "fixed-sphere"}
RANDHIE, DIGITS = {"kind": "randhie"}, {"kind": "digits", "projected": 4}
KINDS = {"given": GIVEN, "drawn": DRAWN, "sphere": SPHERE, "fixed": FIXED, "randhie": RANDHIE, "digits": DIGITS}
CONTEXTUAL = ("sphere", "fixed", "fixed-sphere", "randhie", "digits")
ROUNDS, HORIZON = 40, 60
each = pytest.mark.parametrize("name", list(KINDS))


def spec_of(environment, **changes):
    contextual = environment["kind"] in CONTEXTUAL
    tree = yaml.safe_load(SMALL_SPHERE if contextual else SMALL_LINEAR)
    tree |= {"environment": environment, "horizon": HORIZON, "audit": {"rounds": ROUNDS, "replays": 1000}} | changes
    return parse_spec(yaml.safe_dump(tree), "spec.yaml", Path())


def built(environment, **changes):
    return environments_of(spec_of(environment, **changes))[0]


def seed(n):
    return np.random.SeedSequence(n)


def rewards_of(environment, n):
    stream, rewards = environment.stream(seed(n)), []
    for user in range(HORIZON):
        where = np.array([user])
        if hasattr(stream, "contexts"):
            stream.contexts(where)
        rewards.append(float(stream.respond(where, np.array([1]), np.array([user % environment.n_actions]))[0]))
    return rewards


@each
def test_algorithms_are_told_what_is_public_and_play_on_it(name):
    environment = built(KINDS[name])
    problem, stream = environment.problem(HORIZON), environment.stream(seed(1))
    assert problem.kind == environment.kind == ("contextual" if name in CONTEXTUAL else "linear")
    assert problem.n_actions == environment.n_actions == len(environment.names) == stream.n_actions
    assert problem.reward_range == environment.reward_range == stream.reward_range
    assert problem.horizon == HORIZON <= stream.n_users
    assert all(
        environment.reward_range.low <= reward <= environment.reward_range.high for reward in rewards_of(environment, 1)
    )
    if name in CONTEXTUAL:
        assert problem.features is None
        assert problem.dimension == stream.context_dimension
    else:
        assert problem.dimension is None
        np.testing.assert_array_equal(problem.features, stream.features)


@each
def test_regret_is_counted_by_what_the_actions_are(name):
    environment, grid = built(KINDS[name]), np.array([1, 10, HORIZON])
    stream = environment.stream(seed(1))
    regret = environment.regret(stream, grid, 4)
    assert isinstance(regret, ContextualRegretCurve if name in CONTEXTUAL else RegretCurve)
    (cell, *_) = cells_of(spec_of(KINDS[name]))
    run(cell.algorithm(), stream, LiveLedger(4, ReproducibleNoise(seed(2))), horizon=HORIZON, observers=[regret])
    assert regret.curve.shape == (4, 3)
    assert (regret.curve[:, 0] >= 0).all()
    assert (np.diff(regret.curve, axis=1) >= 0).all()
    assert regret.curve[:, -1].max() > 0


@each
def test_audits_replay_a_table_that_depends_on_the_spec_s_seed_alone(name):
    table = built(KINDS[name]).audit_table()
    assert table.n_users == ROUNDS
    assert table.n_actions == built(KINDS[name]).n_actions
    assert table.reward_range == built(KINDS[name]).reward_range
    again, longer, other = (
        built(KINDS[name], **changes).audit_table() for changes in ({}, {"horizon": HORIZON + 20}, {"seed": 8})
    )
    for same in (again, longer):
        np.testing.assert_array_equal(table.rewards, same.rewards)
    assert (table.rewards != other.rewards).any()
    if name in CONTEXTUAL:
        np.testing.assert_array_equal(table.features, again.features)
        assert table.features.shape == (ROUNDS, table.n_actions, built(KINDS[name]).dimension)
        assert (table.features != other.features).any()


def test_audits_of_drawn_rewards_replay_both_ends_of_the_range():
    for name in ("given", "drawn", "sphere"):
        environment = built(KINDS[name])
        ends = environment.reward_range
        assert set(np.unique(environment.audit_table().rewards)) == {ends.low, ends.high}


@each
def test_a_seed_gives_the_same_rewards_and_another_one_others(name):
    environment = built(KINDS[name])
    assert rewards_of(environment, 1) == rewards_of(environment, 1) == rewards_of(built(KINDS[name]), 1)
    if name in ("randhie", "digits"):
        assert rewards_of(environment, 1) == rewards_of(environment, 2), "the people are the same in all blocks"
    else:
        assert rewards_of(environment, 1) != rewards_of(environment, 2)


def test_what_is_unknown_is_the_same_in_all_blocks_and_follows_the_spec_s_seed():
    for environment in (DRAWN, SPHERE):
        one, other = (built(environment).stream(seed(n)).theta for n in (1, 2))
        np.testing.assert_array_equal(one, other)
        assert (built(environment, seed=8).stream(seed(1)).theta != one).all()
    one, other = (built(DRAWN).stream(seed(n)).features for n in (1, 2))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, built(DRAWN).arms.features)
    assert (built(DRAWN, seed=8).arms.features != one).all()
    assert np.linalg.norm(one, axis=1) == pytest.approx(np.ones(5))


def test_a_drawn_parameter_has_the_norm_that_is_asked_for():
    for signal in (0.1, 0.8, 1.0):
        lines = built(DRAWN | {"signal": signal})
        assert np.linalg.norm(lines.arms.theta) == pytest.approx(signal)
        sphere = built(SPHERE | {"signal": signal, "low": 0.0, "high": 4.0})
        assert np.linalg.norm(sphere.stream(seed(0)).theta) == pytest.approx(2 * signal)


def test_no_bound_of_linear_means_is_shown_where_means_bend():
    bent = built(FIXED | {"bend": 1, "signal": 0.6})
    assert (bent.is_drawn, bent.bounds_everyone, built(FIXED).is_drawn) == (False, False, True)
    assert "m - 1 m^2 / h" not in built(FIXED).describe()["description"]
    assert "plus m = <theta, vector> - 1 m^2 / h" in bent.describe()["description"]
    assert not {"bend", "dropout"} & built(FIXED).facts().keys(), "seeds of results that were there before stay"
    assert bent.facts()["bend"] == 1
    for environment, message in (
        (SPHERE | {"bend": 1, "signal": 0.1}, "bend is for actions that all users share"),
        (FIXED | {"bend": 1}, r"theta has norm 0\.8; .* at most 0\.618"),
        (FIXED | {"theta": [1.0, 0.1, 0.0]}, r"theta must have norm at most 1, half the width of the range, got 1\.00499"),
    ):
        with pytest.raises(SpecError, match=message):
            spec_of(environment)


def test_only_the_algorithm_that_knows_of_dropouts_plays_where_there_are_any():
    private = {"all": "private", "mu": 1, "calibrations": "tight", "only": ["linucb-batched"]}
    some = spec_of(FIXED | {"dropout": 0.5}, algorithms=[{"all": "non-private", "only": ["linucb-batched"]}, private])
    assert environments_of(some)[0].problem(60).dropout == 0.5
    assert "a share of 0.5 of users, evenly spaced, does not answer" in environments_of(some)[0].describe()["description"]
    cells = Plan.of(some).played
    assert {cell.entry.name for cell in cells} == {"linucb-batched", "uniform play"}, "greedy would learn from the silent"
    for cell in cells:
        if cell.entry.name == "linucb-batched":
            assert cell.algorithm().n_silent == cell.algorithm().batch // 2
            assert cell.regret_bound(np.array([60])) is None
    assert cells_of(spec_of(FIXED, algorithms=[private]))[0].algorithm().n_silent == 0
    with pytest.raises(SpecError, match="dropout: linucb does not know who answers"):
        cells_of(spec_of(FIXED | {"dropout": 0.5}, algorithms=[{"algorithm": "linucb", "model": "none"}]))


def test_means_are_the_middle_plus_half_the_width_times_the_product():
    environment = built(GIVEN | {"low": 1.0, "high": 5.0})
    assert environment.reward_range == Interval(1.0, 5.0)
    assert environment.means == pytest.approx([3 + 2 * 0.5, 3 - 2 * 0.5, 3.0])
    assert environment.describe()["means"] == pytest.approx([4.0, 2.0, 3.0])


@each
def test_the_description_says_what_it_is(name):
    shown = built(KINDS[name]).describe()
    assert shown["label"] == shown["name"] == KINDS[name]["kind"]
    assert shown["horizon"] == HORIZON
    assert len(shown["actions"]) == built(KINDS[name]).n_actions
    assert shown["description"].endswith(".")
    assert shown["estimator"].startswith("Regret is")
    assert len(shown["means"]) == (0 if name in CONTEXTUAL else len(shown["actions"]))
    said = re.search(r"Assumption 2 (holds|does not hold): least eigenvalue", shown["description"])
    assert (said is not None) == (name in CONTEXTUAL)


def test_the_description_tells_drawn_arms_from_given_ones():
    assert "3 arms with known features in 2 dimensions, given" in built(GIVEN).describe()["description"]
    assert "5 arms with known features in 3 dimensions, drawn" in built(DRAWN).describe()["description"]
    assert "projected to 4 dimensions" in built(DIGITS).describe()["description"]


TOO_MANY = [
    (RANDHIE, {"horizon": 20191}, "horizon: randhie has 20190 users, got 20191"),
    (RANDHIE, {"audit": {"rounds": 20191}}, "audit.rounds: randhie has 20190 users, got 20191"),
    (DIGITS, {"horizon": 1798}, "horizon: digits has 1797 users, got 1798"),
    (DIGITS, {"audit": {"rounds": 1798}}, "audit.rounds: digits has 1797 users, got 1798"),
    (DIGITS | {"label": "numbers"}, {"horizon": 5000}, "horizon: numbers has 1797 users, got 5000"),
]


@pytest.mark.parametrize(("environment", "changes", "message"), TOO_MANY)
def test_more_users_than_there_are_is_told_before_anything_starts(environment, changes, message):
    spec = spec_of(environment, **changes)
    for begin in (lambda: environments_of(spec)[0].check(), lambda: cells_of(spec)):
        with pytest.raises(SpecError, match=f"^{re.escape(message)}$"):
            begin()


@pytest.mark.parametrize(("theta", "is_right"), [([0.6, 0.0, 0.8], True), ([0.6, 0.1, 0.8], False)])
def test_a_parameter_of_drawn_arms_is_of_norm_1_at_most(theta, is_right):
    """Arms are unit vectors: a longer one would leave the reward range."""
    if is_right:
        assert spec_of(DRAWN | {"theta": theta}).environment[0].theta == theta
        return
    with pytest.raises(SpecError, match=r"theta must have norm at most 1 where arms are drawn, got 1\.00499"):
        spec_of(DRAWN | {"theta": theta})


def test_all_users_that_there_are_can_be_played():
    for environment, n in ((RANDHIE, 20190), (DIGITS, 1797)):
        spec = spec_of(environment, horizon=n, audit={"rounds": 1797})
        environments_of(spec)[0].check()
        assert environments_of(spec)[0].table.n_users == n


@each
def test_a_worker_reads_its_own_data(name):
    environment = built(KINDS[name])
    environment.describe()
    packed = pickle.dumps(environment)
    assert len(packed) < 6000
    again = pickle.loads(packed)
    assert again.describe() == environment.describe()
    assert rewards_of(again, 3) == rewards_of(environment, 3)


@each
def test_every_algorithm_of_the_kind_plays_and_its_blocks_repeat(name, tmp_path):
    spec = spec_of(KINDS[name], replications=2, horizon=ROUNDS)
    for cell in cells_of(spec):
        (block,) = cell.blocks()
        one, described = benchmark_block(block, Store(tmp_path / "one"))
        other, _ = benchmark_block(block, Store(tmp_path / "other"))
        np.testing.assert_array_equal(one["regret"], other["regret"])
        assert (described["mu"] is None) == (not cell.is_private) or one["mu_spent"][-1] == 0


def test_environments_of_a_spec_stand_in_its_order():
    tree = yaml.safe_load(SMALL_SPHERE)
    tree["environment"] = [{**SPHERE, "label": "one"}, DIGITS, {**SPHERE, "label": "two"}]
    spec = parse_spec(yaml.safe_dump(tree), "spec.yaml", Path())
    assert [environment.label for environment in environments_of(spec)] == ["one", "digits", "two"]
    assert environment_of(spec, spec.environment[2]).label == "two"
