"""The search for a least favorable pair: exact losses, found positions, values and contexts, and seeds of its own."""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, ndtr, ndtri

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.faults.releases import GENERIC
from bandana.audits.neighbors import worst_pair
from bandana.audits.neighbors.candidates import Candidate, candidate_pairs, early_probes, even_rewards
from bandana.audits.neighbors.neighbor import Context, Others
from bandana.audits.neighbors.worst_pair import Losses, find, losses, visible_mu
from bandana.audits.subjects import subjects
from bandana.audits.testbeds.blocks import UNIT, PhaseTotal, RunningSumBed, trials
from bandana.privacy_core import Exact, Gaussian, Interval, Laplace, LocalSum, PhaseSum, ReproducibleNoise

TRIALS, CONTEXT = trials(), Context(0.0, 1.0, Others.TABLE)
FAULTS = {control.name: control for control in GENERIC}


def _even(rounds, n_arms=2, reward=0.5):
    return RewardTable(np.full((rounds, n_arms), reward), UNIT)


def _adar(calibration="tight", epsilon=1.0, n_arms=2):
    return adar_ucb(n_arms, 2.0, epsilon, 3.1, UNIT, calibration)


# --- candidates ------------------------------------------------------------------------------------------------------


def test_a_candidate_is_a_pair_that_says_what_it_is():
    table = _even(5)
    pair = Candidate(3, Change(0.0, 5.0), CONTEXT).pair(table)
    assert pair.record == 3
    assert pair.data.rewards[:, 0].tolist() == [0.5, 0.5, 0.5, 0.0, 0.5]
    assert pair.neighbor.rewards[:, 1].tolist() == [0.5, 0.5, 0.5, 5.0, 0.5]
    assert (pair.data.reward_range, pair.neighbor.reward_range) == (UNIT, Interval(0.0, 5.0))
    assert pair.description == "record 3: every reward 0 becomes 5; all others as in the table"
    below = Candidate(0, Change(1.0, -4.0), CONTEXT).pair(table)
    assert below.neighbor.reward_range == Interval(-4.0, 1.0)


def test_candidates_stand_early_and_leave_decisions_open():
    assert early_probes(24, 2) == (0, 1, 2, 3, 4, 6, 8)
    assert early_probes(24, 5) == (0, 1, 2, 3, 4, 5, 6, 8)
    assert early_probes(2, 2) == (0, 1)
    assert early_probes(1, 2) == (0,)
    assert early_probes(10**6, 2)[-1] == 3 * 2**17
    pairs = candidate_pairs(24, 2, UNIT, (1, 4), 0)
    assert [pair.record for pair in pairs] == [1, 4] * 4
    assert len({pair.description for pair in pairs}) == 8
    for pair in pairs:
        differs = (pair.data.rewards != pair.neighbor.rewards).any(axis=1)
        assert np.flatnonzero(differs).tolist() == [pair.record]
    assert len(candidate_pairs(24, 2, UNIT)) == 4 * 7
    for context, rewards in even_rewards((24, 2), UNIT, 0).items():
        assert rewards.shape == (24, 2)
        if context.others is not Others.COINS:
            assert (rewards[:, 0] == rewards[:, 1]).all()


# --- many tables in one batch ----------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_a_stack_answers_as_each_table_does(seed, clips):
    rng = np.random.default_rng(seed)
    span = Interval(-0.3, 1.7)
    contexts = [RewardTable(rng.uniform(-0.3, 1.7, (12, 3)), span) for _ in range(2)]
    n_reps = 8
    context, record = rng.integers(0, 2, n_reps), rng.integers(0, 12, n_reps)
    wide = Interval(-3.0, 6.0)
    canaries, canary = RewardTable(rng.uniform(-3.0, 6.0, (4, 3)), wide), rng.integers(-1, 4, n_reps)
    user = rng.integers(0, 12, n_reps)
    n_records, actions = rng.integers(0, 13 - user), rng.integers(0, 3, n_reps)
    limits = Interval(0.1, 0.9) if clips else Interval(-9.0, 9.0)
    stack = contexts[0].stack(contexts, context, record, canaries, canary).clipped(limits)
    assert (stack.n_users, stack.n_actions) == (12, 3)
    got = stack.respond(user, n_records, actions)
    for r in range(n_reps):
        table = contexts[context[r]]
        if canary[r] >= 0:
            table = table.replaced(record[r], canaries.rewards[canary[r]], wide)
        assert got[r] == table.clipped(limits).respond(user[[r]], n_records[[r]], actions[[r]])[0]


# --- losses ----------------------------------------------------------------------------------------------------------


def _losses(algorithm, tried, contexts, n=16, stage=0):
    return losses(algorithm, contexts, tried, n, 0, stage)


