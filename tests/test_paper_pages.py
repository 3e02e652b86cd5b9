"""The pages of papers: no numbered item is missing, and all code, tests, specs and faults that they name exist.

Links and commands of these pages are tested with those of all pages, in `test_docs.py`.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from documentation import ROOT, blocks, words
from typer.testing import CliRunner

from bandana.audits.faults.catalog import CONTROLS
from bandana.flows.cli import app
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import load_spec

FOLDER = ROOT / "docs" / "papers"
HEADER = ["item", "what it states", "implemented in", "tested in", "shown in", "note"]
STATUSES = ("setting", "holds", "differs", "false", "proof", "not here")
EMPTY = "–"


def _span(kind, first, last):
    return {f"{kind} {number}" for number in range(first, last + 1)}


ITEMS = {
    "azize-basu": {"Example 1", "Definition 1", "Theorem 2", "Table 1", "Definition 3", "Theorem 4", "Theorem 5"}
    | {"Corollary 6", "Theorem 7", "Theorem 8", "Theorem 9", "Theorem 10", "Lemma 11", "Lemma 12", "Definition 13"}
    | {"Theorem 14", "Theorem 15", "Corollary 16", "Theorem 17", "Lemma 18", "Lemma 19", "Definition 20"}
    | _span("Algorithm", 1, 4) | _span("Assumption", 1, 2) | _span("Remark", 1, 4) | _span("Lemma", 21, 28),
    "dubey": _span("Definition", 1, 7) | _span("Assumption", 1, 1) | _span("Lemma", 1, 13) | _span("Theorem", 1, 5)
    | _span("Corollary", 1, 4) | _span("Remark", 1, 7) | _span("Algorithm", 1, 3) | _span("Figure", 1, 2)
    | _span("Table", 1, 1),
    "luyo": _span("Assumption", 1, 2) | _span("Definition", 3, 4) | {"Table 1", "Theorem 7", "Theorem 8", "Theorem 9"}
    | _span("Corollary", 5, 6) | _span("Corollary", 10, 11) | _span("Remark", 1, 8) | _span("Lemma", 12, 25)
    | _span("Claim", 26, 32) | _span("Algorithm", 1, 3),
    "pavlovic": {"Theorem 2.1", "Definition 2.2", "Lemma 3.1", "Theorem 4.1", "Theorem 6.7", "Claim 6.8", "Lemma 7.1"}
    | {f"Assumption 2.{i}" for i in (3, 4, 5)} | {f"Definition 2.{i}" for i in (6, 7, 8)}
    | {f"Lemma 6.{i}" for i in range(1, 7)} | {"Algorithm 1"},
}  # fmt: skip
"""Every numbered item of each paper, from its text; figures, tables and items of the appendices included."""


class Row(NamedTuple):
    """A row of a page's tables."""

    item: str
    statement: str
    code: str
    tests: str
    shown: str
    note: str


def _text(stem):
    return (FOLDER / f"{stem}.md").read_text(encoding="utf-8")


def _items(stem):
    """A page up to the numbers that we measured."""
    return _text(stem).partition("\n## Our numbers\n")[0]


def _cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _tables(text):
    """The header and the rows of each table."""
    for found in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = found.splitlines()
        yield _cells(header), [_cells(row) for row in rows]


def rows(stem):
    """The rows of a paper's page."""
    return [Row(*cells) for header, found in _tables(_text(stem)) if header == HEADER for cells in found]


PLURALS = {"Corollaries": "Corollary"}
KINDS = "Example|Definition|Assumption|Theorem|Lemma|Claim|Remark|Algorithm|Figure|Table|Corollary"


def named(item):
    """The numbered items that a row is about: "Lemmas 12 to 17" are six."""
    found, item = set(), re.sub(r" of (?:Theorem|Corollary) [\d.]+", "", item)
    for kind, numbers in re.findall(rf"\b({KINDS}|Corollaries)s? ([\d.]+(?:(?:, | and | to )[\d.]+)*)", item):
        kind = PLURALS.get(kind, kind)
        for first, last in re.findall(r"([\d.]+)(?: to ([\d.]+))?", numbers):
            *section, low = first.rstrip(".").split(".")
            high = last.rstrip(".").split(".")[-1] or low
            found |= {f"{kind} {'.'.join([*section, str(n)])}" for n in range(int(low), int(high) + 1)}
    return found


