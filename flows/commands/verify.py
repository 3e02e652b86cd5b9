"""The command verify."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bandana.flows.commands.failures import failures
from bandana.flows.commands.options import AsJson, Debug, console, echo, option


def verify(
    evidence: Annotated[
        Path, typer.Argument(help="An evidence file (*.npz), a report's JSON file, or a bundle.", show_default=False)
    ],
    replay: Annotated[
        str | None,
        option("Run so many units of the audits again, drawn at random: a number, or a share such as 1%."),
    ] = None,
    spec: Annotated[Path | None, option("With --replay: the experiment that the evidence is of, a YAML file.")] = None,
    key: Annotated[Path | None, option("Public key that a bundle must be signed with.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Recompute the bounds and verdicts of an evidence file, a report or a bundle from stored scores.

    Exit codes: 0, verified, and the verdict is PASS or NOT REFUTED; 1, verified, and it is FAIL or INCONCLUSIVE; 2, nothing
    can be recomputed; 3, something is not what it states.
    """
    with failures(debug):
        from bandana.audits.evidence.standalone import conclude, exit_code, head
        from bandana.flows.queries.verify import WIDTH, Request, check, for_machines, render

        answer = check(Request(evidence, replay, spec, key))
        if as_json:
            typer.echo(json.dumps(for_machines(evidence, answer), indent=1))
        else:
            echo(*head(answer.found))
            console(WIDTH).print(render(answer.found))
            echo(*answer.notes, *([answer.again.words] if answer.again else []), conclude(evidence, answer.found))
        if code := exit_code(answer.found):
            raise typer.Exit(code)
