"""The documentation: it builds, loads nothing from elsewhere, leads nowhere that is not, and shows what really happens."""

import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from documentation import (
    ROOT,
    Built,
    anchors,
    blocks,
    command_lines,
    console,
    is_as_shown,
    links,
    marked_pages,
    pages,
    types_a_page,
    words,
)
from typer.main import get_command
from typer.testing import CliRunner

from bandana.audits.documents.form import json_schema
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.sums import CONTROLS_OF_SUMS
from bandana.flows.cli import app
from bandana.flows.commands.lookup import kinds
from bandana.flows.plan.plan import cells_of
from bandana.flows.problems.kinds import environments_of
from bandana.flows.spec.spec import Spec, load_spec
from benchmarks import docs as counts
from benchmarks.installed import words_of_a_user

DOCS = ROOT / "docs"
SETTINGS = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
BESIDE_THE_SITE = {DOCS / line[1:] for line in SETTINGS["exclude_docs"].split() if line.endswith(".md")}
"""Pages that stay in the repository: records of decisions, mutations and reproductions."""
PUBLISHED = [path for path in DOCS.rglob("*.md") if path not in BESIDE_THE_SITE]
MARKED = marked_pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built as `make docs` builds it."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return [Built(path) for path in sorted(folder.rglob("*.html"))]


@pytest.fixture
def hooks(monkeypatch):
    """What writes the pages of the reference."""
    monkeypatch.syspath_prepend(str(DOCS / "hooks"))
    import command_line
    import formulas
    import pages as written
    import planted_faults
    import python_api
    import report_format
    import spec_fields

    modules = (command_line, formulas, written, planted_faults, python_api, report_format, spec_fields)
    return {module.__name__: module for module in modules}


def _is_elsewhere(address):
    return address.startswith("//") or urlsplit(address).scheme not in ("", "data")


# --- the site, built -----------------------------------------------------------------------------------------------------


@pytest.mark.nightly
def test_every_page_of_the_source_is_in_the_site(site):
    """In `make test`: the navigation lists every page."""
    places = {page.path.name for page in site}
    assert {path.with_suffix(".html").name for path in PUBLISHED} <= places
    assert not {path.with_suffix(".html").name for path in BESIDE_THE_SITE} & places


@pytest.mark.nightly
def test_the_site_is_as_small_as_its_goals(site):
    """In `make test`: the menu's pages."""
    folder = next(page.path.parent for page in site if page.path.name == "404.html")
    sizes = counts.site(folder)
    assert sizes.pages <= counts.MOST_PAGES
    assert sizes.words <= counts.MOST_WORDS


@pytest.mark.nightly
def test_pages_load_nothing_from_elsewhere(site):
    """In `make test`: nothing in the sources and the settings asks for it."""
    assert any(page.loads for page in site)
    for page in site:
        assert not [address for address in page.loads if _is_elsewhere(address)], page.path
        # Each of these makes the theme's script fetch something.
        assert 'class="mermaid"' not in page.text
        assert 'data-md-component="source"' not in page.text
    folder = site[0].path.parent
    sheets = list(folder.rglob("*.css"))
    assert sheets
    for sheet in sheets:
        asked = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s;]+)", sheet.read_text(encoding="utf-8"))
        assert not [address for address in asked if _is_elsewhere(address)], sheet


@pytest.mark.nightly
def test_every_link_of_the_site_leads_to_a_page_and_an_anchor(site):
    """In `make test`: the links of the sources."""
    by_path = {page.path.resolve(): page for page in site}
    n_checked = 0
    for page in site:
        if page.path.name == "404.html":
            continue  # its addresses start at the root of a server
        for address in [*page.links, *page.loads]:
            parts = urlsplit(address)
            if _is_elsewhere(address) or parts.scheme == "data":
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path.resolve()
            target = target / "index.html" if target.is_dir() else target
            assert target.exists(), f"{page.path.name} leads to {address}"
            if parts.fragment and target in by_path and parts.fragment != "__skip":
                assert unquote(parts.fragment) in by_path[target].anchors, f"{page.path.name} leads to {address}"
            n_checked += 1
    assert n_checked > 1000


