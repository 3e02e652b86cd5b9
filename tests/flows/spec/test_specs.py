"""Specs: each mistake is named with its file, line, field and value, before anything starts."""

import re
from importlib import resources
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from small_spec import SMALL, SMALL_LINEAR, SMALL_SPHERE

from bandana.flows.cells.audits import audit_key, check_audits
from bandana.flows.own.data import content_of
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.finite_arms import TableSpec, parse_table
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.schema import json_schema
from bandana.flows.spec.spec import load_spec, parse_spec
from bandana.flows.texts.mistakes import SpecError


def test_the_demo_and_the_ready_specs_are_correct():
    demo = resources.files("bandana.flows").joinpath("demo.yaml").read_text()
    parse_spec(demo, "demo.yaml", Path())
    ready = sorted((Path(__file__).parents[3] / "experiments").glob("*.yaml"))
    assert ready
    for path in ready:
        spec = load_spec(path)
        for environment in environments_of(spec):
            environment.check()
        assert cells_of(spec)


FEATURES = "  features: [[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]]\n"
SPHERE = "kind: sphere\n    actions: 4\n    dimension: 3\n    theta: [0.5, 0.5, 0.1]"
MISTAKES = [
    ("  means: [0.8, 0.4]", "  means: [0.8, 1.4]", 6, "environment.means[1]", "1.4"),
    ("epsilon: [1]", "epsilon: [0]", 16, "algorithms[1].privacy.epsilon[0]", "0"),
    ("epsilon: [1]", "epsilon: -2", 16, "algorithms[1].privacy.epsilon", "-2"),
    ("epsilon: [1]", "epsilon: [.inf]", 16, "algorithms[1].privacy.epsilon[0]", "inf"),
    ("alpha: 2", "alpha: 1", 15, "algorithms[1].privacy.alpha", "1"),
    ("horizon: 500", "horizon: 1", 7, "horizon", "1"),
    ("horizon: 500", "horizon: many", 7, "horizon", "many"),
    ("algorithm: ucb", "algorithm: ucb2", 11, "algorithms[0].algorithm", "ucb2"),
    ("calibrations: [tight]", "calibrations: [loose]", 13, "algorithms[1].calibrations", "loose"),
    ("rounds: 16", "rounds: 2", 17, "audit.rounds", "2"),
    ("replays: 2000", "replays: 5", 19, "audit.replays", "5"),
    ("examples: 10", "delta: 1", 20, "audit.delta", "1"),
    ("examples: 10", "sample: 10", 20, "audit.sample", "10"),
    ("kind: bernoulli", "kind: casino", 5, "environment.kind", "casino"),
    ("seed: 7\n", "", 1, "seed", "required"),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "shown"), MISTAKES)
def test_a_mistake_is_named_with_its_line_field_and_value(small_text, old, new, line, field, shown):
    assert old in small_text
    with pytest.raises(SpecError) as caught:
        parse_spec(small_text.replace(old, new, 1), "bad.yaml", Path())
    message = str(caught.value)
    found = re.match(r"bad\.yaml:(\d+): ([^:]+): ", message)
    assert found, message
    assert found[2] == field
    assert shown in message
    if field != "audit.rounds":
        assert int(found[1]) == line, message


