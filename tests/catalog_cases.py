"""The catalog as test cases: all of them in `make test-all`, and in `make test` one of each group, chosen by rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import nightly
import pytest

from bandana.algorithms.catalog import CATALOG, find
from bandana.algorithms.entry import Entry
from bandana.privacy_core import Guarantee


class Case(NamedTuple):
    """An algorithm in one calibration; cheap to make, as every worker collects all of them.

    Attributes:
      name: the entry's label.
      calibration: one of the entry's; None for a non-private algorithm.
      level: promise to calibrate to; None for the test budget, and for a non-private algorithm.
    """

    name: str
    calibration: str | None
    level: Guarantee | None = None

    @property
    def entry(self) -> Entry:
        """The catalog's line."""
        return find(self.name)

    @property
    def label(self) -> str:
        """What a test is called in this case."""
        told = (self.name.replace(" ", "-"), self.calibration, self.level)
        return "-".join(str(part) for part in (told if self.level is not None or self.calibration is None else told[:-1]))


def calibrated(entries: Iterable[Entry] = CATALOG, levels: Mapping[str, Sequence[Guarantee]] | None = None) -> list[Case]:
    """Every calibration of every entry, at each level of its guarantee; without levels, once."""
    return [
        Case(entry.label, calibration, level)
        for entry in entries
        for calibration in entry.calibrations or (None,)
        for level in ((levels or {}).get(entry.guarantee or "") or (None,))
    ]


def every(cases: Iterable[Case]) -> list[Any]:
    """All cases as parameters, for what costs milliseconds."""
    return [pytest.param(case, id=case.label) for case in cases]


def one_of_each(cases: Iterable[Case], *facts: str) -> list[Any]:
    """All cases as parameters, for what costs seconds: one of each group in `make test`, the others nightly.

    As groups take turns, no calibration is left out everywhere.

    Args:
      cases: in the catalog's order.
      facts: attributes of the entry; cases that agree in all of them form a group.
    """

    def group(case: Case) -> tuple[Any, ...]:
        return tuple(getattr(case.entry, fact) for fact in facts)

    return nightly.one_of_each(cases, group, lambda case: case.label)
