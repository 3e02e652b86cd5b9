"""The audit of a release on one pair of data sets, or of samples of its outputs."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import typer

from bandana.flows.annexes.anything.commands_own import echo_evidence
from bandana.flows.commands.audit.options import Limits, Running, Subject, as_typed, given
from bandana.flows.commands.options import FAILURE, echo, open_data


def audit(subject: Subject, options: dict[str, Any], limits: Limits, how: Running) -> None:
    """Audits a release or samples of it, and writes the outcome and where its files lie.

    Raises:
      SpecError: an option has no meaning here, the claim is missing, or the release fails.
      Exit: the claim is refuted, or nothing can be said of it.
    """
    from bandana.flows.annexes.anything.releases import ReleaseRequest, audit_release, write_release
    from bandana.flows.texts.mistakes import SpecError

    options = options | given(limits)
    mode, known = "--mechanism" if subject.samples is None else "--samples", {each.name for each in fields(ReleaseRequest)}
    if wrong := [name for name in options if name not in known]:
        raise SpecError(f"{as_typed(wrong)}: not with {mode}")
    if "claim" not in options:
        raise SpecError(f'{mode} needs --claim, such as --claim "approx(epsilon=1, delta=1e-5)"')
    if subject.samples is not None:
        if how.data is not None or subject.neighbor is not None:
            raise SpecError("--data, --neighbor: not with --samples, which holds the outputs of both")
        request = ReleaseRequest(samples=subject.samples, **options)
    else:
        data, neighbor = how.data or "", subject.neighbor or ""
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
