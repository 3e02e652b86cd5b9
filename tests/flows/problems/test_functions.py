"""Known functions on public points: Sobol's sequence, functions of a chosen norm, and the same points as arms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from bandana.algorithms.environments.benchmark_functions import camelback, decision_set, nearest_of_norm
from bandana.algorithms.observers import RegretCurve
from bandana.algorithms.problem import FINITE, POOLED
from bandana.algorithms.rkhs.kernels import SquaredExponential, gram
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError

KERNEL = SquaredExponential(0.2)
TREE = {
    "name": "functions", "seed": 7, "environment": {"kind": "camelback", "actions": 32, "points": "sobol", "norm": 1.5},
    "horizon": 60, "replications": 3, "audit": {"rounds": 30, "replays": 1000},
    "algorithms": [
        {"algorithm": "gp-ucb-pool", "model": "none"},
        {"algorithm": "adar-ucb", "model": "central", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 1}},
    ],
}  # fmt: skip


def spec_of(**changes):
    return parse_spec(yaml.safe_dump(TREE | changes), "spec.yaml", Path())


def test_sobol_points_are_the_same_for_every_seed_but_for_the_place_of_the_best():
    sets = [decision_set(camelback(), 32, np.random.SeedSequence(seed), "sobol").points[0] for seed in (1, 2)]
    best = [int(np.flatnonzero((points == camelback().best).all(axis=1))[0]) for points in sets]
    others = [np.delete(points, place, axis=0) for points, place in zip(sets, best, strict=True)]
    assert np.array_equal(*others)
    assert others[0][:3].tolist() == [[0.0, 0.0], [0.5, -0.5], [-0.5, 0.5]]


@pytest.mark.numeric
def test_the_nearest_function_has_the_norm_and_no_other_of_that_norm_is_nearer():
    points = decision_set(camelback(), 64, np.random.SeedSequence(1), "sobol").points[0]
    values = camelback()(points) + 0.4
    found = nearest_of_norm(KERNEL, points, values, 1.0)
    matrix = gram(KERNEL, points, points)
    assert found @ np.linalg.solve(matrix, found) == pytest.approx(1.0, rel=1e-6)
    off = ((found - values) ** 2).sum()
    rng = np.random.default_rng(0)
    for _ in range(50):
        other = found + 0.05 * matrix @ rng.standard_normal(64)
        other /= np.sqrt(other @ np.linalg.solve(matrix, other))
        assert ((other - values) ** 2).sum() > off
    large = nearest_of_norm(KERNEL, points, values, 1e4)
    np.testing.assert_array_equal(large, values)


def test_points_are_arms_for_algorithms_that_know_of_no_kernel(tmp_path):
    pooled, arms = cells_of(spec_of())
    assert (pooled.environment.kind, arms.environment.kind) == (POOLED, FINITE)
    assert arms.settings.problem.kernel is None
    assert arms.environment.label == pooled.environment.label
    assert arms.blocks()[0].reward_seed.entropy == pooled.blocks()[0].reward_seed.entropy
    stream = pooled.environment.stream(np.random.SeedSequence(1))
    np.testing.assert_array_equal(arms.environment.means, stream.values[0])
    assert isinstance(arms.environment.regret(None, np.array([1]), 1), RegretCurve)
    for cell in (pooled, arms):
        regret = benchmark_block(cell.blocks()[0], Store(tmp_path))[0]["regret"]
        assert np.isfinite(regret).all()
        assert 0 < regret[:, -1].mean() < 60


def test_rewards_of_a_phase_are_those_of_its_rounds():
    arms = cells_of(spec_of())[1].environment
    stream, n = arms.stream(np.random.SeedSequence(3)), np.array([2000, 0, 1])
    total = stream.respond(np.zeros(3, dtype=np.int64), n, np.array([4, 5, 6]))
    assert total[1] == 0
    assert total[0] / 2000 == pytest.approx(arms.means[4], abs=5 * 0.1 / np.sqrt(2000))
    assert abs(total[2] - arms.means[6]) < 0.6


def test_audits_replay_two_points_in_both_views():
    for cell in cells_of(spec_of()):
        table, problem = cell.environment.audit_table(), cell.in_audit().problem
        assert table.n_actions == problem.n_actions == 2
        assert (problem.pool is None) == (cell.environment.kind == FINITE)


def test_what_is_played_and_how_far_off_it_is_are_described():
    text = environments_of(spec_of())[0].describe()["description"]
    assert "others of Sobol's sequence" in text
    assert "nearest function of norm 1.5" in text


def test_fewer_rounds_than_arms_are_refused():
    with pytest.raises(SpecError, match="horizon: must be at least 32 for 32 arms, got 20"):
        cells_of(spec_of(horizon=20))
    assert len(cells_of(spec_of(horizon=20, algorithms=TREE["algorithms"][:1]))) == 1


def test_a_random_function_with_one_context_is_played_as_arms_and_with_several_is_not():
    one = {"kind": "rkhs", "contexts": 1, "actions": 8}
    assert [cell.environment.kind for cell in cells_of(spec_of(environment=one))] == [POOLED, FINITE]
    with pytest.raises(SpecError, match="adar-ucb plays on finite and linear environments, and rkhs is pooled"):
        spec_of(environment=one | {"contexts": 2})
