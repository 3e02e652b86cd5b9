"""Kinds of values that fields of a spec take."""

from __future__ import annotations

import re
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

T = TypeVar("T")
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
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


class Labelled(Strict):
    """What may be called something else than what it is."""

    label: Annotated[str | None, Field(pattern=NAME, max_length=40)] = Field(
        None, description="Label in cells and reports; needed only to tell two of one kind apart."
    )
