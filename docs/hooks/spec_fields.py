"""Every field of a spec, from the JSON schema of the models that check it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from bandana.flows.spec.spec import Spec

_HEAD = """# Fields of a spec

Generated from the models that check a spec. `bandana check` reports any other field as an error, with its line.
A single value is accepted in place of a list. [Write a spec](../how-to/write-a-spec.md) shows examples.
"""

_SEVERAL = 3
"""Models that must share a field, value and meaning included, for it to be listed once."""


def markdown() -> str:
    """The page."""
    schema = Spec.model_json_schema()
    models = {"Spec": schema, **_in_order(schema)}
    titles = {name: _title(name, model) for name, model in models.items()}
    rows = {name: _rows(model, titles) for name, model in models.items()}
    counted = Counter(row for of_one in rows.values() for row in of_one.values())
    shared = [row for row in counted if counted[row] >= _SEVERAL]
    parts = [_HEAD]
    for name, model in models.items():
        own = [row for row in rows[name].values() if row not in shared]
        also = [f"`{field}`" for field, row in rows[name].items() if row in shared]
        parts += [
            f"## {titles[name]}",
            "" if name == "Spec" else _prose(model.get("description", "")),
            _table(own) if own else "",
            f"Also {', '.join(also)}: see [shared fields](#shared-fields)." if also else "",
        ]
    parts += ["## Shared fields", "Fields that several environments have, with one meaning.", _table(shared)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _rows(model: dict[str, Any], titles: dict[str, str]) -> dict[str, str]:
    """Each field's row of a table."""
    required = set(model.get("required", ()))
    return {
        field: f"| `{field}` | {_kind(facts, titles)} | {_default(field, facts, required)} | {_meaning(facts)} |"
        for field, facts in model.get("properties", {}).items()
    }


def _table(rows: list[str]) -> str:
    return "\n".join(["| field | value | default | meaning |", "|---|---|---|---|", *rows])


def _in_order(schema: dict[str, Any]) -> dict[str, Any]:
    """The nested models as the spec names them, each once."""
    found: dict[str, Any] = {}

    def visit(node: Any) -> None:
        for name in _references(node):
            if name not in found:
                found[name] = schema["$defs"][name]
                visit(found[name])

    visit({key: value for key, value in schema.items() if key != "$defs"})
    return found


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"].rsplit("/", 1)[-1]
        for key, value in node.items():
            if key != "discriminator":
                yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _title(name: str, model: dict[str, Any]) -> str:
    kind = model.get("properties", {}).get("kind", {}).get("const")
    if kind:
        return f"environment: {kind}"
    return "The spec" if name == "Spec" else re.sub(r"Spec$", "", name).lower()


def _kind(facts: dict[str, Any], titles: dict[str, str]) -> str:
    """What the value may be, in words."""
    if "$ref" in facts:
        title = titles[facts["$ref"].rsplit("/", 1)[-1]]
        return f"[{title.removeprefix('environment: ')}](#{_anchor(title)})"
    if "const" in facts:
        return f"`{facts['const']}`"
    if "enum" in facts:
        return " or ".join(f"`{value}`" for value in facts["enum"])
    choices = facts.get("anyOf") or facts.get("oneOf")
    if choices:
        return " or ".join(_kind(choice, titles) for choice in choices if choice.get("type") != "null")
    if facts.get("type") == "array":
        least = facts.get("minItems", 0)
        items = _kind(facts.get("items", {}), titles)
        of = f"({items})" if ", " in items else items
        return f"list of {of}" + (f", {least} or more" if least > 1 else "")
    names = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}
    return ", ".join([names.get(facts.get("type", ""), facts.get("type", "any")), *_limits(facts)])


def _limits(facts: dict[str, Any]) -> list[str]:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    found = [f"{word} {facts[key]:g}" for key, word in words.items() if key in facts]
    if "maxLength" in facts:
        found.append(f"at most {facts['maxLength']} characters")
    return found


def _default(field: str, facts: dict[str, Any], required: set[str]) -> str:
    if field in required:
        return "**required**"
    default = facts.get("default")
    if default is None or default == "" or isinstance(default, dict):
        return "-"
    if isinstance(default, list):
        return "none" if not default else f"`{default[0] if len(default) == 1 else default}`".replace("'", "")
    return f"`{default:g}`" if isinstance(default, int | float) and not isinstance(default, bool) else f"`{default}`"


def _meaning(facts: dict[str, Any]) -> str:
    return str(facts.get("description", "")).replace("\n", " ").replace("|", "\\|")


def _prose(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines()).strip()


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9_ -]", "", title.lower()).replace(" ", "-")
