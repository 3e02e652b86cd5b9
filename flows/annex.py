"""Annexes: what the product does beside its mission; each is a folder below `annexes`, and a line here.

The core imports no annex, and no annex another one: `python -m benchmarks.without ANNEX` removes one, and tests the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pkgutil import resolve_name
from typing import Any

NAMES = (
    "publication",
    "leaderboard",
    "anything",
    "compliance",
    "planning",
    "crosscheck",
    "books",
    "operations",
    "live",
    "machines",
    "devices",
)  # fmt: skip
"""The table of annexes."""
DEVICE = "BANDANA_DEVICE"
"""Environment variable: what replays run on, as torch names it; `--device` sets it, and workers inherit it."""


@dataclass(frozen=True)
class Annex:
    """Additions of an annex to the core; its package holds one as `ANNEX`.

    Attributes:
      plugs: name of a point of the core -> what the annex adds there, by name, as a lazy `module:name`. The core's points:
        `commands`, functions of the command line, in the order of the help; `groups`, commands with commands of their own;
        `panels`, the panel of the help for each of both, one of `flows.cli.PANELS`;
        `steps`, functions of (plan, data folder) that return JSON rows, which the suite flow runs;
        `books`, the class of a `flows.cells.charging.BookKeeper`; `list`, functions that return lines below `bandana list`;
        `runners`, functions of (address, number of workers) that return a Prefect task runner, by the executor's name;
        `limits`, contexts of (place for a note) that hold a task to its time limit where Prefect cannot;
        `devices`, functions of a device's name that play replays there;
        `stores`, functions of an address that return `flows.folder.store.Files`, by the scheme of the address;
        `documents`, a `Kind` of document (`audits/reporting/kinds.py`) by its name;
        `reports`, functions of (place of a spec, data folder) that write what `bandana report --NAME` names, and return a
        JSON object and lines; `results`, functions of (result, ...) that plot it and export it;
        `names`, objects that `import bandana` offers beside the core's names; `environments`, `Classes` of more kinds.
      pages: files outside its folders that go with it, such as pages of the documentation.
    """

    plugs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    pages: tuple[str, ...] = ()


@cache
def annexes() -> tuple[Annex, ...]:
    """All annexes, in the order of the table."""
    return tuple(import_module(f"bandana.flows.annexes.{name}").ANNEX for name in NAMES)


def plugs_at(point: str) -> dict[str, str]:
    """Everything that annexes add at a point of the core, by name, as `module:name`; nothing of it is imported."""
    return {name: place for annex in annexes() for name, place in annex.plugs.get(point, {}).items()}


def plugged(point: str) -> dict[str, Any]:
    """Everything that annexes add at a point of the core, by name; its modules are imported here, and no earlier."""
    return {name: resolve_name(place) for name, place in plugs_at(point).items()}
