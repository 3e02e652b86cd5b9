"""Statements of the catalog on an audit's subject, beside those of its evidence: words that no score can confirm."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from bandana.algorithms.catalog import known
from bandana.algorithms.claim import Claim
from bandana.algorithms.entry import Entry
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.faults.late import LATE
from bandana.audits.faults.places import ALWAYS, SOMETIMES
from bandana.audits.faults.releases import GENERIC
from bandana.audits.outcome import DETERMINISTIC, Outcome
from bandana.audits.subjects import subjects
from bandana.audits.testbeds.catalog import bed_of, bed_settings
from bandana.flows.annexes.compliance.evidence.lines import Line, Verification
from bandana.flows.annexes.compliance.evidence.recompute import CLAIM, FAULTS

_LEVEL = re.compile(r"\b(?:eps|rho)=(\S+)")
_FAULTS = "planted faults"


def with_catalog(verification: Verification, outcome: Outcome) -> Verification:
    """The verification of a catalog algorithm's evidence, its claim's words and its planted faults beside the catalog's.

    No field of the file decides which of them count: evidence of another catalog is verified with that one.
    """
    if outcome.subject.get("kind") != "catalog":
        return verification
    expected = _promised(outcome.subject.get("name", ""))
    if expected is None:
        line = Line("subject", outcome.subject.get("name", ""), "the catalog holds no such algorithm", False, CLAIM)
        return replace(verification, lines=tuple(line if old.what == "subject" else old for old in verification.lines))
    claim, faults = expected[0], {*expected[1], *ALWAYS}
    words = {
        "claim: statement": (outcome.claim.statement, f"{claim.covers} are "),
        "claim: unit": (outcome.claim.unit, claim.unit),
        "claim: theorem and source": _both(outcome.claim, claim),
    }
    lines = [_confirmed(line, words) for line in verification.lines]
    lines += _check_level(outcome)
    # Some depend on the noise that is drawn, and one on a horizon, which no coverage tells where a violation came first.
    is_walked = outcome.coverage is not None and outcome.coverage.horizon > 0
    faults |= {LATE} if is_walked else set()
    planted = {control.name for control in outcome.all_controls} - {*SOMETIMES, *(() if is_walked else (LATE,))}
    stated, listed = ", ".join(sorted(planted | {*outcome.about.not_planted})), ", ".join(sorted(faults))
    lines.append(Line(_FAULTS, stated, listed, stated == listed, FAULTS))
    lines.append(_check_searches(outcome, expected[1]))
    return replace(verification, lines=tuple(lines))


def _check_searches(outcome: Outcome, searches: dict[str, set[str]]) -> Line:
    """Checks which searches had to catch each planted fault: one that is left out is a fault that may have been missed."""
    searches = {**searches, **{name: {DETERMINISTIC} for name in (*ALWAYS, *SOMETIMES, LATE)}}
    stated: dict[str, set[str]] = {}
    for control in outcome.all_controls:
        stated.setdefault(control.name, set()).update(control.expected)
    for name, left_out in outcome.about.not_planted.items():
        if left_out:  # planted for other searches only
            stated.setdefault(name, set()).update(left_out)
    wrong = [name for name in searches if name in stated and stated[name] != searches[name]]
    expected = "; ".join(f"{name} by {', '.join(sorted(searches[name]))}" for name in wrong)
    stated_words = "as stated" if not wrong else ", ".join(wrong)
    return Line(f"{_FAULTS}: who must catch them", stated_words, expected or "as stated", not wrong, FAULTS)


def _check_level(outcome: Outcome) -> list[Line]:
    """The privacy level in the subject's name, if there is one, beside that of the claim."""
    named = _LEVEL.search(outcome.subject.get("name", ""))
    claimed = getattr(outcome.claim.stated, "epsilon", getattr(outcome.claim.stated, "rho", None))
    if named is None or claimed is None:
        return []
    return [Line("subject: level", named[1], f"{claimed:g}", named[1] == f"{claimed:g}", CLAIM)]


def _both(mine: Claim, theirs: Claim) -> tuple[str, str]:
    first, second = (f"{claim.theorem}; {claim.source}" for claim in (mine, theirs))
    return first, second


def _confirmed(line: Line, words: dict[str, tuple[str, str]]) -> Line:
    """The line with the catalog's words."""
    what = line.what.removeprefix("test budget: ")
    if what not in words or line.is_ok is False:
        return line
    stated, confirmed = words[what]
    if what == "claim: statement":  # each budget has a number of its own, which is checked already
        stated, confirmed = line.stated, line.stated if line.stated.startswith(confirmed) else f"{confirmed}..."
    return Line(line.what, stated, confirmed, stated == confirmed, line.part)


def _promised(name: str) -> tuple[Claim, dict[str, set[str]]] | None:
    """The claim of the subject of that name, whose level may be another, and by whom its planted faults must be caught."""
    if name in (listed := subjects()):
        subject = listed[name]()
        return subject.trial.claim, _searches(subject.controls)
    entry = _entry(name)
    if entry is None or entry.promise is None:
        return None
    calibration = next((each for each in entry.calibrations if name.startswith(f"{entry.label} {each}")), None)
    problem, _ = bed_of(entry, 8, 0)
    settings = bed_settings(entry, problem, calibration or entry.calibrations[0])
    return entry.promise(settings), _searches(CONTROLS.get(entry.label, GENERIC))


def _searches(controls: Iterable[Control]) -> dict[str, set[str]]:
    """Name of a fault -> the searches that must catch it, in any of its forms."""
    searches: dict[str, set[str]] = {}
    for control in controls:
        searches.setdefault(control.name, set()).update(control.caught_by)
    return searches


def _entry(name: str) -> Entry | None:
    """The entry whose label begins the name, the longest one."""
    fitting = [entry for entry in known() if f"{name} ".startswith(f"{entry.label} ")]
    return max(fitting, key=lambda entry: len(entry.label), default=None)
