"""The three lines that every verdict opens with: what was claimed and found, what was read, and what to do next."""

from __future__ import annotations

import math

from bandana.audits.claims import Quantity
from bandana.audits.outcome import Outcome, Verdict
from bandana.privacy_core import GaussianDP, Guarantee, NoSuchConversion

_DELTA = 1e-5
_NEXT = {
    Verdict.FAIL: "undo what the reasons below name, or claim what was found; then audit again",
    Verdict.INCONCLUSIVE: "remove the reasons below, and audit again: until then silence says nothing",
    Verdict.NOT_REFUTED: "repeat with data sets and sizes that you fear most; more --replays see rarer events",
    Verdict.PASS: "keep the evidence; audit again after each change, and with more --replays or --rounds for what is rarer",
}


def opening(
    label: str, verdict: Verdict, stated: Guarantee, claim: str, measured: tuple[Quantity, float, float], read: str
) -> list[str]:
    """Three lines.

    Args:
      label: what was audited.
      verdict: of the audit.
      stated: the claim.
      claim: the same in words, with its relation or pair.
      measured: a quantity, what is claimed of it, and its lower bound.
      read: what was read, and the rarest event that could have been seen.
    """
    quantity, claimed, lower = measured
    numbers = f"claimed {quantity} = {shown(claimed)}, found >= {shown(lower)}{_epsilons(quantity, stated, lower)}"
    return [f"{verdict.value:<13} {label}: {claim}; {numbers}", f"  read: {read}", f"  next: {_NEXT[verdict]}"]


def opened(label: str, outcome: Outcome) -> list[str]:
    """The same of an outcome, and what else it covers."""
    seen, stated, numbers = outcome.coverage, outcome.claim.stated, outcome.numbers
    main = next((each for each, three in numbers.items() if three.measured > three.claimed), outcome.main)
    views = ", ".join(dict.fromkeys(bound.view for bound in outcome.bounds)) if seen is None else ", ".join(seen.views)
    more = [] if seen is None else [*seen.lines()]
    if seen is not None and seen.words:
        read, *more = seen.words
    else:
        n = min((len(side) for pair in outcome.scores.values() for side in pair), default=4)
        rarest = f"events with probability {4 / n if seen is None else seen.rarest:.2g} or more"
        reach = f"{seen.reach}; " if seen is not None and seen.reach else ""
        replays = " to ".join(f"{n:,}" for n in sorted({*outcome.replays} or {outcome.effort.replays}))
        read = f"{reach}{views or 'nothing'}, in {replays} replays a side; {rarest} could be seen"
    three = (main, numbers[main].claimed, numbers[main].measured) if main in numbers else (main, main.limit(stated), 0.0)
    claim = f"{outcome.claim.statement} ({outcome.claim.relation.value})"
    return [*opening(label, outcome.verdict, stated, claim, three, read), *(f"  {line}" for line in more)]


def _epsilons(quantity: Quantity, stated: Guarantee, measured: float) -> str:
    """The same as epsilons where that is no epsilon; of a divergence only the claim has one."""
    if quantity.name in ("epsilon", "delta"):
        return ""
    try:
        claimed = shown(stated.epsilon_at(_DELTA))
    except (NoSuchConversion, ValueError):
        return ""
    if quantity.name != "mu":
        return f" (epsilon {claimed} at delta {_DELTA:g} is claimed)"
    mu = GaussianDP(measured).epsilon(_DELTA) if 0 < measured < math.inf else measured
    return f" (as epsilon at delta {_DELTA:g}: {claimed} and {shown(mu)})"


def shown(value: float) -> str:
    """A number with four significant digits."""
    return f"{value:.4g}" if math.isfinite(value) else "infinite"
