"""Every number of an evidence file computed anew from its scores, beside the stated one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bandana.audits.claims import Quantity, text_of
from bandana.audits.evidence.archive import Evidence, StatedNumbers, UnusableEvidence, describe, parts, read, recompute
from bandana.audits.evidence.fields import load
from bandana.audits.outcome import ACTIONS, DRAWN, EQUAL, ONE_RUN, OUTPUT, Numbers, Outcome, StatedBound, Verdict
from bandana.flows.annexes.compliance.evidence.lines import (
    CLOSE,
    Line,
    Verification,
    compared,
    differences,
    in_part,
    shortly,
    shown,
)
from bandana.flows.annexes.compliance.evidence.planned import check_plan
from bandana.flows.annexes.compliance.evidence.stated import check_claim, check_controls, check_origin

_HOLDS = {None: "missing", True: "holds", False: "broken"}
SEARCHES, FAULTS, POWER, SETTING, CLAIM = "searches", "planted faults", "power", "setting", "claim"
"""Parts of evidence that take more than its scores: the algorithm, or the catalog's words."""
_SCORES, _NOT_RUN = "bounds and verdict", "needs the algorithm"
_RUN_AGAIN = {
    SEARCHES: "counterexample, noise finding, coverage",
    FAULTS: "what was planted, and what caught it",
    POWER: "smallest factor caught",
    SETTING: "ledger, pairs, table, effort, code",
}


def verify(path: Path) -> Verification:
    """Recomputes every bound of an evidence file from its scores, then the inequalities and the verdict.

    Which bounds must be there follows from claim and effort, and the statement from the claim.

    Raises:
      UnusableEvidence: see `read`; or a field is of the wrong kind, or a library that composes noise is missing.
    """
    evidence = read(path)
    try:
        return _verification(evidence)
    except ImportError as error:
        raise UnusableEvidence(f"{path}: its noise is composed with the package dp-accounting: {error}") from error
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise UnusableEvidence(f"{path}: its description cannot be used: {type(error).__name__}: {error}") from error


def _verification(evidence: Evidence) -> Verification:
    outcome, stated = evidence.outcome, evidence.stated
    hashes = [digits[:16] + "..." for digits in (evidence.sha256, evidence.sha256_found)]
    hash_line = Line("SHA-256", hashes[0], hashes[1], evidence.sha256 == evidence.sha256_found)
    lines, verdict = _recompute(outcome, stated)
    claim = f"{outcome.claim.statement}; {text_of(outcome.claim.stated)}"
    lines = [*check_origin(outcome), *_check_form(outcome, stated), *lines]
    lines += [Line(part, what, _NOT_RUN, None, part) for part, what in _RUN_AGAIN.items()]
    lines.append(Line("origin", "as stated", "who, when, on which machine", None, "origin", is_claimed=True))
    lines = [*in_part("hashes", [hash_line]), *in_part(_SCORES, lines)]
    return Verification(tuple(lines), verdict, claim, outcome.subject)


def _check_form(outcome: Outcome, stated: Mapping[str, Any]) -> list[Line]:
    """Lines on what the file says beside, or in place of, what its own fields give: an added field is one."""
    wrong = differences(stated, describe(outcome))
    return [Line(f"form: {place}", shortly(mine), shortly(again), False) for place, mine, again in wrong]


def _recompute(outcome: Outcome, stated: Mapping[str, Any]) -> tuple[list[Line], str]:
    """Every part's lines and those of the whole, and the verdict."""
    both, lines, anew = parts(outcome), [], []
    share = (1 - outcome.effort.confidence) / len(both)
    for prefix, part in both:
        words = "test budget: " if prefix else ""
        here = stated["at_test_budget"] if prefix else stated
        checked, again = _recompute_part(part, here, share)
        lines += [replace(line, what=words + line.what) for line in checked]
        anew.append(again)
    again = replace(anew[0], at_test_budget=anew[1] if len(anew) > 1 else None)
    verdict = _verdict(again)
    lines.append(compared("verdict", stated["verdict"], verdict))
    return lines, verdict


