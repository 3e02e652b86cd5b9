"""Kinds of values that fields of a spec take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

T = TypeVar("T")
MOST = 10**15
"""The largest count: a float knows it exactly, and so does every product of a few with an array's index."""


def _no_truth(value: Any) -> Any:
    """Refuses true and false, which pydantic takes for 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"must be a number, got {str(value).lower()}")
    return value


NoTruth = BeforeValidator(_no_truth)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), NoTruth]
Share = Annotated[float, Field(gt=0, lt=1), NoTruth]
Count = Annotated[int, Field(ge=1, le=MOST), NoTruth]
Actions = Annotated[int, Field(ge=2, le=10_000), NoTruth]
"""How many actions, arms or points there are to choose from."""
States = Annotated[int, Field(ge=2, le=200), NoTruth]
Steps = Annotated[int, Field(ge=1, le=1_000), NoTruth]
Dimension = Annotated[int, Field(ge=1, le=1_000), NoTruth]
MOST_POINTS, MOST_FEATURES, MOST_ENTRIES = 4_096, 10_000, 10**6
"""The largest pool of points, of which every pair has a kernel; number of features of a kernel; and table of a process."""
Points = Annotated[int, Field(ge=1, le=MOST_POINTS), NoTruth]
Choices = Annotated[int, Field(ge=2, le=MOST_POINTS), NoTruth]
"""How many points of a pool there are to choose from."""
_EXPONENT = re.compile(r"[-+]?[0-9.]+e[-+]?[0-9]+", re.I)
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


def _several(value: Any) -> Any:
    """One value where a list is also allowed."""
    return value if isinstance(value, list) else [value]


def distinct(values: list[T]) -> list[T]:
    """The values, none of which stands twice."""
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} stands twice")
    return values


OneOrSeveral = Annotated[list[T], BeforeValidator(_several), Field(min_length=1), AfterValidator(distinct)]


def _number(value: Any) -> Any:
    """YAML reads 1e-5 as text, because it has no dot."""
    return float(value) if isinstance(value, str) and _EXPONENT.fullmatch(value) else value


Scalar = Annotated[float | int | bool | str, BeforeValidator(_number)]
"""A parameter of a user's own code."""


class Strict(BaseModel):
    """A model that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _has_no_truth_for_numbers(cls, given: Any) -> Any:
        """Refuses true and false where a number is asked for, in lists too."""
        if isinstance(given, Mapping):
            for name in _numeric_fields(cls):
                for place, value in _leaves(name, given.get(name)):
                    if isinstance(value, bool):
                        raise ValueError(f"{place}: must be a number, got {str(value).lower()}")
        return given


@cache
def _numeric_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Fields that take numbers, and neither truth values nor models."""
    kinds = {name: set(_kinds(field.annotation)) for name, field in model.model_fields.items()}
    return tuple(
        name
        for name, found in kinds.items()
        if found & {int, float} and bool not in found and not any(issubclass(kind, BaseModel) for kind in found)
    )


def _kinds(annotation: Any) -> Iterator[type]:
    """The types that a type consists of."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def _leaves(place: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _leaves(f"{place}.{i}", item)
    else:
        yield place, value


class Labelled(Strict):
    """What may be called something else than what it is."""

    label: Annotated[str | None, Field(pattern=NAME, max_length=40)] = Field(
        None, description="Label in cells and reports; needed only to tell two of one kind apart."
    )
