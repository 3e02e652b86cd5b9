"""Batched LSVI-UCB: the worst record is the theorem's, batches are runs, vanishing noise leaves the twin."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles import ConstantNoise, OwnNoiseLedger
from lsvi_cases import DELTA, HORIZON, LENGTH, MODEL, PRIVATE, TABLE, TWINS, UNIT, D, played, quiet, with_user

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.papers.luyo import lsvi_printed_sds
from bandana.algorithms.papers.readings import separate_statistics
from bandana.algorithms.rl.linear_mdp.forms import LSVI
from bandana.algorithms.run import run
from bandana.privacy_core import (
    ApproxDP,
    BudgetExceeded,
    GaussianDP,
    LiveLedger,
    NoPrivacy,
    PureDP,
    Relation,
    ReproducibleNoise,
    ScriptedLedger,
)

LIMIT = GaussianDP.from_epsilon_delta(1.0, DELTA).mu
SCALE = 0.01
each = pytest.mark.parametrize("name", list(PRIVATE))
tight = pytest.mark.parametrize("name", [name for name in PRIVATE if "printed" not in name])


# --- the price -------------------------------------------------------------------------------------------------------


@each
def test_the_worst_record_pays_for_matrices_and_for_every_update(name):
    """One factorized sequence, or the nodes of a tree over 5 batches; and H vectors at each update."""
    algorithm, ledger = PRIVATE[name](), OwnNoiseLedger([1, 2, 3])
    _, _, released = played(algorithm, ledger)
    updates = int(released.n_updates.max())
    matrices = 1 if "joint" in name and "printed" not in name else len(algorithm.schedule.looks).bit_length()
    paid = ledger.worst_record()
    assert sum(paid.values()) == matrices + LENGTH * updates
    assert paid[algorithm.matrices.mechanism.event] >= matrices
    assert all(paid[mechanism.event] >= updates for mechanism in algorithm.vectors)
    assert ledger.guarantee().relation is Relation.REPLACE_RECORD


@tight
def test_tight_noise_is_at_the_claim_exactly(name):
    algorithm, ledger = PRIVATE[name](), OwnNoiseLedger([1])
    played(algorithm.most_costly(), ledger)
    found = ledger.guarantee()
    if "pure" in name:
        assert 1 - 1e-9 < found.epsilon <= 1
    else:
        assert LIMIT * (1 - 1e-9) < found.mu <= LIMIT


def test_printed_noise_costs_what_the_calibration_says():
    """The ledger adds the worst of the matrices to the worst of the vectors; no record has both: at most 5/4 as much."""
    ledger, algorithm = OwnNoiseLedger([1]), PRIVATE["joint printed"]()
    played(algorithm, ledger)
    matrix_sd, vector_sd = lsvi_printed_sds(1.0, DELTA, LENGTH, 6)
    values = [LENGTH + 1] * (LENGTH - 1) + [1]
    nodes, updates = 3, 5
    square = nodes * 2 * LENGTH / matrix_sd**2 + updates * sum(4 * v**2 for v in values) / vector_sd**2
    assert ledger.guarantee().mu ** 2 == pytest.approx(square, rel=1e-9)
    exact, _ = separate_statistics(algorithm.matrices.mechanism, algorithm.vectors, nodes, updates, D)
    assert exact**2 <= square <= 1.25 * exact**2


def test_pure_noise_as_printed_keeps_its_claim_in_few_dimensions_and_breaks_it_in_many():
    for d, is_kept in ((D, True), (64, False)):
        model = LinearModel(np.eye(3 * 2, d).reshape(3, 2, d), LENGTH)
        ledger = OwnNoiseLedger([1])
        played(LSVI(model, HORIZON, n_batches=60).private(PureDP(1.0), "printed"), ledger)
        assert isinstance(ledger.guarantee(), PureDP)
        assert (ledger.guarantee().epsilon <= 1) == is_kept
        right = OwnNoiseLedger([1])
        played(LSVI(model, HORIZON).private(PureDP(1.0), "tight"), right)
        assert right.guarantee().epsilon <= 1


def test_the_split_is_the_best_one():
    """No other share of the budget for the matrices makes the widths at the last look smaller."""
    algorithm = LSVI(MODEL, 100_000, batches="geometric").private(ApproxDP(1.0, DELTA), "tight")
    last, best = len(algorithm.schedule.looks), None
    node = algorithm.matrices.mechanism.noise_multiplier
    mu_matrices = 1 / (LIMIT * node)
    for factor in (0.8, 0.95, 1.0, 1.05, 1.2):
        others = math.sqrt((1 - (factor * mu_matrices) ** 2) / (1 - mu_matrices**2))
        moved = dataclasses.replace(
            algorithm,
            matrix_norms=tuple(norm / factor for norm in algorithm.matrix_norms),
            vector_norms=tuple(norm / others for norm in algorithm.vector_norms),
        )
        total = float(moved.widths(last).sum())
        best = (total, factor) if best is None or total < best[0] else best
    assert best[1] == 1.0
    assert 0.1 < mu_matrices**2 < 0.9


def test_tight_widths_are_a_fraction_of_the_printed_ones():
    printed = LSVI(MODEL, 100_000).private(ApproxDP(1.0, DELTA), "printed")
    better = LSVI(MODEL, 100_000).private(ApproxDP(1.0, DELTA), "tight")
    assert printed.matrix_norms[1] > 1e4 * better.matrix_norms[-1]
    assert printed.vectors[0].scale > 1e3 * better.vectors[0].scale


# --- what moves ------------------------------------------------------------------------------------------------------


def scripted(algorithm, data, neighbor, n_reps=12):
    live = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(3)), keeps_transcript=True)
    first, second = ActionLog(), ActionLog()
    run(algorithm, data, live, observers=[first])
    other = ScriptedLedger(n_reps, live.transcript, keeps_values=True)
    run(algorithm, neighbor, other, observers=[second])
    other.finish()
    return live, other, np.array(first.actions), np.array(second.actions)


@each
@pytest.mark.parametrize("user", [0, 17, HORIZON - 1])
def test_the_neighbor_script_acts_alike(name, user):
    """Given what was released, a changed user changes no schedule, no action of others, and values within bounds."""
    live, other, mine, theirs = scripted(PRIVATE[name](beta_scale=SCALE), TABLE, with_user(TABLE, user))
    assert (other.diverged < 0).all()
    own = np.arange(user * LENGTH, (user + 1) * LENGTH)
    assert np.array_equal(np.delete(mine, own, axis=0), np.delete(theirs, own, axis=0))
    moved = 0
    for release, value in zip(live.transcript, other.values, strict=True):
        change = release.mechanism.change(release.value, value)
        assert (change <= release.mechanism.sensitivity * (1 + 1e-9)).all()
        assert (change[~release.reads(user)] <= 1e-9).all()
        moved += int((change > 1e-9).any())
    assert moved == 0 if user == HORIZON - 1 else moved > 0


def test_the_sensitivities_are_attained():
    """Opposite features and rewards at both ends move each vector by H - h + 1; orthogonal ones the matrix by sqrt 2."""
    x = np.array([[[1.0, 0.0]] * 2, [[-1.0, 0.0]] * 2, [[0.0, 1.0]] * 2])
    model = LinearModel(x, 2)
    algorithm = LSVI(model, 4, n_batches=2).private(ApproxDP(50.0, DELTA), "tight")
    stay = np.tile(np.arange(3)[:, None], (4, 2, 1, 2))
    data = EpisodeTable([0, 0, 0, 0], stay, np.ones((4, 2, 3, 2)), UNIT)
    for start, reward, matrix, vector in ((1, 1.0, 0.0, 1.0), (2, 1.0, 1.0, math.sqrt(0.5))):
        rewards = data.rewards.copy()
        rewards[0] = reward
        neighbor = EpisodeTable([start, 0, 0, 0], stay, rewards, UNIT)
        live, other, *_ = scripted(algorithm, data, neighbor, 1)
        changes = [
            float(release.mechanism.change(release.value, value)[0]) / release.mechanism.sensitivity
            for release, value in zip(live.transcript, other.values, strict=True)
        ]
        assert changes[0] == pytest.approx(matrix, abs=1e-12)
        assert changes[1] == pytest.approx(vector), "the last step, whose targets are rewards"


# --- batches, the twin, the budget -----------------------------------------------------------------------------------


@each
def test_a_replicate_of_a_batch_is_its_lone_run(name):
    algorithm = PRIVATE[name](beta_scale=SCALE)
    actions, _, released = played(algorithm, OwnNoiseLedger([5, 6, 7]))
    for row, seed in enumerate([5, 6, 7]):
        alone, _, one = played(algorithm, OwnNoiseLedger([seed]))
        assert np.array_equal(alone[0], actions[row])
        np.testing.assert_allclose(one.weights[0], released.weights[row], rtol=1e-8, atol=1e-14)
        assert one.n_updates[0] == released.n_updates[row]


@tight
def test_without_noise_it_is_its_twin(name):
    twin, _, expected = played(TWINS[name.split()[1]](beta_scale=SCALE), OwnNoiseLedger([0]))
    actions, _, found = played(quiet(PRIVATE[name](beta_scale=SCALE)), OwnNoiseLedger([0]))
    assert np.array_equal(actions, twin)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-5, atol=1e-6)
    assert len({tuple(row) for row in twin[0].tolist()}) > 2


@pytest.mark.parametrize("name", list(TWINS))
def test_the_twin_has_no_privacy_and_says_so(name):
    ledger = LiveLedger(1, ConstantNoise())
    played(TWINS[name](), ledger)
    assert isinstance(ledger.guarantee(), NoPrivacy)


@pytest.mark.parametrize("name", ["joint geometric", "pure geometric"])
def test_the_budget_refuses_before_noise_is_drawn(name):
    """What is left is less than the last vector costs: all before it is released, and it is not."""
    noise = ConstantNoise()
    budget = PureDP(0.999999) if "pure" in name else GaussianDP(0.999999 * LIMIT, relation=Relation.REPLACE_RECORD)
    ledger = LiveLedger(1, noise, budget=dataclasses.replace(budget, relation=Relation.REPLACE_RECORD))
    algorithm = PRIVATE[name]()
    with pytest.raises(BudgetExceeded):
        played(algorithm, ledger)
    assert noise.calls == len(algorithm.schedule.looks) * (1 + LENGTH) - 1
