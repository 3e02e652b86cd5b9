"""The audit of the noise: its false alarms are as rare as it says, and what it reports is what is wrong."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

from bandana.algorithms.bandits.finite_arm.episodic_ucb import adar_ucb, ucb
from bandana.algorithms.environments.tables import RewardTable
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.releases import Pretending, planted
from bandana.audits.faults.sums import CONTROLS_OF_SUMS
from bandana.audits.searches.noise import NoiseFinding, examine
from bandana.audits.testbeds.blocks import UNIT, EliminationBed, PhaseTotal, RunningSumBed, trials
from bandana.privacy_core import DiscreteGaussian, Gaussian, Laplace, LocalSum, PhaseSum

TRIALS = trials()
TABLE = TRIALS["local"].table


@pytest.fixture(scope="module")
def rewards():
    return RewardTable(np.random.default_rng(0).integers(0, 2, (32, 2)).astype(float), UNIT)


def _drawing(bed, draw):
    """The bed with another way to draw: (call, mechanism, noise, value)."""

    def fault(request, memory):
        call = memory.n_calls
        pretending = Pretending(request.mechanism, lambda honest, noise, value: draw(call, honest, noise, value))
        return request.release(mechanism=pretending)

    return planted(fault)(bed)


@pytest.mark.parametrize("name", ["tree-uneven", "gram-local"])
def test_false_alarms_are_as_rare_as_stated(name):
    """At 10 % a run, 100 runs: at most the number that chance exceeds with 1e-4; the union bound leaves room below."""
    trial = TRIALS[name]
    table = RewardTable(np.full((6, 2), 0.5), UNIT)
    alarms = sum(examine(trial.algorithm, table, n_reps=256, seed=seed, false_alarm=0.1) is not None for seed in range(100))
    assert 1 <= alarms <= binom.isf(1e-4, 100, 0.1)


@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_adar_ucb_is_clean_though_its_replicates_do_not_keep_step(rewards, calibration):
    """False alarm: 1e-6."""
    assert examine(adar_ucb(2, 2.0, 1.0, 3.1, UNIT, calibration), rewards) is None


def test_of_the_planted_faults_of_adar_ucb_those_of_the_noise_are_seen(rewards):
    honest = adar_ucb(2, 2.0, 1.0, 3.1, UNIT, "printed")
    found = {control.name: examine(control.plant(honest), rewards) for control in CONTROLS["adar-ucb"]}
    assert {name for name, finding in found.items() if finding} == {"one-noise-for-all", "first-pull-exact"}
    assert "linear combination" in str(found["one-noise-for-all"])
    assert str(found["first-pull-exact"]) == "release 0: a coordinate left without noise"


def test_a_twin_has_no_noise(rewards):
    assert examine(ucb(2, 3.1, UNIT), rewards) == NoiseFinding((0,), "a coordinate left without noise")


NAMES = {
    ("tree", "one-noise-a-level"): ((0, 2), "linear combination"),
    ("tree", "seed-of-its-own"): ((0,), "seed of its own"),
    ("tree", "sqrt-of-the-deviation"): ((0,), "0.6"),
    ("phases", "one-noise-for-two-phases"): ((0, 1), "linear combination"),
    ("gram-joint", "one-noise-for-matrix-and-vector"): ((0,), "linear combination"),
    ("gram-only", "half-taken-for-goe"): ((0,), "0.7"),
    ("gram-only", "upper-triangle-only"): ((0,), "copies of others"),
    ("gram-only", "no-noise-on-the-diagonal"): ((0,), "without noise"),
    ("gram-only", "made-positive"): ((0,), "has a mean"),
    ("gram-repeated", "noise-reused"): ((0, 1), "linear combination"),
}


@pytest.mark.parametrize(("bed", "fault"), NAMES, ids=lambda name: name)
def test_it_names_the_releases_and_says_why(bed, fault):
    (control,) = (c for c in CONTROLS_OF_SUMS[bed] if c.name == fault)
    found = examine(control.plant(TRIALS[bed].algorithm), TRIALS[bed].table)
    releases, reason = NAMES[bed, fault]
    assert found is not None
    assert found.releases == releases
    assert reason in found.reason


def test_dependence_between_three_releases_is_seen_though_no_two_are_alike():
    kept = {}

    def draw(call, mechanism, noise, value):
        added = mechanism.draw(noise, np.zeros_like(value)) if call != 5 else (kept[1] + kept[2] + kept[3]) / np.sqrt(3)
        kept[call] = added
        return value + added

    found = examine(_drawing(TRIALS["local"].algorithm, draw), TABLE)
    assert found is not None
    assert found.releases[-1] == 5
    assert found.releases[0] in {1, 2, 3}
    assert "linear combination" in found.reason


@pytest.mark.parametrize(("share", "is_seen"), [(0.3, True), (0.0, False)])
def test_a_weak_correlation_is_seen(share, is_seen):
    kept = {}

    def draw(call, mechanism, noise, value):
        added = mechanism.draw(noise, np.zeros_like(value))
        added = np.sqrt(1 - share**2) * added + share * kept.get(call - 1, np.zeros_like(value))
        kept[call] = added
        return value + added

    found = examine(_drawing(TRIALS["local"].algorithm, draw), TABLE)
    assert (found is not None) == is_seen
    if found:
        assert "correlated" in found.reason or "deviation" in found.reason


@pytest.mark.parametrize(("factor", "is_seen"), [(1.15, True), (0.85, True), (1.0, False)])
def test_a_deviation_15_percent_off_is_seen_in_both_directions(factor, is_seen):
    faulty = _drawing(TRIALS["local"].algorithm, lambda call, m, noise, value: m.scaled(factor).draw(noise, value))
    found = examine(faulty, TABLE)
    assert (found is not None) == is_seen


def test_one_draw_for_all_replicates_is_seen():
    """A batch axis that was forgotten: every replicate of a batch gets the same noise."""
    faulty = _drawing(
        TRIALS["local"].algorithm, lambda call, m, noise, value: value + m.draw(noise, np.zeros((1, *value.shape[1:])))
    )
    assert str(examine(faulty, TABLE)) == "release 0: the noise is one number for all replicates of a run"


@pytest.mark.parametrize(
    "mechanism", [Laplace(1.0, 1.0), DiscreteGaussian(1.0, 1.0, 2.0**-3), DiscreteGaussian(1.0, 1.0, 0.5)]
)
def test_other_laws_are_known(mechanism):
    """False alarm: 1e-6; noise of half the size is seen."""
    bed = RunningSumBed(2, UNIT, LocalSum(mechanism))
    assert examine(bed, TABLE) is None
    weak = _drawing(bed, lambda call, m, noise, value: m.scaled(0.5).draw(noise, value))
    assert "deviation" in str(examine(weak, TABLE))


def test_gaussian_noise_is_not_taken_for_laplace_noise_of_the_same_deviation():
    class Disguised(Gaussian):
        @property
        def event(self):
            return Laplace(1.0, 1.0).event

        @property
        def scale(self):
            return 1.0

        def draw(self, noise, value):
            return noise.add_gaussian(value, np.sqrt(2.0), 1.0)

    found = examine(RunningSumBed(2, UNIT, LocalSum(Disguised(1.0, 1.0))), TABLE, n_reps=16_384)
    assert "deviation" in str(found)


def test_the_public_elimination_with_scalar_laplace_noise_is_seen():
    honest = EliminationBed(2, UNIT, PhaseTotal(PhaseSum(Laplace(1.0, 1.0))))
    assert examine(honest, TABLE) is None
    (control,) = (c for c in CONTROLS_OF_SUMS["elimination"] if c.name == "one-noise-for-all")
    assert examine(control.plant(honest), TABLE) == NoiseFinding(
        (0,), "the noise is a linear combination of earlier noise: the outputs combine to exact values"
    )


def test_noise_that_depends_on_earlier_noise_without_correlation_is_a_known_blind_spot():
    kept = {}

    def draw(call, mechanism, noise, value):
        added = mechanism.draw(noise, np.zeros_like(value))
        if call == 1:
            added = np.abs(kept[0]) * np.sign(added)
        kept[call] = added
        return value + added

    assert examine(_drawing(TRIALS["local"].algorithm, draw), TABLE) is None


def test_the_same_seed_gives_the_same_answer():
    weak = _drawing(TRIALS["local"].algorithm, lambda call, m, noise, value: m.scaled(0.5).draw(noise, value))
    assert examine(weak, TABLE, seed=3) == examine(weak, TABLE, seed=3)


def test_too_few_replicates_are_refused():
    with pytest.raises(ValueError, match="24 released coordinates need n_reps of at least 100, got 64"):
        examine(TRIALS["local"].algorithm, TABLE, n_reps=64)
    with pytest.raises(ValueError, match="24 released coordinates need n_reps of at least 100, got 99"):
        examine(TRIALS["local"].algorithm, TABLE, n_reps=99)
    assert examine(TRIALS["local"].algorithm, TABLE, n_reps=100) is None
    with pytest.raises(ValueError, match="n_reps must be a whole number of at least 64, got 10"):
        examine(TRIALS["local"].algorithm, TABLE, n_reps=10)
    with pytest.raises(ValueError, match="false_alarm must lie strictly between 0 and 1"):
        examine(TRIALS["local"].algorithm, TABLE, false_alarm=0.0)


def test_an_unknown_law_is_refused():
    @dataclass(frozen=True, eq=False)
    class Uniform(Pretending):
        event = None

    bed = TRIALS["local"].algorithm
    strange = replace(
        bed, sums=LocalSum(Uniform(bed.sums.mechanism, lambda honest, noise, value: honest.draw(noise, value)))
    )
    with pytest.raises((TypeError, AttributeError)):
        examine(strange, TABLE)
