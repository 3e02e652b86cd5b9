"""The pages of the public Python API, which mkdocstrings fills in from the docstrings."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from api_doors import DOORS, Door, Part

BESIDE = ("bandana.testing", "bandana.primitives")
"""Modules that lie in the package itself."""
FOLDER = "reference/python"
_END = re.compile(r"(?<!\.)\. (?=[A-Z`])")
"""Where a sentence ends and another begins."""


def navigation() -> list[dict[str, str]]:
    """The pages of the menu."""
    return [{door.title: f"{FOLDER}/{door.file}.md"} for door in DOORS]


def pages(root: Path) -> dict[str, str]:
    """Every page's place and text."""
    return {f"{FOLDER}/{door.file}.md": _door(root, door) for door in DOORS}


def listed(root: Path, part: Part) -> list[str]:
    """The full names of what a table lists.

    Raises:
      LookupError: a module or a name that does not exist.
    """
    found = []
    for source in part.sources:
        module, _, chosen = source.partition(":")
        public = _public(root, module)
        names = chosen.split() or [name for name, about in public.items() if about]
        if missing := [name for name in names if name not in public]:
            raise LookupError(f"{module} has no {missing[0]!r} to list in the Python API; see docs/hooks/api_doors.py")
        found += [f"{module}.{name}" for name in names]
    return found


def _door(root: Path, door: Door) -> str:
    text = [f"# {door.title}", door.about]
    for part in door.parts:
        text += [f"## {part.title}", *([part.about] if part.about else []), *(_entry(name) for name in listed(root, part))]
    return "\n\n".join(text) + "\n"


def _entry(name: str) -> str:
    options = ("heading_level: 3", "show_root_heading: true", "show_root_toc_entry: true", "show_root_full_path: false")
    return "\n      ".join((f"::: {name}\n    options:", *options))


def _sentence(docstring: str | None) -> str:
    paragraph = " ".join((docstring or "").partition("\n\n")[0].split()).replace("|", "\\|")
    return _END.split(paragraph, maxsplit=1)[0].removesuffix(".").removesuffix(":")


@cache
def _public(root: Path, module: str) -> dict[str, str]:
    """The public names that a module defines, with the first sentences of their docstrings.

    Raises:
      LookupError: there is no such module.
    """
    path = root / f"{module.removeprefix('bandana.').replace('.', '/')}.py"
    path = root / f"{module.replace('.', '/')}.py" if module in BESIDE else path
    if not path.is_file():
        raise LookupError(f"there is no module {module} to list in the Python API; see docs/hooks/api_doors.py")
    found: dict[str, str] = {}
    last = ""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) if not name.startswith("_"):
                found[name] = _sentence(ast.get_docstring(node))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith(
                "_"
            ):
                found[name], last = "", name
                continue
            case ast.Expr(value=ast.Constant(value=str(text))) if last:
                found[last] = _sentence(text)
        last = ""
    return found
