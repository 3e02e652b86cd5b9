"""A leaderboard of a tiny benchmark from specs to page: its numbers, a row of one's own, its schema, and mistakes."""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner
from version_file import written_version

from bandana.algorithms import catalog
from bandana.audits.names import titles_of
from bandana.audits.reporting import figures, render_html, validate
from bandana.flows.annexes.leaderboard import assemble, best, measures
from bandana.flows.annexes.leaderboard.benchmark_folder import audit_plans, audited, left_to_the_whole, read
from bandana.flows.annexes.leaderboard.page import headline
from bandana.flows.cells.play import is_played
from bandana.flows.cli import app
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.plan import Plan, cells_of
from bandana.flows.running.side_by_side import Workers
from bandana.flows.spec.aims import Aim, aim_of
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import SpecError

ROOT = Path(__file__).parents[4]
PROBLEM = {
    "name": "tiny-arms",
    "title": "Two arms",
    "description": "Two arms that differ much",
    "seed": 5,
    "environment": {"kind": "bernoulli", "means": [0.9, 0.2]},
    "horizon": 600,
    "replications": 6,
    "block_size": 3,
    "twins": False,
    "algorithms": [
        {"all": "non-private"},
        {"all": "private", "mu": [0.5, 2], "model": "central", "calibrations": "tight"},
    ],
    "audit": {"rounds": 16, "replays": 2000, "examples": 10},
}
ROW = {
    "problems": ["arms"],
    "algorithms": [
        {
            "file": "own_bandit.py:EpisodicGreedy",
            "label": "mine",
            "source": "somebody's repository",
            "claim": "gdp(mu={mu}, relation=reward)",
            "parameters": {"mu": 1},
        }
    ],
}


def make(folder, **changes):
    """A benchmark of one problem, and a file of rows with a copy of the example's algorithm."""
    tree = copy.deepcopy(PROBLEM) | changes
    for item in tree["algorithms"]:  # whatever else the catalog has, so that new entries change no test
        playing = {entry.name for entry in catalog.known() if "finite" in entry.plays_on}
        item["leave_out"] = sorted(playing - {"ucb", "adar-ucb", "adap-ucb"})
    folder.mkdir(exist_ok=True)
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    (folder / "version.json").write_text(written_version(folder, "A tiny benchmark", 3))
    return folder


def add_row(folder, where="arms"):
    (folder / "rows").mkdir()
    shutil.copy(ROOT / "examples" / "own_bandit.py", folder / "rows" / "own_bandit.py")
    (folder / "rows" / "mine.yaml").write_text(yaml.safe_dump(ROW | {"problems": [where]}, sort_keys=False))


def play(benchmark, data, *, has_audits=False):
    data.mkdir(exist_ok=True)
    folder = DataFolder.open(data)
    with Workers(1) as pool:
        steps.benchmark([problem.plan for problem in benchmark.problems], folder, pool)
        if has_audits:
            steps.audit([Plan.of(audited(benchmark.problems[0], set(), is_quick=True))], folder, pool)
    return assemble.assemble(benchmark, Store(folder.results), "bandana leaderboard tiny")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("board")


@pytest.fixture(scope="module")
def board(place):
    """Played in the whole form, audited at the middle level, without rows of one's own."""
    return play(read(make(place / "tiny")), place / "data", has_audits=True)


def rows_of(document):
    return {row["label"]: row for row in document["problems"][0]["rows"]}


def test_rows_hold_what_was_played_claimed_accounted_and_measured(board):
    rows = rows_of(board)
    assert set(rows) == {
        "ucb", "adar-ucb non-private", "uniform play", "greedy", "adap-ucb tight eps=0.4", "adap-ucb tight eps=1.668",
        "adar-ucb tight eps=0.25", "adar-ucb tight eps=4",
    }  # fmt: skip
    for label, row in rows.items():
        assert row["low"] <= row["mean"] <= row["high"]
        assert (row["claim"] is None) == (row["mu_claimed"] is None) == (" eps=" not in label)
        if row["mu_claimed"] is not None:
            assert row["mu_accounted"] <= row["mu_claimed"] * (1 + 1e-9)
            assert row["seconds"] > 0
    assert rows["uniform play"]["mean"] == pytest.approx(600 * 0.35)
    assert rows["uniform play"]["seconds"] is None
    # The audit was at mu = 2, the middle one of two; a bound holds with 95 %, and none is above its claim on these seeds.
    for label in ("adap-ucb tight eps=1.668", "adar-ucb tight eps=4"):
        assert rows[label]["audited_on"] == "arms"
        assert 0 <= rows[label]["mu_measured"] <= rows[label]["mu_claimed"]
    assert rows["adar-ucb tight eps=0.25"]["verdict"] is None


