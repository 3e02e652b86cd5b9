"""Numbers that an algorithm knows: those in its fields, and those that stand in its source."""

from __future__ import annotations

import ast
import inspect
import math
import operator
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import pairwise

from bandana.privacy_core import Interval

_MOST, _DEEPEST = 32, 4
_MOST_THRESHOLDS = 512
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: math.pow,
}  # fmt: skip


def constants_of(algorithm: object) -> tuple[float, ...]:
    """Finite numbers in the fields of an algorithm and its parts, then in the modules of its classes; at most 32.

    An algorithm that singles one reward out must name it somewhere.
    """
    constants: dict[float, None] = {}
    for value in (*_in_fields(algorithm), *_in_sources(algorithm)):
        if math.isfinite(value):
            constants.setdefault(value)
    return tuple(constants)[:_MOST]


def thresholds_of(algorithm: object, span: Interval) -> tuple[float, ...]:
    """Numbers in a range at which the algorithm's code may decide otherwise, increasing; at most 1,023 of them.

    Its constants, those that it computes of constants alone, quotients of two (`100 * x > 37`), and what lies half way
    between two of these (`0.41 < x < 0.42`).
    """
    known = [*constants_of(algorithm), *(value for kind in type(algorithm).__mro__ for value in _in_module(kind, True))]
    known = [value for value in dict.fromkeys(known) if math.isfinite(value)]
    quotients = [one / other for one in known[:_MOST] for other in known[:_MOST] if abs(other) > 1]
    signed = (value for number in (*known, *quotients) for value in (number, -number))
    inside = sorted([*dict.fromkeys(value for value in signed if span.low <= value <= span.high)][:_MOST_THRESHOLDS])
    return tuple(sorted([*inside, *((one + other) / 2 for one, other in pairwise(inside))]))


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
def _in_module(kind: type, is_computed: bool = False) -> tuple[float, ...]:
    """The numbers in the module of a class, those that are no whole numbers first; none where there is no source.

    Args:
      kind: the class.
      is_computed: whether sums, products and the like of constants count too.
    """
    try:
        module = inspect.getmodule(kind)
        tree = ast.parse(inspect.getsource(module if module is not None else kind))
    except (OSError, TypeError, SyntaxError):
        return ()
    kinds = (ast.Constant, ast.BinOp) if is_computed else ast.Constant
    values = [value for node in ast.walk(tree) if isinstance(node, kinds) and (value := _value(node)) is not None]
    return tuple(dict.fromkeys(sorted(values, key=float.is_integer)))


def _value(node: ast.AST) -> float | None:
    """The number that an expression of constants alone has; None of any other."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if (value := _value(operand)) is not None:
            return -value
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            one, other = _value(left), _value(right)
            try:
                return None if one is None or other is None else float(_OPERATIONS[type(op)](one, other))
            except (ArithmeticError, ValueError):
                return None
    return None
