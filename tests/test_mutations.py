"""The tool that measures what these tests catch, on sources and on a project small enough to check."""

from __future__ import annotations

import ast
import json
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from benchmarks.mutations import page, selection
from benchmarks.mutations.campaign import CAUGHT, SURVIVED, Book, Campaign, OwnKernels
from benchmarks.mutations.imports import import_graph, importing_tests
from benchmarks.mutations.kinds import KINDS, choose, kind_of, names
from benchmarks.mutations.operators import OPERATORS, compiles, declared_types, mutations
from benchmarks.mutations.page import Planted, Reason
from benchmarks.mutations.probes import instrument, users_of
from benchmarks.mutations.recording import record

CHANGES = {
    "comparison turned": ("if a < b <= c: pass", {"if a <= b <= c: pass", "if a < b < c: pass"}),
    "arithmetic turned": ("x = a - b * (c)", {"x = a + b * (c)", "x = a - b / (c)"}),
    "off by one": ("x = y[: n - 1] + f(1 + k)", {"x = y[: n] + f(1 + k)", "x = y[: n - 1] + f(k)"}),
    "power dropped": ("x = (a + b) ** 2", {"x = (a + b)"}),
    "root, absolute value or clip dropped": ("x = np.sqrt(v) + span.clip(w) + u.clip(0, 1)", {
        "x = v + span.clip(w) + u.clip(0, 1)", "x = np.sqrt(v) + w + u.clip(0, 1)", "x = np.sqrt(v) + span.clip(w) + u",
    }),
    "minimum for maximum": ("x = np.maximum(a, min(b))", {"x = np.minimum(a, min(b))", "x = np.maximum(a, max(b))"}),
    "and for or": ("x = a and b or c", {"x = a or b or c", "x = a and b and c"}),
    "condition negated": ("x = a if b > c else d", {"x = a if (not (b > c)) else d"}),
    "check dropped": ("if a != b: raise ValueError", {"if False: raise ValueError"}),
    "sign or not dropped": ("x = -a + f(not b)", {"x = a + f(not b)", "x = -a + f(b)"}),
    "constant changed": ("x = (0, 1, 2, 7, 0.5, True)", {
        "x = (1, 1, 2, 7, 0.5, True)", "x = (0, 2, 2, 7, 0.5, True)", "x = (0, 1, 1, 7, 0.5, True)",
        "x = (0, 1, 2, 8, 0.5, True)", "x = (0, 1, 2, 7, 1.0, True)", "x = (0, 1, 2, 7, 0.5, False)",
    }),
    "arguments swapped": ("x = swap(g(a), b, c) + differ(a, b)", {"x = swap(b, g(a), c) + differ(a, b)"}),
    "keyword dropped": ("x = f(a, records=b, axis=1)", {"x = f(a, axis=1)", "x = f(a, records=b)"}),
    "slice turned": ("x = a[k:], b[:n], c[::-1]", {
        "x = a[:k], b[:n], c[::-1]", "x = a[k:], b[n:], c[::-1]", "x = a[k:], b[:n], c[:]",
    }),
}  # fmt: skip


DECLARED = declared_types(
    ["def swap(a: int, b: float, c: str): ...", "def differ(a: int, b: str): ...", "def bare(a, b): ..."]
)


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_makes_the_changes_that_its_name_says(operator):
    line, expected = CHANGES[operator]
    assert {mutation.after for mutation in mutations("m.py", line, DECLARED) if mutation.operator == operator} == expected


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_mutation_changes_one_line_and_still_compiles(operator):
    source = f"import x\n\n\ndef f():\n    {CHANGES[operator][0]}\n    return 0\n"
    found = [mutation for mutation in mutations("m.py", source, DECLARED) if mutation.operator == operator]
    assert found
    for mutation in found:
        before, after = source.split("\n"), mutation.apply(source).split("\n")
        assert [i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b] == [mutation.line - 1]
        assert compiles(mutation, source)


@pytest.mark.parametrize(
    "source",
    [
        'def f():\n    """At least 1 < 2."""',
        '"""1 + 1"""\nx: int',
        'def f(a):\n    raise ValueError(f"{a + 1} is too large", a - 1)',
        "def f(a: Annotated[int, 1 + 1]) -> Literal[1]: ...",
        "@dataclass(frozen=True, slots=2 - 1)\nclass A: ...",
        'def f(a):\n    print("at least", 2 * a)',
        "class A:\n    def __repr__(self):\n        return shown(self.a + 1)",
        "Number = A | B",
        "if TYPE_CHECKING and not x:\n    import y",
        'x = "a" + b',
        "f(x, dtype=float)",
        "bare(a, b)",
    ],
)
def test_what_does_nothing_but_say_something_is_left_alone(source):
    assert mutations("m.py", source) == []


