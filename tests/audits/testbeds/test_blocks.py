"""Honest beds: they keep the contract of algorithms, and claimed >= accounted >= measured, close to each other."""

from dataclasses import replace

import numpy as np
import pytest
from nightly import first, one_of_each
from sum_audit import EXAMPLES, measured

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.audits.outcome import accounted_mu
from bandana.audits.searches import deterministic, noise
from bandana.audits.seeds import derive
from bandana.audits.testbeds.blocks import UNIT, PhaseTotal, RepeatedSum, trials
from bandana.privacy_core import Exact, Gaussian, LiveLedger, PhaseSum, ReproducibleNoise

TRIALS = trials()
EACH = pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS.keys())
ONE_OF_EACH_KIND = pytest.mark.parametrize("name", one_of_each(TRIALS, lambda name: name.split("-")[0], str))


@EACH
def test_an_honest_bed_spends_its_claim_and_no_more(trial):
    accounted = accounted_mu(derive(trial.algorithm, trial.table, seed=0, n_reps=16))
    assert accounted <= trial.claim.mu
    assert accounted == pytest.approx(trial.claim.mu, rel=1e-9)


@ONE_OF_EACH_KIND
def test_a_few_replays_of_the_worst_pair_come_close_to_the_claim_and_stay_below(name):
    """A bound above the claim has a probability of at most 5 % a bed; it is stated for this seed."""
    trial = TRIALS[name]
    assert 0.85 < measured(trial, trial.algorithm, 20_000, trial.pairs[:1], seed=2) <= trial.claim.mu


@EACH
@pytest.mark.parametrize("examples", first(1, [EXAMPLES // 4, EXAMPLES]))
def test_an_honest_bed_has_no_counterexample(trial, examples):
    assert deterministic.search(trial.algorithm, trial.table.reward_range, trial.claim, examples) is None


@EACH
def test_an_honest_bed_has_no_flaw_in_its_noise(trial):
    """False alarm: 1e-6 a bed."""
    assert noise.examine(trial.algorithm, trial.table) is None


@pytest.mark.nightly
@EACH
def test_more_replays_reach_95_percent_of_the_claim_and_stay_below(trial):
    """A bound above the claim has a probability of at most 5 % a bed; it is stated for this seed."""
    assert 0.95 < measured(trial, trial.algorithm, 100_000, seed=3) <= trial.claim.mu


@EACH
def test_other_budgets_are_kept_too(trial):
    for mu in (0.25, 3.0):
        other = trials(mu)[trial.name]
        accounted = accounted_mu(derive(other.algorithm, other.table, seed=0, n_reps=4))
        assert mu * (1 - 1e-9) < accounted <= mu


@EACH
def test_a_jump_and_round_by_round_are_the_same_run(trial):
    logs, outputs = [], []
    for jump in (True, False):
        ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(5)), keeps_transcript=True)
        log = ActionLog()
        run(trial.algorithm, trial.table, ledger, observers=[log], jump=jump)
        logs.append(np.repeat(np.concatenate(log.actions), np.concatenate(log.n_records)))
        outputs.append([release.output for release in ledger.transcript])
    np.testing.assert_array_equal(*logs)
    for jumped, stepped in zip(*outputs, strict=True):
        np.testing.assert_array_equal(jumped, stepped)


@EACH
def test_nobody_decides_from_what_was_not_released(trial):
    """The twin of a bed, on two tables that differ in the last record, plays alike until that record was seen."""
    logs = []
    for row in ((0.0, 0.0), (1.0, 1.0)):
        table = trial.table.replaced(20, row)
        log = ActionLog()
        run(
            trial.algorithm, table, LiveLedger(64, ReproducibleNoise(np.random.SeedSequence(6))), observers=[log], jump=False
        )
        logs.append(np.array(log.actions)[:21])
    np.testing.assert_array_equal(*logs)


def test_the_elimination_bed_drops_the_arm_that_is_behind():
    table = RewardTable(np.tile([1.0, 0.0], (24, 1)), UNIT)
    bed = replace(TRIALS["elimination"].algorithm, sums=PhaseTotal(PhaseSum(Exact())))
    log = ActionLog()
    run(bed, table, LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0))), observers=[log])
    played = np.repeat(np.concatenate(log.actions), np.concatenate(log.n_records))
    np.testing.assert_array_equal(played, [0] * 4 + [1] * 4 + [0] * 16)


def test_the_gram_bed_contributes_what_it_says():
    bed = TRIALS["gram-equal"].algorithm
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0)), keeps_transcript=True)
    exact = replace(bed, sums=PhaseTotal(PhaseSum(Exact())))
    run(exact, RewardTable(np.tile([1.0, 1.0], (3, 1)), UNIT), ledger)
    x = np.array([np.cos(np.pi / 3), np.sin(np.pi / 3), 0.0])
    np.testing.assert_allclose(ledger.transcript[0].value[0], np.column_stack([np.outer(x, x), -x]), atol=1e-15)


def test_a_repeated_sum_takes_no_more_steps_than_it_was_built_for():
    sums = RepeatedSum(Gaussian(1.0, 1.0), n_steps=1)
    ledger = LiveLedger(1, ReproducibleNoise(np.random.SeedSequence(0)))
    state, one = sums.init(1), np.ones(1, dtype=np.int64)
    state, _, _ = sums.close(sums.add(state, np.ones(1), one), ledger)
    with pytest.raises(ValueError, match="built for 1 steps, this is step 2"):
        sums.close(sums.add(state, np.ones(1), one), ledger)


@pytest.mark.parametrize("sums", [PhaseTotal(PhaseSum(Gaussian(1.0, 2.0))), RepeatedSum(Gaussian(1.0, 2.0), 9)])
def test_the_stated_deviation_is_the_one_drawn(sums):
    """4 steps of 1e5 replicates: a relative error of 2 % in the deviation is 9 standard errors."""
    ledger = LiveLedger(100_000, ReproducibleNoise(np.random.SeedSequence(1)))
    state, one = sums.init(100_000), np.ones(100_000, dtype=np.int64)
    for step in range(1, 5):
        state, noisy, _ = sums.close(sums.add(state, np.ones(100_000), one), ledger)
        assert np.std(noisy) == pytest.approx(sums.noise_deviation(step), rel=0.02)
        assert np.mean(noisy) == pytest.approx(step, abs=0.1)
