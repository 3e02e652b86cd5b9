"""Comparison of two report documents, as a document of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from difflib import unified_diff
from typing import Any

from bandana.audits.reporting import origin
from bandana.audits.reporting.blocks import at_least, plain
from bandana.audits.reporting.changes import COMPARISON
from bandana.audits.reporting.document import cells_of
from bandana.audits.reporting.intervals import Mean, unpaired_interval
from bandana.audits.reporting.numbers import name_of, number
from bandana.audits.reporting.sections.power import factor_of

Document = dict[str, Any]
_AGREE = 1e-9
_ORDER = ("FAIL", "INCONCLUSIVE", "NOT REFUTED", "PASS")
_ROLES = ("claimed", "accounted", "measured")
_ARROW = "→"


def compare(before: Document, after: Document) -> Document:
    """Compares two valid report documents, see `comparison.schema.json`.

    Args:
      before: a report.
      after: the report to compare it with, usually of a later run.

    Returns:
      a document that `validate`, `render_html` and `render_pdf` take; the same for the same reports.
    """
    names = list(dict.fromkeys((before["suite"], after["suite"])))
    times = [run["created"] for run in (before, after) if run["created"] is not None]
    return {
        "schema": COMPARISON,
        "kind": "comparison",
        "title": f"What changed: {' and '.join(names)}",
        "suite": " and ".join(names),
        "created": max(times, key=datetime.fromisoformat, default=None),
        "runs": {"before": _run(before), "after": _run(after)},
        "audits": [_audit(label, *sides) for label, *sides in _paired(before["audits"], after["audits"])],
        "cells": [_cell(label, before, after, *sides) for label, *sides in _paired(cells_of(before), cells_of(after))],
        "settings": list(_settings(before, after)),
        "spec_diff": "\n".join(
            unified_diff(before["spec"].splitlines(), after["spec"].splitlines(), "before", "after", lineterm="")
        ),
        "evidence": _evidence(before["evidence"]["files"], after["evidence"]["files"]),
    }


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Difference of two means with Welch's 95 % interval, from the errors that both intervals imply.

    Args:
      before: `final_mean`, `final_low` and `final_high`, a 95 % interval, and `replications`.
      after: the same.
    """
    sides = [Mean(*(side[f"final_{end}"] for end in ("mean", "low", "high"))) for side in (before, after)]
    found = unpaired_interval(sides[0], before["replications"], sides[1], after["replications"])
    return found._asdict() | {"is_resolved": not found.low <= 0 <= found.high}


def _run(document: Document) -> dict[str, Any]:
    shown = {key: document[key] for key in ("kind", "title", "suite", "created")}
    return {**shown, "evidence": document["evidence"]["numbers"]}


def _paired(before: Sequence[Any], after: Sequence[Any]) -> Iterator[tuple[str, Any, Any]]:
    """Label, earlier and later item, in the order of the earlier run; new ones come last."""
    then, now = ({item["label"]: item for item in items} for items in (before, after))
    for label in dict.fromkeys([*then, *now]):
        yield label, then.get(label), now.get(label)


def _status(before: Any, after: Any, changes: list[str]) -> str:
    if before is None:
        return "new"
    if after is None:
        return "gone"
    return "changed" if changes else "same"


def _audit(label: str, before: Any, after: Any) -> dict[str, Any]:
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


def _side_of_audit(audit: Any) -> dict[str, Any] | None:
    if audit is None:
        return None
    return {
        "verdict": audit["verdict"],
        "claim": audit["claim"]["statement"],
        "delta": audit["delta"],
        "quantity": audit["main"]["quantity"],
        "main": {role: audit["main"][role] for role in _ROLES},
        "epsilon": {role: audit["epsilon"][role] for role in _ROLES},
        "smallest_factor": audit["measurement"]["smallest_factor"],
        "caught": sum(control["caught"] for control in audit["controls"]),
        "planted": len(audit["controls"]),
    }


def _changes_of_audit(before: Any, after: Any) -> Iterator[str]:
    yield from _moved("verdict", before["verdict"], after["verdict"])
    for key in ("unit", "relation", "view_of_adversary"):
        yield from _moved(key.replace("_", " "), before[key], after[key])
    for key in ("statement", "theorem", "source"):
        yield from _moved(f"claim, {key}", before["claim"][key], after["claim"][key])
    yield from _moved("δ", before["delta"], after["delta"])
    quantities = before["main"]["quantity"], after["main"]["quantity"]
    if quantities[0] != quantities[1]:
        yield f"main quantity: {name_of(quantities[0])} {_ARROW} {name_of(quantities[1])}"
    triples = [("ε at δ", before["epsilon"], after["epsilon"])] if before["delta"] == after["delta"] else []
    if quantities[0] == quantities[1]:
        triples.insert(0, (name_of(quantities[0]), before["main"], after["main"]))
    for name, then, now in triples:
        for role in _ROLES:
            words: Callable[[Any], str] = at_least if role == "measured" else number
            yield from _moved(f"{name}, {role}", then[role], now[role], words)
    factors = [side["measurement"]["smallest_factor"] for side in (before, after)]
    yield from _moved("smallest detectable fault", factors[0], factors[1], factor_of)
    controls = [{c["name"]: c["caught"] for c in side["controls"]} for side in (before, after)]
    for name in dict.fromkeys([*controls[0], *controls[1]]):
        became = [{True: "caught", False: "missed", None: "not planted"}[side.get(name)] for side in controls]
        yield from _moved(f"planted fault {name}", became[0], became[1])
    for key in ("counterexample", "noise_finding"):
        then, now = ("none found" if side["deterministic"][key] is None else "found" for side in (before, after))
        yield from _moved(key.replace("_", " "), then, now)
    for key in ("confidence", "replays_per_side", "seed", "table"):
        yield from _moved(key.replace("_", " "), before["measurement"][key], after["measurement"][key])
    yield from _moved("pairs tried", before["deterministic"]["examples"], after["deterministic"]["examples"])
    for key in dict.fromkeys([*before["parameters"], *after["parameters"]]):
        yield from _moved(f"parameter {key}", before["parameters"].get(key), after["parameters"].get(key))


