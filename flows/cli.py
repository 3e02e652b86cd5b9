"""The command `bandana`. Everything heavy is imported inside the commands, so that help answers at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bandana import __version__
from bandana.flows.annex import plugged, plugs_at
from bandana.flows.commands import baseline, lookup, pages, reports, suites
from bandana.flows.commands.audit import command
from bandana.flows.folder.settings import use_one_thread

PANELS = {"start": "Start", "run": "Run", "audit": "Audit", "share": "Share", "keep": "Keep in order"}
"""Panels of the help, in its order."""


class _Commands(TyperGroup):
    """Commands, which also know the form before 1.0 of `bandana audit`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        return super().resolve_command(ctx, command.renamed(args))


app = typer.Typer(
    cls=_Commands,
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


_COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    "start": (suites.demo, suites.check, lookup.list_, lookup.schema),
    "run": (suites.run, reports.report, pages.ui),
    "audit": (command.audit, command.audit_catalog),
    "keep": (baseline.baseline,),
}
"""Panel -> commands of the core."""


def _add() -> None:
    """Adds all commands, panel by panel, as the help shows them."""
    panels, own = plugs_at("panels"), [(each, panel) for panel, each_of in _COMMANDS.items() for each in each_of]
    all_ = [(each.__name__.rstrip("_").replace("_", "-"), each, panel) for each, panel in own]
    all_ += [(name.replace("_", "-"), each, panels.get(name, "run")) for name, each in plugged("commands").items()]
    all_ += [(name, group, panels.get(name, "run")) for name, group in plugged("groups").items()]
    for panel, title in PANELS.items():
        for name, each, its_panel in all_:
            if its_panel == panel and isinstance(each, typer.Typer):
                app.add_typer(each, name=name, rich_help_panel=title)
            elif its_panel == panel:
                app.command(name, rich_help_panel=title)(each)


_add()


def main() -> None:
    """The console script."""
    use_one_thread()  # NumPy reads it once, when a command imports it
    app()
