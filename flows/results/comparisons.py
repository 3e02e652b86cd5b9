"""Paired comparisons of a benchmark's cells: replication by replication, on common random numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np

from bandana.audits.documents.benchmark import PairedDifference
from bandana.audits.reporting.intervals import paired_interval
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role

Kind = Literal["noise", "calibration", "reference"]
"""Meaning of a difference: the cost of noise, one calibration instead of another, or an algorithm beside a reference row."""


def comparisons(cells: Sequence[Cell], finals: Mapping[str, np.ndarray]) -> list[PairedDifference]:
    """Every comparison that a report shows.

    Args:
      cells: that were played.
      finals: cell's name -> (n_reps,) final regrets; a cell whose regret is withheld has none.

    Returns:
      `cell` minus `other`, names of two cells, with the 95 % interval of the mean difference, and the `kind`.
    """
    pairs: list[PairedDifference] = []
    for kind, cell, other in pairs_of(cells):
        if cell.name in finals and other.name in finals:
            mean, low, high = (float(end) for end in paired_interval(finals[cell.name], finals[other.name]))
            pairs.append({"kind": kind, "cell": cell.name, "other": other.name, "mean": mean, "low": low, "high": high})
    return pairs


def twin_of(cell: Cell, cells: Sequence[Cell]) -> Cell | None:
    """The same cell without noise; None where it was not played."""
    wanted = (_question(cell), cell.settings.calibration)
    twins = (each for each in cells if each.role is Role.TWIN)
    return next((twin for twin in twins if (_question(twin), twin.settings.calibration) == wanted), None)


def pairs_of(cells: Sequence[Cell]) -> Iterator[tuple[Kind, Cell, Cell]]:
    """The pairs that a report compares, with the meaning of their difference."""
    references = [cell for cell in cells if cell.role is Role.REFERENCE]
    own = [cell for cell in cells if cell.role is Role.ALGORITHM]
    for cell in own:
        if (twin := twin_of(cell, cells)) is not None:
            yield "noise", cell, twin
        first = next(each for each in own if _question(each) == _question(cell))
        if first is not cell:
            yield "calibration", cell, first
        for reference in references:
            if reference.environment.label == cell.environment.label:
                yield "reference", cell, reference


def _question(cell: Cell) -> tuple[object, ...]:
    """Settings in common of cells that differ in their calibration alone; a tuned parameter is a part of the calibration."""
    tuned = cell.spec.tuning.parameter if cell.spec.tuning is not None else None
    settings = {name: value for name, value in cell.settings.shown().items() if name != tuned}
    return cell.environment.label, cell.entry.label, tuple(settings.items())
