"""Objects as JSON and back: each value is of its field's type, `true` is no number, and no field stands twice."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

Json = Any
"""A JSON value, or the object that it describes."""
Kind = Any
"""A type, as annotations have it."""
_hints = cache(get_type_hints)
_WORDS = ("inf", "-inf", "nan")  # numbers that JSON does not have
_MOST = 10**18
_PLAIN = {str: "text", bool: "true or false", float: "a number", int: "a whole number"}


def plain(value: Json) -> Json:
    """JSON's own types; an infinity is a word."""
    if is_dataclass(value):
        items = ((name, kind, getattr(value, name)) for name, kind in types_of(type(value)).items())
        return {name: plain(float(item) if kind is float else item) for name, kind, item in items}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    if isinstance(value, Enum):
        return value.value
    return int(value) if isinstance(value, np.integer) else value


def from_json(text: str) -> Json:
    """Reads a JSON text.

    Raises:
      ValueError: it is no JSON, or a field stands twice in it.
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields_by_name = dict(pairs)
    if len(fields_by_name) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return fields_by_name


def types_of(kind: Kind) -> Mapping[str, Kind]:
    """Field of a dataclass -> its type."""
    hints = _hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


def load_fields(kinds: Mapping[str, Kind], value: object, place: str) -> dict[str, Json]:
    """All of these fields of a JSON object, and no others; see `load`.

    Raises:
      KeyError: one is missing.
    """
    if not isinstance(value, Mapping):
        raise _wrong(place, "a mapping", value)
    if unknown := [name for name in value if name not in kinds]:
        raise ValueError(f"{f'{place}.{unknown[0]}'.lstrip('.')} is no field of evidence")
    return {name: load(kind, value[name], f"{place}.{name}") for name, kind in kinds.items()}


def load(kind: Kind, value: Json, place: str = "") -> Json:
    """The object of this type that a JSON value describes.

    Args:
      kind: a dataclass, an enumeration, str, bool, int, float, a tuple or a mapping of these, a union, or Any.
      value: as `plain` makes it.
      place: where it stands, for errors.

    Raises:
      ValueError: it is of another type; the message names the place.
      KeyError: a field is missing.
    """
    origin: object = get_origin(kind)
    parts = get_args(kind)
    if kind is Any:
        return value
    if origin is UnionType:
        return None if value is None and NoneType in parts else load(_chosen(parts, value), value, place)
    if origin is tuple:
        if not isinstance(value, list) or (parts[-1] is not ... and len(value) != len(parts)):
            raise _wrong(place, "a list", value)
        each = parts[:1] * len(value) if parts[-1] is ... else parts
        return tuple(load(part, item, f"{place}[{i}]") for i, (part, item) in enumerate(zip(each, value, strict=True)))
    if origin is not None:
        if not isinstance(value, Mapping):
            raise _wrong(place, "a mapping", value)
        return {name: load(parts[1], item, f"{place}.{name}") for name, item in value.items()}
    if isinstance(kind, type) and is_dataclass(kind):
        return kind(**load_fields(types_of(kind), value, place))
    if issubclass(kind, Enum):
        if not isinstance(value, str) or value not in [member.value for member in kind]:
            raise _wrong(place, f"one of {', '.join(member.value for member in kind)}", value)
        return kind(value)
    if not _is_plain(kind, value):
        raise _wrong(place, _PLAIN[kind], value)
    return float(value) if kind is float else value


def _chosen(parts: tuple[Kind, ...], value: object) -> Kind:
    """The type of a union that has the value's fields; the first one where none has."""
    kinds = [part for part in parts if part is not NoneType]
    fitting = (kind for kind in kinds if isinstance(value, Mapping) and is_dataclass(kind) and {*types_of(kind)} == {*value})
    return next(fitting, kinds[0])


def _is_plain(kind: type, value: object) -> bool:
    if isinstance(value, bool):
        return kind is bool
    if kind in (str, bool):
        return isinstance(value, kind)
    if isinstance(value, int):
        return abs(value) <= _MOST
    return kind is float and (value in _WORDS or (isinstance(value, float) and math.isfinite(value)))


def _wrong(place: str, wanted: str, value: object) -> ValueError:
    shown = "a number of very many digits" if isinstance(value, int) and abs(value) > _MOST else repr(value)
    return ValueError(f"{place.lstrip('.') or 'it'} must be {wanted}, got {shown[:80]}")
