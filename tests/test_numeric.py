"""CI repeats each sensitive test file as another processor, and nothing in the lists of exceptions is stale."""

import ast
from pathlib import Path

import pytest

from tests import numeric
from tests.numeric import ALL, EXCEPTIONS, HARMLESS, MARKED, ROOT

TESTS = ROOT / "tests"
FILES = {str(path.relative_to(TESTS)): path for path in sorted(TESTS.rglob("test_*.py"))}


def _names(path):
    """`test` and `Class::test` of a file."""
    found = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef):
            found += [f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)]
        elif isinstance(node, ast.FunctionDef):
            found.append(node.name)
    return [name for name in found if name.rpartition("::")[2].startswith("test_")]


@pytest.mark.parametrize("name", FILES)
def test_a_sensitive_file_is_repeated_or_says_why_not(name):
    assert not (name in MARKED and name in EXCEPTIONS)
    if numeric.is_sensitive(FILES[name]) and name not in EXCEPTIONS:
        assert any(numeric.is_marked(f"tests/{name}::{test}") for test in _names(FILES[name])) or name in MARKED
    elif name not in MARKED:
        assert not numeric.is_marked(f"tests/{name}::test_anything")


def test_nothing_in_the_lists_is_stale():
    assert set(MARKED) <= set(FILES)
    assert set(EXCEPTIONS) <= set(FILES)
    for name, beginnings in MARKED.items():
        for beginning in () if beginnings == ALL else beginnings:
            known = [test for test in _names(FILES[name]) if test.startswith(beginning) or beginning.startswith(f"{test}[")]
            assert known, f"tests/{name} has no test that begins with {beginning}"
    for name in (name for name, beginnings in MARKED.items() if beginnings == ALL):
        assert not numeric.is_sensitive(FILES[name]), f"{name} is repeated without being listed"
    for name in EXCEPTIONS:
        assert numeric.is_sensitive(FILES[name]) or name == "test_processors.py", f"{name} needs no exception any more"
    for name in HARMLESS:
        path = ROOT / f"{name.replace('.', '/')}.py"
        assert numeric.computes(path), f"{name} computes nothing any more"
    assert all(EXCEPTIONS.values())
    assert all(HARMLESS.values())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = a @ b", True),
        ("a @= b", True),
        ("np.linalg.solve(a, b)", True),
        ("from scipy.optimize import brentq", True),
        ("from numpy.linalg import eigh", True),
        ("np.einsum('ij,j->i', a, b)", True),
        ("from scipy.special import ndtri", False),
        ("@decorator\ndef f(): return a * b", False),
    ],
)
def test_what_computes_is_found(tmp_path, code, expected):
    path = tmp_path / "test_new.py"
    path.write_text(code)
    assert numeric.computes(path) is expected
    assert numeric.is_sensitive(path) is expected


@pytest.mark.parametrize(
    "module",
    [
        "bandana.privacy_core.accounting.factorization",
        "bandana.algorithms.bandits.capri.projection",
        "bandana.audits.bounds.samples",
    ],
)
def test_what_takes_from_a_module_that_computes_is_sensitive(tmp_path, module):
    package, _, name = module.rpartition(".")
    for number, line in enumerate((f"from {module} import f", f"from {package} import {name}", f"import {module}")):
        path = Path(tmp_path / f"test_{number}.py")
        path.write_text(line)
        assert numeric.is_sensitive(path), line


def test_the_marker_is_set_by_the_list_where_somebody_selects_by_it(request):
    assert numeric.is_marked(request.node.nodeid)
    is_selecting = numeric.MARKER in request.config.getoption("markexpr")
    assert (request.node.get_closest_marker(numeric.MARKER) is not None) == is_selecting
    assert numeric.is_marked("tests/algorithms/bandits/capri/test_projection.py::test_anything[x]")
    assert numeric.is_marked("tests/algorithms/rl/mixture/test_ucrl_vtr.py::test_the_twin_against_plain_numpy")
    assert not numeric.is_marked("tests/algorithms/rl/mixture/test_ucrl_vtr.py::test_the_printed_constants")
    assert not numeric.is_marked("tests/algorithms/test_regret.py::test_anything")
