"""Every algorithm of the catalog with its promise and its source."""

from __future__ import annotations

from bandana.algorithms.catalog import CATALOG

_HEAD = """# Algorithms

Written from `algorithms/catalog.py`; `bandana list` shows the same, `bandana list --json` for machines.
"""


def markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for entry in CATALOG:
        facts = entry.summary()
        parts.append(f"## {entry.name}" if entry.privacy_model == "none" else f"## {entry.name} ({entry.privacy_model})")
        rows = [f"| {name.replace('_', ' ')} | {_shown(value)} |" for name, value in facts.items() if name != "name"]
        parts.append("\n".join(["| | |", "|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return ", ".join(f"`{item}`" for item in value) or "none"
    return str(value if value is not None else "none").replace("|", "\\|")
