"""Kinds of the values in the description of an evidence file: `true` is no number, and no field stands twice."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

_WORDS = ("inf", "-inf", "nan")  # a number that JSON does not have
_MOST = 10**18


class Text:
    """Words."""


class Number:
    """A number, or one of the words for infinities."""


class Count:
    """A whole number."""


class Truth:
    """True or false."""


class Anything:
    """Whatever JSON has."""


class Event:
    """A mapping of numbers, and a name under `event`."""


class Each:
    """A mapping, of which every value is of one kind; or null, where that is allowed."""

    def __init__(self, kind: object) -> None:
        self.kind = kind


class Maybe:
    """Null, or a kind."""

    def __init__(self, kind: object) -> None:
        self.kind = kind


_QUANTITY = {"name": Text, "delta": Number, "alpha": Number}
_COVERAGE = {
    "views": [Text], "records": [Count], "rounds": Count, "values": [Number], "cases": Count, "rarest": Number, "unit": Text,
    "words": [Text], "tail": Number, "never_ran": [Text], "refused": Text,
    "walked": Count, "walked_alone": Count, "horizon": Count, "drawn": Count, "drawn_covariates": Count,
    "refused_covariates": Text,
}  # fmt: skip
_PART: dict[str, object] = {
    "schema": Text,
    "subject": Each(Text),
    "claim": {"text": Text, "statement": Text, "theorem": Text, "source": Text, "unit": Text, "mu": Maybe(Number)},
    "effort": {"replays": Count, "confidence": Number, "delta": Number, "examples": Count, "seed": Count},
    "failure": Number,
    "bounds": [
        {
            "view": Text, "attack": Text, "neighbor": Text, "quantity": _QUANTITY, "method": Text,
            "parameters": Each(Anything), "level": Number, "lower": Number, "scores": Text,
        }
    ],
    "events": Maybe([Event]),
    "counterexample": Maybe(Each(Anything)),
    "noise_finding": Maybe(Text),
    "controls": [
        {"name": Text, "fault": Text, "expected": [Text], "caught_by": [Text], "measured": Number, "limit": Number}
    ],
    "power": Number,
    "caveats": [Text],
    "about": Each(Text),
    "provenance": Maybe(Each(Anything)),
    "coverage": Maybe(_COVERAGE),
    "numbers": [{"quantity": _QUANTITY, "claimed": Number, "accounted": Maybe(Number), "measured": Number}],
    "inequalities": Each(Truth),
    "verdict": Text,
    "reasons": [Text],
}  # fmt: skip
_DESCRIPTION = {**_PART, "at_test_budget": Maybe({**_PART, "at_test_budget": Maybe(Anything)})}


def from_json(text: str) -> Any:
    """Reads a JSON text.

    Raises:
      ValueError: it is no JSON, or a field stands twice in it.
    """
    return json.loads(text, object_pairs_hook=_once)


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"{next(name for name in names if names.count(name) > 1)!r} stands twice")
    return fields


def check(description: object) -> None:
    """Checks the kind of every value of a description; fields that are missing are left to who needs them.

    Raises:
      ValueError: a value is of another kind; the message names its place.
    """
    _check(description, _DESCRIPTION, "")


def _check(value: object, kind: object, place: str) -> None:
    if isinstance(kind, Maybe):
        if value is not None:
            _check(value, kind.kind, place)
    elif isinstance(kind, Each):
        if not isinstance(value, Mapping):
            raise _wrong(place, "a mapping", value)
        for name, item in value.items():
            _check(item, kind.kind, f"{place}.{name}")
    elif isinstance(kind, dict):
        if not isinstance(value, Mapping):
            raise _wrong(place, "a mapping", value)
        for name, item in value.items():
            if name in kind:
                _check(item, kind[name], f"{place}.{name}")
    elif isinstance(kind, list):
        if not isinstance(value, list):
            raise _wrong(place, "a list", value)
        for i, item in enumerate(value):
            _check(item, kind[0], f"{place}[{i}]")
    elif kind is Event:
        if not isinstance(value, Mapping):
            raise _wrong(place, "a mapping", value)
        for name, item in value.items():
            _check(item, Text if name == "event" else Number, f"{place}.{name}")
    elif kind is Text and not isinstance(value, str):
        raise _wrong(place, "text", value)
    elif kind is Truth and not isinstance(value, bool):
        raise _wrong(place, "true or false", value)
    elif kind is Number and not _is_number(value):
        raise _wrong(place, "a number", value)
    elif kind is Count and not (_is_number(value) and isinstance(value, int) and abs(value) <= _MOST):
        raise _wrong(place, "a whole number", value)


def _is_number(value: object) -> bool:
    if isinstance(value, str):
        return value in _WORDS
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= _MOST if isinstance(value, int) else math.isfinite(value)


def _wrong(place: str, wanted: str, value: object) -> ValueError:
    shown = "a number of very many digits" if isinstance(value, int) and abs(value) > _MOST else repr(value)
    return ValueError(f"{place.lstrip('.') or 'it'} must be {wanted}, got {shown[:80]}")
