"""The last lines about an audit of the user's code."""

from __future__ import annotations

from pathlib import Path

import typer


def show_files(files: dict[str, Path]) -> None:
    """Writes where the files lie, by kind, and the command that recomputes the evidence."""
    here = Path.cwd()
    shown = {kind: path.relative_to(here) if path.is_relative_to(here) else path for kind, path in files.items()}
    for kind, place in shown.items():
        typer.echo(f"{kind:<9} {place}")
    typer.echo(f"Anybody can recompute it:  bandana verify {shown['evidence']}")