@pytest.mark.nightly
def test_no_code_of_the_documentation_is_in_the_site(site):
    """In `make test`: nothing of docs/ that is published is code."""
    folder = next(page.path.parent for page in site if page.path.name == "404.html")
    assert (folder / "index.html").is_file()
    assert [path for path in folder.rglob("*") if path.suffix in (".py", ".pyc") or path.name == "__pycache__"] == []


@pytest.mark.nightly
def test_formulas_are_drawn_and_not_spelled_out(site):
    """In `make test`: one formula, as the site's own code draws it."""
    (page,) = [page for page in site if page.path.name == "privacy.html"]
    assert page.text.count("<math") > 50
    assert "arithmatex" not in page.text


# --- what it is built from ----------------------------------------------------------------------------------------------


def _leaves(tree):
    if isinstance(tree, str):
        yield tree
    else:
        for branch in tree.values() if isinstance(tree, dict) else tree:
            yield from _leaves(branch)


def test_the_navigation_lists_every_page():
    listed = [leaf for leaf in _leaves(SETTINGS["nav"]) if leaf.endswith(".md") and not leaf.startswith("reference/")]
    assert sorted(listed) == sorted(path.relative_to(DOCS).as_posix() for path in PUBLISHED)


def test_the_menu_has_no_more_pages_than_the_goal(hooks):
    assert len(PUBLISHED) + len(hooks["pages"].WRITERS) + len(hooks["python_api"].navigation()) <= counts.MOST_PAGES


def test_the_page_of_planted_faults_lists_what_the_code_plants(hooks):
    page = hooks["planted_faults"]
    text = page.markdown()
    assert all(f"\n## Of {name}\n" in text for name in CONTROLS)
    assert all(f"| `{fault.name}` | {fault.fault} |" in text for faults in CONTROLS.values() for fault in faults)
    planted = {(name, fault.name) for faults in (CONTROLS, CONTROLS_OF_SUMS, page.COSTLY) for name in faults
               for fault in faults[name]}  # fmt: skip
    assert set(page._PUBLIC.values()) <= planted


def test_every_page_of_the_reference_in_the_navigation_is_written(hooks):
    listed = {leaf for leaf in _leaves(SETTINGS["nav"]) if leaf.startswith("reference/")}
    assert listed == set(hooks["pages"].WRITERS)


def test_the_sources_ask_for_nothing_from_elsewhere():
    assert SETTINGS["theme"]["font"] is False
    assert not {"extra_javascript", "repo_url"} & set(SETTINGS)
    listed = [*SETTINGS["extra_css"], *SETTINGS["extra"]["polyfills"]]
    assert all((DOCS / file).is_file() for file in listed)
    for sheet in DOCS.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "@import" not in text, sheet
        assert all((sheet.parent / file).is_file() for file in re.findall(r"url\(['\"]?([^'\")]+)", text)), sheet
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        shown = re.findall(r"!\[[^\]]*\]\(([^)\s]+)", text) + re.findall(r"\b(?:src|srcset|poster)=[\"']?([^\"'\s>]+)", text)
        assert not [address for address in shown if _is_elsewhere(address)], path
        assert "```mermaid" not in text


# --- links of the source, which people also read where the code lies -------------------------------------------------


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_and_images_of_the_source_exist(path):
    for address in links(path.read_text(encoding="utf-8")):
        parts = urlsplit(address)
        if parts.scheme:
            assert parts.scheme == "https", address
            continue
        target = (path.parent / parts.path).resolve() if parts.path else path
        if target.is_relative_to(DOCS / "reference"):
            continue  # written while the site is built, whose own test looks at these
        assert target.exists(), f"{path.name} leads to {address}"
        assert target.is_relative_to(ROOT)
        if parts.fragment:
            assert parts.fragment in anchors(target.read_text(encoding="utf-8")), f"{path.name} leads to {address}"


def test_every_test_that_a_page_names_exists():
    named = {
        (page.name, name)
        for page in DOCS.rglob("*.md")
        for name in re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8"))
    }
    known = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(), re.M)
    }
    assert {(page, name) for page, name in named if name not in known} == set()
    assert sum(page == "security.md" for page, _ in named) > 30


