"""A report in MLflow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bandana.audits.documents.report import Report
from bandana.flows.keys import provenance
from bandana.flows.keys.content import content_key
from bandana.flows.tracking.tracker import Tracker


def track(
    document: Report,
    suite: str,
    params: dict[str, object],
    made: Sequence[provenance.Record | None],
    artifacts: list[Path],
    tracker: Tracker,
) -> None:
    """Writes the run of a suite's report to MLflow: parameters, counts of verdicts, and the report's files.

    `made` says how each block and audit of the report came to be.
    """
    verdicts = [entry["verdict"] for entry in document["audits"]]
    counts = {
        f"audit/{verdict.lower().replace(' ', '-')}": float(verdicts.count(verdict))
        for verdict in ("PASS", "NOT REFUTED", "FAIL", "INCONCLUSIVE")
    }
    key = content_key({"suite": suite, "evidence": document["evidence"]["sha256"]})
    tracker.log_suite(suite, key, params, counts, artifacts, provenance.tags("suite", document["provenance"], made))
