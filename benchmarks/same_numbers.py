"""Compares the numbers of two data folders: python -m benchmarks.same_numbers BEFORE AFTER.

Reports of all suites are compared: verdicts, claimed, accounted and measured numbers, every bound, every planted fault,
power and trade-off curves of audits; regret curves and budgets of benchmark cells. Labels may differ between versions:
algorithms are matched by the names that their seeds are derived from. It exits with 1 if anything differs.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bandana.algorithms.catalog import CATALOG

_AUDIT = ("verdict", "main", "mu", "epsilon", "power", "tradeoff")
_CELL = ("epsilon", "mu", "mu_claimed", "mu_spent", "mean", "low", "high", "bound", "replications")


def main() -> None:
    """Prints what differs, suite by suite."""
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    before, after = (Path(place) / "suites" for place in sys.argv[1:])
    suites = sorted({path.parent.name for root in (before, after) for path in root.glob("*/report.json")})
    differing = 0
    for suite in suites:
        found = [_numbers(root / suite / "report.json") for root in (before, after)]
        lines = list(_differences(*found))
        differing += len(lines)
        print(
            f"{suite}: {sum(map(len, found[0].values()))} numbers of {len(found[0])} audits and cells, {len(lines)} differ"
        )
        print("".join(f"  {line}\n" for line in lines), end="")
    raise SystemExit(1 if differing or not suites else 0)


def _numbers(report: Path) -> dict[str, dict[str, Any]]:
    """Label -> path of a number -> number, or a verdict."""
    if not report.is_file():
        return {}
    document = json.loads(report.read_text(encoding="utf-8"))
    found = {}
    for audit in document["audits"]:
        kept = {name: audit[name] for name in _AUDIT}
        kept["accounted"] = audit["accountant"]["events"]
        kept["bounds"] = [[bound["lower"], bound["level"], bound["claimed"]] for bound in audit["measurement"]["bounds"]]
        kept["faults"] = {item["name"]: [item["measured"], item["limit"], item["caught"]] for item in audit["controls"]}
        found[f"audit {_today(audit['label'])}"] = dict(_flat("", kept))
    for cell in (document["benchmark"] or {"cells": ()})["cells"]:
        found[f"cell {_today(cell['label'])}"] = dict(_flat("", {name: cell[name] for name in _CELL}))
    return found


def _today(label: str) -> str:
    """The label with the algorithm's present name in front."""
    if any(f"{label} ".startswith(f"{entry.label} ") for entry in CATALOG):
        return label
    for entry in sorted(CATALOG, key=lambda entry: -len(entry.seed_name)):
        if f"{label} ".startswith(f"{entry.seed_name} "):
            return entry.label + label[len(entry.seed_name) :]
    return label


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{path}.{name}", part)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _flat(f"{path}[{place}]", part)
    elif isinstance(value, int | float) or path == ".verdict":
        yield path.lstrip("."), value


def _differences(before: dict[str, dict[str, Any]], after: dict[str, dict[str, Any]]) -> Iterator[str]:
    for label in sorted(before.keys() | after.keys()):
        if label not in before or label not in after:
            yield f"{label}: only in the {'second' if label not in before else 'first'} folder"
            continue
        one, other = before[label], _renamed(after[label], before[label])
        for path in dict.fromkeys([*one, *other]):
            if one.get(path) != other.get(path) and not _are_both_nan(one.get(path), other.get(path)):
                yield f"{label}: {path}: {one.get(path)} -> {other.get(path)}"


def _renamed(after: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The numbers with each planted fault under its earlier name, where one fault alone has the same results."""

    def faults(numbers: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for path, value in numbers.items():
            if path.startswith("faults."):
                name = path.removeprefix("faults.").partition("[")[0]
                found[name] = (*found.get(name, ()), value)
        return found

    old, new = faults(before), faults(after)
    gone = {name: results for name, results in old.items() if name not in new}
    names = {}
    for name in new.keys() - old.keys():
        same = [earlier for earlier, results in gone.items() if results == new[name]]
        if len(same) == 1:
            names[f"faults.{name}["] = f"faults.{same[0]}["
    return {
        next((path.replace(now, then) for now, then in names.items() if path.startswith(now)), path): value
        for path, value in after.items()
    }


def _are_both_nan(one: Any, other: Any) -> bool:
    return isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)


if __name__ == "__main__":
    main()
