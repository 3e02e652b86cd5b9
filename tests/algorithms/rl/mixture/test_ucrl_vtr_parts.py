"""Parts of the calibrations of UCRL-VTR and UCRL-VTR+: every combination keeps the claim, and changes what it names."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mixture_models import mixture, vtr
from test_ucrl_vtr import MODEL, K
from test_ucrl_vtr_privacy import neighbors, played

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.problem import Problem
from bandana.algorithms.rl.mixture.calibrations import calibrations
from bandana.algorithms.run import run
from bandana.privacy_core import ApproxDP, GaussianDP, Interval, LiveLedger, PureDP, ReproducibleNoise, ScriptedLedger

FORMS = [f"ucrl-vtr{plus} {trust}{pure}" for plus in ("", "-plus") for trust in ("joint", "local") for pure in ("", " pure")]


def mixtures(name):
    """Every combination of the options of an entry's parts."""
    options = find(name).part_options
    return [dict(zip(options, chosen, strict=True)) for chosen in itertools.product(*options.values())]


def built(name, parts):
    """The algorithm at epsilon 1 that plays on the table, and what its claim allows."""
    entry = find(name)
    privacy = PureDP(1.0) if entry.guarantee == "pure" else ApproxDP(1.0, 1e-5)
    problem = Problem(2, Interval(0.0, 1.0), K, model=MODEL)
    return entry.build(entry.settings(problem, parts, privacy)), privacy


def spent(ledger, privacy):
    found = ledger.guarantee()
    return found.epsilon if isinstance(privacy, PureDP) else found.gdp().mu


def test_there_are_as_many_combinations_as_the_parts_allow():
    assert [len(mixtures(name)) for name in FORMS] == [16, 8, 8, 8, 64, 32, 32, 32]


@pytest.mark.parametrize("name", FORMS)
def test_every_combination_keeps_the_claim(name):
    """The ledger of a run shows at most the claim; with `tight` noise exactly it, with printed noise what that spends."""
    limit = 1.0 if "pure" in name else GaussianDP.from_epsilon_delta(1.0, 1e-5).mu
    algorithm, privacy = built(name, "printed")
    printed = spent(played(algorithm), privacy)
    assert printed < 0.6 * limit
    for parts in mixtures(name):
        algorithm, privacy = built(name, parts)
        mu = spent(played(algorithm), privacy)
        assert mu <= limit * (1 + 1e-12), parts
        assert mu == pytest.approx(limit if parts["noise"] == "tight" else printed, rel=1e-9), parts


@pytest.mark.parametrize("name", FORMS)
def test_no_combination_lets_a_neighbor_move_a_release_by_more_than_its_sensitivity(name):
    for seed, parts in enumerate(mixtures(name)):
        algorithm, _ = built(name, parts)
        ledger = played(algorithm)
        scripted = ScriptedLedger(2, ledger.transcript, keeps_values=True)
        run(algorithm, neighbors(seed), scripted)
        assert (scripted.diverged == -1).all()
        for one, other in zip(ledger.transcript, scripted.values, strict=True):
            moved = one.mechanism.change(one.value, other)
            assert (moved <= one.mechanism.sensitivity * (1 + 1e-12)).all(), parts


@pytest.mark.parametrize("name", FORMS)
def test_named_calibrations_are_combinations_of_their_parts(name):
    entry = find(name)
    is_joint = "joint" in name
    assert entry.parts == calibrations("plus" in name, is_joint, "pure" in name)
    assert list(entry.parts) == (["printed", "tree", "tight"] if is_joint and "pure" not in name else ["printed", "tight"])
    for calibration, parts in entry.parts.items():
        assert entry.calibrated(parts)[0] == calibration


def test_printed_noise_on_a_factorized_sum_is_recalibrated_to_its_own_budget():
    """4 nodes of a tree hold a record of 12: the same mu in one release needs half the noise multiplier."""
    tree = vtr("joint printed", MODEL, K).sums.mechanism
    factorized = vtr("joint printed", MODEL, K, parts={"sum": "factorized"}).sums.mechanism
    assert factorized.noise_multiplier == pytest.approx(tree.noise_multiplier / 2)
    assert factorized.diagonal_ratio == tree.diagonal_ratio


