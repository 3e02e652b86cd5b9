"""Validation of report documents, plain dictionaries, before they are rendered."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import pairwise
from typing import Any

from bandana.audits.documents.audit import Audit, Main, Role
from bandana.audits.documents.benchmark import Benchmark, BenchmarkCell
from bandana.audits.documents.form import first_mistake
from bandana.audits.documents.provenance import Installation, ReportProvenance
from bandana.audits.documents.report import Report
from bandana.audits.reporting.kinds import KINDS, Contradiction, Document, Kind

REGRET = ("mean", "low", "high", "final_mean", "final_low", "final_high", "final_quantiles")
"""Fields that are null in a cell whose regret is withheld."""
TOLERANCE = 1e-6  # relative: two ways to compute one number may differ by rounding
REPORT = "bandana/report/12"


def kind_of(document: Document) -> Kind[Any]:
    """The kind that a document's field `schema` names, or that of reports."""
    return next((kind for kind in KINDS.values() if kind.schema == document.get("schema")), KINDS["report"])


def validate(document: Document) -> None:
    """Checks a report document: its form, its lengths, and that no PASS contradicts its other fields.

    Args:
      document: of the type that its field `schema` names. Numbers are finite; null: there is none.

    Raises:
      ValueError: the message names the JSON path, the value found there, and what is wrong with it.
    """
    # A page, a PDF and a file are made of one document: it is checked once.
    try:
        _check(json.dumps(document))
    except TypeError:  # a value is not JSON: its type names the path
        _check_document(document)


@lru_cache(maxsize=1)
def _check(text: str) -> None:
    _check_document(json.loads(text))


def _check_document(document: Document) -> None:
    for path, number in _numbers(document, "$"):
        if not math.isfinite(number):
            raise _error(path, number, "is not finite; write null for a number that does not exist")
    mistake = first_mistake(kind_of(document).form, document)
    if mistake is not None:
        raise _error(*mistake)
    for path, value, reason in _contradictions(document):
        raise _error(path, value, reason)


def has_ledger(audit: Audit) -> bool:
    """True if the audited algorithm has a ledger; a plain function has none."""
    numbers = (audit["main"], audit["mu"], audit["epsilon"])
    return bool(audit["accountant"]["events"]) or any(three["accounted"] is not None for three in numbers)


def broken_order(audit: Audit) -> list[str]:
    """Violations of claimed >= accounted >= measured; null numbers are not compared.

    The measured number is compared in every quantity, the accounted one with the claim only in the main quantity, at both
    budgets: an accountant's epsilon may be looser than the conversion of the claim's mu.
    """
    test = audit["measurement"]["test_budget"]
    mains = [("", audit["main"])] + ([] if test is None else [("at the test budget, ", test["main"])])
    rest = [*mains, ("", Main(quantity="mu", **audit["mu"])), ("", Main(quantity="epsilon", **audit["epsilon"]))]
    compared: list[tuple[list[tuple[str, Main]], Role, Role]] = [
        (mains, "claimed", "accounted"),
        (rest, "accounted", "measured"),
        (rest, "claimed", "measured"),
    ]
    broken = []
    for threes, above, below in compared:
        for where, three in threes:
            name, high, low = three["quantity"], three[above], three[below]
            if high is not None and low is not None and low > high * (1 + TOLERANCE) + 1e-12:
                broken.append(f"{where}{below} {name} {low:.4g} exceeds {above} {name} {high:.4g}")
    return list(dict.fromkeys(broken))