def test_losses_of_gaussian_and_laplace_messages_are_the_calibrated_ones():
    contexts = {CONTEXT: _even(8)}
    tried = [Candidate(3, Change(0.0, top), CONTEXT) for top in (1.0, 0.5, 0.0, 7.0)]
    shares = np.array([1.0, 0.5, 0.0, 1.0])  # of the sensitivity; what lies outside the range is clipped
    gaussian = _losses(RunningSumBed(2, UNIT, LocalSum(Gaussian(1.0, 0.5))), tried, contexts)
    assert gaussian.mu == pytest.approx(np.tile(2 * shares[:, None], 16))
    assert np.isinf(gaussian.epsilon[shares > 0]).all()
    assert (gaussian.epsilon[2] == 0).all()
    laplace = _losses(RunningSumBed(2, UNIT, LocalSum(Laplace(1.0, 0.5))), tried, contexts)
    assert laplace.epsilon == pytest.approx(np.tile(2 * shares[:, None], 16))
    assert laplace.mu == pytest.approx(np.tile(2 * ndtri(expit(2 * shares))[:, None], 16))


def test_no_two_calls_of_a_search_draw_the_same_noise(monkeypatch):
    drawn = []

    def noted(seed):
        drawn.append(tuple(np.random.Generator(np.random.SFC64(seed)).integers(0, 1 << 62, 2).tolist()))
        return ReproducibleNoise(seed)

    monkeypatch.setattr(worst_pair, "ReproducibleNoise", noted)
    for seed, stage in ((0, 0), (0, 1), (1, 0), (0, 0)):
        losses(_adar(), {CONTEXT: _even(8)}, [Candidate(3, Change(0.0, 1.0), CONTEXT)], 2, seed, stage)
    assert drawn[3] == drawn[0]
    assert len(set(drawn)) == 3
    audits = tuple(
        np.random.Generator(np.random.SFC64(np.random.SeedSequence(0).spawn(1)[0])).integers(0, 1 << 62, 2).tolist()
    )
    assert audits not in drawn


def test_losses_of_several_releases_add_up():
    """A record of `repeated` lies in all later releases: mu^2 / 24 each."""
    bed = TRIALS["repeated"]
    tried = [Candidate(record, Change(0.0, 1.0), CONTEXT) for record in range(24)]
    got = _losses(bed.algorithm, tried, {CONTEXT: bed.table}, 2)
    assert got.mu == pytest.approx(np.sqrt((24 - np.arange(24)) / 24)[:, None] * np.ones(2))


def test_what_the_other_side_cannot_do_is_an_infinite_loss():
    contexts = {CONTEXT: _even(24)}
    tried = [Candidate(0, Change(0.0, 1.0), CONTEXT), Candidate(0, Change(0.0, 0.0), CONTEXT)]
    for name in ("noise-reused", "first-release-exact"):
        got = _losses(FAULTS[name].plant(_adar()), tried, contexts)
        assert np.isinf(got.mu[0]).all()
        assert np.isinf(got.epsilon[0]).all()
        assert (got.mu[1] == 0).all()
    twin = _losses(ucb(2, 3.1, UNIT), tried, contexts)
    assert np.isinf(twin.mu[0]).all()
    decides = _losses(FAULTS["decides-from-exact"].plant(_adar()), tried, contexts, 64)
    assert 0 < np.isinf(decides.mu[0]).sum() <= 64


@pytest.mark.parametrize(("name", "factor"), [("noise-halved", 2.0), ("noise-sqrt2", 2**0.5), ("released-again", 2**0.5)])
def test_the_loss_is_that_of_the_noise_that_is_drawn(name, factor):
    got = _losses(FAULTS[name].plant(_adar()), [Candidate(0, Change(0.0, 1.0), CONTEXT)], {CONTEXT: _even(24)})
    assert got.mu == pytest.approx(factor * np.ones((1, 16)))


def test_losses_do_not_depend_on_how_they_are_batched(monkeypatch):
    """Plays a run whose decisions do not change the loss; with other seeds for other batches."""
    tried = [Candidate(record, Change(0.0, 1.0), CONTEXT) for record in range(24)]
    whole = _losses(TRIALS["tree"].algorithm, tried, {CONTEXT: _even(24)})
    monkeypatch.setattr("bandana.audits.neighbors.worst_pair._CELLS", 24 * 20)
    assert np.allclose(_losses(TRIALS["tree"].algorithm, tried, {CONTEXT: _even(24)}).mu, whole.mu, atol=1e-12)


# --- the statistic ---------------------------------------------------------------------------------------------------


def test_equal_losses_are_their_own_statistic():
    for mu in (0.0, 0.01, 0.5, 1.0, 3.0):
        assert visible_mu(np.full(64, mu)) == mu
    assert visible_mu(np.full(64, np.inf)) == math.inf
    almost = np.array([1.0, 1.0 + 1e-14] * 32)
    assert visible_mu(almost) == pytest.approx(1.0, abs=1e-9)


