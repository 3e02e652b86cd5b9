"""Tidy tables of a suite's numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bandana.algorithms.environments.off_policy import DR, IPS, SNIPS
from bandana.audits.documents.audit import AuditEntry
from bandana.audits.reporting.intervals import caution, mean_interval, quantiles, simultaneous_intervals
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.store import Store
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.roles import Role
from bandana.flows.queries.catalog import of_name, selected
from bandana.flows.results.comparisons import twin_of
from bandana.flows.results.summaries import CURVES, Summary
from bandana.flows.tracking.metrics import numbers_of
from bandana.layers import LateModule

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = LateModule("pandas")

_ESTIMATES = (IPS, SNIPS, DR)
_REGRET = ("regret", "regret_low", "regret_high", "regret_q10", "regret_q50", "regret_q90", "caution")
_COMPARISON = ("kind", "cell", "other", "difference", "difference_low", "difference_high", "simultaneous_low",
               "simultaneous_high", "p_value", "caution")  # fmt: skip
_PRIVACY = tuple(f"{quantity}_{name}" for quantity in ("mu", "epsilon") for name in ("claimed", "accounted", "measured"))
_ENDS = {"": "value", "_low": "low", "_high": "high"}
"""Ending of the column of an estimate -> its name among the values of a summary."""
_VALUES = (*(f"value_{estimate}{end}" for estimate in _ESTIMATES for end in _ENDS), "value_effective_rounds")


def frame(cells: Sequence[Cell], summaries: Mapping[str, Summary], audits: Mapping[str, AuditEntry]) -> pd.DataFrame:
    """A row for each cell, see `Result.frame`."""
    own = [cell for cell in cells if cell.role is Role.ALGORITHM]
    whose = {twin.name: cell.name for cell in own if (twin := twin_of(cell, cells)) is not None}
    rows = []
    for cell in cells:
        summary = summaries[cell.name]
        row: dict[str, object] = {
            "cell": cell.name,
            "environment": cell.environment.label,
            "algorithm": cell.entry.name,
            "calibration": cell.settings.calibration,
            "privacy_model": cell.entry.privacy_model,
            "guarantee": cell.entry.guarantee,
            "role": str(cell.role),
            "twin_of": whose.get(cell.name),
        }
        # A twin has the widths of a level, and not its privacy.
        known = cell.settings.level() if cell.role is Role.TWIN else {}
        given = {name: value for name, value in cell.parameters().items() if name not in known}
        row |= {name if name not in row else f"parameter_{name}": value for name, value in given.items()}
        row |= {"replications": cell.spec.replications, **_regret(cell, summary)}
        row |= {f"test_{name}": value for name, value in (summary["decision"] or {}).items() if not name.endswith("_text")}
        row |= _values(cell, summary) | _privacy(cell, audits.get(cell.name))
        rows.append(row | {metric.column: number.value for metric, number in numbers_of(cell, summary).items()})
    table = pd.DataFrame(rows)
    values = [name for name in _VALUES if name in table.columns]
    last = ["replications", *_REGRET, *values, "delta", *_PRIVACY, "verdict"]
    return table[[name for name in table.columns if name not in last] + last]


def catalog(name: str | None = None, *, model: str | None = None, family: str | None = None) -> pd.DataFrame:
    """The catalog's algorithms, a row for each trust model and guarantee.

    Columns: `algorithm`, `label`, `family`, `plays_on` (kinds of problems), `privacy_model`, `guarantee`, `calibrations`,
    `parameters` (each with its default, in words), `has_bound` (whether a bound on its regret is known), `claim`, `source`.

    Args:
      name: one algorithm; None: all.
      model: trust model, such as central; None: all.
      family: such as rl or bandits/kernel; None: all.

    Raises:
      SpecError: there is no such algorithm, trust model or family.
    """
    known = [entry for entry in selected(model, family) if name is None or entry in of_name(name)]
    rows = []
    for entry in known:
        facts = {"algorithm": entry.name, "label": entry.label, **entry.summary(), "has_bound": entry.bound is not None}
        rows.append(facts | {"parameters": {name: each.shown_default for name, each in entry.parameters.items()}})
    order = ["algorithm", "label", "family", "plays_on", "privacy_model", "guarantee", "calibrations", "parameters"]
    return pd.DataFrame(rows, columns=[*order, "has_bound", "claim", "source"])


def curves(cells: Sequence[Cell], summaries: Mapping[str, Summary]) -> pd.DataFrame:
    """A row for each cell and round, see `Result.curves`."""
    parts = []
    for cell in cells:
        summary, is_shown = summaries[cell.name], cell.environment.shows("regret")
        shown = {name: summary[end] if is_shown else np.nan for name, end in zip(_REGRET, CURVES, strict=False)}
        spent = summary["mu_spent"] if cell.is_private else np.nan
        parts.append(pd.DataFrame({**_about(cell), "round": summary["grid"], **shown, "mu_spent": spent}))
    return pd.concat(parts, ignore_index=True)


def comparisons(pairs: Iterable[tuple[str, Cell, Cell]], summaries: Mapping[str, Summary]) -> pd.DataFrame:
    """A row for each pair of cells whose regret is shown, see `Result.comparisons`."""
    shown = [pair for pair in pairs if pair[1].environment.shows("regret") and pair[2].environment.shows("regret")]
    differences = [summaries[cell.name]["finals"] - summaries[other.name]["finals"] for _, cell, other in shown]
    rows: list[list[object]] = []
    together = zip(*simultaneous_intervals(differences), strict=True) if shown else ()
    for (kind, cell, other), values, each in zip(shown, differences, together, strict=True):
        rows.append([kind, cell.name, other.name, *map(float, mean_interval(values)), *map(float, each), caution(values)])
    return pd.DataFrame(rows, columns=[*_COMPARISON])


def replicates(cells: Sequence[Cell], store: Store) -> pd.DataFrame:
    """A row for each cell, replication and round, see `Result.curves`."""
    columns = ["cell", "environment", "role", "replication", "round", "regret"]
    parts = [pd.DataFrame(columns=columns)]
    for cell in cells:
        if not cell.environment.shows("regret"):
            continue
        played = [benchmark_block(block, store)[0] for block in cell.blocks()]
        regret, grid = np.concatenate([arrays["regret"] for arrays in played]), played[0]["grid"]
        replication, rounds = np.repeat(np.arange(len(regret)), len(grid)), np.tile(grid, len(regret))
        columns_of_cell = {**_about(cell), "replication": replication, "round": rounds, "regret": regret.ravel()}
        parts.append(pd.DataFrame(columns_of_cell))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def _about(cell: Cell) -> dict[str, str]:
    return {"cell": cell.name, "environment": cell.environment.label, "role": str(cell.role)}


def _regret(cell: Cell, summary: Summary) -> dict[str, object]:
    if not cell.environment.shows("regret"):
        return {**dict.fromkeys(_REGRET[:-1], np.nan), "caution": "regret is withheld: the data are private"}
    ends = [float(summary[name][-1]) for name in CURVES]
    return dict(zip(_REGRET, [*ends, *quantiles(summary["finals"]), caution(summary["finals"])], strict=True))


def _values(cell: Cell, summary: Summary) -> dict[str, object]:
    """Value of the final policy by logged data; nothing elsewhere."""
    values = summary["values"] if cell.environment.shows("regret") else {}
    if not values:
        return {}
    numbers = {"value_effective_rounds": values["effective"]}
    for estimate in _ESTIMATES:
        if estimate in values:
            numbers |= {f"value_{estimate}{end}": values[estimate][name] for end, name in _ENDS.items()}
    return numbers


def _privacy(cell: Cell, audit: AuditEntry | None) -> dict[str, object]:
    """Columns of privacy; those that are filled here alone are measured by the audit."""
    delta = cell.spec.audit.delta if cell.is_private else np.nan
    numbers: dict[str, object] = {**dict.fromkeys(_PRIVACY, np.nan), "delta": delta, "verdict": None}
    if audit is None:
        return numbers
    measured = {f"{quantity}_measured": audit[quantity]["measured"] for quantity in ("mu", "epsilon")}
    return numbers | measured | {"verdict": audit["verdict"]}
