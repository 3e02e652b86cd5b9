"""Compiled kernels are kept on disk, and what is kept is never older than the code."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache
from numba.core.registry import CPUDispatcher

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("privacy_core", "algorithms", "audits", "flows")
MODULES = sorted(
    path.relative_to(ROOT).as_posix()
    for floor in FLOORS
    for path in (ROOT / floor).rglob("*.py")
    if "import njit" in path.read_text("utf-8")
)
every = pytest.mark.parametrize("path", MODULES)


def kernels(path):
    module = importlib.import_module("bandana." + path.removesuffix(".py").replace("/", "."))
    return {name: value for name, value in vars(module).items() if isinstance(value, CPUDispatcher)}


def borrowed(tree):
    """Names of the own packages' other modules that a compiled function uses."""
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "bandana"
        for alias in node.names
    }
    compiled = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(ast.unparse(d).startswith(("_kernel", "njit")) for d in node.decorator_list)
    ]
    used = {
        name.id for function in compiled for part in function.body for name in ast.walk(part) if isinstance(name, ast.Name)
    }
    return len(compiled), used & imported


def test_there_are_kernels():
    assert len(MODULES) > 10


@every
def test_every_kernel_is_kept(path):
    found = kernels(path)
    assert found
    for name, kernel in found.items():
        assert isinstance(kernel._cache, FunctionCache), f"{name} is compiled anew by every process; give it cache=True"


@every
def test_a_kernel_uses_nothing_of_another_module(path):
    """Numba compares what it kept with the kernel's own file alone: a change elsewhere would go unseen."""
    n_kernels, names = borrowed(ast.parse((ROOT / path).read_text("utf-8")))
    assert n_kernels
    assert not names


def test_what_is_borrowed_is_found():
    code = "from bandana.algorithms.rkhs.pool import locate\n@njit(cache=True)\ndef f(x):\n    return locate(x)\n"
    assert borrowed(ast.parse(code)) == (1, {"locate"})
    assert borrowed(ast.parse(code.replace("@njit(cache=True)", "@other"))) == (0, set())