def test_every_image_is_shown_somewhere():
    shown = {(path.parent / address).resolve() for path in pages() for address in links(path.read_text(encoding="utf-8"))}
    images = {path.resolve() for path in (DOCS / "images").glob("*.png")}
    assert images
    assert images <= shown, sorted(path.name for path in images - shown)


# --- commands --------------------------------------------------------------------------------------------------------


COMMAND = cache(lambda: get_command(app))
"""All commands, which typer makes in a tenth of a second."""


def _mistake(line):
    """What is wrong with a command line; None if nothing is."""
    command, given = COMMAND(), words(line)[1:]
    while given and hasattr(command, "commands"):
        if given[0].startswith("--") or given[0].isupper():
            break
        if given[0] not in command.commands:
            return f"no command {given[0]}"
        command = command.commands[given.pop(0)]
    options = {flag: option for option in command.params for flag in [*option.opts, *option.secondary_opts]}
    n_arguments = 0
    while given:
        word, _, value = given.pop(0).partition("=")
        if word == "--help":
            continue
        if word.startswith("-"):
            if word not in options:
                return f"no option {word}"
            if not options[word].is_flag and not value:
                del given[: options[word].nargs]
        else:
            n_arguments += 1
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    is_open = any(p.nargs == -1 for p in arguments) or hasattr(command, "commands")
    return "too many arguments" if n_arguments > len(arguments) and not is_open else None


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_line_that_is_shown_exists(path):
    for line in command_lines(path.read_text(encoding="utf-8")):
        mistake = _mistake(line)
        assert mistake is None, f"{path.name}: {line}: {mistake}"


def test_command_lines_are_found_and_wrong_ones_are_noticed():
    text = "See `bandana list --json`.\n\n```console\n$ bandana check a.yaml\na.yaml: correct\n```\n"
    assert command_lines(text) == ["bandana check a.yaml", "bandana list --json"]
    assert sum(len(command_lines(path.read_text(encoding="utf-8"))) for path in pages()) > 40
    assert _mistake("bandana verify a.npz --port 1") == "no option --port"
    assert _mistake("bandana chekc a.yaml") == "no command chekc"
    assert _mistake("bandana check a.yaml b.yaml") == "too many arguments"
    assert _mistake("bandana audit [SPEC] --workers 2 | tee log") is None


