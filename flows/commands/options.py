"""Options that several commands share, and the exit codes."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer.models import OptionInfo

from bandana import ready
from bandana.flows.annex import DEVICE, plugged
from bandana.flows.folder.settings import ANONYMOUS, DataFolder

if TYPE_CHECKING:
    from rich.console import Console

USER_MISTAKE, FAILURE, DIFFERS = 2, 1, 3
"""Exit codes: the user's mistake; a failure, or a verdict that is no PASS or NOT REFUTED; evidence that is wrong."""
FULL = (errno.ENOSPC, errno.EDQUOT)
WIDTH = 150
"""Columns of a table of many words where standard output is no terminal."""


def leave_out_names(is_asked: bool) -> bool:
    """Makes this process and all that it starts leave out user and host, if that is asked for."""
    if is_asked:
        os.environ[ANONYMOUS] = "1"
    return is_asked


def replay_on(device: str | None) -> str | None:
    """Makes replays of this process and of all that it starts run on a device; one that is not there is refused."""
    if device is not None:
        if (player := plugged("devices").get("torch")) is None:
            raise typer.BadParameter("replays on a device need the annex `devices`, which is not installed")
        try:
            player(device)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error
        os.environ[DEVICE] = device
    return device


SpecPath = Annotated[Path, typer.Argument(callback=ready.place, help="The experiment, a YAML file.", show_default=False)]
Data = Annotated[Path | None, typer.Option("--data", help="Data folder, or s3://BUCKET/PREFIX; default: ./bandana_data.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of a failure.")]
AsJson = Annotated[bool, typer.Option("--json", help="One object on standard output, for machines.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Explain what would be done, and what is done already; do nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Start even if it is estimated to take more than a day.")]
Anonymous = Annotated[
    bool,
    typer.Option("--anonymous", callback=leave_out_names, help="Leave user and host out of results, reports and MLflow."),
]
Device = Annotated[
    str | None,
    typer.Option(
        callback=replay_on,
        envvar=DEVICE,
        help="What replays run on, as torch names it: cuda, cpu.",
        show_envvar=False,
        show_default=False,
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Side by side; one a core.", show_default=False)]
ExecutorName = Annotated[
    Literal["local", "processes", "dask"] | None,
    typer.Option(help="Where blocks run: here, in processes or on Dask; the numbers are the same.", show_default=False),
]


def whole(text: str) -> int:
    """A whole number, also written as 1e5."""
    value = real(text)
    if not value.is_integer():
        raise typer.BadParameter(f"must be a whole number, got {text!r}")
    return int(value)


def real(text: str) -> float:
    """A number, in the digits 0 to 9; Python reads more, such as 1_0 for 10. Commands refuse nan and infinity themselves."""
    if "_" not in text and text.isascii():
        with suppress(ValueError):
            return float(text)
    raise typer.BadParameter(f"must be a number such as 1000, 0.5 or 1e-5, got {text!r}")


def option(meaning: str, parser: Callable[[str], object] | None = None) -> OptionInfo:
    """An option without a default of its own."""
    made: OptionInfo = typer.Option(help=meaning, show_default=False, parser=parser)
    return made


def real_option(meaning: str) -> OptionInfo:
    """An option that is a number, without a default of its own."""
    return option(meaning, parser=real)


def echo(*lines: str) -> None:
    """Writes lines to standard output."""
    for line in lines:
        typer.echo(line)


def echo_files(files: Mapping[str, Path | str]) -> None:
    """Writes where the files of a report lie, by kind."""
    echo(*(f"{kind:<5} {path}" for kind, path in files.items()))


def console(width: int) -> Console:
    """Standard output for tables, of the given number of columns where it is no terminal."""
    from rich.console import Console

    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=width)


def open_data(data: Path | None) -> DataFolder:
    """The data folder; one that cannot be made is the user's mistake."""
    from bandana.flows.texts.mistakes import SpecError

    try:
        return DataFolder.open(data)
    except OSError as error:
        if error.errno in FULL:
            raise
        raise SpecError(f"--data: the folder cannot be used: {error}") from error
