"""The verifier that needs NumPy and SciPy alone: evidence, reports and bundles, recomputed and printed as plain text.

`bandana-verify.py` in a bundle is this module with all that it imports, in one file (see `one_file`). It cannot run replays
again, which takes the algorithms. It checks signatures where the package `cryptography` is installed, and composes mixed
noise where `dp-accounting` is.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bandana.audits.evidence.archive import UnusableEvidence
from bandana.audits.evidence.bundle import Bundle, check_files, is_bundle, read_bundle
from bandana.audits.evidence.lines import Line, Verification
from bandana.audits.evidence.recompute import verify
from bandana.audits.evidence.report import Checked, check_report, read_report
from bandana.audits.evidence.signature import check_signature

HELD = ("PASS", "NOT REFUTED")
"""Verdicts that speak for a claim, or at least not against it."""
OK, NOT_HELD, UNUSABLE, DIFFERS = 0, 1, 2, 3
_MARKS = {True: "yes", False: "NO ", None: " - "}
_COLUMNS = (58, 34)


def check(path: Path, key: bytes | None = None) -> Verification:
    """Verifies an evidence file, the JSON file of a report, or a bundle.

    Args:
      path: which of them it is follows from its content.
      key: PEM of the public key that a bundle must be signed with.

    Raises:
      UnusableEvidence: nothing can be recomputed from it.
    """
    if is_bundle(path):
        bundle = read_bundle(path)
        with unpacked(bundle) as report:
            document = read_report(report)
            found = check_report(report, document)
            lines = (*check_bundle(bundle, found, key), *found.lines)
            return of_report("bundle", document, replace(found, lines=lines))
    if path.suffix == ".json":
        document = read_report(path)
        return of_report("report", document, check_report(path, document))
    return verify(path)


@contextmanager
def unpacked(bundle: Bundle) -> Iterator[Path]:
    """A folder with the files of a bundle, and in it the JSON file of its report."""
    with tempfile.TemporaryDirectory(prefix="bandana-verify-") as name:
        folder = Path(name)
        for file, content in bundle.files.items():
            place = folder / file
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        try:
            yield folder / str(bundle.predicate.get("report", "report.json"))
        except UnusableEvidence as error:
            raise UnusableEvidence(str(error).replace(f"{folder}/", "")) from error


def check_bundle(bundle: Bundle, report: Checked, key: bytes | None = None) -> list[Line]:
    """Lines on a bundle whose report was recomputed: signature, hashes, and the verdicts that its manifest states.

    Raises:
      UnusableEvidence: the key is none.
    """
    stated = {item["label"]: item["verdict"] for item in bundle.predicate.get("audits", [])}
    again = {label: each.verdict for label, each in report.audits.items()}
    verdicts = Line("verdicts in the manifest", _listed(stated), _listed(again), stated == again)
    return [*check_signature(bundle, key), *check_files(bundle), verdicts]


def of_report(kind: str, document: dict[str, Any], found: Checked) -> Verification:
    """A report's lines as one verification, whose verdict is the worst of its audits."""
    return Verification(found.lines, worst(found.verdicts), _claims(document), _titled(kind, document))


def worst(verdicts: Sequence[str]) -> str:
    """The verdict of several audits together: the one that speaks most against the claims."""
    order = ("FAIL", "INCONCLUSIVE", *reversed(HELD))
    return min(verdicts, key=order.index, default="no audit")


def _listed(verdicts: dict[str, str]) -> str:
    return ", ".join(f"{label}: {verdict}" for label, verdict in sorted(verdicts.items())) or "none"


def _titled(kind: str, document: dict[str, Any]) -> dict[str, str]:
    return {"kind": kind, "name": str(document.get("title", ""))}


def _claims(document: dict[str, Any]) -> str:
    return "; ".join(f"{entry['label']}: {entry['claim']['statement']}" for entry in document["audits"]) or "none"


def conclude(path: Path, found: Verification) -> str:
    """One sentence on whether the evidence holds, and what its verdict is."""
    if found.is_verified:
        return f"{path.name}: verified, {found.n_checked} lines recomputed and none differs; the verdict is {found.verdict}"
    names = "; ".join(line.what for line in found.differences)
    return f"{path.name}: NOT verified, {len(found.differences)} of {found.n_checked} lines differ: {names}"


def head(found: Verification) -> list[str]:
    """What was audited, what it claims, and what follows from the scores."""
    subject = found.subject
    return [
        f"subject   {subject.get('kind', 'unknown')} {subject.get('name', 'without a name')}",
        f"claim     {found.claim}",
        f"verdict   {found.verdict}, recomputed",
    ]


def exit_code(found: Verification) -> int:
    """0: verified, and the verdict speaks for the claim or not against it; 1: verified; 3: not verified."""
    if not found.is_verified:
        return DIFFERS
    return OK if found.verdict in (*HELD, "no audit") else NOT_HELD


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="bandana-verify.py",
        description="Recompute the bounds and verdicts of an evidence file, a report or a bundle.",
        epilog="exit codes: 0 verified, PASS or NOT REFUTED; 1 verified, FAIL or INCONCLUSIVE; 2 unusable; 3 not verified",
    )
    parser.add_argument("evidence", type=Path, help="an evidence file, a report's JSON file, or a bundle")
    parser.add_argument("--key", type=Path, help="public key that a bundle must be signed with")
    parser.add_argument("--json", action="store_true", help="one object on standard output, for machines")
    asked = parser.parse_args(arguments)
    try:
        found = check(asked.evidence, None if asked.key is None else asked.key.read_bytes())
    except (UnusableEvidence, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    if asked.json:
        lines = [asdict(line) for line in found.lines]
        print(json.dumps({"is_verified": found.is_verified, "verdict": found.verdict, "lines": lines}, indent=1))
        return exit_code(found)
    print("\n".join(head(found)))
    for line in found.lines:
        what, stated = (text.ljust(width) for text, width in zip((line.what, line.stated), _COLUMNS, strict=True))
        print(f"{_MARKS[line.is_ok]} {what} {stated} {line.recomputed}")
    print(conclude(asked.evidence, found))
    return exit_code(found)
