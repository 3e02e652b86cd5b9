"""Kinds of values that fields of a spec take."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, model_validator
from pydantic.fields import FieldInfo

from bandana.privacy_core.checks import LEAST_LEVEL, MOST_DELTA, MOST_LEVEL, number

T = TypeVar("T")
MOST = 10**15
"""The largest count: a float knows it exactly, and so does every product of a few with an array's index."""


def _numbers(value: object, place: str = "") -> object:
    """Numbers that were written as text, in lists too, such as 1e5, which YAML takes for text because it has no dot.

    Refuses true and false, which pydantic takes for 1 and 0, and 1_000, which it takes for 1000.
    """
    if isinstance(value, list):
        return [_numbers(item, f"{place}.{i}".lstrip(".")) for i, item in enumerate(value)]
    prefix = f"{place}: " if place else ""
    if isinstance(value, bool):
        raise ValueError(f"{prefix}must be a number, got {str(value).lower()}")
    if isinstance(value, str):
        try:
            return number(value)
        except ValueError as error:
            if "_" in value:
                raise ValueError(f"{prefix}{error}") from None
    return value


def _within_reach(value: float) -> float:
    """Refuses a level that no accountant can tell from no privacy, or from no release at all."""
    if not LEAST_LEVEL <= value <= MOST_LEVEL:
        raise ValueError(f"must lie between {LEAST_LEVEL:g} and {MOST_LEVEL:g}")
    return value


NoTruth = BeforeValidator(_numbers)
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), NoTruth]
Share = Annotated[float, Field(gt=0, lt=1), NoTruth]
Level = Annotated[Positive, AfterValidator(_within_reach)]
"""An epsilon, a mu or a rho."""
Delta = Annotated[float, Field(gt=0, le=MOST_DELTA), NoTruth]
Order = Annotated[float, Field(gt=1, le=MOST_LEVEL), NoTruth]
Count = Annotated[int, Field(ge=1, le=MOST), NoTruth]
Actions = Annotated[int, Field(ge=2, le=10_000), NoTruth]
"""Number of actions, arms or points there are to choose from."""
States = Annotated[int, Field(ge=2, le=200), NoTruth]
Steps = Annotated[int, Field(ge=1, le=1_000), NoTruth]
Dimension = Annotated[int, Field(ge=1, le=1_000), NoTruth]
MOST_POINTS, MOST_FEATURES, MOST_ENTRIES = 4_096, 10_000, 10**6
"""The largest pool of points, of which every pair has a kernel; number of features of a kernel; and table of a process."""
Points = Annotated[int, Field(ge=1, le=MOST_POINTS), NoTruth]
Choices = Annotated[int, Field(ge=2, le=MOST_POINTS), NoTruth]
"""Number of points of a pool there are to choose from."""
_EXPONENT = re.compile(r"[-+]?[0-9.]+e[-+]?[0-9]+", re.I)
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"


def distinct(values: list[T]) -> list[T]:
    """The values, none of which stands twice."""
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} stands twice")
    return values


_LISTED = BeforeValidator(lambda value: value if isinstance(value, list) else [value])  # one value: a list of one
OneOrSeveral = Annotated[list[T], _LISTED, Field(min_length=1), AfterValidator(distinct)]


_EXPONENTS = BeforeValidator(lambda value: float(value) if isinstance(value, str) and _EXPONENT.fullmatch(value) else value)
Scalar = Annotated[float | int | bool | str, _EXPONENTS]
"""A parameter of a user's own code; YAML reads 1e-5 as text, because it has no dot."""


class Strict(BaseModel):
    """A model that refuses unknown fields and numbers that are not finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _reads_numbers(cls, given: object) -> object:
        """Reads numbers where numbers are asked for, in lists too."""
        if not isinstance(given, Mapping):
            return given
        return {**given, **{name: _numbers(given[name], name) for name in _numeric_fields(cls) if name in given}}


@cache
def _numeric_fields(model: type[BaseModel]) -> tuple[str, ...]:
    """Fields that take numbers, and neither truth values nor texts nor models."""
    kinds = {name: set(_kinds(field.annotation)) for name, field in model.model_fields.items()}
    return tuple(
        name
        for name, allowed in kinds.items()
        if allowed & {int, float} and not allowed & {bool, str} and not any(issubclass(kind, BaseModel) for kind in allowed)
    )


def _kinds(annotation: object) -> Iterator[type]:
    """The types that a type consists of."""
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def fields_at(model: type[BaseModel], place: Sequence[str | int]) -> dict[str, FieldInfo]:
    """Fields that may stand at a place of a model, as pydantic writes it: with the tags of unions among its parts."""
    models = [model]
    for part in place:
        kinds = [
            kind for one in models if part in one.model_fields for kind in _kinds(one.model_fields[str(part)].annotation)
        ]
        tagged = [one for one in models if (kind := one.model_fields.get("kind")) and part in get_args(kind.annotation)]
        models = [kind for kind in kinds if issubclass(kind, BaseModel)] or tagged or models
    return {name: field for one in models for name, field in one.model_fields.items()}


def ordered(model: T) -> T:
    """Refuses a range whose low end is not below the high one; a validator of models with the fields `low` and `high`."""
    low, high = (vars(model)[name] for name in ("low", "high"))
    if not low < high:
        raise ValueError(f"low must be below high, got low = {low}, high = {high}")
    return model


class Labelled(Strict):
    """Base of what may be called something else than what it is."""

    label: Annotated[str | None, Field(pattern=NAME, max_length=40)] = Field(
        None, description="Label in cells and reports; needed only to tell two of one kind apart."
    )
    _where: str = PrivateAttr("")

    @property
    def where(self) -> str:
        """File and line of the spec that mistakes are reported under; empty where it came from no file."""
        return self._where

    def noted(self, where: str) -> None:
        """Remembers file and line of the spec."""
        self._where = where
