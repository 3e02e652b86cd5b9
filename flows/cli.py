"""The command `bandana`. Everything heavy is imported inside the commands, so that help answers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from bandana import __version__
from bandana.flows.annex import plugged
from bandana.flows.commands import baseline, lookup, pages, reports, suites
from bandana.flows.commands.audit import command as audits
from bandana.flows.folder.settings import use_one_thread

app = typer.Typer(
    help="Private bandits whose privacy is tested: benchmarks, audits and reports.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"bandana {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Options of the command itself."""


_COMMANDS: tuple[Callable[..., None], ...] = (
    suites.demo,
    suites.check,
    suites.run,
    lookup.schema,
    audits.audit,
    reports.report,
    baseline.baseline,
    pages.ui,
    lookup.list_,
    *plugged("commands").values(),
)
for command in _COMMANDS:
    app.command((command.__name__).rstrip("_"))(command)
for name, group in plugged("groups").items():
    app.add_typer(group, name=name)


def main() -> None:
    """The console script."""
    use_one_thread()  # NumPy reads it once, when a command imports it
    app()
