"""A report's numbers recomputed from the files that it lists: bounds and verdicts from evidence, regret from results."""

from __future__ import annotations

import hashlib
import json
import math
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bandana.audits.contents import PROVENANCE, numbers_sha256, read_description
from bandana.audits.evidence.archive import UnusableEvidence, read
from bandana.audits.evidence.lines import Line, Verification, agree, shown
from bandana.audits.evidence.recompute import verify
from bandana.audits.reporting.document import REPORT
from bandana.audits.reporting.intervals import mean_interval
from bandana.audits.summary import summarize

_ABOUT = ("label", "algorithm", "calibration", "privacy_model", "parameters", "provenance")
"""Fields of an audit's entry that its evidence keeps elsewhere, or not at all."""
_SIMULATED = ("power",)
_READ_ERRORS = (OSError, ValueError, KeyError, zipfile.BadZipFile)
_WIDEST = 100


@dataclass(frozen=True)
class Checked:
    """A report beside what follows from its files.

    Attributes:
      lines: of the report, and those lines of its evidence that differ.
      audits: label -> verification of the audit's evidence.
      evidence: label -> its file.
    """

    lines: tuple[Line, ...]
    audits: Mapping[str, Verification]
    evidence: Mapping[str, Path]

    @property
    def verdicts(self) -> list[str]:
        """Recomputed verdicts of the audits."""
        return [found.verdict for found in self.audits.values()]


def read_report(path: Path) -> dict[str, Any]:
    """The document of a report.

    Raises:
      UnusableEvidence: no such file, or no report.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UnusableEvidence(f"{path}: cannot be read: {error}") from error
    schema = document.get("schema", "") if isinstance(document, dict) else ""
    if not str(schema).startswith("bandana/report/"):
        raise UnusableEvidence(f"{path}: is no report: its schema is {schema!r}")
    if not isinstance(document.get("audits"), list) or not isinstance(document.get("evidence"), dict):
        raise UnusableEvidence(f"{path}: lacks audits or evidence")
    return document


def find(path: Path, name: str) -> Path | None:
    """Where a file that a report lists lies: beside the report, below it, or in the data folder that the report is in."""
    folders = [path.parent, path.parent.parent, path.parent.parent.parent, path.parent.parent.parent.parent]
    places = [folder / name for folder in folders] + [path.parent / Path(name).name]
    return next((place for place in places if place.is_file()), None)


def check_report(path: Path, document: Mapping[str, Any], check: Callable[[Path], Verification] = verify) -> Checked:
    """Recomputes what a report says from the files that it lists.

    Args:
      path: of the report's JSON file.
      document: what it holds, see `read_report`.
      check: verifies one evidence file.

    Raises:
      UnusableEvidence: none of its evidence lies where the report says, or a field is of the wrong kind.
    """
    try:
        return _checked(path, document, check)
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise UnusableEvidence(f"{path}: cannot be used: {type(error).__name__}: {error}") from error


def _checked(path: Path, document: Mapping[str, Any], check: Callable[[Path], Verification]) -> Checked:
    listed = {file["path"]: file for file in document["evidence"]["files"]}
    places = {name: find(path, name) for name in listed}
    if listed and not any(places.values()):
        raise UnusableEvidence(f"{path}: none of its {len(listed)} files of evidence lies beside it")
    lines = [line for name, file in listed.items() for line in _check_file(file, places[name])]
    verifications: dict[str, Verification] = {}
    evidence: dict[str, Path] = {}
    blocks: list[Path] = []
    for name, place in places.items():
        if place is None:
            continue
        try:
            if "schema" not in read_description(place):
                blocks.append(place)
                continue
            found = check(place)
            label = found.subject.get("name", name)
        except (UnusableEvidence, *_READ_ERRORS) as error:
            lines.append(Line(name, "evidence", str(error), False))
            continue
        verifications[label], evidence[label] = found, place
        lines += [replace(line, what=f"{label}: {line.what}") for line in found.lines if line.is_ok is False]
        lines.append(
            Line(f"{label}: evidence", f"{found.n_checked} lines", f"{len(found.differences)} differ", found.is_verified)
        )
    for entry in document["audits"]:
        label = entry["label"]
        if label in evidence:
            lines += list(_check_entry(entry, evidence[label], is_current=document["schema"] == REPORT))
        else:
            lines.append(Line(f"{label}: evidence", "audited", "no listed file is its evidence", False))
    if spare := sorted({*evidence} - {entry["label"] for entry in document["audits"]}):
        lines.append(Line("audits", "in the report", f"evidence without an entry: {', '.join(spare)}", False))
    lines += _check_regret(document, blocks)
    return Checked(tuple(lines), verifications, evidence)


def _check_file(file: Mapping[str, str], place: Path | None) -> Iterator[Line]:
    """The hashes of a listed file."""
    if place is None:
        yield Line(f"{file['path']}", "listed", "there is no such file", False)
        return
    found = hashlib.sha256(place.read_bytes()).hexdigest()
    yield Line(f"{file['path']}: SHA-256", f"{file['sha256'][:16]}...", f"{found[:16]}...", file["sha256"] == found)
    try:
        numbers = numbers_sha256(place)
    except _READ_ERRORS as error:
        numbers = str(error)
    if file["numbers"] != numbers:
        yield Line(f"{file['path']}: numbers", f"{file['numbers'][:16]}...", f"{numbers[:16]}...", False)


def _check_entry(entry: Mapping[str, Any], evidence: Path, *, is_current: bool) -> Iterator[Line]:
    """An audit's entry beside the one that follows from its evidence; an older report lacks fields of today's."""
    label, outcome = entry["label"], read(evidence).outcome
    again = json.loads(json.dumps(summarize(outcome, {})))
    later = [] if is_current else sorted({*again} - {*entry})
    again = {name: value for name, value in again.items() if name not in later}
    wrong = list(_differences({name: entry.get(name) for name in again}, again, ""))
    if later:
        yield Line(f"{label}: {', '.join(later)}", "of an older form", "not in the report", None)
    for name, stated, found in wrong:
        yield Line(f"{label}: {name}", _short(stated), _short(found), False)
    yield Line(f"{label}: report", f"{len(again)} fields", f"{len(wrong)} differ", not wrong)
    made = outcome.provenance or {}
    request = made.get("of") or {}
    for name in ("calibration", "privacy_model"):
        if name in request and request[name] != entry.get(name):
            yield Line(f"{label}: {name}", shown(entry.get(name)), shown(request[name]), False)
    stated = entry.get("provenance") or {}
    changed = [name for name, value in stated.items() if value is not None and name in made and not agree(value, made[name])]
    if changed or (bool(stated) and not made):
        yield Line(f"{label}: provenance", "as in the report", f"other {', '.join(changed) or 'origin'}", False)
    rest = sorted({*entry} - {*again, *_ABOUT, *_SIMULATED})
    if rest:
        yield Line(f"{label}: {', '.join(rest)}", "stated", "not in the evidence", None)


def _differences(stated: Any, found: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Places at which two JSON values differ, numbers up to rounding."""
    if isinstance(stated, dict) and isinstance(found, dict):
        for key in dict.fromkeys([*found, *stated]):
            yield from _differences(stated.get(key), found.get(key), f"{path}.{key}" if path else key)
    elif isinstance(stated, list) and isinstance(found, list) and len(stated) == len(found):
        for index, (mine, theirs) in enumerate(zip(stated, found, strict=True)):
            yield from _differences(mine, theirs, f"{path}[{index}]")
    elif not _is_same(stated, found):
        yield path, stated, found


