"""What the README and the docs promise exists."""

import ast
import re
from pathlib import Path

import pytest

from bandana.audits.bounds.methods import WORDS
from bandana.flows.cli import app

ROOT = Path(__file__).parents[1]


def _texts():
    return {path: path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}


def test_every_command_that_is_named_exists():
    known = {command.name or command.callback.__name__.rstrip("_") for command in app.registered_commands}
    known |= {group.name for group in app.registered_groups}
    named = {word for text in _texts().values() for word in re.findall(r"`bandana ([a-z]+(?:-[a-z]+)*)", text)}
    assert named
    assert named <= known
    assert {"demo", "run", "audit", "report", "list", "check", "ui"} <= named | {"ui"} <= known


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.M))
    named = {word for text in _texts().values() for word in re.findall(r"`?make ([a-z]+)(?:`|\s+#)", text)}
    assert {"demo", "test", "bench"} <= named <= targets


def test_every_file_that_is_named_exists():
    for path, text in _texts().items():
        if path.name == "mutations.md":  # a record, of files as they were called
            continue
        for name in re.findall(r"`((?:docs|experiments|audits|algorithms|flows|privacy_core|mlflow)/[\w./-]*)`", text):
            assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_no_file_names_a_machine_or_a_registry():
    folders = ("flows", "audits", "algorithms", "privacy_core", "docs", "mlflow", "benchmarks", "experiments", "deploy")
    endings = {".service", ".settings", ".py", ".md", ".yaml", ".j2", ".css", ".ini", ".example"}
    tracked = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in endings]
    assert tracked
    for path in tracked:
        text = path.read_text(encoding="utf-8")
        for word in ("/root/", "/work/", "/home/", "pypi.org", "index-url"):
            assert word not in text, f"{path} names {word}"


def test_the_readme_s_python_prints_what_it_says(capsys):
    block = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert block is not None
    exec(compile(block.group(1), "README.md", "exec"), {})
    promised = re.search(r"# (.*)\n$", block.group(1))
    assert promised is not None
    assert capsys.readouterr().out.strip() == promised.group(1)


PRODUCT = ("flows", "audits", "algorithms", "privacy_core")
GENERATED = {"docs/mutations.md", "docs/comparison.md", "CHANGELOG.md"}
"""Written by programs, or a record of the past."""
UNIDIOMATIC = re.compile(
    r"\b(in all that|but with probability|told apart|of one's own|one an? (?:action|arm|audit|cell|pair|release|round|user)"
    r"|(?:audit without statistics|audit of the noise)|in the first place)\b",
    re.IGNORECASE,
)
"""House phrases that a native reader stumbles over, or that have another name."""
UNIDIOMATIC_IN_PROSE = re.compile(
    r"\b(as far as|whoever|stands? (?:in|beside|twice|side by side)|(?:says?|tells?) (?:which|what|why|how)"
    r"|(?:is|are|was|were) (?:told|asked for|looked for|looked at|held against))\b",
    re.IGNORECASE,
)
"""Phrases that only prose must avoid: pages, and the texts of a report."""


def fragments(tree):
    """Lines of docstrings, help and descriptions that begin in the middle of a sentence."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))) if re.match(r"\s*(Of|See|As) ", text):
                yield node.lineno
            case ast.Call(args=args, keywords=keywords):
                shown = [keyword.value for keyword in keywords if keyword.arg in {"description", "help"}]
                shown += args[:1] if getattr(node.func, "id", "") == "option" else []
                yield from (
                    one.lineno for one in shown if isinstance(one, ast.Constant) and str(one.value).startswith("Of ")
                )


def test_every_docstring_and_description_can_stand_alone():
    folders = (*PRODUCT, "benchmarks", "docs", "examples", "tests")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 200
    # One tree at a time: where all are kept, the collector searches them again and again.
    lines = {path.relative_to(ROOT).as_posix(): sorted(fragments(ast.parse(path.read_text("utf-8")))) for path in paths}
    assert {path: found for path, found in lines.items() if found} == {}


@pytest.mark.parametrize(
    "planted",
    [
        'def f():\n    """Of each user."""',
        'class A:\n    """See `B`."""',
        'class A:\n    b: int\n    """Of the noise."""',
        '"""As the algorithm has it."""',
        'low: float = Field(0.0, description="Of each user.")',
        'confidence: Annotated[float, option("Of all bounds together.")]',
        'port: Annotated[int, typer.Option(help="Of the pages.")]',
    ],
)
def test_a_planted_fragment_is_seen(planted):
    assert list(fragments(ast.parse(planted)))


def test_a_whole_sentence_is_no_fragment():
    assert not list(fragments(ast.parse('def f():\n    """Offers a sum; see `g`."""')))


def docstrings(tree):
    """Line and text of each docstring, those of fields included."""
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


def test_docstrings_avoid_house_phrases():
    found = {}
    for folder in PRODUCT:
        for path in (ROOT / folder).rglob("*.py"):
            for line, text in docstrings(ast.parse(path.read_text("utf-8"))):
                if phrase := UNIDIOMATIC.search(" ".join(text.split())):
                    found[f"{path.relative_to(ROOT)}:{line}"] = phrase.group()
    assert found == {}


def prose(text):
    """A page without its blocks, its code, and what programs print."""
    return " ".join(re.sub(r"^```.*?^```|`[^`]*`", "", text, flags=re.MULTILINE | re.DOTALL).split())


def test_pages_and_report_texts_avoid_house_phrases():
    texts = {
        path.relative_to(ROOT).as_posix(): prose(text)
        for path, text in _texts().items()
        if path.relative_to(ROOT).as_posix() not in GENERATED
    }
    for path in (*(ROOT / "audits" / "reporting").iterdir(), *(ROOT / "flows" / "annexes").glob("*/page.py")):
        if path.suffix == ".py":
            strings = (node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant))
            texts[path.name] = " ".join(" ".join(text.split()) for text in strings if isinstance(text, str))
        elif path.suffix in (".j2", ".json"):
            texts[path.name] = path.read_text("utf-8")
    texts["audits/bounds/methods.py"] = " ".join(WORDS.values())
    assert len(texts) > 40
    found = {
        name: [phrase.group() for pattern in (UNIDIOMATIC, UNIDIOMATIC_IN_PROSE) for phrase in pattern.finditer(text)]
        for name, text in texts.items()
    }
    assert {name: phrases for name, phrases in found.items() if phrases} == {}


@pytest.mark.parametrize("planted", ["`x` is told apart", "One row an audit", "as far as it goes", "It says which one"])
def test_a_planted_house_phrase_is_seen(planted):
    text = prose(planted.replace("One row an audit", "one an audit"))
    assert UNIDIOMATIC.search(text) or UNIDIOMATIC_IN_PROSE.search(text)
