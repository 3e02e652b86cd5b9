"""The commands verify, bundle and key new."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import WIDTH, AsJson, Data, Debug, console, echo, open_data, option

_PATIENCE = 3600.0
"""Seconds that a verification may take: the sender chose how much there is to run again."""


def verify(
    evidence: Annotated[
        Path, typer.Argument(help="An evidence file (*.npz), a report's JSON file, or a bundle.", show_default=False)
    ],
    replay: Annotated[
        str | None, option("Also run so many blocks of replays again, drawn at random: a number, or a share such as 1%.")
    ] = None,
    spec: Annotated[
        Path | None,
        option("Your own copy of the experiment, a YAML file; code and data that it names are used. Without it, none are."),
    ] = None,
    quick: Annotated[bool, option("Do not run searches and planted faults again; they are then not compared.")] = False,
    key: Annotated[Path | None, option("Public key that a bundle must be signed with.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare an evidence file, a report or a bundle with what its scores, its spec and the catalog give.

    Searches and planted faults of catalog algorithms are run again, in a process of their own. No code of the sender's runs.

    Exit codes: 0, verified, and the verdict is PASS or NOT REFUTED; 1, verified, and it is FAIL, INCONCLUSIVE or no audit;
    2, nothing can be recomputed; 3, refused: something is not what it states, or was made by other code; 4, partly compared:
    nothing differs, and the first line lists what was not compared.
    """
    with failures(debug):
        from bandana.audits.names import with_titles
        from bandana.flows.annexes.compliance.evidence.standalone import conclude, exit_code, head
        from bandana.flows.annexes.compliance.verify import Request, check, for_machines, render
        from bandana.flows.running import child

        request = Request(evidence, replay, spec, key, quick, lambda label: typer.echo(f"run again: {label}", err=True))
        answer = child.run(lambda: check(request), child.Limits(total=_PATIENCE), f"{evidence}: the verification").value
        if as_json:
            typer.echo(json.dumps(for_machines(evidence, answer), indent=1))
        else:
            words = [answer.again.words] if answer.again and answer.again.words else []
            lines = [conclude(evidence, answer.verification), *head(answer.verification), *answer.notes, *words]
            echo(*with_titles(lines, answer.titles))
            console(WIDTH).print(render(answer))
        if code := exit_code(answer.verification):
            raise typer.Exit(code)


key = typer.Typer(help="Keys that bundles are signed with.", no_args_is_help=True)


def bundle(
    suite: Annotated[
        str, typer.Argument(help="A finished suite of the data folder, or a report's JSON file.", show_default=False)
    ],
    key: Annotated[Path | None, option("Sign with this private key, see `bandana key new`.")] = None,
    out: Annotated[Path | None, option("File to write; the default is NAME.bundle.zip beside the report.")] = None,
    data: Data = None,
    debug: Debug = False,
) -> None:
    """Pack a report, its evidence, its spec and a verifier into one file, with a manifest that can be signed."""
    with failures(debug):
        from bandana.flows.annexes.compliance.packing import ENDING, pack, report_of

        report = report_of(suite, open_data(data))
        name = report.parent.name if report.name == "report.json" else report.stem
        target = out or report.with_name(f"{name}{ENDING}")
        packed = pack(report, target, key)
        here = Path.cwd()
        target = target.relative_to(here) if target.is_relative_to(here) else target
        echo(f"bundle    {target}, {packed['files']} files")
        if packed["signed"]:
            echo("signature with the public key inside; send that key, or its name, by another way too")
        else:
            echo("signature none: anybody can make such a bundle; sign it with --key")
        echo(f"Anybody can check it:  bandana verify {target}")


@key.command("new")
def new(
    path: Annotated[Path, typer.Argument(help="File of the private key; the public one gets the ending .pub.")],
    debug: Debug = False,
) -> None:
    """Make a key to sign bundles with: a private file that only you can read, and a public one to give away."""
    with failures(debug):
        from bandana.flows.annexes.compliance.evidence.signature import KeyFileError, new_key
        from bandana.flows.texts.mistakes import SpecError

        try:
            public, name = new_key(path)
        except KeyFileError as error:
            raise SpecError(str(error)) from error
        echo(f"private   {path}, keep it to yourself", f"public    {public}", f"name      {name}")


def ci(
    reports: Annotated[list[Path], typer.Argument(help="JSON files of reports.", show_default=False)],
    sarif: Annotated[Path | None, option("Write SARIF 2.1.0, for code scanning.")] = None,
    in_toto: Annotated[Path | None, option("Write an in-toto statement with the predicate Test Result, not signed.")] = None,
    debug: Debug = False,
) -> None:
    """Say reports to a pipeline: annotations for GitHub on standard output, SARIF, and an in-toto test result."""
    with failures(debug):
        from bandana.audits.evidence import UnusableEvidence
        from bandana.audits.reporting import validate
        from bandana.flows.annexes.compliance import pipelines
        from bandana.flows.annexes.compliance.evidence.report import read_report
        from bandana.flows.folder.store import write_whole
        from bandana.flows.texts.mistakes import SpecError

        try:
            documents = {place: read_report(place) for place in reports}
            for document in documents.values():
                validate(document)
        except (UnusableEvidence, ValueError) as error:
            raise SpecError(str(error)) from error
        if sarif is not None:
            write_whole(sarif, json.dumps(pipelines.sarif([*documents.values()]), indent=1).encode())
        if in_toto is not None:
            write_whole(in_toto, json.dumps(pipelines.in_toto(documents), indent=1).encode())
        echo(*(pipelines.annotation(entry) for document in documents.values() for entry in document["audits"]))
