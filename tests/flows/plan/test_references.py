"""Reference rows, twins without noise, public coins and paired comparisons of a benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml

from bandana.algorithms.catalog import find
from bandana.algorithms.environments.mdp_instances import patients
from bandana.algorithms.mdp.planning import plan
from bandana.flows.cells.replicates import play, with_coins
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.plan.roles import Role
from bandana.flows.problems.kinds import environments_of
from bandana.flows.results.comparisons import comparisons, twin_of
from bandana.flows.spec.spec import parse_spec

TREE = {
    "name": "small", "seed": 3, "horizon": 300, "replications": 6, "block_size": 6,
    "environment": [{"kind": "bernoulli", "means": [0.2, 0.9, 0.4]}],
    "algorithms": [{"algorithm": "adar-ucb", "privacy": {"alpha": 2, "epsilon": 0.1}}],
    "audit": {"rounds": 16, "replays": 2000},
}  # fmt: skip


def spec_of(**changed):
    return parse_spec(yaml.safe_dump({**TREE, **changed}), "spec.yaml", Path())


def of_role(spec, role):
    return [cell for cell in Plan.of(spec).played if cell.role is role]


def test_every_private_cell_is_played_without_its_noise_and_beside_the_references():
    spec = spec_of()
    assert [cell.name for cell in Plan.of(spec).played] == [
        "adar-ucb printed eps=0.1", "adar-ucb tight eps=0.1", "adar-ucb printed eps=0.1 without noise",
        "adar-ucb tight eps=0.1 without noise", "uniform play", "greedy",
    ]  # fmt: skip
    assert len(list(Plan.of(spec_of(twins=False, references=False)).played)) == 2
    assert not any(cell.is_private for cell in Plan.of(spec).played if cell.role is not Role.ALGORITHM)


def test_a_twin_spends_no_budget_that_is_finite_and_is_reproducible():
    (twin, _) = of_role(spec_of(), Role.TWIN)
    arrays, description = play(twin.blocks()[0])
    assert (description["mu"], description["noise"]) == (None, "none")
    assert np.isinf(arrays["mu_spent"][-1])
    again, _ = play(twin.blocks()[0])
    assert np.array_equal(arrays["regret"], again["regret"])


def test_a_twin_has_the_same_widths_and_forgetting_as_its_cell():
    """Both are one algorithm on the same rewards; all that differs is where the noise comes from."""
    (cell, *_), (twin, *_) = of_role(spec_of(), Role.ALGORITHM), of_role(spec_of(), Role.TWIN)
    assert twin.algorithm() == cell.algorithm()
    (one,), (other,) = cell.blocks(), twin.blocks()
    assert one.reward_seed.spawn_key == other.reward_seed.spawn_key
    assert one.key != other.key


def test_uniform_play_on_arms_by_hand():
    cell = next(cell for cell in Plan.of(spec_of()).played if cell.name == "uniform play")
    arrays, _ = play(cell.blocks()[0])
    assert arrays["regret"][:, -1] == pytest.approx(300 * (0.7 + 0.0 + 0.5) / 3)


def test_greedy_play_is_the_index_without_its_width():
    cell = next(cell for cell in Plan.of(spec_of()).played if cell.name == "greedy")
    regret = play(cell.blocks()[0])[0]["regret"][:, -1]
    assert regret.shape == (6,)
    assert regret.min() >= 0.7 + 0.5 - 1e-9, "every arm is played once"


@pytest.mark.parametrize(
    ("environment", "names"),
    [
        ({"kind": "sphere", "actions": 4, "dimension": 3}, ["uniform play"]),
        ({"kind": "sphere", "actions": 3, "dimension": 1}, ["uniform play"]),
        ({"kind": "rkhs-gap", "actions": 4, "dimension": 2}, ["uniform play"]),
        ({"kind": "rkhs", "contexts": 3, "actions": 4}, ["uniform play", "best constant action"]),
        ({"kind": "rkhs", "contexts": 3, "actions": 4, "functions": "each"}, ["uniform play", "best constant action"]),
        ({"kind": "camelback", "actions": 5}, ["uniform play"]),
    ],
)
def test_expected_regret_is_what_simulated_policies_lose(environment, names):
    """2,000 users of uniform play and of each constant action; five standard errors are allowed."""
    algorithm = {"sphere": "linucb"}.get(environment["kind"], "gp-ucb")
    spec = spec_of(
        environment=[environment], algorithms=[{"algorithm": algorithm}], horizon=4000, replications=8, block_size=8
    )
    (found,) = environments_of(spec)
    seed, n_reps, generator = np.random.SeedSequence(5), 8, np.random.default_rng(1)
    gaps = found.reference_gaps(found.stream(seed), n_reps)
    assert list(gaps) == list(found.references) == names
    stream = found.stream(seed)
    losses = []
    for round_ in range(4000):
        user = np.full(n_reps, round_)
        means = stream.mean_rewards(user, stream.contexts(user))
        actions = generator.integers(0, means.shape[1], n_reps)
        losses.append(means.max(axis=1) - means[np.arange(n_reps), actions])
    errors = np.std(losses, axis=0) / np.sqrt(4000)
    assert (np.abs(np.mean(losses, axis=0) - gaps["uniform play"]) < 5 * errors).all()


def test_reference_policies_of_episodes_are_rows():
    spec = spec_of(environment=[{"kind": "patients", "steps": 3}], algorithms=[{"algorithm": "ucrl-vtr"}])
    (found,) = environments_of(spec)
    gaps = found.reference_gaps(found.stream(np.random.SeedSequence(5)), 2)
    assert 0 < gaps["best constant action"][0] < gaps["uniform play"][0]
    assert [cell.name for cell in of_role(spec, Role.REFERENCE)] == ["uniform play", "best constant action", "greedy"]


def test_policies_in_episodes_are_evaluated_exactly():
    found = patients(2, (0.2, 0.2, 0.6))
    shape = found.rewards.shape
    weights = np.full(shape, 1 / shape[2])
    by_hand = found.rewards[1].mean(axis=1)
    values = plan(found.transitions, found.rewards, weights).values
    assert values[1] == pytest.approx(by_hand)
    assert values[0] == pytest.approx((found.rewards[0] + found.transitions[0] @ by_hand).mean(axis=1))
    constant = plan(found.transitions, found.rewards, np.ones(shape[:2], dtype=int))
    one_hot = plan(found.transitions, found.rewards, np.eye(shape[2])[np.ones(shape[:2], dtype=int)])
    assert np.allclose(constant.values, one_hot.values)


def test_results_do_not_hang_on_the_order_of_arms():
    """Arms in another order, met in the order that gives each its old label: the same regret, bit for bit."""
    entry = find("adap-klucb")
    spec = spec_of(algorithms=[{"algorithm": "adap-klucb", "privacy": {"epsilon": 1}}])
    (cell, *_) = cells_of(spec)
    _, labels = with_coins(entry, cell.settings, np.random.SeedSequence(1), 2000)
    assert np.array_equal(np.sort(labels, axis=1), np.tile(np.arange(3), (2000, 1)))
    counts = np.array([(labels[:, 0] == arm).sum() for arm in range(3)])
    assert (np.abs(counts - 2000 / 3) < 5 * np.sqrt(2000 * 2 / 9)).all()
    _, again = with_coins(entry, cell.settings, np.random.SeedSequence(1), 2000)
    assert np.array_equal(labels, again)


def test_cells_are_compared_with_twin_first_calibration_and_references():
    cells = list(Plan.of(spec_of()).played)
    finals = {cell.name: np.arange(6.0) * (i + 1) for i, cell in enumerate(cells)}
    found = comparisons(cells, finals)
    printed, tight = "adar-ucb printed eps=0.1", "adar-ucb tight eps=0.1"
    assert [(each["kind"], each["cell"], each["other"]) for each in found] == [
        ("noise", printed, f"{printed} without noise"),
        ("reference", printed, "uniform play"),
        ("reference", printed, "greedy"),
        ("noise", tight, f"{tight} without noise"),
        ("calibration", tight, printed),
        ("reference", tight, "uniform play"),
        ("reference", tight, "greedy"),
    ]
    assert found[4]["mean"] == pytest.approx(2.5)
    assert twin_of(cells[0], cells) is cells[2]
    assert not comparisons(cells, {}), "what is withheld is not compared"
