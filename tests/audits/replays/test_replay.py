"""Replays: the score is the exact privacy loss, whatever the block order and the number of threads."""

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.replays import replay as replay_module
from bandana.audits.replays.attacks import likelihood_ratio
from bandana.audits.replays.later_actions import Layout
from bandana.audits.replays.replay import WORKERS, Replays, default_workers, in_threads, replay, replay_both
from bandana.audits.testbeds.blocks import trials
from bandana.privacy_core import Interval
from tests.later_features import later_features

UNIT = Interval(0.0, 1.0)


@pytest.fixture(scope="module")
def table():
    return RewardTable(np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float), UNIT)


def _adar(epsilon, calibration="printed"):
    return adar_ucb(3, 2.0, epsilon, 3.1, UNIT, calibration)


@pytest.mark.parametrize("calibration", ["printed", "tight"])
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_the_score_of_an_honest_run_is_the_gaussian_privacy_loss(table, epsilon, calibration):
    """log p'/p of a mu-GDP Gaussian release is N(-mu^2/2, mu^2) on D and N(+mu^2/2, mu^2) on D' (p > 1e-6)."""
    pair = canary_pairs(table, (3,))[0]
    mu = np.sqrt(epsilon)
    for side, sign in ((False, -1), (True, 1)):
        scores = likelihood_ratio(replay(_adar(epsilon, calibration), pair, side, 20_000, np.random.SeedSequence(1)))
        assert kstest(scores, "norm", args=(sign * mu**2 / 2, mu)).pvalue > 1e-6


def test_printed_first_pulls_have_half_the_mu(table):
    scores = replay(_adar(1.0), canary_pairs(table, (0,))[0], True, 20_000, np.random.SeedSequence(2)).log_ratio
    assert kstest(scores, "norm", args=(0.125, 0.5)).pvalue > 1e-6


def test_an_outlier_is_clipped_to_the_range(table):
    inside, outside = canary_pairs(table, (3,))
    seed = np.random.SeedSequence(3)
    np.testing.assert_array_equal(
        replay(_adar(1.0), inside, True, 500, seed).log_ratio,
        replay(_adar(1.0), outside, True, 500, np.random.SeedSequence(3)).log_ratio,
    )


def test_a_twin_is_told_apart_with_certainty(table):
    twin = ucb(3, 3.1, UNIT, doubling=True)
    pair = canary_pairs(table, (3,))[0]
    assert (replay(twin, pair, False, 100, np.random.SeedSequence(4)).log_ratio == -np.inf).all()
    assert (replay(twin, pair, True, 100, np.random.SeedSequence(4)).log_ratio == np.inf).all()


def test_blocks_have_their_own_seeds(table, monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 100)
    pair = canary_pairs(table, (3,))[0]
    long = replay(_adar(1.0), pair, False, 250, np.random.SeedSequence(5))
    short = replay(_adar(1.0), pair, False, 200, np.random.SeedSequence(5))
    np.testing.assert_array_equal(long.log_ratio[:200], short.log_ratio)
    assert len(np.unique(long.log_ratio)) == 250


def test_no_replays_are_refused(table):
    with pytest.raises(ValueError, match="n_replays must be a whole number of at least 1, got 0"):
        replay(_adar(1.0), canary_pairs(table, (3,))[0], False, 0, np.random.SeedSequence(6))


# --- views -----------------------------------------------------------------------------------------------------------


def _equal(one: Replays, other: Replays) -> bool:
    return one.layout == other.layout and all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ("log_ratio", "action_code", "report_log_ratio", "actions")
    )


def test_under_local_privacy_the_report_is_all_that_tells():
    for name in ("local", "gram-local"):
        trial = trials()[name]
        for on_neighbor in (False, True):
            got = replay(trial.algorithm, trial.pairs[0], on_neighbor, 300, np.random.SeedSequence(1))
            assert np.array_equal(got.report_log_ratio, got.log_ratio)
            assert got.log_ratio.std() > 0.5


