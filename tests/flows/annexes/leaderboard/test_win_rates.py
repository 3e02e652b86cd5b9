"""Win rates over many problems: two tiny ones by hand, from files of several environments to the page."""

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from version_file import written_version

from bandana.algorithms import catalog
from bandana.algorithms.environments.classification import TABLES
from bandana.audits.reporting import render_html, validate
from bandana.flows.annexes.leaderboard import assemble, plots, win_rate_sections
from bandana.flows.annexes.leaderboard.benchmark_folder import digest, read
from bandana.flows.annexes.leaderboard.win_rates import duels, has_learned
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.problems.environment import CONSTANT, UNIFORM
from bandana.flows.running.side_by_side import Workers
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import SpecError

ROOT = Path(__file__).parents[4]
FIRST = {
    "a": np.array([1.0, 2.0, 3.0]),
    "b": np.array([2.0, 3.0, 4.5]),
    UNIFORM: np.full(3, 6.0),
    CONSTANT: np.full(3, 5.0),
}
SECOND = {"a": np.full(3, 3.0), "b": np.full(3, 3.0), UNIFORM: np.full(3, 3.0), CONSTANT: np.full(3, 2.0)}


def test_the_matrix_of_two_problems_by_hand():
    """a beats b on the first problem, by t = -7 at two degrees of freedom (p = 0.0099), and ties on the second.

    Of n = 2, Clopper and Pearson's ends are 1 - sqrt(0.975) = 0.0126 for one win and 1 for two, 0 for none and
    sqrt(0.975) = 0.9874 for one.
    """
    known = {(duel["first"], duel["second"]): duel for duel in duels([FIRST, SECOND])}
    assert set(known) == {
        ("a", "b"), ("b", "a"), ("a", UNIFORM), (UNIFORM, "a"), ("a", CONSTANT), (CONSTANT, "a"), ("b", UNIFORM),
        (UNIFORM, "b"), ("b", CONSTANT), (CONSTANT, "b"),
    }  # fmt: skip
    whole = {"problems": 2, "share": 0.75, "low": pytest.approx(1 - 0.975**0.5), "high": 1.0}
    assert known["a", "b"] == {"first": "a", "second": "b", "wins": 1, "ties": 1, "shown": 1, **whole}
    back = {"problems": 2, "share": 0.25, "low": 0.0, "high": pytest.approx(0.975**0.5)}
    assert known["b", "a"] == {"first": "b", "second": "a", "wins": 0, "ties": 1, "shown": 0, **back}
    # The constant action is worse on the first problem, and better on the second without any spread.
    assert [known["a", CONSTANT][name] for name in ("wins", "ties", "shown")] == [1, 0, 1]
    assert [known[CONSTANT, "a"][name] for name in ("wins", "ties", "shown")] == [1, 0, 1]


def test_a_pair_is_compared_where_both_play():
    (duel, _) = [each for each in duels([FIRST, {"a": SECOND["a"]}]) if {each["first"], each["second"]} == {"a", "b"}]
    assert (duel["problems"], duel["wins"], duel["share"]) == (1, 1, 1.0)
    apart = duels([{"a": FIRST["a"]}, {"b": FIRST["b"]}])
    assert [(each["problems"], each["share"], each["low"]) for each in apart] == [(0, None, None)] * 2


def test_learning_by_hand():
    """Two entries, so 2.5 % a test: a beats 5 by t = -5.2 (p = 0.0175), but 4 by t = -3.5 only (p = 0.037)."""
    assert has_learned(FIRST)
    assert not has_learned(FIRST | {CONSTANT: np.full(3, 4.0)})
    assert not has_learned(SECOND)
    assert not has_learned({UNIFORM: FIRST[UNIFORM], CONSTANT: FIRST[CONSTANT]})


TREE = {
    "name": "pair",
    "title": "A pair",
    "description": "Arms that differ",
    "seed": 5,
    "environment": [
        {"kind": "bernoulli", "means": [0.95, 0.05], "label": "far"},
        {"kind": "bernoulli", "means": [0.5, 0.5], "label": "equal"},
    ],
    "horizon": 300,
    "replications": 4,
    "block_size": 4,
    "twins": False,
    "algorithms": [
        {"all": "non-private"},
        {"all": "private", "mu": [2], "model": "central", "calibrations": "tight"},
    ],
    "audit": {"rounds": 16, "replays": 2000, "examples": 10},
}


