"""Pages that are written while the site is built: Python API, choice of an algorithm, ready specs; and pictures."""

import importlib
import re

import pytest
from documentation import ROOT, listed_only
from mkdocs.config import load_config
from mkdocs.structure.files import get_files

import bandana
import bandana.primitives
import bandana.privacy_core
import bandana.testing
from bandana.algorithms.catalog import CATALOG
from bandana.flows.plan.plan import Plan
from bandana.flows.spec.spec import load_spec

DOCS = ROOT / "docs"
KINDS = dict.fromkeys(kind for entry in CATALOG for kind in entry.plays_on)
ROW = re.compile(
    r"^\| (?P<protects>[^|]*) \| (?P<budget>[^|]*) \| (?P<links>[^|]*) \| (?P<use>[^|]*) \| (?P<specs>[^|]*) \|$", re.M
)
LINK = re.compile(r"\[`?([^\]`]*)`?\]\(([^)#]*)#([^)]*)\)")


@pytest.fixture(scope="module")
def hooks():
    """What writes the pages."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS / "hooks"))
        yield importlib.import_module


@pytest.fixture(scope="module")
def figures():
    """What draws the pictures."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        yield importlib.import_module


# --- what is published ---------------------------------------------------------------------------------------------------


def test_no_code_of_the_documentation_is_published():
    """Nothing of docs/ is; that no hook adds any is seen on the built site at night."""
    published = [file.src_uri for file in get_files(load_config(str(ROOT / "mkdocs.yml"))) if file.inclusion.is_included()]
    assert "index.md" in published
    assert [name for name in published if name.endswith((".py", ".pyc")) or "__pycache__" in name] == []


# --- the Python API by use -----------------------------------------------------------------------------------------------


def test_what_users_import_is_on_a_page_by_use(hooks):
    doors, api = hooks("api_doors").DOORS, hooks("python_api")
    listed = {name.rpartition(".")[2] for door in doors for part in door.parts for name in api.listed(ROOT, part)}
    public = {*bandana.__all__, *bandana.testing.__all__, *bandana.primitives.__all__} - {"__version__", "private"}
    assert public <= listed
    # Parts that only other parts of the core use, which their own modules describe.
    inner = {"EQUAL", "GOE", "Guarantee", "Event"}
    assert set(bandana.privacy_core.__all__) - listed <= inner


def test_every_name_on_a_page_by_use_exists_and_is_explained(hooks):
    api = hooks("python_api")
    for door in hooks("api_doors").DOORS:
        for part in door.parts:
            names = api.listed(ROOT, part)
            assert names
            assert len(set(names)) == len(names)
            for name in names:
                module, _, short = name.rpartition(".")
                assert hasattr(importlib.import_module(module), short), name
                assert api._public(ROOT, module)[short], f"{name} has no docstring to show"
    part = hooks("api_doors").Part("x", "", ("bandana.privacy_core.noise.sources: Nose",))
    with pytest.raises(LookupError, match=r"bandana\.privacy_core\.noise\.sources has no 'Nose'"):
        api.listed(ROOT, part)
    with pytest.raises(LookupError, match=r"no module bandana\.privacy_core\.nose"):
        api.listed(ROOT, part._replace(sources=("bandana.privacy_core.nose",)))


def test_the_menu_has_few_pages(hooks):
    api = hooks("python_api")
    menu, written = api.navigation(), api.pages(ROOT)
    assert len(menu) <= 4
    assert {place for item in menu for place in item.values()} == set(written)


def test_a_first_sentence_is_found(hooks):
    sentence = hooks("python_api")._sentence
    assert sentence("One. Two.") == "One"
    assert sentence("Of first, second, ... and more.\n\nThe rest.") == "Of first, second, ... and more"
    assert sentence("What a | b is:") == "What a \\| b is"
    assert sentence(None) == ""


# --- which algorithm for my problem --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def choice(hooks):
    """The page with its tables."""
    text = (DOCS / "algorithms" / "choose.md").read_text(encoding="utf-8")
    with listed_only():
        filled = hooks("choice").filled(text)
    assert "<!-- choose" not in filled
    return filled


def test_each_entry_of_the_catalog_is_on_the_page_of_choice(choice):
    shown = {label for row in ROW.finditer(choice) for label, _, _ in LINK.findall(row["links"])}
    assert shown == {entry.label for entry in CATALOG}


def test_each_line_of_choice_leads_to_a_description_and_to_a_spec_that_plays_it(choice, hooks):
    played = {}
    n_lines = 0
    for row in ROW.finditer(choice):
        entries = LINK.findall(row["links"])
        if not entries:
            continue
        n_lines += 1
        for label, page, anchor in entries:
            assert f"\n## {anchor}\n" in (DOCS / "algorithms" / page).read_text(encoding="utf-8"), label
            (entry,) = [entry for entry in CATALOG if entry.label == label]
            assert row["protects"] == hooks("choice").PROTECTED[entry.privacy_model]
            assert (entry.guarantee is None) == (row["budget"] == "none")
        specs = [name for name, _, _ in LINK.findall(row["specs"])]
        for name in specs:
            if name not in played:
                with listed_only():
                    played[name] = {cell.entry.label for cell in Plan.of(load_spec(ROOT / "experiments" / name)).played}
        assert {label for label, _, _ in entries} <= set().union(*(played[name] for name in specs))
        assert 10 < len(row["use"]) < 200
        assert "](" not in row["use"]
    assert n_lines > len({entry.name for entry in CATALOG})


