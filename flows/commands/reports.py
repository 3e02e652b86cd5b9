"""Commands on reports: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from flows.commands.failures import failures
from flows.commands.options import Data, Debug, open_data
from flows.commands.suites import run_file, suites_of
from flows.settings import DataFolder


def report(
    spec: Annotated[Path | None, typer.Argument(help="The experiment; the default is the last one.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Render the report again from what is stored; nothing is computed anew."""
    with failures(debug):
        run_file(spec or _last_spec(open_data(data)), data, ["report"])


def _last_spec(folder: DataFolder) -> Path:
    specs = [folder.suite(name) / "spec.yaml" for name in suites_of(folder)]
    found = [path for path in specs if path.exists()]
    if not found:
        from flows.specs import SpecError

        raise SpecError(f"there is no suite in {folder.root} yet; name a spec, or run one first")
    return max(found, key=lambda path: path.stat().st_mtime)
