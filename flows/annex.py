"""Annexes: what the product does beside its mission; each is a folder below `annexes`, and a line here.

The core imports no annex, and no annex imports another one: `python -m benchmarks.without ANNEX` removes one, with its tests
and pages, and tests the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

import typer

NAMES = (
    "anything",
    "operations",
)  # fmt: skip
"""The table of annexes."""


@dataclass(frozen=True)
class Annex:
    """What an annex adds; its package holds one as `ANNEX`.

    Attributes:
      commands: of the command line, in the order of the help.
      groups: commands with commands of their own, by name.
      plugs: name of a point of the core -> what the annex adds there, by name, each as `module:name`. The core's points:
        `steps`, functions of (plan, data folder) that return JSON rows, which the suite flow runs;
        `audits`, functions of (subject, options, limits, how) that audit what is neither a spec nor the catalog;
        `names`, what `import bandana` offers beside the core's names.
      pages: files outside its folders that go with it, such as pages of the documentation.
    """

    commands: tuple[Callable[..., None], ...] = ()
    groups: Mapping[str, typer.Typer] = field(default_factory=dict)
    plugs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pages: tuple[str, ...] = ()


@cache
def annexes() -> tuple[Annex, ...]:
    """All annexes, in the order of the table."""
    return tuple(import_module(f"bandana.flows.annexes.{name}").ANNEX for name in NAMES)


def plugged(point: str) -> dict[str, Any]:
    """Everything that annexes add at a point of the core, by name; its modules are imported here, and no earlier."""
    return {name: resolve_name(place) for annex in annexes() for name, place in annex.plugs.get(point, {}).items()}