LINEAR_MISTAKES = [
    ("[0.6, 0.6]]", "[2.0, 0.0]]", 5, "environment.features", "arm 2 has 2: divide all features by the largest norm"),
    ("[0.0, 1.0], [0.6, 0.6]]", "[0.6, 0.0]]", 5, "environment.features", "span 1 of 2 dimensions; leave out features"),
    ("[0.6, 0.6]]", "[.nan, 0.6]]", 5, "environment.features[2][0]", "finite number, got nan"),
    ("[0.6, 0.6]]", "[0.6]]", 5, "environment.features", "one vector of the same length an arm"),
    ("  theta", "  arms: 3\n  dimension: 2\n  theta", 5, "environment.features", "not both; got arms, dimension, features"),
    ("  theta", "  arms: 3\n  theta", 6, "environment.arms", "those of the features: leave them out"),
    (FEATURES, "", 3, "environment", "not both; got neither"),
    (FEATURES, "  arms: 3\n", 3, "environment", "not both; got arms"),
    (FEATURES, "  arms: 2\n  dimension: 3\n", 5, "environment.arms", "at least dimension = 3, to span the space, got 2"),
    ("theta: [0.5, 0.5]", "theta: [0.5, 0.5, 0.5]", 6, "environment.theta", "must have 2 entries, one a dimension, got 3"),
    ("theta: [0.5, 0.5]", "theta: [0.5, 1.5]", 6, "environment.theta", "arm 1 has 1.5: scale it down"),
    ("theta: [0.5, 0.5]", "signal: 1.5", 6, "environment.signal", "1.5"),
    ("theta: [0.5, 0.5]", "high: -1", 3, "environment", "low must be below high, got low = 0.0, high = -1.0"),
    ("theta: [0.5, 0.5]", "rewards: two-point", 6, "environment.rewards", "'two-point'"),
    ("failure: 0.1", "failure: 1", 11, "algorithms[0].failure", "less than 1, got 1"),
    ("failure: 0.1", "failure: [0.1, 0]", 11, "algorithms[0].failure[1]", "greater than 0, got 0"),
    ("failure: 0.1", "beta: 3", 11, "algorithms[0].beta", "no parameter of gope; its parameters are: failure, beta_scale"),
    ("failure: 0.1", "ridge: 3", 11, "algorithms[0].ridge", "no parameter of gope; its parameters are: failure, beta_scale"),
    ("failure: 0.1", "privacy: {epsilon: 1}", 11, "algorithms[0].privacy", "gope is not private"),
    (
        "algorithm: gope",
        "algorithm: linucb",
        10,
        "algorithms[0].algorithm",
        "on contextual environments, and linear is linear",
    ),
    ("alpha: 2", "delta: 1.0e-5", 14, "algorithms[1].privacy", "renyi or pure, got the fields delta, epsilon; for"),
    ("{epsilon: 1}", "{epsilon: 1, alpha: 2, delta: 0.1}", 18, "algorithms[2].privacy.alpha", "alpha asks for a Renyi"),
    ("{epsilon: 1}", "{alpha: 2}", 18, "algorithms[2].privacy", "epsilon is missing; give it, or rho"),
    ("{epsilon: 1}", "{rho: 1, alpha: 2}", 18, "algorithms[2].privacy.rho", "rho alone asks for a zero-concentrated"),
    ("{epsilon: 1}", "{rho: 1}", 18, "algorithms[2].privacy", "of the kind renyi or pure, got the fields rho"),
    (
        "    privacy: {epsilon: 1}\n",
        "",
        17,
        "algorithms[2]",
        "needs the field privacy, for example: privacy:",
    ),
    ("horizon: 500", "horizon: 2", 7, "horizon", "at least 3 for 3 arms, got 2"),
    ("rounds: 32", "rounds: 3", 20, "audit.rounds", "at least 4 for 3 arms, got 3"),
]
CONTEXTUAL_MISTAKES = [
    ("ridge: 1", "ridge: 0", 12, "algorithms[0].ridge", "greater than 0, got 0"),
    ("ridge: 1", "ridge: [1, -2]", 12, "algorithms[0].ridge[1]", "greater than 0, got -2"),
    ("      delta: 1.0e-5\n", "", 16, "algorithms[1].privacy", "approximate, got the fields epsilon; for example: privacy:"),
    ("delta: 1.0e-5", "delta: 1", 17, "algorithms[1].privacy.delta", "less than 1, got 1"),
    ("delta: 1.0e-5", "alpha: 2", 16, "algorithms[1].privacy", "got the fields alpha, epsilon; for example: privacy"),
    ("theta: [0.5, 0.5, 0.1]", "theta: [0.5]", 7, "environment[0].theta", "must have 3 entries, one a dimension, got 1"),
    (
        "theta: [0.5, 0.5, 0.1]",
        "theta: [3, 4, 0]",
        7,
        "environment[0].theta",
        "half the width of the range, got 5",
    ),
    ("actions: 4", "actions: 1", 5, "environment[0].actions", "greater than or equal to 2, got 1"),
    ("    actions: 4\n", "", 4, "environment[0].actions", "required"),
    ("actions: 4", "arms: 4", 4, "environment[0].actions", "required"),
    (
        "algorithm: linucb\n    ridge: 1",
        "algorithm: ucb",
        11,
        "algorithms[0].algorithm",
        "linear environments, and sphere is contextual",
    ),
    (
        SPHERE,
        "kind: bernoulli\n    means: [0.5, 0.4]",
        9,
        "algorithms[0].algorithm",
        "environments, and bernoulli is finite",
    ),
    (SPHERE, "kind: digits\n    projected: 65", 5, "environment[0].projected", "less than or equal to 64, got 65"),
    (SPHERE, "kind: randhie\n    persons: 5", 5, "environment[0].persons", "unknown field (value 5)"),
]


