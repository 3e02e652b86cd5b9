"""Writes a finished suite for other programs: tables as CSV and Parquet, a LaTeX table, and the figure of a paper."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandana.flows.annexes.publication.latex_table import table
from bandana.flows.texts.mistakes import SpecError

if TYPE_CHECKING:
    import pandas as pd

    from bandana.flows.api.result import Result

KINDS = ("csv", "parquet", "latex", "figure")
_FIGURES = ("pdf", "pgf", "svg")


def export(
    result: Result,
    folder: Path,
    kinds: Sequence[str],
    *,
    cells: Sequence[str] | None,
    labels: Mapping[str, str],
    sort: str | None,
    **look: Any,
) -> list[Path]:
    """Writes files of the named kinds, see `Result.export`; none means all, without a figure where all regret is withheld.

    Raises:
      SpecError: an unknown kind, or Parquet without its package.
    """
    if not kinds:
        has_regret = any(cell.environment.shows("regret") for cell in result.cells)
        kinds = [kind for kind in KINDS if has_regret or kind != "figure"]
    if wrong := [kind for kind in kinds if kind not in KINDS]:
        raise SpecError(f"export: must be among {', '.join(KINDS)}, got {wrong[0]!r}")
    if "parquet" in kinds and find_spec("pyarrow") is None:
        raise SpecError("export: parquet needs one more package: pip install pyarrow")
    first, written = result.frame(cells=cells, sort=sort), list[Path]()
    names = list(first["cell"])
    tables = {"cells": first, "curves": result.curves(), "comparisons": result.comparisons()}
    tables = {name: _chosen(frame, names, labels) for name, frame in tables.items()}
    if "csv" in kinds:
        written += [_write(folder / f"{name}.csv", tables[name].to_csv(index=False).encode()) for name in tables]
    if "parquet" in kinds:
        replicates = _chosen(result.curves(replicates=True), names, labels)
        for name, frame in {**tables, "replicates": replicates}.items():
            typed, buffer = frame.copy(), io.BytesIO()
            for column in typed.columns:  # one type each: those that hold text beside something else become text
                if len({type(value) for value in typed[column].dropna()}) > 1:
                    typed[column] = typed[column].map(str, na_action="ignore")
            typed.to_parquet(buffer, engine="pyarrow", index=False)
            written.append(_write(folder / f"{name}.parquet", buffer.getvalue()))
    if "latex" in kinds:
        spec = result.spec
        unit = {cell.environment.unit for cell in result.cells}
        heading = f"{spec.title or spec.name}: regret after {spec.horizon:,} {' or '.join(sorted(unit))}, "
        heading += f"{spec.replications} replication{'s' if spec.replications > 1 else ''}, seed {spec.seed}."
        titles = {cell.name: cell.title for cell in result.cells} | dict(labels)
        shown = tables["cells"].assign(cell_label=tables["cells"]["cell"].map(titles))
        written.append(_write(folder / "table.tex", table(shown, " ".join(heading.split())).encode()))
    if "figure" in kinds:
        for ending in _FIGURES:
            written.append(folder / f"regret.{ending}")
            result.plot(written[-1], cells=names, labels=labels, **look)
    return written


def _chosen(frame: pd.DataFrame, names: Sequence[str], labels: Mapping[str, str]) -> pd.DataFrame:
    """The rows of some cells, in their order, with a column of labels beside each column of cells."""
    for column in ("other", "cell"):
        if column in frame:
            frame = frame[frame[column].isin(names)]
            frame = frame.sort_values(column, key=lambda each: each.map(names.index), kind="stable")
            if labels:
                frame = frame.assign(**{f"{column}_label": frame[column].map(lambda name: labels.get(name, name))})
    return frame


def _write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path
