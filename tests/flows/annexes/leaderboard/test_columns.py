"""Defaults and tuned rows: what is chosen and how, that both share noise, their fronts and contests, and how they agree."""

import copy
import json
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_leaderboard import PROBLEM, make, play
from typer.testing import CliRunner
from version_file import written_version

from bandana.algorithms import catalog
from bandana.algorithms.coins import Coins
from bandana.algorithms.run import run
from bandana.audits.reporting import render_html, validate
from bandana.flows.annexes.leaderboard import best, columns, tuning
from bandana.flows.annexes.leaderboard.benchmark_folder import read
from bandana.flows.annexes.leaderboard.scaled import FACTORS, knob_of, only_cells, value_at
from bandana.flows.cells import replicates
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.aims import Aim
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, LiveLedger, PureDP, RenyiDP, ReproducibleNoise

SHIPPED = Path(__file__).parents[4] / "experiments" / "benchmark"
ROUNDS = {"finite": 10_000, "linear": 4000, "kernel": 24, "pooled": 24, "contextual": 48}
"""Rounds in which releases of a kind of problem are compared, so many that there are some; of the others 200."""


@cache
def regret_problems():
    return [problem for problem in read(SHIPPED).problems if problem.aim is Aim.REGRET]


def paid(cell):
    """The worst record's charges of a short run of two replicates."""
    block, rounds = cell.blocks()[0], cell.spec.horizon
    ledger = LiveLedger(2, ReproducibleNoise(block.noise_seed), None, n_records=rounds)
    algorithm, labels = replicates.with_coins(cell.entry, cell.settings, block.coin_seed, 2)
    stream, coins = cell.environment.stream(block.reward_seed), Coins(block.coin_seed, 2)
    run(algorithm, stream, ledger, horizon=rounds, labels=labels, coins=coins)
    return ledger.worst_record()


@pytest.mark.slow
def test_exploration_changes_no_noise_so_that_both_columns_share_an_audit():
    """Every entry of the shipped benchmark has the same claim and the same noise at a factor of 0.1 as at 1.

    How often a record is read may differ where the data decide when a policy is updated: the claim covers the most.
    """
    compared = set()
    for problem in regret_problems():
        rounds = ROUNDS.get(problem.kind, 200)
        spec = problem.spec.model_copy(update={"horizon": rounds, "replications": 2, "block_size": 2})
        whole = [*Plan.of(spec).cells]
        cells = {cell.entry.label: cell for cell in whole if cell.is_private and knob_of(cell.entry)}
        new = [cell for label, cell in cells.items() if label not in compared]
        if not new:
            continue
        plans = [Plan.of(only_cells(spec, whole, {cell.name: at for cell in new})) for at in (1.0, 0.1)]
        for ours, theirs in zip(plans[0].cells, plans[1].cells, strict=True):
            assert ours.settings.parameters != theirs.settings.parameters
            assert ours.claim() == theirs.claim()
            charges = paid(ours)
            assert set(charges) == set(paid(theirs)), ours.name
            assert charges, f"{ours.name} released nothing"
        compared |= set(cells)
    kinds = {kind for problem in regret_problems() for kind in problem.spec.environment[0].played_as}
    tunable = {e.label for e in catalog.CATALOG if e.is_private and knob_of(e) and kinds & set(e.plays_on)}
    assert {label for label in tunable if not label.startswith(("adap-tt", "dp-tt"))} <= compared


def test_a_factor_of_1_is_the_catalog_s_default_and_rates_go_the_other_way():
    entries = {entry.label: entry for entry in catalog.CATALOG}
    assert value_at(entries["adar-ucb"], 1.0) == 3.1
    assert value_at(entries["adar-ucb"], 0.1) == 0.31
    assert value_at(entries["dp-exp3"], 0.1) == 10
    assert knob_of(entries["dp-imed"]) is None
    assert all(knob_of(entry) in (None, *entry.parameters) for entry in entries.values())


def test_every_problem_plays_with_the_value_of_its_families():
    """What is written in the problems is what the rule chose, for every family, and nothing else is given by hand."""
    families = tuning.Defaults.model_validate_json((SHIPPED / tuning.DEFAULTS).read_text("utf-8"), strict=True).families
    for value in families.values():
        assert value.regret[f"{value.chosen:g}"] == min(value.regret.values())
        assert [float(factor) for factor in value.regret] == list(FACTORS)
    for problem in regret_problems():
        for item in problem.spec.algorithms:
            given = item.parameters.get("beta_scale", {})
            assert set(item.parameters) <= {"beta_scale"}
            assert given == {name: families[name].chosen for name in given}
        playing = {cell.entry.family for cell in problem.plan.cells if "beta_scale" in cell.entry.parameters}
        assert playing == set(given), problem.name


