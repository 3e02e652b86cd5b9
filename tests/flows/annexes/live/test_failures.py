"""Every failure is one clear error, and nothing that was acknowledged is lost."""

from __future__ import annotations

import itertools
import shutil

import pytest

import bandana.live
from bandana.flows.annexes.live.policy import ChoiceError
from bandana.flows.annexes.live.secrecy import Secrecy, new_key
from bandana.flows.annexes.live.store import StoreError
from bandana.flows.texts.mistakes import SpecError
from tests.flows import postgres_server
from tests.flows.annexes.live.live_worlds import ARMS, VECTORS, Clock, opened, told, world


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ("nan", "reward: must be a number"),
        (float("nan"), "reward: must be a number"),
        (True, "reward: must be a number"),
        (None, "reward: must be a number"),
    ],
)
def test_a_reward_that_is_no_number(tmp_path, bad, words):
    policy = opened(tmp_path / "a.db", world(Clock()))
    choice = policy.ask()
    with pytest.raises(ChoiceError, match=words):
        policy.tell(choice.id, bad)
    assert policy.tell(choice.id, 1.0) == "kept"


def test_a_forged_id_and_another_persons(tmp_path):
    policy = opened(tmp_path / "a.db", world(Clock()))
    bound, free = policy.ask(person="ada lovelace"), policy.ask()
    for id_, person, words in [
        ("id-77", None, "id: no choice"), (bound.id, "bob", "another person's"), (bound.id, None, "another person's"),
        (free.id, "bob", "another person's"),
    ]:  # fmt: skip
        with pytest.raises(ChoiceError, match=words):
            policy.tell(id_, 1.0, person=person)
    assert policy.tell(bound.id, 1.0, person="ada lovelace") == "kept"
    content = (tmp_path / "a.db").read_bytes() + (tmp_path / "a.db-wal").read_bytes()
    assert b"ada lovelace" not in content
    assert bound.id.encode() not in content


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, "context: missing"),
        ([[1.0, 0.0]], "shape \\(3, 2\\)"),
        ([[1.0, 0.0]] * 2 + [[float("inf"), 0.0]], "NaN or infinity"),
        ([["a", "b"]] * 3, "must be numbers"),
    ],
)
def test_a_context_that_does_not_fit(tmp_path, context, words):
    policy = opened(tmp_path / "a.db", world(Clock()), VECTORS)
    with pytest.raises(ChoiceError, match=words):
        policy.ask(context)
    assert policy.counts()["asked"] == 0


def test_arms_take_no_context(tmp_path):
    with pytest.raises(ChoiceError, match="ask without a context"):
        opened(tmp_path / "a.db", world(Clock())).ask([[1.0]])


class Crash(BaseException):
    """The process dies."""


@pytest.mark.parametrize("point", ["drawn", "committed"])
def test_a_crash_at_a_release(tmp_path, point):
    """Before the commit nothing was released, and after it nothing is released again."""
    clock, dies = Clock(), []

    def reached(at):
        if dies and at == point:
            raise Crash

    own = world(clock, reached=reached)
    policy = opened(tmp_path / "a.db", own)
    policy.tell(policy.ask().id, 1.0)
    clock.now += 11
    dies.append(True)
    with pytest.raises(Crash):
        policy.ask()
    dies.clear()
    again = opened(tmp_path / "a.db", own)
    assert again.counts()["releases"] == (point == "committed")
    again.ask()
    (row,) = again.releases()
    assert (row["start"], row["stop"], row["arm"]) == (0, 1, 0)
    assert again.privacy().accounted == "1-DP"


def test_the_ledger_refuses_before_noise_is_drawn(tmp_path):
    """Rows that say another release was made: a ledger that is full refuses, and the state stays as it was."""
    from bandana.flows.annexes.live.store import RELEASES
    from bandana.privacy_core import BudgetExceeded

    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    told(policy, lambda number, arm: 1.0, clock, 3)
    with policy.store.session() as session:
        session.update(RELEASES, 1, start=0, stop=64)
    counts, again = policy.counts(), opened(tmp_path / "a.db", world(clock))
    for _ in range(2):
        with pytest.raises(BudgetExceeded, match="budget"):
            again.ask()
    assert again.counts() == counts


