"""Commands that keep an installation in order: prune, doctor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, AsJson, Data, Debug, console, echo
from bandana.flows.folder.settings import DataFolder, data_root


def prune(
    keep: Annotated[str, typer.Option(metavar="TIME", help="Younger results stay, such as 30d, 12h or 4w.")] = "30d",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed; remove nothing.")] = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Remove old results, superseded runs in MLflow and old history of Prefect; reports, evidence and baselines stay."""
    with failures(debug):
        from bandana.flows.annexes.operations.prune import prune as clear
        from bandana.flows.annexes.operations.prune import prune_history, prune_runs, seconds_of

        seconds, folder = seconds_of(keep), DataFolder(_there(data))
        folder.set_environment()
        pruned = clear(folder, seconds, is_dry=dry_run)
        runs = prune_runs(folder, seconds, is_dry=dry_run)
        history = prune_history(folder, seconds, is_dry=dry_run)
        if as_json:
            shown = {
                "removed": [str(path) for path in pruned.removed],
                "bytes": pruned.n_bytes,
                "kept": pruned.kept,
                "notes": pruned.notes,
                "mlflow": {"removed": [asdict(run) for run in runs.removed], "kept": runs.kept, "is_purged": runs.is_purged},
                "prefect": None if history is None else asdict(history),
            }
            typer.echo(json.dumps(shown, indent=1))
            return
        echo(*(f"note: {note}" for note in pruned.notes))
        what = "would be removed" if dry_run else "removed"
        typer.echo(f"{what}: {len(pruned.removed)} results, {pruned.n_bytes / 2**20:,.1f} MiB")
        typer.echo(f"kept: {sum(pruned.kept.values())} results{_reasons(pruned.kept)}")
        n_bytes = sum(run.n_bytes for run in runs.removed)
        typer.echo(f"MLflow, {what}: {len(runs.removed)} superseded runs, {n_bytes / 2**20:,.1f} MiB of files")
        if dry_run:
            echo(*(f"  {run.suite}: {run.name} ({run.run_id})" for run in runs.removed))
        if runs.kept:
            typer.echo(f"MLflow, kept: {sum(runs.kept.values())} superseded runs{_reasons(runs.kept)}")
        if runs.removed and not runs.is_purged:
            typer.echo("note: the MLflow server marks them as deleted; `mlflow gc` there removes their rows and files")
        if history is not None:
            freed = "" if dry_run else f", {history.n_bytes / 2**20:,.1f} MiB"
            typer.echo(f"Prefect, {what}: {history.flow_runs} flow runs with their logs, {history.events} events{freed}")


def _reasons(kept: Mapping[str, int]) -> str:
    """Why something stays, in brackets."""
    words = ", ".join(f"{number} {why}" for why, number in sorted(kept.items()))
    return f" ({words})" if words else ""


def doctor(as_json: AsJson = False, data: Data = None, debug: Debug = False) -> None:
    """Look for what is wrong: versions, ports, disk, databases, unfinished files, locks, what would be computed again."""
    with failures(debug):
        from rich.table import Table

        from bandana.flows.annexes.operations.doctor import State, examine

        root = data_root(data)
        findings = examine(DataFolder(root) if root.is_dir() else None)
        if as_json:
            typer.echo(json.dumps([asdict(each) for each in findings], indent=1))
        else:
            table = Table("what", "", "found")
            for each in findings:
                table.add_row(each.what, str(each.state), each.said)
            console(150).print(table)
        if any(each.state is State.BAD for each in findings):
            raise typer.Exit(FAILURE)


def _there(data: Path | None) -> Path:
    """The data folder, which must exist."""
    from bandana.flows.texts.mistakes import SpecError

    root = data_root(data)
    if not root.is_dir():
        raise SpecError(f"--data: {root} does not exist")
    return root