def test_the_page_says_with_what_confidence_all_its_audits_hold(board):
    assert board["audits"] == {"number": 2, "confidence": pytest.approx(0.9)}  # two audits at 95 %
    assert "The bounds of all 2 audits hold together with 90 % confidence." in render_html(board)


def test_all_audits_of_the_shipped_benchmark_hold_together_with_95_percent():
    plans = audit_plans(read(ROOT / "experiments" / "benchmark"))
    cells = [cell for plan in plans for cell in plan.private]
    assert sum(1 - cell.audit.confidence for cell in cells) <= 0.05


def test_the_front_and_the_best_follow_from_the_rows(board):
    rows, problem = rows_of(board), board["problems"][0]
    for found in problem["best"]:
        able = [r for r in rows.values() if r["role"] == "private" and r["mu_claimed"] <= found["mu"] * 1.002]
        kind = found["guarantee"]
        assert found["mean"] == min(row["mean"] for row in able if kind in (None, row["guarantee"]))
        front = "is_on_front" if kind is None else "is_on_own_front"
        assert rows[found["label"]][front] or found["mu"] == 2
    assert [(found["guarantee"], found["mu"]) for found in problem["best"]] == [
        (kind, mu) for kind in (None, "pure", "concentrated") for mu in (0.5, 2)
    ]
    assert {row["guarantee"] for label, row in rows.items() if label.startswith("adap-ucb tight")} == {"pure"}
    assert {row["guarantee"] for label, row in rows.items() if label.startswith("adar-ucb tight")} == {"concentrated"}
    assert sum(row["is_on_front"] for row in rows.values()) >= 1
    assert not rows["ucb"]["is_on_front"]


def test_each_entry_plays_a_contest_once_at_its_weakest_claim(board):
    narrow = "adap-ucb tight eps=0.4", "adar-ucb tight eps=0.25"
    wide = "adap-ucb tight eps=1.668", "adar-ucb tight eps=4"
    overall = [ended for ended in board["problems"][0]["best"] if ended["guarantee"] is None]
    for ended, able in zip(overall, (narrow, wide), strict=True):
        assert ended["candidates"] == 2
        assert ended["label"] in ended["best_set"]
        assert set(ended["best_set"]) <= set(able)
        assert ended["mu_claimed"] == rows_of(board)[ended["label"]]["mu_claimed"]
        assert ended["not_beaten"] == []


def test_rows_show_the_tail_and_how_often_they_were_no_better_than_uniform_play(board):
    rows = rows_of(board)
    for row in rows.values():
        assert row["median"] <= row["quantile_90"]
    assert rows["uniform play"]["no_better_than_uniform"] == 1
    assert rows["ucb"]["no_better_than_uniform"] == 0


def test_nobody_wins_a_contest_in_which_nobody_learned(place):
    """After 30 rounds with much noise no row beats uniform play, and the table says so."""
    board = play(read(make(place / "short", horizon=30)), place / "data")
    ended = board["problems"][0]["best"][0]
    assert ended["not_beaten"] == ["uniform play"]
    page = render_html(board).replace("<wbr>", "")
    assert "nobody" in page
    assert "which does not beat uniform play" in page
    assert "nobody beats uniform play" in "\n".join(best.lines(board))
    wrong = copy.deepcopy(board)
    wrong["problems"][0]["best"][0]["best_set"] = []
    with pytest.raises(ValueError, match="must hold the row of least mean"):
        validate(wrong)


