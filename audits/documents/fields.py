"""Kinds of values that documents hold, and the type that all of their objects derive from.

Documents are plain dictionaries, typed as `TypedDict`: what is written is what was built, and pydantic checks it and derives
the JSON schema. Other fields are refused, and no value is converted. The string in `Annotated` is a field's description.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, with_config
from typing_extensions import TypedDict

T = TypeVar("T")


@with_config(ConfigDict(extra="forbid", strict=True))
class Document(TypedDict):
    """A JSON object with the fields of its type and no others."""


def present(value: T | None) -> T:
    """Value of a field that is not null where it is read."""
    if value is None:
        raise ValueError("this field of the document is null")
    return value


def _is_day(text: str) -> str:
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        raise ValueError("must be a day, YYYY-MM-DD")
    date.fromisoformat(text)
    return text


Text = Annotated[str, Field(min_length=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
"""ISO 8601 with offset; `validate` checks it."""
Day = Annotated[str, Field(json_schema_extra={"format": "date"})]
RealDay = Annotated[Day, AfterValidator(_is_day)]
"""A day of the calendar, YYYY-MM-DD."""

Count = Annotated[int, Field(ge=0)]
Size = Annotated[int, Field(ge=1)]
NonNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]
Factor = Annotated[float, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Probability = Annotated[float, Field(gt=0, lt=1)]
"""A probability that is neither 0 nor 1."""

AtLeast1 = Field(min_length=1)
AtLeast2 = Field(min_length=2)
Exactly3 = Field(min_length=3, max_length=3)
