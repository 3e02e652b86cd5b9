"""Commands that look things up: list and schema."""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bandana import ready
from bandana.algorithms import plugins
from bandana.flows.annex import plugged, plugs_at
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import Debug, echo, option

if TYPE_CHECKING:
    from bandana.audits.reporting.kinds import Kind

    Described = str
else:
    Described = Literal[("spec", "report", "comparison", *plugs_at("documents"))]


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
        is_whole = (name, model, family, as_json) == (None, None, None, False)
        if is_whole and not plugins.packages():  # no algorithm is imported, which takes seconds
            rows = json.loads(resources.files("bandana.flows").joinpath("catalog.json").read_bytes())
        else:
            from bandana.algorithms.catalog import added
            from bandana.flows.queries import catalog
            from bandana.flows.texts.mistakes import SpecError

            entries = catalog.selected(model, family)
            if name is not None:
                entries = [entry for entry in catalog.of_name(name) if entry in entries]
                if not entries:
                    raise SpecError(f"{name} has no entry in the trust model and family that were asked for")
            for error in added()[1]:  # entry points of installed packages that cannot be used
                typer.echo(f"warning: {error}", err=True)
            if as_json:
                typer.echo(json.dumps([catalog.facts(entry) for entry in entries], indent=1))
                return
            if name is not None:
                catalog.show(entries)
                return
            rows = catalog.overview(entries)
        from rich import print as show
        from rich.table import Column, Table

        table = Table(Column("algorithm", no_wrap=True), "trust models", "guarantees", "plays on", box=None, pad_edge=False)
        for row in rows:
            table.add_row(*row)
        show(table)
        for lines in (ready.lines, *plugged("list").values()) if is_whole else ():
            echo("", *lines())


def schema(document: Annotated[Described, typer.Argument(help="Kind of file that the schema describes.")] = "spec") -> None:
    """Print the JSON schema of a spec, for editors that complete and check YAML, or of a document that Bandana writes."""
    if document == "spec":
        from bandana.flows.spec.schema import json_schema as schema_of_spec

        written = schema_of_spec()
    else:
        from bandana.audits.documents.form import json_schema

        written = json_schema(kinds()[document].form)
    typer.echo(json.dumps(written, indent=1))


def kinds() -> dict[str, Kind[Any]]:
    """All kinds of documents by name, those of annexes too."""
    from bandana.audits.reporting.kinds import KINDS

    plugged("documents")
    return KINDS
