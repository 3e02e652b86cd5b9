"""The pages of algorithms: each algorithm has one place for its parameters, and every spec on a page can be run."""

import re

import pytest
from documentation import ROOT, blocks

from bandana.algorithms.catalog import CATALOG, names
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import load_spec

PAGES = sorted((ROOT / "docs" / "algorithms").glob("*.md"))
SPECS = [
    pytest.param(block.body, id=f"{path.stem}-{number}")
    for path in PAGES
    for number, block in enumerate(block for block in blocks(path.read_text("utf-8")) if block.language == "yaml")
]


@pytest.fixture
def tables(monkeypatch):
    """What fills in the tables of parameters while the site is built."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    import algorithm_parameters

    return algorithm_parameters


def test_each_algorithm_has_one_place_for_its_parameters(tables):
    places = [name for path in PAGES for name in tables.PLACE.findall(path.read_text("utf-8"))]
    assert sorted(places) == sorted({entry.name for entry in CATALOG})


def test_a_table_lists_each_parameter_with_its_declaration(tables):
    for entry in CATALOG:
        shown = tables.table(entry.name)
        for name, parameter in entry.parameters.items():
            (row,) = [line for line in shown.splitlines() if line.startswith(f"| `{name}` |")]
            assert parameter.meaning in row
            assert parameter.shown_default in row
            assert all(f"`{option}`" in row for option in parameter.options)
    assert tables.table("gp-ucb").count("only)") == 1, "the joint form alone has readings"
    assert "<!--" not in tables.filled("<!-- parameters: ucb -->\n")
    with pytest.raises(ValueError, match="'ucbb', which is not in the catalog"):
        tables.filled("<!-- parameters: ucbb -->")


def test_a_page_lists_a_parameter_of_several_algorithms_once(tables):
    page = (ROOT / "docs" / "algorithms" / "contextual.md").read_text("utf-8")
    filled = tables.filled(page)
    for name in tables.PLACE.findall(page):
        section = filled.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        for line in tables.table(name).splitlines()[2:]:
            assert filled.count(f"\n{line}\n") == 1, line
            assert f"{line.split('|')[1].strip()}" in section
    assert filled.count("\n## Shared parameters\n") == 1


def test_the_list_of_algorithms_is_the_catalog_and_leads_to_their_headings(tables):
    (row,) = [line for line in tables.algorithms().splitlines() if line.startswith("| `linucb` |")]
    assert (
        row == "| `linucb` | contextual | joint or local, approximate | [Contextual linear bandits](contextual.md#linucb) |"
    )
    listed = re.findall(r"^\| `([\w-]+)` .*\((\S+)#([\w-]+)\) \|$", tables.algorithms(), re.MULTILINE)
    assert [name for name, _, _ in listed] == names()
    for name, page, anchor in listed:
        assert anchor == name
        assert f"\n## {name}\n" in (ROOT / "docs" / "algorithms" / page).read_text("utf-8")
    text = (ROOT / "docs" / "algorithms" / "index.md").read_text("utf-8")
    assert tables.algorithms() in tables.filled(text)
    assert all(f"`{kind}`" in text for entry in CATALOG for kind in entry.plays_on)


@pytest.mark.parametrize("text", SPECS)
def test_every_spec_of_a_page_is_correct(text, tmp_path):
    path = tmp_path / "start.yaml"
    path.write_text(text, encoding="utf-8")
    spec = load_spec(path)
    for environment in environments_of(spec):
        environment.check()
    assert len(cells_of(spec)) >= 2


def test_the_specs_name_every_private_algorithm(tmp_path):
    path, named = tmp_path / "start.yaml", set()
    for parameter in SPECS:
        path.write_text(parameter.values[0], encoding="utf-8")
        named |= {cell.entry.name for cell in cells_of(load_spec(path))}
    assert {entry.name for entry in CATALOG if entry.privacy_model != "none"} <= named
