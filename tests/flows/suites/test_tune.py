"""Tuning: one rule for every cell, on seeds that no report shows, and a file that the benchmark reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.spec.spec import load_spec, standing_alone
from bandana.flows.spec.tuned import Tried, Tuned, choose, question, seed_of_tuning, text_of
from bandana.flows.texts.mistakes import SpecError

TREE = {
    "name": "tuned", "seed": 3, "horizon": 60, "replications": 2,
    "environment": [{"kind": "sphere", "actions": 3, "dimension": 2}],
    "algorithms": [
        {"algorithm": "linucb"},
        {"algorithm": "linucb", "model": "joint", "calibrations": "tight", "privacy": {"epsilon": 1, "delta": 1e-5}},
    ],
    "tuning": {"parameter": "beta_scale", "values": [0.1, 1], "replications": 3},
    "audit": {"rounds": 8, "replays": 2000},
}  # fmt: skip

MINE = """\
from dataclasses import dataclass

import numpy as np

from bandana.privacy_core import Interval


@dataclass(frozen=True)
class Fixed:
    n_actions: int
    reward_range: Interval
    context_dimension: int | None = None
    episode_length: int | None = None
    n_states: int | None = None

    def init(self, n_reps):
        return None, np.zeros(n_reps, dtype=int)

    def act(self, released, context, step):
        return released % self.n_actions

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=int)

    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released + record.n_records


@dataclass(frozen=True, kw_only=True)
class Own(Fixed):
    m: float