@pytest.mark.parametrize(("old", "new", "line", "field", "shown"), LINEAR_MISTAKES)
def test_a_mistake_in_a_linear_spec_is_named(old, new, line, field, shown):
    _assert_named(SMALL_LINEAR, old, new, line, field, shown)


@pytest.mark.parametrize(("old", "new", "line", "field", "shown"), CONTEXTUAL_MISTAKES)
def test_a_mistake_in_a_contextual_spec_is_named(old, new, line, field, shown):
    _assert_named(SMALL_SPHERE, old, new, line, field, shown)


def _assert_named(text, old, new, line, field, shown):
    parse_spec(text, "good.yaml", Path())
    assert old in text
    with pytest.raises(SpecError) as caught:
        parse_spec(text.replace(old, new, 1), "bad.yaml", Path())
    message = str(caught.value).splitlines()[0]
    found = re.match(r"bad\.yaml:(\d+): ([^:]+): (.*)", message)
    assert found, message
    assert (found[2], int(found[1])) == (field, line), message
    assert shown in found[3]


def test_every_mistake_is_listed(small_text):
    text = small_text.replace("alpha: 2", "alpha: 0").replace("seed: 7", "seed: -7")
    with pytest.raises(SpecError) as caught:
        parse_spec(text, "bad.yaml", Path())
    assert len(str(caught.value).splitlines()) == 2


def test_text_that_is_no_spec():
    for text, expected in (("a: [", "not valid YAML"), ("- 1", "a spec is a mapping"), ("", "a spec is a mapping")):
        with pytest.raises(SpecError, match=expected):
            parse_spec(text, "bad.yaml", Path())


def test_a_file_that_is_not_there_is_answered_with_one_of_a_like_name(tmp_path, small_text):
    (tmp_path / "coins.yaml").write_text(small_text)
    near = "; did you mean 'coins.yaml'?"
    for name, advice in (("conis.yaml", near), ("coins", near), ("a.yaml", "")):
        with pytest.raises(SpecError, match=rf"{name}: cannot be read: No such file or directory{re.escape(advice)}$"):
            load_spec(tmp_path / name)
    with pytest.raises(SpecError, match=r"cannot be read: Is a directory$"):
        load_spec(tmp_path)


def test_a_private_algorithm_needs_a_level_and_a_twin_takes_none(small_text):
    with pytest.raises(SpecError, match="ucb is not private and takes no field privacy"):
        parse_spec(small_text.replace("- algorithm: ucb", "- {algorithm: ucb, privacy: {epsilon: 1}}"), "b", Path())
    with pytest.raises(SpecError, match="adap-klucb needs the field privacy"):
        parse_spec(small_text.replace("- algorithm: ucb", "- algorithm: adap-klucb"), "b", Path())


def test_the_same_cell_twice_is_refused(write_spec):
    path = write_spec(algorithms=[{"algorithm": "ucb"}, {"algorithm": "ucb"}])
    with pytest.raises(SpecError, match="'ucb' is listed more than once"):
        cells_of(load_spec(path))


TABLE_MISTAKES = {
    "0.1,0_1\n": r":3: the reward of action 'b' is '0_1'; it must be a number",
    "0.1,true\n": r":3: the reward of action 'b' is 'true'; it must be a number",
    '0.1,"0".5\n': r"rewards.csv cannot be read: ',' expected after '\"'",
    "0.1,nan\n": r":3: the reward of action 'b' is 'nan'; it must be a number",
    "0.1,2.5\n": r":3: the reward of action 'b' is '2.5'; it must be a number in the declared range \[0, 1\]",
    "0.1,x\n": r":3: the reward of action 'b' is 'x'; it must",
    "0.1\n": r":3: 1 values where the header names 2 actions",
}