def test_lower_bounds_divide_regret_and_are_listed(board):
    row = rows_of(board)["adar-ucb tight eps=4"]
    assert row["over_lower_bound"] == pytest.approx(row["mean"] / row["lower_bound"])
    listed = board["problems"][0]["lower_bounds"]
    assert {each["mu"] is None for each in listed} == {True, False}
    assert row["lower_bound"] in [each["value"] for each in listed]


def test_the_json_is_checked_and_contradictions_are_refused(board):
    validate(board)
    rows = board["problems"][0]["rows"]
    for change, message in (
        ({"mean": 1e9}, "lies outside of its interval"),
        ({"label": rows[1]["label"]}, "occurs twice"),
        ({"mu_claimed": float("inf")}, "not finite"),
        ({"role": "reference", "claim": "x"}, "must be given by private rows"),
    ):
        wrong = copy.deepcopy(board)
        wrong["problems"][0]["rows"][0] |= change
        with pytest.raises(ValueError, match=message):
            validate(wrong)
    wrong = copy.deepcopy(board)
    wrong["problems"][0]["best"][0]["label"] = "nobody"
    with pytest.raises(ValueError, match="must be the label of a row"):
        validate(wrong)
    del wrong["problems"][0]["rows"][0]["seconds"]
    with pytest.raises(ValueError, match="lacks the properties seconds"):
        validate(wrong)


def test_the_page_shows_every_row_its_figure_and_who_is_best(board):
    page = render_html(board)
    titles = titles_of(board)
    assert titles["adar-ucb tight eps=0.25"] == "adar-ucb tight rdp(2, 0.25)"
    for label in rows_of(board):
        assert titles.get(label, label) in page.replace("<wbr>", "")
    assert " eps=" not in page
    assert page.count("<svg") == 1
    assert [*figures(board)] == ["regret-against-mu-on-arms"]
    for words in (
        "Best at each level of privacy",
        "µ measured",
        "Regret / lower bound",
        "bandana leaderboard tiny",
        "version 3",
    ):
        assert words in page
    assert "<script" not in page


def test_a_broken_promise_turns_the_page_red(board):
    wrong = copy.deepcopy(board)
    row = next(row for row in wrong["problems"][0]["rows"] if row["verdict"] is not None)
    row["mu_measured"] = 2 * row["mu_claimed"]
    page = render_html(wrong)
    assert "ORDER BROKEN" in page
    assert "1 break their promise" in page


def test_the_head_says_first_how_many_rows_were_audited(board):
    document = copy.deepcopy(board)
    first, second = (row for row in document["problems"][0]["rows"] if row["verdict"] is not None)
    first["verdict"], second["verdict"] = "PASS", "INCONCLUSIVE"
    head = "1 problem, 8 rows, 4 of them private;"
    assert headline(document) == ("unsure", f"{head} 2 of these audited, 1 passed, 1 inconclusive.")
    second["verdict"] = "PASS"
    assert headline(document) == ("quiet", f"{head} 2 of these audited, 2 passed.")
    first["verdict"] = second["verdict"] = None
    assert headline(document) == ("quiet", f"{head} none of these audited.")


def test_what_is_measured_in_other_rounds_is_not_held_against_what_is_accounted(board):
    told = copy.deepcopy(board)
    row = next(row for row in told["problems"][0]["rows"] if row["verdict"] is not None)
    row["mu_accounted"], row["mu_measured"] = 0.3 * row["mu_claimed"], 0.8 * row["mu_claimed"]
    page = render_html(told)
    assert "ORDER BROKEN" not in page
    assert "break their promise" not in page


def test_a_row_of_one_s_own_by_adding_a_file(board, place):
    folder = place / "with-row"
    shutil.copytree(place / "tiny", folder)
    add_row(folder)
    found = play(read(folder), place / "data")
    rows, before = rows_of(found), rows_of(board)
    (added,) = set(rows) - set(before)
    assert added.startswith("mine")
    assert rows[added]["is_own"]
    assert rows[added]["mu_claimed"] == 1
    assert not found["problems"][0]["is_changed"]  # the problem is the version's, whoever plays on it
    moving = ("is_on_front", "is_on_own_front")
    for label, row in before.items():
        assert {k: v for k, v in rows[label].items() if k not in moving} == {k: v for k, v in row.items() if k not in moving}
    assert rows[added]["source"] == "somebody's repository"
    page = render_html(found)
    assert "(own)" in page
    assert "mine: somebody" in page