@cache
def _names(path):
    """All names in a file: of its top level, and of classes with what they define."""

    def of(body, prefix=""):
        for node in body:
            match node:
                case ast.FunctionDef(name=name):
                    yield prefix + name
                case ast.ClassDef(name=name, body=inner):
                    yield prefix + name
                    yield from of(inner, f"{prefix}{name}.")
                case ast.Assign(targets=targets):
                    for target in targets:
                        yield from (prefix + n.id for n in ast.walk(target) if isinstance(n, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    yield prefix + name

    return set(of(ast.parse(path.read_text(encoding="utf-8")).body))


@cache
def _test_files():
    found = {}
    for path in (ROOT / "tests").rglob("test_*.py"):
        found.setdefault(path.name, []).append(path)
    return found


def missing(name):
    """What is wrong with a name in code, `path::name` or `test_file.py::test`; None if nothing is."""
    file, *parts = name.split("::")
    if file.startswith("test_"):
        paths = _test_files().get(file, [])
        if len(paths) != 1:
            return f"{file} is {len(paths)} files"
        path = paths[0]
    else:
        path = ROOT / file
        if len(parts) != 1 or not path.is_file():
            return f"{file} is no file, or not followed by one name"
    return None if ".".join(parts) in _names(path) else f"{file} defines no {'::'.join(parts)}"


def _spans(text):
    return re.findall(r"`([^`\n]+)`", text)


@pytest.mark.parametrize("stem", sorted(ITEMS))
def test_every_numbered_item_of_a_paper_is_on_its_page(stem):
    listed = set().union(*(named(row.item) for row in rows(stem)))
    assert ITEMS[stem] - listed == set()
    assert listed - ITEMS[stem] == set(), "no such item in the paper"


@pytest.mark.parametrize("stem", sorted(ITEMS))
def test_every_name_on_a_page_exists(stem):
    found = [span for span in _spans(_text(stem)) if "::" in span]
    assert len(found) > 30
    assert {name: missing(name) for name in found if missing(name)} == {}


@pytest.mark.parametrize("stem", sorted(ITEMS))
def test_rows_are_complete_and_columns_hold_what_they_say(stem):
    assert {tuple(header) for header, _ in _tables(_items(stem))} == {tuple(HEADER)}
    for row in rows(stem):
        found = re.match(r"\*\*([a-z ]+)\*\*", row.note)
        assert found, f"{row.item}: the note has no status"
        assert found[1] in STATUSES, row.item
        assert all(row), row.item
        for cell, is_test in ((row.code, False), (row.tests, True)):
            assert cell == EMPTY or all("::" in span and span.startswith("test_") == is_test for span in _spans(cell)), (
                f"{row.item}: {cell}"
            )
        if found[1] in ("holds", "differs"):
            assert row.code != EMPTY or row.tests != EMPTY, f"{row.item}: nothing is named"


@pytest.mark.parametrize("stem", sorted(ITEMS))
def test_every_spec_and_planted_fault_on_a_page_exists(stem):
    text = _text(stem)
    for name in re.findall(r"experiments/[\w.-]+\.yaml", text):
        assert (ROOT / name).is_file(), name
    faults = {fault.name for planted in CONTROLS.values() for fault in planted}
    for found in re.findall(r"planted faults? (`[\w-]+`(?:, `[\w-]+`)*)", text):
        assert set(_spans(found)) <= faults, found


@pytest.mark.parametrize("stem", sorted(ITEMS))
def test_specs_on_a_page_are_correct(stem, tmp_path):
    for block in blocks(_text(stem)):
        if block.language == "yaml":
            (tmp_path / "spec.yaml").write_text(block.body, encoding="utf-8")
            assert cells_of(load_spec(tmp_path / "spec.yaml"))


def test_the_index_lists_every_page_and_all_that_is_false():
    text = _text("index")
    assert set(re.findall(r"\]\((\w[\w-]*)\.md\)", text)) == set(ITEMS) == {p.stem for p in FOLDER.glob("*.md")} - {"index"}
    (listed,) = [found for header, found in _tables(text) if header == ["paper", "item", "reason"]]
    shown = {(re.search(r"\]\(([\w-]+)\.md\)", paper)[1], item) for paper, item, _ in listed}
    assert shown == {(stem, row.item) for stem in ITEMS for row in rows(stem) if row.note.startswith("**false**")}
    assert all(f"| **{status}** |" in text for status in STATUSES)


def test_items_are_counted():
    assert named("Lemmas 6.2 to 6.4") == {"Lemma 6.2", "Lemma 6.3", "Lemma 6.4"}
    assert named("Definition 20, Lemmas 21 and 22") == {"Definition 20", "Lemma 21", "Lemma 22"}
    assert named("Corollaries 5 and 6, regret") == {"Corollary 5", "Corollary 6"}
    assert named("Discussion 2 of Theorem 8") == set()
    assert named("Eq. (4)") == set()


def test_what_does_not_exist_is_noticed():
    here = Path(__file__).name
    assert missing(f"{here}::test_items_are_counted") is None
    assert missing("algorithms/rkhs/pool.py::Pool.drawn") is None
    assert missing("algorithms/papers/dubey.py::joint_reward_bound") is None
    assert "defines no" in missing(f"{here}::test_that_is_not_here")
    assert "defines no" in missing("privacy_core/tree.py::TreeSum.nothing")
    assert "is no file" in missing("privacy_core/trees.py::TreeSum")
    assert "0 files" in missing("test_nothing.py::test_a")


FALSE = [
    pytest.param(command, id=command.removeprefix("bandana calibrate "))
    for stem in sorted(ITEMS)
    for row in rows(stem)
    if row.note.startswith("**false**")
    for command in _spans(row.shown)
    if re.match(r"bandana calibrate .*--(reading|no-clip)", command)
]
"""Commands beside a privacy claim that is false as printed."""


@pytest.mark.parametrize("command", FALSE)
def test_a_command_beside_a_false_claim_finds_it_false(command):
    done = CliRunner().invoke(app, words(command)[1:])
    assert done.exit_code == 0, done.output
    assert "The claim is FALSE" in " ".join(done.output.split())