def test_a_mixture_by_hand():
    """A tenth of infinite losses, no loss else: (FPR, FNR) is (1e-4, 0.9) at the best threshold."""
    mus = np.where(np.arange(100) < 10, np.inf, 0.0)
    assert visible_mu(mus) == pytest.approx(-ndtri(1e-4) - ndtri(0.9))


@given(st.lists(st.floats(0, 5), min_size=1, max_size=8))
def test_the_statistic_lies_between_the_losses(mus):
    assert -1e-9 <= visible_mu(np.array(mus)) <= max(mus) + 1e-6
    assert visible_mu(np.array(mus)) >= min(2 * ndtri(np.mean(ndtr(np.array(mus) / 2))), 7) * 0.99 - 1e-6


def test_a_rare_disaster_outweighs_a_common_trifle():
    rare = np.where(np.arange(256) < 8, np.inf, 1.0)
    assert visible_mu(rare) > visible_mu(np.full(256, 1.2))
    assert visible_mu(np.where(np.arange(256) < 128, 1.0, 0.0)) < 1


# --- the search ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("calibration", "epsilon"), [("tight", 1.0), ("printed", 1.0), ("tight", 0.25), ("printed", 4.0)])
def test_adar_ucb_reaches_its_claim(calibration, epsilon):
    """The printed noise of a first pull is twice what is needed, so that its worst canary comes later."""
    worst = find(_adar(calibration, epsilon), _even(1024), (), 0)
    assert worst.mu_analytic == pytest.approx(np.sqrt(epsilon), rel=1e-9)
    assert (worst.pair.record >= 2) or calibration == "tight"
    assert worst.epsilon_analytic == math.inf


@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS.keys())
def test_every_bed_reaches_its_claim(trial):
    """`gram-equal` takes two values of a turning angle and not the best ones, which reach its sensitivity to 2 %."""
    worst = find(trial.algorithm, trial.table, (), 0)
    assert 0.975 < worst.mu_analytic <= 1 + 1e-9


def test_pure_losses_are_told_as_such():
    worst = find(RunningSumBed(2, UNIT, LocalSum(Laplace(1.0, 2.0))), _even(24), (), 0)
    assert worst.epsilon_analytic == pytest.approx(0.5)
    assert worst.n_parts == 1
    assert worst.mu_analytic == pytest.approx(2 * ndtri(expit(0.5)))


@pytest.mark.parametrize(("label", "n_parts"), [("dp-se printed", 1), ("dp-ucb tight", 7), ("lin-priv tight", 14)])
def test_the_parts_of_a_pure_loss_are_counted(label, n_parts):
    """DP-UCB's reward is in the seven nodes of a tree of 64 rounds; that of `lin-priv` in five, in unequal coordinates."""
    trial = subjects()[label]().trial
    assert find(trial.algorithm, trial.table, trial.probes, 0, trial.private_records).n_parts == n_parts


def test_unequal_parts_count_as_the_equal_ones_with_their_squares():
    def pure(epsilon, squares):
        return Losses(np.zeros(2), np.array(epsilon), np.array(squares)).pure

    assert pure([0.5, 1.0], [0.25, 10 / 16]) == (1.0, 2)  # 3/4 and 1/4
    assert pure([1.0, 0.5], [1.0 / 7, 0.25]) == (1.0, 7)
    assert pure([0.0, 0.0], [0.0, 0.0]) == (0.0, 1)
    assert pure([1.0, np.inf], [0.25, 0.25]) == (math.inf, 1)


@pytest.mark.parametrize(("name", "least"), [
    ("noise-halved", 1.99), ("noise-sqrt2", 1.41), ("noise-reused", math.inf), ("first-release-exact", math.inf),
    ("released-again", 1.41), ("decides-from-exact", 2.0), ("not-clipped", 4.9),
])  # fmt: skip
def test_planted_faults_are_found(name, least):
    worst = find(FAULTS[name].plant(_adar()), _even(64), (), 1)
    assert worst.mu_analytic >= least
    if name == "not-clipped":
        assert "every reward 0 becomes 5" in worst.pair.description


@dataclass(frozen=True)
class Peaked(RunningSumBed):
    """A running sum in which one record weighs most, and its neighbors the less the farther they are."""

    peak: int = 0
    steep: float = 1 / 128

    def contribution(self, record):
        weight = np.maximum(0.0, 1 - self.steep * np.abs(record.user - self.peak))
        return record.rewards[:, 0] * weight


