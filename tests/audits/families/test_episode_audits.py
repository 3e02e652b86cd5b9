"""Audits of algorithms whose users live through episodes: pairs, replays, searches, one run, and planted faults."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from episode_beds import (
    HORIZON,
    N_ACTIONS,
    N_STATES,
    N_USERS,
    SHAPE,
    UNIT,
    Cheapest,
    Doubling,
    Peeking,
    central,
    local,
    table,
)
from hypothesis import given
from hypothesis import strategies as st
from nightly import first
from scipy.stats import kstest

from bandana.algorithms.entry import Claim
from bandana.algorithms.environments.episodes import EpisodeTable, change_of_path, path_tree, random_episodes
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.audits.audit import audit
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.candidates import Candidate
from bandana.audits.neighbors.pairs import actions_differ, canary_pairs
from bandana.audits.outcome import DETERMINISTIC, SAMPLING, Effort
from bandana.audits.own import conformance
from bandana.audits.own.rescaled import rescaled
from bandana.audits.replays import one_run as one_run_audit
from bandana.audits.replays.measure import measure_one_run
from bandana.audits.replays.replay import replay
from bandana.audits.searches import noise
from bandana.audits.searches.cases import Case
from bandana.audits.searches.counterexample import DECISION, SENSITIVITY
from bandana.audits.searches.deterministic import examine, examine_pair, search
from bandana.audits.trial import Trial
from bandana.privacy_core import GaussianDP, Interval, LiveLedger, Relation, ReproducibleNoise, TrustModel
from tests.later_features import later_features

TABLE = table()
CLAIM = GaussianDP(1 + 1e-9)
FAULTS = {control.name: control for control in GENERIC}
FULL = change_of_path((0,) * 4, (2,) * 4, 1.0, 1.0)
"""Three places are left with a reward of 1, and three others entered: the whole sensitivity."""


def rows_moved(pair):
    """Which rows differ, in rewards or in trees."""
    rewards = (pair.data.rewards != pair.neighbor.rewards).reshape(N_USERS, -1).any(axis=1)
    return np.flatnonzero(rewards | (pair.data.covariates != pair.neighbor.covariates).any(axis=1)).tolist()


# --- pairs -----------------------------------------------------------------------------------------------------------


def test_canaries_change_rewards_and_private_ones_their_whole_trajectory():
    public = canary_pairs(TABLE, (0, 5))
    assert [pair.record for pair in public] == [0, 5, 5]
    assert [pair.hidden_record for pair in public] == [-1, -1, -1]
    private = canary_pairs(TABLE, (0, 5), private_records=True)
    assert [pair.record for pair in private] == [0, 5, 0, 0, 5, 5, 5]
    assert [pair.hidden_record for pair in private] == [-1, -1, 0, 0, 5, 5, -1]
    for pair in (*public, *private):
        assert rows_moved(pair) == [pair.record]
    moved = private[2]
    assert moved.description == "record 0: states 0 0 0 0 become 2 2 2 2, every reward 0 becomes 1"
    assert moved.data.covariates[0].tolist() == path_tree((0, 0, 0, 0), N_STATES, N_ACTIONS).tolist()
    assert (moved.neighbor.next_states[0] == 2).all()
    assert (moved.data.rewards[0].max(), moved.neighbor.rewards[0].min()) == (0.0, 1.0)
    assert private[3].description == "record 0: states 0 0 0 0 become 2 2 2 2, every reward 1"
    assert private[-1].neighbor.reward_range == Interval(0.0, 5.0)


def test_changes_pair_all_states_the_farthest_first_and_then_go_step_by_step():
    changes = TABLE.changes()
    assert [tuple(path[0] for path in change.covariates) for change in changes[::2]] == [(0, 2), (0, 1), (1, 2)]
    near = TABLE.near(FULL)
    assert len(set(near)) == len(near) == 4 + 2 * 4 * 2
    assert all(len(path) == HORIZON + 1 for change in near for path in change.covariates)
    for change in near[4:]:
        assert (np.array(change.covariates) != np.array(FULL.covariates)).sum() == 1
    many = EpisodeTable(np.zeros(2), np.zeros((2, 30, 20, 2)), np.zeros((2, 30, 20, 2)), UNIT)
    assert len(many.changes()) == 2 * 15
    assert len(many.near(change_of_path((0,) * 31, (1,) * 31, 0.0, 0.0))) <= 4 + 48


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_stack_answers_as_each_table_does(seed, clips):
    rng = np.random.default_rng(seed)
    span, n_reps = Interval(-0.3, 1.7), 6
    shape = (5, *SHAPE)
    contexts = [
        EpisodeTable(rng.integers(0, 3, 5), rng.integers(0, 3, shape), rng.uniform(-0.3, 1.7, shape), span) for _ in range(2)
    ]
    context, record = rng.integers(0, 2, n_reps), rng.integers(0, 5, n_reps)
    rewards, trees = rng.uniform(-3.0, 6.0, (3, *SHAPE)), rng.integers(0, 3, (3, contexts[0].covariates.shape[1]))
    canaries = contexts[0].with_rows(rewards, trees, Interval(-3.0, 6.0))
    canary, limits = rng.integers(-1, 3, n_reps), Interval(0.1, 0.9) if clips else Interval(-9.0, 9.0)
    stack = contexts[0].stack(contexts, context, record, canaries, canary).clipped(limits)
    assert (stack.n_users, stack.episode_length, stack.n_states, stack.n_actions) == shape
    alone = []
    for r in range(n_reps):
        table, own = contexts[context[r]], canary[r]
        if own >= 0:
            table = table.replaced(record[r], rewards[own], Interval(-3.0, 6.0), trees[own])
        alone.append(table.clipped(limits))
    user = np.where(rng.random(n_reps) < 0.5, record, rng.integers(0, 5, n_reps))
    states = stack.first(user)
    assert states.tolist() == [int(alone[r].first(user[[r]])[0]) for r in range(n_reps)]
    for step in range(HORIZON):
        actions = rng.integers(0, N_ACTIONS, n_reps)
        after, rewards = stack.advance(user, step, states, actions)
        for r in range(n_reps):
            one = alone[r].advance(user[[r]], step, states[[r]], actions[[r]])
            assert (int(one[0][0]), float(one[1][0])) == (after[r], rewards[r])
        states = after


def test_the_worst_pair_reaches_the_claim():
    found = worst_pair.find(central(), TABLE, (0,), 0, private_records=True)
    assert found.mu_analytic == pytest.approx(1.0, abs=1e-6)
    assert (found.pair.record, found.pair.hidden_record) == (0, 0)
    assert "become" in found.pair.description
    assert examine_pair(central(), found.pair, CLAIM, 0) is None
    public = worst_pair.find(central(), TABLE, (0,), 0)
    assert public.mu_analytic == pytest.approx(math.sqrt(0.5), abs=1e-6), "rewards alone: sqrt(H) of sqrt(2 H)"
    assert public.pair.hidden_record == -1


def test_the_search_walks_to_states_that_no_start_has():
    """What a trajectory adds grows tenfold with each step that it shares with states 0 1 2, or 2 0 1."""

    class Picky(type(central())):
        def contribution(self, record):
            value = super().contribution(record)
            right = [(record.states[:, :3] == np.array(path)).sum(axis=1) for path in ((0, 1, 2), (2, 0, 1))]
            return value * (0.01 * 10.0 ** (np.maximum(*right) - 1))[:, None, None, None]

    found = worst_pair.find(central(kind=Picky), TABLE, (0,), 0, private_records=True)
    assert "0 1 2 " in found.pair.description
    assert " 2 0 1 " in found.pair.description
    starts = [Candidate(0, change, "c") for change in TABLE.changes()]
    best = max(worst_pair.losses(central(kind=Picky), {"c": TABLE}, starts, 8, 0, 1).mu.mean(axis=1))
    assert found.mu_analytic == pytest.approx(1.0, abs=1e-6)
    assert best < 0.2


# --- replays ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [central, local])
@pytest.mark.parametrize("on_neighbor", [False, True])
def test_the_likelihood_ratio_is_that_of_the_claim(build, on_neighbor):
    """log p'/p of a 1-GDP Gaussian release is N(-1/2, 1) on D and N(1/2, 1) on D' (p > 1e-6)."""
    pair = Candidate(0, FULL, "").pair(TABLE)
    seen = replay(build(), pair, on_neighbor, 20_000, np.random.SeedSequence(1))
    assert kstest(seen.log_ratio, "norm", args=(0.5 if on_neighbor else -0.5, 1.0)).pvalue > 1e-6
    assert ((seen.report_log_ratio == seen.log_ratio).all()) == (build is local)


def test_a_replay_keeps_the_later_users_actions_step_by_step():
    pair = Candidate(5, FULL, "").pair(TABLE)
    seed, n_reps = np.random.SeedSequence(3), 50
    seen = replay(central(), pair, False, n_reps, seed)
    log = ActionLog()
    run(central(), pair.data, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(3).spawn(1)[0])), observers=[log])
    played = np.stack(log.actions, axis=1)
    assert played.shape == (n_reps, N_USERS * HORIZON)
    assert seen.layout.n_later == 2 * HORIZON
    assert np.array_equal(seen.actions, later_features(played, 6 * HORIZON - 1, N_ACTIONS))
    assert seen.actions[:, :N_ACTIONS].sum(axis=1).tolist() == [6.0] * n_reps


def test_a_canarys_own_actions_do_not_count_but_those_of_others_do():
    """The policy differs by state, so that the canary acts otherwise in another state; nobody else does."""
    pair = Candidate(7, FULL, "").pair(TABLE)
    logs = []
    for side in (pair.data, pair.neighbor):
        logs.append(ActionLog())
        run(central(), side, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(0))), observers=[logs[-1]])
    assert actions_differ(*logs).any()
    assert not actions_differ(*logs, pair.hidden_record).any()
    assert np.isfinite(replay(central(), pair, False, 500, np.random.SeedSequence(0)).log_ratio).all()
    early = Candidate(2, replace(FULL, before=0.0), "").pair(TABLE)
    assert np.isneginf(replay(central(kind=Peeking), early, False, 500, np.random.SeedSequence(0)).log_ratio).any()


def test_algorithms_behind_other_ledgers_keep_their_episodes():
    other = rescaled(central(), 2.0)
    assert (other.episode_length, other.n_states) == (HORIZON, N_STATES)
    pair = Candidate(0, FULL, "").pair(TABLE)
    weak = replay(other, pair, True, 4000, np.random.SeedSequence(0)).log_ratio.mean()
    assert weak == pytest.approx(0.125, abs=6 * 0.5 / math.sqrt(4000))


# --- the deterministic audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [central, local])
def test_the_audit_without_statistics_finds_nothing(build):
    assert search(build(), UNIT, CLAIM, 100, N_USERS, private_records=True) is None
    assert noise.examine(build(), TABLE) is None
    conformance.check(build(), TABLE, 0)


def test_a_sensitivity_that_forgets_the_path_that_is_entered():
    """Right for neighbors with other rewards, wrong by sqrt 2 where the trajectory changes too."""
    short = central(sensitivity=math.sqrt(HORIZON))
    assert search(short, UNIT, CLAIM, 100, N_USERS) is None
    found = search(short, UNIT, CLAIM, 100, N_USERS, private_records=True)
    assert found is not None
    assert found.kind == SENSITIVITY
    assert found.case.replaced_covariates is not None
    assert max(row.times for row in found.rows) <= math.sqrt(2) + 1e-9


def test_a_decision_before_the_noise_is_told_with_episode_and_step():
    found = search(central(kind=Peeking), UNIT, CLAIM, 100, N_USERS, private_records=True)
    assert found is not None
    assert found.kind == DECISION
    lines = found.lines()
    assert lines[0].startswith("record 0 of 4 episodes changes from (states 0 0 0 0, actions 0 0 0, rewards 0 0 0) on D to")
    assert lines[-1] == "they part in episode 1, step 1: action 1 is played on D, action 0 on D'"
    assert lines[5] == "   episode  states   actions  rewards  on D'"
    assert lines[6] == ">        0  0 0 0 0  0 0 0    0 0 0    states 0 0 0 0, actions 0 0 0, rewards 1 1 1"
    assert lines[7] == "         1  0 0 0 0  1 1 1    0 0 0    states 0 0 0 0, actions 0 1 1, rewards 0 0 0"
    assert (found.difference.round, found.difference.arm, found.difference.neighbor_arm) == (1, 1, 0)


def remade(told):
    """The case as a reader of the JSON makes it again."""
    case = told["case"]
    rewards = [tuple(run["rewards"]) for run in case["rewards"] for _ in range(run["start"], run["stop"])]
    replaced = case["replaced_covariates"]
    return Case(
        tuple(rewards), case["record"], tuple(case["after"]), case["seed"], tuple(map(tuple, case["covariates"])),
        None if replaced is None else tuple(replaced), tuple(case["episode"]),
    )  # fmt: skip


@pytest.mark.parametrize("kind", [Peeking, Doubling])
def test_a_counterexample_is_plain_json_from_which_it_can_be_made_again(kind):
    found = search(central(kind=kind), UNIT, CLAIM, 60, N_USERS, shrinks=False, private_records=True)
    told = json.loads(json.dumps(found.describe(), allow_nan=False))
    assert max(map(len, told["lines"])) <= 110
    assert remade(told) == found.case
    assert examine(central(kind=kind), remade(told), UNIT, CLAIM) == found
    row = told["data"][found.case.record]
    assert len(row["states"]) == len(row["neighbor_states"]) == HORIZON + 1
    horizon, n_states, n_actions = told["case"]["episode"]
    flat, place = np.array(told["case"]["after"]).reshape(horizon, n_states, n_actions), np.arange(horizon)
    assert row["neighbor_rewards"] == flat[place, row["neighbor_states"][:-1], row["neighbor_actions"]].tolist()


def test_a_pair_is_a_case_and_back():
    for pair in canary_pairs(TABLE, (0, 5), private_records=True):
        again = Case.of(pair, 3).pair(pair.data.reward_range)
        for mine, theirs in ((pair.data, again.data), (pair.neighbor, again.neighbor)):
            assert np.array_equal(mine.covariates, theirs.covariates)
            assert np.array_equal(mine.rewards, theirs.rewards)
        assert (again.record, again.hidden_record) == (pair.record, pair.hidden_record)


# --- one run ---------------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_one_run_of_many_messages():
    """Under local privacy each episode is a canary: from no reward in state 0 to all in state 2, sqrt(H) of sqrt(2 H)."""
    promise, effort = GaussianDP(1.0, trust=TrustModel.LOCAL), Effort(1000, 0.95, 1e-5, 1, 0)
    bounds = measure_one_run(local(), TABLE, promise, effort, 0.05).bounds
    best = {bound.method: bound.lower for bound in bounds if bound.quantity.name == "mu"}
    assert 0.6 < best["one-run-sequential-mu"] <= math.sqrt(0.5)
    loud = measure_one_run(FAULTS["noise-halved"].plant(local()), TABLE, promise, effort, 0.05).bounds
    assert max(bound.lower for bound in loud if bound.method == "one-run-sequential-mu") > 1.2


def test_one_state_leaves_rewards_to_change():
    """All H places with a reward move by 1: sqrt(H) of sqrt(2 H)."""
    single = Cheapest(local().sums, n_states=1)
    alone = random_episodes(8, HORIZON, 1, N_ACTIONS, UNIT, 0)
    assert alone.changes() == []
    found = worst_pair.find(single, alone, (0,), 0, private_records=True)
    assert found.mu_analytic == pytest.approx(math.sqrt(0.5), abs=1e-6)
    promise, effort = GaussianDP(1.0, trust=TrustModel.LOCAL), Effort(1000, 0.95, 1e-5, 1, 0)
    bounds = measure_one_run(single, alone, promise, effort, 0.05).bounds
    assert max(bound.lower for bound in bounds if bound.quantity.name == "mu") > 0.5
    assert search(single, UNIT, CLAIM, 40, 8, private_records=True) is None


def one_run(algorithm, n_users=300, seed=0):
    data = table(n_users).with_rows(np.ones((n_users, *SHAPE)), np.tile(path_tree((0,) * 4, *SHAPE[1:]), (n_users, 1)))
    moved = data.with_rows(data.rewards, np.tile(path_tree((2,) * 4, *SHAPE[1:]), (n_users, 1)))
    return one_run_audit.examine(algorithm, data, moved, seed, claim=GaussianDP(1.0), delta=1e-5, max_canaries=100)


def test_canaries_of_one_run_may_differ_in_their_states_alone():
    found = one_run(local())
    assert (found.is_local, found.n_parted, len(found.scores)) == (True, 0, 300)
    # N(+-1/2, 1): the gap of the means, from 300 scores, has a deviation of 2/sqrt(300).
    assert found.scores[found.is_in].mean() - found.scores[~found.is_in].mean() == pytest.approx(1.0, abs=6 * 2 / 300**0.5)
    shared = one_run(central(n_users=300))
    assert (shared.is_local, shared.n_parted, len(shared.scores)) == (False, 0, 100)
    assert one_run(central(kind=Peeking, n_users=300)).n_parted > 0
    data = table(300)
    with pytest.raises(ValueError, match="must differ from data in every row, got the same in row 0"):
        one_run_audit.examine(local(), data, data, 0, claim=GaussianDP(1.0), delta=1e-5)


# --- whole audits ----------------------------------------------------------------------------------------------------


def trial(algorithm, trust=TrustModel.CENTRAL):
    stated = GaussianDP(1.0, relation=Relation.REPLACE_RECORD, trust=trust)
    claim = Claim(stated, stated, "all actions", "Theorem 1", "nobody", Relation.REPLACE_RECORD, trust, "one episode")
    return Trial(algorithm, claim, TABLE, (0,))


@pytest.mark.parametrize(("build", "trust"), first(1, [(local, TrustModel.LOCAL), (central, TrustModel.CENTRAL)]))
def test_a_whole_audit_catches_the_planted_faults(build, trust):
    controls = tuple(FAULTS[name] for name in ("noise-halved", "noise-reused", "decides-from-exact", "not-clipped"))
    found = audit(trial(build(), trust), controls, Effort(4000, 0.95, 1e-5, 60, 0))
    assert [control.name for control in found.controls if not control.is_caught] == []
    assert found.counterexample is None
    assert str(found.verdict) == "PASS"
    caught = {control.name: control.caught_by for control in found.controls}
    assert DETERMINISTIC in caught["not-clipped"]
    assert SAMPLING in caught["noise-halved"]
    views = {bound.view for bound in found.bounds}
    assert ("one_run" in views) == (trust is TrustModel.LOCAL)


@pytest.mark.nightly
def test_an_audit_of_a_wrong_sensitivity_fails():
    found = audit(trial(central(sensitivity=math.sqrt(HORIZON))), (), Effort(4000, 0.95, 1e-5, 60, 0))
    assert str(found.verdict) == "FAIL"
    assert found.counterexample["kind"] == SENSITIVITY
    assert max(bound.lower for bound in found.bounds if bound.quantity.name == "mu") > 1.2
    kept = replace(trial(central(sensitivity=math.sqrt(HORIZON))).claim, relation=Relation.REPLACE_REWARD)
    public = Trial(central(sensitivity=math.sqrt(HORIZON)), kept, TABLE, (0,))
    assert str(audit(public, (), Effort(4000, 0.95, 1e-5, 60, 0)).verdict) != "FAIL"
