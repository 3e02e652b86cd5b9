"""Mistakes in a spec, with the line of the file."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence

import yaml
from pydantic import BaseModel
from pydantic_core import ErrorDetails

from bandana.flows.texts.fields import NAME, fields_at
from bandana.privacy_core.checks import suggestion

LONGEST_LINE = 200 - len("error: ")
"""Characters of a line of a message, which commands print after the word `error`."""
_MOST_SHOWN, _LEAST_SHOWN, _MOST_MISTAKES = 60, 24, 20
_WORD = re.compile(r"'[^']*'|\"[^\"]*\"|\S+")
_PLAINER = {
    "int_parsing": "must be a whole number", "int_from_float": "must be a whole number",
    "int_type": "must be a whole number", "int_parsing_size": "must be a smaller number",
    "float_parsing": "must be a number", "float_type": "must be a number", "string_type": "must be text",
    "bool_parsing": "must be true or false", "bool_type": "must be true or false", "list_type": "must be a list",
    "dict_type": "must be names with values, as in {name: value}", "path_type": "must be the place of a file",
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), "must be a day, as YYYY-MM-DD"),
}  # fmt: skip
"""Pydantic's kind of mistake -> what the value must be, in place of how it was read."""


class SpecError(ValueError):
    """A mistake of the user; each line of the message names file, line, field, value, and what is allowed."""

    def __init__(self, message: str = "") -> None:
        super().__init__(fitted(message))


class BookError(RuntimeError):
    """A budget book that cannot be used, or a run that it refuses; the message is one line, and nothing was drawn."""


def fitted(message: str) -> str:
    """The message with every line printable and no longer than `LONGEST_LINE`; long words and values lose their middle."""
    return "\n".join(_fitted_line(printable(line)) for line in message.split("\n"))


def _fitted_line(line: str) -> str:
    while (excess := len(line) - LONGEST_LINE) > 0:
        longest = max(_WORD.finditer(line), key=lambda word: len(word.group()), default=None)
        if longest is None or len(longest.group()) <= _LEAST_SHOWN:  # many short words: the place and the advice stay
            return f"{line[: LONGEST_LINE // 2].rstrip()} ... {line[5 - LONGEST_LINE // 2 :].lstrip()}"
        short = shortened(longest.group(), max(_LEAST_SHOWN, len(longest.group()) - excess))
        line = line[: longest.start()] + short + line[longest.end() :]
    return line


def shortened(text: str, most: int = _MOST_SHOWN) -> str:
    """The text, or its beginning and its end, with dots between, in so many characters."""
    first = most // 2 - 2
    return text if len(text) <= most else f"{text[:first]}...{text[first + 3 - most :]}"


def printable(text: str) -> str:
    """The text with characters that would move a terminal's cursor, or hide, written as escapes."""
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in text)


def shown(value: object) -> str:
    """A value as a message repeats it: in one line of at most 60 characters."""
    try:
        return shortened(repr(value))
    except ValueError:  # a whole number of thousands of digits, which Python does not write
        return "a number of thousands of digits"


def explain_all(items: Sequence[ErrorDetails], model: type[BaseModel], tree: yaml.Node | None, source: str) -> str:
    """Every mistake in what should be such a model, a line each; the first twenty of very many."""
    every = [explain(item, model, tree, source) for item in items[:_MOST_MISTAKES]]
    # Where a field takes several types, each has its mistake: the first one says it.
    lines = {tuple(line.split(": ", 2)[:2]): line for line in reversed(every)}
    more = len(items) - len(every)
    return "\n".join([*reversed(lines.values()), *([f"{source}: {more} more mistakes of this kind"] if more else [])])