def _numbers(value: object, path: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _numbers(item, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _numbers(item, f"{path}[{index}]")


def _contradictions(document: Document) -> Iterator[Contradiction]:
    kind = kind_of(document)
    for path, moment in (("$.created", document["created"]), *kind.times(document)):
        if moment is not None and not _is_aware(moment):
            yield path, moment, "must be an ISO 8601 time with an offset"
    yield from kind.contradictions(document)


def contradictions_of_report(document: Report) -> Iterator[Contradiction]:
    """Every field of a report that contradicts others."""
    environments = document["environments"]
    for index, environment in enumerate(environments):
        if len(environment["means"]) not in (0, len(environment["actions"])):
            path = f"$.environments[{index}].means"
            yield path, environment["means"], f"must have length {len(environment['actions'])} or 0"
    named = (("environments", environments), ("audits", document["audits"]), ("benchmark.cells", cells_of(document)))
    for name, items in named:
        labels = [item["label"] for item in items]
        for index, label in enumerate(labels):
            if label in labels[:index]:
                yield f"$.{name}[{index}].label", label, "occurs twice; labels must be unique"
    if document["benchmark"] is not None:
        grid = document["benchmark"]["grid"]
        if any(a >= b for a, b in pairwise(grid)):
            yield "$.benchmark.grid", grid, "must increase"
        known = {cell["label"] for cell in cells_of(document)}
        for index, pair in enumerate(document["benchmark"]["comparisons"]):
            for side, label in (("cell", pair["cell"]), ("other", pair["other"])):
                if label not in known:
                    yield f"$.benchmark.comparisons[{index}].{side}", label, "must be the label of a cell"
        for index, cell in enumerate(cells_of(document)):
            yield from _contradictions_of_cell(cell, document, document["benchmark"], f"$.benchmark.cells[{index}]")
    for index, audit in enumerate(document["audits"]):
        path = f"$.audits[{index}]"
        tradeoff, power = audit["tradeoff"], audit["power"]
        if tradeoff is not None:
            keys = ("claimed", "measured", "lower_bound")
            yield from _unequal(tradeoff, keys, len(tradeoff["fpr"]), "fpr", f"{path}.tradeoff")
        if power is not None:
            if any(a >= b for a, b in pairwise(power["factors"])):
                yield f"{path}.power.factors", power["factors"], "must increase"
            yield from _unequal(power, ("caught",), len(power["factors"]), "factors", f"{path}.power")
        yield from _contradictions_in(audit, path)
        if audit["verdict"] in ("PASS", "NOT REFUTED"):
            for reason in _against_pass(audit):
                yield f"{path}.verdict", audit["verdict"], f"contradicts the audit: {reason}"


def times_of_report(document: Report) -> Iterator[tuple[str, str | None]]:
    """Every time in a report with its path, but that of its last result."""
    made = document["provenance"]
    places: list[tuple[str, ReportProvenance | Installation | None]] = [("$.provenance", made)]
    places += [(f"$.provenance.makers[{index}]", maker) for index, maker in enumerate(made["makers"])]
    places += [(f"$.audits[{index}].provenance", audit["provenance"]) for index, audit in enumerate(document["audits"])]
    for path, place in places:
        if place is not None:
            yield from ((f"{path}.began", place["began"]), (f"{path}.ended", place["ended"]))


def _is_aware(moment: str) -> bool:
    try:
        return datetime.fromisoformat(moment).tzinfo is not None
    except ValueError:
        return False


def _contradictions_of_cell(
    cell: BenchmarkCell, document: Report, benchmark: Benchmark, path: str
) -> Iterator[Contradiction]:
    labels = [environment["label"] for environment in document["environments"]]
    if cell["environment"] not in labels:
        yield f"{path}.environment", cell["environment"], f"must be one of {', '.join(labels)}"
    yield from _unequal(
        cell, ("mean", "low", "high", "mu_spent", "bound", "lower_bound"), len(benchmark["grid"]), "the grid", path
    )
    bounds = ("bound", cell["bound"], cell["bound_text"]), ("lower_bound", cell["lower_bound"], cell["lower_bound_text"])
    for name, bound, text in bounds:
        if bound is not None and cell["mean"] is None:
            yield f"{path}.{name}", bound, "bounds a withheld regret, and may reveal it"
        if (bound is None) != (text is None):
            yield f"{path}.{name}_text", text, "must name the theorem of a bound, and be null without one"
    hidden = [key for key in REGRET if cell.get(key) is None]
    if hidden and len(hidden) < len(REGRET):
        yield f"{path}.{hidden[0]}", None, "is withheld, but other numbers of this cell's regret are shown"
    if hidden and benchmark["withheld"] is None:
        yield f"{path}.{hidden[0]}", None, "is withheld, but benchmark.withheld gives no reason"


def _unequal(
    lists: Mapping[str, object], keys: tuple[str, ...], length: int, model: str, path: str
) -> Iterator[Contradiction]:
    """Lists of another length than their model; null is none."""
    for key in keys:
        if isinstance(values := lists[key], list) and len(values) != length:
            yield f"{path}.{key}", values, f"must have length {length}, as {model}"


def _contradictions_in(audit: Audit, path: str) -> Iterator[Contradiction]:
    measurement = audit["measurement"]
    failure = sum(bound["level"] for bound in measurement["bounds"])
    if failure > (1 - measurement["confidence"]) * (1 + TOLERANCE):
        yield (
            f"{path}.measurement.confidence",
            measurement["confidence"],
            f"exceeds the joint confidence of the bounds: their levels add up to {failure:.4g}",
        )
    if measurement["test_budget"] is None and any(bound["budget"] == "test" for bound in measurement["bounds"]):
        yield f"{path}.measurement.test_budget", None, "is null, but some bounds are at the test budget"
    for index, control in enumerate(audit["controls"]):
        if control["caught"] != (set(control["expected"]) <= set(control["caught_by"])):
            yield f"{path}.controls[{index}].caught", control["caught"], "contradicts expected and caught_by"


def _against_pass(audit: Audit) -> list[str]:
    missed = [f"the planted fault {c['name']!r} was not caught" for c in audit["controls"] if not c["caught"]]
    if not audit["controls"]:
        missed.append("no planted fault was tried, so its power is unknown")
    if audit["deterministic"]["counterexample"] is not None:
        missed.append("the deterministic audit found a counterexample")
    if audit["deterministic"]["noise_finding"] is not None:
        missed.append("the noise audit found that the noise does not match its declaration")
    return missed + broken_order(audit)


def cells_of(document: Report) -> list[BenchmarkCell]:
    """Cells of the benchmark, if there is one."""
    return [] if document["benchmark"] is None else document["benchmark"]["cells"]


def _error(path: str, value: object, reason: str) -> ValueError:
    shown = repr(value)
    return ValueError(f"{path}: {shown if len(shown) <= 80 else shown[:77] + '...'} {reason}")
