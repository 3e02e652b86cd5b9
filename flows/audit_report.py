"""Audits without a benchmark: their report, and what the terminal says of them."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from audits.outcome import Outcome
from audits.reporting import render_html, render_pdf, validate
from flows.power_curve import power_curve
from flows.store import code_version, write_whole
from flows.versions import versions

FORMATS = ("html", "pdf", "json")
_SHOWN_VERSIONS = ("python", "bandana", "numpy", "scipy", "numba", "hypothesis")


def document(
    title: str,
    audits: list[dict[str, Any]],
    *,
    kind: str,
    table: str,
    actions: list[str],
    rounds: int,
    unit: str = "rounds",
    seed: int,
    spec: str,
    commands: list[str],
    evidence: list[Path],
) -> dict[str, Any]:
    """A report document (see `audits.reporting`) of audits alone.

    Args:
      title: of the report.
      audits: their entries, see `audits.summary.summarize`.
      kind: audit or catalog.
      table: the data that were replayed, in words.
      actions: names.
      rounds: of each replay.
      unit: what they are: rounds or episodes.
      seed: root of all seeds.
      spec: what was asked for, as text.
      commands: that repeat it.
      evidence: the files.
    """
    files = [{"path": path.name, "sha256": sha256(path.read_bytes()).hexdigest()} for path in evidence]
    return {
        "schema": "bandana/report/5",
        "kind": kind,
        "title": title,
        "suite": title,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "environments": [
            {
                "label": "audit table",
                "name": "audit table",
                "description": table,
                "estimator": "No regret was measured.",
                "horizon": rounds,
                "unit": unit,
                "actions": actions,
                "means": [],
            }
        ],
        "audits": [entry | {"power": power_curve(entry)} for entry in audits],
        "benchmark": None,
        "regressions": None,
        "related": [],
        "software": {"code sha256": code_version(), **versions(*_SHOWN_VERSIONS)},
        "seeds": {
            "root": seed,
            "audit": f"SeedSequence({seed}), one child a pair and side, one grandchild a block of replays",
        },
        "spec": spec,
        "commands": [*commands, *(f"bandana verify {path.name}" for path in evidence)],
        "evidence": {"sha256": sha256("".join(file["sha256"] for file in files).encode()).hexdigest(), "files": files},
    }


def write(found: dict[str, Any], folder: Path, name: str) -> dict[str, Path]:
    """Writes the report in all formats; kind -> where it lies."""
    return write_document(found, folder / name, FORMATS)


def write_document(found: dict[str, Any], stem: Path, formats: Sequence[str]) -> dict[str, Path]:
    """Checks a document and writes it in the named formats; kind -> where it lies.

    Files of other formats that an earlier run left there are removed: they would say something else.
    """
    validate(found)
    # Names may hold dots, as in eps-0.1: what follows the last one is no suffix.
    places = {kind: stem.with_name(f"{stem.name}.{kind}") for kind in FORMATS}
    for kind, place in places.items():
        if kind not in formats:
            place.unlink(missing_ok=True)
        elif kind == "html":
            write_whole(place, render_html(found).encode())
        elif kind == "pdf":
            write_whole(place, render_pdf(found))
        else:
            write_whole(place, (json.dumps(found, indent=1, allow_nan=False) + "\n").encode())
    return {kind: place for kind, place in places.items() if kind in formats}


def tell(label: str, outcome: Outcome) -> list[str]:
    """The verdict, the three numbers of each quantity, the planted faults and the reasons, line by line."""
    lines = [f"{outcome.verdict.value:<13} {label}: {outcome.claim.statement} ({outcome.claim.relation.value})"]
    inner = outcome.at_test_budget
    for words, part in (("", outcome), ("at the test budget, ", inner)):
        if part is None:
            continue
        for quantity, three in part.numbers.items():
            shown = f"claimed {_number(three.claimed)}"
            if three.accounted is None:
                shown += f"  {_sign(three.claimed, three.measured)}  measured {_number(three.measured)}"
                shown += "  (no ledger to account)"
            else:
                shown += f"  {_sign(three.claimed, three.accounted)}  accounted {_number(three.accounted)}"
                shown += f"  {_sign(three.accounted, three.measured)}  measured {_number(three.measured)}"
            lines.append(f"  {words}{quantity}: {shown}")
    for reason in outcome.reasons:
        lines += [f"  {line}" for line in reason.splitlines()]
    for part in (outcome, inner):
        if part is not None and part.counterexample is not None:
            lines += [f"  {line}" for line in part.counterexample["lines"]]
    for control in outcome.all_controls:
        caught = "caught" if control.is_caught else "missed"
        lines.append(f"  {caught:<7} {control.name:<22} measured {_number(control.measured)}: {control.fault}")
    lines.append(f"  {power_in_words(outcome)}")
    return lines


def power_in_words(outcome: Outcome) -> str:
    """The smallest fault that the audit would have seen."""
    inner = outcome.at_test_budget

    def told(part: Outcome) -> str:
        main = part.main
        return f"{main} {part.power:.3g} times as large" if math.isfinite(part.power) else f"no factor in {main}"

    if outcome.events is None:
        return f"power: of what actions show, it would have caught {told(outcome)} as claimed, with 95 % probability"
    if inner is None:
        return f"power: it would have caught {told(outcome)} as claimed, with 95 % probability"
    return (
        f"power: it would have caught {told(inner)} as claimed at the test budget ({told(outcome)} at the claimed one), "
        "with 95 % probability"
    )


def _number(value: float) -> str:
    return f"{value:.4f}" if math.isfinite(value) else "infinite"


def _sign(high: float, low: float) -> str:
    return "<" if low > high * (1 + 1e-9) else ">="