def test_development_instances_are_not_those_of_the_page():
    for problem in regret_problems():
        trial = tuning.Trials(problem, SHIPPED)
        ours, theirs = problem.spec.environment[0], trial.spec.environment[0]
        assert trial.spec.seed != problem.spec.seed
        is_drawn = ours.kind in ("linear", "sphere", "fixed-sphere", "logistic", "rkhs-gap", "rkhs", "modes")
        assert is_drawn or ours != theirs, problem.name
        assert theirs.whose_data == "simulated"
        assert {cell.name for cell in trial.cells} <= {cell.name for cell in problem.plan.cells}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("tuned")


@pytest.fixture(scope="module")
def board(place):
    folder = make(place / "tiny", horizon=400)
    (folder / tuning.INSTANCES).write_text(json.dumps({"arms": {"kind": "bernoulli", "means": [0.1, 0.7]}}))
    with Workers(1) as workers:
        data = place / "trials"
        data.mkdir()
        tuning.tune(read(folder), Store(DataFolder.open(data).results), workers)
    return play_both(read(folder), place / "data")


def play_both(benchmark, data):
    data.mkdir(exist_ok=True)
    folder = DataFolder.open(data)
    with Workers(1) as workers:
        for problem in benchmark.problems:
            tuning.play([tuning.tuned_plan(problem, benchmark.folder)], Store(folder.results), workers)
    return play(benchmark, data)


def test_the_rule_is_that_of_tuning_on_a_common_grid(board, place):
    found = json.loads((place / "tiny" / tuning.CHOSEN / "arms.json").read_text())
    assert found["parameter"] == tuning.PARAMETER
    assert set(found["chosen"]) == {name for name in found["tried"] if not name.startswith("dp-imed")}
    for name, tries in found["tried"].items():
        assert sorted((each["value"] for each in tries), reverse=True) == list(FACTORS), name
        assert found["chosen"][name] in FACTORS
        # Halving drops values that were worse in the first rung: what is chosen has the least mean of those that went on.
        assert any(each["value"] == found["chosen"][name] for each in tries)


def test_what_was_chosen_is_not_tried_again(place, board):
    folder = place / "tiny"
    text = (folder / tuning.CHOSEN / "arms.json").read_text()
    with Workers(1) as workers:
        tuning.tune(read(folder), Store(place / "nothing"), workers)
    assert (folder / tuning.CHOSEN / "arms.json").read_text() == text
    assert not (place / "nothing").exists() or not any((place / "nothing").rglob("*.npz"))


def test_rows_have_both_columns_and_contests_of_each(board):
    validate(board)
    problem = board["problems"][0]
    assert problem["missing"] == []
    for row in problem["rows"]:
        assert (row["tuned"] is None) == (row["role"] == "reference")
        if row["tuned"] is not None and row["tuned"]["exploration"] == row["exploration"]:
            assert row["tuned"]["mean"] == row["mean"], "the same value plays the same blocks"
    ended = [each for each in problem["best"] if each["column"] == "tuned" and each["guarantee"] is None]
    assert [each["mu"] for each in ended] == [0.5, 2]
    rows = {row["label"]: row for row in problem["rows"]}
    for each in ended:
        assert each["mean"] == rows[each["label"]]["tuned"]["mean"]
    assert board["columns"]["contests"] == 2
    page = render_html(board)
    for words in ("Best with tuned exploration", "Best with pure guarantees", "Defaults and tuned rows play 2 contests"):
        assert words in page
    assert "Defaults and tuned rows play 2 contests" in best.lines(board)[-1]
    wrong = copy.deepcopy(board)
    wrong["problems"][0]["rows"][0]["tuned"]["mean"] = 1e9
    with pytest.raises(ValueError, match="lies outside of its interval"):
        validate(wrong)


def test_a_changed_instance_voids_the_choices(place, board):
    folder = place / "changed"
    shutil.copytree(place / "tiny", folder)
    (folder / tuning.INSTANCES).write_text(json.dumps({"arms": {"kind": "bernoulli", "means": [0.3, 0.7]}}))
    benchmark = read(folder)
    assert tuning.tuned_plan(benchmark.problems[0], folder) is None
    (folder / tuning.CHOSEN / "arms.json").write_text("{}")
    with pytest.raises(SpecError, match="cannot be read"):
        tuning.tuned_plan(benchmark.problems[0], folder)


