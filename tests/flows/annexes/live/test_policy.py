"""A live policy plays as the loop does, and answers that are late, missing or doubled follow the stated rules."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest

from bandana.algorithms.coins import coins_of
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.run import run
from bandana.flows.annexes.live.router import deploy, router_of
from bandana.flows.texts.mistakes import BookError, SpecError
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise
from tests.flows.annexes.live.live_worlds import ARMS, VECTORS, Clock, opened, told, world

TABLE = np.random.default_rng(5).integers(0, 2, (80, 3)).astype(float)


def test_answers_in_time_are_played_as_the_loop_plays_them(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock, seed=3))
    actions = told(policy, lambda number, arm: TABLE[number, arm], clock, 80)
    clock.now += 11
    algorithm = deploy(router_of("", ARMS)).algorithm
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    log = []

    class Watch:
        def observe(self, record):
            log.extend([int(record.actions[0, 0])] * int(record.n_records[0]))

    run(algorithm, RewardTable(TABLE, Interval(0, 1)), ledger, observers=[Watch()])
    rows = policy.releases()
    assert actions == log
    assert coins_of(algorithm) == 0
    # The last record enters with a later ask, so the loop may be one release ahead.
    loop = [(int(r.records.start[0]), int(r.records.stop[0]), float(r.output[0])) for r in ledger.transcript]
    assert [(row["start"], row["stop"], json.loads(row["output"])) for row in rows] == loop[: len(rows)]
    assert len(loop) - len(rows) <= 1
    assert len(rows) >= 6


def test_two_processes_play_what_one_would(tmp_path):
    alone, together = Clock(), Clock()
    one = opened(tmp_path / "one.db", world(alone))
    first = told(one, lambda number, arm: TABLE[number, arm], alone, 60)
    shared = world(together)
    both = [opened(tmp_path / "two.db", shared) for _ in range(2)]
    second = []
    for number in range(60):
        choice = both[number % 2].ask()
        both[(number // 3) % 2].tell(choice.id, TABLE[number, choice.action])
        second.append(choice.action)
        together.now += 11
    assert second == first
    assert [{**row} for row in both[0].releases()] == [{**row} for row in one.releases()]
    assert both[0].privacy() == both[1].privacy() == one.privacy()
    assert one.privacy().accounted == "1-DP"


class Exact:
    """Keeps exact values beside the arm that they are of."""

    def __init__(self, ledger):
        self.ledger, self.n_reps, self.values = ledger, 1, []

    def release(self, mechanism, value, **reads):
        self.values.append(float(value[0]))
        return self.ledger.release(mechanism, value, **reads)


def test_late_answers_of_several_arms_are_summed_by_arm(tmp_path):
    """Rewards equal the arm's number over 2, so an exact sum over n records of one arm is n times that."""
    clock, doors = Clock(), []
    own = world(clock, wrap=lambda ledger: doors.append(Exact(ledger)) or doors[-1])
    policy = opened(tmp_path / "a.db", own, {**ARMS, "deadline": 40})
    waiting = []
    for number in range(400):
        waiting.append(policy.ask())
        clock.now += 1
        if len(waiting) > 7:
            choice = waiting.pop(number % 7)
            policy.tell(choice.id, choice.action / 2)
    rows = policy.releases()
    assert len(rows) >= 9
    assert {row["arm"] for row in rows} == {0, 1, 2}
    for row, exact in zip(rows, doors[-1].values, strict=True):
        assert exact == (row["stop"] - row["start"]) * row["arm"] / 2


def test_fates_of_rewards(tmp_path):
    clock, doors = Clock(), []
    policy = opened(tmp_path / "a.db", world(clock, wrap=lambda ledger: doors.append(Exact(ledger)) or doors[-1]))
    first = policy.ask()
    assert policy.tell(first.id, 7.0) == "kept"  # clipped to 1
    assert policy.tell(first.id, 0.0) == "duplicate"
    clock.now += 11
    second = policy.ask()
    assert doors[-1].values == [1.0]
    assert policy.tell(first.id, 1.0) == "late"
    clock.now += 11
    third = policy.ask()  # the second never answered: it counts as the low end
    assert doors[-1].values == [1.0, 0.0]
    assert policy.tell(second.id, 1.0) == "late"
    assert policy.tell(third.id, 1.0) == "kept"
    assert [first.action, second.action, third.action] == [0, 1, 2]


def test_a_record_waits_for_its_deadline_even_if_its_reward_is_there(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    policy.tell(policy.ask().id, 1.0)
    assert policy.ask().action == 0
    assert policy.counts() == {"asked": 2, "entered": 0, "releases": 0}
    clock.now += 10
    policy.ask()
    assert policy.counts()["entered"] == 1


def test_with_arrival_a_record_enters_when_its_reward_is_there(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock), {**ARMS, "enters": "arrival"})
    first, second = policy.ask(), policy.ask()
    policy.tell(second.id, 1.0)
    policy.ask()
    assert policy.counts()["entered"] == 0  # nobody overtakes
    policy.tell(first.id, 1.0)
    policy.ask()
    assert policy.counts()["entered"] == 1


def test_contexts_are_shortened_and_enter_in_the_order_of_asks(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock), VECTORS)
    draws = np.random.default_rng(1).normal(size=(40, 3, 2)) * 9
    told(policy, lambda number, arm: 0.5, clock, 40, context=lambda number: draws[number])
    assert policy.counts()["entered"] == 39
    assert {row["arm"] for row in policy.releases()} == {None}
    with pytest.raises(SpecError, match="n_asks: all 64"):
        told(policy, lambda number, arm: 0.5, clock, 40, context=lambda number: draws[number])
    assert policy.counts()["asked"] == 64


ONE_OF_TWO = """
import bandana.live
policy = bandana.live.open({place!r})
for _ in range(15):
    assert policy.tell(policy.ask().id, 1.0) in ("kept", "late")  # the other one may have been faster
"""


def test_real_processes_share_a_policy(tmp_path):
    import bandana.live

    place = tmp_path / "a.db"
    policy = bandana.live.open(place, **{**ARMS, "deadline": 0})
    command = [sys.executable, "-c", ONE_OF_TWO.format(place=str(place))]
    children = [subprocess.Popen(command) for _ in range(2)]
    assert [child.wait() for child in children] == [0, 0]
    policy.ask()
    assert policy.counts()["asked"] == 31
    rows = policy.releases()
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    spans = [(row["start"], row["stop"]) for row in rows]
    assert all(a[1] == b[0] for a, b in itertools.pairwise(spans))


def test_a_book_pays_for_the_whole_claim_before_anybody_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "data"))
    booked = {**ARMS, "book": "feedback", "budget": {"epsilon": 2.5}}
    clock = Clock()
    first = opened(tmp_path / "a.db", world(clock), booked)
    again = opened(tmp_path / "a.db", world(clock), booked)
    assert first.privacy().left == again.privacy().left == pytest.approx(1.5, abs=0.01)
    opened(tmp_path / "b.db", world(clock), booked)
    with pytest.raises(BookError, match="out of budget"):
        opened(tmp_path / "c.db", world(clock), booked)
    with pytest.raises(SpecError, match="book: the policy was created with"):
        opened(tmp_path / "c.db", world(clock), ARMS)


def test_evidence_holds_releases_and_no_reward(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    told(policy, lambda number, arm: 0.123, clock, 30)
    document = policy.evidence()
    assert document["claimed"].startswith("1-DP")
    assert [row["number"] for row in document["list"]] == list(range(1, document["releases"] + 1))
    assert "0.123" not in json.dumps(document)
