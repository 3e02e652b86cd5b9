"""Logged data: estimators against a log whose truth is known, the simulation on it, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import yaml
from small_spec import SMALL, SMALL_SPHERE

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.off_policy import DR, IPS, SNIPS, Log, effective, estimates, weights_of
from bandana.algorithms.environments.simulated_log import RewardModel, features_of
from bandana.audits.reporting.sections.regret_details import regret_details
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.problems.logged_data import LoggedSpec, parse_log
from bandana.flows.results.report_document import _benchmark
from bandana.flows.results.summaries import benchmark_record, summarize_cell
from bandana.flows.spec.spec import parse_spec
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

UNIT = Interval(0.0, 1.0)
SLOPES = np.array([[0.2, 0.6], [0.7, -0.4], [0.5, 0.0]])


def truth(contexts):
    """(n, 3) mean rewards."""
    return SLOPES[:, 0] + contexts @ SLOPES[:, 1:].T


def drawn(n, generator):
    """A log whose logging policy prefers some actions, depending on the context."""
    contexts = generator.random((n, 1))
    logging = np.concatenate([0.2 + 0.4 * contexts, 0.6 - 0.4 * contexts, np.full((n, 1), 0.2)], axis=1)
    actions = (generator.random((n, 1)) > np.cumsum(logging, axis=1)).sum(axis=1).clip(max=2)
    rows = np.arange(n)
    rewards = (generator.random(n) < truth(contexts)[rows, actions]).astype(float)
    return Log(contexts, actions, logging[rows, actions], rewards, 3)


def policy_of(contexts):
    """A policy that mostly plays what is best, and its exact value for contexts uniform on [0, 1]."""
    best = np.eye(3)[np.argmax(truth(contexts), axis=1)]
    return 0.9 * best + 0.1 / 3


def test_intervals_cover_the_truth_and_a_wrong_model_costs_only_width():
    """1000 logs: at 95 % coverage, fewer than 920 hits of one estimator have probability below 1e-4."""
    generator = np.random.Generator(np.random.SFC64(5))
    grid = (np.arange(20_000) + 0.5)[:, None] / 20_000
    value = float((policy_of(grid) * truth(grid)).sum(axis=1).mean())
    hits, width = dict.fromkeys(("right", "wrong", IPS, SNIPS), 0), dict.fromkeys(("right", "wrong"), 0.0)
    for _ in range(1000):
        log = drawn(400, generator)
        policy = policy_of(log.contexts)
        right = estimates(log, policy, truth(log.contexts))
        wrong = estimates(log, policy, np.tile([0.9, 0.1, 0.9], (400, 1)))
        for name, found in (("right", right[DR]), ("wrong", wrong[DR]), (IPS, right[IPS]), (SNIPS, right[SNIPS])):
            hits[name] += found.low <= value <= found.high
        width["right"] += right[DR].high - right[DR].low
        width["wrong"] += wrong[DR].high - wrong[DR].low
    assert min(hits.values()) >= 920, hits
    assert max(hits.values()) <= 985, hits
    assert width["right"] < width["wrong"]


def test_by_hand():
    log = Log(np.zeros((4, 0)), np.array([0, 1, 0, 1]), np.array([0.5, 0.5, 0.25, 0.5]), np.array([1.0, 0.0, 1.0, 1.0]), 2)
    policy = np.tile([1.0, 0.0], (4, 1))
    found = estimates(log, policy, np.tile([0.5, 0.5], (4, 1)))
    assert weights_of(log, policy).tolist() == [2.0, 0.0, 4.0, 0.0]
    assert found[IPS].value == 1.5
    assert found[SNIPS].value == 1.0
    assert found[DR].value == 0.5 + (2 * 0.5 + 4 * 0.5) / 4
    assert effective(weights_of(log, policy)) == 36 / 20
    assert SNIPS not in estimates(
        Log(log.contexts, np.ones(4, dtype=int), *(log.propensities, log.rewards), 2), policy, policy
    )
    with pytest.raises(ValueError, match="distribution"):
        estimates(log, 2 * policy, policy)


def test_the_model_finds_the_means():
    """30,000 rounds: each coefficient is off by 0.1 with probability below 1e-6 (ten standard errors)."""
    log = drawn(30_000, np.random.Generator(np.random.SFC64(1)))
    model = RewardModel(log, UNIT)
    points = np.array([[0.1], [0.9]])
    np.testing.assert_allclose(model.predict(points), truth(points), atol=0.1)
    features = features_of(points, 3)
    assert features.shape == (2, 3, 6)
    assert np.linalg.norm(features, axis=2).max() <= 1
    flat = RewardModel(
        Log(np.zeros((4, 0)), np.array([0, 0, 1, 1]), np.array([0.5, 0.25, 0.5, 0.5]), np.array([1.0, 0, 1, 1]), 3), UNIT
    )
    np.testing.assert_allclose(flat.predict(np.zeros((1, 0)))[0], [1 / 3, 1.0, 0.6])


def frame(n=300, seed=3):
    log = drawn(n, np.random.Generator(np.random.SFC64(seed)))
    names = np.array(["a", "b", "c"])
    return pd.DataFrame(
        {"age": 10 * log.contexts[:, 0], "action": names[log.actions], "propensity": log.propensities, "reward": log.rewards}
    )


def logged(path, **fields):
    return {"kind": "logged", "path": path, "actions": ["a", "b", "c"], "public": ["regret"], **fields}


CONTEXTS = {"contexts": ["age"], "context_range": [0, 10]}


def spec_of(folder, environment, text):
    tree = yaml.safe_load(text) | {"environment": environment, "horizon": 200}
    return parse_spec(yaml.safe_dump(tree), "spec.yaml", folder)


@pytest.mark.parametrize(
    ("file", "fields", "text"),
    [("log.csv", {}, SMALL), ("log.csv", CONTEXTS, SMALL_SPHERE), ("log.parquet", CONTEXTS, SMALL_SPHERE)],
    ids=["arms", "contexts", "parquet"],
)
def test_algorithms_learn_in_the_simulation_and_are_judged_by_the_log(tmp_path, file, fields, text):
    write = frame().to_parquet if file.endswith("parquet") else frame().to_csv
    write(tmp_path / file, index=False)
    spec = spec_of(tmp_path, logged(file, **fields), text)
    store = Store(tmp_path / "results")
    (environment,) = environments_of(spec)
    environment.check()
    for cell in cells_of(spec):
        summary = summarize_cell(cell, store)
        assert np.isfinite(summary["mean"]).all()
        values = summary["values"]
        assert values["rounds"] == 150
        assert 0 < values["effective"] <= 150
        for name in (IPS, SNIPS, DR):
            assert values[name]["low"] < values[name]["value"] < values[name]["high"]
        assert benchmark_record(cell, summary).metrics["value/dr"] == values[DR]["value"]
    assert environment.audit_table().n_actions == 3
    cells = list(Plan.of(spec).played)
    found = _benchmark(Plan.of(spec), cells, store)
    shown = {cell["label"]: cell["values"] for cell in found["cells"]}
    assert all(value is not None for value in shown.values())
    document = {"environments": [environment.describe()], "benchmark": found}
    assert "IPS: inverse propensity scores" in str(regret_details(document))


class _Halves:
    """Plays action 0 for those below the middle of the contexts' range, else action 2; counts its calls."""

    n_calls = 0

    def act(self, released, offered, step, *coins):
        self.n_calls += 1
        if offered is None:
            return np.zeros(4, dtype=int)
        share = offered[:, 0, 1] / offered[:, 0, 0]
        return np.where(share < 0.5, 0, 2)


