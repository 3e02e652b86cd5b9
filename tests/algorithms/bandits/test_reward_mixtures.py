"""Mixtures of the calibrations of bandits with private rewards: each keeps the claim, and its widths cover."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from doubles import OwnNoiseLedger

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import RegretCurve
from bandana.algorithms.problem import Problem
from bandana.algorithms.run import run
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import DETERMINISTIC
from bandana.audits.searches.deterministic import search
from bandana.privacy_core import Interval, LiveLedger, PureDP, RenyiDP, ReproducibleNoise

UNIT = Interval(0.0, 1.0)
FEATURES = ((1.0, 0.0), (0.0, 1.0), (0.6, 0.6))
LABELS = ("adar-ucb", "adap-ucb", "adap-klucb", "adar-gope")
MIXTURES = [
    (label, dict(zip(find(label).part_options, choice, strict=True)))
    for label in LABELS
    for choice in product(*find(label).part_options.values())
]
each_mixture = pytest.mark.parametrize(
    ("label", "parts"), MIXTURES, ids=lambda value: value if isinstance(value, str) else "-".join(value.values())
)


def settings_of(label, calibration, epsilon=0.5, horizon=1000, **parameters):
    entry = find(label)
    features = FEATURES if label == "adar-gope" else None
    given = {"beta_scale": 0.03, "failure": 0.1} if features else {}
    privacy = PureDP(epsilon) if entry.guarantee == "pure" else RenyiDP(2.0, epsilon)
    return entry.settings(Problem(3, UNIT, horizon, features=features), calibration, privacy, **{**given, **parameters})


def built(label, calibration, **more):
    return find(label).build(settings_of(label, calibration, **more))


def test_there_are_as_many_mixtures_as_options_multiply_to():
    assert len(MIXTURES) == 8 + 4 + 2 + 8


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_a_calibration_is_the_mixture_of_its_parts(label, calibration):
    assert built(label, calibration) == built(label, dict(find(label).parts[calibration]))


@each_mixture
def test_every_mixture_spends_the_claim_and_no_more(label, parts):
    """Printed first pulls of AdaR-UCB spend half the claimed mu; later episodes spend all of it in every mixture."""
    entry, settings = find(label), settings_of(label, parts)
    ledger = OwnNoiseLedger([1, 2, 3])
    table = RewardTable((np.random.default_rng(1).random((300, 3)) < 0.5).astype(float), UNIT)
    run(entry.build(settings), table, ledger)
    claim, spent = entry.promise(settings), ledger.guarantee()
    if entry.guarantee == "pure":
        assert 0.999 * claim.stated.epsilon < spent.epsilon <= claim.stated.epsilon
    else:
        assert 0.999 * claim.gaussian.mu < spent.mu <= claim.gaussian.mu


@each_mixture
def test_the_audit_without_statistics_finds_nothing_in_mixtures(label, parts):
    entry, settings = find(label), settings_of(label, parts)
    book = None if entry.guarantee == "pure" else entry.promise(settings).gaussian
    assert search(entry.build(settings), UNIT, book, max_examples=25, max_rounds=24) is None


@pytest.mark.parametrize(
    ("label", "parts"),
    [
        ("adar-ucb", {"noise": "printed", "width": "exact", "estimator": "all"}),
        ("adap-ucb", {"width": "printed", "estimator": "all"}),
        ("adap-klucb", {"estimator": "all"}),
        ("adar-gope", {"noise": "tight", "lengths": "exact", "width": "printed"}),
    ],
)
def test_planted_faults_are_found_in_mixtures(label, parts):
    entry, settings = find(label), settings_of(label, parts)
    book = None if entry.guarantee == "pure" else entry.promise(settings).gaussian
    honest, tried = entry.build(settings), 0
    for control in CONTROLS[label]:
        if DETERMINISTIC in control.caught_by and control.is_fault(honest):
            assert search(control.plant(honest), UNIT, book, 200, 24, shrinks=False) is not None, control.name
            tried += 1
    assert tried >= 3


@pytest.mark.parametrize(("label", "parts"), [mixture for mixture in MIXTURES if mixture[0] != "adar-gope"])
def test_indices_of_mixtures_fail_as_seldom_as_they_say(label, parts):
    """2,000 runs: at the end of 2,000 rounds arm 0's mean is above its index with probability at most c t^-beta.

    At beta = 0.5 and t = 2,000 that is 0.022 c; the rate is below it by five standard errors, false alarm 3e-7.
    """
    algorithm, n_reps = built(label, parts, epsilon=0.2, horizon=2000, beta=0.5), 2000
    environment = BernoulliArms([0.5, 0.45, 0.4], 2000, np.random.SeedSequence(3))
    _, released = run(algorithm, environment, LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(4))))
    index, log, n_episodes = algorithm.index, np.log(2000.0), 1 + np.log2(released.pulls[:, 0]).astype(int)
    is_over = released.left == 0  # else the pulls of an episode under way are counted, and it is not in the mean
    width = index.width(released.deviation[:, 0], released.tail[:, 0], algorithm.beta, log, n_episodes - ~is_over)
    rate, most = (released.mean[:, 0] + width < 0.5).mean(), index.misses * 2000**-0.5
    assert rate < most + 5 * np.sqrt(most / n_reps)


@pytest.mark.parametrize(("label", "parts"), [mixture for mixture in MIXTURES if mixture[0] != "adar-gope"])
def test_the_regret_of_mixtures_is_below_its_bound(label, parts):
    algorithm = built(label, parts, horizon=64, beta=4.0)
    bound = find(label).bound(settings_of(label, parts, horizon=64, beta=4.0), np.array([0.6, 0.5, 0.4]), np.array([10, 64]))
    grid = np.array([10, 64])
    environment = BernoulliArms([0.6, 0.5, 0.4], 64, np.random.SeedSequence(3))
    curve = RegretCurve(environment.means, grid, 200)
    run(algorithm, environment, LiveLedger(200, ReproducibleNoise(np.random.SeedSequence(4))), observers=[curve])
    assert (curve.curve.mean(axis=0) <= bound.values).all()


@pytest.mark.parametrize(
    "parts", [parts for label, parts in MIXTURES if label == "adar-gope"], ids=lambda p: "-".join(p.values())
)
def test_phases_of_every_mixture_reach_their_goal(parts):
    """Whatever the noise and the length, no exact width is above what the phase is for, and the printed one is that."""
    rng = np.random.default_rng(5)
    for dimension, n_arms, epsilon, scale in [(2, 6, 0.05, 1.0), (3, 12, 1.0, 0.1), (4, 9, 20.0, 1.0), (3, 3, 0.1, 0.01)]:
        features = rng.normal(size=(n_arms, dimension))
        features /= np.linalg.norm(features, axis=1)[:, None]
        problem = Problem(n_arms, UNIT, 10**6, features=tuple(map(tuple, features.tolist())))
        given = {"beta_scale": scale, "failure": 0.1}
        entry = find("adar-gope")
        algorithm = entry.build(entry.settings(problem, parts, RenyiDP(2.0, epsilon), **given))
        for phase in (1, 3):
            plan, target = algorithm.plan(phase, np.ones(n_arms, dtype=bool)), 2.0**-phase / 2
            assert plan.width.max() <= target * (1 + 1e-12)
            if parts["width"] == "printed":
                assert plan.width == pytest.approx(np.full(n_arms, target))
            assert plan.counts.sum() <= algorithm.most_rounds(phase)
            noise = algorithm.noise.mechanism.deviation**2 * (plan.predict**2).sum(axis=1)
            goal = algorithm.goal(phase, dimension, n_arms)
            if parts["width"] == "exact":
                assert ((plan.width / scale) ** 2 / (2 * goal.log_term) > noise).all()


def test_lengths_and_widths_make_the_difference_and_noise_does_not():
    """Lengths make phases on 50 arms in three dimensions three times as short at epsilon = 1, noise 1.2 times."""
    rng = np.random.default_rng(6)
    features = rng.normal(size=(50, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    entry, problem = find("adar-gope"), Problem(50, UNIT, 10**6, features=tuple(map(tuple, features.tolist())))

    def rounds(noise, lengths):
        parts = {"noise": noise, "lengths": lengths, "width": "exact"}
        algorithm = entry.build(entry.settings(problem, parts, RenyiDP(2.0, 1.0)))
        return algorithm.plan(2, np.ones(50, dtype=bool)).counts.sum()

    assert rounds("printed", "printed") == rounds("tight", "printed")
    assert rounds("printed", "printed") > 3 * rounds("printed", "exact")
    assert rounds("tight", "exact") <= rounds("printed", "exact") < 1.2 * rounds("tight", "exact")


@pytest.mark.parametrize("label", ["gope", "adar-gope"])
@pytest.mark.parametrize("calibration", ["printed", "tight"])
def test_the_order_of_linear_arms_does_not_matter(label, calibration):
    """Permuted features and permuted rewards give the same run, permuted, to the last bit."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(14, 3))
    features /= np.linalg.norm(features, axis=1)[:, None]
    order = rng.permutation(14)
    rewards = (rng.random((4000, 14)) < 0.5 + 0.4 * features @ features[0]).astype(float)
    found = []
    for turn in (np.arange(14), order):
        entry = find(label)
        problem = Problem(14, UNIT, 4000, features=tuple(map(tuple, features[turn].tolist())))
        level = (calibration, RenyiDP(2.0, 1.0)) if entry.promise else ()
        algorithm = entry.build(entry.settings(problem, *level, beta_scale=0.2))
        _, released = run(algorithm, RewardTable(rewards[:, turn], UNIT), OwnNoiseLedger([1, 2]))
        found.append(released)
    assert (found[0].phase >= 2).all()
    assert np.array_equal(found[0].active[:, order], found[1].active)
    assert np.array_equal(found[0].estimate[:, order], found[1].estimate, equal_nan=True)
