"""The verdicts of reports for other people's pipelines: SARIF for code scanning, in-toto for supply chains.

SARIF: "Static Analysis Results Interchange Format" 2.1.0 (OASIS, 2020); each audit is a result of the rule `privacy-claim`.
In-toto: the predicate "Test Result" 0.1 in a statement of version 1, whose subjects are the evidence files. Both say of a
verdict what they have words for; the report and its evidence say the rest. Neither is signed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from bandana import __version__
from bandana.audits.documents.audit import AuditEntry
from bandana.audits.documents.report import Report
from bandana.flows.annexes.compliance.evidence.bundle import STATEMENT
from bandana.flows.texts.json_text import JsonObject

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_GOOD = ("PASS", "NOT REFUTED")
_RULE = "privacy-claim"
_ABOUT = "A privacy claim is tested on neighboring data sets; an audit finds counterexamples, and proves nothing."


def level(entry: AuditEntry) -> str:
    """`error` for a refuted claim, `warning` where nothing can be said, `none` otherwise."""
    return "none" if entry["verdict"] in _GOOD else "error" if entry["verdict"] == "FAIL" else "warning"


def message(entry: AuditEntry) -> str:
    """The verdict with what was read, what to do next, and the reasons; line by line."""
    reasons = [] if entry["verdict"] in _GOOD else entry["reasons"]
    return "\n".join([*(entry["coverage"] or [f"{entry['verdict']} {entry['label']}"]), *reasons])


def source_of(entry: AuditEntry) -> str | None:
    """The file of an audit of own code, which its label FILE.py:NAME names; None for the catalog's."""
    file, is_named, _ = entry["label"].rpartition(":")
    return file if is_named and file.endswith(".py") else None


def sarif(reports: Sequence[Report]) -> JsonObject:
    """One run of SARIF with a result for each audit of the reports."""
    results = []
    for entry in (entry for report in reports for entry in report["audits"]):
        is_good = level(entry) == "none"
        result: JsonObject = {"ruleId": _RULE, "level": level(entry), "kind": "pass" if is_good else "fail"}
        result["message"] = {"text": message(entry)}
        if (file := source_of(entry)) is not None:
            place = {"artifactLocation": {"uri": file}, "region": {"startLine": 1}}
            result["locations"] = [{"physicalLocation": place}]
        results.append(result)
    rule = {"id": _RULE, "shortDescription": {"text": _ABOUT}}
    driver = {"name": "Bandana", "semanticVersion": __version__, "rules": [rule]}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def in_toto(reports: dict[Path, Report]) -> JsonObject:
    """An in-toto statement with the predicate "Test Result", not signed, on the evidence of some reports.

    Args:
      reports: place of each report's JSON file -> its document.
    """
    entries = [entry for report in reports.values() for entry in report["audits"]]
    by_level = {name: [entry["label"] for entry in entries if level(entry) == name] for name in ("none", "warning", "error")}
    files = [(file["path"], file["sha256"]) for report in reports.values() for file in report["evidence"]["files"]]
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": digest}} for name, digest in files],
        "predicateType": TEST_RESULT,
        "predicate": {
            "result": "FAILED" if by_level["error"] else "WARNED" if by_level["warning"] else "PASSED",
            "configuration": [
                {"name": place.name, "digest": {"sha256": hashlib.sha256(place.read_bytes()).hexdigest()}}
                for place in reports
            ],
            "passedTests": by_level["none"],
            "warnedTests": by_level["warning"],
            "failedTests": by_level["error"],
        },
    }


def annotation(entry: AuditEntry) -> str:
    """A line that GitHub shows beside a pull request, with its own escapes."""
    kind = {"none": "notice", "warning": "warning", "error": "error"}[level(entry)]
    file = source_of(entry)
    where = f" file={_escaped(file, ',:')},line=1" if file is not None else ""
    return f"::{kind}{where}::{_escaped(message(entry))}"


def _escaped(text: str, also: str = "") -> str:
    """Text of a workflow command of GitHub: percent signs and line ends, and in properties also `also`."""
    return "".join(f"%{ord(sign):02X}" if sign in "%\r\n" + also else sign for sign in text)
