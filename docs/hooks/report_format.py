"""The JSON documents of reports, comparisons and leaderboards, field by field, from the schemas that check them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCHEMAS = Path(__file__).parents[2] / "audits" / "reporting"
_HEAD = """# Report format

A report's JSON file is a document of version `{version}`. This page is generated from
`audits/reporting/report.schema.json`, which validates every document before it is written. Documents contain neither
infinity nor NaN: `null` marks a number that does not exist. `bandana.audits.reporting.validate` checks your own
documents.
"""
_HEAD_OF_COMPARISON = """# Comparison format

`bandana report --compare` writes a document of version `{version}`. This page is generated from
`audits/reporting/comparison.schema.json`. `null` marks a number that does not exist.
"""
_HEAD_OF_LEADERBOARD = """# Leaderboard format

`bandana leaderboard` writes a document of version `{version}` beside its page. This page is generated from
`audits/reporting/leaderboard.schema.json`. `null` marks a number that does not exist.
"""


def markdown() -> str:
    """The page on reports."""
    return _page(_HEAD, "report.schema.json")


def comparison() -> str:
    """The page on comparisons."""
    return _page(_HEAD_OF_COMPARISON, "comparison.schema.json")


def leaderboard() -> str:
    """The page on leaderboards."""
    return _page(_HEAD_OF_LEADERBOARD, "leaderboard.schema.json")


def _page(head: str, file: str) -> str:
    schema = json.loads((SCHEMAS / file).read_text(encoding="utf-8"))
    models = schema.get("$defs", {})
    parts = [head.format(version=schema["properties"]["schema"]["const"]), "## The document", _table(schema, models)]
    for name, model in models.items():
        if "properties" in model:
            parts += [f"## {name}", str(model.get("description", "")), _table(model, models)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(model: dict[str, Any], models: dict[str, Any]) -> str:
    rows = [f"| `{place}` | {_kind(facts, models)} | {_meaning(facts)} |" for place, facts in _fields(model, "")]
    return "\n".join(["| field | value | meaning |", "|---|---|---|", *rows])


def _fields(model: dict[str, Any], above: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field with its place, those of nested objects after their own."""
    for name, facts in model.get("properties", {}).items():
        yield above + name, facts
        inner = facts.get("items", {}) if facts.get("type") == "array" else facts
        if "properties" in inner:
            yield from _fields(inner, f"{above}{name}{'[]' if inner is not facts else ''}.")


def _kind(facts: dict[str, Any], models: dict[str, Any]) -> str:
    if "$ref" in facts:
        name = facts["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})" if "properties" in models[name] else _kind(models[name], models)
    if "const" in facts:
        return f"`{facts['const']}`"
    if "enum" in facts:
        return ", ".join("null" if value is None else f"`{value}`" for value in facts["enum"])
    choices = facts.get("anyOf") or facts.get("oneOf")
    if choices:
        return " or ".join(_kind(choice, models) for choice in choices)
    kinds = facts.get("type", "any")
    names = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    words = [names.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds)]
    if "items" in facts and words[0] == "array":
        words[0] = f"array of {_kind(facts['items'], models)}"
    return " or ".join(words)


def _meaning(facts: dict[str, Any]) -> str:
    return str(facts.get("description", "")).replace("\n", " ").replace("|", "\\|")
