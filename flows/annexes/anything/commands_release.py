"""The audit of a release on one pair of data sets, or of samples of its outputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from bandana.flows.annexes.anything.commands_own import echo_evidence
from bandana.flows.annexes.anything.options import Limits, Neighbors, Stated
from bandana.flows.commands.audit.options import Replays, Writing, given
from bandana.flows.commands.failures import failures
from bandana.flows.commands.groups import grouped
from bandana.flows.commands.options import FAILURE, echo, open_data, option


@dataclass(frozen=True)
class Subject:
    """Release to audit with its two data sets, or samples of its outputs."""

    PANEL: ClassVar = "Release"
    mechanism: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE.py:NAME]",
            help="A function (data, seed) -> numbers, labels or text; or exec:COMMAND, tcp:HOST:PORT.",
            show_default=False,
        ),
    ] = None
    data: Annotated[str | None, option("The data set: a file (.npy, .csv, .json) or a Python literal.")] = None
    neighbor: Annotated[str | None, option("Its neighbor, in the same forms.")] = None
    samples: Annotated[
        tuple[Path, Path] | None, option("In place of a function: two files with outputs on a data set and its neighbor.")
    ] = None


@grouped
def audit_release(
    subject: Subject, stated: Stated, neighbors: Neighbors, search: Replays, limits: Limits, how: Writing
) -> None:
    """Audit any release on a data set and its neighbor, or samples of its outputs."""
    with failures(how.debug):
        audit(subject, given(stated, neighbors, search, limits), how)


def audit(subject: Subject, options: dict[str, Any], how: Writing) -> None:
    """Audits a release or samples of it, and writes the outcome and where its files lie.

    Raises:
      SpecError: the claim is missing, or the release fails.
      Exit: the claim is refuted, or nothing can be said of it.
    """
    from bandana.flows.annexes.anything.releases import ReleaseRequest, audit_release, write_release
    from bandana.flows.texts.mistakes import SpecError

    if (subject.mechanism is None) == (subject.samples is None):
        raise SpecError("audit-release: name a function, FILE.py:NAME, or two files of outputs, --samples P.npy Q.npy")
    if "claim" not in options:
        raise SpecError('--claim: is missing, such as --claim "approx(epsilon=1, delta=1e-5)"')
    if subject.samples is not None:
        if subject.data is not None or subject.neighbor is not None:
            raise SpecError("--data, --neighbor: not with --samples, which holds the outputs of both")
        request = ReleaseRequest(samples=subject.samples, **options)
    else:
        data, neighbor = subject.data or "", subject.neighbor or ""
        request = ReleaseRequest(mechanism=str(subject.mechanism), data=data, neighbor=neighbor, **options)
    folder = open_data(None).root / "own"
    audited = audit_release(request)
    files = write_release(audited, request, folder)
    if audited.note:
        typer.echo(f"note: {audited.note}", err=True)
    if how.as_json:
        entry = audited.outcome.entry(audited.loaded.label) | {"files": {kind: str(place) for kind, place in files.items()}}
        typer.echo(json.dumps(entry, indent=1, allow_nan=False))
    else:
        echo(*audited.outcome.lines(audited.loaded.label))
        echo_evidence(files)
    if audited.outcome.verdict != "NOT REFUTED":
        raise typer.Exit(FAILURE)
