"""The audit of an algorithm or a function in a file of the user's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from bandana import layers
from bandana.flows.annexes.anything.options import Limits, Neighbors, Promise, Search
from bandana.flows.commands.audit.options import Here, given
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.options import FAILURE, echo, open_data
from bandana.flows.commands.suites import for_machines


@dataclass(frozen=True)
class Subject:
    """Subject of an audit of own code."""

    algorithm: Annotated[
        str,
        typer.Argument(
            metavar="FILE.py:NAME", help="An algorithm, or a function (rewards, seed) -> actions.", show_default=False
        ),
    ]


@grouped
def audit_own(subject: Subject, promise: Promise, neighbors: Neighbors, search: Search, limits: Limits, how: Here) -> None:
    """Audit an algorithm of your own, or a function that plays, against what you claim of it."""
    with failures(how.debug):
        audit(subject, given(promise, neighbors, search), limits, how)


def audit(subject: Subject, options: dict[str, Any], limits: Limits, how: Here) -> None:
    """Audits one file of the user's in a child process, and writes the outcome and where its files lie.

    Raises:
      SpecError: an option has no meaning here, the claim is missing, or the file fails.
      Exit: the audit did not pass.
    """
    from bandana.audits.documents.report import Report
    from bandana.audits.reporting import render
    from bandana.flows.annexes.anything.own import Request, audit_own
    from bandana.flows.annexes.anything.own_reports import ReportRequest, write_evidence
    from bandana.flows.results.audit_report import tell, write_document
    from bandana.flows.running import child
    from bandana.flows.texts.mistakes import SpecError

    if "claim" not in options:
        raise SpecError('--claim: is missing, such as --claim "gdp(mu=1, relation=reward)"')
    more = {} if limits.seconds is None else {"seconds": limits.seconds}
    request = Request(subject.algorithm, **options | more)
    folder = open_data(None if how.data is None else Path(how.data)).root / "own"

    def work() -> tuple[str, str, list[str], Path, Report]:
        loaded, outcome = audit_own(request)
        report = ReportRequest(request.claim, request.rounds, request.seed, request.arms)
        lines = tell(loaded.label, outcome)
        return outcome.verdict.value, loaded.label, lines, *write_evidence(loaded, outcome, report, folder)

    name = Path(request.algorithm).name
    allowed = child.limits(limits.timeout, limits.memory, request.seconds)
    returned = child.run(work, allowed, name, meanwhile=render.load)
    verdict, label, lines, evidence, document = returned.value
    stem = evidence.with_name(evidence.name.removesuffix(".evidence.npz"))
    files = {"evidence": evidence, **write_document(document, stem)}
    if returned.printed:
        typer.echo(f"note: {name} {returned.printed}", err=True)
    if how.as_json:
        entries = json.loads(files["json"].read_text(encoding="utf-8"))["audits"]
        typer.echo(for_machines(label, entries, {kind: str(path) for kind, path in files.items()}))
    else:
        echo(*lines)
        echo_evidence(files)
    if verdict not in ("PASS", "NOT REFUTED"):
        raise typer.Exit(FAILURE)


def echo_evidence(files: Mapping[str, Path]) -> None:
    """Writes where the files of an audit of the user's code lie, by kind, and the command that recomputes the evidence."""
    here = Path.cwd()
    shown = {kind: path.relative_to(here) if path.is_relative_to(here) else path for kind, path in files.items()}
    echo(*(f"{kind:<9} {place}" for kind, place in shown.items()))
    if not layers.has("report"):
        typer.echo(f"no html and pdf: {layers.advice('matplotlib')}", err=True)
    typer.echo(f"Anybody can recompute it:  bandana verify {shown['evidence']}")
