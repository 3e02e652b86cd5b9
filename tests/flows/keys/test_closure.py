"""What code depends on, read from small packages that a test writes."""

import ast
import functools
from pathlib import Path

import pytest

from bandana.flows.keys import closure
from bandana.flows.keys.closure import MENUS, NOT_FOLLOWED, PACKAGES, Code, Name, roots_of

ROOT = Path(closure.__file__).resolve().parents[2]


@pytest.fixture
def code(tmp_path):
    """Writes files of the packages `bandana.algorithms` and `bandana.flows`, and reads them as code."""

    def write(**files):
        for dotted, text in files.items():
            path = tmp_path / (dotted.replace("__", "/").replace("menu", "__init__") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        for package in ("algorithms", "flows"):
            for folder in (tmp_path / package, *(tmp_path / package).rglob("*/")):
                folder.mkdir(exist_ok=True)
                (folder / "__init__.py").touch()
        return Code({f"bandana.{package}": tmp_path / package for package in ("algorithms", "flows")})

    return write


def parts_of(code, *roots):
    return {label for label in code.closure(roots).parts if not label.endswith(":")}


def test_everything_that_is_imported_counts_also_inside_functions(code):
    found = code(
        algorithms__one="import numpy\nfrom bandana.algorithms import two\n\n\ndef f():\n    from .four import x\n",
        algorithms__two="import bandana.algorithms.three as other\n",
        algorithms__three="",
        algorithms__four="",
        algorithms__five="",
    )
    assert parts_of(found, Name("bandana.algorithms.one")) == {
        f"bandana.algorithms.{n}" for n in ("one", "two", "three", "four")
    }


def test_what_is_imported_for_annotations_alone_does_not_count(code):
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bandana.algorithms.two import x\n"
    found = code(algorithms__one=text, algorithms__two="x = 1\n")
    assert parts_of(found, Name("bandana.algorithms.one")) == {"bandana.algorithms.one"}


def test_a_package_is_a_menu_and_a_star_takes_all_of_it(code):
    files = {
        "algorithms__menu": "from bandana.algorithms.one import a\nfrom bandana.algorithms.two import b\n",
        "algorithms__one": "a = 1\n",
        "algorithms__two": "b = 2\n",
    }
    by_name = code(**files, algorithms__user="from bandana.algorithms import b\n")
    assert "bandana.algorithms.one" not in parts_of(by_name, Name("bandana.algorithms.user"))
    assert "bandana.algorithms.two" in parts_of(by_name, Name("bandana.algorithms.user"))
    whole = code(algorithms__user="from bandana.algorithms import *\n")
    assert {"bandana.algorithms.one", "bandana.algorithms.two"} <= parts_of(whole, Name("bandana.algorithms.user"))


def test_a_name_that_is_taken_from_elsewhere_changes_the_digest(code):
    files = {"algorithms__one": "a = 1\nb = 2\n", "algorithms__user": "from bandana.algorithms import a\n"}
    roots = (Name("bandana.algorithms.user"),)
    first = code(algorithms__menu="from bandana.algorithms.one import a\n", **files).closure(roots)
    other = code(algorithms__menu="from bandana.algorithms.one import b as a\n", **files).closure(roots)
    assert first.digest != other.digest


@pytest.mark.parametrize(
    "edited",
    [
        "def f(x):  # a comment\n    return -x\n",
        '"""A module."""\n\n\ndef f(x):\n    """A function."""\n    return -x\n',
        "def f(\n    x\n):\n\n    return (-x)\n",
    ],
)
def test_comments_docstrings_and_formatting_change_nothing(code, edited):
    roots = (Name("bandana.algorithms.one"),)
    before = code(algorithms__one="def f(x):\n    return -x\n").closure(roots).digest
    assert code(algorithms__one=edited).closure(roots).digest == before
    for other in ("def f(x):\n    return x\n", "def f(x):\n    return -x\n\n\ng = 1.5\n", "def f(x, y=0):\n    return -x\n"):
        assert code(algorithms__one=other).closure(roots).digest != before


MENU = """\
from bandana.algorithms.one import a
from bandana.algorithms.two import b
from bandana.algorithms.three import c

SCALE = 2


def helper(x):
    return SCALE * x


class First:
    kind = a

    def __init__(self, x):
        self.x = x

    def used(self):
        return helper(self.inner)

    @property
    def inner(self):
        return self.x

    def other(self):
        return b


class Second(First):
    def used(self):
        return c
"""


def test_of_a_menu_only_what_is_mentioned_counts(code):
    name = "bandana.flows.problems.linear"
    found = code(
        flows__problems__linear=MENU, flows__player="def play(it):\n    return it.used()\n",
        algorithms__one="a = 1\n", algorithms__two="b = 1\n", algorithms__three="c = 1\n",
    )  # fmt: skip
    assert name in MENUS
    first = parts_of(found, Name("bandana.flows.player"), Name(name, "First"))
    own = {"First", "First.used", "First.inner", "helper", "SCALE", "a"}
    assert first == {"bandana.flows.player", "bandana.algorithms.one"} | {f"{name}:{part}" for part in own}
    second = parts_of(found, Name("bandana.flows.player"), Name(name, "Second"))
    assert second == first | {f"{name}:Second", f"{name}:Second.used", f"{name}:c", "bandana.algorithms.three"}


def test_a_name_that_a_menu_makes_in_an_unknown_way_takes_all_of_it(code):
    found = code(
        flows__problems__linear="globals().update(x=1)\ny = 2\n",
        flows__user="from bandana.flows.problems.linear import x\n",
    )
    assert "bandana.flows.problems.linear:y" in parts_of(found, Name("bandana.flows.user"))


def test_a_data_file_counts_where_it_is_named(code, tmp_path):
    files = {
        "algorithms__one": "from importlib.resources import files\n\n"
        "T = files('bandana.algorithms').joinpath('data/table.json')\n",
        "algorithms__two": "",
    }
    digests = set()
    for content in ("{}", "[]"):
        found = code(**files)
        (tmp_path / "algorithms" / "data").mkdir(exist_ok=True)
        (tmp_path / "algorithms" / "data" / "table.json").write_text(content)
        digests.add(found.closure([Name("bandana.algorithms.one")]).digest)
        assert "bandana.algorithms.one:table.json" in parts_of(found, Name("bandana.algorithms.one"))
        assert parts_of(found, Name("bandana.algorithms.two")) == {"bandana.algorithms.two"}
    assert len(digests) == 2


def _scaled(factor):
    def scale(value):
        return factor * value

    return scale


def test_roots_are_found_in_closures_partials_and_fields():
    from bandana.audits.faults.catalog import CONTROLS

    assert set(roots_of(functools.partial(_scaled(ast.parse), Path))) == {Name(__name__, "_scaled")}
    found = set(roots_of(CONTROLS["adar-gope"]))
    assert {name.module for name in found} >= {"bandana.audits.faults.fault", "bandana.audits.faults.linear"}


def test_code_of_a_root_outside_the_packages_counts():
    found = Code().closure(roots_of(_scaled)).parts
    assert {__name__, "bandana.flows.keys.closure"} <= set(found), "with what it imports"


def test_menus_exist_and_hold_no_more_than_they_say():
    code = Code()
    for name in (*MENUS, *NOT_FOLLOWED):
        assert code.module(name) is not None, name


def test_every_data_file_that_ships_is_named_by_a_module():
    """What no module names as a literal would change no key."""
    code = Code()
    shipped = {
        path
        for package in PACKAGES
        for path in (ROOT / package.removeprefix("bandana.")).rglob("*.*")
        if path.suffix not in (".py", ".typed")
        and not {"reporting", "__pycache__"} & {*path.parts}
        and package != "bandana.flows"
    }
    for path in shipped:
        package = path.relative_to(ROOT).parts[0]
        named = [p for p in (ROOT / package).rglob("*.py") if path.name in p.read_text()]
        assert any(
            any(label.endswith(f":{path.name}") for label in code.closure([Name(_module(p))]).parts) for p in named
        ), path.name


def _module(path):
    return ".".join(("bandana", *path.relative_to(ROOT).with_suffix("").parts))


def test_all_of_a_module_and_one_of_its_names_may_both_be_roots():
    whole, part = Name("bandana.flows.keys.content", None), Name("bandana.flows.keys.content", "content_key")
    found = [Code().closure(roots) for roots in ([whole, part], [part, whole], [whole])]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("name", ["sys", "numpy._core._multiarray_umath"])
def test_a_root_without_python_source_has_no_parts(name):
    assert not Code().closure([Name(name)]).parts