def _is_same(stated: Any, found: Any) -> bool:
    numbers = [isinstance(value, int | float) and not isinstance(value, bool) for value in (stated, found)]
    return agree(float(stated), float(found)) if all(numbers) else stated == found and numbers[0] == numbers[1]


def _short(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."


# --- regret --------------------------------------------------------------------------------------------------------


def _check_regret(document: Mapping[str, Any], blocks: Sequence[Path]) -> list[Line]:
    """The regret of each cell, recomputed from blocks of replicates."""
    benchmark = document.get("benchmark") or {"cells": [], "grid": []}
    cells = [cell for cell in benchmark["cells"] if cell["mean"] is not None]
    if not cells:
        return []
    if not blocks:
        return [Line("regret", f"{len(cells)} cells", "no results lie beside the report", None)]
    groups: dict[str, list[tuple[int, Path]]] = defaultdict(list)
    for place in blocks:
        made = read_description(place).get(PROVENANCE, {}).get("of", {})
        asked = {name: value for name, value in made.items() if name not in ("block", "n_reps")}
        groups[json.dumps(asked, sort_keys=True)].append((int(made.get("block", 0)), place))
    played = {asked: _summary([place for _, place in sorted(found)]) for asked, found in groups.items()}
    lines = []
    for cell in cells:
        match = [asked for asked, found in played.items() if _is_cell(cell, benchmark["grid"], json.loads(asked), found)]
        what = f"regret of {cell['label']} on {cell['environment']}"
        lines.append(Line(what, shown(cell["final_mean"]), "as in the results" if match else "in no result", bool(match)))
    return lines


def _summary(places: Sequence[Path]) -> dict[str, Any]:
    """Grid, mean and interval of the regret of all blocks of a cell."""
    grids, rows = [], []
    for place in places:
        with np.load(place, allow_pickle=False) as archive:
            grids.append(archive["grid"])
            rows.append(archive["regret"])
    regret = np.concatenate(rows)
    return {
        "grid": grids[0].tolist(),
        "n": len(regret),
        **{n: v.tolist() for n, v in mean_interval(regret)._asdict().items()},
    }


def _is_cell(cell: Mapping[str, Any], grid: list[int], asked: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
    """Whether a cell's regret is what these blocks give, and they are of its model and calibration."""
    is_named = all(asked.get(name) == cell[name] for name in ("calibration", "privacy_model"))
    is_twin = (asked.get("noise") == "none") == (cell.get("role") == "twin")
    ends = [cell[f"final_{name}"] == cell[name][-1] for name in ("mean", "low", "high")]
    same = all(_close(cell[name], found[name]) for name in ("mean", "low", "high"))
    return is_named and is_twin and grid == found["grid"] and cell["replications"] == found["n"] and same and all(ends)


def _close(first: Sequence[float], second: Sequence[float]) -> bool:
    pairs = zip(first, second, strict=True)
    return len(first) == len(second) and all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