@pytest.mark.parametrize("fields", [{}, CONTEXTS], ids=["arms", "contexts"])
def test_each_held_out_round_has_its_own_decision(tmp_path, fields):
    frame().to_csv(tmp_path / "log.csv", index=False)
    spec = spec_of(tmp_path, logged("log.csv", **fields), SMALL_SPHERE if fields else SMALL)
    (environment,) = environments_of(spec)
    algorithm = _Halves()
    (choices,) = environment.final_policy(algorithm, None, None, Coins(np.random.SeedSequence(1), 4)).values()
    held = environment._halves[1].contexts
    assert choices.shape == (150, 3)
    if not fields:
        assert algorithm.n_calls == 1
        assert (choices == [4, 0, 0]).all()
        return
    features = features_of(held, 3)
    is_below = features[:, 0, 1] / features[:, 0, 0] < 0.5
    assert 0 < is_below.sum() < 150
    assert np.array_equal(choices, np.where(is_below[:, None], [4, 0, 0], [0, 0, 4]))


def test_of_a_private_log_nothing_is_shown(tmp_path):
    frame().to_csv(tmp_path / "log.csv", index=False)
    spec = spec_of(tmp_path, logged("log.csv", public=[]), SMALL)
    store = Store(tmp_path / "results")
    cell = cells_of(spec)[0]
    assert not [name for name in benchmark_record(cell, summarize_cell(cell, store)).metrics if name.startswith("value/")]
    assert all(shown["values"] is None for shown in _benchmark(Plan.of(spec), [cell], store)["cells"])
    facts = cell.environment.facts()
    assert facts["path"] == "private"
    assert cell.environment.describe()["means"] == []


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("action", "d", r"row 3: column 'action' must be one of a, b, c"),
        ("propensity", 0.0, r"row 3: column 'propensity' must be above 0"),
        ("propensity", 1.5, r"row 3: column 'propensity' must be a number in \[0, 1\]"),
        ("reward", np.nan, r"row 3: column 'reward' must be a number in \[0, 1\]"),
        ("age", 11.0, r"row 3: column 'age' must be a number in \[0, 10\]"),
    ],
)
def test_a_value_that_does_not_fit_is_named_by_its_row(tmp_path, column, value, message):
    data = frame()
    data.loc[2, column] = value
    data.to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(SpecError, match=message):
        cells_of(spec_of(tmp_path, logged("log.csv", **CONTEXTS), SMALL_SPHERE))


