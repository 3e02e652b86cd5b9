"""The page of JSON documents, and the schemas beside it, from the types that check them."""

from __future__ import annotations

import json
from typing import Any

_HEAD = """# Document formats

Reports, comparisons and leaderboards are also JSON documents, and each is checked against its types in
`bandana.audits.documents` before it is written. A schema describes every field. The command prints the schema too.
`null` marks a number that does not exist; documents contain neither infinity nor NaN.
`bandana.audits.reporting.validate` checks documents of your own.

| document | version | schema | written by | printed by |
|---|---|---|---|---|
"""
WRITERS = {
    "report": "`bandana run`, `bandana report`",
    "comparison": "`bandana report --compare`",
    "leaderboard": "`bandana leaderboard`",
}
"""Kind of document -> the commands that write it."""


def schemas() -> dict[str, str]:
    """Place and text of each JSON schema."""
    return {f"reference/{name}.schema.json": json.dumps(_schema(name), indent=2) + "\n" for name in WRITERS}


def markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for name, writers in WRITERS.items():
        version = _schema(name)["properties"]["schema"]["const"]
        schema = f"[{name}.schema.json]({name}.schema.json)"
        parts.append(f"| {name} | `{version}` | {schema} | {writers} | `bandana schema {name}` |\n")
    for name in WRITERS:
        parts.append(f"\n## {name.capitalize()} {{#{name}}}\n\n| field | meaning |\n|---|---|\n")
        schema = _schema(name)
        parts += [f"| `{field}` | {_meaning(facts, schema['$defs'])} |\n" for field, facts in schema["properties"].items()]
    return "".join(parts)


def _schema(name: str) -> dict[str, Any]:
    from bandana.audits.documents.form import json_schema
    from bandana.flows.commands.lookup import kinds

    return json_schema(kinds()[name].form)


def _meaning(facts: dict[str, Any], models: dict[str, Any]) -> str:
    named = [each["$ref"].rsplit("/", 1)[-1] for each in (facts, *facts.get("anyOf", ())) if "$ref" in each]
    described = [facts, *(models[name] for name in named)]
    return str(next(each["description"] for each in described if "description" in each)).replace("|", "\\|")
