"""The exploration of entries: which parameter it is, the grid of factors on it, and a spec with a factor for each cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bandana.algorithms.entry import Entry
from bandana.flows.plan.cells import Cell
from bandana.flows.spec.every import EverySpec
from bandana.flows.spec.spec import AnyAlgorithm, Spec

FACTORS = (1.0, 0.3, 0.1, 0.03, 0.01)
"""Grid of all entries: how much of the exploration that is proved, or printed, they do."""
_KNOBS = {"beta_scale": 1, "beta": 1, "spread": 1, "length_scale": 1, "bonus": 1, "rate_scale": -1, "gamma_scale": -1}
"""Parameters of exploration: each entry has one of them at most; -1: the larger the parameter, the less is explored."""


def knob_of(entry: Entry) -> str | None:
    """The parameter by which an entry explores more or less; None where it has none."""
    return next((name for name in _KNOBS if name in entry.parameters), None)


def value_at(entry: Entry, factor: float) -> float:
    """Value of the entry's parameter at which it explores `factor` times as much as by default.

    Args:
      entry: one with such a parameter, see `knob_of`.
      factor: of `FACTORS`; 1 is the default of the catalog, to the last bit.
    """
    name = str(knob_of(entry))
    default = entry.parameters[name].default
    assert isinstance(default, float | int)
    return default if factor == 1 else float(f"{default * factor ** _KNOBS[name]:.6g}")


def only_cells(spec: Spec, cells: Sequence[Cell], factors: Mapping[str, float | None]) -> Spec:
    """The spec with some of its cells alone, each at a factor on its exploration.

    Args:
      spec: with items that stand for entries of the catalog, and of your own.
      cells: of its plan.
      factors: name of a cell that plays -> its factor; None, and for cells that have no such parameter and for your own
        algorithms any factor: as they are. Of your own, all cells of an item play as soon as one does.
    """
    items: list[AnyAlgorithm] = []
    for place, item in enumerate(spec.algorithms):
        own = [cell for cell in cells if cell.place == place and cell.name in factors]
        if isinstance(item, EverySpec):
            items += [_alone(item, cell, cells, factors[cell.name]) for cell in own]
        elif own:
            items.append(item)
    return spec.model_copy(update={"algorithms": items})


def _alone(item: EverySpec, cell: Cell, cells: Sequence[Cell], factor: float | None) -> EverySpec:
    """An item that stands for one cell."""
    entry, parameters = cell.entry, dict(item.parameters)
    if factor is not None and (name := knob_of(entry)) is not None:
        parameters[name] = value_at(entry, factor)
    level = cell.settings.privacy if cell.promised is None else cell.promised
    mu = None if item.mu is None else [item.mu[item.levels(entry).index(level)]]
    # A label that is a name too, such as dp-klucb, stands for all entries of that name.
    others = {other.entry.label for other in cells if other.entry.name == entry.label} - {entry.label}
    update = {
        "only": [entry.label], "leave_out": [*item.leave_out, *sorted(others)], "mu": mu, "parameters": parameters,
        "calibrations": None if cell.settings.calibration is None else [cell.settings.calibration],
    }  # fmt: skip
    return item.model_copy(update=update)
