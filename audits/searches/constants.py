"""Numbers that an algorithm knows: those in its fields, and those that stand in its source."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache

_MOST, _DEEPEST = 32, 4


def constants_of(algorithm: object) -> tuple[float, ...]:
    """Finite numbers in the fields of an algorithm and its parts, then in the modules of its classes; at most 32.

    An algorithm that singles one reward out must name it somewhere.
    """
    constants: dict[float, None] = {}
    for value in (*_in_fields(algorithm), *_in_sources(algorithm)):
        if math.isfinite(value):
            constants.setdefault(value)
    return tuple(constants)[:_MOST]


def _in_fields(part: object, depth: int = 0) -> Iterator[float]:
    if isinstance(part, bool):
        return
    if isinstance(part, int | float):
        yield float(part)
    elif depth < _DEEPEST and is_dataclass(part):
        for field in fields(part):
            yield from _in_fields(getattr(part, field.name), depth + 1)
    elif depth < _DEEPEST and isinstance(part, list | tuple):
        for inner in part[:_MOST]:
            yield from _in_fields(inner, depth + 1)


def _in_sources(part: object, depth: int = 0) -> Iterator[float]:
    for kind in type(part).__mro__:
        if kind is not object:
            yield from _in_module(kind)
    if depth < _DEEPEST and is_dataclass(part):
        for field in fields(part):
            inner = getattr(part, field.name)
            if is_dataclass(inner):
                yield from _in_sources(inner, depth + 1)


@lru_cache
def _in_module(kind: type) -> tuple[float, ...]:
    """The numbers in the module of a class, those that are no whole numbers first; none where there is no source."""
    try:
        module = inspect.getmodule(kind)
        tree = ast.parse(inspect.getsource(module if module is not None else kind))
    except (OSError, TypeError, SyntaxError):
        return ()
    values = [
        float(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool)
    ]
    return tuple(dict.fromkeys(sorted(values, key=float.is_integer)))