def test_a_report_reads_the_canary_and_nobody_else():
    """A leaf of the tree is the canary's own, the nodes above it are not; a row that carries others' is not either."""
    own, whole = {}, {}
    for name, record in (("tree", 4), ("tree", 5), ("factorized", 5), ("factorized", 0), ("repeated", 5), ("phases", 5)):
        trial = trials()[name]
        pair = canary_pairs(trial.table, (record,))[0]
        got = replay(trial.algorithm, pair, True, 4000, np.random.SeedSequence(2))
        own[name, record], whole[name, record] = got.report_log_ratio, got.log_ratio
    assert own["tree", 4].var() == pytest.approx(1 / 5, rel=0.15)  # one of the five nodes that hold it is its leaf
    assert (own["tree", 5] == 0).all()  # its first node is a pair's
    assert (own["factorized", 5] == 0).all()
    assert own["factorized", 0].var() > 0.1
    assert (own["repeated", 5] == 0).all()
    assert np.array_equal(own["phases", 5], whole["phases", 5])


def test_a_user_who_sends_nothing_reports_nothing(table):
    pair = canary_pairs(table, (20,))[0]  # in a phase of several rounds
    got = replay(_adar(1.0), pair, True, 500, np.random.SeedSequence(3))
    alone = got.report_log_ratio != 0
    assert not alone.any()
    assert (got.log_ratio != 0).any()


def test_a_report_is_infinite_where_the_schedule_or_the_actions_part():
    bed, (twisted,) = trials()["local"], [c for c in GENERIC if c.name == "decides-from-exact"]
    pair = canary_pairs(RewardTable(np.full((24, 2), 0.5), Interval(0.0, 1.0)), (0,))[0]
    for on_neighbor, sign in ((False, -1), (True, 1)):
        got = replay(twisted.plant(bed.algorithm), pair, on_neighbor, 100, np.random.SeedSequence(4))
        parts = np.isinf(got.log_ratio)
        assert parts.any()
        assert np.array_equal(np.isinf(got.report_log_ratio), parts)
        assert (got.report_log_ratio[parts] == sign * np.inf).all()
        assert not np.isnan(got.report_log_ratio).any()


def test_actions_are_those_of_others_and_say_what_was_played(table):
    """Other rewards of the canary, from the same seed of a run without noise in what comes first, leave its action alone."""
    pair = canary_pairs(table, (0,))[0]
    got = replay(_adar(1.0), pair, False, 200, np.random.SeedSequence(5))
    layout = got.layout
    assert got.actions.dtype == np.float32
    assert got.actions.shape == (200, layout.n_features)
    assert layout == Layout(3, 39)
    assert (got.actions[:, layout.counts].sum(axis=1) == 39).all()
    assert (got.actions[:, layout.arms][:, :2] == [1, 2]).all()  # each arm once; the canary pulled the first
    late = canary_pairs(table, (39,))[0]
    none = replay(_adar(1.0), late, False, 200, np.random.SeedSequence(5))
    assert (none.actions == none.layout.empty(1)).all()


def test_slices_are_parts_of_the_replays(table):
    got = replay(_adar(1.0), canary_pairs(table, (3,))[0], False, 100, np.random.SeedSequence(6))
    parts = [got[:30], got[30:31], got[31:]]
    assert [len(part) for part in parts] == [30, 1, 69]
    assert parts[0].actions.base is not None
    for name in ("log_ratio", "action_code", "report_log_ratio", "actions"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(got, name))
    assert all(part.layout == got.layout for part in parts)
    with pytest.raises(ValueError, match="report_log_ratio must have one row a replay, 2, got 3"):
        Replays(np.zeros(2), np.zeros(2, dtype=int), np.zeros(3))


# --- threads ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scratch:
    """An algorithm that answers from memory of its own, and remembers how often it was run."""

    inner: Any
    memory: dict = field(default_factory=dict)

    def __getattr__(self, name):
        if name in {f.name for f in fields(self)} or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def init(self, n_reps):
        self.memory["runs"] = self.memory.get("runs", 0) + 1
        self.memory["actions"] = np.zeros(n_reps, dtype=np.int64)
        return self.inner.init(n_reps)

    def act(self, released, context, step):
        held = self.memory["actions"]
        held[:] = self.inner.act(released, context, step)
        return held.copy() if self.memory["runs"] <= 2 else 0 * held


def test_the_number_of_threads_changes_nothing(table, monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 64)
    pair = canary_pairs(table, (3,))[0]
    for algorithm in (_adar(1.0), Scratch(_adar(1.0))):
        one, two, five = (replay(algorithm, pair, True, 1000, np.random.SeedSequence(7), workers) for workers in (1, 2, 5))
        assert _equal(one, two)
        assert _equal(one, five)
    assert _equal(one, replay(_adar(1.0), pair, True, 1000, np.random.SeedSequence(7)))


