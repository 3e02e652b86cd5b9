"""A page for each module; mkdocstrings fills them in from the docstrings."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGES = ("bandana.privacy_core", "bandana.algorithms", "bandana.audits", "bandana.flows")
"""The four floors, lowest first."""
FOLDER = "reference/api"


def navigation(root: Path) -> list[dict[str, Any]]:
    """The packages' modules, for the menu."""
    return [
        {package: [{name.removeprefix(f"{package}."): _page(name)} for name, _ in _modules(root, package)]}
        for package in PACKAGES
    ]


def pages(root: Path) -> dict[str, str]:
    """Every page's place and text."""
    found = {}
    for package in PACKAGES:
        for name, path in _modules(root, package):
            found[_page(name)] = f"# {name} {{#{name}}}\n\n::: {name}\n{_names(name, path)}"
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
