"""Environments with a kernel in a spec: what algorithms are told, what audits replay, and where a mistake is named."""

from __future__ import annotations

import math
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jsonschema
import numpy as np
import pytest
import yaml

from bandana.algorithms import catalog
from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.tables import ContextTable
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.parameters import Kind, Parameter, declared
from bandana.algorithms.problem import KERNEL, POOLED
from bandana.algorithms.rkhs.features import exact_on, feature_map
from bandana.algorithms.rkhs.kernels import Additive, Linear, Matern, ProductMatern, SquaredExponential
from bandana.algorithms.run import run
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.schema import json_schema
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

KINDS = {
    "rkhs-gap": {"kind": "rkhs-gap", "actions": 6},
    "camelback": {"kind": "camelback", "actions": 30},
    "styblinski-tang": {"kind": "styblinski-tang", "actions": 9},
    "michalewicz": {"kind": "michalewicz", "actions": 40},
    "rkhs": {"kind": "rkhs", "contexts": 4, "actions": 7, "kernel": "product-matern-3/2", "context_dimension": 2},
    "rkhs, gaussian": {"kind": "rkhs", "contexts": 1, "actions": 7, "rewards": "gaussian", "norm": 2.0, "noise": 0.5},
    "diabetes": {"kind": "diabetes", "actions": 4},
}
KINDS["rkhs, a function for each"] = {**KINDS["rkhs"], "functions": "each"}
POOLS = [name for name in KINDS if name not in ("rkhs-gap", "diabetes")]
ROUNDS, HORIZON = 30, 40
each = pytest.mark.parametrize("name", list(KINDS))


class Nothing(NamedTuple):
    n_reps: int


@dataclass(frozen=True)
class LastAction:
    """Plays the last action, with features that it does not use."""

    n_actions: int
    context_dimension: int
    reward_range: Interval

    def init(self, n_reps):
        return Nothing(n_reps), Nothing(n_reps)

    def act(self, released, context, step):
        return np.full(released.n_reps, self.n_actions - 1)

    def hold(self, released, actions):
        return np.ones(released.n_reps, dtype=np.int64)

    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released


def build(settings):
    problem = settings.problem
    if problem.pool is None:
        feature_map(problem.kernel, problem.dimension, int(settings.parameters["n_features"]))
    else:
        exact_on(problem.kernel, problem.pool.points.reshape(-1, problem.dimension))
    return LastAction(problem.n_actions, problem.dimension, problem.reward_range)


LAST = Entry(
    name="last-action", family="test", privacy_model="none", guarantee=None, calibrations=(), claim="none", source="a test",
    build=build, plays_on=(KERNEL, POOLED), parameters=declared(Parameter("n_features", "Features.", 100, Kind.COUNT)),
)  # fmt: skip
TEXT = """\
name: kernels
seed: 7
environment:
  - kind: rkhs
    kernel: linear
    lengthscale: 2
    contexts: 3
    actions: 4
    centers: 5
horizon: 40
replications: 5
algorithms:
  - algorithm: last-action
audit: {rounds: 30, replays: 1000}
"""


@pytest.fixture(autouse=True)
def _with_an_entry(monkeypatch):
    monkeypatch.setattr(catalog, "CATALOG", (*catalog.CATALOG, LAST))


def spec_of(environment, **changes):
    tree = yaml.safe_load(TEXT) | {"environment": environment} | changes
    return parse_spec(yaml.safe_dump(tree), "spec.yaml", Path())


def built(environment, **changes):
    return environments_of(spec_of(environment, **changes))[0]


def seed(n):
    return np.random.SeedSequence(n)


def played(environment, n, n_reps=2):
    stream, seen = environment.stream(seed(n)), []
    for user in range(HORIZON):
        where = np.full(n_reps, user)
        stream.contexts(where)
        seen.append(stream.respond(where, np.ones(n_reps, dtype=np.int64), np.full(n_reps, user % environment.n_actions)))
    return np.array(seen)


