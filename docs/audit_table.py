"""The table of audits in docs/reproductions.md: `python docs/audit_table.py bandana_data SUITE ...`.

The data folder must hold the suites as `bandana run --audit` or `bandana audit` leave them.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

_HEAD = (
    "| spec | audits | PASS | planted faults caught | measured over accounted, median | at the test budget, median |",
    "|---|--:|--:|--:|--:|--:|",
)


def main_of(audit: dict[str, Any]) -> dict[str, Any]:
    """The three numbers that the verdict is about."""
    return dict(audit["main"])


def test_of(audit: dict[str, Any]) -> dict[str, Any]:
    """The same where the faults were planted: at the test budget, or at the claim where that is one."""
    test = audit["measurement"]["test_budget"]
    return main_of(audit) if test is None else dict(test["main"])


def median(found: Iterable[dict[str, Any]]) -> str:
    """Ratios of measured to accounted, where anything is accounted."""
    shares = [three["measured"] / three["accounted"] for three in found if three["accounted"]]
    return f"{statistics.median(shares):.2f}" if shares else ""


def row_of(name: str, audits: Sequence[dict[str, Any]]) -> str:
    """One suite."""
    passed = sum(audit["verdict"] == "PASS" for audit in audits)
    faults = [control["caught"] for audit in audits for control in audit["controls"]]
    shares = f"{median(map(main_of, audits))} | {median(map(test_of, audits))}"
    return f"| `{name}.yaml` | {len(audits)} | {passed} | {sum(faults)} of {len(faults)} | {shares} |"


def main(root: Path, suites: Sequence[str]) -> None:
    """Prints the table."""
    print(*_HEAD, sep="\n")
    for name in suites:
        document = json.loads((root / "suites" / name / "report.json").read_text(encoding="utf-8"))
        print(row_of(name, document["audits"]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
