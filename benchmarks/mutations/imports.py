"""Which tests import a file, directly or through others, as the source says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

COMMANDS = ("bandana/__main__.py", "flows/cli.py")
"""What a test runs that starts the command line in a process of its own."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_STARTS = ("subprocess", "multiprocessing")


def python_files(root: Path, folders: Iterable[str]) -> list[str]:
    """Paths of all modules under the folders, relative to the root, sorted; a file stands for itself."""
    found = (path for folder in folders for path in [*(root / folder).rglob("*.py"), *root.glob(folder)] if path.is_file())
    return sorted({path.relative_to(root).as_posix() for path in found if "__pycache__" not in path.parts})


def _files_of(module: str, importer: str, known: set[str]) -> list[str]:
    """The files that an import of a dotted name executes: packages on the way, and the module.

    Tests import helpers by their bare names, as pytest puts the folders of test files on the path.
    """
    parts = module.removeprefix("bandana.").split(".")
    for start in ("", f"{importer.rpartition('/')[0]}/", "tests/", "tests/flows/", "docs/", "docs/hooks/"):
        stem = start + "/".join(parts)
        if f"{stem}.py" in known or f"{stem}/__init__.py" in known:
            packages = [start + "/".join(parts[:n]) + "/__init__.py" for n in range(1, len(parts) + 1)]
            return [path for path in [*packages, f"{stem}.py"] if path in known]
    return []


def imported_by(path: str, tree: ast.Module, known: set[str]) -> set[str]:
    """Files that a module imports, anywhere in it; names of modules in strings count, as they may be imported later."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_files_of(alias.name, path, known))
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.update(_files_of(node.module, path, known))
            for alias in node.names:
                found.update(_files_of(f"{node.module}.{alias.name}", path, known))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.fullmatch(node.value):
            found.update(_files_of(node.value, path, known))
    return found - {path}


def import_graph(root: Path, folders: Iterable[str]) -> dict[str, set[str]]:
    """What each file imports; a test file also has its conftest files, and the command line if it starts processes."""
    files = python_files(root, folders)
    known = set(files)
    graph: dict[str, set[str]] = {}
    for path in files:
        tree = ast.parse((root / path).read_text(encoding="utf-8"))
        graph[path] = imported_by(path, tree, known)
        if path.startswith("tests/"):
            folder = path
            while folder:
                folder = folder.rpartition("/")[0]
                if (conftest := f"{folder}/conftest.py") in known and conftest != path:
                    graph[path].add(conftest)
            imports = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
            if any(name in _STARTS for name in imports):
                graph[path].update(command for command in COMMANDS if command in known)
    return graph


def closure(graph: Mapping[str, set[str]], path: str) -> set[str]:
    """A file and all that its import executes."""
    found, waiting = {path}, [path]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def importing_tests(graph: Mapping[str, set[str]], path: str) -> list[str]:
    """Test files that import a file: those that name it come first."""
    tests = [test for test in graph if is_test(test) and path in closure(graph, test)]
    return sorted(tests, key=lambda test: (path not in graph[test], test))


def is_test(path: str) -> bool:
    """Whether pytest collects a file."""
    return path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")
