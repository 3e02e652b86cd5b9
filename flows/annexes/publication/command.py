"""The command export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Data, Debug, option


def export(
    suite: Annotated[
        str, typer.Argument(help="A finished suite of the data folder, by name or by its spec.", show_default=False)
    ],
    csv: Annotated[bool, typer.Option("--csv", help="Cells, curves and comparisons as CSV.")] = False,
    parquet: Annotated[bool, typer.Option("--parquet", help="The same, and every replication, as Parquet.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="A table for papers, with the rules of booktabs.")] = False,
    figure: Annotated[bool, typer.Option("--figure", help="Regret of all cells in one figure: PDF, PGF and SVG.")] = False,
    scale: Annotated[Literal["linear", "log"], typer.Option(help="Axes of the figure.")] = "linear",
    width: Annotated[float, typer.Option(help="Width of the figure, in inches.")] = 3.4,
    cells: Annotated[list[str] | None, option("A cell to write; repeatable, in this order. All if left out.")] = None,
    labels: Annotated[list[str] | None, option("CELL=NAME: what tables and figure call a cell; repeatable.")] = None,
    sort: Annotated[
        str | None, option("Column of cells.csv that orders cells, such as regret; -regret: largest first.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder to write to; the default is `export` in the suite's folder.", show_default=False),
    ] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Write a finished suite for other programs and papers; without a format, in all of them."""
    with failures(debug):
        from bandana.flows.api.run import load
        from bandana.flows.spec.spec import load_spec

        wanted = {"csv": csv, "parquet": parquet, "latex": latex, "figure": figure}
        kinds = [kind for kind, is_asked in wanted.items() if is_asked]
        name = load_spec(Path(suite)).name if Path(suite).suffix in (".yaml", ".yml") else suite
        result = load(name, data=data)
        folder = out or result.folder.suite(name) / "export"
        known = [each for cell in result.cells for each in (cell.name, cell.title)]
        named = dict(_label(text, known) for text in labels or ())
        for path in result.export(folder, *kinds, cells=cells, labels=named, sort=sort, scale=scale, width=width):
            typer.echo(str(path))


def _label(text: str, known: Sequence[str]) -> tuple[str, str]:
    """The cell and its label; either may hold a =."""
    from bandana.flows.texts.mistakes import SpecError

    if "=" not in text:
        raise SpecError(f"--labels: must be CELL=NAME, got {text!r}")
    cell = max((name for name in known if text.startswith(f"{name}=")), key=len, default=text.rpartition("=")[0])
    return cell, text[len(cell) + 1 :]
