"""Audits of GP-UCB: a small one that passes with every planted fault caught, and claims that are false as printed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from nightly import first

from bandana.algorithms.bandits.kernel.gp_ucb import GPUCBSettings
from bandana.algorithms.catalog import find
from bandana.algorithms.environments.tables import ContextTable, random_table, sphere_table
from bandana.algorithms.environments.worst_pools import worst_pool
from bandana.algorithms.problem import Problem
from bandana.algorithms.rkhs.features import feature_map
from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.pairs import canary_pairs
from bandana.audits.outcome import DETERMINISTIC, NOISE, Effort
from bandana.audits.replays.replay import replay_both
from bandana.audits.searches.deterministic import search
from bandana.audits.searches.noise import examine_noise
from bandana.audits.testbeds.catalog import bed_settings
from bandana.audits.trial import Trial
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, TrustModel

SYMMETRIC, UNIT = Interval(-1.0, 1.0), Interval(0.0, 1.0)
KERNEL = SquaredExponential(0.5)
ROUNDS, N_ACTIONS = 16, 3
PROBLEM = Problem(N_ACTIONS, UNIT, ROUNDS, dimension=2, kernel=KERNEL)
TABLE = sphere_table(ROUNDS, N_ACTIONS, 2, UNIT, np.random.SeedSequence(0))
EPSILON = 4.377  # (4.377, 1e-5)-DP is 1-GDP for Gaussian noise


def trial(name, calibration):
    entry = find(name)
    settings = bed_settings(entry, PROBLEM, calibration)
    algorithm = entry.build(settings)
    assert (algorithm.n_features, algorithm.horizon) == (4, ROUNDS)
    return Trial(algorithm, entry.promise(settings), TABLE, entry.probes(N_ACTIONS))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["gp-ucb joint", "gp-ucb local"])
def test_a_small_audit_passes_and_catches_every_fault(name):
    found = audit(trial(name, "tight"), CONTROLS[name], Effort(3000, 0.95, 1e-5, 40, 0))
    missed = {control.name: (control.measured, control.caught) for control in found.controls if not control.is_caught}
    assert not missed
    assert str(found.verdict) == "PASS"


@pytest.mark.parametrize("trust", first(1, [TrustModel.LOCAL, TrustModel.JOINT]))
def test_the_worst_pair_nearly_reaches_the_claim(trust):
    """Canaries move points, whose features have any product between two; the worst needs 1/4, the best of these has 0.03."""
    settings = GPUCBSettings(N_ACTIONS, feature_map(KERNEL, 2, 4), ROUNDS, UNIT)
    algorithm = settings.private(ApproxDP(EPSILON, 1e-5), trust, "tight")
    found = worst_pair.find(algorithm, TABLE, (0, 5), 0, private_records=True)
    assert 0.97 < found.mu_analytic <= 1 + 1e-9
    assert found.pair.hidden_record == found.pair.record
    rewards = worst_pair.find(algorithm, TABLE, (0, 5), 0)
    assert rewards.mu_analytic == pytest.approx(0.8, abs=1e-3), "rewards alone: 2 Y / (1 + Y^2) at Y = 1/2"


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_opposite_rewards_at_one_point_are_the_worst_pair_of_a_wide_range(calibration):
    """At Y = 1 the least favorable pair has one point: it reaches the claim with exact noise, a twelfth of it as printed."""
    table = ContextTable(TABLE.features, 2 * TABLE.rewards - 1, SYMMETRIC)
    algorithm = GPUCBSettings(N_ACTIONS, feature_map(KERNEL, 2, 4), ROUNDS, SYMMETRIC).private(
        ApproxDP(EPSILON, 1e-5), TrustModel.JOINT, calibration
    )
    found = worst_pair.find(algorithm, table, (0,), 0, private_records=True)
    assert found.mu_analytic == pytest.approx(1.0 if calibration == "tight" else 0.08, abs=0.01)


def test_what_is_false_as_printed_is_told_apart_by_the_book():
    """Lemma 5 at epsilon = 10, for rewards of the scale that it states: the accountant finds 10.56."""
    scale = math.sqrt(1 + 2 * math.log(8 * 4 / 1e-5))
    span = Interval(-scale, scale)
    algorithm = GPUCBSettings(N_ACTIONS, feature_map(KERNEL, 2, 4), ROUNDS, span, norm_bound=1.0).private(
        ApproxDP(10.0, 1e-5), TrustModel.LOCAL, "printed"
    )
    claim = GaussianDP.from_epsilon_delta(10.0, 1e-5)
    found = search(algorithm, span, claim, 40, private_records=True)
    assert found is not None
    assert "2.0899-GDP; the claim is 2.00045-GDP" in "\n".join(found.lines())
    true = GaussianDP(1 / algorithm.sums.mechanism.noise_multiplier)
    assert true.epsilon(1e-5) == pytest.approx(10.56, abs=0.01)
    assert search(algorithm, span, true, 40, private_records=True) is None


SET = Pool(0.7 * TABLE.features[:1, :, :], np.ones(1))
ON_SET = replace(PROBLEM, pool=SET)
each_model = pytest.mark.parametrize("model", ["joint", "local"])


def trial_on_one_set(model):
    """One public decision set: users bring other vectors all the same, which are not read."""
    entry = find(f"gp-ucb-pool {model}")
    settings = bed_settings(entry, ON_SET, "tight")
    return Trial(entry.build(settings), entry.promise(settings), TABLE, (0,))


@each_model
def test_public_counts_leave_nothing_to_find_and_hide_no_fault(model):
    honest = trial_on_one_set(model)
    span, claim = TABLE.reward_range, honest.claim.gaussian
    assert search(honest.algorithm, span, claim, 60, ROUNDS, private_records=True) is None
    assert examine_noise(honest.algorithm, TABLE, seed=1) is None
    planted = [control for control in CONTROLS[f"gp-ucb-pool {model}"] if control.is_fault(honest.algorithm)]
    names = {control.name for control in planted}
    assert "seen-reward-decides" in names
    assert "counts-taken-for-public" not in names
    for control in planted:
        faulty = control.plant(honest.algorithm)
        if DETERMINISTIC in control.caught_by:
            assert search(faulty, span, claim, 150, ROUNDS, False, True) is not None, control.name
        if NOISE in control.caught_by:
            assert examine_noise(faulty, TABLE, seed=1) is not None, control.name


@each_model
def test_opposite_rewards_are_the_worst_pair_of_public_counts(model):
    """One reward moves by the whole range, whatever decision set its record holds: the claim is reached exactly."""
    honest = trial_on_one_set(model)
    found = worst_pair.find(honest.algorithm, TABLE, (0,), 0, private_records=True)
    assert found.mu_analytic == pytest.approx(honest.claim.gaussian.mu, rel=1e-6)


@pytest.mark.nightly
@each_model
def test_a_small_audit_of_public_counts_passes_and_catches_every_fault(model):
    found = audit(trial_on_one_set(model), CONTROLS[f"gp-ucb-pool {model}"], Effort(3000, 0.95, 1e-5, 40, 0))
    missed = {control.name: (control.measured, control.caught) for control in found.controls if not control.is_caught}
    assert not missed
    assert str(found.verdict) == "PASS"


def bed_with_two_contexts(model, lengthscale):
    """The entry's own pool, and users who bring its contexts."""
    entry = find(f"gp-ucb-pool {model}")
    pool = worst_pool(entry.audit_pool, 2, 2, lengthscale)
    brought = pool.drawn(ROUNDS, np.random.Generator(np.random.SFC64(1)))
    table = ContextTable(pool.points[brought], random_table(ROUNDS, 2, UNIT, 1).rewards, UNIT)
    problem = Problem(2, UNIT, ROUNDS, dimension=2, kernel=SquaredExponential(lengthscale), pool=pool)
    return entry.build(bed_settings(entry, problem, "tight")), table


@each_model
@pytest.mark.parametrize("lengthscale", [0.1, 0.4, 2.0])
def test_an_exact_count_decides_on_the_pool_of_audits(model, lengthscale):
    """Each canary whose context changes moves a count, and in one of thirty replays at least that shows."""
    honest, table = bed_with_two_contexts(model, lengthscale)
    fault = next(control for control in CONTROLS[f"gp-ucb-pool {model}"] if control.name == "counts-taken-for-public")
    faulty = fault.plant(honest)
    moved = [pair for pair in canary_pairs(table, (0,), private_records=True) if pair.hidden_record == 0]
    assert len(moved) == 2
    for pair in moved:
        first, second = (
            honest.pool.placed(side.contexts(np.zeros(1, dtype=np.int64)), False) for side in (pair.data, pair.neighbor)
        )
        assert first != second
        seeds = np.random.SeedSequence(2).spawn(2)
        told = [np.isinf(side.log_ratio).mean() for side in replay_both(faulty, pair, 500, tuple(seeds))]
        assert max(told) > 1 / 30
        kept = [np.isinf(side.log_ratio).any() for side in replay_both(honest, pair, 500, tuple(seeds))]
        assert not any(kept)
