"""A finished live log is replayed as a table, and its policy's book pays for each run beside the policy itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import yaml

from bandana.flows.annexes.live.logs import LiveLogSpec, parsed, table_of
from bandana.flows.annexes.live.policy import ChoiceError
from bandana.flows.annexes.live.store import StoreError
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own.data import pinned
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import load_spec
from bandana.flows.texts.mistakes import BookError, SpecError
from tests.flows.annexes.live.live_worlds import ARMS, VECTORS, Clock, opened, told, world

BudgetBook = pytest.importorskip("bandana.flows.annexes.books.bookkeeping.book").BudgetBook  # each log here is of a book
check_affords = pytest.importorskip("bandana.flows.annexes.books.charges").check_affords
BOOKED = {**ARMS, "book": "feedback", "budget": {"epsilon": 3}, "keeps_log": True, "reward_range": (0.0, 2.0)}
N_ASKS = 60


def reward(number, arm):
    """Below, above or inside the range; exact in floating point."""
    return (number % 7) / 2 - 0.5


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "data"))
    return DataFolder.open(tmp_path / "data")


@pytest.fixture
def log(tmp_path, folder):
    """A log in a file, and the actions that were shown."""
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock), BOOKED)
    actions = told(policy, reward, clock, N_ASKS)
    assert policy.write_log(tmp_path / "log.json") == N_ASKS - 1  # the last record enters with a later ask
    return tmp_path / "log.json", actions[:-1]


def spec_of(folder, place, **environment):
    tree = {
        "name": "replay", "seed": 7, "horizon": 4, "replications": 2, "algorithms": [
            {"algorithm": "dp-imed", "calibrations": "tight", "privacy": {"epsilon": 0.25}}
        ],
        "environment": {"kind": "live-log", "path": place.name, "high": 2.0, "data": {"book": "feedback"}, **environment},
    }  # fmt: skip
    path = place.parent / "replay.yaml"
    path.write_text(yaml.safe_dump(tree))
    return pinned(load_spec(path), folder.root)


def item_of(**more):
    return LiveLogSpec(kind="live-log", path="log.json", **{"high": 2.0, "data": {"book": "feedback"}, **more})


def test_each_record_is_a_cell_of_its_arm_in_the_order_of_asks(log):
    place, actions = log
    table = table_of(item_of(), parsed(place, place.read_bytes()))
    columns = [[min(max(reward(n, arm), 0.0), 2.0) for n, a in enumerate(actions) if a == arm] for arm in range(3)]
    n_rows = min(map(len, columns))
    assert n_rows >= 4
    np.testing.assert_array_equal(table.rewards, np.array([column[:n_rows] for column in columns]).T)
    part = table_of(item_of(rows=[1, 3]), parsed(place, place.read_bytes()))
    np.testing.assert_array_equal(part.rewards, table.rewards[1:3])


def test_another_answer_changes_one_cell(log):
    content = json.loads(log[0].read_text())
    tables = []
    for value in (0.0, 2.0):
        content["rewards"][5] = value
        tables.append(table_of(item_of(), parsed(log[0], json.dumps(content).encode())).rewards)
    assert (tables[0] != tables[1]).sum() == 1


def test_rewards_are_kept_only_where_the_settings_say_so(tmp_path, folder):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    told(policy, reward, clock, 3)
    with pytest.raises(ChoiceError, match="keeps_log: rewards were erased"):
        policy.write_log(tmp_path / "log.json")
    assert not (tmp_path / "log.json").exists()
    for settings in ({**ARMS, "keeps_log": True}, {**VECTORS, "book": "feedback", "keeps_log": True}):
        with pytest.raises(SpecError, match="keeps_log needs arms and a book"):
            opened(tmp_path / "b.db", world(clock), settings)


def test_an_unanswered_record_is_logged_as_it_entered(tmp_path, folder):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock), {**BOOKED, "missing": 0.5})
    for _ in range(2):
        policy.ask()
        clock.now += 11
    policy.write_log(tmp_path / "log.json")
    content = json.loads((tmp_path / "log.json").read_text())
    assert (content["actions"], content["rewards"]) == ([0], [0.5])
    assert (tmp_path / "log.json").stat().st_mode & 0o077 == 0
    with pytest.raises(StoreError, match="File exists"):
        policy.write_log(tmp_path / "log.json")


def test_the_book_pays_for_each_run_beside_the_policy(log, folder):
    book = BudgetBook(str(folder.book("feedback")))
    assert book.state().spent == pytest.approx(1, abs=0.01)
    spec = spec_of(folder, log[0])
    environments_of(spec)[0].check()
    blocks = [block for cell in Plan.of(spec).played if cell.is_private for block in cell.blocks()]
    check_affords(blocks)
    for block in blocks:
        benchmark_block(block, Store(folder.results))
    charges = book.state().charges
    assert book.state().spent == pytest.approx(1.5, abs=0.01)
    assert len({(charge.start, charge.stop) for charge in charges}) == 1, "everybody who answered pays"


def test_a_run_beyond_the_budget_draws_nothing(log, folder):
    spec = spec_of(folder, log[0]).model_copy(update={"replications": 20})
    blocks = [block for cell in Plan.of(spec).played if cell.is_private for block in cell.blocks()]
    with pytest.raises(BookError, match="out of budget"):
        check_affords(blocks)
    assert BudgetBook(str(folder.book("feedback"))).state().spent == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"data": None}, "name the policy's book"),
        ({"public": ["values"]}, "the rows are public"),
        ({"high": 1.0}, r"lie in \[0.0, 2.0\]: declare that range"),
        ({"rows": [0, 50]}, "records of its rarest arm"),
        ({"visits_per_user": 2, "user": "name"}, "leave out user"),
    ],
)
def test_what_does_not_fit_is_refused(log, folder, changed, words):
    with pytest.raises(SpecError, match=words):
        environments_of(spec_of(folder, log[0], **changed))[0].check()


@pytest.mark.parametrize("book", ["feedback", "other"])
def test_a_book_that_the_policy_was_not_charged_to_is_refused(log, folder, book):
    if book == "feedback":
        log[0].write_text(json.dumps({**json.loads(log[0].read_text()), "identity": "0" * 32}))
    data = {"book": book, "budget": {"epsilon": 3}}
    with pytest.raises(BookError, match="it was not charged for this live policy"):
        environments_of(spec_of(folder, log[0], data=data))[0].check()


@pytest.mark.parametrize("field", ["format", "rewards", "actions"])
def test_a_damaged_log_is_refused_without_its_rewards(log, folder, field):
    content = json.loads(log[0].read_text())
    content[field] = content[field][:-1]
    log[0].write_text(json.dumps(content))
    with pytest.raises(SpecError, match=r"log\.json is no log of a live policy") as caught:
        environments_of(spec_of(folder, log[0]))[0].check()
    assert "0.5" not in str(caught.value)


def test_a_store_that_is_older_than_a_setting_opens(tmp_path):
    """Settings that a store does not name are at their defaults, as they were when it was made."""
    from bandana.flows.annexes.live.store import POLICIES

    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock))
    with policy.store.session() as session:
        settings = json.loads(session.status()["settings"])
        del settings["keeps_log"]
        session.update(POLICIES, settings=json.dumps(settings))
    assert opened(tmp_path / "a.db", world(clock)).counts()["asked"] == 0
    with pytest.raises(SpecError, match=r"deadline: the policy was created with 10\.0"):
        opened(tmp_path / "a.db", world(clock), {**ARMS, "deadline": 5.0})