def test_a_row_that_fails_its_audit_is_in_no_contest_and_on_no_front(board, place, monkeypatch):
    """Both audited rows, at mu = 2, are made to fail: the rows at mu = 0.5 are what is left there."""
    audits = assemble._audits

    def failing(benchmark, store):
        measured, made = audits(benchmark, store)
        return {subject: each | {"verdict": "FAIL"} for subject, each in measured.items()}, made

    monkeypatch.setattr(assemble, "_audits", failing)
    found = play(read(place / "tiny"), place / "data")
    failed = {label for label, row in rows_of(found).items() if row["verdict"] == "FAIL"}
    assert failed == {label for label, row in rows_of(board).items() if row["verdict"] is not None}
    assert len(failed) == 2
    for before, ended in zip(board["problems"][0]["best"], found["problems"][0]["best"], strict=True):
        assert not failed & {ended["label"], *ended["best_set"]}
        assert ended["mu"] == 0.5 or failed & set(before["best_set"])
    assert not any(row["is_on_front"] or row["is_on_own_front"] for label, row in rows_of(found).items() if label in failed)


TESTS = {
    "fixed-confidence": {"parameters": {"error": 0.2}},
    "fixed-budget": {},
}


@pytest.fixture(scope="module", params=TESTS)
def tests_board(request, place):
    """A leaderboard of tests for the best arm, in which an ordinary bandit has a row too, and is left out."""
    aim, more = request.param, TESTS[request.param]
    folder = place / aim
    tree = copy.deepcopy(PROBLEM) | {"environment": {"kind": "bernoulli", "means": [0.9, 0.4, 0.4]}, "references": False}
    tree |= {"replications": 40, "block_size": 20, "horizon": 2000 if more else 60}
    tree["algorithms"] = [item | more | {"aim": aim} for item in tree["algorithms"]]
    folder.mkdir()
    (folder / "test.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    (folder / "version.json").write_text(written_version(folder, "Tests", 1))
    add_row(folder, "best-arm")
    return aim, play(read(folder), place / "data")


def test_tests_for_the_best_arm_are_measured_by_rounds_or_errors(tests_board):
    aim, board = tests_board
    validate(board)
    problem, rows = board["problems"][0], rows_of(board)
    names = {"adap-tt", "dp-tt"} if aim == "fixed-confidence" else {"dp-bai"}
    assert {row["algorithm"] for row in rows.values()} == names, "what recommends no arm has no row"
    assert problem["measure"] == ("rounds" if aim == "fixed-confidence" else "errors")
    assert problem["missing"] == []
    assert set(problem["left_out"]) <= {entry.label for entry in catalog.known() if aim_of(entry) == aim}
    for row in rows.values():
        test = row["test"]
        assert row["low"] <= row["mean"] <= row["high"]
        assert row["mean"] == test["rounds" if aim == "fixed-confidence" else "wrong"]
        assert 0 <= test["wrong_low"] <= test["wrong"] <= test["wrong_high"] <= 1
        assert row["lower_bound"] is None if test["undecided"] else row["lower_bound"] > 0
    for found in problem["best"]:
        able = [row for row in rows.values() if row["mu_claimed"] is not None and row["mu_claimed"] <= found["mu"] * 1.002]
        able = [row for row in able if found["guarantee"] in (None, row["guarantee"])]
        assert found["mean"] == min(row["mean"] for row in able)
    page = render_html(board)
    for words in ("Rounds to stop", "Not stopped") if aim == "fixed-confidence" else ("Wrong", "Proved at most"):
        assert words in page
    assert any("(rounds to stop)" in line or "(share of wrong answers)" in line for line in best.lines(board))


def test_a_test_that_errs_too_often_wins_nothing(tests_board):
    """Measured errors of 100 % at an allowed error of 20 %: such a row is on no front and never the best."""
    aim, _ = tests_board
    found = measures.Measured(1.0, 1.0, 1.0, np.ones(3), None, None, None, {"wrong_low": 0.5})
    assert found.keeps(1.0)
    assert not found.keeps(0.2)
    cells = [SimpleNamespace(settings=SimpleNamespace(parameters={"error": 0.2}))]
    assert measures.allowed_error(Aim(aim), cells) == (0.2 if aim == "fixed-confidence" else 1.0)


def test_promises_to_users_are_audited_apart(place):
    environment = {"kind": "bernoulli", "means": [0.9, 0.2], "visits_per_user": 3}
    folder = make(place / "users", environment=environment)
    tree = yaml.safe_load((folder / "arms.yaml").read_text())
    tree["algorithms"][1]["level"] = "user"
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree))
    problem = read(folder).problems[0]
    done = {("record", "adar-ucb"), ("user", "adap-ucb")}
    cells = [cell for cell in cells_of(audited(problem, done, is_quick=False)) if cell.is_private]
    assert [cell.entry.label for cell in cells] == ["adar-ucb"] * 2
    assert all(cell.promised is not None for cell in cells)
    # A user's three rounds may lie in one sum, which they move three times as far: each is promised a third of mu = 2.
    assert cells[1].claim().gaussian.mu == pytest.approx(2)
    assert cells[1].settings.privacy.epsilon == pytest.approx(4 / 9)
    del tree["environment"]["visits_per_user"]
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(SpecError, match=r"algorithms\.1\.level: .*visits_per_user"):
        cells_of(read(folder).problems[0].spec)


