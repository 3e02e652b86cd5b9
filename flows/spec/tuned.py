"""A parameter that is tuned: chosen by one rule for every cell, on seeds and instances that no report shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from bandana.flows.keys.content import content_key
from bandana.flows.texts.fields import Count, Level, Positive, Strict, distinct
from bandana.flows.texts.json_text import read_model
from bandana.flows.texts.mistakes import SpecError, plain

if TYPE_CHECKING:
    from bandana.flows.spec.spec import Spec

_PURPOSE = 10
PRIVATE_RULE = "on rows with a budget book: drawn by the exponential mechanism with epsilon {epsilon:g}"
RULE = "lowest mean final regret on the tuning seeds; of equal values the largest"


class TuningSpec(Strict):
    """A parameter whose value `bandana tune` chooses for every cell that takes it, twins included."""

    parameter: str = Field(description="Parameter to choose, such as beta_scale.")
    values: Annotated[list[Positive], Field(min_length=2), AfterValidator(distinct)] = Field(
        description="Values to try, the same for every cell."
    )
    replications: Count = Field(10, description="Replications of each cell with each value.")
    horizon: Count | None = Field(None, description="Rounds or episodes of the tuning; the benchmark's if left out.")
    epsilon: Level | None = Field(
        None, description="Epsilon of each choice, drawn by the exponential mechanism; only for tables with a budget book."
    )
    file: Path | None = Field(None, description="File of what was chosen, relative to the spec; by default NAME.tuned.json.")


class Tried(BaseModel):
    """Final regret of a cell with one value of the parameter; null where it is computed from private rows."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    value: float
    mean: float | None
    low: float | None
    high: float | None


class Tuned(BaseModel):
    """Choices of `bandana tune`, and all that it tried."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)
    format: Literal["bandana/tuned/1"] = "bandana/tuned/1"
    parameter: str
    rule: str
    seed: int = Field(description="Root of all seeds of the tuning; never that of the benchmark.")
    question: str = Field(description="Hash of what the choice depends on.")
    chosen: dict[str, float] = Field(description="Cell -> value.")
    tried: dict[str, list[Tried]] = Field(description="Cell -> its regret with each value.")


def choose(tried: list[Tried]) -> float:
    """The value with the lowest mean regret; of equal ones the largest, which is nearest to what is proved."""
    return min(tried, key=lambda each: (each.mean or 0.0, -each.value)).value


def seed_of_tuning(seed: int) -> int:
    """The root of all seeds of a tuning: instances and rewards that are drawn from it are not those of the benchmark."""
    return int(np.random.SeedSequence(seed, spawn_key=(_PURPOSE,)).generate_state(1, np.uint32)[0])


def question(spec: Spec) -> str:
    """Hash of what the choice depends on: all that is played, but not how often, with which seed and for which report."""
    facts = spec.model_dump(mode="json", include={"environment", "horizon", "algorithms", "tuning"})
    facts["tuning"].pop("file")
    if facts["tuning"]["epsilon"] is None:
        del facts["tuning"]["epsilon"]
    if facts["tuning"]["horizon"] is None:
        del facts["tuning"]["horizon"]
    for algorithm in facts["algorithms"]:
        del algorithm["replays"]  # of its audits
    # Fields that files chosen before them do not know, where they are left out.
    for item in facts["environment"]:
        if item.get("visits_per_user") is None:
            for name in ("visits_per_user", "visits_apart", "user", "beyond_visits"):
                item.pop(name, None)
    for algorithm in facts["algorithms"]:
        level = algorithm.get("privacy") or {}
        if level.get("level") == "record":
            del level["level"]
        for name in {"rho", "mu"} & level.keys():
            if level[name] is None:
                del level[name]
    return content_key(json.loads(json.dumps(facts).replace('"as-known"', '"printed"')))  # its first name


def read(place: Path, spec: Spec) -> dict[str, float]:
    """Cell -> value, as it was chosen for this spec.

    Raises:
      SpecError: nothing was chosen yet, the file is damaged, or it was chosen for another spec.
    """
    assert spec.tuning is not None
    again = f"run `bandana tune` on the spec {spec.name}"
    try:
        tuned = read_model(Tuned, place.read_bytes())
    except FileNotFoundError:
        raise SpecError(f"tuning: {place} does not exist: {again} first, which chooses {spec.tuning.parameter}") from None
    except OSError as error:
        raise SpecError(f"tuning: {place} cannot be read: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"{part}: " for part in first["loc"])
        raise SpecError(f"tuning: {place} cannot be read: {where}{plain(first)}") from error
    except ValueError as error:
        raise SpecError(f"tuning: {place} cannot be read: {error}") from error
    if tuned.question != question(spec):
        raise SpecError(f"tuning: {place} was chosen for another environment, horizon or algorithms: {again} again")
    return {cell.replace("printed", "as-known"): value for cell, value in tuned.chosen.items()} | tuned.chosen  # first names


def text_of(tuned: Tuned) -> str:
    """The file's content."""
    return json.dumps(tuned.model_dump(mode="json"), indent=1) + "\n"