def test_the_quick_form_plays_what_was_tuned_in_the_whole(place, board, monkeypatch):
    plan = tuning.tuned_plan(read(place / "tiny", is_quick=True).problems[0], place / "tiny")
    assert plan is not None
    assert plan.spec.horizon == 400
    monkeypatch.setenv("BANDANA_DATA", str(place / "empty"))
    left = CliRunner().invoke(app, ["leaderboard", str(place / "tiny"), "--dry-run"])
    assert f"arms, tuned: {len(plan.cells) * 2} of" in left.output


def row(label, mean, tuned, guarantee="pure", mu=1.0):
    part = {"exploration": None, "low": 0.0, "high": 9.0, "replications": 2}
    fronts = {"is_on_front": False, "is_on_own_front": False}
    both = None if tuned is None else {**part, **fronts, "mean": tuned}
    own = {"label": label, "entry": label, "is_own": False, "calibration": None, "role": "private", "mu_claimed": mu}
    return {**part, **fronts, **own, "mean": mean, "tuned": both, "guarantee": guarantee, "privacy_model": "central"}


def test_fronts_by_guarantee_stand_beside_the_common_one():
    rows = [row("a", 1.0, 3.0), row("b", 2.0, 2.0, "concentrated"), row("c", 3.0, 1.0, "concentrated"), row("d", 4.0, None)]
    columns.mark_fronts(rows)
    assert [each["is_on_front"] for each in rows] == [True, False, False, False]
    assert [each["is_on_own_front"] for each in rows] == [True, True, False, False]
    assert [each["tuned"]["is_on_front"] for each in rows[:3]] == [False, False, True]
    assert [each["tuned"]["is_on_own_front"] for each in rows[:3]] == [True, False, True]


def test_agreement_is_that_of_the_orders_and_of_the_winners():
    rows = [row("a", 1.0, 3.0), row("b", 2.0, 2.0), row("c", 3.0, 1.0), row("d", 4.0, None)]
    values = {label: np.full(3, float(place)) for place, label in enumerate("abcd", start=1)}
    tuned = {label: np.full(3, float(4 - place)) for place, label in enumerate("abc", start=1)}
    ended = columns.contests(rows, [1.0], {"defaults": values, "tuned": tuned}, {})
    (found,) = columns.agreements(rows, ended)
    assert (found["rows"], found["defaults"], found["tuned"]) == (3, "a", "c")
    assert (found["kendall"], found["spearman"]) == (pytest.approx(-1), pytest.approx(-1))
    assert columns.together([found]) == {
        "contests": 1, "ranked": 1, "kendall": pytest.approx(-1), "spearman": pytest.approx(-1), "won": 1, "holds": 0.0,
    }  # fmt: skip
    assert columns.together([])["holds"] is None


def test_kinds_of_guarantees():
    guarantees = PureDP(1.0), ApproxDP(1.0, 1e-5), RenyiDP(2.0, 1.0), ZCDP(1.0), GaussianDP(1.0)
    assert [columns.kind_of(each) for each in guarantees] == ["pure", "approximate", *["concentrated"] * 3]


def test_families_value_is_the_least_average_and_of_equal_ones_the_largest():
    shares = [np.array([0.5, 0.2, 0.4, 0.9, 0.9]), np.array([0.5, 0.4, 0.2, 0.9, 0.9])]
    assert tuning.family_value(shares).chosen == 0.3
    assert tuning.family_value(shares).regret["0.1"] == 0.3


def test_a_value_for_each_family_is_checked(tmp_path):
    folder = tmp_path / "families"
    folder.mkdir()
    tree = copy.deepcopy(PROBLEM)
    for item in tree["algorithms"]:
        item["parameters"] = {"beta": {"bandits/finite_arm": 2.0, "bandits/linear": 9.0}}
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree))
    (folder / "version.json").write_text(written_version(folder, "Families", 1))
    cells = read(folder).problems[0].plan.cells
    assert {cell.settings.parameters["beta"] for cell in cells if "beta" in cell.entry.parameters} == {2.0}
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree).replace("bandits/linear", "bandits/lines"))
    with pytest.raises(SpecError, match="no family of the catalog is called 'bandits/lines'"):
        read(folder)
