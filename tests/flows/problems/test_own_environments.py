"""Environments of users and of installed packages: each protocol is played, and each mistake is a line of the spec."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import yaml
from small_spec import SMALL, SMALL_SPHERE

from bandana.algorithms import plugins
from bandana.algorithms.plugins import Found
from bandana.algorithms.problem import CONTEXTUAL, FINITE, LINEAR_MDP
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.gymnasium_environments import law_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import parse_spec, standing_alone
from bandana.flows.texts.mistakes import SpecError

ENV = """\
from types import SimpleNamespace

import numpy as np

from bandana.privacy_core import Interval


class Arms:
    n_actions = 2
    reward_range = Interval(0.0, 2.0)

    def __init__(self, seed, n_users, gap=0.5):
        self.means = np.array([1.0 + gap, 1.0 - gap])
        self._generator = np.random.default_rng(seed)

    def respond(self, user, n_records, actions):
        return 2.0 * self._generator.binomial(n_records, self.means[actions] / 2)


class Users:
    n_actions, context_dimension = 3, 2
    reward_range = Interval(0.0, 1.0)

    def __init__(self, seed, n_users):
        self._generator = np.random.default_rng(seed)

    def contexts(self, user):
        self._offered = self._generator.uniform(0, 0.7, (len(user), 3, 2))
        return self._offered

    def mean_rewards(self, user, contexts):
        return contexts[:, :, 0]

    def respond(self, user, n_records, actions):
        chances = self._offered[np.arange(len(user)), actions, 0]
        return (self._generator.random(len(user)) < chances).astype(float)


def episodes():
    return SimpleNamespace(
        transitions=np.full((2, 3, 2, 3), 1 / 3), mean_rewards=np.tile([0.2, 0.8], (2, 3, 1)), action_names=("rest", "drug")
    )


class Unseeded(Arms):
    def __init__(self, seed, n_users):
        super().__init__(None, n_users)


class Far(Arms):
    def respond(self, user, n_records, actions):
        return np.full(len(user), 7.0)


class Short(Arms):
    def respond(self, user, n_records, actions):
        return np.zeros(1)


class Nan(Arms):
    def respond(self, user, n_records, actions):
        return np.full(len(user), np.nan)


class Long(Users):
    def contexts(self, user):
        return 9 * super().contexts(user)


class Restless(Arms):
    def __init__(self, seed, n_users):
        super().__init__(seed, n_users, gap=float(np.random.default_rng(seed).random()))


def leaps():
    return SimpleNamespace(transitions=np.full((2, 3, 2, 3), 0.5), mean_rewards=np.zeros((2, 3, 2)))


def raises(seed):
    return 1 / 0
"""
EPISODES = """\
name: episodes
seed: 7
environment: {}
horizon: 60
replications: 2
algorithms: [{algorithm: lsvi-ucb}]
audit: {rounds: 8, replays: 2000, examples: 5}
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "env.py").write_text(ENV)
    return tmp_path


def spec_of(folder, environment, text=SMALL):
    tree = yaml.safe_load(text) | {"environment": environment}
    return parse_spec(yaml.safe_dump(tree, sort_keys=False), "spec.yaml", folder)


def python(name, **fields):
    return {"kind": "python", "file": f"env.py:{name}", **fields}


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [("Arms", SMALL, FINITE), ("Users", SMALL_SPHERE, CONTEXTUAL), ("episodes", EPISODES, LINEAR_MDP)],
)
def test_each_protocol_is_played(folder, tmp_path, name, text, kind):
    spec = spec_of(folder, python(name), text)
    (found,) = environments_of(spec)
    found.check()
    assert found.kind == kind
    for cell in cells_of(spec):
        arrays, _ = benchmark_block(cell.blocks()[0], Store(tmp_path / "results"))
        assert np.isfinite(arrays["regret"]).all()
        assert (np.diff(arrays["regret"], axis=1) >= 0).all()
    assert found.audit_table().n_actions == found.n_actions
    assert all(np.isfinite(gaps).all() for gaps in found.reference_gaps(found.stream(np.random.SeedSequence(1)), 2).values())


def test_parameters_and_code_are_what_a_key_depends_on(folder):
    def key(**fields):
        return cells_of(spec_of(folder, python("Arms", **fields)))[0].blocks()[0].key

    first = key()
    assert key(label="mine") == first
    assert key(parameters={"gap": 0.25}).partition("-")[0] != first.partition("-")[0]
    (folder / "env.py").write_text("# a comment\n" + ENV)
    assert key() == first
    (folder / "env.py").write_text(ENV.replace("2.0 * self", "self"))
    assert key().partition("-")[0] == first.partition("-")[0], "the same question, by other code"
    assert key() != first