@pytest.mark.parametrize("workers", [1, 3])
def test_both_sides_together_are_the_same_as_one_after_the_other(table, monkeypatch, workers):
    monkeypatch.setattr(replay_module, "BLOCK", 64)
    pair = canary_pairs(table, (3,))[0]
    first, second = np.random.SeedSequence(7).spawn(2)
    both = replay_both(_adar(1.0), pair, 300, (first, second), workers)
    first, second = np.random.SeedSequence(7).spawn(2)
    for on_neighbor, seed in ((False, first), (True, second)):
        assert _equal(both[on_neighbor], replay(_adar(1.0), pair, on_neighbor, 300, seed))
    assert not _equal(*both)


def test_what_cannot_be_copied_plays_in_one_thread(table, monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 64)
    monkeypatch.setattr(replay_module, "ThreadPoolExecutor", None)
    locked = Scratch(_adar(1.0), {"lock": threading.Lock(), "runs": -100})
    pair = canary_pairs(table, (3,))[0]
    got = replay(locked, pair, True, 200, np.random.SeedSequence(7), 4)
    assert _equal(got, replay(_adar(1.0), pair, True, 200, np.random.SeedSequence(7), 1))


def test_an_error_in_a_thread_is_the_callers(table, monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 64)
    broken = Scratch(_adar(1.0), {})
    object.__setattr__(broken, "hold", None)
    with pytest.raises(TypeError, match="not callable"):
        replay(broken, canary_pairs(table, (3,))[0], True, 1000, np.random.SeedSequence(7), 2)


def test_threads_are_as_many_as_told(monkeypatch):
    monkeypatch.delenv(WORKERS, raising=False)
    assert 1 <= default_workers() <= 2
    monkeypatch.setenv(WORKERS, "3")
    assert default_workers() == 3
    monkeypatch.setenv(WORKERS, "none")
    with pytest.raises(ValueError, match="BANDANA_WORKERS must be a whole number of at least 1, got 'none'"):
        default_workers()
    monkeypatch.setenv(WORKERS, "0")
    with pytest.raises(ValueError, match="got '0'"):
        default_workers()


def test_who_is_a_worker_starts_no_threads(monkeypatch):
    monkeypatch.setenv(WORKERS, "3")
    found = []
    thread = threading.Thread(target=lambda: found.append(default_workers()))
    thread.start()
    thread.join()
    assert found == [1]
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object())
    assert default_workers() == 1
    for n_cores, n_threads in ((1, 1), (2, 2), (64, 2)):
        with in_threads(n_cores):
            assert default_workers() == n_threads, "but as many as whoever started it says"
    assert default_workers() == 1


def _in_a_process(n_workers):
    small = RewardTable(np.random.default_rng(0).integers(0, 2, (12, 3)).astype(float), UNIT)
    replay_module.BLOCK = 64
    got = replay(_adar(1.0), canary_pairs(small, (3,))[0], True, 300, np.random.SeedSequence(8), n_workers)
    return default_workers(), got


@pytest.mark.nightly
def test_a_process_of_a_pool_replays_the_same(monkeypatch):
    monkeypatch.setattr(replay_module, "BLOCK", 64)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        workers, got = pool.submit(_in_a_process, 2).result(timeout=120)
    assert workers == 1
    assert _equal(got, _in_a_process(1)[1])


def test_rows_are_those_of_all_rounds(monkeypatch):
    """The jumping run's rows are computed again from every round's action."""
    trial = trials()["tree-uneven"]
    played = []

    class Rounds(replay_module.ActionLog):
        def __init__(self):
            super().__init__()
            played.append(self)

    monkeypatch.setattr(replay_module, "ActionLog", Rounds)
    pair = canary_pairs(trial.table, (4,))[0]
    got = replay(trial.algorithm, pair, False, 50, np.random.SeedSequence(9))
    log = played[0]
    actions = np.stack([
        np.repeat([a[r] for a in log.actions], [n[r] for n in log.n_records]) for r in range(50)
    ])  # fmt: skip
    assert np.array_equal(got.actions, later_features(actions, 4, 2))
