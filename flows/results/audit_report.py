"""Audits without a benchmark: their report, and what the terminal says of them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal

from bandana import layers
from bandana.audits.contents import numbers_sha256
from bandana.audits.documents.audit import AuditEntry
from bandana.audits.documents.report import Evidence, EvidenceFile, Report
from bandana.audits.opening import opened
from bandana.audits.outcome import Outcome
from bandana.audits.reporting import render_html, render_pdf, validate
from bandana.audits.reporting.kinds import Document
from bandana.flows.folder.store import write_whole
from bandana.flows.keys import provenance
from bandana.flows.keys.content import content_key
from bandana.flows.results.power_curve import power_curve

FORMATS = ("html", "pdf", "json")


def document(
    title: str,
    audits: list[AuditEntry],
    *,
    kind: Literal["audit", "catalog"],
    table: str,
    actions: list[str],
    rounds: int,
    unit: Literal["rounds", "episodes"] = "rounds",
    seed: int,
    spec: str,
    commands: list[str],
    evidence: list[Path],
) -> Report:
    """A report document (see `bandana.audits.reporting`) of audits alone.

    Args:
      title: of the report.
      audits: their entries, see `bandana.audits.summary.summarize`, each with its provenance.
      kind: audit or catalog.
      table: the data that were replayed, in words.
      actions: names.
      rounds: number of users in each replay.
      unit: rounds or episodes.
      seed: root of all seeds.
      spec: what was asked for, as text.
      commands: commands that repeat it.
      evidence: evidence files.
    """
    made = provenance.summary(("audits", entry["provenance"]) for entry in audits)
    return {
        "schema": "bandana/report/12",
        "kind": kind,
        "title": title,
        "description": "",
        "suite": title,
        "created": made["ended"],
        "deployment": None,
        "people": {"count": None, "source": "an audit replays drawn data"},
        "books": [],
        "environments": [
            {
                "label": "audit table",
                "name": "audit table",
                "description": table,
                "estimator": "No regret was measured.",
                "data": "simulated",
                "horizon": rounds,
                "unit": unit,
                "actions": actions,
                "means": [],
                "visits": None,
                "not_the_data_of": [],
            }
        ],
        "audits": [{**entry, "power": power_curve(entry)} for entry in audits],
        "benchmark": None,
        "regressions": None,
        "related": [],
        "provenance": made,
        "seeds": {
            "root": seed,
            "audit": f"SeedSequence({seed}), one child per pair and side, one grandchild per block of replays",
        },
        "spec": spec,
        "commands": [*commands, *(f"bandana verify {_beside(path)}" for path in evidence)],
        "evidence": evidence_field(evidence_file(path, _beside(path)) for path in evidence),
    }


def _beside(path: Path) -> str:
    """An evidence file as it is called from its report: a suite's lie in a folder, one of a single audit lies beside it."""
    return f"evidence/{path.name}" if path.parent.name == "evidence" else path.name


def evidence_file(path: Path, name: str) -> EvidenceFile:
    """A file of evidence in a report's document: the hash of the file as it is, and of what it says whoever computed it."""
    return {"path": name, "sha256": sha256(path.read_bytes()).hexdigest(), "numbers": numbers_sha256(path)}


def evidence_field(files: Iterable[EvidenceFile]) -> Evidence:
    """The field `evidence` of a report's document, from its files."""
    listed = list(files)
    return {
        "sha256": content_key([[file["path"], file["sha256"]] for file in listed]),
        "numbers": content_key([[file["path"], file["numbers"]] for file in listed]),
        "files": listed,
    }


def write_document(document: Document, stem: Path, formats: Sequence[str] | None = None) -> dict[str, Path]:
    """Checks a document and writes it in the named formats; kind -> where it lies. None: all that can be drawn here.

    Files of other formats that an earlier run left there are removed: they would say something else.
    """
    validate(document)
    if formats is None:
        formats = FORMATS if layers.has("report") else ("json",)
    # Names may hold dots, as in eps-0.1: what follows the last one is no suffix.
    places = {kind: stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS}
    for kind, place in places.items():
        if kind not in formats:
            place.unlink(missing_ok=True)
        else:
            write_whole(place, rendered(document, kind))
    return {kind: place for kind, place in places.items() if kind in formats}


def rendered(document: Document, kind: str) -> bytes:
    """A checked document as a file of a format: html, pdf or json."""
    if kind == "html":
        return render_html(document).encode()
    return render_pdf(document) if kind == "pdf" else (json.dumps(document, indent=1, allow_nan=False) + "\n").encode()


def tell(label: str, outcome: Outcome) -> list[str]:
    """The verdict, the three numbers of each quantity, the planted faults and the reasons, line by line."""
    lines = opened(label, outcome)
    parts = [("", outcome)]
    if outcome.at_test_budget is not None:
        parts.append(("at the test budget, ", outcome.at_test_budget))
    for words, part in parts:
        for quantity, three in part.numbers.items():
            above, shown, note = three.claimed, f"claimed {_number(three.claimed)}", "  (no ledger to account)"
            if three.accounted is not None:
                shown += f"  {_sign(above, three.accounted)}  accounted {_number(three.accounted)}"
                above, note = three.accounted, ""
            shown += f"  {_sign(above, three.measured)}  measured {_number(three.measured)}{note}"
            lines.append(f"  {words}{quantity}: {shown}")
    for reason in outcome.reasons:
        lines += [f"  {line}" for line in reason.splitlines()]
    for _, part in parts:
        if part.counterexample is not None:
            lines += [f"  {line}" for line in part.counterexample["lines"]]
    for control in outcome.all_controls:
        caught = "caught" if control.is_caught else "missed"
        seen = (
            f"measured {_number(control.measured)}"
            if control.measured
            else f"by {' and '.join(control.caught_by) or 'none'}"
        )
        lines.append(f"  {caught:<7} {control.name:<22} {seen}: {control.fault}")
    return [*lines, f"  {_replays_in_words(outcome)}"]


def _replays_in_words(outcome: Outcome) -> str:
    """The smallest fault that replays alone would have shown; searches have no such number."""
    inner = outcome.at_test_budget

    def told(part: Outcome) -> str:
        main = part.main
        return f"{main} {part.power:.3g} times as large" if math.isfinite(part.power) else f"no factor in {main}"

    if outcome.is_release:
        return f"replays on this pair would have caught {told(outcome)} as claimed, or less, with 95 % probability"
    if outcome.events is None:
        return f"replays would have caught, from actions alone, {told(outcome)} as claimed, with 95 % probability"
    caught = f"{told(outcome)} as claimed"
    if inner is not None:
        caught = f"{told(inner)} as claimed at the test budget ({told(outcome)} at the claimed one)"
    return f"replays would have caught {caught}, with 95 % probability"


def _number(value: float) -> str:
    if 0 < value < 1e-3:
        return f"{value:.3g}"
    return f"{value:.4f}" if math.isfinite(value) else "infinite"


def _sign(high: float, low: float) -> str:
    return "<" if low > high * (1 + 1e-9) else ">="
