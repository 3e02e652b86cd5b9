"""The result of a suite: its numbers as tables, paired differences, one figure, and the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from bandana.audits.documents.audit import AuditEntry
from bandana.audits.reporting.intervals import caution, paired_interval
from bandana.flows.annex import plugged
from bandana.flows.api import tables
from bandana.flows.cells.audits import audit_entry, stored_audit
from bandana.flows.cells.play import is_played
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.results import comparisons
from bandana.flows.results.report_document import assemble, write
from bandana.flows.results.summaries import Summary, summarize_cell
from bandana.flows.texts.mistakes import SpecError, unknown
from bandana.layers import explained

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_REGRET = ("regret", "regret_low", "regret_high")
_IN_NOTEBOOKS = ["cell", *_REGRET, "mu_claimed", "mu_accounted", "mu_measured", "verdict", "caution"]


@dataclass(frozen=True)
class Difference:
    """Final regret of one cell minus that of another, paired by replication, with the 95 % interval of its mean.

    Attributes:
      cell: name of the first.
      other: name of the second.
      mean: mean difference, in units of reward.
      low: lower end of the interval.
      high: upper end.
      replications: pairs that it was computed from.
      caution: why the interval may be too short; None where nothing speaks for it.
    """

    cell: str
    other: str
    mean: float
    low: float
    high: float
    replications: int
    caution: str | None

    @property
    def is_resolved(self) -> bool:
        """True if the interval excludes 0; one replication has no interval."""
        return self.replications > 1 and not self.low <= 0 <= self.high

    def __str__(self) -> str:
        ends = f" [{self.low:.4g}, {self.high:.4g}]" if self.replications > 1 else " (one replication, no interval)"
        return f"{self.cell} minus {self.other}: {self.mean:.4g}{ends}"


class Result:
    """A finished suite, read from the data folder when it is asked for.

    Attributes:
      spec: the experiment.
      folder: where its results lie.
    """

    def __init__(self, plan: Plan, text: str, folder: DataFolder) -> None:
        self.spec, self.folder = plan.spec, folder
        self._plan, self._cells = plan, {cell.name: cell for cell in plan.played}
        self._text, self._store = text, Store(folder.results)

    def __repr__(self) -> str:
        n, of = len(self.names), self.spec.replications
        return f"<Result of suite {self.spec.name!r}: {n} cells, {of} replications, in {self.folder.root}>"

    def _repr_html_(self) -> str:
        """Regret and privacy of all cells, as a notebook shows them."""
        table = self.frame()[_IN_NOTEBOOKS].dropna(axis=1, how="all").replace({"cell": self._plan.titles})
        return f"<p>{escape(repr(self))}</p>" + str(table.to_html(index=False, na_rep="", float_format="{:.4g}".format))

    @property
    def cells(self) -> list[Cell]:
        """All cells: those of the spec, the private ones again without noise, and the reference rows."""
        return list(self._cells.values())

    @property
    def names(self) -> list[str]:
        """Names of all cells, in order; wherever a cell is named, its title of reports and the terminal does as well."""
        return list(self._cells)

    def frame(self, *, cells: Sequence[str] | None = None, sort: str | None = None) -> pd.DataFrame:
        """A row for each cell; regrets are final ones, in units of reward.

        Columns: `cell`, `environment`, `algorithm`, `calibration`, `privacy_model`, `guarantee`, `role` (algorithm, twin or
        reference), `twin_of`, every parameter by its name, `replications`; `regret` with its 95 % interval `regret_low` and
        `regret_high`, quantiles `regret_q10`, `regret_q50`, `regret_q90`, and `caution`, why the interval may be too short;
        on logged data what the final policy is worth, `value_ips`, `value_snips`, `value_dr`, with `_low` and `_high`;
        of tests for the best arm `test_rounds`, `test_undecided`, `test_wrong`, `test_error_bound`, `test_least` (see
        `bandana.flows.results.decisions`);
        `mu_claimed`, `mu_accounted`, `mu_measured`, the same three of `epsilon` at `delta`, and `verdict`. What was not
        audited, is not private, or is withheld, since it is regret on private data, is missing.

        Args:
          cells: names of the cells, in order; None: all.
          sort: column to sort by, with a minus before it for the largest first; None: the order of `cells`.

        Raises:
          SpecError: an unknown cell or column.
        """
        table = tables.frame(self.cells, self._summaries, self._audits)
        if cells is not None:
            chosen = [self._cell(name).name for name in cells]
            table = table.set_index("cell", drop=False).loc[chosen].reset_index(drop=True)
        if sort is None:
            return table
        if (column := sort.removeprefix("-")) not in table:
            raise SpecError(unknown("column", column, list(table), "`frame().columns`"))
        return table.sort_values(column, ascending=not sort.startswith("-"), kind="stable", ignore_index=True)

    def curves(self, *, replicates: bool = False) -> pd.DataFrame:
        """Regret over rounds: a row for each cell and round of a logarithmic grid.

        Columns: `cell`, `environment`, `role`, `round`, `regret` with its 95 % interval `regret_low` and `regret_high`, and
        `mu_spent`. With `replicates`, a row for each replication: `cell`, `environment`, `role`, `replication`, `round` and
        `regret`. Regret that is withheld is missing, and has no rows with `replicates`.
        """
        cells = self.cells
        return tables.replicates(cells, self._store) if replicates else tables.curves(cells, self._summaries)

    def compare(self, a: str, b: str) -> Difference:
        """Final regret of cell `a` minus that of cell `b`, paired by replication, with a 95 % interval.

        Cells on one environment play replication i on the same random numbers, so what makes it easy or hard cancels.

        Raises:
          SpecError: an unknown cell, which lists the known ones; two environments; regret that is withheld.
        """
        first, second = self._cell(a), self._cell(b)
        if first.environment.label != second.environment.label:
            raise SpecError(
                f"compare: {a!r} plays on {first.environment.label} and {b!r} on {second.environment.label}: only cells on "
                "one environment are paired"
            )
        if not first.environment.shows("regret"):
            raise SpecError(f"compare: regret on {first.environment.label} is withheld, since its data are private")
        finals = [self._summaries[cell.name]["finals"] for cell in (first, second)]
        mean, low, high = (float(value) for value in paired_interval(*finals))
        return Difference(first.name, second.name, mean, low, high, len(finals[0]), caution(finals[0] - finals[1]))

    def comparisons(self, mine: str | None = None, *, cells: Sequence[str] | None = None) -> pd.DataFrame:
        """Paired differences of final regrets, `cell` minus `other`: without arguments those that a report shows.

        Columns: `kind` (noise, calibration or reference as in a report, else pair), `cell`, `other`, `difference` with its
        own 95 % interval `difference_low` and `difference_high`; `simultaneous_low` and `simultaneous_high`, which hold for
        all rows of the table together with 95 %; `p_value`, adjusted by Holm's method for all rows; and `caution`.
        See `bandana.audits.reporting.intervals.simultaneous_intervals`.

        Args:
          mine: a cell, compared with each of `cells`.
          cells: names of cells; without `mine` each pair on one environment is compared. None with `mine`: all.

        Raises:
          SpecError: an unknown cell.
        """
        if mine is None and cells is None:
            return tables.comparisons(comparisons.pairs_of(self.cells), self._summaries)
        chosen = [self._cell(name) for name in (self.names if cells is None else cells)]
        pairs = combinations(chosen, 2) if mine is None else product([self._cell(mine)], chosen)
        paired = [("pair", a, b) for a, b in pairs if a is not b and a.environment.label == b.environment.label]
        return tables.comparisons(paired, self._summaries)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        x: Literal["round", "mu", "epsilon"] = "round",
        cells: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        sort: str | None = None,
        band: Literal["interval", "quantiles"] = "interval",
        lower_bound: bool = False,
        ax: Axes | None = None,
        scale: Literal["linear", "log"] = "linear",
        width: float = 3.4,
        height: float = 2.2,
        columns: int = 1,
    ) -> Figure:
        """Draws regret over rounds, or final regret against privacy, one panel for each environment.

        Lines differ in marker and dash as well as in color, for print in gray. Twins are thin, reference rows are dashed;
        on linear axes, what exceeds every listed algorithm by far leaves the panel.

        Args:
          path: where to save it; its ending says how: .pdf, .svg, .png or .pgf. None: nowhere.
          x: `round`; or the claim, as `mu` or as `epsilon` at the audit's delta. Then a line joins cells that differ in
            their level alone, under the label of the first that has one, and what is not private is level.
          cells: names of the cells to draw, in the order of the legend; None: all.
          labels: cell's name -> its name in the legend; by default the cell's title, which has the guarantee in it.
          sort: column of `frame` that orders the legend, with a minus before it for the largest first.
          band: mean with its 95 % interval, or median with the 10 % and 90 % quantiles over replications.
          lower_bound: whether to draw the least regret of any algorithm with a cell's claim, dotted, where it is known.
          ax: Matplotlib axes to draw on, of a figure and a legend of your own; for one environment.
          scale: of regret, and of rounds; claims are always logarithmic.
          width: of the figure, in inches; a column is about 3.4 wide, a page of one column 5.5.
          height: of one panel, in inches, legend excluded.
          columns: panels side by side.

        Returns:
          The Matplotlib figure, to be shown or changed further.

        Raises:
          SpecError: an unknown cell, column, scale or ending; nothing to draw, since all regret is withheld.
        """
        named = {self._cell(name).name: label for name, label in (labels or {}).items()}
        drawn: Figure = _added("plot")(
            self, path, x=x, cells=cells, labels=named, sort=sort, band=band, lower_bound=lower_bound, ax=ax, scale=scale,
            width=width, height=height, columns=columns,
        )  # fmt: skip
        return drawn

    @explained()
    def report(self, path: str | Path) -> list[Path]:
        """Writes the suite's report, and returns its files.

        Args:
          path: a file that ends in .html, .pdf or .json; or a folder for all formats of the spec and each audit's report.
        """
        self.check_whole()
        return write(self._plan, assemble(self._plan, self._text, self._store), Path(path))

    def export(
        self,
        folder: str | Path,
        *kinds: str,
        cells: Sequence[str] | None = None,
        labels: Mapping[str, str] | None = None,
        sort: str | None = None,
        **look: object,
    ) -> list[Path]:
        """Writes the suite for other programs and papers, as `bandana export` does, and returns the files.

        Args:
          folder: where to.
          kinds: `csv` and `parquet` (cells, curves, comparisons; Parquet also every replication), `latex` (a table with the
            rules of `booktabs`, and cautions as footnotes), `figure` (PDF, PGF, SVG); none means all.
          cells: names of the cells, in order; None: all.
          labels: cell's name -> its name in the LaTeX table and the figure; `cell_label` and `other_label` in other tables.
          sort: column of `frame` to sort cells by, with a minus before it for the largest first.
          look: other arguments of `plot`, for the figure.

        Raises:
          SpecError: an unknown kind, cell or column, or Parquet without pyarrow.
        """
        named = {self._cell(name).name: label for name, label in (labels or {}).items()}
        written: list[Path] = _added("export")(self, Path(folder), kinds, cells=cells, labels=named, sort=sort, **look)
        return written

    def check_whole(self) -> None:
        """Checks that every block of every cell is in the data folder.

        Raises:
          SpecError: some are missing, or were made by other code or other versions of libraries.
        """
        missing = [name for name, cell in self._cells.items() if not all(is_played(b, self._store) for b in cell.blocks())]
        if missing:
            raise SpecError(
                f"the suite {self.spec.name!r} lacks results of {', '.join(missing)}, or has those of other code or other "
                "library versions only; run its spec again"
            )

    @cached_property
    def _titled(self) -> dict[str, Cell]:
        return {cell.title: cell for cell in self.cells}

    @cached_property
    def _summaries(self) -> dict[str, Summary]:
        return {name: summarize_cell(cell, self._store) for name, cell in self._cells.items()}

    @cached_property
    def _audits(self) -> dict[str, AuditEntry]:
        outcomes = {name: stored_audit(cell, self._store) for name, cell in self._cells.items()}
        return {
            name: audit_entry(self._cells[name], outcome, is_anonymous=self._store.is_anonymous)
            for name, outcome in outcomes.items()
            if outcome is not None
        }

    def _cell(self, name: str) -> Cell:
        if (cell := self._cells.get(name) or self._titled.get(name)) is not None:
            return cell
        raise SpecError(unknown("cell", name, list(self._cells), "`names`"))


def _added(name: str) -> Callable[..., Any]:
    """A function that an annex adds to results."""
    with explained():
        function = plugged("results").get(name)
    if function is None:
        raise SpecError(f"{name}: is of an annex that this installation does not have")
    return cast("Callable[..., Any]", function)
