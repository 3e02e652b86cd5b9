"""The same algorithm at another budget: book, likelihood ratio and schedule follow, and faults can be planted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nightly import first

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC
from bandana.audits.own import conformance
from bandana.audits.own.rescaled import NotRescalable, Rescaled, rescaled
from bandana.audits.replays.replay import replay
from bandana.audits.searches.deterministic import search
from bandana.audits.testbeds.blocks import UNIT, RunningSumBed, trials
from bandana.privacy_core import (
    DiscreteGaussian,
    Exact,
    Gaussian,
    GaussianDP,
    Laplace,
    LiveLedger,
    LocalSum,
    NoPrivacy,
    PureDP,
    RenyiDP,
    ReproducibleNoise,
)

TRIALS = trials()
ENTRY = find("adar-ucb")
ADAR = {
    calibration: ENTRY.build(ENTRY.settings(Problem(2, UNIT), calibration, RenyiDP(2.0, 1.0)))
    for calibration in ("printed", "tight")
}
LOOKED_AT = ("tree", "factorized", "gram-joint", "tight")
SUBJECTS = {**{name: trial.algorithm for name, trial in TRIALS.items()}, **ADAR}
TABLE = RewardTable(np.full((24, 2), 0.5), UNIT)


def play(algorithm, n_reps=8, seed=1, table=TABLE, jump=True):
    log = ActionLog()
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(seed)), keeps_transcript=True)
    run(algorithm, table, ledger, observers=[log], jump=jump)
    return log, ledger


@settings(derandomize=True, max_examples=60, deadline=None, database=None)
@given(st.sampled_from(sorted(SUBJECTS)), st.floats(1e-3, 1e3))
def test_the_book_is_divided_by_the_factor(name, factor):
    own = play(SUBJECTS[name], n_reps=2)[1].guarantee()
    other = play(rescaled(SUBJECTS[name], factor), n_reps=2)[1].guarantee()
    assert isinstance(own, GaussianDP)
    assert other.mu == pytest.approx(own.mu / factor, rel=1e-9)
    assert other.relation is own.relation


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_pure_and_concentrated_books_follow_too(factor):
    def book(mechanism):
        return play(rescaled(RunningSumBed(2, UNIT, LocalSum(mechanism)), factor))[1].guarantee()

    assert book(Laplace(1.0, 2.0)) == PureDP(0.5 / factor)
    assert book(DiscreteGaussian(1.0, 2.0, 2.0**-30)).rho == pytest.approx(1 / (8 * factor**2))
    assert isinstance(book(Exact()), NoPrivacy)


@pytest.mark.parametrize("name", sorted(SUBJECTS))
def test_at_factor_1_it_is_the_algorithm_itself(name):
    for mine, theirs in zip(
        play(SUBJECTS[name])[1].transcript, play(rescaled(SUBJECTS[name], 1.0))[1].transcript, strict=True
    ):
        assert mine.mechanism == theirs.mechanism
        np.testing.assert_array_equal(mine.output, theirs.output)


@pytest.mark.parametrize("name", ["tree-uneven", "doubling", "factorized", "buffered", "gram-equal", "elimination", "tight"])
def test_it_keeps_the_protocol_and_its_jumps(name):
    algorithm = rescaled(SUBJECTS[name], 0.25)
    conformance.check(algorithm, TABLE, seed=3)
    jumped, slow = (play(algorithm, n_reps=1, jump=jump)[1].transcript for jump in (True, False))
    assert len(jumped) == len(slow)
    for one, other in zip(jumped, slow, strict=True):
        np.testing.assert_array_equal(one.output, other.output)


@pytest.mark.parametrize("name", first(4, sorted(SUBJECTS, key=lambda name: name not in LOOKED_AT)))
def test_the_audit_without_statistics_finds_nothing_at_the_new_claim(name):
    algorithm = rescaled(SUBJECTS[name], 4.0)
    claim = GaussianDP(0.25 * (1 + 1e-9))
    assert search(algorithm, UNIT, claim, max_examples=12) is None
    found = search(algorithm, UNIT, GaussianDP(0.2499), max_examples=24)
    assert found is not None
    assert found.kind == "book"


@pytest.mark.parametrize(("name", "factor"), [("tree", 0.5), ("gram-joint", 2.0), ("factorized", 0.8), ("printed", 0.25)])
def test_the_likelihood_ratio_is_that_of_the_scaled_noise(name, factor):
    """Its mean on the neighbor is mu^2/2 for a Gaussian of mu; within five standard errors."""
    algorithm = rescaled(SUBJECTS[name], factor)
    pair = canary_pairs(TABLE, (0,))[0]
    scores = replay(algorithm, pair, True, 4000, np.random.SeedSequence(5)).log_ratio
    mu = (0.5 if name == "printed" else 1.0) / factor  # the printed first pull has twice the noise that it needs
    assert scores.mean() == pytest.approx(mu**2 / 2, abs=5 * mu / math.sqrt(4000))
    assert scores.std() == pytest.approx(mu, rel=0.07)


@pytest.mark.parametrize("control", GENERIC, ids=lambda control: control.name)
@pytest.mark.parametrize("name", ["tree", "gram-joint", "tight"])
def test_faults_can_be_planted_on_top(name, control):
    planted = control.plant(rescaled(SUBJECTS[name], 2.0))
    log, ledger = play(planted)
    assert sum(log.n_records).tolist() == [24] * 8
    honest = play(rescaled(SUBJECTS[name], 2.0))[1]
    if control.name == "noise-halved":
        for mine, theirs in zip(ledger.transcript[:1], honest.transcript[:1], strict=True):
            np.testing.assert_allclose(2 * (mine.output - mine.value), theirs.output - theirs.value, atol=1e-12)
    if DETERMINISTIC in control.caught_by:
        assert search(planted, UNIT, GaussianDP(0.5 + 1e-9), max_examples=30, shrinks=False) is not None
    scores = replay(planted, canary_pairs(TABLE, (0,))[0], True, 64, np.random.SeedSequence(5)).log_ratio
    assert not np.isnan(scores).any()


def test_factors_multiply():
    both = rescaled(rescaled(SUBJECTS["tree"], 2.0), 3.0)
    assert play(both)[1].guarantee().mu == pytest.approx(1 / 6)


def test_a_mechanism_that_cannot_be_scaled_is_named():
    control = next(control for control in CONTROLS["adar-ucb"] if control.name == "one-noise-for-all")
    with pytest.raises(NotRescalable, match=r"Pretending has no scaled\(factor\)"):
        play(rescaled(control.plant(ADAR["printed"]), 2.0))
    assert issubclass(NotRescalable, ValueError)


@pytest.mark.parametrize("factor", [0.0, -1.0, math.inf, math.nan])
def test_a_factor_is_a_positive_number(factor):
    with pytest.raises(ValueError, match="factor must be a finite number above 0"):
        rescaled(ADAR["tight"], factor)


def test_many_mechanisms_are_not_all_kept():
    class Fresh(RunningSumBed):
        def absorb(self, sensitive, released, record, ledger):
            object.__setattr__(self.sums, "mechanism", Gaussian(1.0, 1.0))
            return super().absorb(sensitive, released, record, ledger)

    algorithm = rescaled(Fresh(2, UNIT, LocalSum(Gaussian(1.0, 1.0))), 2.0)
    table = RewardTable(np.full((200, 2), 0.5), UNIT)
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(1)))
    sensitive, _ = run(algorithm, table, ledger)
    assert isinstance(algorithm, Rescaled)
    assert len(sensitive.memory) <= 64
    assert ledger.guarantee().mu == pytest.approx(0.5)
