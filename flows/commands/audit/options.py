"""Options of the commands that audit, in groups that they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import typer

from bandana.flows.commands.options import (
    Anonymous,
    AsJson,
    Debug,
    Device,
    ExecutorName,
    Workers,
    Yes,
    option,
    real_option,
    whole,
)


@dataclass(frozen=True)
class Replays:
    """Length of an audit."""

    PANEL: ClassVar = "Search"
    RARE: ClassVar[tuple[str, ...]] = ("confidence",)
    replays: Annotated[int | None, option("Replays on each side; 20000 of own code, else 100000.", parser=whole)] = None
    seed: Annotated[int | None, option("Root of all seeds; 0.", parser=whole)] = None
    confidence: Annotated[float | None, real_option("Joint confidence of bounds; 0.9996 of the catalog, else 0.95.")] = None


@dataclass(frozen=True)
class Effort(Replays):
    """Length of an audit of algorithms."""

    RARE: ClassVar[tuple[str, ...]] = ("confidence", "delta", "examples")
    delta: Annotated[float | None, real_option("Delta at which epsilon is stated; the claim's, or 1e-5.")] = None
    examples: Annotated[int | None, option("Cases tried by the deterministic audit; 100.", parser=whole)] = None


@dataclass(frozen=True)
class Writing:
    """Output of an audit."""

    PANEL: ClassVar = "Output"
    RARE: ClassVar = ("debug",)
    as_json: AsJson = False
    anonymous: Anonymous = False
    debug: Debug = False


@dataclass(frozen=True)
class Here(Writing):
    """Output of an audit, with the data folder."""

    data: Annotated[str | None, typer.Option("--data", help="Data folder; the default is ./bandana_data.")] = None


@dataclass(frozen=True)
class Running(Here):
    """Where an audit runs, and what it writes."""

    executor: ExecutorName = None
    workers: Workers = None
    device: Device = None
    yes: Yes = False


def given(*groups: object) -> dict[str, Any]:
    """Options that the user gave, by the names of the fields of requests, where `probe` is called `probes`."""
    values = {name: value for group in groups for name, value in vars(group).items() if value is not None}
    if probe := values.pop("probe", None):
        values["probes"] = tuple(probe)
    return values