def test_what_is_not_finished_is_named_and_goes_on_where_it_stopped(board, place):
    folder = make(place / "more", replications=9)
    store = Store(DataFolder(place / "data").results)
    benchmark = read(folder)
    cells = list(Plan.of(benchmark.problems[0].spec).played)
    in_store = [is_played(block, store) for cell in cells for block in cell.blocks()]
    assert sum(in_store) == 2 * len(cells)  # more replications add blocks and change none
    with pytest.raises(SpecError, match="no results of this benchmark"):
        assemble.assemble(benchmark, store, "x")
    after = play(benchmark, place / "data")
    assert after["problems"][0]["missing"] == []
    assert after["problems"][0]["replications"] == 9


def test_the_quick_form_follows_from_its_rule(place):
    whole, quick = (read(place / "tiny", is_quick=each).problems[0].spec for each in (False, True))
    assert (whole.horizon, quick.horizon) == (600, 500)
    assert (whole.replications, quick.replications, quick.block_size) == (6, 4, 4)
    assert quick.name == f"{whole.name}-quick"
    assert quick.audit.replays == 2000  # never more than asked


def test_the_quick_form_leaves_audits_that_need_more_replays_to_the_whole(place):
    folder = make(place / "more-replays")
    tree = yaml.safe_load((folder / "arms.yaml").read_text())
    private = tree["algorithms"].pop()
    tree["algorithms"] += [private | {"only": ["adap-ucb"], "replays": 50_000}, private | {"only": ["adar-ucb"]}]
    tree["audit"]["replays"] = 50_000
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree))
    cells = [cell for cell in cells_of(read(folder, is_quick=True).problems[0].spec) if cell.is_private]
    assert {(cell.entry.label, cell.audit.replays) for cell in cells} == {("adap-ucb", 50_000), ("adar-ucb", 20_000)}
    whole, quick = (read(folder, is_quick=is_quick) for is_quick in (False, True))
    assert (left_to_the_whole(whole), left_to_the_whole(quick)) == (set(), {("record", "adap-ucb")})
    spec = audited(quick.problems[0], left_to_the_whole(quick), is_quick=True)
    assert [cell.entry.label for cell in cells_of(spec) if cell.is_private] == ["adar-ucb"]
    tree["algorithms"][1]["only"] = ["nobody"]
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(SpecError, match="only: 'nobody' is no algorithm"):
        read(folder)


