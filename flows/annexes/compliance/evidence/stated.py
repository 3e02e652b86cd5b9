"""Words of an evidence file, rebuilt from its numbers: claim, subject, effort, seed and code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bandana.algorithms.claim import ALL_ACTIONS, THE_OUTPUT
from bandana.audits.claims import as_gdp, unit_of
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING, Outcome
from bandana.flows.annexes.compliance.evidence.lines import Line, agree, compared, shown
from bandana.privacy_core import Relation

COVERS = (
    ALL_ACTIONS,
    "the actions of all other users",
    "the actions of all other users and the final policy",
    "a user's messages",
    "a user's message",
    THE_OUTPUT,
)
"""Subjects that a claim may have."""
_KINDS = ("catalog", "algorithm", "function", "release")
_WIDEST = 24
_SEEDS = "SeedSequence({}), one child per pair and side, one grandchild per block of replays"
_OF_PAIR = "what the pair differs in"
_KNOWN_BY_CODE = "needs the catalog"


def check_claim(outcome: Outcome, stated: Mapping[str, Any]) -> list[Line]:
    """Lines on the claim of one part: its number as Gaussian DP, its statement, its unit and its theorem."""
    claim = outcome.claim
    lines = [compared("claim as GDP: mu", stated["claim"]["mu"], as_gdp(claim.stated)[0].mu)]
    is_known = claim.covers in COVERS
    if outcome.subject.get("kind") == "catalog":
        lines.append(_words("claim: statement", claim.statement, is_known=is_known))
        lines.append(_words("claim: unit", claim.unit, is_known=claim.unit == unit_of(claim.relation)))
        return [*lines, _words("claim: theorem and source", f"{claim.theorem}; {claim.source}", is_known=False)]
    rebuilt = claim.statement if is_known else f"{ALL_ACTIONS} are {claim.stated}"
    lines.append(Line("claim: statement", claim.statement, rebuilt, is_known))
    units = [unit_of(claim.relation)] + ([_OF_PAIR] if claim.relation is Relation.GIVEN_PAIR else [])
    lines.append(Line("claim: unit", claim.unit, " or ".join(units), claim.unit in units))
    lines.append(compared("claim: theorem", claim.theorem, "as stated"))
    return [*lines, Line("claim: source", claim.source, "the author's words", None, is_claimed=True)]


def _words(what: str, words: str, *, is_known: bool) -> Line:
    return Line(what, words, words if is_known else _KNOWN_BY_CODE, is_known or None)


def check_origin(outcome: Outcome) -> list[Line]:
    """Lines on the whole file: subject, seeds and code, each beside the other places that state it."""
    about, seed = outcome.about, outcome.effort.seed
    lines = [
        _line_of("subject", outcome.subject.get("name"), bool(outcome.subject.get("name")), "a name"),
        _line_of("subject: kind", outcome.subject.get("kind"), outcome.subject.get("kind") in _KINDS, " or ".join(_KINDS)),
        _line_of("seeds", _SEEDS.format(about.seed), about.seed == seed, f"SeedSequence({seed})"),
        _line_of("code SHA-256", about.code_sha256 or None, _is_sha256(about.code_sha256), "64 hexadecimal digits"),
    ]
    lines += _check_request(outcome)
    return [*lines, *_check_test_budget(outcome)]


def _line_of(what: str, stated: str | None, is_ok: bool, expected: str) -> Line:
    text = shown(stated)
    text = text if len(text) <= _WIDEST else f"{text[:_WIDEST]}..."
    return Line(what, text, text if is_ok else f"expected {expected}", is_ok)


def _is_sha256(text: str) -> bool:
    return len(text) == 64 and set(text) <= set("0123456789abcdef")


def _check_request(outcome: Outcome) -> list[Line]:
    """Request and the code that computed it, where the provenance keeps that."""
    made = outcome.provenance or {}
    request, code = made.get("of"), made.get("made")
    lines = []
    if isinstance(code, Mapping):
        lines.append(compared("code of the request", code.get("code"), outcome.about.code_sha256))
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
    """The audit at the test budget is under the same relation and trust model, after the same source."""
    inner, names = outcome.at_test_budget, {"relation": "relation", "trust": "trust model", "source": "source"}
    if inner is None:
        return []
    wrong = [words for name, words in names.items() if getattr(inner.claim, name) != getattr(outcome.claim, name)]
    again = f"other {', '.join(wrong)}" if wrong else "as stated"
    return [Line("test budget: same audit", ", ".join(names.values()), again, not wrong)]


def check_controls(outcome: Outcome) -> list[Line]:
    """One line for each planted fault: it is caught by sampling where its number says so, and by searches that exist."""
    lines = []
    for control in outcome.controls:
        above = f"{'' if control.measured > control.limit else 'not '}{control.measured:.6g} > {control.limit:.6g}"
        known = {*control.expected, *control.caught_by} <= {SAMPLING, DETERMINISTIC, NOISE} and bool(control.expected)
        caught, is_ok = ", ".join(control.caught_by) or "nothing", control.is_consistent and known
        lines.append(Line(f"control {control.name}", f"caught by {caught}", above if known else "no such search", is_ok))
    return lines