def test_a_mutation_is_named_by_its_function_and_text_not_by_its_line():
    source = "class A:\n    def f(self):\n        return n + 1, n + 1\n"
    moved = "# one line more\n" + source
    assert [m.name for m in mutations("m.py", source)] == [m.name for m in mutations("m.py", moved)]
    assert len({m.name for m in mutations("m.py", source)}) == len(mutations("m.py", source))
    assert mutations("m.py", source)[0].name.startswith("m.py::A.f: return n + 1, n + 1 => ")


def test_a_line_that_is_not_the_mutated_one_is_refused():
    (mutation, *_) = mutations("m.py", "x = a < b")
    with pytest.raises(ValueError, match="line 1"):
        mutation.apply("x = a > b")


@pytest.fixture(scope="module")
def candidates():
    """Mutations of a few real files."""
    sources = {
        path: (page.ROOT / path).read_text(encoding="utf-8")
        for path in (
            "privacy_core/clipping.py",
            "privacy_core/accounting/gaussian.py",
            "privacy_core/ledger.py",
            "flows/spec/spec.py",
        )
    }
    return sources, [mutation for path, source in sources.items() for mutation in mutations(path, source)]


def test_the_choice_depends_on_the_seed_alone(candidates):
    sources, found = candidates
    once = choose(found, sources.__getitem__, seed=3, per_kind=4)
    assert once == choose(found[::-1], sources.__getitem__, seed=3, per_kind=4)
    assert once != choose(found, sources.__getitem__, seed=4, per_kind=4)
    assert list(once) == names()
    for kind, chosen in once.items():
        assert all(kind_of(mutation) == kind for mutation in chosen)
        assert len({mutation.function for mutation in chosen}) == len(chosen) <= 4


def test_an_edit_leaves_the_choice_in_other_files_as_it_is(candidates):
    sources, found = candidates
    edited = "def extra(epsilon):\n    return epsilon < 1\n\n\n" + sources["privacy_core/accounting/gaussian.py"]
    again = [m for m in found if m.path != "privacy_core/accounting/gaussian.py"] + mutations(
        "privacy_core/accounting/gaussian.py", edited
    )
    sources_after = {**sources, "privacy_core/accounting/gaussian.py": edited}
    before = {m.name for group in choose(found, sources.__getitem__, 3, 4).values() for m in group}
    after = {m.name for group in choose(again, sources_after.__getitem__, 3, 4).values() for m in group}
    assert len(before - after) <= 1
    assert {name for name in after - before if "::extra" not in name} == set()


def test_every_rule_names_files_that_exist():
    folders = ("privacy_core", "algorithms", "audits", "flows")
    every = [path.relative_to(page.ROOT).as_posix() for folder in folders for path in (page.ROOT / folder).rglob("*.py")]
    unused = {pattern for kind in KINDS for pattern in kind.files if not any(fnmatch(path, pattern) for path in every)}
    assert unused == set()