def test_a_full_disk(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    first = policy.ask()
    with policy.store.session() as session:  # the connection is kept, and with it the limit
        pages = session._connection.exec_driver_sql("PRAGMA page_count").scalar()
        session._connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    def fill():
        for _ in range(500):
            policy.ask(person="ada lovelace")

    with pytest.raises(StoreError, match="the disk is full; nothing was stored"):
        fill()
    asked = policy.counts()["asked"]
    again = opened(tmp_path / "a.db", world(clock, seed=9))
    assert again.counts()["asked"] == asked
    assert again.tell(first.id, 1.0) == "kept"


def test_a_full_disk_at_a_release(tmp_path):
    """A release that could not be stored was not made; with space again it is, once."""
    clock, lines = Clock(), []
    policy = opened(tmp_path / "a.db", world(clock, publish=lines.append))

    def limit(pages):
        with policy.store.session() as session:  # SQLite keeps the pages that it has, and grants no more
            session._connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    def fill(n):
        for _ in range(n):
            policy.ask(person="ada lovelace")

    told(policy, lambda number, arm: 1.0, clock, 6)
    limit(1)
    with pytest.raises(StoreError, match="the disk is full; nothing was stored"):
        fill(500)
    clock.now += 11  # many records enter with the next ask, and releases are due
    limit(1)  # of the connection that was opened since
    with pytest.raises(StoreError, match="the disk is full; nothing was stored"):
        fill(500)
    full = policy.counts()
    assert full["releases"] == sum(line["event"] == "release" for line in lines)
    limit(10**6)
    for _ in range(3):
        clock.now += 11
        policy.ask()
    rows = policy.releases()
    assert len(rows) == sum(line["event"] == "release" for line in lines) > full["releases"]
    assert all(before["stop"] == after["start"] for before, after in itertools.pairwise(rows)), "a record is read once"


def test_a_store_that_is_lost_or_replaced(tmp_path):
    place, clock = tmp_path / "a.db", Clock()
    policy = opened(place, world(clock))
    choice = policy.ask()
    shutil.copy(place, tmp_path / "copy.db")
    shutil.copy(tmp_path / "a.db-wal", tmp_path / "copy.db-wal")
    place.unlink()
    for call in (policy.ask, lambda: policy.tell(choice.id, 1.0)):
        with pytest.raises(StoreError, match=r"gone|no such file"):
            call()
    (tmp_path / "a.db-wal").unlink(missing_ok=True)
    place.write_bytes(b"not a database at all" * 100)
    with pytest.raises(StoreError, match="damaged"):
        policy.ask()
    copy = opened(tmp_path / "copy.db", world(clock))
    assert copy.tell(choice.id, 1.0) == "kept"


def test_a_store_with_no_policy(tmp_path):
    with pytest.raises(StoreError, match="no such file"):
        bandana.live.open(tmp_path / "none.db")
    with pytest.raises(StoreError, match="must end with the policy's name"):
        bandana.live.open("postgresql://127.0.0.1/x", **ARMS)
    with pytest.raises(StoreError, match="leave the password out"):
        bandana.live.open("postgresql://a:secret@127.0.0.1/x#y", **ARMS)


def test_settings_do_not_change(tmp_path):
    opened(tmp_path / "a.db", world(Clock()))
    with pytest.raises(SpecError, match=r"deadline: the policy was created with 10\.0, got 5\.0"):
        opened(tmp_path / "a.db", world(Clock()), {**ARMS, "deadline": 5.0})
    with pytest.raises(SpecError, match="unknown field"):
        bandana.live.open(tmp_path / "b.db", **ARMS, deadlin=5)


LOCAL = VECTORS["claim"].replace("joint", "local")


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"algorithm": "dp-imd"}, "did you mean"),
        ({"claim": "pure(epsilon=1)"}, "which data sets are neighbors"),
        ({"claim": "pure(epsilon=1, relation=record)"}, "promises to replace one reward"),
        ({"claim": "gdp(mu=1, relation=reward)"}, "privacy must be"),
        ({"algorithm": "ucb"}, "no entry of this claim"),
        ({**VECTORS, "claim": LOCAL, "calibration": "tight"}, "noise belongs on each person's device"),
        ({"algorithm": "dp-bai"}, "horizon"),
    ],
)
def test_what_cannot_be_deployed_is_refused_with_the_reason(tmp_path, changed, words):
    with pytest.raises(SpecError, match=words):
        opened(tmp_path / "a.db", world(Clock()), {**ARMS, **changed})
    assert not (tmp_path / "a.db").exists()


