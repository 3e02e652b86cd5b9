"""Form of a document: the first place that breaks its type, and the JSON schema that says the same to other programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails

_TYPES = {"string": "string", "int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}
"""Pydantic's name of a type in its errors -> the name of JSON schema."""
_LIMITS = {
    "greater_than_equal": ("minimum", "ge"),
    "less_than_equal": ("maximum", "le"),
    "greater_than": ("exclusiveMinimum", "gt"),
    "less_than": ("exclusiveMaximum", "lt"),
    "string_pattern_mismatch": ("pattern", "pattern"),
    "string_too_short": ("minLength", "min_length"),
    "too_short": ("minItems", "min_length"),
    "too_long": ("maxItems", "max_length"),
}
"""Kind of pydantic's error -> keyword of JSON schema, and where the error holds the limit."""


class Mistake(NamedTuple):
    """One place in a document that is not as it must be.

    Attributes:
      path: JSON path of the value.
      value: the value there.
      reason: the rule that it breaks, as the end of a sentence.
    """

    path: str
    value: object
    reason: str


def first_mistake(kind: type, document: object) -> Mistake | None:
    """Finds the first place, in order of JSON paths, where a document differs from its type; None if it has that type."""
    try:
        _adapter(kind).validate_python(document)
    except ValidationError as error:
        return min(_mistakes(error.errors(include_url=False), document), key=lambda mistake: mistake.path)
    return None


def json_schema(kind: type) -> dict[str, Any]:
    """The JSON schema of a type of documents.

    Args:
      kind: a subclass of `Document`.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "No Infinity and no NaN: null stands for a number that does not exist.",
        **_adapter(kind).json_schema(schema_generator=_Described),
    }


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


class _Described(GenerateJsonSchema):
    """Writes the description of each field, the string in its `Annotated`."""

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        written = super().typed_dict_schema(schema)
        for name, kind in get_type_hints(schema["cls"], include_extras=True).items():
            for text in getattr(kind, "__metadata__", ()):
                if isinstance(text, str):
                    written["properties"][name]["description"] = text
        return written

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _mistakes(errors: Sequence[ErrorDetails], document: object) -> Iterator[Mistake]:
    """Errors as mistakes: one for all names that a place lacks, for those that it must not have, and for its types."""
    values: dict[str, object] = {}
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for error in errors:
        kind, place, limits = error["type"], error["loc"], error.get("ctx", {})
        is_field = kind in ("extra_forbidden", "missing")
        path, value = _value_at(document, place[:-1] if is_field else place)
        values[path] = value
        if is_field:
            names[path, kind].append(str(place[-1]))
        elif kind.removesuffix("_type") in _TYPES:
            names[path, "type"].append(_TYPES[kind.removesuffix("_type")])
        elif kind in _LIMITS:
            keyword, limit = _LIMITS[kind]
            yield Mistake(path, value, f"breaks {keyword} {limits[limit]!r}")
        else:
            yield Mistake(path, value, _listed(limits["expected"]) if kind == "literal_error" else error["msg"])
    for (path, kind), names_there in names.items():
        yield Mistake(path, values[path], _REASONS[kind](names_there))


_REASONS: dict[str, Callable[[list[str]], str]] = {
    "extra_forbidden": lambda names: f"has unknown properties {', '.join(sorted(names))}; remove them",
    "missing": lambda names: f"lacks the properties {', '.join(names[:3])}{', ...' * (len(names) > 3)}",
    "type": lambda names: f"must be of type {' or '.join(names)}",
}


def _listed(choices: str) -> str:
    """Rule of a literal from pydantic's list of its choices, such as `'a', 'b' or None`."""
    return (
        f"must be one of {choices.replace(' or ', ', ').replace(chr(39), '')}" if " or " in choices else f"must be {choices}"
    )


def _value_at(document: object, steps: Sequence[int | str]) -> tuple[str, object]:
    """JSON path of an error, and the value there; a step that is no place names a member of a union."""
    path, value = "$", document
    for step in steps:
        if isinstance(value, dict) and step in value:
            path, value = f"{path}.{step}", value[step]
        elif isinstance(value, list) and isinstance(step, int):
            path, value = f"{path}[{step}]", value[step]
    return path, value
