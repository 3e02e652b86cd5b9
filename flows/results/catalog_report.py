"""The report of an audit of the whole catalog."""

from __future__ import annotations

from pathlib import Path

from bandana.audits.documents.audit import AuditEntry
from bandana.audits.documents.report import Report
from bandana.audits.outcome import Effort, Outcome
from bandana.audits.subjects import Subject, subjects
from bandana.audits.summary import summarize
from bandana.flows.keys import provenance
from bandana.flows.results.audit_report import document

CATALOG = "Audit of the whole catalog"


def catalog_document(audits: list[AuditEntry], effort: Effort, evidence: list[Path]) -> Report:
    """The document of the audit of everything, or of some of its subjects, from their entries and evidence files."""
    labels = [entry["label"] for entry in audits]
    only = "" if labels == list(subjects()) else "".join(f' --only "{label}"' for label in labels)
    options = f"{only} --replays {effort.replays} --examples {effort.examples} --seed {effort.seed}"
    return document(
        CATALOG,
        audits,
        kind="catalog",
        table="fair coins for the algorithms; rewards of one half for the building blocks",
        actions=["arm 0", "arm 1"],
        rounds=max((subjects()[label]().trial.table.n_users for label in labels), default=1),
        seed=effort.seed,
        spec="\n".join(labels),
        commands=[f"bandana audit-catalog{options}"],
        evidence=evidence,
    )


def entry_of_subject(subject: Subject, outcome: Outcome, *, is_anonymous: bool) -> AuditEntry:
    """The entry of one of its subjects, which names user and host unless it is anonymous."""
    about = {
        "label": subject.label,
        "algorithm": subject.algorithm,
        "calibration": subject.calibration,
        "privacy_model": outcome.claim.trust.value,
        "parameters": dict(subject.parameters),
        "provenance": provenance.shown(outcome.provenance, is_anonymous=is_anonymous),
    }
    entry: AuditEntry = summarize(outcome, about)
    return entry
