"""The laws of the house: who may import whom, and who may draw."""

from __future__ import annotations

import ast
import gc
import multiprocessing
import re
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import nightly
import pytest

from bandana import ready
from bandana.flows.annex import NAMES, plugged
from benchmarks import without
from benchmarks.house import House, counts, nodes_of, tree_of

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("privacy_core", "algorithms", "audits", "flows", "benchmarks", "experiments")


@pytest.fixture(scope="module", autouse=True)
def _trees():
    """Syntax trees are kept for these tests alone: a million objects that the collector searches again and again."""
    gc.disable()
    yield
    tree_of.cache_clear()
    nodes_of.cache_clear()
    gc.enable()


def modules(*folders):
    """(path relative to the root, syntax tree) of every module under the folders."""
    found = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), tree_of(path)) for path in found]


def imported(tree):
    """Top-level names of everything that a module imports, wherever it does so."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if function.endswith(("import_module", "__import__", "importorskip")):
                yield str(node.args[0].value).partition(".")[0]


GENERATORS = {
    "default_rng", "Generator", "RandomState", "SFC64", "PCG64", "PCG64DXSM", "Philox", "MT19937",
    "SeedSequence", "ReproducibleNoise",
}  # fmt: skip
SOURCES = {"random", "secrets", "numpy.random", "scipy.stats"}


def draws(tree):
    """Lines at which a module reaches for randomness: NumPy's, Python's, the system's, or a noise source."""
    return sorted({node.lineno for node in nodes_of(tree) if is_drawing(node)})


def is_drawing(node):
    match node:
        case ast.Attribute(attr=name):
            return name in GENERATORS or (
                name in {"random", "urandom"} and ast.unparse(node) in {"np.random", "numpy.random", "os.urandom"}
            )
        case ast.Name(id=name):
            return name in GENERATORS
        case ast.Import(names=names):
            return any(alias.name in SOURCES for alias in names)
        case ast.ImportFrom(module=module, names=names):
            asked = {alias.name for alias in names}
            return module in SOURCES or bool(asked & {*GENERATORS, "random", "urandom"})
    return False


def test_algorithms_hold_no_generator():
    found = modules("algorithms/bandits", "algorithms/rl")
    assert len(found) >= 3
    assert not {path for path, tree in found if list(draws(tree))}
    assert not list(draws(tree_of(ROOT / "algorithms/public_coins.py")))


def test_privacy_noise_comes_from_one_module():
    assert {path for path, tree in modules("privacy_core") if list(draws(tree))} <= {
        "privacy_core/noise/sources.py", "privacy_core/__init__.py",
    }  # fmt: skip


@pytest.mark.parametrize(
    "planted",
    [
        "import numpy as np\nnp.random.default_rng(1)",
        "import numpy as np\nz = np.random.normal()",
        "from numpy.random import default_rng",
        "from numpy import random",
        "import random",
        "import secrets",
        "import os\nos.urandom(8)",
        "from bandana.privacy_core import ReproducibleNoise",
        "def f(bits):\n    return Generator(bits)",
    ],
)
def test_a_planted_generator_is_seen(planted):
    assert list(draws(ast.parse(planted)))


def test_what_is_no_generator_is_not_taken_for_one():
    clean = "import numpy as np\nfrom numpy.typing import NDArray\nrandomized = ledger.release(np.zeros(3))"
    assert not list(draws(ast.parse(clean)))


ADAPTERS = {
    "flows/annexes/crosscheck/opacus_private.py": "tests/flows/annexes/crosscheck/test_opacus_private.py",
    "flows/running/process_pool.py": "tests/flows/running/test_process_pool.py",
    "flows/tracking/store/mlflow_private.py": "tests/flows/tracking/test_mlflow_private.py",
}
"""File that uses private names of other projects -> tests that fail with a version that lacks or changes them."""
PRIVATE_VARIABLE = re.compile("_(MLFLOW|PREFECT)_[A-Z_]+|(MLFLOW|PREFECT)__[A-Z_]+")
"""Environment variables that their projects keep to themselves."""
DOCUMENTED = {"_asdict", "_exit", "_field_defaults", "_fields", "_make", "_replace"}
"""Public names of the standard library that begin with an underscore."""


def is_private(name):
    return name.startswith("_") and name.strip("_") != "" and not name.endswith("__") and name not in DOCUMENTED