def _recompute_part(outcome: Outcome, stated: Mapping[str, Any], share: float) -> tuple[list[Line], Outcome]:
    lines = [*in_part(CLAIM, check_claim(outcome, stated)), *check_plan(outcome), *_check_scores(outcome)]
    lines.append(compared("failure probability of all bounds", outcome.failure, share))
    if outcome.bounds:
        spent = math.fsum(bound.level for bound in outcome.bounds)
        is_kept = spent <= outcome.failure * (1 + CLOSE)
        lines.append(Line("failure probability, split", f"at most {shown(outcome.failure)}", shown(spent), is_kept))
    anew = []
    for bound in outcome.bounds:
        line, lower = _check_bound(outcome, bound)
        lines.append(line)
        anew.append(replace(bound, lower=lower))
    again = replace(outcome, bounds=tuple(anew))
    numbers = load(tuple[StatedNumbers, ...], stated["numbers"])
    for mine in numbers:
        three = again.numbers.get(mine.quantity)
        for name in ("claimed", "accounted", "measured"):
            lines.append(compared(f"{name}: {mine.quantity}", getattr(mine, name), three and getattr(three, name)))
    if len(numbers) != len(again.numbers):
        lines.append(compared("quantities", len(numbers), len(again.numbers)))
    held = [_inequalities((three.quantity, three) for three in numbers), _inequalities(again.numbers.items())]
    for what in sorted({*held[0], *held[1]}):
        lines.append(compared(what, *(_HOLDS[each.get(what)] for each in held)))
    return [*lines, *in_part(FAULTS, check_controls(outcome))], again


def _verdict(outcome: Outcome) -> str:
    """PASS and NOT REFUTED only where the scores of the bounds that decide are there."""
    verdict = outcome.verdict
    is_silent = verdict in (Verdict.PASS, Verdict.NOT_REFUTED)
    return Verdict.INCONCLUSIVE.value if is_silent and not outcome.scores else verdict.value


def _check_scores(outcome: Outcome) -> list[Line]:
    """One line for each pair of scores that cannot be what the effort says."""
    lines = []
    views = {bound.scores: bound.view for bound in outcome.bounds}
    few = outcome.effort.fewer
    short = {str(place) for place, n in enumerate(outcome.replays[:-1]) if n == few}  # if they may, only replaying can tell
    for name, pair in outcome.scores.items():
        view = views.get(name)
        replays = few if name.removeprefix(view or "") in short else outcome.effort.replays
        expected = replays - replays // 2 if view == ACTIONS else len(pair[0]) if view == ONE_RUN else replays
        if view == OUTPUT:  # most runs teach the score and choose it, and what was given may be fewer than were asked for
            expected = min(len(pair[0]), replays)
        if name.startswith(DRAWN):  # coins decided how many runs have one value of the record, and how many the other
            expected = min(len(pair[0]), 2 * replays)
        for side, scores in zip(("data", "neighbor"), pair, strict=True):
            n_nan = int(np.isnan(scores).sum())
            count = f"{len(scores)}" + (f", {n_nan} of them NaN" if n_nan else "")
            if count != str(expected):
                lines.append(Line(f"scores {name}, {side}: how many", str(expected), count, False))
    return lines


def _check_bound(outcome: Outcome, bound: StatedBound) -> tuple[Line, float]:
    """Takes the bound anew from its scores."""
    what = f"{bound.view}; {bound.neighbor}: {bound.quantity}"
    try:
        lower = recompute(bound, outcome.scores[bound.scores])
    except (ValueError, TypeError) as error:
        return Line(what, shown(bound.lower), str(error), False), math.nan
    return compared(what, bound.lower, lower), lower


def _inequalities(numbers: Iterable[tuple[Quantity, Numbers]]) -> dict[str, bool]:
    """The parts of claimed >= accounted >= measured of these quantities, each with whether it holds."""
    holds = {}
    for quantity, three in numbers:
        if three.accounted is not None:
            holds[f"{quantity}: claimed >= accounted"] = not three.accounted > three.claimed * EQUAL
            holds[f"{quantity}: accounted >= measured"] = not three.measured > three.accounted * EQUAL
        holds[f"{quantity}: claimed >= measured"] = not three.measured > three.claimed
    return holds
