"""Evidence and report of an audit of a user's own code."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import NamedTuple

from bandana.audits import evidence
from bandana.audits.documents.report import Report
from bandana.audits.outcome import Outcome
from bandana.audits.summary import summarize
from bandana.flows.annexes.anything.files import FUNCTION, RELEASE, Loaded
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.folder.store import write_whole
from bandana.flows.keys import provenance
from bandana.flows.results import audit_report
from bandana.flows.texts.file_names import file_name


class ReportRequest(NamedTuple):
    """The part of a request that a report shows.

    Attributes: as in `own.Request`, where
      rounds: of each replay; 1 of a release.
    """

    claim: str
    rounds: int
    seed: int
    arms: int | None = None


def write_evidence(loaded: Loaded, outcome: Outcome, request: ReportRequest, folder: Path) -> tuple[Path, Report]:
    """Writes the evidence; where it lies, and the document of the report beside it.

    It may be called in a fork: reports are rendered elsewhere, as what renders them has threads that no fork takes along.
    """
    place = folder / f"{file_name(f'{loaded.path.stem}-{loaded.name}')}.evidence.npz"
    write_whole(place, evidence.to_bytes(outcome))
    return place, report_document(loaded, outcome, request, place)


def report_document(loaded: Loaded, outcome: Outcome, request: ReportRequest, place: Path) -> Report:
    """The report of one audit of a user's algorithm; see `bandana.audits.reporting`."""
    subject = loaded.subject
    shown = fields(subject) if is_dataclass(subject) else ()
    about = {
        "label": loaded.label,
        "algorithm": loaded.name,
        "calibration": None,
        "privacy_model": outcome.claim.trust.value,
        "parameters": {f.name: str(getattr(subject, f.name)) for f in shown},
        "provenance": provenance.shown(outcome.provenance, is_anonymous=is_anonymous()),
    }
    n_actions = request.arms or 2 if loaded.kind == FUNCTION else int(getattr(subject, "n_actions", 0))
    is_episodic = getattr(subject, "episode_length", None) is not None
    return audit_report.document(
        f"Audit of {loaded.label}",
        [summarize(outcome, about)],
        kind="audit",
        table=outcome.about.table,
        actions=[f"{'action' if is_episodic else 'arm'} {arm}" for arm in range(n_actions)],
        unit="episodes" if is_episodic else "rounds",
        rounds=request.rounds,
        seed=request.seed,
        spec=loaded.source,
        commands=[f'bandana audit-own {loaded.label} --claim "{request.claim}"'] if loaded.kind != RELEASE else [],
        evidence=[place],
    )