# --- blocks that are marked to be run ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MARKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_runs_can_be_run(path, tmp_path, monkeypatch):
    """Its Python and its commands can be parsed; its specs are correct, or are what the page says is wrong with them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "150")
    for folder in ("examples", "experiments"):
        Path(folder).symlink_to(ROOT / folder)
    n_commands, wrong = 0, set[str]()
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.mark.startswith("file: "):
            file = Path(block.mark.removeprefix("file: "))
            file.write_text(block.body, encoding="utf-8")
            if file.suffix == ".py":
                compile(block.body, file.name, "exec")
        if block.mark.startswith("run"):
            assert re.fullmatch(r"run(: exit \d)?", block.mark), block.mark
            commands = list(console(block.body))
            assert commands, f"a block that is to be run shows no command:\n{block.body}"
            subprocess.run(["bash", "-n"], input="\n".join(command for command, _ in commands), text=True, check=True)
            n_commands += len(commands)
            for command, shown in commands:
                if command.startswith("bandana check ") and not {"|", ">", ";", "&"} & set(command):
                    done = CliRunner().invoke(app, words(command)[1:])
                    assert done.exit_code == int(block.mark.partition("exit ")[2] or 0), done.output
                    assert is_as_shown(shown, done.output), f"{command} printed\n{done.output}\nand the page shows\n{shown}"
                    wrong |= {word for word in words(command) if done.exit_code}
    assert n_commands
    scripts = "".join(file.read_text(encoding="utf-8") for file in tmp_path.glob("*.py"))
    for file in tmp_path.glob("*.yaml"):
        if file.name in wrong:
            continue
        spec = load_spec(file)
        data = {f'"{item.path.name}"' for item in spec.environment if getattr(item, "path", None)}
        assert any(name in scripts for name in data) or cells_of(spec), "data is there, or a script of the page writes it"


@pytest.mark.nightly
@pytest.mark.parametrize("path", MARKED, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_shows_is_what_its_commands_print(path, tmp_path):
    """`<!-- file: NAME -->` before a block writes it, `<!-- run -->` runs it and compares; `...` stands for anything.

    In `make test`: commands are parsed, every option that a page names exists, and `bandana check` says what is shown.
    """
    for folder in ("examples", "experiments"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    types_a_page(path, tmp_path, words_of_a_user(Path(sys.executable)))


def test_marks_are_understood():
    text = "<!-- file: a.txt -->\n```text\none\n```\n\n<!-- run: exit 1 -->\n```console\n$ cat a.txt\none\n$ false\n```\n"
    assert [block.mark for block in blocks(text)] == ["file: a.txt", "run: exit 1"]
    assert list(console(blocks(text)[1].body)) == [("cat a.txt", "one\n"), ("false", "")]
    assert is_as_shown("took ... s\n", "took 1.5 s")
    assert not is_as_shown("took ... s\n", "took 1.5 min")


# --- the reference, which is written from the code -------------------------------------------------------------------------


def test_the_reference_names_every_command_with_every_option(hooks):
    text = hooks["command_line"].markdown()
    n_options = 0
    for name, command in hooks["command_line"].commands():
        (section,) = re.findall(rf"^## {name}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        for parameter in command.params:
            shown = parameter.opts if parameter.param_type_name == "option" else [hooks["command_line"].named(parameter)]
            assert all(f"`{flag}`" in section for flag in shown), f"{name}: {shown}"
            n_options += 1
    assert n_options > 40
    assert "## bandana audit\n" in text
    assert "Exit codes" in text


def test_the_reference_names_every_field_of_a_spec(hooks):
    text = hooks["spec_fields"].markdown()
    schema = Spec.model_json_schema()
    for name, model in [("Spec", schema), *schema["$defs"].items()]:
        for field, facts in model.get("properties", {}).items():
            assert f"| `{field}` |" in text, f"{name}.{field}"
            assert "$ref" in facts or field == "kind" or facts.get("description"), f"{name}.{field} has no description"
    assert "None" not in text


def test_the_reference_has_the_schema_of_every_document(hooks):
    assert set(hooks["report_format"].WRITERS) == set(kinds())
    text, written = hooks["report_format"].markdown(), hooks["report_format"].schemas()
    for name in kinds():
        schema = json_schema(kinds()[name].form)
        assert json.loads(written[f"reference/{name}.schema.json"]) == schema
        assert f"| `{schema['properties']['schema']['const']}` | [{name}.schema.json]" in text
        for model in [schema, *schema.get("$defs", {}).values()]:
            assert all("$ref" in str(facts) or facts.get("description") for facts in model.get("properties", {}).values())
        assert all(f"| `{field}` |" in text for field in schema["properties"])


def test_every_public_name_has_its_description(hooks):
    text = "".join(hooks["python_api"].pages(ROOT).values())
    assert "::: bandana.privacy_core.ledger.LiveLedger\n" in text
    assert "::: bandana.flows.api.run.run\n" in text


def test_a_formula_becomes_mathml(hooks):
    drawn = hooks["formulas"].on_page_content(r'<span class="arithmatex">\(a &lt; b\)</span>')
    assert drawn.startswith('<span class="formula"><math')
    assert "<mi>a</mi>" in drawn
    assert hooks["formulas"].on_page_content("<p>$5</p>") == "<p>$5</p>"
    drawn = hooks["formulas"].on_page_content(r'<span class="arithmatex">\(\lVert x \rVert\)</span>')
    assert drawn.count('<mo stretchy="false"') == 2  # bars keep the height of a letter


# --- ready specs -----------------------------------------------------------------------------------------------------------


def test_the_list_of_experiments_is_the_folder():
    folder = ROOT / "experiments"
    text = (folder / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([\w./-]+)` \|", text, re.MULTILINE))
    assert listed == {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in (".yaml", ".csv")}


@pytest.mark.parametrize("path", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda path: path.name)
def test_every_ready_spec_is_correct_and_named_like_its_file(path):
    spec = load_spec(path)
    assert spec.name == path.stem
    assert spec.description
    for environment in environments_of(spec):
        environment.check()
    assert len(cells_of(spec)) >= 2
