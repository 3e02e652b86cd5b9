"""The command crosscheck."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bandana import layers
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import FAILURE, Debug, console, real


def crosscheck(
    delta: Annotated[
        list[float] | None,
        typer.Option(
            "--delta", parser=real, help="Where epsilons are compared; give it several times.", show_default="1e-5"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One object, for machines.")] = False,
    debug: Debug = False,
) -> None:
    """Hold every ledger against dp-accounting and opacus, and list the known defects of those libraries."""
    with failures(debug):
        layers.demand("crosscheck")
        from bandana.flows.annexes.crosscheck.tables import WIDTH, check, render, to_json

        result = check(delta)
        if as_json:
            typer.echo(json.dumps(to_json(result), indent=1, allow_nan=False))
        else:
            console(WIDTH).print(render(result))
        if not result.is_sound:
            raise typer.Exit(FAILURE)
