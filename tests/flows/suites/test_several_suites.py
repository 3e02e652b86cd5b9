"""Several suites as one step: workers get the work of all at once, and each suite has its own journal and its own runs."""

import pickle
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from bandana.flows.folder.settings import DataFolder
from bandana.flows.plan.plan import Plan
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.spec import load_spec
from bandana.flows.suites import step_flows, steps
from bandana.flows.tracking.tracker import TrackingError

NAMES = ((1, "one"), (2, "two"))


class Backwards(Workers):
    """Does the work of each call from the last item to the first, and notes how much a call had."""

    def __init__(self):
        super().__init__(1)
        self.calls = []

    def completed(self, work, items):
        self.calls.append([item.title for item, _ in items])
        return super().completed(work, items[::-1])


class Tracked:
    """A tracker that refuses the first cells that it gets."""

    def __init__(self, n_refused=0):
        self.n_refused, self.cells, self.kept = n_refused, [], []

    def log_cell(self, suite, record):
        if self.n_refused:
            self.n_refused -= 1
            raise TrackingError("MLflow does not answer")
        self.cells.append((suite, record.name))

    def keep_only(self, suite, keys):
        self.kept.append((suite, len(keys)))


@pytest.fixture
def plans(write_spec):
    return [Plan.of(load_spec(write_spec(name=name, seed=seed, replications=4, block_size=2))) for seed, name in NAMES]


def events(folder, suite):
    return [event["event"] for event in steps.Journal(folder.journal(suite)).read()]


def test_one_call_has_the_blocks_of_all_and_each_suite_its_journal_and_its_runs(plans, tmp_path):
    folder, workers, tracker = DataFolder.open(tmp_path), Backwards(), Tracked()
    steps.benchmark(plans, folder, workers, tracker)
    blocks = [block for plan in plans for block in plan.blocks()]
    assert workers.calls == [[block.title for block in blocks]]
    ends = [(plan.spec.name, cell.title) for plan in plans[::-1] for cell in plan.played[::-1]]
    assert tracker.cells == ends, "each as soon as its last block was done"
    assert tracker.kept == [(plan.spec.name, len(plan.played)) for plan in plans]
    for plan in plans:
        noted = events(folder, plan.spec.name)
        assert (noted[0], noted[-1]) == ("benchmark started", "benchmark done")
        assert noted.count("block done") == len(plan.blocks())
        assert noted.count("cell tracked") == len(plan.played)


def test_what_is_there_is_neither_played_nor_audited_again_and_still_tracked(plans, tmp_path):
    folder = DataFolder.open(tmp_path)
    steps.benchmark(plans[:1], folder, Workers(1))
    workers, tracker = Backwards(), Tracked()
    steps.benchmark(plans, folder, workers, tracker)
    assert len(workers.calls[0]) == len(plans[1].blocks())
    assert sorted(tracker.cells) == sorted((plan.spec.name, cell.title) for plan in plans for cell in plan.played)


def test_blocks_that_two_suites_have_in_common_are_paid_once(write_spec, tmp_path, monkeypatch):
    both = [Plan.of(load_spec(write_spec(name=name))) for _, name in NAMES]
    paid = []
    monkeypatch.setattr(steps, "book_keeper", lambda: SimpleNamespace(check_affords=paid.extend))
    steps.benchmark(both, DataFolder.open(tmp_path), Workers(1))
    assert [block.key for block in paid] == [block.key for block in both[0].blocks()]
    assert all(steps.is_played(block, steps.Store(DataFolder(tmp_path).results)) for block in both[1].blocks())


@pytest.mark.parametrize("n_refused", [1, 2])
def test_cells_that_mlflow_refuses_are_written_at_the_end_or_the_step_fails(plans, tmp_path, n_refused):
    folder, tracker = DataFolder.open(tmp_path), Tracked(n_refused)
    cells = [(plan.spec.name, cell.title) for plan in plans for cell in plan.played]
    if n_refused == 1:
        steps.benchmark(plans, folder, Workers(1), tracker)
        assert tracker.cells == cells, "the first one too, and before the others"
        return
    with pytest.raises(TrackingError):
        steps.benchmark(plans, folder, Workers(1), tracker)
    assert tracker.cells == []
    workers = Backwards()
    steps.benchmark(plans, folder, workers, tracker)
    assert workers.calls == [[]], "all blocks were kept"
    assert tracker.cells == cells


@pytest.mark.slow
def test_audits_of_all_come_in_the_order_of_the_plans(plans, tmp_path):
    folder, workers, tracker = DataFolder.open(tmp_path), Backwards(), Tracked()
    entries = steps.audit(plans, folder, workers, tracker)
    private = [cell for plan in plans for cell in plan.private]
    assert [entry["label"] for entry in entries] == [cell.name for cell in private]
    assert len(workers.calls) == 1
    assert sorted(tracker.cells) == sorted((cell.spec.name, cell.title) for cell in private)
    assert all(folder.evidence(cell.spec.name, cell.slug).exists() for cell in private)
    assert steps.audit(plans, folder, workers, tracker) == entries
    assert workers.calls[1] == []


def test_what_leaves_the_process_is_pickled_before_it_is_submitted(plans, tmp_path, monkeypatch):
    """Prefect pickles in a thread: a cell that learns its key meanwhile would end the run with an error."""
    sent, tasks = [], step_flows._Tasks(tmp_path, plans, "piece", "block_timeout")

    class Submitted:
        def submit(self, work, note, label):
            sent.append((work, note, label))
            done = Future()
            done.set_result(work())
            return done

    tasks._tasks = {plan.spec.name: Submitted() for plan in plans}
    monkeypatch.setattr(step_flows, "as_completed", list)
    block = plans[1].blocks()[0]
    [(pair, result)] = tasks.completed(_key_of, [(block, block.key)])
    assert (pair[0] is block, result) == (True, block.key)
    [(work, note, label)] = sent
    assert isinstance(work.args[0], bytes)
    assert pickle.loads(work.args[0])[1][0].key == block.key
    assert (note.name, label) == (block.key, block.title)


def _key_of(pair):
    return pair[0].key
