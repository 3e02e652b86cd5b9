"""A user's Python file and the local files that it imports: what the key of a result depends on, and what runs.

A file is local if it lies beside the user's file and its name is not that of an installed or a standard module. Each counts
as a whole, as in `bandana.flows.keys.closure`. Installed packages count by their minor version, and data files beside it by
their content, if its text names them. Nothing is imported here.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path
from typing import NamedTuple

from bandana.flows.keys.closure import Name, TreeReader, imported_names

_PRODUCT = "bandana"


class Late(NamedTuple):
    """An import of a local module inside a function."""

    path: Path
    line: int
    module: str


class OwnFiles(NamedTuple):
    """A user's file and the local files that it imports, in turn.

    Attributes:
      modules: dotted name -> file; the user's own stands under the name of its file.
      parts: label without folders -> digest or version of each thing that counts.
      uses: what they import of the product.
      late: local modules that are imported inside functions: they would not be found once the file is loaded.
    """

    modules: Mapping[str, Path]
    parts: Mapping[str, str]
    uses: frozenset[Name]
    late: tuple[Late, ...]

    @property
    def digest(self) -> str:
        """SHA-256 of all parts, 64 hex digits; comments, docstrings and the folder change nothing."""
        text = "".join(f"{label} {part}\n" for label, part in sorted(self.parts.items()))
        return hashlib.sha256(text.encode()).hexdigest()


def own_files(path: Path) -> OwnFiles:
    """Reads a user's file and what it imports, anew each time: a user edits files between two runs.

    Raises:
      OSError: a file cannot be read.
      SyntaxError: a file is no Python; the error names it.
      ValueError: a file holds a null byte.
    """
    folder = path.parent
    modules, parts = {path.stem: path}, {}
    uses: set[Name] = set()
    late: list[Late] = []
    waiting = [path.stem]
    while waiting:
        dotted = waiting.pop()
        place = modules[dotted]
        tree = ast.parse(place.read_bytes(), str(place))
        package = dotted if place.name == "__init__.py" else dotted.rpartition(".")[0]
        reader = TreeReader(package)
        reader.block(tree.body)
        parts[f"own {dotted}"] = hashlib.sha256("\0".join(reader.text).encode("utf-8", "surrogatepass")).hexdigest()
        for file in sorted(reader.strings):
            if (data := folder / file).is_file() and data.suffix != ".py":
                parts[f"own data {file}"] = hashlib.sha256(data.read_bytes()).hexdigest()
        for name in reader.imports:
            top = name.module.partition(".")[0]
            if top == _PRODUCT:
                uses.add(name)
            elif is_local(folder, top):
                files = dict(_files(folder, name))
                waiting += [each for each in files if each not in modules]
                modules |= files
            elif top and top not in sys.stdlib_module_names:
                # What is loaded in this process plays no part, so all workers agree.
                brings = _package_of(top)
                parts[f"library {top}"] = ".".join(version(brings).split(".")[:2]) if brings else "not installed"
        late += [Late(place, line, name.module) for line, name in _inside_functions(tree, package) if
                 is_local(folder, name.module.partition(".")[0])]  # fmt: skip
    return OwnFiles(modules, parts, frozenset(uses), tuple(late))


def is_local(folder: Path, top: str) -> bool:
    """True if a top-level module is a file or a package in the folder, and hides nothing that is installed."""
    if not top or top == _PRODUCT or top in sys.stdlib_module_names:
        return False
    return ((folder / f"{top}.py").is_file() or (folder / top).is_dir()) and top not in _installed()


def _files(folder: Path, name: Name) -> Iterator[tuple[str, Path]]:
    """Dotted name -> file of a local module, of the packages that it lies in, and of what is taken from it."""
    words = name.module.split(".")
    tried = [words[: n + 1] for n in range(len(words))] + ([[*words, name.name]] if name.name else [])
    for each in tried:
        place = folder.joinpath(*each)
        for path in (place / "__init__.py", place.with_name(f"{place.name}.py")):
            if path.is_file():
                yield ".".join(each), path
                break


def _inside_functions(tree: ast.Module, package: str) -> Iterator[tuple[int, Name]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    yield from ((node.lineno, name) for _, name in imported_names(node, package))


def _package_of(top: str) -> str | None:
    """The installed package that brings a top-level module; most have its name, which spares a look at all of them."""
    with suppress(PackageNotFoundError):
        if f"\n{top}/__init__.py," in f"\n{distribution(top).read_text('RECORD') or ''}":
            return top
    return next(iter(_installed().get(top, ())), None)


@cache
def _installed() -> Mapping[str, list[str]]:
    return packages_distributions()
