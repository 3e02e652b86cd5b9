"""The JSON documents of reports, comparisons and leaderboards, field by field, from the types that check them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

HEADS = {
    "report": """# Report format

A report's JSON file is a document of version `{version}`. This page is generated from the types in
`bandana.audits.documents`, which every document is checked against before it is written. Documents contain neither
infinity nor NaN: `null` marks a number that does not exist. `bandana.audits.reporting.validate` checks your own
documents, and `bandana schema report` prints the JSON schema.
""",
    "comparison": """# Comparison format

`bandana report --compare` writes a document of version `{version}`, whose JSON schema `bandana schema comparison` prints.
`null` marks a number that does not exist.
""",
    "leaderboard": """# Leaderboard format

`bandana leaderboard` writes a document of version `{version}` beside its page; `bandana schema leaderboard` prints its JSON
schema. `null` marks a number that does not exist.
""",
}
"""Kind of document -> what its page begins with."""


def markdown(name: str) -> str:
    """The page of a kind of document."""
    from bandana.audits.documents.form import json_schema
    from bandana.flows.commands.lookup import kinds

    schema = json_schema(kinds()[name].form)
    models = schema["$defs"]
    parts = [HEADS[name].format(version=schema["properties"]["schema"]["const"]), "## The document", _table(schema, models)]
    for name, model in models.items():
        parts += [f"## {name}", str(model["description"]), _table(model, models)]
    return "\n\n".join(parts) + "\n"


def _table(model: dict[str, Any], models: dict[str, Any]) -> str:
    rows = [f"| `{name}` | {_kind(facts)} | {_meaning(facts, models)} |" for name, facts in model["properties"].items()]
    return "\n".join(["| field | value | meaning |", "|---|---|---|", *rows])


def _kind(facts: dict[str, Any]) -> str:
    if "$ref" in facts:
        name = facts["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if "const" in facts:
        return f"`{facts['const']}`"
    if "enum" in facts:
        return ", ".join("null" if value is None else f"`{value}`" for value in facts["enum"])
    if "anyOf" in facts:
        return " or ".join(_kind(choice) for choice in facts["anyOf"])
    names = {"integer": "whole number", "string": "text", "boolean": "true or false"}
    name = names.get(facts["type"], facts["type"])
    return f"array of {_kind(facts['items'])}" if facts.get("items") else name


def _meaning(facts: dict[str, Any], models: dict[str, Any]) -> str:
    described = [facts, *(models[name] for name in _references(facts))]
    return str(next(each["description"] for each in described if "description" in each)).replace("|", "\\|")


def _references(facts: dict[str, Any]) -> Iterator[str]:
    for each in (facts, *facts.get("anyOf", ())):
        if "$ref" in each:
            yield each["$ref"].rsplit("/", 1)[-1]
