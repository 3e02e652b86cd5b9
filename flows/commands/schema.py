"""The command schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bandana.flows.annex import plugged, plugs_at

if TYPE_CHECKING:
    from bandana.audits.reporting.kinds import Kind

    Described = str
else:
    Described = Literal[("spec", "report", "comparison", *plugs_at("documents"))]


def schema(document: Annotated[Described, typer.Argument(help="Kind of file that the schema describes.")] = "spec") -> None:
    """Print the JSON schema of a spec, for editors that complete and check YAML, or of a document that Bandana writes."""
    if document == "spec":
        from bandana.flows.spec.schema import json_schema as schema_of_spec

        written = schema_of_spec()
    else:
        from bandana.audits.documents.form import json_schema

        written = json_schema(kinds()[document].form)
    typer.echo(json.dumps(written, indent=1))


def kinds() -> dict[str, Kind]:
    """All kinds of documents by name, those of annexes last."""
    from bandana.audits.reporting.kinds import KINDS

    return {kind.name: kind for kind in KINDS.values()} | plugged("documents")