"""


@pytest.fixture
def write(tmp_path):
    def written(**changed):
        place = tmp_path / "tuned.yaml"
        place.write_text(yaml.safe_dump({**TREE, **changed}))
        return load_spec(place)

    return written


def chosen_for(spec, values):
    found = Tuned(parameter="beta_scale", rule="", seed=1, question=question(spec), chosen=values, tried={})
    spec.place_of_tuned.write_text(text_of(found))


NAMES = ("linucb non-private", "linucb joint tight eps=1")


def test_every_cell_gets_the_value_that_was_chosen_for_it_and_its_twin_the_same(write):
    spec = write()
    chosen_for(spec, dict(zip(NAMES, (0.1, 1.0), strict=True)))
    beta_scales = {cell.name: cell.settings.parameters.get("beta_scale") for cell in Plan.of(spec).played}
    assert [beta_scales[name] for name in NAMES] == [0.1, 1.0]
    assert beta_scales["linucb joint tight eps=1 without noise"] == 1.0


def test_tuning_plays_other_seeds_and_instances_and_no_reference(write):
    spec = write()
    trial = spec.with_trial(0.1)
    assert trial.seed == seed_of_tuning(3) != 3
    assert (trial.name, trial.replications, trial.twins, trial.references) == ("tuned-tuning-0.1", 3, False, False)
    assert [cell.settings.parameters["beta_scale"] for cell in cells_of(trial)] == [0.1, 0.1]
    assert trial.tuning == spec.tuning


def test_tuning_may_play_fewer_rounds_and_then_asks_another_question(write):
    whole, short = write(), write(tuning={**TREE["tuning"], "horizon": 20})
    assert (whole.with_trial(0.1).horizon, short.with_trial(0.1).horizon, short.horizon) == (60, 20, 60)
    assert question(whole) != question(short)
    with pytest.raises(SpecError, match=r"tuning.horizon: must be at most the spec's 60, got 61"):
        write(tuning={**TREE["tuning"], "horizon": 61})


def test_the_rule_takes_the_least_regret_and_of_equal_values_the_largest():
    def tried(*pairs):
        return [Tried(value=value, mean=mean, low=mean, high=mean) for value, mean in pairs]

    assert choose(tried((0.1, 5.0), (1.0, 4.0), (3.0, 6.0))) == 1.0
    assert choose(tried((0.1, 4.0), (1.0, 4.0), (3.0, 6.0))) == 1.0


def test_a_parameter_of_ones_own_is_tuned_by_the_same_rule(write, tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    items = [{"file": "mine.py:Own"}, {"file": "mine.py:Fixed"}, {"algorithm": "ucb"}]
    arms = {"environment": {"kind": "bernoulli", "means": [0.7, 0.4]}, "tuning": {"parameter": "m", "values": [2, 5]}}
    spec = write(algorithms=items, **arms)
    takers = [entry.name for item in spec.algorithms for entry in item.entries() if "m" in entry.parameters]
    assert takers == ["mine.py:Own"]
    own, fixed, ucb = cells_of(spec.with_trial(5))
    assert (own.algorithm().m, own.settings.parameters, fixed.settings.parameters) == (5, {"m": 5}, {})
    assert "m" not in ucb.settings.parameters
    tuned = Tuned(parameter="m", rule="", seed=1, question=question(spec), chosen={"mine.py:Own": 2.0}, tried={})
    spec.place_of_tuned.write_text(text_of(tuned))
    assert cells_of(spec)[0].algorithm().m == 2
    with pytest.raises(SpecError, match=r"tuning\.parameter: no algorithm of this spec takes 'k'"):
        write(algorithms=items, **{**arms, "tuning": {"parameter": "k", "values": [2, 5]}})
    with pytest.raises(SpecError, match=r"algorithms\[0\].parameters.m: is tuned; leave it out here"):
        write(algorithms=[{"file": "mine.py:Own", "parameters": {"m": 3}}], **arms)


def test_what_was_not_chosen_or_for_another_question_is_refused(write):
    spec = write()
    with pytest.raises(SpecError, match=r"tuned\.tuned\.json does not exist: run `bandana tune` on the spec tuned first"):
        cells_of(spec)
    chosen_for(spec, {NAMES[0]: 0.1})
    with pytest.raises(SpecError, match="holds no value for 'linucb joint tight eps=1': run `bandana tune` again"):
        cells_of(spec)
    with pytest.raises(SpecError, match="was chosen for another environment, horizon or algorithms"):
        cells_of(write(horizon=61))
    spec.place_of_tuned.write_text("{")
    with pytest.raises(SpecError, match="cannot be read: Invalid JSON"):
        cells_of(spec)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"tuning": {"parameter": "beta", "values": [1, 2]}}, r"tuning\.parameter: no algorithm of this spec takes 'beta'"),
        (
            {"algorithms": [{"algorithm": "linucb", "beta_scale": 1}]},
            r"algorithms\[0\].beta_scale: is tuned; leave it out here",
        ),
        ({"tuning": {"parameter": "beta_scale", "values": [1]}}, "must have at least 2 values, got 1"),
    ],
)
def test_mistakes_name_the_field(write, changed, message):
    with pytest.raises(SpecError, match=message):
        write(**changed)


def test_private_data_are_not_tuned_on(write, tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n0,1\n1,0\n")
    table = {"environment": [{"kind": "table", "path": "people.csv"}], "tuning": {"parameter": "beta", "values": [3, 4]},
             "algorithms": [{"algorithm": "adap-ucb", "model": "none"}], "horizon": 2}  # fmt: skip
    with pytest.raises(SpecError, match=r"'people.csv' is a file of data, which no claim protects from tuning: tune on "):
        write(**table)


def test_a_spec_that_stands_alone_names_the_file_of_what_was_chosen(write, tmp_path):
    spec = write()
    text = standing_alone(spec, (tmp_path / "tuned.yaml").read_text())
    assert yaml.safe_load(text)["tuning"]["file"] == str(tmp_path / "tuned.tuned.json")
    assert json.dumps(question(spec))


def test_a_spec_that_was_named_from_its_own_folder_stands_alone_too(write, tmp_path, monkeypatch):
    write()
    monkeypatch.chdir(tmp_path)
    text = standing_alone(load_spec(Path("tuned.yaml")), Path("tuned.yaml").read_text())
    assert yaml.safe_load(text)["tuning"]["file"] == str(tmp_path / "tuned.tuned.json")


def test_a_choice_on_made_up_data_takes_no_epsilon(write):
    with pytest.raises(SpecError, match=r"tuning\.epsilon: is for tables with a budget book; leave it out"):
        write(tuning={**TREE["tuning"], "epsilon": 0.1})
