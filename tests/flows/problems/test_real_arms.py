"""Gaussian, beta, Pareto and drifting arms: their means, and regret against the best arm of each round."""

import numpy as np
import pytest
import yaml
from scipy import integrate, stats
from small_spec import SMALL

from bandana.algorithms.environments.real_arms import BetaArms, DriftingArms, GaussianArms, ParetoArms, clipped_mean, path_of
from bandana.algorithms.observers import DriftingRegretCurve, log_grid
from bandana.algorithms.protocol import Record
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.environment import CONSTANT, UNIFORM
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import load_spec, parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
GAUSSIAN = {"kind": "gaussian", "means": [0.6, 0.4], "deviation": 0.3}
BETA = {"kind": "beta", "means": [0.6, 0.4]}
PARETO = {"kind": "pareto", "means": [0.3, 0.1]}
DRIFTING = {"kind": "drifting", "means": [[0.9, 0.1], [0.1, 0.9]], "change": "abrupt"}


def test_the_mean_of_a_clipped_normal_is_its_integral():
    for center, deviation in ((0.5, 0.2), (1.3, 0.4), (-0.2, 2.0)):
        law = stats.norm(center, deviation)
        points = [0.0, 1.0]
        inside = integrate.quad(lambda x, law=law: x * law.pdf(x), *points)[0]
        expected = inside + law.sf(1.0)
        assert clipped_mean(np.array([center]), deviation, UNIT)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "arms",
    [
        lambda n, seed: GaussianArms([0.9, 0.2], 0.4, UNIT, n, seed),
        lambda n, seed: BetaArms([0.9, 0.2], 2.0, n, seed),
        lambda n, seed: ParetoArms([0.9, 0.2], 1.2, n, seed),
        lambda n, seed: DriftingArms(np.tile([0.9, 0.2], (n, 1)), seed),
    ],
    ids=["gaussian", "beta", "pareto", "drifting"],
)
def test_sums_of_phases_have_the_mean_that_regret_is_counted_with(arms):
    """20,000 rewards of each arm in [0, 1]: by Hoeffding an average is off by 0.02 with probability below 2.3e-7."""
    n = 20_000
    stream = arms(n, np.random.SeedSequence(3))
    sums = stream.respond(np.zeros(2, dtype=int), np.full(2, n), np.arange(2))
    np.testing.assert_allclose(sums / n, stream.means, atol=0.02)
    assert stream.respond(np.zeros(2, dtype=int), np.array([3, 0]), np.arange(2))[1] == 0.0


def test_a_path_is_walked_in_steps_or_on_lines():
    assert path_of([[0.0, 1.0], [1.0, 0.0]], 4, is_smooth=False)[:, 0].tolist() == [0.0, 0.0, 1.0, 1.0]
    assert path_of([[0.0, 1.0], [1.0, 0.0]], 5, is_smooth=True)[:, 0].tolist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert path_of([[0.3, 1.0]], 3, is_smooth=True)[:, 0].tolist() == [0.3] * 3


def test_drifting_regret_is_the_same_in_phases_and_round_by_round():
    gaps = np.array([[0.0, 3.0], [0.0, 1.0], [2.0, 0.0], [5.0, 0.0]])
    lost = np.concatenate([np.zeros((1, 2)), np.cumsum(gaps, axis=0)])
    phases, slowly = (DriftingRegretCurve(lost, np.arange(1, 5), 2) for _ in range(2))

    def play(curve, user, length, actions):
        none = np.zeros((2, 1))
        curve.observe(Record(np.array(user), np.array(length), None, np.array(actions)[:, None], none))

    play(phases, [0, 0], [3, 1], [0, 1])
    play(phases, [3, 1], [1, 3], [1, 0])
    for t in range(4):
        play(slowly, [t, t], [1, 1], [0 if t < 3 else 1, 1 if t < 1 else 0])
    assert slowly.curve.tolist() == [[0.0, 0.0, 2.0, 2.0], [3.0, 3.0, 5.0, 10.0]]
    np.testing.assert_array_equal(phases.curve, slowly.curve)


def test_pareto_rewards_by_hand():
    """At tail 2 a scale s has the mean 2 s - s^2, so 0.36 has s = 0.2: P(X > x) = 0.04 / x^2, and 0.04 of all become 1.

    20,000 rewards: by Hoeffding a share is off by 0.02 with probability below 2.3e-7.
    """
    n = 20_000
    arms = ParetoArms([0.36, 0.19], 2.0, n, np.random.SeedSequence(4))
    rewards = arms.drawn(np.arange(n), np.zeros(n, dtype=int))
    assert rewards.min() == pytest.approx(0.2, rel=1e-3)
    assert rewards.max() == 1.0
    for level, share in ((0.25, 0.64), (0.4, 0.25), (0.8, 0.0625), (1 - 1e-9, 0.04)):
        assert (rewards > level).mean() == pytest.approx(share, abs=0.02)
    assert arms.drawn(np.arange(n), np.ones(n, dtype=int)).min() == pytest.approx(0.1, rel=1e-3)
    for wrong in (1.0, 0.5, np.inf):
        with pytest.raises(ValueError, match="tail must be a finite number above 1"):
            ParetoArms([0.5, 0.4], wrong, n, np.random.SeedSequence(4))


@pytest.mark.parametrize("environment", [GAUSSIAN, BETA, PARETO, DRIFTING], ids=lambda each: each["kind"])
def test_each_kind_is_played_and_audited(write_spec, tmp_path, environment):
    spec = load_spec(write_spec(environment=environment))
    for cell in cells_of(spec):
        arrays, _ = benchmark_block(cell.blocks()[0], Store(tmp_path / "results"))
        assert (np.diff(arrays["regret"], axis=1) >= -1e-9).all()
    (found,) = environments_of(spec)
    table = found.audit_table()
    assert table.rewards.shape == (16, 2)
    assert found.describe()["means"] == pytest.approx(found.means.tolist())


def test_reference_rows_follow_the_drift(write_spec):
    (found,) = environments_of(load_spec(write_spec(environment=DRIFTING, horizon=500)))
    grid = log_grid(500)
    curves = found.reference_curves(found.stream(np.random.SeedSequence(0)), grid, 3)
    np.testing.assert_allclose(curves[UNIFORM][0], 0.4 * grid)
    assert curves[CONSTANT].shape == (3, len(grid))
    assert curves[CONSTANT][0, grid <= 250].max() == pytest.approx(0.0)
    assert curves[CONSTANT][0, -1] == pytest.approx(0.8 * 250)
    gaps = found.reference_gaps(None, 1)
    assert gaps[CONSTANT][0] * 500 == pytest.approx(curves[CONSTANT][0, -1])


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (GAUSSIAN | {"low": 1.0}, "low must be below high"),
        (GAUSSIAN | {"deviation": 0}, "greater than 0"),
        (BETA | {"means": [0.5, 1.0]}, "less than 1"),
        (PARETO | {"means": [0.5, 0.0]}, "greater than 0"),
        (PARETO | {"tail": 1}, "greater than 1"),
        (DRIFTING | {"means": [[0.9, 0.1], [0.1, 0.9, 0.5]]}, r"means\[1\]: has 3 arms where the first time has 2"),
        (DRIFTING | {"means": [[0.9]]}, "at least 2"),
    ],
)
def test_what_does_not_fit_is_refused(environment, message):
    with pytest.raises(SpecError, match=message):
        parse_spec(yaml.safe_dump(yaml.safe_load(SMALL) | {"environment": environment}), "spec.yaml", None)
