"""Options of the commands that audit code of the user's, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from bandana.flows.commands.audit.options import Effort
from bandana.flows.commands.options import option, real_option, whole


@dataclass(frozen=True)
class Neighbors:
    """Data sets and users that a claim is about."""

    PANEL: ClassVar = "Claim"
    pair: Annotated[
        tuple[str, str] | None,
        option("The two data sets that the claim is about, files or literals; also pair=(A, B) in it."),
    ] = None
    users: Annotated[
        str | None,
        option("With relation=user: whose each record or round is, a file or a Python list; or how many rounds a user has."),
    ] = None


@dataclass(frozen=True)
class Stated:
    """The claim."""

    PANEL: ClassVar = "Claim"
    claim: Annotated[str | None, option("What it promises, such as gdp(mu=1, relation=reward).")] = None


@dataclass(frozen=True)
class Promise(Stated):
    """The claim, and parts of it that it may leave out."""

    RARE: ClassVar[tuple[str, ...]] = ("relation", "trust")
    relation: Annotated[
        str | None, option("Neighboring relation, if the claim names none: reward, record, trajectory or user.")
    ] = None
    trust: Annotated[str | None, option("Trust model, if the claim names none: central, joint, shuffle or local.")] = None


@dataclass(frozen=True)
class Search(Effort):
    """Duration and places of an audit's search."""

    RARE: ClassVar = (*Effort.RARE, "probe", "low", "high")
    rounds: Annotated[int | None, option("Rounds of each replay; 32.", parser=whole)] = None
    arms: Annotated[int | None, option("Number of arms; 2, or as the algorithm says.", parser=whole)] = None
    probe: Annotated[list[int] | None, option("A record to plant a canary at; give it several times.", parser=whole)] = None
    low: Annotated[float | None, real_option("Lower end of the rewards that a function is given; 0.")] = None
    high: Annotated[float | None, real_option("Upper end of those rewards; 1.")] = None


@dataclass(frozen=True)
class Limits:
    """Time in seconds and memory in gigabytes that code of the user's gets."""

    PANEL: ClassVar = "Search"
    RARE: ClassVar = ("timeout", "memory")
    seconds: Annotated[float | None, real_option("Time for runs of own code: 60 of a release, else 3600.")] = None
    timeout: Annotated[float | None, real_option("Seconds for one call of own code; 120.")] = None
    memory: Annotated[float | None, real_option("Gigabytes for own code; three quarters of this machine's.")] = None
