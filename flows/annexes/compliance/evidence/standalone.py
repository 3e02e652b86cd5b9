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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bandana.audits.evidence.archive import UnusableEvidence
from bandana.flows.annexes.compliance.evidence.bundle import REPORT, Bundle, check_files, is_bundle, read_bundle
from bandana.flows.annexes.compliance.evidence.lines import OTHER_CODE, Line, Verification, differences, in_part, shortly
from bandana.flows.annexes.compliance.evidence.recompute import verify
from bandana.flows.annexes.compliance.evidence.report import Checked, check_report, read_report
from bandana.flows.annexes.compliance.evidence.signature import check_signature

HELD = ("PASS", "NOT REFUTED")
"""Verdicts that speak for a claim, or at least not against it."""
OK, NOT_HELD, UNUSABLE, DIFFERS, PARTLY = 0, 1, 2, 3, 4
NO_AUDIT = "no audit"
_MARKS = {True: "yes", False: "NO ", None: " - "}
_COLUMNS = (58, 34)
_MOST_NAMED = 12


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
        sealed = check_sealed(bundle, key)
        if any(line.is_ok is False for line in sealed):
            return Verification(tuple(sealed))
        with unpacked(bundle) as report:
            document = read_report(report)
            checked = check_report(report, document)
        lines = [*sealed, *check_manifest(bundle, document, checked.audits), *checked.lines, *_not_made(bundle), _NOT_BUILT]
        return of_report("bundle", document, replace(checked, lines=tuple(lines)))
    if path.suffix == ".json":
        document = read_report(path)
        checked = check_report(path, document)
        return of_report("report", document, replace(checked, lines=(*checked.lines, _NOT_BUILT)))
    return verify(path)


_NOT_BUILT = Line("report: all other fields", "as stated", "needs the algorithms", None, "report")


def _not_made(bundle: Bundle) -> list[Line]:
    """Lines on the files that this verifier cannot make, and so does not compare."""
    names = [name for name in sorted(bundle.files) if not is_evidence(name) and name != REPORT]
    return [Line(f"content of {name}", "as packed", "only bandana verify makes it", None, name) for name in names]


@contextmanager
def unpacked(bundle: Bundle) -> Iterator[Path]:
    """A new folder with the report of a bundle and the files that it lists, nothing else; the place of the report in it."""
    with tempfile.TemporaryDirectory(prefix="bandana-verify-") as name:
        folder = Path(name)
        for file, content in bundle.files.items():
            if file == REPORT or is_evidence(file):
                place = folder / file
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(content)
        try:
            yield folder / REPORT
        except UnusableEvidence as error:
            raise UnusableEvidence(str(error).replace(f"{folder}/", "")) from error


def is_evidence(name: str) -> bool:
    """True if a file of a bundle holds numbers: evidence, or a block of replicates."""
    return name.endswith(".npz")


def check_sealed(bundle: Bundle, key: bytes | None = None) -> list[Line]:
    """Lines on signature and hashes, which come first: of a bundle that was changed nothing else is read.

    Raises:
      UnusableEvidence: the key is none.
    """
    return [*in_part("signature", check_signature(bundle, key)), *in_part("hashes", check_files(bundle))]


def check_manifest(bundle: Bundle, document: Mapping[str, Any], audits: Mapping[str, Verification]) -> list[Line]:
    """Lines on what the manifest says beside hashes: title, claims and verdicts as report and evidence have them."""
    predicate = bundle.predicate
    entries = [
        {"label": entry["label"], "claim": entry["claim"]["statement"], "verdict": audits[entry["label"]].verdict}
        for entry in document["audits"]
        if entry["label"] in audits
    ]
    again = {
        "report": REPORT, "title": document["title"], "suite": document["suite"], "kind": document["kind"],
        "computed": document["created"], "audits": entries,
    }  # fmt: skip
    stated = {name: value for name, value in predicate.items() if name not in ("packed", "code")}
    wrong = [Line(f"manifest: {place}", shortly(mine), shortly(theirs), False) for place, mine, theirs in
             differences(stated, again)]  # fmt: skip
    lines = [*wrong, Line("manifest", f"{len(again)} fields", f"{len(wrong)} differ", not wrong)]
    lines.append(Line("manifest: packed", str(predicate.get("packed")), "time of packing", None, "origin", is_claimed=True))
    return in_part("manifest", lines)


