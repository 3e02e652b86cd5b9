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
from bandana.audits.evidence.fields import from_json
from bandana.audits.reporting.intervals import mean_interval
from bandana.audits.summary import summarize
from bandana.flows.annexes.compliance.evidence.bundle import is_plain
from bandana.flows.annexes.compliance.evidence.lines import Line, Verification, agree, differences, in_part, shortly, shown
from bandana.flows.annexes.compliance.evidence.recompute import verify

_ABOUT = ("label", "algorithm", "calibration", "privacy_model", "parameters", "provenance")
"""Fields of an audit's entry that its evidence keeps elsewhere, or not at all."""
_SIMULATED = ("power",)
_READ_ERRORS = (OSError, ValueError, KeyError, zipfile.BadZipFile)


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
    def is_refused(self) -> bool:
        """True if some line differs."""
        return any(line.is_ok is False for line in self.lines)

    @property
    def verdicts(self) -> list[str]:
        """Recomputed verdicts of the audits."""
        return [verification.verdict for verification in self.audits.values()]


def read_report(path: Path) -> Any:
    """The document of a report.

    Raises:
      UnusableEvidence: no such file, or no report.
    """
    try:
        document = from_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UnusableEvidence(f"{path}: cannot be read: {error}") from error
    schema = document.get("schema", "") if isinstance(document, dict) else ""
    if not str(schema).startswith("bandana/report/"):
        raise UnusableEvidence(f"{path}: is no report: its schema is {schema!r}")
    if not isinstance(document.get("audits"), list) or not isinstance(document.get("evidence"), dict):
        raise UnusableEvidence(f"{path}: lacks audits or evidence")
    return document


def find(path: Path, name: str) -> Path | None:
    """Where a file that a report lists lies: beside the report, below it, or in the data folder that the report is in.

    None for a name that leads elsewhere.
    """
    if not is_plain(name):
        return None
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
    lines = in_part("hashes", [line for name, file in listed.items() for line in _check_file(file, places[name])])
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
            verification = check(place)
            label = verification.subject.get("name", name)
        except (UnusableEvidence, *_READ_ERRORS) as error:
            lines.append(Line(name, "evidence", str(error), False))
            continue
        verifications[label], evidence[label] = verification, place
        lines += [replace(line, what=f"{label}: {line.what}") for line in verification.lines if not line.is_ok]
        for part in dict.fromkeys(line.part for line in verification.lines if line.is_ok is not None):
            mine = [line.is_ok for line in verification.lines if line.part == part and line.is_ok is not None]
            differ = mine.count(False)
            lines.append(Line(f"{label}: {part}", f"{len(mine)} lines", f"{differ} differ", not differ, part))
    for entry in document["audits"]:
        label = entry["label"]
        if label in evidence:
            lines += in_part("report", _check_entry(entry, evidence[label]))
        else:
            lines.append(Line(f"{label}: evidence", "audited", "no listed file is its evidence", False))
    if spare := sorted({*evidence} - {entry["label"] for entry in document["audits"]}):
        lines.append(Line("audits", "in the report", f"evidence without an entry: {', '.join(spare)}", False))
    lines += in_part("regret", _check_regret(document, blocks))
    return Checked(tuple(in_part("report", lines)), verifications, evidence)


def _check_file(file: Mapping[str, str], place: Path | None) -> Iterator[Line]:
    """The hashes of a listed file."""
    if place is None:
        yield Line(f"{file['path']}", "listed", "there is no such file", False)
        return
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    yield Line(f"{file['path']}: SHA-256", f"{file['sha256'][:16]}...", f"{digest[:16]}...", file["sha256"] == digest)
    try:
        numbers = numbers_sha256(place)
    except _READ_ERRORS as error:
        numbers = str(error)
    if file["numbers"] != numbers:
        yield Line(f"{file['path']}: numbers", f"{file['numbers'][:16]}...", f"{numbers[:16]}...", False)


def _check_entry(entry: Mapping[str, Any], evidence: Path) -> Iterator[Line]:
    """An audit's entry beside the one that follows from its evidence."""
    label, outcome = entry["label"], read(evidence).outcome
    again = json.loads(json.dumps(summarize(outcome, {"label": label})))
    del again["label"]  # as given; its first line of coverage opens with it
    wrong = list(differences({name: entry[name] for name in again if name in entry}, again))
    for name, stated, recomputed in wrong:
        yield Line(f"{label}: {name}", shortly(stated), shortly(recomputed), False)
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
        yield Line(f"{label}: {', '.join(rest)}", "stated", "no such fields", False)


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
        request = {name: value for name, value in made.items() if name not in ("block", "n_reps")}
        groups[json.dumps(request, sort_keys=True)].append((int(made.get("block", 0)), place))
    played = {request: _summary([place for _, place in sorted(results)]) for request, results in groups.items()}
    lines = []
    for cell in cells:
        match = [
            request for request, results in played.items() if _is_cell(cell, benchmark["grid"], json.loads(request), results)
        ]
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


def _is_cell(cell: Mapping[str, Any], grid: list[int], request: Mapping[str, Any], results: Mapping[str, Any]) -> bool:
    """True if a cell's regret is what these blocks give, and they are of its model and calibration."""
    is_named = all(request.get(name) == cell[name] for name in ("calibration", "privacy_model"))
    is_twin = (request.get("noise") == "none") == (cell.get("role") == "twin")
    ends = [cell[f"final_{name}"] == cell[name][-1] for name in ("mean", "low", "high")]
    same = all(_close(cell[name], results[name]) for name in ("mean", "low", "high"))
    return is_named and is_twin and grid == results["grid"] and cell["replications"] == results["n"] and same and all(ends)


def _close(first: Sequence[float], second: Sequence[float]) -> bool:
    pairs = zip(first, second, strict=True)
    return len(first) == len(second) and all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in pairs)