def test_a_spec_that_stands_alone_finds_it(folder, tmp_path):
    text = yaml.safe_dump(yaml.safe_load(SMALL) | {"environment": python("Arms")})
    spec = parse_spec(text, "spec.yaml", folder)
    alone = parse_spec(standing_alone(spec, text), "spec.yaml", tmp_path / "elsewhere")
    assert cells_of(alone)[0].blocks()[0].key == cells_of(spec)[0].blocks()[0].key


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (python("absent"), r"spec.yaml:6: environment.file: env.py defines no 'absent'"),
        (
            python("Arms", parameters={"gup": 1}),
            "environment.parameters: gup: no parameter of env.py:Arms; it takes seed, n_users, gap",
        ),
        (python("raises"), "env.py:[0-9]+: ZeroDivisionError"),
        (python("Unseeded"), "same seed answer differently"),
        (python("Far"), r"respond answered 7 for 1 rounds of action 0; each reward must lie in \[0, 2\]"),
        (python("Short"), r"respond must be of shape \(4,\), got \(1,\)"),
        (python("Nan"), "respond must be finite, got nan"),
        (python("Restless"), "means must not depend on the seed"),
        ({"kind": "plugin", "name": "absent"}, "no installed package adds an environment 'absent'; there are: none"),
    ],
)
def test_a_mistake_is_one_line_before_any_work(folder, environment, message):
    with pytest.raises(SpecError, match=message) as found:
        cells_of(spec_of(folder, environment))
    assert str(found.value).startswith("spec.yaml:")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "text", "message"), [("Long", SMALL_SPHERE, "norm at most 1"), ("leaps", EPISODES, "distribution")]
)
def test_contexts_and_processes_are_checked_too(folder, name, text, message):
    with pytest.raises(SpecError, match=message):
        cells_of(spec_of(folder, python(name), text))


def test_an_installed_package_adds_an_environment(folder, monkeypatch, tmp_path):
    namespace = {}
    exec(ENV, namespace)
    listed = (Found("arms", "friendly", namespace["Arms"], ""), Found("bad", "friendly", None, "x:y: ImportError"))
    monkeypatch.setattr(plugins, "loaded", lambda group: listed)
    (cell, *_) = cells_of(spec_of(folder, {"kind": "plugin", "name": "arms", "parameters": {"gap": 0.1}}))
    assert cell.environment.means.tolist() == [1.1, 0.9]
    benchmark_block(cell.blocks()[0], Store(tmp_path / "results"))
    with pytest.raises(SpecError, match="bad of the package friendly cannot be used: x:y: ImportError"):
        spec_of(folder, {"kind": "plugin", "name": "bad"})


# --- gymnasium ------------------------------------------------------------------------------------------------------------

CORRIDOR = {
    0: {0: [(1.0, 0, -1.0, False)], 1: [(0.5, 1, -1.0, False), (0.5, 0, -1.0, False)]},
    1: {0: [(1.0, 0, -1.0, False)], 1: [(1.0, 1, 3.0, True)]},
}
CORRIDOR_SPEC = {"kind": "gymnasium", "id": "Corridor-v0", "steps": 3}


def fake_gymnasium(made):
    module = ModuleType("gymnasium")

    def make(name, **options):
        if name != "Corridor-v0":
            raise ValueError(f"no environment {name}")
        return SimpleNamespace(unwrapped=made)

    module.make = make
    return module


def test_a_table_of_gymnasium_becomes_a_process_that_waits_at_the_end():
    transitions, rewards = law_of(CORRIDOR)
    assert transitions[0, 1].tolist() == [0.5, 0.5, 0.0]
    assert transitions[1, 1].tolist() == [0.0, 0.0, 1.0]
    assert transitions[2].tolist() == [[0.0, 0.0, 1.0]] * 2
    assert rewards.tolist() == [[0.0, 0.0], [0.0, 1.0], [0.25, 0.25]]


def test_gymnasium_is_played_where_it_is_installed(folder, tmp_path, monkeypatch):
    made = SimpleNamespace(P=CORRIDOR, initial_state_distrib=[1.0, 0.0])
    monkeypatch.setitem(sys.modules, "gymnasium", fake_gymnasium(made))
    (cell,) = cells_of(spec_of(folder, CORRIDOR_SPEC, EPISODES))
    arrays, _ = benchmark_block(cell.blocks()[0], Store(tmp_path / "results"))
    assert (np.diff(arrays["regret"], axis=1) >= 0).all()
    with pytest.raises(SpecError, match=r"^spec.yaml:\d+: environment.id: ValueError: no environment Absent$"):
        cells_of(spec_of(folder, CORRIDOR_SPEC | {"id": "Absent"}, EPISODES))
    monkeypatch.setitem(sys.modules, "gymnasium", fake_gymnasium(SimpleNamespace()))
    with pytest.raises(SpecError, match="knows no transition probabilities"):
        cells_of(spec_of(folder, CORRIDOR_SPEC, EPISODES))


def test_without_gymnasium_one_line_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(
        SpecError, match=r"^spec.yaml:\d+: environment.kind: gymnasium is not installed: pip install"
    ) as found:
        cells_of(spec_of(folder, CORRIDOR_SPEC, EPISODES))
    assert "\n" not in str(found.value)