SMALL = '''"""Three functions."""

from functools import lru_cache


def halved(x):
    """1 < 2."""
    return x / 2


@lru_cache
def doubled(x):
    return x * 2


def counted(n):
    done = 0
    while done < n:
        done += 1
    return done


def unused(x):
    return x + 1


def weakly_tested(x):
    return x + 3


def in_process(x):
    return x - 7


LIMIT = 4


def limited(x):
    return min(x, LIMIT)


SHARED = 7
TABLE = (SHARED, 1)
'''
TESTS = """
import subprocess
import sys

import pytest

from privacy_core.small import counted, doubled, halved, limited, weakly_tested


@pytest.fixture(scope="module")
def shared():
    return counted(3)


def test_is_limited():
    assert limited(9) == 4


def test_halves():
    assert halved(8) < 8


def test_doubles_first():
    assert doubled(3) != 1


def test_doubles_from_the_cache():
    assert doubled(3) == 6


def test_counts(shared):
    assert shared


def test_counts_again(shared):
    assert shared == 3


def test_a_process():
    program = "import privacy_core.small; print(privacy_core.small.in_process(9))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "2\\n"


def test_weakly():
    assert weakly_tested(2) > 0


def test_is_red():
    assert halved(1) == 7
"""
FILES = {
    "pyproject.toml": '[tool.pytest.ini_options]\nmarkers = ["nightly: long"]\n',
    "privacy_core/__init__.py": "",
    "privacy_core/small.py": SMALL,
    "privacy_core/other.py": "",
    "tests/conftest.py": "from helper import y\n",
    "tests/helper.py": "import privacy_core.other\n\ny = 1\n",
    "tests/test_small.py": TESTS,
    "tests/test_text.py": "from bandana.flows import late\n\n\ndef test_nothing():\n    assert late\n",
    "flows/__init__.py": "",
    "flows/late.py": "import importlib\n\nname = 'privacy_core.small'\n",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A checkout with one module, six tests of it, and one that fails anyway."""
    root = tmp_path_factory.mktemp("project")
    for path, text in FILES.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    return root


@pytest.fixture(scope="module")
def recording(project, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    return folder, record(project, folder, "make test", 1, lambda line: None)


def of(function, after):
    (found,) = (m for m in mutations("privacy_core/small.py", SMALL) if m.function == function and m.after == after)
    return found


def test_the_tests_that_import_a_file_are_found(project):
    graph = import_graph(project, ["privacy_core", "flows", "tests"])
    assert importing_tests(graph, "privacy_core/small.py") == ["tests/test_small.py", "tests/test_text.py"]
    assert importing_tests(graph, "privacy_core/other.py") == [
        "tests/test_small.py",
        "tests/test_text.py",
    ]  # by conftest and helper
    assert importing_tests(graph, "flows/late.py") == ["tests/test_text.py"]


@pytest.mark.parametrize(
    ("function", "after", "tests"),
    [
        ("weakly_tested", "return x + 4", {"test_weakly"}),
        ("halved", "return x * 2", {"test_halves"}),
        ("doubled", "return x / 2", {"test_doubles_first", "test_doubles_from_the_cache"}),
        ("counted", "while done <= n:", {"test_counts", "test_counts_again"}),
        ("in_process", "return x + 7", {"test_a_process"}),
        ("unused", "return x - 1", set()),
        ("", "LIMIT = 5", {"test_is_limited"}),
    ],
)
def test_the_tests_that_reach_a_line_are_found(project, recording, function, after, tests):
    found = selection.Selection(project, recording[1]).tests(of(function, after))
    assert found == [f"tests/test_small.py::{name}" for name in FILES_ORDER if name in tests]


def test_a_constant_that_is_read_at_import_is_left_to_all_tests_that_import_its_file(project, recording):
    wanted = selection.Selection(project, recording[1]).tests(of("", "SHARED = 8"))
    tests = {f"tests/test_small.py::{name}" for name in FILES_ORDER if name.startswith("test_")}
    assert tests - {*wanted} == {"tests/test_small.py::test_is_red"}


FILES_ORDER = [node.name for node in ast.parse(TESTS).body if isinstance(node, ast.FunctionDef)]


def test_a_test_that_fails_anyway_counts_for_nothing(recording):
    assert recording[1].red == ["tests/test_small.py::test_is_red"]
    assert recording[1].unseen == []


def test_caught_endless_and_surviving_mutations_are_told_apart(project, recording, tmp_path, monkeypatch):
    monkeypatch.setattr(selection, "LEAST_CPU", 0.5)
    folder, recorded = recording
    book = Book(tmp_path / "findings")
    planted = {
        "caught": of("halved", "return x * 2"),
        "caught in a process": of("in_process", "return x + 7"),
        "caught in a cache": of("doubled", "return x / 2"),
        "endless": of("counted", "done -= 1"),
        "seen and missed": of("weakly_tested", "return x + 4"),
        "not reached": of("unused", "return x - 1"),
    }
    said: list[str] = []
    Campaign(project, folder, recorded, "make test", book).run(planted.values(), 1, said.append)
    found = {name: book.latest(mutation.name, "make test") for name, mutation in planted.items()}
    told = {name: (one.outcome, one.by.rpartition("::")[2], one.how) for name, one in found.items()}
    assert told == {
        "caught": (CAUGHT, "test_halves", "failed"),
        "caught in a process": (CAUGHT, "test_a_process", "failed"),
        "caught in a cache": (CAUGHT, "test_doubles_from_the_cache", "failed"),
        "endless": (CAUGHT, "test_counts", "endless"),
        "seen and missed": (SURVIVED, "", ""),
        "not reached": (SURVIVED, "", "no test reaches it"),
    }
    assert (project / "privacy_core" / "small.py").read_text() == SMALL
    again: list[str] = []
    Campaign(project, folder, recorded, "make test", Book(tmp_path / "findings")).run(planted.values(), 1, again.append)
    assert (len(said), again) == (6, [])  # a second run has nothing left to do


KERNELS = '''"""Compiled."""
from numba import njit

_kernel = njit(cache=True)


@_kernel
def inner(x):
    return x + 1


@_kernel
def outer(x):
    return inner(x)


def called(x):
    """A docstring."""
    if x > 0:
        return outer(x)
    return 0
'''


def test_probes_stand_before_statements_and_never_in_compiled_functions():
    text, sites = instrument("m.py", KERNELS, 10)
    assert [(site.function, site.place[0]) for site in sites] == [("", 19), ("", 21), ("called", 17)]
    tree = ast.parse(text)
    assert ast.get_docstring(tree) == "Compiled."
    compiled = [ast.unparse(node) for node in tree.body if isinstance(node, ast.FunctionDef) and node.name != "called"]
    assert all("_probe" not in function for function in compiled)
    assert all(f"_probe_reached({number})" in text for number in (10, 11, 12))


def test_a_compiled_function_is_reached_through_those_that_call_it(tmp_path):
    (tmp_path / "m.py").write_text(KERNELS)
    sites, is_named_elsewhere = users_of(tmp_path, ["m.py"], "inner")
    assert ({site.function for site in sites}, is_named_elsewhere) == ({"called"}, False)
    (tmp_path / "table.py").write_text("from m import outer\n\nTABLE = {'outer': outer}\n")
    assert users_of(tmp_path, ["m.py", "table.py"], "inner")[1]


def test_compiled_functions_of_importing_files_are_not_taken_over(tmp_path):
    kernels = tmp_path / "kernels"
    (kernels / "finite_arm_1").mkdir(parents=True)
    for name in (
        "episodes_numba.advance-66.py311.nbi",
        "episodes_numba.advance-66.py311.1.nbc",
        "phases.advance-27.py311.nbi",
    ):
        (kernels / "finite_arm_1" / name).write_text("compiled")
    with OwnKernels(kernels, {"algorithms/bandits/finite_arm/episodes_numba.py"}) as environment:
        folder = Path(environment["NUMBA_CACHE_DIR"])
        assert [path.name for path in folder.rglob("*.nb?")] == ["phases.advance-27.py311.nbi"]
    assert len(list(kernels.rglob("*.nb?"))) == 3
    with OwnKernels(kernels, set()) as environment:
        assert environment == {}


def planted(name, test, test_all=""):
    return Planted("bounds", name, "off by one", test, test_all, "", "")


def test_equivalent_mutations_are_left_out_of_the_score():
    items = [planted("a", "caught", "caught"), planted("b", "survived", "caught"), planted("c", "survived", "survived")]
    assert page.score(items, {}) == (3, 0, 1, 2)
    reasons = {"c": Reason("c", True, "the same"), "a": Reason("a", True, "a test says otherwise")}
    assert page.score(items, reasons) == (3, 1, 1, 2)
    assert page.score(items, reasons).changing == 2
    assert page.score([*items, planted("d", "survived")], reasons).test_all is None  # not all were tried at night


def test_the_page_shows_what_is_stored():
    tree = json.loads(page.MEASURED.read_text(encoding="utf-8"))
    assert page.PAGE.read_text(encoding="utf-8") == page.markdown(tree, page.read_reasons())
    assert len(tree["mutations"]) >= 120


def test_every_survivor_has_a_reason_and_every_reason_a_survivor():
    stored = [Planted(**item) for item in json.loads(page.MEASURED.read_text(encoding="utf-8"))["mutations"]]
    assert set(page.read_reasons()) == {item.name for item in stored if item.test != CAUGHT}
    assert all(len(reason.why) > 20 for reason in page.read_reasons().values())


def test_the_tests_catch_nineteen_of_twenty():
    stored = [Planted(**item) for item in json.loads(page.MEASURED.read_text(encoding="utf-8"))["mutations"]]
    found = page.score(stored, page.read_reasons())
    assert found.test >= 0.95 * found.changing
