"""The command list."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bandana.flows.annex import plugged
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Debug, echo, option


def list_(
    name: Annotated[
        str | None, typer.Argument(help="An algorithm: shows all that is known of it.", show_default=False)
    ] = None,
    model: Annotated[str | None, option("Only those in a trust model: none, central, joint, shuffle or local.")] = None,
    family: Annotated[str | None, option("Only those of a family, such as rl, bandits or kernel.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="An array of objects, one an entry, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """List the algorithms, and which is best where by the last leaderboard; or show one with a spec to start from."""
    with failures(debug):
        from bandana.flows.queries import catalog
        from bandana.flows.spec.mistakes import SpecError

        entries = catalog.selected(model, family)
        if name is not None:
            entries = [entry for entry in catalog.of_name(name) if entry in entries]
            if not entries:
                raise SpecError(f"{name} has no entry in the trust model and family that were asked for")
        for line in catalog.broken_plugins():
            typer.echo(f"warning: {line}", err=True)
        if as_json:
            typer.echo(json.dumps([catalog.facts(entry) for entry in entries], indent=1))
            return
        from rich.console import Console

        if name is None:
            Console().print(catalog.overview(entries))
            if model is None and family is None:
                for lines in plugged("list").values():
                    echo("", *lines())
        else:
            catalog.show(entries, Console())