def make(folder, **changes):
    tree = copy.deepcopy(TREE) | changes
    for item in tree["algorithms"]:
        playing = {entry.name for entry in catalog.known() if "finite" in entry.plays_on}
        item["leave_out"] = sorted(playing - {"ucb", "adar-ucb", "adap-ucb"})
    folder.mkdir(exist_ok=True)
    (folder / "arms.yaml").write_text(yaml.safe_dump(tree, sort_keys=False))
    (folder / "version.json").write_text(written_version(folder, "Pairs", 1))
    return folder


def test_a_file_of_several_environments_is_as_many_problems(tmp_path):
    folder = make(tmp_path / "pairs")
    board = read(folder)
    assert [(each.name, each.file, each.is_changed) for each in board.problems] == [
        ("arms-far", "arms", False), ("arms-equal", "arms", False),
    ]  # fmt: skip
    assert [each.spec.name for each in board.problems] == ["pair-far", "pair-equal"]
    assert [each.spec.environment[0].label for each in board.problems] == ["far", "equal"]
    assert [each.name for each in read(folder, only=["arms-equal"]).problems] == ["arms-equal"]
    assert len(read(folder, only=["arms"]).problems) == 2
    with pytest.raises(SpecError, match="there is no problem 'finite'"):
        read(folder, only=["finite"])
    mixed = [TREE["environment"][0], {"kind": "linear", "arms": 3, "dimension": 2}]
    with pytest.raises(SpecError, match="all are of one kind of problem in a benchmark, got finite, linear"):
        read(make(tmp_path / "mixed", environment=mixed))


def test_the_page_has_the_matrix_of_finished_problems(tmp_path):
    folder = DataFolder.open(tmp_path)
    board = read(make(tmp_path / "pairs"))
    with Workers(1) as pool:
        steps.benchmark([board.problems[0].plan], folder, pool)
        half = assemble.assemble(board, Store(folder.results), "bandana leaderboard pairs")
        steps.benchmark([board.problems[1].plan], folder, pool)
    validate(half)
    assert {(rates["finished"], rates["problems"]) for rates in half["win_rates"]} == {(1, 2)}
    document = assemble.assemble(board, Store(folder.results), "bandana leaderboard pairs")
    validate(json.loads(json.dumps(document)))
    rates = {(each["privacy_model"], each["mu"]): each for each in document["win_rates"]}
    assert list(rates) == [("none", None), ("central", 2.0)]
    # Arms that are equal teach nothing, and every regret is 0 there: all pairs tie.
    for each in rates.values():
        assert each["learned"] == 1
        for duel in each["duels"]:
            assert duel["problems"] == 2
            assert duel["ties"] >= 1
            if duel["second"] == UNIFORM and duel["first"] != CONSTANT:
                assert (duel["wins"], duel["ties"], duel["shown"], duel["share"]) == (1, 1, 1, 0.75)
    html = render_html(document)
    assert "Win rates over all problems of arms" in html
    assert "2 of 2 problems are finished" in html
    assert "75 % (1 to 100)" in html


def test_the_picture_has_every_pair():
    text = plots.win_matrix(duels([FIRST, SECOND]))
    assert text.startswith("<svg")
    assert plots.win_matrix(duels([FIRST, FIRST])) != text


def test_a_share_without_problems_is_a_dash():
    (duel, *_) = duels([{"a": FIRST["a"]}, {"b": FIRST["b"]}])
    assert win_rate_sections.share_of(duel) == "–"


def test_the_shipped_folder_has_every_table_and_its_page_is_of_this_version():
    """Whoever raises the version plays the folder anew, and writes the page with `docs/real_tables.py`."""
    folder = ROOT / "experiments" / "real-tables"
    version = json.loads((folder / "version.json").read_text(encoding="utf-8"))
    tree = yaml.safe_load((folder / "tables.yaml").read_text(encoding="utf-8"))
    assert version["problems"] == {"tables": digest(tree)}
    assert {item["table"] for item in tree["environment"]} == set(TABLES)
    page = (ROOT / "docs" / "real-tables.md").read_text(encoding="utf-8")
    assert f"of {len(TABLES)} tables, " in page
    assert f"version {version['version']} of the folder" in page
    assert all(f"`{name}` (" in page for name in TABLES)
