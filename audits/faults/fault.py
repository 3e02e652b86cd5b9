"""A planted fault: its name, how it is planted, and what must catch it."""

from __future__ import annotations

import math
import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING

BOTH, DRAWN, ALL = (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE), (SAMPLING, DETERMINISTIC, NOISE)
LITTLE, MUCH = 20_000, 100_000
"""Replays on each side: what most faults take, and what small factors take."""


Host = Any
"""An algorithm, or a part of one such as a sum, that a fault is planted in: it is taken apart by fields of its family."""
State = Any
"""A sensitive or a released state: the named tuple of its family, to which `extended` may have added fields."""
Plant = Callable[[Host], Host]
"""Honest host -> the faulty one."""


@dataclass(frozen=True)
class Control:
    """One planted fault, which an audit must catch.

    Attributes:
      name: short name; one fault has one name in all families.
      fault: what is wrong, in words; mu0 (or epsilon) is what the honest algorithm has.
      plant: honest algorithm -> faulty one.
      caught_by: the audits that must catch it.
      factor: true mu over the claimed one on the pairs of a building block; infinite if unknown or without privacy.
      replays: on each side, with which the sampling audit catches it at mu0 = 1 and 95 %, if it must.
      is_sampled: whether replays look for it too, beside what must catch it.
      is_fault: honest algorithm -> whether it is a fault of this one; a planted one that changes nothing proves no power.
    """

    name: str
    fault: str
    plant: Plant
    caught_by: tuple[str, ...] = BOTH
    factor: float = math.inf
    replays: int = LITTLE
    is_sampled: bool = field(default=True, kw_only=True)
    is_fault: Callable[[Host], bool] = field(default=lambda honest: True, kw_only=True)

    def caught(self, *audits: str) -> Control:
        """The same fault, which these audits must catch."""
        return replace(self, caught_by=audits)


def fault_of(
    word: Callable[..., object],
    caught_by: tuple[str, ...] = BOTH,
    *,
    how: Callable[[Host], Plant] | None = None,
    **more: Any,
) -> Control:
    """The fault that a class or a function is: named as it is, with dashes, in the words of its docstring's first line.

    Args:
      word: the class or the function.
      caught_by: the audits that must catch it.
      how: word -> what plants it, honest algorithm -> faulty one; None: a class as in `planted_as`, a function as it is.
      **more: other fields of `Control`.
    """
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", word.__name__).lower().replace("_", "-").strip("-")
    words = (word.__doc__ or name).partition("\n")[0].rstrip(".")
    plant = how(word) if how is not None else planted_as(word) if isinstance(word, type) else word
    return replace(Control(name, words, plant, caught_by), **more)


def without(controls: Iterable[Control], *names: str) -> tuple[Control, ...]:
    """The faults of all other names."""
    return tuple(control for control in controls if control.name not in names)


def caught_as(audits: Mapping[str, tuple[str, ...]], controls: Iterable[Control]) -> tuple[Control, ...]:
    """The same faults; for those named, what must catch them is replaced."""
    return tuple(control.caught(*audits.get(control.name, control.caught_by)) for control in controls)


def planted_as(faulty: type, **more: object) -> Plant:
    """Honest algorithm or sum -> one of the faulty class with the same fields, and more or other ones.

    The faulty class is mixed into the honest one where it overrides methods of a class above it.
    """

    def plant(honest: Host) -> Host:
        kind: type = type(honest)
        return _mixed(faulty, kind)(**{part.name: getattr(honest, part.name) for part in fields(honest)} | more)

    return plant


@lru_cache
def _mixed(faulty: type, honest: type) -> type:
    return faulty if issubclass(faulty, honest) else type(faulty.__name__, (faulty, honest), {})


def with_part(change: Plant, part: str = "sums") -> Plant:
    """Honest algorithm -> the same with one part changed."""
    return lambda honest: replace(honest, **{part: change(getattr(honest, part))})


def extended(state: State, **more: object) -> State:
    """A named tuple with more fields: the state of a faulty algorithm that keeps what it must not."""
    return _extended((*state._fields, *more))(*state, *more.values())


@lru_cache
def _extended(names: tuple[str, ...]) -> Callable[..., State]:
    return namedtuple("Extended", names)
