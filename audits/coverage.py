"""What an audit looked at: without it, silence says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_MOST_SHOWN = 6


@dataclass(frozen=True)
class Coverage:
    """What the searches of an audit tried, and so what its verdict is about.

    Attributes:
      views: what was compared, in words: releases, released state, actions.
      records: those that changed, increasing.
      rounds: of each replay; what shows later was not seen.
      values: that a record took on either side, increasing.
      cases: changes of a record that were tried.
      rarest: probability of the rarest event that would have been seen, about 4 over the number of runs in which it could
        have happened.
      unit: what one record is: round or episode.
    """

    views: tuple[str, ...]
    records: tuple[int, ...]
    rounds: int
    values: tuple[float, ...]
    cases: int
    rarest: float
    unit: str = "round"

    @property
    def longest_lag(self) -> int:
        """How many rounds after the first changed record a leak could still be seen."""
        return max(0, self.rounds - 1 - min(self.records, default=self.rounds - 1))

    def lines(self) -> tuple[str, str]:
        """The coverage in two lines of plain words."""
        if len(self.records) == self.rounds:
            changed = f"every record of {self.rounds} {self.unit}s"
        else:
            shown = ", ".join(map(str, self.records[:_MOST_SHOWN])) + (", ..." if len(self.records) > _MOST_SHOWN else "")
            changed = f"records {shown} of {self.rounds} {self.unit}s" if self.records else "no record"
        values = f"{len(self.values)} values from {self.values[0]:g} to {self.values[-1]:g}" if self.values else "no values"
        return (
            f"covered: {changed}, {self.cases} changes among {values}, up to {self.longest_lag} {self.unit}s later",
            f"seen in: {', '.join(self.views)}; rarest event that could be seen: probability {self.rarest:.2g}",
        )

    def describe(self) -> dict[str, Any]:
        """The same as plain JSON; `of` reads it."""
        return {**asdict(self), "views": list(self.views), "records": list(self.records), "values": list(self.values)}

    @classmethod
    def of(cls, stated: Mapping[str, Any] | None) -> Coverage | None:
        """The coverage that `describe` wrote; None of None."""
        if stated is None:
            return None
        lists = {name: tuple(stated[name]) for name in ("views", "records", "values")}
        return cls(**{**stated, **lists, "rarest": float(stated["rarest"])})