def test_a_changed_problem_is_not_the_version_s(place):
    folder = place / "changed"
    shutil.copytree(place / "tiny", folder)
    tree = yaml.safe_load((folder / "arms.yaml").read_text())
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree | {"title": "Other words"}))
    assert not read(folder).problems[0].is_changed
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree | {"seed": 6}))
    assert read(folder).problems[0].is_changed


def test_the_command_renders_what_is_stored_and_list_says_who_is_best(board, place, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(place / "data"))
    command = ["leaderboard", str(place / "tiny"), "--report-only"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    assert "arms, central: mu <= 0.5:" in done.output
    stored = json.loads((place / "data" / "leaderboard" / "whole.json").read_text())
    validate(stored)
    assert rows_of(stored) == rows_of(board)
    assert best.latest() == stored
    listed = CliRunner().invoke(app, ["list"])
    assert "A tiny benchmark, version 3, whole form" in listed.output
    assert "arms, central: mu <= 0.5:" in listed.output
    left = CliRunner().invoke(app, ["leaderboard", str(place / "tiny"), "--dry-run"])
    assert "arms: 0 of 16 blocks are left to play" in left.output


def test_without_a_leaderboard_list_says_how_to_make_one(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "none"))
    assert "bandana leaderboard --quick" in CliRunner().invoke(app, ["list"]).output


def test_more_than_a_day_of_work_is_asked_about(tmp_path, monkeypatch):
    """What would start then is refused, so that a question that is not asked fails the test."""

    def refuse(*_, **__):
        raise SpecError("started")

    monkeypatch.setattr("bandana.flows.annexes.leaderboard.command.begin", refuse)
    private = PROBLEM["algorithms"][1] | {"mu": 1}  # each cell is measured by a short trial
    folder = make(tmp_path / "tiny", replications=10**13, block_size=10**11, horizon=10**4, algorithms=[private])
    said = [CliRunner().invoke(app, ["leaderboard", str(folder), *more]).stderr for more in ([], ["--yes"])]
    assert "start it with --yes" in said[0]
    assert said[0].count("\n") == 1
    assert said[1] == "error: started\n"


def test_mistakes_are_named_before_any_work(tmp_path):
    folder = make(tmp_path / "tiny")
    with pytest.raises(SpecError, match="there is no problem 'legs'"):
        read(folder, only=["legs"])
    with pytest.raises(SpecError, match="is no folder"):
        read(folder, tmp_path / "nothing")
    rows = tmp_path / "rows"
    rows.mkdir()
    for text, message in (
        ("problems: legs\nalgorithms: [{file: 'a.py:A'}]\n", "no problem and no kind of problem 'legs'"),
        ("problems: arms\nalgorithms: [{algorithm: ucb}]\n", "names its code"),
        ("algorithms: [{file: 'a.py:A'}]\n", "problems: this field is required"),
    ):
        (rows / "mine.yaml").write_text(text)
        with pytest.raises(SpecError, match=message):
            read(folder, rows)
    (folder / "arms.yaml").write_text((folder / "arms.yaml").read_text().replace("all: private", "all: non-private"))
    with pytest.raises(SpecError, match="mu"):
        read(folder)
    (folder / "arms.yaml").unlink()
    with pytest.raises(SpecError, match=r"arms\.yaml is not in the folder"):
        read(folder)
    with pytest.raises(SpecError, match=r"version\.json: cannot be read"):
        read(tmp_path)


@pytest.mark.nightly
def test_the_command_plays_audits_and_resumes_under_prefect(place):
    folder = make(place / "orchestrated", replications=4)
    command = [
        sys.executable,
        "-m",
        "bandana",
        "leaderboard",
        str(folder),
        "--quick",
        "--data",
        str(place / "orchestrated-data"),
    ]
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        document = json.loads((place / "orchestrated-data" / "leaderboard" / "quick.json").read_text())
        validate(document)
        assert {row["verdict"] for row in document["problems"][0]["rows"]} > {None}
    left = subprocess.run([*command, "--dry-run"], capture_output=True, text=True, timeout=100, check=True)
    assert "arms: 0 of" in left.stdout
    assert "audits: 0 of" in left.stdout
