"""Puts probes into a copy of the checkout: before each statement that can be mutated, and at the top of each function."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutations.operators import Types, declared_types, is_kernel, mutations

MODULE = "_reached"
"""Name of `reached.py` in an instrumented copy."""
_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")


class Site(NamedTuple):
    """Where a probe stands.

    Attributes:
      path: of the file.
      place: (line, column) of the statement; of the function for the probe at its top.
      function: name of the function at whose top it stands; empty for a statement.
    """

    path: str
    place: tuple[int, int]
    function: str = ""


def instrument(path: str, source: str, first: int, types: Types | None = None) -> tuple[str, list[Site]]:
    """The source with probes, and their sites; they are numbered from `first`.

    Compiled functions get none, as Numba could not compile them; statements that run at import get none either.
    """
    tree = ast.parse(source)
    wanted = {m.statement for m in mutations(path, source, types) if not m.runs_at_import and not m.kernel}
    sites: list[Site] = []

    def probe(site: Site) -> ast.stmt:
        sites.append(site)
        number = first + len(sites) - 1
        return ast.parse(f"if {number} not in _probes_seen: _probe_reached({number})").body[0]

    def rewrite(node: ast.AST, in_function: bool) -> None:
        if is_kernel(node):
            return
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        inside = is_function or (in_function and not isinstance(node, ast.ClassDef))
        for field in _FIELDS:
            children = getattr(node, field, None)
            if not isinstance(children, list):
                continue
            written: list[ast.AST] = []
            for child in children:
                if inside and isinstance(child, ast.stmt) and (child.lineno, child.col_offset) in wanted:
                    written.append(probe(Site(path, (child.lineno, child.col_offset))))
                rewrite(child, inside)
                written.append(child)
            if field == "body" and is_function:
                has_docstring = ast.get_docstring(node, clean=False) is not None  # type: ignore[arg-type]
                top = probe(Site(path, (node.lineno, node.col_offset), node.name))  # type: ignore[attr-defined]
                written.insert(1 if has_docstring else 0, top)
            setattr(node, field, written)

    rewrite(tree, False)
    if sites:
        opening = ast.parse(f"from {MODULE} import reached as _probe_reached, seen as _probes_seen").body
        after = 1 if ast.get_docstring(tree, clean=False) is not None else 0
        after += sum(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
        tree.body[after:after] = opening
    return ast.unparse(ast.fix_missing_locations(tree)), sites


def instrument_all(copy: Path, paths: Iterable[str]) -> list[Site]:
    """Rewrites files of a copy in place and returns all sites: a probe's number is its place in this list."""
    sites: list[Site] = []
    sources = {path: (copy / path).read_text(encoding="utf-8") for path in paths}
    types = declared_types(sources.values())
    for path in sources:
        text, added = instrument(path, sources[path], len(sites), types)
        (copy / path).write_text(text, encoding="utf-8")
        sites += added
    (copy / f"{MODULE}.py").write_text((Path(__file__).parent / "reached.py").read_text(encoding="utf-8"), encoding="utf-8")
    return sites


def users_of(root: Path, paths: Iterable[str], wanted: str) -> tuple[set[Site], bool]:
    """The probes at the top of functions that name a constant or a compiled function, or what is compiled with it.

    Returns:
      the sites, and whether it is also named outside functions, so that who uses it cannot be told.
    """
    sites: set[Site] = set()
    named_elsewhere, done, waiting = False, set[str](), [wanted]
    trees = [(path, ast.parse((root / path).read_text(encoding="utf-8"))) for path in paths]
    while waiting:
        done.add(name := waiting.pop())
        for path, tree in trees:
            for function in functions_naming(tree, name):
                if function is None:
                    named_elsewhere = True
                elif not is_kernel(function):
                    sites.add(Site(path, (function.lineno, function.col_offset), function.name))
                elif function.name not in done:
                    waiting.append(function.name)
    return sites, named_elsewhere


def functions_naming(tree: ast.Module, name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef | None]:
    """The innermost functions in which a name is used, not set; None where it is used outside any function."""
    found: list[ast.FunctionDef | ast.AsyncFunctionDef | None] = []

    def walk(node: ast.AST, function: ast.FunctionDef | ast.AsyncFunctionDef | None) -> None:
        called = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        if called == name and isinstance(getattr(node, "ctx", None), ast.Load):
            found.append(function)
        for child in ast.iter_child_nodes(node):
            walk(child, child if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function)

    walk(tree, None)
    return found
