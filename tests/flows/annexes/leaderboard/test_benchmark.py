"""The shipped benchmark: its version is that of its problems, all kinds and real data are in it, and every entry plays."""

import re
from pathlib import Path

import pytest

from bandana.algorithms import catalog
from bandana.flows.annexes.leaderboard.benchmark_folder import audited, read
from bandana.flows.cells.audits import check_audits
from bandana.flows.plan.plan import cells_of

FOLDER = Path(__file__).parents[4] / "experiments" / "benchmark"
KINDS = {"finite", "linear", "contextual", "kernel", "pooled", "linear-mixture", "linear-mdp"}


@pytest.fixture(scope="module")
def quick():
    return read(FOLDER, is_quick=True)


def test_the_version_is_that_of_the_problems(quick):
    """Whoever changes a problem raises the version, and writes the hashes anew with `version_file.written_version`."""
    assert [problem.name for problem in quick.problems if problem.is_changed] == []
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {problem.name for problem in quick.problems}


def test_it_has_all_kinds_and_real_data(quick):
    assert len(quick.problems) >= 14
    assert {problem.kind for problem in quick.problems} >= KINDS
    assert sum(problem.spec.environment[0].whose_data == "public" for problem in quick.problems) >= 4
    assert quick.levels == [0.25, 1, 4]


def test_problems_are_named_like_their_files_and_can_be_audited(quick):
    for problem in quick.problems:
        assert problem.spec.name == f"benchmark-{problem.name}-quick"
        assert problem.spec.description
        cells = cells_of(audited(problem, set(), is_quick=True))
        check_audits(cells)
        assert any(cell.is_private for cell in cells)


@pytest.mark.nightly
def test_every_private_entry_of_these_kinds_has_a_row(quick):
    kinds = {kind for problem in quick.problems for kind in problem.spec.environment[0].played_as}
    playing = {cell.entry.label for problem in quick.problems for cell in cells_of(problem.spec)}
    expected = {entry.label for entry in catalog.CATALOG if entry.is_private and kinds & set(entry.plays_on)}
    assert expected - playing == set()


def test_the_winners_of_the_docs_are_those_of_this_version(quick):
    """Whoever raises the version plays the whole form anew, and writes the table with `docs/leaderboard_table.py`."""
    page = (FOLDER.parents[1] / "docs" / "leaderboard.md").read_text(encoding="utf-8")
    table = page.split("<!-- winners -->")[1].split("<!-- end -->")[0]
    assert f"Version {quick.version}: {len(quick.problems)} problems," in table
    assert list(dict.fromkeys(re.findall(r"^\| `([\w-]+)`", table, re.MULTILINE))) == [each.name for each in quick.problems]
    known = {entry.label.replace(f" {entry.privacy_model}", "") for entry in catalog.known()}
    winners = re.findall(r"\| ([a-z][\w -]*?) [\d.,]+(?: \(µ = [\d.]+\))?(?: \+\d+/\d+)?(?= \|)", table)
    assert winners
    assert {winner.removesuffix(" printed") for winner in winners} <= known
