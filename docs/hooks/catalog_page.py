"""Every entry of the catalog with its claim and its source."""

from __future__ import annotations

from bandana.algorithms.catalog import CATALOG

_HEAD = """# Catalog of algorithms

Generated from `algorithms/catalog.py`; `bandana list` prints the same, and `bandana list --json` prints it as JSON.
[Algorithms](../algorithms/index.md) explains each algorithm, with formulas and parameters.
"""


def markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for entry in CATALOG:
        facts = entry.summary()
        parts.append(f"## {entry.label}")
        rows = [f"| {name.replace('_', ' ')} | {_shown(value)} |" for name, value in facts.items() if name != "name"]
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(f"`{item}`" for item in value) or "none"
    return str(value if value is not None else "none").replace("|", "\\|")