@pytest.mark.parametrize(("row", "message"), TABLE_MISTAKES.items())
def test_a_malformed_table_is_named_with_its_line(tmp_path, row, message):
    path = tmp_path / "rewards.csv"
    path.write_text("a,b\n0,1\n" + row)
    with pytest.raises(SpecError, match=message):
        parse_table(TableSpec(kind="table", path=path, public=["values"]), path.read_bytes())


def test_a_private_value_is_not_told(tmp_path):
    path = tmp_path / "rewards.csv"
    path.write_text("a,b\n0,1\n0.1,2.718\n")
    with pytest.raises(SpecError, match=r":3: the reward of action 'b' must be a number in the declared range") as caught:
        parse_table(TableSpec(kind="table", path=path), path.read_bytes())
    assert "2.718" not in str(caught.value)


def test_a_missing_table_and_one_that_is_too_short(tmp_path, write_spec):
    with pytest.raises(SpecError, match="cannot be read"):
        content_of(TableSpec(kind="table", path=tmp_path / "none.csv"))
    (tmp_path / "rewards.csv").write_text("a,b\n" + "0,1\n" * 30)
    spec = load_spec(write_spec(environment={"kind": "table", "path": "rewards.csv"}, horizon=31))
    with pytest.raises(SpecError, match="horizon: the table has 30 users, got 31"):
        environments_of(spec)[0].check()


def test_more_people_than_the_trial_had(write_spec):
    spec = load_spec(write_spec(environment={"kind": "thornton_hiv"}, audit__rounds=5000))
    with pytest.raises(SpecError, match=r"audit\.rounds: the smallest arm of thornton_hiv has \d+ users, got 5000"):
        environments_of(spec)[0].check()


GRID = """
environment:
  - {kind: bernoulli, means: [0.8, 0.4], label: easy}
  - {kind: bernoulli, means: [0.6, 0.5], label: hard}
algorithms:
  - {algorithm: ucb, beta: [2.5, 3.1]}
  - {algorithm: adar-ucb, calibrations: tight, privacy: {alpha: [2, 4], epsilon: [0.1, 1]}}
"""


def test_a_grid_is_every_combination_and_each_cell_says_what_is_its_own(write_spec):
    cells = cells_of(load_spec(write_spec(**yaml.safe_load(GRID))))
    names = [cell.name for cell in cells]
    assert len(names) == 2 * (2 + 4) == len(set(names))
    assert "ucb beta=2.5 on easy" in names
    assert "adar-ucb tight eps=0.1 alpha=4 on hard" in names
    assert len({cell.key for cell in cells}) == len(cells)
    assert len({block.key for cell in cells for block in cell.blocks()}) == 2 * len(cells)


def test_one_value_stands_for_a_list_of_one(write_spec):
    one = load_spec(write_spec(algorithms__1__privacy={"alpha": 2, "epsilon": 1}))
    assert [cell.key for cell in cells_of(one)] == [cell.key for cell in cells_of(load_spec(write_spec()))]


def test_an_algorithm_may_have_replays_of_its_own(write_spec):
    """They count for its audits alone: those of the others keep their keys."""
    before, after = (cells_of(load_spec(write_spec(**changes))) for changes in ({}, {"algorithms__1__replays": 4321}))
    kept = before[1].audit.replays
    assert [cell.audit.replays for cell in before] == [kept] * len(before)
    changed = [cell.audit.replays == 4321 for cell in after]
    assert changed == [cell.entry.label == after[1].entry.label for cell in after]
    keys = [[audit_key(cell) for cell in cells if cell.is_private] for cells in (before, after)]
    assert [one != other for one, other in zip(*keys, strict=True)] == [
        cell.audit.replays == 4321 for cell in after if cell.is_private
    ]
    assert [cell.blocks()[0].key for cell in before] == [cell.blocks()[0].key for cell in after]


