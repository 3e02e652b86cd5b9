"""Coverage of an audit: without it, silence says nothing."""

from __future__ import annotations

from dataclasses import dataclass

_MOST_SHOWN = 6


@dataclass(frozen=True)
class Coverage:
    """Everything that the searches of an audit tried, and so all that its verdict is about.

    Attributes:
      views: what was compared, in words: releases, released state, actions.
      records: those that changed, increasing.
      rounds: of each replay; what shows later was not seen.
      values: listed ones that a record took on either side, increasing.
      cases: changes of a record that were tried.
      rarest: probability of the rarest event that would have been seen, about 4 over the runs that could have shown it.
      unit: what one record is: round or episode.
      tail: probability of the rarest tail of one release's noise that would have been seen; 1 where no noise was widened.
      refused: what the algorithm raised under wider noise, so that no tail was searched; empty where it bore that.
      never_ran: lines of the user's file that no run reached, such as `mine.py:12-14`.
      walked: rounds of a benchmark that both sides played without replays; 0: no benchmark is longer.
      horizon: rounds of that benchmark; 0: there is none.
      walked_alone: records that differed alone in that walk.
      drawn: values of records that were drawn beside the listed ones.
      drawn_covariates: records whose contexts or states were drawn.
      refused_covariates: what the algorithm raised with drawn contexts, so that none were tried; empty where it bore them.
      words: of a release, what was covered; the other fields then say nothing.
    """

    views: tuple[str, ...]
    records: tuple[int, ...]
    rounds: int
    values: tuple[float, ...]
    cases: int
    rarest: float
    unit: str = "round"
    words: tuple[str, ...] = ()
    tail: float = 1.0
    never_ran: tuple[str, ...] = ()
    refused: str = ""
    walked: int = 0
    walked_alone: int = 0
    horizon: int = 0
    drawn: int = 0
    drawn_covariates: int = 0
    refused_covariates: str = ""

    @property
    def longest_lag(self) -> int:
        """Number of rounds after the first changed record in which a leak could still be seen."""
        return max(0, self.rounds - 1 - min(self.records, default=self.rounds - 1))

    @property
    def reach(self) -> str:
        """Rounds that were replayed and walked, of those of a benchmark; empty where no benchmark is longer."""
        n = self.horizon
        return f"replayed {self.rounds:,} of {n:,} {self.unit}s; walked {self.walked:,} of {n:,}" if self.walked else ""

    @classmethod
    def in_words(cls, words: tuple[str, ...]) -> Coverage:
        """The coverage of a release, which has no records that a search could count."""
        return cls((), (), 0, (), 0, 1.0, words=words)

    def lines(self) -> tuple[str, ...]:
        """The coverage in lines of plain words."""
        if self.words:
            return self.words
        if len(self.records) == self.rounds:
            changed = f"every record of {self.rounds} {self.unit}s"
        else:
            shown = ", ".join(map(str, self.records[:_MOST_SHOWN])) + (", ..." if len(self.records) > _MOST_SHOWN else "")
            changed = f"records {shown} of {self.rounds} {self.unit}s" if self.records else "no record"
        values = f"{len(self.values)} listed values"
        values += f" and {self.drawn:,} drawn ones" if self.drawn else ""
        what = "states" if self.unit == "episode" else "contexts"
        moved = f" ({self.drawn_covariates:,} with drawn {what})" if self.drawn_covariates else ""
        seldom = f"; of one release's noise: {self.tail:.2g}" if self.tail < self.rarest else ""
        refused = [f"tails of noise were not searched: under wider noise it raised {self.refused}"] if self.refused else []
        if self.refused_covariates:
            refused.append(f"contexts beside those of the data set were not tried: it raised {self.refused_covariates}")
        unseen = (f"never ran, so not seen: {', '.join(self.never_ran)}",) if self.never_ran else ()
        whole = f"{self.reach}: {self.walked_alone} records alone, and all, each second and the second half together"
        return (
            *((whole,) if self.walked else ()),
            f"covered: {changed}, {self.cases} changes{moved} among {values}, up to {self.longest_lag} {self.unit}s later",
            f"seen in: {', '.join(self.views)}; rarest event that could be seen: probability {self.rarest:.2g}{seldom}",
            *refused,
            *unseen,
        )