def test_printed_widths_follow_noise_and_values():
    """U is the norm factor times the largest deviation of the sum, the share of a step, and its values' bound is H."""
    algorithm = vtr("joint tight", MODEL, K, parts={"width": "printed"})
    factor = 4 * np.sqrt(3) + 2 * np.log(6 * K * 3 * K)
    deviation = max(algorithm.sums.noise_deviation(k) for k in range(1, K + 1))
    shares, bound = np.array(algorithm.shares), np.array(algorithm.targets.value_bound)
    ridge, upsilon = np.array(algorithm.targets.norm_bound) ** 2, deviation * factor * shares
    assert algorithm.shift(7).added == pytest.approx(ridge + 2 * upsilon)
    chance = bound * np.sqrt(2 * (np.log(3 * 3 * K) + 1.5 * np.log(1 + 3 * K)))
    width = 3 * (np.sqrt(3) + 1) * np.sqrt(ridge + upsilon) + chance
    assert algorithm.published(7) == pytest.approx(width)
    _, released = algorithm.init(2)
    assert released.width == pytest.approx(np.tile(width, (2, 1)))


def test_laplace_noise_of_the_printed_shape_has_its_own_bound_on_vectors():
    algorithm = vtr("pure local tight", MODEL, K, parts={"noise": "printed"})
    noise = algorithm.sums.mechanism
    matrix, vector = algorithm.norms.bounds(algorithm.sums, 5)
    assert noise.vector_ratio == pytest.approx(2 * np.sqrt(3) / 3)
    found = algorithm.regression.bounds(5)
    assert found[0] == pytest.approx(matrix * np.array(algorithm.shares))
    assert found[1] == pytest.approx(vector * noise.vector_ratio * np.array(algorithm.shares))


class _Ellipsoids:
    """The largest distance of an estimate from the truth so far, in units of the width, after every tenth episode."""

    def __init__(self, truth):
        self.truth, self.released, self.reached = truth, None, 0.0

    def observe(self, record):
        if int(record.user[0]) % 10 == 9:
            away, gram = self.released.estimate - self.truth, np.linalg.inv(self.released.inverse)
            norm = np.sqrt(np.einsum("rbi,rbij,rbj->rb", away, gram, away))
            self.reached = max(self.reached, float((norm / self.released.width).max()))


@pytest.mark.parametrize("parts", [{}, {"weights": "variance"}, {"width": "printed"}, {"noise": "printed"}])
@pytest.mark.parametrize("name", ["ucrl-vtr joint", "ucrl-vtr-plus joint", "ucrl-vtr-plus local"])
def test_the_truth_stays_in_every_ellipsoid(name, parts):
    """In 20 runs of 400 episodes with failure 0.2, at epsilon 100; exact widths are at most six times too large."""
    entry = find(name)
    parts = {part: option for part, option in parts.items() if part in entry.part_options}
    model, parameters = mixture(3, 2, 3, 3, seed=4, is_sparse=False)
    algorithm = entry.build(
        entry.settings(
            Problem(2, Interval(0.0, 1.0), 400, model=model),
            entry.parts["tight"] | parts,
            ApproxDP(100.0, 1e-5),
            failure=0.2,
        )
    )
    truth = parameters[list(algorithm.targets.steps)]
    seen = _Ellipsoids(np.concatenate([truth] * (algorithm.n_blocks // len(truth))))

    class Watched(type(algorithm)):
        def init(self, n_reps):
            sensitive, seen.released = super().init(n_reps)
            return sensitive, seen.released

    watched = Watched(**{field: getattr(algorithm, field) for field in algorithm.__dataclass_fields__})
    stream = FiniteMDP(model.transitions(parameters), model.rewards, 400, np.random.SeedSequence(1))
    run(watched, stream, LiveLedger(20, ReproducibleNoise(np.random.SeedSequence(2))), observers=[seen])
    assert seen.reached < 1
    assert seen.reached > (1 / 20 if parts.get("width") == "printed" else 1 / 6)


@pytest.mark.parametrize("name", FORMS)
def test_a_bound_on_the_regret_wherever_one_is_proved(name):
    """None for printed bounds on sums of Laplace noise; else from every width, the trivial one with this much noise."""
    model, _ = mixture(3, 2, 3, 3)
    entry, problem = find(name), Problem(2, Interval(0.0, 1.0), 2000, model=model)
    for parts in mixtures(name):
        privacy = PureDP(1e4) if "pure" in name else ApproxDP(1e4, 1e-5)
        found = entry.bound(entry.settings(problem, parts, privacy), None, np.array([1, 2000]))
        if "pure" in name and parts["width"] == "printed":
            assert found is None
        else:
            assert (found.values > 0).all()
            assert (found.values <= 3 * np.array([1, 2000])).all()
