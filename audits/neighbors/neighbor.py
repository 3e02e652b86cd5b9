"""Differences between a data set and its neighbor, in numbers; what is shown puts them into words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bandana.algorithms.environments.data_sets import Change

Others = StrEnum("Others", "GIVEN TABLE LOWEST HIGHEST TURNS COINS RISING FALLING FIRST_ARM DRAWN")
"""All records that do not change."""
_WORDS = {
    Others.GIVEN: "",
    Others.TABLE: "; all others as in the table",
    Others.LOWEST: "; all other rewards {low:g}",
    Others.HIGHEST: "; all other rewards {high:g}",
    Others.TURNS: "; all others {low:g} and {high:g} by turns",
    Others.COINS: "; all others by fair coins",
    Others.RISING: "; others {low:g} before and {high:g} after it (record {turn})",
    Others.FALLING: "; others {high:g} before and {low:g} after it (record {turn})",
    Others.FIRST_ARM: "; arm 0 pays {high:g}, others {low:g}",
    Others.DRAWN: "; all other rewards drawn and known",
}


@dataclass(frozen=True)
class Context:
    """Records that a neighbor does not replace, and the declared range of their rewards.

    Attributes:
      turn: the record at which they rise or fall; 0 where they do not.
    """

    low: float
    high: float
    others: Others = Others.GIVEN
    turn: int = 0

    def __str__(self) -> str:
        return _WORDS[self.others].format(low=self.low, high=self.high, turn=self.turn)


@dataclass(frozen=True)
class Changed:
    """One record, or all records of one user in increasing order, that a neighbor replaces; the context holds all others."""

    records: tuple[int, ...]
    change: Change
    context: Context

    def __str__(self) -> str:
        shown, context = ", ".join(map(str, self.records)), self.context
        whose = f"{len(self.records)} records of one user ({shown})" if len(self.records) > 1 else f"record {shown}"
        outside = f", outside [{context.low:g}, {context.high:g}]" if self.is_outside else ""
        return f"{whose}: {self.change}{outside}{context}"

    @property
    def is_outside(self) -> bool:
        """True if a canary in the data as they are leaves the declared range."""
        low, high, ends = self.context.low, self.context.high, (self.change.before, self.change.after)
        return self.context.others is Others.GIVEN and not all(low <= end <= high for end in ends)


@dataclass(frozen=True)
class Canaries:
    """Records that coins put into one run of so many, or leave out."""

    n_canaries: int
    n_records: int

    def __str__(self) -> str:
        return f"{self.n_canaries} canaries in one run of {self.n_records} records"


@dataclass(frozen=True)
class Given:
    """Two data sets that somebody gave, by their giver's name for them."""

    name: str

    def __str__(self) -> str:
        return self.name


Neighbor = Changed | Canaries | Given