@each
def test_algorithms_are_told_the_kernel_and_what_users_may_bring(name):
    environment = built(KINDS[name])
    problem, stream = environment.problem(HORIZON), environment.stream(seed(1))
    assert problem.kind == environment.kind == (POOLED if name in POOLS else KERNEL)
    assert problem.n_actions == environment.n_actions == len(environment.names) == stream.n_actions
    assert problem.reward_range == environment.reward_range == stream.reward_range
    assert problem.dimension == stream.context_dimension
    assert problem.horizon == HORIZON <= stream.n_users
    x = stream.contexts(np.zeros(3, dtype=np.int64))
    assert x.shape == (3, problem.n_actions, problem.dimension)
    assert np.abs(x).max() <= 1
    means = stream.mean_rewards(np.zeros(3, dtype=np.int64), x)
    assert problem.reward_range.low <= means.min()
    assert means.max() <= problem.reward_range.high
    if name in POOLS:
        assert (problem.pool.index_of(x) >= 0).all()
    rewards = played(environment, 1)
    assert problem.reward_range.low <= rewards.min()
    assert rewards.max() <= problem.reward_range.high


@each
def test_a_benchmark_plays_and_repeats(name, tmp_path):
    spec = spec_of(KINDS[name])
    (cell,) = cells_of(spec)
    (block,) = cell.blocks()
    one, other = (benchmark_block(block, Store(tmp_path / where))[0] for where in ("one", "other"))
    np.testing.assert_array_equal(one["regret"], other["regret"])
    assert one["regret"].min() >= 0
    assert one["regret"].max() > 0


@each
def test_every_algorithm_of_the_kind_plays(name, tmp_path):
    kind = built(KINDS[name]).kind
    algorithms = []
    for entry in catalog.CATALOG:
        if kind in entry.plays_on:
            level = {"privacy": {"epsilon": 1, "delta": 1e-5}, "calibrations": "tight"} if entry.promise else {}
            few = {"n_features": 40} if "n_features" in entry.parameters else {}
            algorithms.append({"algorithm": entry.name, "model": entry.privacy_model, **level, **few})
    spec = spec_of(KINDS[name], algorithms=algorithms, horizon=20)
    assert len(cells_of(spec)) == len(algorithms) >= 4
    for cell in cells_of(spec):
        regret = benchmark_block(cell.blocks()[0], Store(tmp_path))[0]["regret"]
        assert np.isfinite(regret).all()
        assert regret.min() >= 0


@each
def test_regret_is_that_of_each_user_s_best_action(name):
    environment = built(KINDS[name])
    stream, grid = environment.stream(seed(1)), np.array([1, HORIZON])
    regret = environment.regret(stream, grid, 3)
    assert isinstance(regret, ContextualRegretCurve)
    (cell,) = cells_of(spec_of(KINDS[name]))
    run(cell.algorithm(), stream, LiveLedger(3, ReproducibleNoise(seed(2))), horizon=HORIZON, observers=[regret])
    assert (np.diff(regret.curve, axis=1) >= 0).all()


@each
def test_audits_replay_points_of_the_domain(name):
    """Features have norm at most 1, as every context table: which points of [-1, 1]^d are."""
    table = built(KINDS[name]).audit_table()
    again, longer, other = (
        built(KINDS[name], **changes).audit_table() for changes in ({}, {"horizon": HORIZON + 20}, {"seed": 8})
    )
    assert isinstance(table, ContextTable)
    told = built(KINDS[name]).problem(1)
    played_on = built(KINDS[name]).audit_problem(told, catalog.find("gp-ucb joint" if name == "rkhs-gap" else "capri joint"))
    assert table.features.shape == (ROUNDS, played_on.n_actions, told.dimension)
    assert table.reward_range == built(KINDS[name]).reward_range
    for same in (again, longer):
        np.testing.assert_array_equal(table.features, same.features)
        np.testing.assert_array_equal(table.rewards, same.rewards)
    assert (table.features != other.features).any()
    if name == "diabetes":
        assert len(np.unique(table.rewards)) > 20
    else:  # but for rounding to the table's grid
        ends = built(KINDS[name]).reward_range
        assert sorted(set(table.rewards.ravel().tolist())) == pytest.approx([ends.low, ends.high], abs=1e-6)
    if name.startswith("rkhs") and name != "rkhs-gap":
        assert (played_on.pool.law[played_on.pool.index_of(table.features)] > 0).all()
        assert played_on.kernel == told.kernel


