"""The command report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.annex import plugged
from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import WIDTH, Anonymous, AsJson, Data, Debug, console, echo, echo_files, open_data
from bandana.flows.commands.suites import read, run_spec, suites_of
from bandana.flows.folder.settings import DataFolder


def report(
    spec: Annotated[Path | None, typer.Argument(help="The experiment; the default is the last one.")] = None,
    compare: Annotated[
        tuple[str, str] | None,
        typer.Option(help="What changed between two runs: suites, their folders, or JSON files of reports.",
                     metavar="RUN_A RUN_B", show_default=False),
    ] = None,
    registry: Annotated[
        bool,
        typer.Option("--registry", help="Write a draft entry for the public registry of deployments instead; the spec must "
                     "declare a `deployment`."),
    ] = False,
    appendix: Annotated[
        bool, typer.Option("--appendix", help="Write the PDF with its appendix too; the web page always has it.")
    ] = False,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
    data: Data = None,
    debug: Debug = False,
) -> None:  # fmt: skip
    """Render the report again from what is stored, show what changed between two runs, or draft a registry entry."""
    with failures(debug):
        from bandana.flows.texts.mistakes import SpecError

        if compare is not None:
            if spec is not None:
                raise SpecError(f"{spec}: --compare takes two runs and no spec")
            if registry:
                raise SpecError("--registry: is of one run; leave out --compare")
            _compare(*compare, open_data(data), as_json=as_json)
            return
        if registry:
            _write("registry", spec, open_data(data), as_json=as_json)
            return
        given = read(spec or _last_spec(open_data(data)))
        run_spec(given, data, ["report"], as_json=as_json)
        if appendix:
            from bandana.flows.results.report_document import write_appendix

            place = write_appendix(*given[:2], open_data(data))
            typer.echo(f"appendix  {place}", err=as_json)


def _compare(before: str, after: str, folder: DataFolder, *, as_json: bool) -> None:
    from bandana.flows.queries.compare import compare_runs, conclude, tables

    comparison, files = compare_runs(before, after, folder)
    if as_json:
        places = {kind: str(place) for kind, place in files.items()}
        typer.echo(json.dumps({**comparison, "files": places}, indent=1, allow_nan=False))
        return
    for table in tables(comparison):
        console(WIDTH).print(table)
    echo(*conclude(comparison))
    echo_files(files)


def _write(kind: str, spec: Path | None, folder: DataFolder, *, as_json: bool) -> None:
    """Writes a kind of report that an annex adds, named as the option that asks for it."""
    writers = plugged("reports")
    if kind not in writers:
        from bandana.flows.texts.mistakes import SpecError

        raise SpecError(f"--{kind}: is of an annex that this installation does not have")
    document, lines = writers[kind](spec or _last_spec(folder), folder)
    echo(*([json.dumps(document, indent=1, allow_nan=False)] if as_json else lines))


def _last_spec(folder: DataFolder) -> Path:
    specs = [folder.suite(name) / "spec.yaml" for name in suites_of(folder)]
    existing = [path for path in specs if path.exists()]
    if not existing:
        from bandana.flows.texts.mistakes import SpecError

        raise SpecError(f"there is no suite in {folder.root} yet; name a spec, or run one first")
    return max(existing, key=lambda path: path.stat().st_mtime)