def own_names(tree):
    """Private names that a module gives: its functions, classes, variables, arguments and attributes of its objects."""
    for node in nodes_of(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                yield name
            case ast.Call(func=ast.Attribute(attr="__setattr__"), args=[_, ast.Constant(name), _]):
                yield str(name)


def foreign_private(tree, elsewhere=frozenset()):
    """Private names that a module uses and does not give; its own objects may also have those given `elsewhere`."""
    own = set(own_names(tree))
    used, variables = set(), set()
    for node in nodes_of(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                used |= {name} - elsewhere
            case ast.Attribute(attr=name):
                used.add(name)
            case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"), args=[_, ast.Constant(name), *_]):
                used.add(str(name))
            case ast.Constant(value=str(text)) if PRIVATE_VARIABLE.fullmatch(text):
                variables.add(text)
            case ast.Import(names=names):
                used |= {part for alias in names for part in alias.name.split(".")}
            case ast.ImportFrom(module=str(module), names=names) if not module.startswith("bandana"):
                used |= {*module.split("."), *(alias.name for alias in names)}
    return sorted(variables | {name for name in used - own if is_private(name)})


def test_private_names_of_other_projects_are_used_in_adapters_alone():
    """Each adapter has tests that fail with a version of the project in which the name is gone or means something else."""
    found = modules(*PRODUCT)
    ours = frozenset(name for _, tree in found for name in own_names(tree))
    users = {path for path, tree in found if foreign_private(tree, ours)}
    assert users == set(ADAPTERS)
    for adapter, tests in ADAPTERS.items():
        assert Path(adapter).stem in (ROOT / tests).read_text("utf-8")


@pytest.mark.parametrize(
    "planted",
    [
        "from mlflow.store.db import _engine",
        "import concurrent.futures._base",
        "from prefect._internal import x",
        "def f(client):\n    return client._client.post('/x')",
        "hasattr(pool, '_processes')",
        "{'PREFECT__SERVER_FINAL': '1'}",
        "os.environ['_MLFLOW_SGI_NAME']",
        "class Pool(Executor):\n    def f(self):\n        return self._workers",
    ],
)
def test_a_planted_private_name_is_seen(planted):
    assert foreign_private(ast.parse(planted), frozenset({"_client", "_ours"}))


@pytest.mark.parametrize(
    "clean",
    [
        "import os\nos._exit(1)",
        "def f(state):\n    return state._replace(a=1)",
        "class A:\n    def __init__(self):\n        self._a = 1\n    def f(self, other):\n        return other._a",
        "class B(A):\n    def f(self):\n        return self._ours",
        "from __future__ import annotations\nx.__dict__",
    ],
)
def test_own_and_documented_names_are_not_taken_for_private_ones(clean):
    assert not foreign_private(ast.parse(clean), frozenset({"_ours"}))


KINDS_OF_DATA = {
    "RewardTable", "ContextTable", "EpisodeTable", "RewardStack", "ContextStack", "EpisodeStack",
    "Stream", "ContextualStream", "EpisodicStream",
}  # fmt: skip


def kinds_asked_for(tree):
    """Kinds of data sets and streams that a module asks for, by `isinstance` or in a `case`."""
    for node in nodes_of(tree):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                yield from (part.id for part in ast.walk(kinds) if isinstance(part, ast.Name) and part.id in KINDS_OF_DATA)
            case ast.MatchClass(cls=ast.Name(id=kind)) if kind in KINDS_OF_DATA:
                yield kind


def test_nobody_but_the_loop_asks_of_which_kind_a_data_set_is():
    """A data set knows its own neighbors, its stack and its words, so that a new kind changes no code that uses it."""
    assert {path for path, tree in modules(*PRODUCT) if list(kinds_asked_for(tree))} == {"algorithms/run.py"}


@pytest.mark.parametrize(
    "planted",
    ["isinstance(data, EpisodeTable)", "isinstance(x, int | RewardTable)", "match x:\n    case ContextTable(): pass"],
)
def test_a_planted_question_for_a_kind_is_seen(planted):
    assert list(kinds_asked_for(ast.parse(planted)))


def test_only_flows_imports_prefect():
    users = {path for path, tree in modules(*PRODUCT) if "prefect" in set(imported(tree))}
    assert all(path.startswith("flows/") for path in users), users


def test_only_tracking_imports_mlflow():
    users = {path for path, tree in modules(*PRODUCT) if "mlflow" in set(imported(tree))}
    assert users
    assert all(path.startswith("flows/tracking/") for path in users), users


@pytest.mark.parametrize(
    "planted",
    [
        "import mlflow",
        "import mlflow.tracking as t",
        "from mlflow.entities import Run",
        "def f():\n    import mlflow",
        "import importlib\nimportlib.import_module('mlflow.client')",
    ],
)
def test_a_planted_import_is_seen(planted):
    assert "mlflow" in set(imported(ast.parse(planted)))


def test_privacy_core_imports_nothing_heavy():
    """numpy and scipy; dp-accounting and opendp inside functions, so that an import of the core stays cheap."""
    allowed = {"numpy", "scipy", "bandana", "dp_accounting", "opendp", *sys.stdlib_module_names}
    for path, tree in modules("privacy_core"):
        assert set(imported(tree)) <= allowed, path
        top_level = ast.Module([n for n in tree.body if isinstance(n, ast.Import | ast.ImportFrom)], [])
        assert "dp_accounting" not in set(imported(top_level)), path


def test_the_folder_mlflow_does_not_shadow_the_library():
    assert not list((ROOT / "mlflow").rglob("__init__.py"))


@pytest.mark.parametrize("folder", PRODUCT)
def test_no_product_file_has_more_than_500_lines(folder):
    """A folder is a question and a file one answer: what is longer answers several."""
    lengths = {path: len(path.read_text("utf-8").splitlines()) for path in (ROOT / folder).rglob("*.py")}
    assert {path.name: n for path, n in lengths.items() if n > 500} == {}


FLOORS = ("privacy_core", "algorithms", "audits", "flows")


def bare(tree):
    """Imports of the product's folders by their own names, of which others exist on the package index."""
    return sorted({name for name in imported(tree) if name in FLOORS})


def test_the_product_has_one_import_name():
    found = modules(*FLOORS, "bandana", "tests", "benchmarks", "docs", "examples")
    assert len(found) > 300
    assert {path: names for path, tree in found if (names := bare(tree))} == {}
    links = {path.name: path.resolve() for path in (ROOT / "bandana").iterdir() if path.is_symlink()}
    data = {name: ROOT / name for name in ready.FOLDERS}
    assert links == {floor: ROOT / floor for floor in FLOORS} | data
    assert not [path for place in data.values() for path in place.rglob("__init__.py")], "files of a user, no packages"
    assert {path: names for path, tree in found if (names := reaching_into(tree, data))} == {}


def reaching_into(tree, names):
    """Imports of the folders below `bandana` that are installed to be read by commands, and never imported."""
    nodes = [node for node in nodes_of(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    words = {f"{getattr(node, 'module', None) or ''}.{alias.name}".strip(".") for node in nodes for alias in node.names}
    return sorted(word for word in words for name in names if f"{word}.".startswith(f"bandana.{name}."))


def test_reaching_into_files_of_a_user_is_noticed():
    lines = "import bandana.examples.own_bandit", "from bandana import experiments", "from bandana.examples import release"
    for line in lines:
        assert reaching_into(ast.parse(line), ready.FOLDERS)
    assert not reaching_into(ast.parse("from bandana import audits, ready"), ready.FOLDERS)


@pytest.mark.parametrize("name", ["flows", "audits.audit", "algorithms"])
def test_a_planted_bare_name_is_seen(name):
    assert bare(ast.parse(f"import {name}"))
    assert bare(ast.parse(f"from {name} import x"))
    assert not bare(ast.parse(f"import bandana.{name}"))
    assert not bare(ast.parse(f"from bandana.{name} import x"))


def test_the_import_name_is_light_and_lazy():
    code = (
        "import sys, bandana; before = set(sys.modules); assert bandana.__version__; dir(bandana);"
        "print(*sorted({name.partition('.')[0] for name in before} & {'numpy', 'numba', 'prefect', 'mlflow', 'pydantic'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == ""


def test_the_package_runs_as_the_command():
    command = [sys.executable, "-m", "bandana", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True)
    assert "benchmarks, audits and reports" in done.stdout


def test_every_module_says_what_it_is_for():
    found = modules("privacy_core", "algorithms", "audits", "flows")
    silent = [path for path, tree in found if not ast.get_docstring(tree)]
    assert silent == []


def test_the_drawing_shows_the_rooms_that_exist(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    import architecture_figure

    drawing = architecture_figure.svg(ROOT)
    drawn = set(re.findall('data-room="([a-z_/]+)"', drawing))
    assert drawn == {f"{floor}/{path.parent.name}" for floor in FLOORS for path in (ROOT / floor).glob("*/*.py")}
    assert len(drawn) > 20
    assert all(f">{floor}</text>" in drawing for floor in FLOORS)


def test_the_drawing_s_arrows_are_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "hooks"))
    import architecture_figure

    sources = {
        "__init__.py": '"""A floor."""',
        "top.py": "from bandana.floor.a import one",
        "other.py": "import json",
        "a/__init__.py": "",
        "a/one.py": "def f():\n    from bandana.floor import b, c",
        "b/__init__.py": "import bandana.floor.c.three",
        "c/__init__.py": "",
        "c/three.py": "from bandana.elsewhere.a import x",
    }
    for name, text in sources.items():
        path = tmp_path / "floor" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    floor = architecture_figure.floor_of(tmp_path, "floor")
    assert floor.about == "A floor."
    assert floor.arrows == (("a", "b"), ("b", "c"), ("top.py", "a"))  # a's import of c follows from the others
    assert floor.rooms == ("top.py", "a", "b", "c")
    assert floor.files == ("other",)
    (tmp_path / "floor" / "c" / "three.py").write_text("from bandana.floor.a import one")
    with pytest.raises(ValueError, match="in a circle: a, b, c"):
        architecture_figure.floor_of(tmp_path, "floor")


def test_the_import_contracts_hold():
    command = Path(sys.executable).parent / "lint-imports"
    result = subprocess.run([str(command), "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


def is_nightly(node):
    """Whether a test has the mark itself; a case of it may have it without the others."""
    return any(isinstance(mark, ast.Attribute) and mark.attr == "nightly" for mark in node.decorator_list)


def without_stand_in(tree):
    """Tests of the night whose mistakes nothing in `make test` catches, as far as a module says."""
    tests = [node for node in nodes_of(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    marks = [ast.unparse(node.value) for node in assigned if getattr(node.targets[0], "id", "") == "pytestmark"]
    asks = any("mark.nightly" in mark for mark in marks)
    nightly = tests if asks else [test for test in tests if is_nightly(test)]
    if len(nightly) < len(tests) or "`make test`" in (ast.get_docstring(tree) or ""):
        return []
    return [test.name for test in nightly if "`make test`" not in (ast.get_docstring(test) or "")]


def test_what_runs_at_night_alone_has_a_stand_in_by_day():
    """In the same module, or named in a docstring that says what stands for it in `make test`."""
    assert {path: found for path, tree in modules("tests") if (found := without_stand_in(tree))} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("@pytest.mark.nightly\ndef test_a(): pass", ["test_a"]),
        ("pytestmark = [pytest.mark.nightly]\ndef test_a(): pass\ndef test_b(): pass", ["test_a", "test_b"]),
        ("@pytest.mark.nightly\ndef test_a(): pass\n\ndef test_b(): pass", []),
        ("@pytest.mark.nightly\ndef test_a():\n    'In `make test`: test_b.'", []),
        ("pytestmark = pytest.mark.slow\ndef test_a(): pass", []),
    ],
)
def test_a_test_without_a_stand_in_is_seen(text, found):
    assert without_stand_in(ast.parse(text)) == found


# --- size and annexes -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def counted():
    """The counts of the house, which take half a minute."""
    return counts(House())


def test_no_count_of_the_house_exceeds_its_limit(counted):
    assert not [count for count in counted if count.now > count.limit]


def test_limits_are_those_of_now_or_close(counted):
    """A limit that is far above its count would let it grow again without a word."""
    assert not [count for count in counted if count.limit > count.now * 1.02 + 1]


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """A copy of what git tracks, in which each annex leaves in turn: what is left is compiled once for all of them."""
    folder = tmp_path_factory.mktemp("copied")
    without.copy(folder)
    plugged("steps")  # so that this process has imported the libraries, which take seconds and which no annex changes
    return folder


@pytest.fixture
def left(annexes, copied):
    """The copy without some annexes, which come back."""
    for annex in annexes:
        without.remove(annex, copied)
    yield copied
    for name in (*(folder for annex in annexes for folder in without.folders_of(annex)), "flows/annex.py"):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, copied / name)
    shutil.rmtree(copied / "flows/__pycache__", ignore_errors=True)  # tables of one length may be of the same second


def names_of_annexes(folder):
    """Annexes, steps that they add, and where the table stands, in a process that takes the product from a folder."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "bandana"]:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    from bandana.flows import annex
    from bandana.flows.cli import app

    assert app
    return [*annex.NAMES, *annex.plugged("steps"), annex.__file__]


ALL_AND_EACH = [pytest.param(NAMES, id="all"), *(pytest.param((name,), id=name) for name in NAMES)]


@pytest.mark.parametrize("annexes", nightly.first(1, ALL_AND_EACH))
def test_every_file_of_an_annex_exists_and_it_leaves_with_one_line(annexes, left):
    """The whole check, with the tests of what is left: `python -m benchmarks.without ANNEX`.

    By day all leave together, which shows what the core needs of one; the import contract "No annex imports another one"
    holds what one needs of another. The process is forked from this one: it has the libraries, and imports the product anew.
    """
    folders = [name for annex in annexes for name in without.folders_of(annex)]
    assert all((ROOT / name).exists() for name in folders)
    assert not any((left / name).exists() for name in folders)
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        *names, table = pool.submit(names_of_annexes, left).result(120)
    assert not set(annexes) & set(names)
    assert Path(table).is_relative_to(left)