@pytest.fixture
def looks(monkeypatch):
    """(candidate, replays) of all looks of a search, in order."""
    seen, losses_of_all = [], worst_pair.losses

    def noted(algorithm, contexts, tried, n_replays, *seeds):
        seen.extend((str(candidate), n_replays) for candidate in tried)
        return losses_of_all(algorithm, contexts, tried, n_replays, *seeds)

    monkeypatch.setattr(worst_pair, "losses", noted)
    return seen


@pytest.mark.parametrize("peak", [0, 77, 121])
def test_positions_are_refined_between_the_probes(peak, looks):
    bed = Peaked(2, UNIT, PhaseTotal(PhaseSum(Gaussian(1.0, 1.0))), peak=peak)
    worst = find(bed, _even(128), (), 0)
    assert worst.pair.record == peak
    assert worst.mu_analytic == pytest.approx(1.0)
    assert len(set(looks)) < 250


def test_a_probe_is_looked_at_however_narrow_the_peak():
    bed = Peaked(2, UNIT, PhaseTotal(PhaseSum(Gaussian(1.0, 1.0))), peak=101, steep=1.0)
    assert find(bed, _even(128), (), 0).mu_analytic == 0
    assert find(bed, _even(128), (101,), 0).pair.record == 101


@pytest.mark.parametrize("record", [64, 96, 126, 127])
def test_late_records_are_looked_at_without_a_probe(record):
    """The middle, three quarters, and the last two, however narrow the peak."""
    bed = Peaked(2, UNIT, PhaseTotal(PhaseSum(Gaussian(1.0, 1.0))), peak=record, steep=1.0)
    assert find(bed, _even(128), (), 0).pair.record == record


@dataclass(frozen=True)
class Shy(RunningSumBed):
    """A tenth of the first eight rewards counts; later ones count in full if what was released of those is high."""

    def absorb(self, sensitive, released, record, ledger):
        later = np.where(released.statistic > 0.6, 1.0, 0.0)
        weight = np.where(released.clock < 8, 0.1, later)
        return super().absorb(sensitive, released, record._replace(rewards=record.rewards * weight[:, None]), ledger)


def test_the_context_is_searched_too():
    """A late canary costs 10 where those before it were high, as far as the noise on them allows; an early one costs 1."""
    worst = find(Shy(2, UNIT, PhaseTotal(PhaseSum(Gaussian(1.0, 0.1)))), _even(24), (), 0)
    assert worst.pair.record >= 8
    assert worst.mu_analytic > 4
    assert worst.pair.description.endswith("all other rewards 1")


def test_one_seed_finds_one_pair_by_the_same_looks(looks):
    one, two = (find(FAULTS["decides-from-exact"].plant(_adar()), _even(48), (7,), 3) for _ in range(2))
    half = len(looks) // 2
    assert looks[:half] == looks[half:]
    assert one.mu_analytic == two.mu_analytic
    assert one.pair.description == two.pair.description
    assert np.array_equal(one.pair.neighbor.rewards, two.pair.neighbor.rewards)
    assert {n_replays for _, n_replays in looks} == {64, 256}
    assert looks[-1] == (one.pair.description, 256)
    assert any(candidate.startswith("record 7:") for candidate, _ in looks)


def test_no_replay_of_an_audit_has_a_pilots_seed(monkeypatch):
    used = []

    def noise(seed):
        used.append((seed.entropy, seed.spawn_key))
        return kept(seed)

    kept = worst_pair.ReproducibleNoise
    monkeypatch.setattr(worst_pair, "ReproducibleNoise", noise)
    find(_adar(), _even(32), (), 5)
    assert len(used) == len(set(used)) >= 3
    assert all(key[0] == 0x7061_6972 for _, key in used)  # the children of an audit's root are numbered from 0


def test_the_table_and_its_range_are_kept(looks):
    span = Interval(-2.0, 6.0)
    table = RewardTable(np.random.default_rng(0).uniform(-2, 6, (20, 3)), span)
    worst = find(adar_ucb(3, 2.0, 1.0, 3.1, span, "tight"), table, (), 0)
    assert worst.mu_analytic == pytest.approx(1.0)
    assert worst.pair.data.reward_range == span
    assert "every reward -2 becomes 6" in worst.pair.description
    assert any("all others as in the table" in candidate for candidate, _ in looks)


def test_short_tables_are_searched_and_wrong_probes_refused():
    assert find(RunningSumBed(2, UNIT, LocalSum(Gaussian(1.0, 1.0))), _even(2), (), 0).mu_analytic == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"probes must lie in \[0, 24\), got \(24,\)"):
        find(_adar(), _even(24), (24,), 0)


def test_nothing_hides_in_an_exact_sum():
    bed = replace(TRIALS["phases"].algorithm, sums=PhaseTotal(PhaseSum(Exact())))
    assert find(bed, _even(24), (), 0).mu_analytic == math.inf