def test_sensitive_values_are_encrypted(tmp_path):
    key, clock = new_key(), Clock()
    policy = opened(tmp_path / "a.db", world(clock), VECTORS, key=key)
    plain = opened(tmp_path / "b.db", world(clock), VECTORS)
    secret = [[0.25, 0.125]] * 3
    for each in (policy, plain):
        each.tell(each.ask(secret).id, 0.5)
    from bandana.flows.annexes.live.secrecy import packed

    files = {place: b"".join(path.read_bytes() for path in tmp_path.glob(f"{place}.db*")) for place in "ab"}
    import numpy as np

    needle = packed(np.array(secret))
    assert needle in files["b"]
    assert needle not in files["a"]
    assert opened(tmp_path / "a.db", world(clock), VECTORS, key=key).counts()["asked"] == 1
    for wrong, words in [(new_key(), "the key is another one"), (None, "encrypted: give its key"), ("abc", "32 bytes")]:
        with pytest.raises(StoreError, match=words):
            opened(tmp_path / "a.db", world(clock), VECTORS, key=wrong)
    with pytest.raises(StoreError, match="not encrypted"):
        opened(tmp_path / "b.db", world(clock), VECTORS, key=key)


def test_a_blob_is_read_at_its_own_place_alone():
    secrecy = Secrecy(new_key())
    blob = secrecy.seal(b"x", "reward 1")
    assert secrecy.open(blob, "reward 1") == b"x"
    with pytest.raises(StoreError, match="reward 2 cannot be read"):
        secrecy.open(blob, "reward 2")


def test_a_snapshot_goes_on_only_if_nothing_was_released_since(tmp_path):
    clock, place = Clock(), tmp_path / "a.db"
    policy = opened(place, world(clock))
    told(policy, lambda number, arm: 1.0, clock, 5)
    pending = policy.ask()
    last = policy.snapshot(tmp_path / "early")
    with pytest.raises(StoreError, match="File exists"):
        policy.snapshot(tmp_path / "early")
    told(policy, lambda number, arm: 1.0, clock, 20)
    assert policy.counts()["releases"] > last
    late = policy.snapshot(tmp_path / "late")
    with pytest.raises(StoreError, match="it holds a policy"):
        bandana.live.restore(place, tmp_path / "late", last_release=late)
    for path in tmp_path.glob("a.db*"):
        path.unlink()
    with pytest.raises(StoreError, match="noise would be drawn twice"):
        bandana.live.restore(place, tmp_path / "early", last_release=policy._ledger.n_charged)
    bandana.live.restore(place, tmp_path / "late", last_release=late)
    again = opened(place, world(clock, seed=4))
    assert again.counts()["releases"] == late
    with pytest.raises(StoreError, match=r"another one is in its place|replaced|gone"):
        policy.ask()
    assert again.tell(pending.id, 1.0) == "late"
    (tmp_path / "torn").write_text((tmp_path / "late").read_text()[:-9])
    with pytest.raises(StoreError, match="cannot be read"):
        bandana.live.restore(tmp_path / "c.db", tmp_path / "torn", last_release=late)


@pytest.mark.slow
def test_a_policy_in_postgresql(monkeypatch):
    if reason := postgres_server.why_not():
        pytest.skip(reason)
    server = postgres_server.PostgresServer()
    try:
        server.start()
        server.execute("CREATE DATABASE live")
        monkeypatch.setenv("PGPASSWORD", postgres_server.PASSWORD)
        address, clock = f"postgresql://postgres@127.0.0.1:{server.port}/live#prompts", Clock()
        own = world(clock)
        policies = [opened(address, own) for _ in range(2)]
        for number in range(20):
            choice = policies[number % 2].ask()
            assert policies[1 - number % 2].tell(choice.id, 1.0) == "kept"
            clock.now += 11
        assert policies[0].releases() == policies[1].releases() != []
        server.stop()
        with pytest.raises(StoreError, match="nothing was stored"):
            policies[0].ask()
        server.start()
        assert policies[0].counts()["asked"] == 20
        policies[0].ask()
    finally:
        server.stop()
        server.remove()
