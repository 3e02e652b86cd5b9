"""Contents of an entry of each kind; a body that was written by hand ends in one line that names the entry."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from bandana.flows.annexes.books.bookkeeping.chain import (
    CHARGED,
    CHECKPOINT,
    EXTENDED,
    FORMAT,
    OPENED,
    REPAIRED,
    SETTLED,
    Entry,
)
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError

_LONGEST = 110
"""Characters of a reason; with the book's name and the entry, the line stays below 200."""


def _known(text: str) -> str:
    if text != FORMAT:
        raise ValueError(f"its format is {text[:40]!r}, this release reads {FORMAT!r}")
    return text


def _rising(span: tuple[int, int]) -> tuple[int, int]:
    if span[0] >= span[1]:
        raise ValueError(f"must be [first, one after the last], got {list(span)}")
    return span


Count = Annotated[int, Field(ge=1, lt=2**53)]
Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Row = Annotated[int, Field(ge=0, lt=2**53)]
Rows = Annotated[tuple[Row, Row], AfterValidator(_rising)]
Events = list[dict[str, str | int | float]]


class _Body(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, allow_inf_nan=False)


class Limit(_Body):
    """A budget; without delta it is one of pure DP."""

    epsilon: Annotated[float, Field(gt=0)]
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None


class Extended(_Body):
    """A data set that grew: the HMAC of the file, and its size in bytes."""

    data: Hash
    bytes: Row


class Opened(_Body):
    """The first entry: the data set and its budget."""

    format: Annotated[str, AfterValidator(_known)]
    data: Hash
    bytes: Row
    budget: Limit


class Charged(_Body):
    """The most that a block of replicates may cost the records of a span."""

    model_config = ConfigDict(extra="allow")

    suite: str
    cell: str
    block: Row
    key: str
    replications: Count
    relation: str
    trust: str
    noise: str
    seed: str | None
    records: Rows
    events: Events

    @property
    def facts(self) -> JsonObject:
        """Who is charged: all but the records and the events, with whatever else the entry states."""
        return self.model_dump(exclude={"records", "events"})


class Settled(_Body):
    """The events that a block drew, in place of those that the entry charged for it."""

    entry: Count
    events: Events


class Checkpoint(_Body):
    """Sum of the entries before, so that a charge need not read them again."""

    data: Count
    """Number of the entry that states the data set as it is now."""
    relation: str | None
    """Neighboring relation of the charges; None if there are none."""
    spent: list[tuple[Row, Row, Events]]
    """First row, one after the last row, and the events that they pay: one item for each span."""

    @model_validator(mode="after")
    def _spans(self) -> Checkpoint:
        for start, stop, _ in self.spent:
            _rising((start, stop))
        return self


class Repaired(_Body):
    """A clock was ahead: times after an entry are not to be trusted, and time goes on from this entry."""

    after: Row
    """Number of the last entry whose time is not ahead; 0: the first entry's time is ahead too."""
    note: str


Body = Opened | Extended | Charged | Settled | Checkpoint | Repaired
_MODELS: dict[str, type[Body]] = {
    OPENED: Opened, EXTENDED: Extended, CHARGED: Charged, SETTLED: Settled, CHECKPOINT: Checkpoint, REPAIRED: Repaired,
}  # fmt: skip


def body_of(entry: Entry) -> Any:
    """The body of an entry, checked.

    Raises:
      BookError: a field is missing or not as it must be; the message names the entry and the field.
    """
    try:
        return _MODELS[entry.kind].model_validate_json(entry.body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place, text = ".".join(map(str, first["loc"])), str(first["msg"]).removeprefix("Value error, ")
        raise BookError(reason(entry, text if text.startswith("its format") or not place else f"{place}: {text}")) from None


def reason(entry: Entry, words: str) -> str:
    """One line that names an entry and what is wrong with it."""
    short = " ".join(words.split())
    return f"entry {entry.number} ({entry.kind}): {short if len(short) <= _LONGEST else short[: _LONGEST - 3] + '...'}"