def test_a_large_pool_is_audited_on_a_small_one_at_the_kernels_lengthscale():
    """An audit of 10 x 50 points would take an hour, and show less: one context is never drawn."""
    pools = []
    for lengthscale in (0.2, 0.4, 8.0):
        environment = built({**KINDS["rkhs"], "lengthscale": lengthscale})
        found = environment.audit_problem(environment.problem(1), catalog.find("capri joint"))
        assert (found.n_actions, found.horizon) == (2, ROUNDS)
        assert found.pool.points.shape == (4, 2, environment.problem(1).dimension)
        assert (found.pool.law == 0).sum() == 1
        pools.append(found.pool.points)
    turned = environment.audit_problem(environment.problem(1), catalog.find("gp-ucb joint")).pool
    table = environment.audit_table()
    for change in table.changes():
        mine, theirs = (table.covariates_of(side)[None] for side in change.covariates)
        assert all(np.linalg.norm(turned.points[turned.nearest(x)] - x, axis=2).max() < 0.11 for x in (mine, theirs))
    np.testing.assert_allclose(pools[1], 2 * pools[0])
    assert 0.7 < np.linalg.norm(pools[2], axis=2).max() <= 1, "they stay in the unit ball"


@each
def test_a_seed_gives_the_same_rewards_and_another_one_others(name):
    environment = built(KINDS[name])
    assert np.array_equal(played(environment, 1), played(built(KINDS[name]), 1))
    assert np.array_equal(played(environment, 1), played(environment, 2)) == (name == "diabetes")


def test_what_is_unknown_is_the_same_in_all_blocks_and_follows_the_spec_s_seed():
    for kind in ("rkhs", "camelback"):
        one, other = (built(KINDS[kind]).stream(seed(n)) for n in (1, 2))
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.pool.points, other.pool.points)
        changed = built(KINDS[kind], seed=8).stream(seed(1))
        assert (changed.pool.points != one.pool.points).any()


def test_each_replication_may_have_a_function_of_its_own():
    """On the same pool; a block of fewer replications, and another cell with the same seed, meet the same functions."""
    item = {"kind": "rkhs", "contexts": 4, "actions": 7, "functions": "each"}
    many, few = built(item, replications=6, block_size=6), built(item, replications=6, block_size=2)
    values = many.stream(seed(3)).values
    assert values.shape == (6, 4, 7)
    assert len({each.tobytes() for each in values}) == 6
    assert np.array_equal(values[:2], few.stream(seed(3)).values)
    assert not np.array_equal(values, many.stream(seed(4)).values)
    assert np.array_equal(many.pool.points, few.pool.points)
    gaps = many.reference_gaps(many.stream(seed(3)), 6)["uniform play"]
    assert gaps == pytest.approx((values.max(axis=2, keepdims=True) - values).mean(axis=(1, 2)))
    assert np.abs(values).max() <= 1


@each
def test_the_description_says_what_it_is(name):
    environment = built(KINDS[name])
    shown = environment.describe()
    assert shown["label"] == shown["name"] == KINDS[name]["kind"]
    assert shown["description"].endswith(".")
    assert str(environment.problem(1).kernel) in shown["description"]
    assert shown["estimator"].startswith("Regret is")
    assert len(shown["actions"]) == (environment.n_actions if environment.n_actions <= 32 else 0)
    if name in ("camelback", "rkhs, gaussian"):
        told = re.search(r"which moves means by at most ([0-9.e-]+)\.", shown["description"])
        assert float(told[1]) == pytest.approx(environment.stream(seed(0)).clipping_bias, rel=0.05)
        assert 0 < float(told[1]) < 0.02


def test_contexts_that_are_never_drawn_are_described():
    environment = built({"kind": "rkhs", "contexts": 4, "actions": 3, "unseen": 1})
    assert (environment.pool.law == 0).sum() == 1
    assert "drawn with the same probability but for 1 that is never drawn, and" in environment.describe()["description"]


LAWS = {"kind": "rkhs", "contexts": 4, "actions": 3, "law": [6, 3, 1, 0]}