def _same(before: Any, after: Any) -> bool:
    """Whether two values are equal; floats up to the digits on which machines agree."""
    if isinstance(before, float) and isinstance(after, float):
        return math.isclose(before, after, rel_tol=_AGREE)
    return bool(before == after)


def _words(value: Any) -> str:
    return "none" if value is None else plain(value)


def _moved(name: str, before: Any, after: Any, words: Callable[[Any], str] = _words) -> Iterator[str]:
    """Change in words; numbers that agree to the digits shown get all their digits."""
    if _same(before, after):
        return
    then, now = words(before), words(after)
    if then == now:
        then, now = (f"{value:.9g}" if isinstance(value, float) else repr(value) for value in (before, after))
    yield f"{name}: {then} {_ARROW} {now}"


def _cell(label: str, first: Document, second: Document, before: Any, after: Any) -> dict[str, Any]:
    changes: list[str] = []
    found = None
    if before is not None and after is not None:
        horizons = [document["benchmark"]["grid"][-1] for document in (first, second)]
        changes += _moved("rounds", horizons[0], horizons[1])
        for key, name in (
            ("environment", "environment"),
            ("privacy_model", "trust"),
            ("epsilon", "ε"),
            ("mu_claimed", "µ claimed"),
            ("mu", "µ spent"),
            ("replications", "replications"),
        ):
            changes += _moved(name, before[key], after[key])
        reason = _incomparable(first, second, before, after, horizons)
        if reason is None:
            found = difference(before, after)
            keys = ("final_mean", "final_low", "final_high")
            changes += ["final regret"] if not all(_same(before[key], after[key]) for key in keys) else []
        elif reason != "withheld" or before["final_mean"] != after["final_mean"]:
            changes.append(f"final regret is not compared: {reason}")
    return {
        "label": label,
        "status": _status(before, after, changes),
        "before": _side_of_cell(before, first),
        "after": _side_of_cell(after, second),
        "difference": found,
        "changes": changes,
    }


def _incomparable(first: Document, second: Document, before: Any, after: Any, horizons: list[int]) -> str | None:
    """Reason why two final regrets are not comparable; None if they are."""
    if before["final_mean"] is None or after["final_mean"] is None:
        return "withheld"
    if horizons[0] != horizons[1]:
        return "the horizons differ"
    data = [_environment(document, cell) for document, cell in ((first, before), (second, after))]
    return None if data[0] == data[1] else "the data differ"


def _environment(document: Document, cell: Any) -> tuple[Any, ...]:
    found = next(e for e in document["environments"] if e["label"] == cell["environment"])
    return found["name"], found["actions"], found["means"]


def _side_of_cell(cell: Any, document: Document) -> dict[str, Any] | None:
    if cell is None:
        return None
    keys = ("environment", "replications", "mu_claimed", "mu", "final_mean", "final_low", "final_high")
    return {"horizon": document["benchmark"]["grid"][-1], **{key: cell[key] for key in keys}}


def _settings(before: Document, after: Document) -> Iterator[dict[str, Any]]:
    then, now = (dict(_facts(*pair)) for pair in ((before, after), (after, before)))
    for name in dict.fromkeys([*then, *now]):
        if then.get(name) != now.get(name):
            yield {"name": name, "before": then.get(name), "after": now.get(name)}


def _facts(document: Document, other: Document) -> Iterator[tuple[str, str]]:
    for key in ("kind", "title"):
        yield key, document[key]
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


def _evidence(before: list[dict[str, str]], after: list[dict[str, str]]) -> dict[str, Any]:
    # What the files say, and not who computed it when: what was computed again with the same numbers is the same.
    then, now = ({file["path"]: file["numbers"] for file in files} for files in (before, after))
    paths = sorted({*then, *now})
    differing = [path for path in paths if then.get(path) != now.get(path)]
    return {
        "n_same": len(paths) - len(differing),
        "files": [{"path": path, "before": then.get(path), "after": now.get(path)} for path in differing],
    }
