"""A planted fault: its name, how it is planted, and what must catch it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from bandana.algorithms.bandits.finite_arm.episodic_ucb import EpisodicUCB
from bandana.audits.outcome import DETERMINISTIC, SAMPLING


def _always(honest: Any) -> bool:
    return True


@dataclass(frozen=True)
class Control:
    """One planted fault, which an audit must catch.

    Attributes:
      name: short name.
      fault: what is wrong, in words.
      plant: honest algorithm -> faulty one.
      caught_by: the audits that must catch it.
      is_fault: honest algorithm -> whether it is a fault of this one; a planted one that changes nothing proves no power.
    """

    name: str
    fault: str
    plant: Callable[[EpisodicUCB], EpisodicUCB]
    caught_by: tuple[str, ...] = (SAMPLING, DETERMINISTIC)
    is_fault: Callable[[Any], bool] = field(default=_always, kw_only=True)


def planted_as(faulty: type[Any], **more: Any) -> Callable[[Any], Any]:
    """Honest algorithm or sum -> one of the faulty class with the same fields, and more or other ones."""
    return lambda honest: faulty(**{part.name: getattr(honest, part.name) for part in fields(honest)} | more)