def test_contexts_are_drawn_by_the_stated_law_and_algorithms_are_told_the_assumed_one():
    right, wrong = built(LAWS), built({**LAWS, "assumed_law": [1, 1, 1, 1]})
    np.testing.assert_allclose(right.problem(1).pool.law, [0.6, 0.3, 0.1, 0.0])
    np.testing.assert_allclose(wrong.problem(1).pool.law, [0.25] * 4)
    assert np.array_equal(right.pool.points, wrong.pool.points)
    assert (right.is_drawn, wrong.is_drawn) == (True, False), "no bound is proved for a wrong law"
    users = np.zeros(20_000, dtype=np.int64)
    for environment in (right, wrong):
        drawn = environment.pool.index_of(environment.stream(seed(0)).contexts(users))
        np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, [0.6, 0.3, 0.1, 0.0], atol=0.02)
    assert "drawn in proportion to 6 : 3 : 1 : 0 (algorithms are told 1 : 1 : 1 : 1)," in wrong.describe()["description"]


def test_one_function_for_all_is_the_default_and_changes_no_seed():
    left, said = built(KINDS["rkhs"]), built({**KINDS["rkhs"], "functions": "one"})
    assert left.facts() == said.facts()
    assert "functions" not in left.facts()


def test_laws_that_are_left_out_change_no_seed():
    facts = built({"kind": "rkhs", "contexts": 4, "actions": 3}).facts()
    assert not {"law", "assumed_law"} & set(facts)
    assert built(LAWS).facts()["law"] == [6, 3, 1, 0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"law": [1, 1]}, "law must hold a frequency for each of 4 contexts"),
        ({"assumed_law": [0, 0, 0, 0]}, "assumed_law must hold a frequency for each of 4 contexts, not all 0"),
        ({"law": [1, 1, 1, -1]}, "greater than or equal to 0"),
        ({"unseen": 1}, "leave unseen out"),
    ],
)
def test_laws_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        built({**LAWS, **change})


@each
def test_a_worker_draws_its_own_data(name):
    environment = built(KINDS[name])
    environment.describe()
    environment.problem(1)
    packed = pickle.dumps(environment)
    assert len(packed) < 6000
    assert np.array_equal(played(pickle.loads(packed), 3), played(environment, 3))


KERNELS = [
    ({"kind": "rkhs-gap"}, SquaredExponential(0.5)),
    ({"kind": "rkhs-gap", "kernel": "matern-5/2", "lengthscale": 1.0}, Matern(2.5, 1.0)),
    ({"kind": "rkhs", "kernel": "product-matern-1/2"}, ProductMatern(0.5, 0.3)),
    ({"kind": "rkhs", "kernel": "linear"}, Linear(math.sqrt(2))),
    ({"kind": "rkhs", "kernel": "linear", "additive": True, "lengthscale": 1}, Additive.of_coordinates(Linear(1.0), 2)),
    ({"kind": "camelback"}, SquaredExponential(0.2)),
    ({"kind": "styblinski-tang"}, Additive.of_coordinates(SquaredExponential(1.2), 20)),
    ({"kind": "michalewicz", "lengthscale": 0.5}, Additive.of_coordinates(SquaredExponential(0.5), 10)),
    ({"kind": "michalewicz", "additive": False}, SquaredExponential(0.6)),
    ({"kind": "diabetes"}, Additive.of_coordinates(SquaredExponential(0.8), 10)),
    ({"kind": "diabetes", "kernel": "linear"}, Linear(math.sqrt(10))),
]


@pytest.mark.parametrize(("item", "kernel"), KERNELS)
def test_a_kernel_is_what_its_fields_say(item, kernel):
    assert spec_of(item).environment[0].public_kernel() == kernel