def test_each_kind_of_problem_has_a_table(hooks):
    text = (DOCS / "algorithms" / "choose.md").read_text(encoding="utf-8")
    assert {*KINDS, "best-arm"} == set(hooks("choice").TABLE.findall(text))
    with pytest.raises(ValueError, match="algorithms on 'arms', for which the catalog has none"):
        hooks("choice").table("arms")


def test_the_page_of_specs_shows_every_spec(hooks):
    text = hooks("ready_specs").markdown()
    headings = re.findall(r"^## \S+ \{#([\w-]+)\}$", text, re.M)
    folder = ROOT / "experiments"
    assert sorted(headings) == sorted(
        str(path.relative_to(folder))[:-5].replace("/", "-") for path in folder.rglob("*.yaml")
    )
    assert (folder / "smoke.yaml").read_text(encoding="utf-8") in text


# --- pictures ------------------------------------------------------------------------------------------------------------


def test_each_page_of_algorithms_shows_a_picture_and_the_commands_that_made_it(figures):
    script = figures("algorithm_figures")
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "algorithms").glob("*.md")}
    families = {name for name, text in pages.items() if "\n<!-- parameters: " in text}
    assert {*script.PROBLEMS, script.TEST} < families
    assert {problem for problem, _ in script.PROBLEMS.values()} <= {
        path.stem for path in (ROOT / "experiments/benchmark").glob("*.yaml")
    }
    for name in families:
        head = pages[name].partition("\n## ")[0]
        (picture,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", head)
        assert ("/algorithms/" in picture) == (name in script.PROBLEMS or name == script.TEST)
        file = DOCS / "algorithms" / picture
        assert 10_000 < file.stat().st_size < 60_000, file
        drawn = re.search(r"`python (docs/\w+\.py) bandana_data`", head)
        assert drawn is not None
        assert (ROOT / drawn[1]).is_file()
        measured = re.search(r"`bandana (?:leaderboard --quick|run\s+(experiments/[\w-]+\.yaml))`", head)
        assert measured is not None
        assert measured[1] is None or (ROOT / measured[1]).is_file()
    assert {path.stem for path in (DOCS / "images" / "algorithms").iterdir()} == {*script.PROBLEMS, script.TEST}


def _row(algorithm, model, role, mean=5.0, mu=None, **more):
    row = {"label": f"{algorithm} {mu}", "algorithm": algorithm, "entry": algorithm, "privacy_model": model, "role": role}
    row |= {
        "calibration": "tight" if role == "private" else None,
        "mu_claimed": mu,
        "mean": mean,
        "low": mean - 1,
        "high": mean + 1,
    }
    return row | {"lower_bound": None, "is_on_front": False, "is_own": False} | more


def test_a_picture_shows_the_algorithms_of_its_page(figures):
    script = figures("algorithm_figures")
    rows = [_row("lsvi-ucb", "joint", "private", 10.0 / mu, mu) for mu in (0.25, 1.0, 4.0)]
    rows += [_row("lsvi-ucb", "none", "non-private"), _row("ucb-vi", "joint", "private", mu=1.0)]
    rows += [
        _row("lsvi-ucb", "joint", "private", mu=1.0, is_own=True),
        _row("uniform", "none", "reference", label="uniform play"),
    ]
    rows += [_row("greedy", "none", "reference", label="greedy"), _row("lsvi-ucb", "none", "non-private", 6.0)]
    shown = script.rows_of("lsvi-ucb", {"rows": rows})
    assert shown == [*rows[:4], rows[6]]
    drawing = script.trade("lsvi-ucb", {"rows": rows})
    assert drawing.startswith("<svg")
    assert drawing == script.trade("lsvi-ucb", {"rows": rows})


def test_a_smaller_drawing_shows_the_same(figures):
    slim = figures("slim").slim
    text = (
        '<svg>\n <!-- a -->\n <path id="DejaVuSans-1" d="M 1.23456 -0.04321 \nL 10.98765 2 \n" '
        'transform="scale(0.015625)"/>\n'
        ' <use xlink:href="#DejaVuSans-1" transform="translate(7.14159 3) scale(0.085 -0.085)"/>\n</svg>\n'
    )
    small = slim(text)
    assert small == (
        '<svg>\n<path id="g0" d="M 1.2 -0L10.9 2\n" transform="scale(0.015625)"/>\n'
        '<use xlink:href="#g0" transform="translate(7.1 3) scale(0.085 -0.085)"/>\n</svg>\n'
    ).replace("10.9", "11")
    assert slim(small) == small


def test_the_first_page_shows_the_three_numbers_of_a_report(figures):
    audit = {"epsilon": {"claimed": 2.0, "accounted": 1.99999, "measured": 1.23456}}
    page = (DOCS / "index.md").read_text(encoding="utf-8")
    filled = figures("first_page").filled(page, audit)
    assert re.findall(r'<b class="(\w+)">(.*?)</b>', filled) == [
        ("claimed", "2"),
        ("accounted", "2"),
        ("measured", "≥ 1.235"),
    ]
    shown = dict(re.findall(r'<b class="(\w+)">(?:≥ )?([\d.]+)</b>', page))
    assert float(shown["claimed"]) >= float(shown["accounted"]) >= float(shown["measured"]) > 0
    assert (DOCS / "images" / "first-page.svg").stat().st_size < 60_000
