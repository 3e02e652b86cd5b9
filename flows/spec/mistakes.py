"""Mistakes in a spec, with the line of the file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml
from pydantic import BaseModel

_MOST_SHOWN, _MOST_MISTAKES = 200, 20
_QUOTED = re.compile(r"'[^']{200,}'|\"[^\"]{200,}\"")


class SpecError(ValueError):
    """A mistake in a spec; the message names file, line, field, value, and what is allowed."""


def shortened(text: str) -> str:
    """The text, or its first 200 characters."""
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 3]}..."


def printable(text: str) -> str:
    """The text with characters that would move a terminal's cursor, or hide, written as escapes."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def shown(value: Any) -> str:
    """A value as a message repeats it: in one line of at most 200 characters."""
    try:
        return shortened(repr(value))
    except ValueError:  # a whole number of thousands of digits, which Python does not write
        return "a number of thousands of digits"


def explain_all(items: Sequence[Any], tree: yaml.Node | None, source: str) -> str:
    """Every mistake, a line each; the first twenty of very many."""
    lines = [explain(item, tree, source) for item in items[:_MOST_MISTAKES]]
    more = len(items) - len(lines)
    return "\n".join([*lines, *([f"{source}: {more} more mistakes of this kind"] if more else [])])


def explain(item: Any, tree: yaml.Node | None, source: str) -> str:
    """One mistake: file, line, field, what is wrong, and the value."""
    node, line, path = tree, 1, ""
    message = item["msg"].removeprefix("Value error, ")
    # A rule between fields names the one to change first: look its line up.
    first = message.split(" ", 1)[0] if item["type"] == "value_error" else ""
    if ":" in first[:-1] or ".py" in first:
        first = ""  # the name of a file
    named = [int(part) if part.isdigit() else part for part in first.rstrip(":,").split(".")]
    if first.endswith(":"):
        message = message.removeprefix(first).lstrip()
    parts = (*item["loc"], *named)
    for place, part in enumerate(parts, start=1):
        child = _child(node, part)
        if child is None:
            if node is not None and item["type"] in ("missing", "extra_forbidden") and place == len(item["loc"]):
                path += f".{part}"
            continue  # a union's tag is part of the location, but of no line
        is_only = isinstance(node, yaml.ScalarNode)
        node, line = child
        if not is_only:
            path += f"[{part}]" if isinstance(part, int) else f".{part}"
    field = shortened(path.lstrip(".")) or "spec"
    value = item.get("input")
    if item["type"] == "missing":
        return f"{source}:{line}: {field}: this field is required"
    if item["type"] == "extra_forbidden":
        return f"{source}:{line}: {field}: unknown field (value {shown(value)})"
    is_nested = isinstance(value, dict | list | BaseModel)
    is_told = is_nested or (item["type"] == "value_error" and repr(value) in message)
    message = _QUOTED.sub(lambda found: f"{found.group()[:_MOST_SHOWN]}...", printable(" ".join(message.split())))
    return f"{source}:{line}: {field}: {message}{'' if is_told else f', got {shown(value)}'}"


def line_of(place: Sequence[str | int], tree: yaml.Node | None, source: str) -> str:
    """File and line of a field, with a colon and a blank, for mistakes that are found later."""
    node, line = tree, 1
    for part in place:
        if (child := _child(node, part)) is None:
            break
        node, line = child
    return f"{source}:{line}: "


def _child(node: yaml.Node | None, part: Any) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and part == 0:
        return node, node.start_mark.line + 1  # one value where a list is also allowed
    return None