LINE = "    lengthscale: 2\n"
MISTAKES = [
    ("kernel: linear", "kernel: cubic", 5, "environment[0].kernel", "'matern-3/2', 'matern-5/2'"),
    (LINE, "    lengthscale: 0\n", 6, "environment[0].lengthscale", "greater than 0, got 0"),
    (LINE, "    lengthscale: .nan\n", 6, "environment[0].lengthscale", "finite number"),
    (LINE, "    lengthscale: 1.4\n", 6, "environment[0].lengthscale", "at least 1.41421, so that points of [-1, 1]^2"),
    (LINE, "    lengthscale: 0.9\n    additive: true\n", 6, "environment[0].lengthscale", "at least 1, so that"),
    ("contexts: 3", "contexts: 0", 7, "environment[0].contexts", "greater than or equal to 1, got 0"),
    ("contexts: 3", "contexts: 3\n    unseen: 3", 8, "environment[0].unseen", "below contexts = 3, got 3"),
    ("actions: 4", "actions: 0", 8, "environment[0].actions", "greater than or equal to 2, got 0"),
    ("centers: 5", "centers: 13", 9, "environment[0].centers", "contexts times actions = 12, got 13"),
    ("centers: 5", "noise: 0.5", 9, "environment[0].noise", "that of gaussian rewards"),
    ("centers: 5", "rewards: cauchy", 9, "environment[0].rewards", "'two-point' or 'gaussian'"),
    ("centers: 5", "centres: 5", 9, "environment[0].centres", "unknown field (value 5)"),
    ("algorithm: last-action", "algorithm: ucb", 13, "algorithms[0].algorithm", "environments, and rkhs is pooled"),
    ("algorithm: last-action", "algorithm: linucb", 13, "algorithms[0].algorithm", "contextual environments, and rkhs is"),
    (
        "- algorithm: last-action",
        "- {algorithm: last-action, n_features: 0}",
        13,
        "algorithms[0].n_features",
        "equal to 1, got 0",
    ),
]
OTHERS = [
    (
        "kind: rkhs-gap\n    kernel: linear",
        5,
        "environment[0].kernel",
        "'product-matern-3/2' or 'product-matern-5/2', got 'linear'",
    ),
    ("kind: rkhs-gap\n    dimension: 0", 5, "environment[0].dimension", "greater than or equal to 1"),
    ("kind: camelback\n    noise: -1", 5, "environment[0].noise", "greater than or equal to 0, got -1"),
    ("kind: camelback\n    dimension: 3", 5, "environment[0].dimension", "unknown field"),
    ("kind: diabetes\n    actions: 443", 5, "environment[0].actions", "less than or equal to 442, got 443"),
    ("kind: michalewicz\n    kernel: linear\n    lengthscale: 0.5", 6, "environment[0].lengthscale", "at least 1, so that"),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "shown"), MISTAKES)
def test_a_mistake_is_named_at_its_line(old, new, line, field, shown):
    assert old in TEXT
    _assert_named(TEXT.replace(old, new, 1), line, field, shown)


@pytest.mark.parametrize(("item", "line", "field", "shown"), OTHERS)
def test_a_mistake_of_another_kind_is_named_at_its_line(item, line, field, shown):
    begin, rest = TEXT.split("  - kind: rkhs\n")
    _assert_named(f"{begin}  - {item}\n" + rest[rest.index("horizon") :], line, field, shown)


def _assert_named(text, line, field, shown):
    parse_spec(TEXT, "good.yaml", Path())
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "bad.yaml", Path())
    found = re.match(r"bad\.yaml:(\d+): ([^:]+): (.*)", str(caught.value).splitlines()[0])
    assert found, str(caught.value)
    assert (int(found[1]), found[2]) == (line, field), str(caught.value)
    assert shown in found[3], str(caught.value)


def test_a_kernel_without_features_is_told_before_anything_starts():
    gap = {"kind": "rkhs-gap", "kernel": "matern-3/2", "lengthscale": 1.0}
    with pytest.raises(
        SpecError, match=r"^algorithms.0: last-action on rkhs-gap: the Matern kernel has no product spectrum in 2"
    ):
        cells_of(spec_of(gap))
    few = spec_of({"kind": "diabetes"}, algorithms=[{"algorithm": "last-action", "n_features": 5}])
    with pytest.raises(SpecError, match=r"n_features must be at least 20, two frequencies .* got 5"):
        cells_of(few)


def test_the_json_schema_knows_them():
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for item in KINDS.values():
        tree = yaml.safe_load(TEXT) | {"environment": item}
        assert check.is_valid(tree), next(check.iter_errors(tree)).message
        assert not check.is_valid(tree | {"environment": item | {"kernel": "cubic"}})
        assert not check.is_valid(tree | {"environment": item | {"unheard": 1}})