def explain(item: ErrorDetails, model: type[BaseModel], tree: yaml.Node | None, source: str) -> str:
    """One mistake: file, line, field, what is wrong, and the value."""
    node, line, path = tree, 1, ""
    message = plain(item)
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
    if item["type"] in ("union_tag_invalid", "union_tag_not_found"):
        name = item["ctx"]["discriminator"].strip("'")
        line = (_child(node, name) or (None, line))[1]
        return f"{source}:{line}: {field}.{name}: {_unknown_kind(item, name)}"
    known = fields_at(model, item["loc"][:-1])
    if item["type"] == "missing":
        return f"{source}:{line}: {field}: this field is required{_meant(str(item['loc'][-1]), value, known)}"
    if item["type"] == "extra_forbidden":
        near = nearest(item["loc"][-1], [*known], "`bandana schema`")
        return f"{source}:{line}: {field}: unknown field (value {shown(value)}){near}"
    if item["type"] in ("model_type", "model_attributes_type"):
        fields = fields_at(model, item["loc"])
        required = [name for name, each in fields.items() if each.is_required() or name == "kind"]
        first = "kind" if "kind" in required else next(iter(required), "")
        example = f", such as `{first}: {shown(value)}`" if required else f", got {shown(value)}"
        return f"{source}:{line}: {field}: must be names with values{example}"
    is_nested = isinstance(value, dict | list | BaseModel)
    is_told = is_nested or (item["type"] == "value_error" and repr(value) in message)
    return f"{source}:{line}: {field}: {message}{'' if is_told else f', got {shown(value)}'}"


def unknown(what: str, name: object, options: Sequence[str], listing: str) -> str:
    """One line on a name that is none of the options: the nearest one, and all of few; `listing` shows all of many."""
    return f"unknown {what} {shown(name)}{nearest(name, options, listing)}"


def nearest(name: object, options: Sequence[str], listing: str) -> str:
    """Advice on a name that is none of the options: the nearest one, and all of few; `listing` shows all of many."""
    known = f"known are {', '.join(options)}"
    if len(known) > _MOST_SHOWN:
        known = f"{listing} shows all {len(options)}"
    return f"{suggestion(name, options) or ';'} {known}"


def _meant(missing: str, given: object, known: Collection[str]) -> str:
    """Advice on a missing field, for which `- adar-ucb:` may stand, or a name much like it."""
    others = {str(key): value for key, value in given.items() if key not in known} if isinstance(given, Mapping) else {}
    if close := difflib.get_close_matches(missing, others, n=1):
        return f"; did you mean it by {close[0]!r}?"
    meant = (key for key, value in others.items() if value is None or given == {key: value})
    return next((f"; write `{missing}: {key}` for `{key}:`" for key in meant), "")


def _unknown_kind(item: ErrorDetails, name: str) -> str:
    """An environment whose kind is missing, or none of those known."""
    if "expected_tags" not in item["ctx"] or item["input"][name] is None:
        return "this field is required; `bandana schema` shows all kinds"
    options = re.findall(r"'([^']*)'", item["ctx"]["expected_tags"])
    return unknown(name, item["input"][name], options, "`bandana schema`")


def plain(item: ErrorDetails) -> str:
    """The message of one of pydantic's mistakes in our words, without the value."""
    message = " ".join(item["msg"].removeprefix("Value error, ").split())
    if item["type"] in ("too_short", "too_long"):
        least, name = ("at least", "min_length") if item["type"] == "too_short" else ("at most", "max_length")
        limit = item["ctx"][name]
        message = f"must have {least} {limit} value{'s' * (limit != 1)}, got {item['ctx']['actual_length']}"
    if item["type"] == "string_pattern_mismatch" and item["ctx"]["pattern"] == NAME:
        message = "must be letters, digits, '.', '_' and '-', and begin with a letter or a digit"
    return _PLAINER.get(item["type"], re.sub("^(Input|String) should ", "must ", message))


def line_of(place: Sequence[str | int], tree: yaml.Node | None, source: str) -> str:
    """File and line of a field, with a colon and a blank, for mistakes that are found later."""
    node, line = tree, 1
    for part in place:
        if (child := _child(node, part)) is None:
            break
        node, line = child
    return f"{source}:{line}: "


def _child(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and part == 0:
        return node, node.start_mark.line + 1  # one value where a list is also allowed
    return None
