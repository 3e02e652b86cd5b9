"""Writes `bandana-verify.py`: the standalone verifier and all modules that it imports, as they stand, in one file."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

NAME = "bandana-verify.py"
_ROOT, _MAIN = "bandana", f"{__package__}.standalone"
_HEAD = '''"""Recomputes the bounds and verdicts of Bandana's evidence files, reports and bundles. It needs NumPy and SciPy.

    python bandana-verify.py EVIDENCE.npz | report.json | BUNDLE.zip

Below are {n} modules of Bandana as they stand in its sources, and at the end what loads them. Nothing is downloaded, nothing
is written but a temporary folder, and no audited algorithm runs. SHA-256 of the modules: {digest}
"""

import sys

if __name__ == "__main__" and not (sys.flags.isolated or sys.flags.safe_path):
    del sys.path[0]  # the folder of this file: what lies beside it came with it, and may be named like a library

from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

SOURCES = {{}}

'''
_TAIL = f'''

class Modules(MetaPathFinder, Loader):
    """Finds the modules above before any that are installed."""

    def find_spec(self, name, path=None, target=None):
        if name not in SOURCES:
            return None
        is_package = any(other.startswith(name + ".") for other in SOURCES)
        return ModuleSpec(name, self, origin="bandana-verify.py: " + name, is_package=is_package)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.__file__ = module.__spec__.origin
        exec(compile(SOURCES[module.__name__], module.__spec__.origin, "exec"), module.__dict__)


if __name__ == "__main__":
    sys.meta_path.insert(0, Modules())
    from {_MAIN} import main

    sys.exit(main())
'''
_LAZY = '''"""Names of this package, each loaded with its module when it is asked for."""

_HOME = {home}


def __getattr__(name):
    from importlib import import_module

    if name not in _HOME:
        raise AttributeError(f"module {{__name__!r}} has no attribute {{name!r}}")
    return getattr(import_module(_HOME[name][0]), _HOME[name][1])
'''


@cache
def source() -> str:
    """The text of the verifier; the same sources give the same text."""
    modules = _closure()
    digest = hashlib.sha256("".join(f"{name}\n{modules[name]}" for name in modules).encode()).hexdigest()
    parts = [f"SOURCES[{name!r}] = {_literal(text)}\n" for name, text in modules.items()]
    return _HEAD.format(n=len(modules), digest=digest) + "\n".join(parts) + _TAIL


def _closure() -> dict[str, str]:
    """Name -> source of every module that the verifier loads, packages in lazy form, in alphabetical order."""
    sources: dict[str, str] = {}
    waiting = [_MAIN]
    while waiting:
        name = waiting.pop()
        if name in sources:
            continue
        place = _place(name)
        tree = ast.parse(text := place.read_text(encoding="utf-8"))
        if place.name == "__init__.py":
            sources[name] = _lazy(tree)
        else:
            sources[name] = text
            waiting += _imported(tree)
        if name != _ROOT:
            waiting.append(name.rpartition(".")[0])
    return dict(sorted(sources.items()))


def _place(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} has no source file")
    return Path(spec.origin)


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _imported(tree: ast.Module) -> Iterator[str]:
    """Modules of ours that a module needs when it is loaded; a name of a package is one of the module that defines it."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _ROOT and not node.level:
            for alias in node.names:
                yield from _homes(str(node.module), alias.name)


def _homes(module: str, name: str) -> Iterator[str]:
    if _is_module(f"{module}.{name}"):
        yield f"{module}.{name}"
        return
    place = _place(module)
    yield module
    if place.name == "__init__.py":
        home = _names(ast.parse(place.read_text(encoding="utf-8"))).get(name)
        if home is not None:
            yield from _homes(*home)


def _names(tree: ast.Module) -> dict[str, tuple[str, str]]:
    """Name in a package -> module and name that it is imported from."""
    return {
        alias.asname or alias.name: (str(node.module), alias.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _ROOT
        for alias in node.names
    }


def _lazy(tree: ast.Module) -> str:
    """A package that imports a module when one of its names is asked for: most are never asked for here."""
    home = _names(tree)
    lines = "".join(f"    {name!r}: {home[name]!r},\n" for name in sorted(home))
    return _LAZY.format(home="{\n" + lines + "}" if lines else "{}")


def _literal(text: str) -> str:
    """The text as Python, readable where it can be."""
    is_plain = "'''" not in text and not text.endswith(("'", "\\"))
    return f"r'''{text}'''" if is_plain else repr(text)