def test_a_name_and_what_may_be_shown_change_no_number(write_spec, tmp_path):
    (tmp_path / "people.csv").write_text("a,b\n" + "0,1\n" * 600)
    table = {"kind": "table", "path": "people.csv"}
    keys = set()
    for more in ({}, {"label": "people"}, {"public": ["regret"]}):
        cell = cells_of(load_spec(write_spec(environment={**table, **more})))[1]
        keys.add(cell.blocks()[0].key)
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ([{"kind": "bernoulli", "means": [0.8, 0.4]}] * 2, "stands twice"),
        ([{"kind": "bernoulli", "means": [0.8, m]} for m in (0.4, 0.5)], "'bernoulli' stands twice; give each a label"),
        ([], "must have at least 1 value, got 0"),
        ({"kind": "table", "path": "x.csv", "public": ["all"]}, "'values', 'means' or 'regret'"),
    ],
)
def test_mistakes_in_a_grid(write_spec, environment, message):
    with pytest.raises(SpecError, match=message):
        load_spec(write_spec(environment=environment))


def test_the_schema_accepts_what_the_parser_accepts():
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    texts = [resources.files("bandana.flows").joinpath("demo.yaml").read_text(), SMALL, SMALL_LINEAR, SMALL_SPHERE]
    texts += [path.read_text() for path in (Path(__file__).parents[3] / "experiments").glob("*.yaml")]
    for text in texts:
        assert not list(validator.iter_errors(yaml.safe_load(text)))
    for old, new in (
        ("means: [0.8, 0.4]", "means: [0.8, 1.4]"),
        ("algorithm: ucb", "algorithm: ucb2"),
        ("epsilon: [1]", "epsilon: 0"),
    ):
        assert list(validator.iter_errors(yaml.safe_load(SMALL.replace(old, new, 1)))), new
    grid = yaml.safe_load(SMALL) | yaml.safe_load(GRID)
    assert not list(validator.iter_errors(grid))
    levels = {
        "algorithms": [
            {"algorithm": "linucb", "model": "joint", "privacy": {"epsilon": [1, 2], "delta": 1e-5}, "ridge": [1, 2]}
        ]
    }
    assert not list(validator.iter_errors(yaml.safe_load(SMALL_SPHERE) | levels))


def test_a_grid_of_parameters_and_levels_is_every_combination():
    text = SMALL_SPHERE.replace("ridge: 1", "ridge: [1, 2]").replace("delta: 1.0e-5", "delta: [1.0e-5, 1.0e-6]")
    text = text.replace("  - kind", "  - kind: digits\n  - kind")
    cells = cells_of(parse_spec(text, "grid.yaml", Path()))
    on_digits = [cell.name for cell in cells if cell.environment.label == "digits"]
    assert on_digits == [
        "linucb non-private ridge=1 on digits",
        "linucb non-private ridge=2 on digits",
        "linucb joint tight eps=4.377 delta=1e-05 on digits",
        "linucb joint tight eps=4.377 delta=1e-06 on digits",
    ]
    assert len({cell.key for cell in cells}) == 8
    assert cells[0].settings.problem.dimension == 60
    assert cells[0].settings.parameters["failure"] == 1 / 500


def test_a_failure_that_is_left_out_is_one_over_the_horizon_of_what_is_played():
    (cell,) = (c for c in cells_of(parse_spec(SMALL_LINEAR, "s.yaml", Path())) if c.entry.label == "adar-gope")
    assert cell.settings.parameters["failure"] == 1 / 500
    played = cell.in_audit()
    assert played.problem.horizon == 32
    assert played.privacy == cell.settings.privacy


def test_rounds_that_no_release_fits_into_are_refused_before_anything_starts():
    text = SMALL_LINEAR.replace("rounds: 32", "rounds: 4")
    cells = cells_of(parse_spec(text, "s.yaml", Path()))
    with pytest.raises(SpecError, match=r"audit\.rounds: adar-gope tight eps=1: 4 rounds are too few .* ask for \d+"):
        check_audits(cells)
    check_audits(cells_of(parse_spec(SMALL_LINEAR, "s.yaml", Path())))
