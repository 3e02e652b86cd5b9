"""Words of an evidence file, rebuilt from its numbers: claim, subject, effort, seed and code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bandana.audits.claims import as_gdp, unit_of
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, Outcome
from bandana.flows.annexes.compliance.evidence.lines import Line, agree, compared, shown
from bandana.privacy_core import Relation

COVERS = (
    "all actions",
    "the actions of all other users",
    "the actions of all other users and the final policy",
    "a user's messages",
    "a user's message",
    "the output",
)
"""Subjects that a claim may have."""
_KINDS = ("catalog", "algorithm", "function", "release")
_WIDEST = 24
_OF_PAIR = "what the pair differs in"
_KNOWN_BY_CODE = "needs the catalog"


def check_claim(outcome: Outcome, stated: Mapping[str, Any]) -> list[Line]:
    """Lines on the claim of one part: its number as Gaussian DP, its statement, its unit and its theorem."""
    claim = outcome.claim
    gaussian, assumption = as_gdp(claim.stated)
    lines = [compared("claim as GDP: mu", stated["claim"]["mu"], gaussian.mu)]
    whose, promise = _taken_apart(claim.statement)
    if promise not in (str(claim.stated), f"{claim.stated}; {assumption}"):
        rebuilt = f"{whose or COVERS[0]} are {claim.stated}"
        lines.append(Line("claim: statement", claim.statement, rebuilt, False))
    else:
        lines.append(_words("claim: statement", claim.statement, is_known=whose in COVERS))
    if outcome.subject.get("kind") == "catalog":
        lines.append(_words("claim: unit", claim.unit, is_known=claim.unit == unit_of(claim.relation)))
        return [*lines, _words("claim: theorem and source", f"{claim.theorem}; {claim.source}", is_known=False)]
    units = [unit_of(claim.relation)] + ([_OF_PAIR] if claim.relation is Relation.GIVEN_PAIR else [])
    lines.append(Line("claim: unit", claim.unit, " or ".join(units), claim.unit in units))
    lines.append(compared("claim: theorem", claim.theorem, "as stated"))
    return [*lines, Line("claim: source", claim.source, "the author's words", None, is_claimed=True)]


def _words(what: str, words: str, *, is_known: bool) -> Line:
    return Line(what, words, words if is_known else _KNOWN_BY_CODE, is_known or None)


def _taken_apart(statement: str) -> tuple[str, str]:
    """Scope of a statement, and its promise."""
    for verb in (" are ", " is "):
        whose, is_there, promise = statement.partition(verb)
        if is_there:
            return whose, promise
    return "", statement


def check_origin(outcome: Outcome) -> list[Line]:
    """Lines on the whole file: subject, seeds and code, each beside the other places that state it."""
    about, seed = outcome.about, outcome.effort.seed
    lines = [
        _line_of("subject", outcome.subject.get("name"), bool(outcome.subject.get("name")), "a name"),
        _line_of("subject: kind", outcome.subject.get("kind"), outcome.subject.get("kind") in _KINDS, " or ".join(_KINDS)),
        _line_of("seeds", about.get("seeds"), f"SeedSequence({seed})" in about.get("seeds", ""), f"SeedSequence({seed})"),
        _line_of("code SHA-256", about.get("code sha256"), _is_sha256(about.get("code sha256")), "64 hexadecimal digits"),
    ]
    lines += _check_request(outcome)
    return [*lines, *_check_test_budget(outcome)]


def _line_of(what: str, stated: str | None, is_ok: bool, expected: str) -> Line:
    text = shown(stated)
    text = text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
    return Line(what, text, text if is_ok else f"expected {expected}", is_ok)


def _is_sha256(text: str | None) -> bool:
    return text is not None and len(text) == 64 and set(text) <= set("0123456789abcdef")


def _check_request(outcome: Outcome) -> list[Line]:
    """Request and the code that computed it, where the provenance keeps that."""
    made = outcome.provenance or {}
    request, code = made.get("of"), made.get("made")
    lines = []
    if isinstance(code, Mapping):
        lines.append(compared("code of the request", code.get("code"), outcome.about.get("code sha256")))
    if isinstance(request, Mapping):
        effort = asdict(outcome.effort)
        requested = request.get("effort", request.get("audit", {}))
        requested = {**requested, "seed": requested.get("seed", request.get("seed"))}
        shared = {name: value for name, value in effort.items() if name in requested}
        wrong = [f"{name} = {shown(requested[name])}" for name, value in shared.items() if not agree(requested[name], value)]
        lines.append(Line("effort of the request", "as in the effort" if not wrong else "; ".join(wrong),
                          ", ".join(f"{name} = {shown(value)}" for name, value in shared.items()), not wrong))  # fmt: skip
        if "whole catalog" in request:
            lines.append(compared("subject of the request", request["whole catalog"], outcome.subject.get("name")))
    return lines


def _check_test_budget(outcome: Outcome) -> list[Line]:
    """The audit at the test budget is of the same subject, with the same effort, under the same relation."""
    inner = outcome.at_test_budget
    if inner is None:
        return []
    same = {
        "subject": dict(inner.subject) == dict(outcome.subject),
        "effort": inner.effort == outcome.effort,
        "table, probes, seeds and code": dict(inner.about) == dict(outcome.about),
        "relation": inner.claim.relation is outcome.claim.relation,
        "trust model": inner.claim.trust is outcome.claim.trust,
        "source": inner.claim.source == outcome.claim.source,
    }
    wrong = [name for name, is_same in same.items() if not is_same]
    return [
        Line(
            "test budget: same audit", ", ".join(same), "as stated" if not wrong else f"other {', '.join(wrong)}", not wrong
        )
    ]


def check_controls(outcome: Outcome) -> list[Line]:
    """One line for each planted fault: it is caught by sampling where its number says so, and by searches that exist."""
    lines = []
    for control in outcome.controls:
        caught = ", ".join(control.caught_by) or "nothing"
        is_above = control.measured > control.limit
        above = f"{control.measured:.6g} > {control.limit:.6g}"
        known = {*control.expected, *control.caught_by} <= {SAMPLING, DETERMINISTIC, NOISE} and bool(control.expected)
        lines.append(
            Line(
                f"control {control.name}",
                f"caught by {caught}",
                (above if is_above else f"not {above}") if known else "no such search",
                control.is_consistent and known,
            )
        )
    return lines
