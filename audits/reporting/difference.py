"""Comparison of two report documents, as a document of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import Literal, TypeVar

from bandana.audits.documents import comparison as documents
from bandana.audits.documents.audit import ROLES, Audit, Three
from bandana.audits.documents.benchmark import BenchmarkCell
from bandana.audits.documents.fields import T, present
from bandana.audits.documents.report import EvidenceFile, Report
from bandana.audits.names import titles_of, with_titles
from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import at_least, plain
from bandana.audits.reporting.document import cells_of
from bandana.audits.reporting.figures import regret_plots
from bandana.audits.reporting.intervals import unpaired_interval
from bandana.audits.reporting.numbers import name_of, number
from bandana.audits.reporting.sections.power import factor_of

_AGREE = 1e-9
_ORDER = ("FAIL", "INCONCLUSIVE", "NOT REFUTED", "PASS")
_ARROW = "→"
_SETTINGS: tuple[Literal["unit", "relation", "view_of_adversary"], ...] = ("unit", "relation", "view_of_adversary")
_CLAIM: tuple[Literal["statement", "theorem", "source"], ...] = ("statement", "theorem", "source")
_FINDINGS: tuple[Literal["counterexample", "noise_finding"], ...] = ("counterexample", "noise_finding")
_EFFORT: tuple[Literal["confidence", "replays_per_side", "seed", "table"], ...]
_EFFORT = ("confidence", "replays_per_side", "seed", "table")


def compare(before: Report, after: Report) -> documents.Comparison:
    """Compares two valid report documents, see `comparison.schema.json`.

    Args:
      before: a report.
      after: the report to compare it with, usually of a later run.

    Returns:
      a document that `validate`, `render_html` and `render_pdf` take; the same for the same reports.
    """
    names = list(dict.fromkeys((before["suite"], after["suite"])))
    times = [run["created"] for run in (before, after) if run["created"] is not None]
    comparison: documents.Comparison = {
        "schema": "bandana/comparison/2",
        "kind": "comparison",
        "title": f"What changed: {' and '.join(names)}",
        "suite": " and ".join(names),
        "created": max(times, key=datetime.fromisoformat, default=None),
        "runs": {"before": _run(before), "after": _run(after)},
        "audits": [_audit(*pair) for pair in _paired(before["audits"], after["audits"])],
        "cells": [_cell(before, after, *pair) for pair in _paired(cells_of(before), cells_of(after))],
        "settings": list(_settings(before, after)),
        "spec_diff": "\n".join(
            unified_diff(before["spec"].splitlines(), after["spec"].splitlines(), "before", "after", lineterm="")
        ),
        "evidence": _evidence(before["evidence"]["files"], after["evidence"]["files"]),
    }
    return with_titles(comparison, titles_of(before) | titles_of(after))


def difference(before: BenchmarkCell, after: BenchmarkCell) -> documents.RegretDifference:
    """Difference of two means with Welch's 95 % interval, from the errors that both intervals imply.

    Args:
      before: a cell whose regret is shown.
      after: the same.
    """
    mean, low, high = unpaired_interval(
        regret_plots.final_of(before), before["replications"], regret_plots.final_of(after), after["replications"]
    )
    return {"mean": mean, "low": low, "high": high, "is_resolved": not low <= 0 <= high}


def _run(document: Report) -> documents.Run:
    return {
        "kind": document["kind"],
        "title": document["title"],
        "suite": document["suite"],
        "created": document["created"],
        "evidence": document["evidence"]["numbers"],
    }


Labeled = TypeVar("Labeled", Audit, BenchmarkCell)


def _paired(before: Sequence[Labeled], after: Sequence[Labeled]) -> Iterator[tuple[str, Labeled | None, Labeled | None]]:
    """Label, earlier and later item, in the order of the earlier run; new ones come last."""
    earlier: dict[str, Labeled] = {item["label"]: item for item in before}
    later: dict[str, Labeled] = {item["label"]: item for item in after}
    for label in dict.fromkeys([*earlier, *later]):
        yield label, earlier.get(label), later.get(label)


def _status(before: object, after: object, changes: list[str]) -> documents.Status:
    if before is None:
        return "new"
    if after is None:
        return "gone"
    return "changed" if changes else "same"


def _audit(label: str, before: Audit | None, after: Audit | None) -> documents.AuditChange:
    changes, is_worse = [], False
    if before is not None and after is not None:
        changes = list(_changes_of_audit(before, after))
        is_worse = _ORDER.index(after["verdict"]) < _ORDER.index(before["verdict"])
    return {
        "label": label,
        "status": _status(before, after, changes),
        "is_worse": is_worse,
        "before": _side_of_audit(before),
        "after": _side_of_audit(after),
        "changes": changes,
    }


def _side_of_audit(audit: Audit | None) -> documents.ComparedAudit | None:
    if audit is None:
        return None
    return {
        "verdict": audit["verdict"],
        "claim": audit["claim"]["statement"],
        "delta": audit["delta"],
        "quantity": audit["main"]["quantity"],
        "main": _three_of(audit["main"]),
        "epsilon": _three_of(audit["epsilon"]),
        "smallest_factor": audit["measurement"]["smallest_factor"],
        "caught": sum(control["caught"] for control in audit["controls"]),
        "planted": len(audit["controls"]),
    }


def _three_of(three: Three) -> Three:
    return {"claimed": three["claimed"], "accounted": three["accounted"], "measured": three["measured"]}


def _changes_of_audit(before: Audit, after: Audit) -> Iterator[str]:
    yield from _moved("verdict", before["verdict"], after["verdict"])
    for key in _SETTINGS:
        yield from _moved(key.replace("_", " "), before[key], after[key])
    for name in _CLAIM:
        yield from _moved(f"claim, {name}", before["claim"][name], after["claim"][name])
    yield from _moved("δ", before["delta"], after["delta"])
    quantities = before["main"]["quantity"], after["main"]["quantity"]
    if quantities[0] != quantities[1]:
        yield f"main quantity: {name_of(quantities[0])} {_ARROW} {name_of(quantities[1])}"
    epsilons = ("ε at δ", _three_of(before["epsilon"]), _three_of(after["epsilon"]))
    triples = [epsilons] if before["delta"] == after["delta"] else []
    if quantities[0] == quantities[1]:
        triples.insert(0, (name_of(quantities[0]), _three_of(before["main"]), _three_of(after["main"])))
    for quantity, then, now in triples:
        for role in ROLES:
            words = at_least if role == "measured" else number
            yield from _moved(f"{quantity}, {role}", then[role], now[role], words)
    factors = [side["measurement"]["smallest_factor"] for side in (before, after)]
    yield from _moved("smallest detectable fault", factors[0], factors[1], factor_of)
    controls = [{c["name"]: c["caught"] for c in side["controls"]} for side in (before, after)]
    for fault in dict.fromkeys([*controls[0], *controls[1]]):
        became = [{True: "caught", False: "missed", None: "not planted"}[side.get(fault)] for side in controls]
        yield from _moved(f"planted fault {fault}", became[0], became[1])
    for finding in _FINDINGS:
        became = ["none found" if side["deterministic"][finding] is None else "found" for side in (before, after)]
        yield from _moved(finding.replace("_", " "), became[0], became[1])
    for part in _EFFORT:
        yield from _moved(part.replace("_", " "), before["measurement"][part], after["measurement"][part])
    yield from _moved("pairs tried", before["deterministic"]["examples"], after["deterministic"]["examples"])
    for parameter in dict.fromkeys([*before["parameters"], *after["parameters"]]):
        yield from _moved(f"parameter {parameter}", before["parameters"].get(parameter), after["parameters"].get(parameter))


def _same(before: object, after: object) -> bool:
    """True if two values are equal; floats up to the digits on which machines agree."""
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=_AGREE)
    return bool(before == after)


def _words(value: object) -> str:
    return "none" if value is None else plain(value)


def _moved(name: str, before: T, after: T, words: Callable[[T], str] = _words) -> Iterator[str]:
    """Change in words; numbers that agree to the digits shown get all their digits."""
    if _same(before, after):
        return
    then, now = words(before), words(after)
    if then == now:
        then, now = (f"{value:.9g}" if isinstance(value, float) else repr(value) for value in (before, after))
    yield f"{name}: {then} {_ARROW} {now}"


def _cell(
    first: Report, second: Report, label: str, before: BenchmarkCell | None, after: BenchmarkCell | None
) -> documents.CellChange:
    changes: list[str] = []
    moved = None
    if before is not None and after is not None:
        horizons = [_horizon(document) for document in (first, second)]
        changes += _moved("rounds", horizons[0], horizons[1])
        for key, name in (
            ("environment", "environment"),
            ("privacy_model", "trust"),
            ("epsilon", "ε"),
            ("mu_claimed", "µ claimed"),
            ("mu", "µ spent"),
            ("replications", "replications"),
        ):
            changes += _moved(name, before.get(key), after.get(key))
        reason = _incomparable(first, second, before, after, horizons)
        if reason is None:
            moved = difference(before, after)
            ends = zip(regret_plots.final_of(before), regret_plots.final_of(after), strict=True)
            changes += ["final regret"] if not all(_same(then, now) for then, now in ends) else []
        elif reason != "withheld" or before["final_mean"] != after["final_mean"]:
            changes.append(f"final regret is not compared: {reason}")
    return {
        "label": label,
        "status": _status(before, after, changes),
        "before": _side_of_cell(before, first),
        "after": _side_of_cell(after, second),
        "difference": moved,
        "changes": changes,
    }


def _incomparable(
    first: Report, second: Report, before: BenchmarkCell, after: BenchmarkCell, horizons: list[int]
) -> str | None:
    """Reason why two final regrets are not comparable; None if they are."""
    if before["final_mean"] is None or after["final_mean"] is None:
        return "withheld"
    if horizons[0] != horizons[1]:
        return "the horizons differ"
    data = [_environment(document, cell) for document, cell in ((first, before), (second, after))]
    return None if data[0] == data[1] else "the data differ"


def _environment(document: Report, cell: BenchmarkCell) -> tuple[str, list[str], list[float]]:
    data = next(each for each in document["environments"] if each["label"] == cell["environment"])
    return data["name"], data["actions"], data["means"]


def _side_of_cell(cell: BenchmarkCell | None, document: Report) -> documents.ComparedCell | None:
    if cell is None:
        return None
    return {
        "horizon": _horizon(document),
        "environment": cell["environment"],
        "replications": cell["replications"],
        "mu_claimed": cell["mu_claimed"],
        "mu": cell["mu"],
        "final_mean": cell["final_mean"],
        "final_low": cell["final_low"],
        "final_high": cell["final_high"],
    }


def _horizon(document: Report) -> int:
    return present(document["benchmark"])["grid"][-1]


def _settings(before: Report, after: Report) -> Iterator[documents.SettingChange]:
    then, now = (dict(_facts(*pair)) for pair in ((before, after), (after, before)))
    for name in dict.fromkeys([*then, *now]):
        if then.get(name) != now.get(name):
            yield {"name": name, "before": then.get(name), "after": now.get(name)}


def _facts(document: Report, other: Report) -> Iterator[tuple[str, str]]:
    yield "kind", document["kind"]
    yield "title", document["title"]
    for environment in document["environments"]:
        for key, value in environment.items():
            if key != "label":
                yield f"environment {environment['label']}: {key}", plain(value)
    for key, value in document["seeds"].items():
        yield f"seeds: {key}", plain(value)
    for term, values in origin.facts(document["provenance"]):
        yield f"provenance: {term}", "\n".join(values)
    if commands := [command for command in document["commands"] if command not in other["commands"]]:
        yield "commands of this run only", "\n".join(commands)


def _evidence(before: list[EvidenceFile], after: list[EvidenceFile]) -> documents.EvidenceChanges:
    # What the files say, and not who computed it when: what was computed again with the same numbers is the same.
    then, now = ({file["path"]: file["numbers"] for file in files} for files in (before, after))
    paths = sorted({*then, *now})
    differing = [path for path in paths if then.get(path) != now.get(path)]
    return {
        "n_same": len(paths) - len(differing),
        "files": [{"path": path, "before": then.get(path), "after": now.get(path)} for path in differing],
    }
