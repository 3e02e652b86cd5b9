"""The command `bandana`. Everything heavy is imported inside the commands, so that help answers at once."""

from __future__ import annotations

from collections.abc import Callable

import typer

from bandana.flows.annex import annexes
from bandana.flows.commands import baseline, book, bundle, export, lookup, pages, reports, suites, verify
from bandana.flows.commands.audit import command as audits
from bandana.flows.running.settings import use_one_thread

app = typer.Typer(
    help="Private bandits that prove their privacy: benchmarks, audits and reports.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
_COMMANDS: tuple[Callable[..., None], ...] = (
    suites.demo,
    suites.check,
    suites.run,
    suites.tune,
    lookup.schema,
    audits.audit,
    verify.verify,
    bundle.bundle,
    reports.report,
    export.export,
    baseline.baseline,
    pages.ui,
    lookup.list_,
    *(command for annex in annexes() for command in annex.commands),
)
for command in _COMMANDS:
    app.command((command.__name__).rstrip("_"))(command)
app.add_typer(book.app, name="book")
app.add_typer(bundle.key, name="key")
for annex in annexes():
    for name, group in annex.groups.items():
        app.add_typer(group, name=name)


def main() -> None:
    """The console script."""
    use_one_thread()  # NumPy reads it once, when a command imports it
    app()
