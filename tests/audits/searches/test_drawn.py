"""Drawn rewards and contexts: leaks between listed values are met, honest algorithms are not accused, words are true."""

from dataclasses import dataclass

import numpy as np
import pytest

from bandana.algorithms.environments.episodes import random_episodes
from bandana.algorithms.environments.tables import random_table, sphere_table
from bandana.audits.searches.constants import thresholds_of
from bandana.audits.searches.drawn import Between, _draw
from bandana.audits.searches.walk import Batch, values_of, walk
from bandana.privacy_core import Gaussian, Interval, Relation, Span

UNIT = Interval(0.0, 1.0)
TABLE = random_table(16, 2, UNIT, 0)
CONTEXTS = sphere_table(16, 2, 2, UNIT, np.random.SeedSequence(0))
N_CASES = 4096
HUNDRED, WIDTH = 100, 1 / 2**10


def _band(rewards, first):
    return np.abs(rewards - 0.77215) < 3e-4


LEAKS = {
    "a quotient of constants": lambda rewards, first: np.abs(rewards * HUNDRED - 37) < 0.5,
    "a narrow band": _band,
    "a rounding": lambda rewards, first: np.round(rewards, 1) - rewards > 0.0499,
    "a digit": lambda rewards, first: np.floor(rewards * 1000) % 10 == 7,
    "an entry of a context": lambda rewards, first: (np.abs(first - 0.4321) < 2e-3) & (rewards > 0.5),
    "an angle": lambda rewards, first: (np.abs(np.arccos(np.clip(first, -1, 1)) - 2.5) < 0.02) & (rewards > 0.5),
}


@dataclass(frozen=True)
class Local:
    """Releases each reward with noise; the last bits of the released state show what a leak says."""

    leak: str = ""
    n_actions: int = 2
    reward_range: Interval = UNIT

    def init(self, n_reps):
        return (), np.zeros((n_reps, 2))

    def act(self, released, context, step):
        return released.argmax(axis=1)

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)

    def absorb(self, sensitive, released, record, ledger):
        released, rows = released.copy(), np.arange(len(released))
        noise = Gaussian(1.0, 1.0, Relation.REPLACE_REWARD)
        noisy = ledger.release(noise, record.rewards, records=Span(record.user, record.user + 1))
        released[rows, record.actions[:, 0]] += noisy[:, 0]
        if self.leak:
            first = np.zeros(len(rows)) if record.contexts is None else record.contexts[rows, record.actions[:, 0], 0]
            released[:, 0] += 1e-9 * LEAKS[self.leak](record.rewards[:, 0], first)
        return sensitive, released


@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_between_the_listed_values_is_met(leak):
    table = CONTEXTS if "angle" in leak or "context" in leak else TABLE
    found, coverage = walk(Local(leak), table, None, N_CASES, 0, shortens=False)
    assert found is not None
    assert "released state differs" in str(found)
    assert coverage.drawn > 100


@pytest.mark.parametrize("table", [TABLE, CONTEXTS], ids=["arms", "contexts"])
def test_an_honest_algorithm_has_no_counterexample_and_the_words_are_true(table):
    found, coverage = walk(Local(), table, None, N_CASES, 0)
    assert found is None
    inside, anywhere = values_of(Local(), table)
    assert set(coverage.values) == {*inside, *anywhere}
    line = coverage.lines()[0]
    assert f"among {len(coverage.values)} listed values and {coverage.drawn:,} drawn ones" in line
    assert (coverage.drawn_covariates > 0) == ("with drawn contexts) among" in line) == (table is CONTEXTS)


@dataclass(frozen=True)
class OwnContextsOnly(Local):
    """Refuses contexts that are none of the data set's, as one with a public pool of them does."""

    def act(self, released, context, step):
        if not np.isin(context.round(9), CONTEXTS.features.round(9)).all():
            raise ValueError("no such context")
        return released.argmax(axis=1)


def test_contexts_that_an_algorithm_refuses_are_named():
    found, coverage = walk(OwnContextsOnly(), CONTEXTS, None, 512, 0)
    assert found is None
    assert coverage.drawn_covariates == 0
    assert "contexts beside those of the data set were not tried: it raised ValueError: no such context" in coverage.lines()


def test_thresholds_are_constants_what_they_make_and_what_lies_between():
    found = thresholds_of(Local(), UNIT)
    assert found == tuple(sorted(found))
    for value in (0.77215, 3e-4, 0.37, 1 / 2**10, 0.4321):
        assert min(abs(value - one) for one in found) < 1e-12
    assert all(0 <= value <= 1 for value in found)


def test_drawn_covariates_are_some_that_records_may_have():
    coin = np.random.default_rng(0)
    vectors = Between.of(Local(), CONTEXTS).draw_covariates(CONTEXTS, 500, coin)
    assert vectors.shape == (500, 2, 2)
    norms = np.linalg.norm(vectors, axis=2)
    assert norms.max() <= 1 + 1e-9
    assert (norms > 1 - 1e-9).mean() > 0.2
    assert ((vectors[:, 0] == vectors[:, 1]).all(axis=1)).mean() == pytest.approx(0.5, abs=0.1)
    episodes = random_episodes(4, 2, 3, 2, UNIT, 0)
    trees = Between.of(Local(), episodes).draw_covariates(episodes, 100, coin)
    assert trees.shape == (100, 1 + 2 * 3 * 2)
    assert set(np.unique(trees)) == {0, 1, 2}


def test_the_case_of_a_replicate_has_the_contexts_that_it_plays():
    """Drawn ones in place of the data's own, on both sides."""
    between = Between.of(Local(), CONTEXTS)
    batch = Batch.drawn(CONTEXTS, 64, 0, (*values_of(Local(), CONTEXTS), between), True, (1, 0), 16)
    assert len(batch.moved)
    for rep in range(64):
        pair, record = batch.case(rep).pair(UNIT), batch.record[rep]
        for side, row in ((pair.data, rep), (pair.neighbor, 64 + rep)):
            assert np.array_equal(side.covariates[record], batch.rows.covariates[row])
            assert np.array_equal(side.rewards[record], batch.rows.rewards[row])


@pytest.mark.parametrize("thresholds", [(), (0.37,)])
def test_values_lie_anywhere_and_on_and_on_either_side_of_what_rounding_and_code_know(thresholds):
    """One in twenty of 4000 values at least lies on a number, above it, and below it, and one in five anywhere."""
    span = Interval(-1.0, 1.0)
    values = _draw(span, thresholds, (4000,), np.random.default_rng(0))
    assert ((values >= -1) & (values <= 1)).all()
    known = np.concatenate([np.rint(values * 2000) / 2000, *(np.full(4000, each) for each in thresholds)]).reshape(-1, 4000)
    off = (values - known)[np.argmin(np.abs(values - known), axis=0), np.arange(4000)]
    on, above, below = np.abs(off) < 1e-12, (off > 1e-12) & (off < 1e-5), (off < -1e-12) & (off > -1e-5)
    assert min(on.mean(), above.mean(), below.mean()) > 0.05
    assert (np.abs(off) > 1e-5).mean() > 0.2
    for threshold in thresholds:
        assert (np.abs(values - threshold) < 1e-12).mean() > 0.05
