"""Each layer of the installation works with its own packages alone, and says in one line which extra is missing.

In `make test` modules of other extras are refused; at night the wheel is built and each layer installed by itself.
"""

import ast
import shutil
import sys
import tomllib
from functools import cache

import pytest
from documentation import ROOT
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from bandana import layers
from benchmarks.installed import PYTHONS, bytes_of, environment, install, packages_of, python_of, run

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MODULE_OF = {"scikit-learn": "sklearn", "pyyaml": "yaml", "psycopg2-binary": "psycopg2", "mkdocs-material": "mkdocs"}
LIGHT = {"pydantic_core", "markupsafe", "llvmlite"}
"""Modules that are imported and come with a package that is asked for."""
ON_TOP = {
    "torch": "opacus", "distributed": "prefect_dask", "dask": "prefect_dask", "starlette": "prefect", "uvicorn": "prefect",
}  # fmt: skip
"""Modules in the table that come with another one of their extra."""
BY_OTHERS = {"latex2mathml", "pyphen"}
"""Asked for because of another package, or used by the documentation's own scripts alone."""
MUST_IMPORT = (
    "bandana.privacy_core", "bandana.algorithms", "bandana.audits", "bandana.testing", "bandana.primitives",
    "bandana.flows.api", "bandana.flows.cli", "bandana.flows.commands", "bandana.flows.spec",
    "bandana.flows.annexes.anything", "bandana.flows.annexes.compliance", "bandana.flows.annexes.leaderboard",
)  # fmt: skip
"""Packages whose modules all import in the light installation."""


def modules_of(lines):
    """Names to import of what requirements bring, but for extras of our own."""
    names = [canonicalize_name(Requirement(line).name) for line in lines]
    modules = {MODULE_OF.get(name, name.replace("-", "_")) for name in names if name != layers.DISTRIBUTION}
    return {module.removesuffix("_material") for module in modules} - BY_OTHERS