def of_report(kind: str, document: dict[str, Any], checked: Checked) -> Verification:
    """A report's lines as one verification, whose verdict is the worst of its audits."""
    return Verification(
        checked.lines,
        worst(checked.verdicts),
        "; ".join(f"{entry['label']}: {entry['claim']['statement']}" for entry in document["audits"]) or "none",
        {"kind": kind, "name": str(document.get("title", ""))},
    )


def worst(verdicts: Sequence[str]) -> str:
    """The verdict of several audits together: the one that speaks most against the claims."""
    order = ("FAIL", "INCONCLUSIVE", *reversed(HELD))
    return min(verdicts, key=order.index, default=NO_AUDIT)


def conclude(path: Path, result: Verification) -> str:
    """The first line: the result, its verdict, and which parts were compared, not compared, or only stated."""
    if result.is_refused:
        names = list(dict.fromkeys(line.what for line in result.differences))
        more = f"; and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        is_other = all(line.recomputed == OTHER_CODE for line in result.differences)
        word = "NOT COMPARABLE, made by other code than this version's" if is_other else "REFUSED"
        sentence = f"{word}, {len(result.differences)} of {result.n_checked} lines differ: "
        sentence += f"{'; '.join(names[:_MOST_NAMED])}{more}"
    else:
        word = "verified" if result.is_verified else "PARTLY COMPARED"
        sentence = f"{word}, {result.n_checked} lines compared and none differs; the verdict is {result.verdict}"
    parts = (("compared", result.compared), ("not compared", result.not_compared), ("only the sender knows", result.claimed))
    return f"{path.name}: {sentence}" + "".join(
        f". {name.capitalize()}: {'; '.join(which)}" for name, which in parts if which
    )


def head(verification: Verification) -> list[str]:
    """Describes what was audited, what it claims, and what follows from the scores; nothing where none of it was read."""
    if not verification.verdict:
        return []
    subject = verification.subject
    return [
        f"subject   {subject.get('kind', 'unknown')} {subject.get('name', 'without a name')}",
        f"claim     {verification.claim}",
        f"verdict   {verification.verdict}, recomputed",
    ]


def exit_code(verification: Verification) -> int:
    """0: verified, and the verdict speaks for the claim or not against it; 1: verified; 3: refused; 4: partly compared."""
    if verification.is_refused:
        return DIFFERS
    if not verification.is_verified:
        return PARTLY
    return OK if verification.verdict in HELD else NOT_HELD


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="bandana-verify.py",
        description="Recompute the bounds and verdicts of an evidence file, a report or a bundle.",
        epilog="exit codes: 1 verified, and the verdict is no PASS; 2 unusable; 3 refused; 4 partly compared, as this file "
        "holds no algorithms: searches, planted faults, pages and the catalog's words need `bandana verify`",
    )
    parser.add_argument("evidence", type=Path, help="an evidence file, a report's JSON file, or a bundle")
    parser.add_argument("--key", type=Path, help="public key that a bundle must be signed with")
    parser.add_argument("--json", action="store_true", help="one object on standard output, for machines")
    options = parser.parse_args(arguments)
    try:
        verification = check(options.evidence, None if options.key is None else options.key.read_bytes())
    except (UnusableEvidence, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return UNUSABLE
    if options.json:
        lines = [asdict(line) for line in verification.lines]
        print(
            json.dumps({"is_verified": verification.is_verified, "verdict": verification.verdict, "lines": lines}, indent=1)
        )
        return exit_code(verification)
    print("\n".join([conclude(options.evidence, verification), *head(verification)]))
    for line in verification.lines:
        what, stated = (text.ljust(width) for text, width in zip((line.what, line.stated), _COLUMNS, strict=True))
        print(f"{_MARKS[line.is_ok]} {what} {stated} {line.recomputed}")
    return exit_code(verification)
