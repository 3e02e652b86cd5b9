"""Options of the command audit, in the order of its help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bandana.flows.commands.options import (
    Anonymous,
    AsJson,
    Debug,
    DryRun,
    ExecutorName,
    Workers,
    Yes,
    option,
    real_option,
    whole,
)


@dataclass(frozen=True)
class Subject:
    """Subject of an audit: exactly one of the spec, an algorithm, a mechanism, samples or the whole catalog."""

    spec: Annotated[Path | None, typer.Argument(help="The experiment, a YAML file.", show_default=False)] = None
    algorithm: Annotated[
        str | None, option("Your own, FILE.py:NAME: an algorithm, or a function (rewards, seed) -> actions.")
    ] = None
    mechanism: Annotated[
        str | None,
        option(
            "Any release: FILE.py:NAME, a function (data, seed) -> numbers, labels or text; or exec:COMMAND, tcp:HOST:PORT."
        ),
    ] = None
    neighbor: Annotated[
        str | None, option("With --mechanism: the neighbor of --data, a file (.npy, .csv, .json) or a Python literal.")
    ] = None
    samples: Annotated[
        tuple[Path, Path] | None, option("Two files with outputs of any release on a data set and on its neighbor.")
    ] = None
    all_: Annotated[bool, typer.Option("--all", help="The whole catalog and every building block.")] = False
    only: Annotated[
        list[str] | None,
        option("With --all: a label, its first words, or a pattern such as '*pure*'; give it several times."),
    ] = None


@dataclass(frozen=True)
class Neighbors:
    """Data sets and users that a claim is about."""

    pair: Annotated[
        tuple[str, str] | None,
        option("The two data sets that the claim is about, files or literals; also pair=(A, B) in it."),
    ] = None
    users: Annotated[
        str | None,
        option("With relation=user: whose each record or round is, a file or a Python list; or how many rounds a user has."),
    ] = None


@dataclass(frozen=True)
class Promise:
    """The claim, and parts of it that it may leave out."""

    claim: Annotated[str | None, option("What it promises, such as gdp(mu=1, relation=reward).")] = None
    relation: Annotated[
        str | None, option("Neighboring relation, if the claim names none: reward, record, trajectory or user.")
    ] = None
    trust: Annotated[str | None, option("Trust model, if the claim names none: central, joint, shuffle or local.")] = None


@dataclass(frozen=True)
class Search:
    """Duration and places of an audit's search."""

    replays: Annotated[int | None, option("Replays on each side; 20000.", parser=whole)] = None
    rounds: Annotated[int | None, option("Rounds of each replay; 32.", parser=whole)] = None
    arms: Annotated[int | None, option("Number of arms; 2, or as the algorithm says.", parser=whole)] = None
    confidence: Annotated[float | None, real_option("Joint confidence level of all bounds; 0.95.")] = None
    delta: Annotated[float | None, real_option("Delta at which epsilon is stated; the claim's, or 1e-5.")] = None
    examples: Annotated[int | None, option("Cases tried by the deterministic audit; 100.", parser=whole)] = None
    seed: Annotated[int | None, option("Root of all seeds; 0.", parser=whole)] = None
    probe: Annotated[list[int] | None, option("A record to plant a canary at; give it several times.", parser=whole)] = None
    low: Annotated[float | None, real_option("Lower end of the rewards that a function is given; 0.")] = None
    high: Annotated[float | None, real_option("Upper end of those rewards; 1.")] = None


@dataclass(frozen=True)
class Limits:
    """Time in seconds and memory in gigabytes that code of the user's gets."""

    seconds: Annotated[
        float | None, real_option("Time for runs of own code: 60 with --mechanism, 3600 with --algorithm.")
    ] = None
    timeout: Annotated[float | None, real_option("Seconds for one call of own code; 120.")] = None
    memory: Annotated[float | None, real_option("Gigabytes for own code; three quarters of this machine's.")] = None


@dataclass(frozen=True)
class Running:
    """Where an audit runs, and what it writes."""

    executor: ExecutorName = None
    workers: Workers = None
    dry_run: DryRun = False
    yes: Yes = False
    anonymous: Anonymous = False
    as_json: AsJson = False
    data: Annotated[
        str | None, typer.Option("--data", help="Data folder; with --mechanism the data set, as for --neighbor.")
    ] = None
    debug: Debug = False


def given(*groups: object) -> dict[str, Any]:
    """Options that the user gave, by the names of the fields of requests, where `probe` is called `probes`."""
    values = {name: value for group in groups for name, value in vars(group).items() if value is not None}
    if probe := values.pop("probe", None):
        values["probes"] = tuple(probe)
    return values


def as_typed(names: Iterable[str]) -> str:
    """Names of a request's fields as the user types the options."""
    return ", ".join("--probe" if name == "probes" else f"--{name}" for name in names)