@cache
def imported_modules():
    """Top-level modules that the product imports beside the standard library and itself."""
    names = set()
    for folder in ("privacy_core", "algorithms", "audits", "flows"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    names |= {alias.name.partition(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names) - {"bandana"}


def only(layer, *arguments, **environment):
    return run(sys.executable, "-m", "tests.only_layer", layer, *arguments, **environment)


def test_the_table_of_extras_is_that_of_the_package_metadata():
    optional = PROJECT["optional-dependencies"]
    for extra, modules in layers.EXTRAS.items():
        assert {ON_TOP.get(module, module) for module in modules} == modules_of(optional[extra]) | (
            {"prefect"} if extra == "pipeline" else set()
        ), extra
    assert not {module for modules in layers.EXTRAS.values() for module in modules} & modules_of(PROJECT["dependencies"])


def test_every_import_of_the_product_belongs_to_a_layer():
    known = modules_of(PROJECT["dependencies"]) | LIGHT | {module for each in layers.EXTRAS.values() for module in each}
    assert imported_modules() - known == set()
    assert {"numpy", "prefect"} <= imported_modules()


def test_what_everybody_installs_and_the_pipeline_are_whole():
    optional = PROJECT["optional-dependencies"]
    assert optional["all"] == ["bandana-dp[pipeline,sign,crosscheck,secure]"]
    assert any(line.startswith("bandana-dp[all,") for line in optional["dev"])
    assert "bandana-dp[report]" in optional["pipeline"]


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["light", "pipeline"])
def test_every_module_of_a_layer_imports_without_the_packages_of_others(layer):
    done = only(layer, "import")
    assert done.returncode == 0, done.stderr
    failed = dict(line.split() for line in done.stdout.splitlines() if line)
    assert {module: lacks for module, lacks in failed.items() if layers.advice(lacks) is None} == {}
    if layer == "pipeline":
        assert failed == {}
    else:
        assert "bandana.flows.suites.suite" in failed  # the refusal works
        assert {module for module in failed if module.startswith(MUST_IMPORT)} == set()


@pytest.mark.parametrize(
    ("arguments", "module", "extra", "annex"),
    [
        (["ui"], "sqlalchemy", "pipeline", None),
        (["demo"], "causaldata", "pipeline", None),
        (["crosscheck"], "opacus", "crosscheck", "crosscheck"),
        (["key", "new", "mine.key"], "cryptography", "sign", "compliance"),
    ],
)
def test_a_command_without_its_extra_says_in_one_line_what_to_install(arguments, module, extra, annex, tmp_path):
    if annex is not None:
        pytest.importorskip(f"bandana.flows.annexes.{annex}")
    more = ["--data", tmp_path] if arguments[0] in ("ui", "demo") else []
    done = only("light", "bandana", *arguments, *more)
    assert done.returncode == 2
    line = f"error: this needs {module}, which the light installation leaves out: pip install 'bandana-dp[{extra}]'"
    assert done.stderr.splitlines() == [line]
    assert done.stdout == ""


def test_every_public_name_is_in_the_light_layer_and_one_that_is_not_says_its_extra():
    for annex in ("anything", "live"):
        pytest.importorskip(f"bandana.flows.annexes.{annex}")
    done = only("light", "names", "live")
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert line.startswith("live: this needs ")
    assert line.endswith("pip install 'bandana-dp[live]'")


def test_a_function_without_its_extra_says_the_same(monkeypatch):
    late = layers.LateModule("prefect_of_another_world")
    with pytest.raises(ModuleNotFoundError):
        _ = late.flow  # belongs to no extra: left as it is
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(layers.MissingExtra, match=r"^this needs pandas, .*: pip install 'bandana-dp\[pipeline\]'$"):
        _ = layers.LateModule("pandas").DataFrame
    monkeypatch.undo()
    assert layers.LateModule("json").dumps([1]) == "[1]"


def test_an_audit_in_the_light_layer_writes_evidence_and_says_what_draws_pages(tmp_path):
    pytest.importorskip("bandana.flows.annexes.anything")
    file = tmp_path / "noisy.py"
    file.write_text("def count(data, seed):\n    return sum(data) + (seed * 2654435761 % 1000) / 10\n")
    done = only(
        "light", "bandana", "audit-release", f"{file}:count", "--data", "[1, 0, 1]", "--neighbor", "[1, 0, 0]",
        "--claim", "pure(epsilon=1)", "--replays", "2000", BANDANA_DATA=str(tmp_path),
    )  # fmt: skip
    assert "count: 1-DP on the given pair" in done.stdout
    assert {path.suffix for path in (tmp_path / "own").iterdir()} == {".npz", ".json"}
    assert "no html and pdf: this needs matplotlib" in done.stderr


# --- at night: the wheel, in environments of its own ------------------------------------------------------------------

TESTS = {
    "": (
        "privacy_core/test_ledger_by_hand.py", "privacy_core/test_composition.py", "audits/test_claims.py",
        "flows/annexes/anything/outputs", "flows/annexes/anything/pairs/test_given_pairs.py",
    ),
    "report": ("audits/reporting/test_reporting.py",),
    "pipeline": ("flows/api/test_run.py",),
    "pipeline,sign": ("flows/annexes/compliance/test_bundles.py",),
    "crosscheck": ("flows/annexes/crosscheck/test_opacus_private.py",),
    "secure": ("privacy_core/test_secure_noise.py",),
}  # fmt: skip
"""Extras -> the tests that run in an environment of the wheel with these, and of pytest."""
MOST_BYTES = 550_000_000


@pytest.mark.timeout(3600)  # it downloads and installs
@pytest.mark.nightly
@pytest.mark.parametrize(
    ("extras", "interpreter"),
    [*((extras, None) for extras in TESTS), *(("", name) for name in PYTHONS), *(("report", name) for name in PYTHONS)],
)
def test_the_wheel_with_an_extra_passes_the_tests_of_its_layer(extras, interpreter, wheel, pins, tmp_path):
    place = python_of(interpreter) if interpreter else sys.executable
    if place is None:
        pytest.skip(f"no {interpreter} on this machine")
    python, work = environment(tmp_path / "venv", place), tmp_path / "work"
    install(python, f"{wheel}[{extras}]" if extras else wheel, pins=pins)
    if not extras:
        lying = packages_of(python)
        assert bytes_of(lying) < MOST_BYTES
        assert not {"torch", "prefect", "mlflow", "pandas", "pyarrow", "opendp"} & {path.name for path in lying}
    install(python, "pytest", "pytest-timeout", "pytest-xdist", pins=pins)
    for name in ("tests", "benchmarks", "examples", "docs", "experiments"):  # and none of the product's folders
        shutil.copytree(ROOT / name, work / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", work)
    chosen = [f"tests/{name}" for name in TESTS[extras]]
    done = run(python, "-m", "pytest", "-q", "-m", "not nightly", *chosen, cwd=work)
    assert done.returncode == 0, done.stdout[-3000:]
    assert " passed" in done.stdout
