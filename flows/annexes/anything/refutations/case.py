"""A case of the campaign: `case.yaml` in a folder, with the program that runs the code it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, ValidationError, model_validator

from bandana.flows.texts.fields import Count, Positive, Strict
from bandana.flows.texts.mistakes import SpecError, explain_all

CASE, PROGRAM, MEASURED = "case.yaml", "program.py", "measured.json"
STATED = "stated"
"""In place of a claim: the library states it, and the program asks for it."""
_PINNED = r"^[A-Za-z0-9._-]+==[A-Za-z0-9.+!-]+$"
Role = Literal["defect", "fixed", "search"]
Pinned = Annotated[str, Field(pattern=_PINNED)]


class Planned(Strict):
    """One audit of a case; with a grid, one for each combination of its values."""

    mechanism: str = Field(description="What makes the claim, by its public name; counted once however often it is audited.")
    role: Role = Field(description="`defect`: known to break its claim; `fixed`: after the fix; `search`: nothing is known.")
    packages: str = Field(description="Name of the set of packages that it runs in.")
    release: str = Field(description="Function of the program, of (data, seed, **parameters).")
    parameters: dict[str, object] = Field(default_factory=dict, description="Further arguments of the function.")
    grid: dict[str, list[object]] = Field(default_factory=dict, description="Parameter -> values, of which all are audited.")
    claim: str = Field(description="What is claimed; {NAME} stands for a parameter, and `stated` asks the library.")
    data: object = Field(description="A data set, as the program reads it.")
    neighbor: object = Field(description="Its neighbor.")
    pair: str = Field(default="", description="How the two differ, in words.")
    runs: Count = Field(default=20_000, description="Runs on each side, at most.")
    seconds: Positive = Field(default=60.0, description="For all runs.")

    @property
    def name(self) -> str:
        """The mechanism with its parameters."""
        shown = ", ".join(f"{key}={value}" for key, value in self.parameters.items())
        return f"{self.mechanism}({shown})" if shown else self.mechanism

    def expanded(self) -> Iterator[Planned]:
        """One audit for each combination of the grid's values; every text {NAME} stands for that parameter."""
        for values in product(*self.grid.values()):
            parameters = self.parameters | dict(zip(self.grid, values, strict=True))
            claim = self.claim
            for key, value in parameters.items():
                claim = claim.replace(f"{{{key}}}", str(value))
            yield self.model_copy(update={"grid": {}, "parameters": parameters, "claim": claim})


class Case(Strict):
    """A case of the campaign, as its folder describes it."""

    title: str = Field(description="The defect, or what is searched, in a sentence.")
    library: str = Field(description="Library or paper that makes the claim.")
    source: str = Field(description="Where the claim is made.")
    reported: list[str] = Field(default_factory=list, description="Issues and pull requests of the project.")
    cause: str = Field(default="", description="Why the claim fails.")
    remedy: str = Field(default="", description="The fix, and where it is released.")
    packages: dict[str, list[Pinned]] = Field(description="Name -> all packages, pinned, that are installed together.")
    audits: Annotated[list[Planned], Field(min_length=1)]

    @model_validator(mode="after")
    def _named(self) -> Case:
        for audit in self.audits:
            if audit.packages not in self.packages:
                raise ValueError(f"audits: packages must be one of {', '.join(self.packages)}, got {audit.packages!r}")
        return self

    @property
    def planned(self) -> tuple[Planned, ...]:
        """All audits, grids expanded."""
        return tuple(one for audit in self.audits for one in audit.expanded())


def read(folder: Path) -> Case:
    """The case in a folder.

    Raises:
      SpecError: a file is missing, or a field is wrong; the message names both.
    """
    place = folder / CASE
    try:
        text = place.read_text(encoding="utf-8")
        case = Case.model_validate(yaml.safe_load(text))
    except (OSError, yaml.YAMLError) as error:
        raise SpecError(f"{place}: cannot be read: {error}") from error
    except ValidationError as error:
        raise SpecError(explain_all(error.errors(), Case, yaml.compose(text), str(place))) from error
    if not (folder / PROGRAM).is_file():
        raise SpecError(f"{folder}: holds no {PROGRAM}")
    return case


def read_all(folder: Path) -> Mapping[str, Case]:
    """All cases of a campaign, by the name of their folder.

    Raises:
      SpecError: there is none, or one cannot be read.
    """
    places = sorted(place.parent for place in folder.glob(f"*/{CASE}"))
    if not places:
        raise SpecError(f"{folder}: holds no case: a case is a folder with {CASE} and {PROGRAM}; see docs/refutations.md")
    return {place.name: read(place) for place in places}
