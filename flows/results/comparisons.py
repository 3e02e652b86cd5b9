"""Paired comparisons of a benchmark's cells: replication by replication, on common random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bandana.audits.reporting.intervals import paired_interval
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role

NOISE, CALIBRATION, REFERENCE = "noise", "calibration", "reference"
"""What a difference shows: the cost of noise, one calibration instead of another, or an algorithm beside a reference row."""


def comparisons(cells: Sequence[Cell], finals: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Every comparison that a report shows.

    Args:
      cells: that were played.
      finals: cell's name -> (n_reps,) final regrets; a cell whose regret is withheld has none.

    Returns:
      `cell` minus `other`, names of two cells, with the 95 % interval of the mean difference, and the `kind`.
    """
    found = []
    for kind, cell, other in _pairs(cells):
        if cell.name in finals and other.name in finals:
            mean = paired_interval(finals[cell.name], finals[other.name])
            ends = {name: float(value) for name, value in mean._asdict().items()}
            found.append({"kind": kind, "cell": cell.name, "other": other.name, **ends})
    return found


def twin_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The same cell without noise; None where it was not played."""
    return next((each for each in cells if each.role is Role.TWIN and _is_same(each, cell)), None)


def _pairs(cells: Sequence[Cell]) -> Iterator[tuple[str, Cell, Cell]]:
    references = [cell for cell in cells if cell.role is Role.REFERENCE]
    own = [cell for cell in cells if cell.role is Role.ALGORITHM]
    for cell in own:
        if (twin := twin_of(cell, cells)) is not None:
            yield NOISE, cell, twin
        first = next(each for each in own if _question(each) == _question(cell))
        if first is not cell:
            yield CALIBRATION, cell, first
        for reference in references:
            if reference.environment.label == cell.environment.label:
                yield REFERENCE, cell, reference


def _is_same(twin: Cell, cell: Cell) -> bool:
    return _question(twin) == _question(cell) and twin.settings.calibration == cell.settings.calibration


def _question(cell: Cell) -> tuple[Any, ...]:
    """What cells have in common that differ in their calibration alone; a tuned parameter is a part of the calibration."""
    tuned = cell.spec.tuning.parameter if cell.spec.tuning is not None else None
    asked = {name: value for name, value in cell.settings.shown().items() if name != tuned}
    return cell.environment.label, cell.entry.label, tuple(asked.items())
