"""Plan of the bounds of an audit, and of each one's share of the failure probability: known from claim and effort alone.

An auditor follows the plan, and a verifier follows it again: a bound that the plan holds and the file lacks was left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from bandana.audits.claims import Quantity
from bandana.audits.outcome import ACTIONS, ONE_RUN, REPORT, TRANSCRIPT, Events, View, main_quantity
from bandana.privacy_core import ApproxDP, Guarantee, TrustModel

_MAIN_SHARE, _DRAWN_SHARE = 0.8, 0.4

EARLY = 0.05
"""Share of the failure probability of an audit of a release in its first calls, and in its first runs."""
_EVENT_SHARE = 0.2


def plan_release(stated: Guarantee) -> dict[Quantity, float]:
    """Quantities that each stage of the audit of a release bounds, with their shares of the stage's level, which add to 1.

    The parameter of the claim's own definition and, of a claim of epsilon at delta, delta at that epsilon: one event that a
    side has, and the other nearly never, shows delta long before it shows in epsilon.
    """
    own = Quantity.of(stated)
    if not isinstance(stated, ApproxDP) or not own.delta:
        return {own: 1.0}
    return {own: 1 - _EVENT_SHARE, Quantity("delta", epsilon=stated.epsilon): _EVENT_SHARE}


@dataclass(frozen=True)
class PlannedBound:
    """One bound that an audit takes on every pair.

    Attributes:
      view: what the adversary sees.
      quantity: what is bounded.
      share: of the whole failure probability, for all pairs together.
    """

    view: View
    quantity: Quantity
    share: float


def plan_bounds(stated: Guarantee, delta: float, events: Events = ()) -> tuple[PlannedBound, ...]:
    """Plans the bounds that an audit of a claim takes; their shares add to 1.

    The sharpest, on the claim's main quantity in the transcript, gets 80 % of the failure probability; the others share the
    rest evenly: epsilon at `delta`, the parameter of the claim's own definition, both seen in the actions too, and under
    local privacy in the message of the one user, and in one run in which every user is a canary.
    """
    main, epsilon, own = main_quantity(stated, events), Quantity("epsilon", delta), Quantity.of(stated)
    others = dict.fromkeys(
        (view, quantity)
        for view, quantity in (
            (TRANSCRIPT, epsilon),
            (TRANSCRIPT, own),
            (ACTIONS, main),
            (ACTIONS, epsilon),
            *(((REPORT, main), (ONE_RUN, main)) if stated.trust is TrustModel.LOCAL else ()),
        )
        if (view, quantity) != (TRANSCRIPT, main)
    )
    rest = (1 - _MAIN_SHARE) / len(others)
    return (PlannedBound(TRANSCRIPT, main, _MAIN_SHARE), *(PlannedBound(view, quantity, rest) for view, quantity in others))


def levels(confidence: float, n_pairs: int) -> tuple[float, float, float]:
    """Levels of the bounds on a plain function, which has no ledger.

    Args:
      confidence: of all bounds together.
      n_pairs: pairs of data sets.

    Returns:
      for the claim's own quantity on each pair, for epsilon at delta on each, and for the bound from drawn rewards.
    """
    failure = 1 - confidence
    on_pairs = failure * (1 - _DRAWN_SHARE)
    return on_pairs * _MAIN_SHARE / n_pairs, on_pairs * (1 - _MAIN_SHARE) / n_pairs, failure * _DRAWN_SHARE
