"""Environments of episodes in a spec: what is played, what audits replay, where a mistake is named, whole runs."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import yaml
from episode_beds import ENTRIES, local
from typer.testing import CliRunner

from bandana.algorithms import catalog
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE
from bandana.algorithms.run import run
from bandana.audits.reporting import validate
from bandana.flows.cells.audits import audit_cell
from bandana.flows.cells.play import benchmark_block
from bandana.flows.cli import app
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.results.audit_report import write_document
from bandana.flows.results.report_document import assemble
from bandana.flows.spec.schema import json_schema
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval, LiveLedger, ReproducibleNoise

STAYS = [[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [0.0, 1.0]]]
LEADS = [[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]
PAYS = [[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [1.0, 0.5]]]
OWN = {"kind": "kernel-mixture", "kernels": [STAYS, LEADS], "weights": [0.25, 0.75], "mean_rewards": PAYS}
KINDS = {
    "hypercube": {"kind": "hypercube", "dimension": 3, "steps": 2},
    "hypercube, linear": {"kind": "hypercube", "steps": 3, "gap": 0.1, "structure": "linear-mdp"},
    "patients": {"kind": "patients", "steps": 3},
    "patients, linear": {"kind": "patients", "structure": "linear-mdp", "rewards": "exact"},
    "own": OWN,
    "modes": {"kind": "modes", "states": 5, "actions": 3, "dimension": 3},
}
each = pytest.mark.parametrize("name", list(KINDS))
TEXT = """\
name: episodes
seed: 7
environment: {kind: hypercube}
horizon: 40
replications: 3
algorithms:
  - algorithm: cheapest
  - algorithm: cheapest
    model: joint
    privacy: {epsilon: [4.377], delta: 1.0e-5}