def test_other_mistakes_are_one_line(tmp_path):
    frame(10).to_csv(tmp_path / "short.csv", index=False)
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    for fields, message in (
        ({"path": "absent.csv"}, "absent.csv cannot be read"),
        ({"path": "short.csv"}, "has 10 rounds; estimates need at least 20"),
        ({"path": "bad.parquet"}, "cannot be read as CSV or Parquet"),
        ({"path": "short.csv", "reward": "outcome"}, "has no column 'outcome'"),
    ):
        with pytest.raises(SpecError, match=message) as found:
            cells_of(spec_of(tmp_path, logged(**fields), SMALL))
        assert "\n" not in str(found.value)


LOG = "action,propensity,reward,note\n" + "".join(f"{'ab'[i % 2]},0.5,{i % 2},x\n" for i in range(24))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("reward,note", "reward,reward", "2 columns are named 'reward': rename all but one"),
        (",note\n", "\n", "row 1 has 4 values where the header names 3 columns"),
        ("a,0.5,0,x\n", "a,0.5,0\n", "row 1 has 3 values where the header names 4 columns"),
        ("a,0.5,0,x\n", 'a,0.5,"0".5,x\n', "cannot be read as CSV or Parquet"),
        (",0,x\n", ",false,x\n", "row 1: column 'reward' must be a number"),
        ("a,0.5", "A,0.5", "row 1: column 'action' must be one of a, b"),
        ("a,0.5", "a,0_1", "row 1: column 'propensity' must be a number"),
    ],
)
def test_a_log_is_taken_as_it_is_written_or_refused(before, after, message):
    item = LoggedSpec(kind="logged", path="log.csv", actions=["a", "b"])
    assert len(parse_log(item, LOG.encode())) == 24
    with pytest.raises(SpecError, match=message):
        parse_log(item, LOG.replace(before, after, 1).encode())


def test_actions_are_known_by_their_names_as_written():
    item = LoggedSpec(kind="logged", path="log.csv", actions=["01", "NA"])
    named = LOG.replace("a,0.5", "01,0.5").replace("b,0.5", "NA,0.5")
    assert parse_log(item, named.encode()).actions[:2].tolist() == [0, 1]
    with pytest.raises(SpecError, match="column 'action' must be one of 01, NA"):
        parse_log(item, named.replace("01,0.5", "1,0.5", 1).encode())


def test_truth_values_are_no_rewards():
    item = LoggedSpec(kind="logged", path="log.csv", actions=["a", "b"])
    text = LOG.replace(",0,x", ",False,x").replace(",1,x", ",True,x")
    with pytest.raises(SpecError, match="column 'reward' must hold numbers, such as 1 and 0, and not true and false"):
        parse_log(item, text.encode())
