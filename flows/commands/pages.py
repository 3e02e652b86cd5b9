"""Commands that serve pages: ui."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from flows.commands.failures import failures
from flows.commands.options import Data, Debug, open_data
from flows.commands.suites import suites_of


def ui(
    data: Data = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback interface.")] = 5000,
    debug: Debug = False,
) -> None:
    """Open MLflow's pages on this machine (loopback only)."""
    with failures(debug):
        folder = open_data(data)
        folder.prepare()
        from flows.tracking import Tracker

        tracker = Tracker(folder.root)
        typer.echo("MLflow starts; this takes up to a minute. Then open:")
        for suite in suites_of(folder):
            typer.echo(f"  {suite}: {tracker.compare_url(suite, f'http://127.0.0.1:{port}')}")
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *tracker.server_arguments(port)])
