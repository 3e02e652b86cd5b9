"""The Python API by use, and a page for each module, which mkdocstrings fills in from the docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from api_doors import DOORS, Door, Part

PACKAGES = ("bandana.privacy_core", "bandana.algorithms", "bandana.audits", "bandana.flows")
"""The four floors, lowest first."""
BESIDE = ("bandana.testing", "bandana.primitives")
"""Modules that lie in the package itself."""
FOLDER = "reference/api"
DOOR_FOLDER = "reference/python"
_HEAD = """# Python API

What people use comes first. Each page lists names with one line, and each name leads to its full description.

| what for | page |
|---|---|
"""
_END = re.compile(r"(?<!\.)\. (?=[A-Z`])")
"""Where a sentence ends and another begins."""
_MODULES = """# All modules

Every module of the four layers, lowest first, as [Architecture](../../architecture.md) draws them. The pages by use are in
the [Python API](index.md).
"""


def navigation() -> list[dict[str, str]]:
    """The pages of the menu."""
    listed = {"By use": "index", **{door.title: door.file for door in DOORS}, "All modules": "modules"}
    return [{title: f"{DOOR_FOLDER}/{file}.md"} for title, file in listed.items()]


def pages(root: Path) -> dict[str, str]:
    """Every page's place and text."""
    found = {f"{DOOR_FOLDER}/{door.file}.md": _door(root, door) for door in DOORS}
    rows = [f"| {door.about.partition('. ')[0].removesuffix('.')} | [{door.title}]({door.file}.md) |" for door in DOORS]
    rows.append("| A module by its place | [All modules](modules.md) |")
    found[f"{DOOR_FOLDER}/index.md"] = _HEAD + "\n".join(rows) + "\n"
    found[f"{DOOR_FOLDER}/modules.md"] = _MODULES + "\n".join(_floor(root, package) for package in PACKAGES)
    for name, path in modules(root):
        way = "[Python API](../python/index.md) · [All modules](../python/modules.md)"
        found[_page(name)] = f"{way}\n\n# {name} {{#{name}}}\n\n::: {name}\n{_names(name, path)}"
    return found


def modules(root: Path) -> Iterator[tuple[str, Path]]:
    """Name and file of each module, those beside the four floors first."""
    for name in BESIDE:
        yield name, root / f"{name.replace('.', '/')}.py"
    for package in PACKAGES:
        yield from _modules(root, package)


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
        rows = [_row(root, name) for name in listed(root, part)]
        text += [
            f"## {part.title}",
            *([part.about] if part.about else []),
            "\n".join(["| name | what it is |", "|---|---|", *rows]),
        ]
    return "\n\n".join(text) + "\n"


def _row(root: Path, name: str) -> str:
    module, _, short = name.rpartition(".")
    return f"| [`{short}`][{name}] | {_public(root, module)[short]} |"


def _floor(root: Path, package: str) -> str:
    """The modules of a floor, folder by folder."""
    folders: dict[str, list[str]] = {}
    for name, path in _modules(root, package):
        folder = ".".join(("bandana", *path.parent.relative_to(root).parts))
        place = f"../api/{name.removeprefix('bandana.')}.md"
        folders.setdefault(folder, []).append(f"| [`{name.removeprefix(f'{package}.')}`]({place}) | {_first(path)} |")
    text = [f"\n## {package} {{#modules-of-{package.rpartition('.')[2]}}}"]
    for folder, rows in folders.items():
        text += [
            *([f"### {folder.removeprefix(f'{package}.')}"] if folder != package else []),
            "| module | what it is |\n|---|---|",
        ]
        text[-1] += "".join(f"\n{row}" for row in rows)
    return "\n\n".join(text) + "\n"


def _first(path: Path) -> str:
    """The first sentence of a module's docstring."""
    return _sentence(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))))


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


def _page(name: str) -> str:
    return f"{FOLDER}/{name.removeprefix('bandana.')}.md"


def _modules(root: Path, package: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((root / package.removeprefix("bandana.")).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[-1] != "__main__":
            yield ".".join(("bandana", *(part for part in parts if part != "__init__"))), path


def _names(name: str, path: Path) -> str:
    """What a package offers under its own name, each linked to the module that defines it."""
    if path.name != "__init__.py":
        return ""
    origins = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(name)
        for alias in node.names
    }
    link = '- <autoref optional identifier="{}"><code>{}</code></autoref>'
    shown = [link.format(origin, short) for short, origin in sorted(origins.items(), key=lambda item: item[0].lower())]
    heading = f"\n    options:\n      members: false\n\n## Offered as `from {name} import ...`\n\n"
    return heading + "\n".join(shown) + "\n" if shown else ""
