"""Commands that serve pages: ui."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Data, Debug, echo, open_data
from bandana.flows.commands.suites import suites_of

if TYPE_CHECKING:
    from bandana.flows.folder.settings import DataFolder
    from bandana.flows.tracking.tracker import Tracker


def ui(
    data: Data = None,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the loopback interface.")] = 5000,
    debug: Debug = False,
) -> None:
    """Open MLflow's pages and reports on this machine (loopback only), and print where each suite is compared."""
    with failures(debug):
        from bandana.flows.servers.loopback import HOST, why_unusable
        from bandana.flows.texts.mistakes import SpecError

        folder = open_data(data)
        folder.prepare()
        from bandana.flows.tracking.tracker import Tracker

        tracker = Tracker.open(folder.root)
        links = _links(folder, tracker, f"http://{HOST}:{port}")
        if tracker.address.kind == "http":
            typer.echo(f"The runs are on the server {tracker.address.shown}. Open:")
            echo(*links)
            return
        if reason := why_unusable(port):
            other = port + 1 if 1024 <= port < 65535 else 5001
            raise SpecError(
                f"--port: {port} on {HOST} cannot be used ({reason}); close what listens there, "
                f"or choose another one, such as --port {other}"
            )
        typer.echo("MLflow starts; this takes up to a minute. Then open (Ctrl+C ends it):")
        echo(*links)
        sys.stdout.flush()
        os.environ.update(tracker.server_environment() | {"BANDANA_SUITES": str(folder.suite("x").parent)})
        os.execv(sys.executable, [sys.executable, *tracker.server_arguments(port)])


def _links(folder: DataFolder, tracker: Tracker, base: str) -> list[str]:
    """A line a suite; one that was not tracked yet says so."""
    from bandana.flows.tracking.experiments import NIGHTS
    from bandana.flows.tracking.tracker import TrackingError

    lines = []
    for suite in suites_of(folder):
        for name in (suite, suite + NIGHTS):
            try:
                lines.append(f"  {name}: {tracker.compare_url(name, base)}")
            except TrackingError as error:
                lines += [f"  {suite}: {error}"] if name == suite else []
        if tracker.address.kind != "http" and (folder.suite(suite) / "report.html").is_file():
            lines.append(f"    report: {base}/reports/{suite}/report.html")
    return lines or ["  no suite has run yet: `bandana demo` runs one"]