audit: {rounds: 8, replays: 2000, examples: 10}
"""


@pytest.fixture(autouse=True)
def _with_entries(monkeypatch):
    monkeypatch.setattr(catalog, "CATALOG", (*catalog.CATALOG, *ENTRIES))


def spec_of(environment, **changes):
    tree = yaml.safe_load(TEXT) | {"environment": environment} | changes
    return parse_spec(yaml.safe_dump(tree), "spec.yaml", Path())


def built(environment, **changes):
    return environments_of(spec_of(environment, **changes))[0]


@each
def test_algorithms_are_told_the_model_and_audits_replay_what_fits_it(name):
    environment = built(KINDS[name])
    problem, table = environment.problem(40), environment.audit_table()
    asked = KINDS[name].get("structure", LINEAR_MDP if name == "modes" else MIXTURE)
    assert problem.kind == environment.kind == asked
    model = problem.model
    assert table.rewards.shape == (8, model.horizon, model.n_states, model.n_actions)
    assert (problem.reward_range, problem.horizon) == (Interval(0.0, 1.0), 40)
    again = built(KINDS[name])
    assert (again.audit_table().covariates == table.covariates).all()
    assert (again.problem(40).model.features == model.features).all()
    assert (pickle.loads(pickle.dumps(environment)).problem(40).model.features == model.features).all()
    environment.check()


@each
def test_a_stream_is_drawn_from_the_process_that_regret_is_counted_with(name):
    environment = built(KINDS[name])
    cell = cells_of(spec_of(KINDS[name]))[0]
    stream = environment.stream(np.random.SeedSequence(3))
    curve = environment.regret(stream, np.array([10, 40]), 5)
    assert isinstance(curve, EpisodicRegretCurve)
    ledger = LiveLedger(5, ReproducibleNoise(np.random.SeedSequence(0)))
    run(cell.algorithm(), stream, ledger, observers=[curve])
    instance = environment.instance
    lost = instance.best.values[0].max() * 40
    assert (np.diff(curve.curve, axis=1) >= 0).all()
    assert 0 < curve.curve[:, -1].mean() < lost
    assert cell.regret_bound(np.array([10, 40])) is None


@each
def test_audits_play_under_features_of_the_same_shape_that_hide_least(name):
    spec = spec_of(KINDS[name])
    played, own = cells_of(spec)[1].in_audit().problem, built(KINDS[name]).problem(8)
    assert (played.kind, played.horizon, played.n_actions) == (own.kind, 8, own.n_actions)
    for what in ("n_states", "n_actions", "dimension", "horizon"):
        assert getattr(played.model, what) == getattr(own.model, what)
    first, last = (played.model.features[state, 0].reshape(-1, own.model.dimension).sum(axis=0) for state in (0, -1))
    assert first @ last == pytest.approx(-1.0)


@each
def test_what_the_report_says(name):
    environment = built(KINDS[name])
    told = environment.describe()
    assert told["unit"] == "episodes"
    assert told["means"] == []
    assert len(told["actions"]) == environment.n_actions
    assert f"Episodes of {environment.instance.model.horizon} steps" in told["description"]
    assert ("what they pay" in told["description"]) == (environment.kind == LINEAR_MDP)
    if name.startswith("patients"):
        assert told["description"].startswith("Made up")
        assert "recovered, mild, moderate, severe" in told["description"]
        assert told["actions"] == ["wait", "drug A", "drug B"]


def bad(**changes):
    return OWN | changes


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        (
            bad(kernels=[STAYS, [[[1.0, 0.1], [0.0, 1.0]], LEADS[1]]]),
            "kernel 1 leads from state 0, action 0 to next states with the chances [1.0, 0.1]: they must be a distribution",
        ),
        (
            bad(kernels=[STAYS, [[[1.5, -0.5], [0.0, 1.0]], LEADS[1]]]),
            "kernel 1 leads from state 0, action 0 to next states with the chances [1.5, -0.5]",
        ),
        (bad(kernels=[STAYS, LEADS[:1]]), "inhomogeneous"),
        (bad(weights=[0.5, 0.6]), "weights must be 2 distributions over the 2 kernels"),
        (bad(weights=[[0.5, 0.5]]), "weights must be 2 distributions over the 2 kernels"),
        (bad(mean_rewards=[[[0.0, 0.0]]]), "shape (horizon, n_states, n_actions) = (H, 2, 2), got (1, 1, 2)"),
        (bad(mean_rewards=[[[0.0, 1.5], [0.0, 0.0]]]), "less than or equal to 1"),
        (bad(start=[0.5, 0.6]), "start must be a distribution over 2 states"),
        (bad(start=[1.0]), "start must be a distribution over 2 states"),
        ({"kind": "hypercube", "gap": 0.6}, "gap must be above 0 and at most base and 1 - base, with base = 0.5; got 0.6"),
        ({"kind": "hypercube", "steps": 1}, "greater than or equal to 2"),
        ({"kind": "hypercube", "dimension": 1}, "greater than or equal to 2"),
        ({"kind": "patients", "steps": 0}, "greater than or equal to 1"),
        ({"kind": "patients", "shares": [0.5, 0.5, 0.5]}, "weights must be 4 distributions over the 3 kernels"),
        ({"kind": "patients", "structure": "tabular"}, "linear-mixture"),
        ({"kind": "modes", "sharpness": -1}, "greater than 0"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_where_it_stands(environment, told):
    with pytest.raises(SpecError, match=re.escape(told)):
        spec_of(environment)


def test_algorithms_of_arms_play_no_episodes_nor_the_other_way_round():
    with pytest.raises(SpecError, match=r"ucb plays on finite and linear environments, and hypercube is linear-mixture"):
        spec_of(KINDS["hypercube"], algorithms=[{"algorithm": "ucb"}])
    with pytest.raises(
        SpecError, match=r"cheapest plays on linear-mixture and linear-mdp environments, and bernoulli is fin"
    ):
        spec_of({"kind": "bernoulli", "means": [0.1, 0.2]}, algorithms=[{"algorithm": "cheapest"}])


def test_the_schema_knows_the_kinds():
    schema, tree = json_schema(), yaml.safe_load(TEXT)
    for environment in KINDS.values():
        jsonschema.validate(tree | {"environment": environment}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(tree | {"environment": {"kind": "hypercube", "depth": 3}}, schema)


def test_few_episodes_are_enough_where_there_are_more_actions():
    """Arms are each played once first; actions of episodes are not."""
    cells_of(spec_of(KINDS["hypercube"], horizon=1, audit={"rounds": 2, "replays": 8000}))


def test_bandana_checks_a_spec_of_episodes(tmp_path):
    (tmp_path / "spec.yaml").write_text(TEXT)
    done = CliRunner().invoke(app, ["check", str(tmp_path / "spec.yaml")])
    assert done.exit_code == 0, done.output


class Loud(type(local())):
    """Counts rewards twice: what one episode moves is twice what is paid for."""

    def contribution(self, record):
        return 2 * super().contribution(record)


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """(document, page) of a benchmark, an audit that passes, and one that finds a counterexample."""
    folder = tmp_path_factory.mktemp("episodes")
    honest = ENTRIES[1]
    loud = replace(honest, name="loud", label="loud joint", build=lambda settings: Loud(**vars(honest.build(settings))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(catalog, "CATALOG", (*catalog.CATALOG, *ENTRIES, loud))
        tree = yaml.safe_load(TEXT)
        tree["algorithms"].append({**tree["algorithms"][1], "algorithm": "loud"})
        spec, store = parse_spec(yaml.safe_dump(tree), "spec.yaml", Path()), Store(folder)
        for cell in cells_of(spec):
            for block in cell.blocks():
                benchmark_block(block, store)
            if cell.is_private:
                audit_cell(cell, store)
        document = assemble(Plan.of(spec), TEXT, store) | {"regressions": None}
        files = write_document(document, folder / "report", ("html", "json"))
    return document, files["html"].read_text()


def test_the_report_speaks_of_episodes(reported):
    document, page = reported
    validate(document)
    honest, loud = document["audits"]
    assert (honest["verdict"], loud["verdict"]) == ("PASS", "FAIL")
    assert "8 episodes x 2 actions" in json.dumps(honest)
    text = re.sub(r"<[^>]*>", "", page)
    for told in ("40 episodes", "Final regret after 40 episodes", "The data by episode."):
        assert told in text, told
    assert "40 rounds" not in page
    assert "Budget spent against episodes" in page
    assert "its rewards, one per arm" not in text
    assert re.search(r"it lives through states [0-3 ]+ with rewards \[[01., ]+\] on D, and through states", text)


def test_the_curve_is_that_of_episodes(reported):
    cells = {cell["label"]: cell for cell in reported[0]["benchmark"]["cells"]}
    assert list(cells) == ["cheapest non-private", "cheapest joint tight eps=4.377", "loud joint tight eps=4.377"]
    for cell in cells.values():
        assert 0 < cell["final_mean"] < 40 * 2
    assert cells["cheapest joint tight eps=4.377"]["mu_spent"][-1] == pytest.approx(1.0, abs=1e-3)
