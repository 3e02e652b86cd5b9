"""The power curve of a finished audit, estimated when its report is written: no verdict depends on it."""

from __future__ import annotations

from bandana.audits.bounds.methods import method_of
from bandana.audits.bounds.power import LARGEST_FACTOR, share_caught
from bandana.audits.claims import Quantity
from bandana.audits.documents.audit import Audit, AuditEntry, PowerCurve
from bandana.audits.outcome import OUTPUT

_POINTS = 40
_TRIALS = 40


def power_curve(entry: AuditEntry | Audit) -> PowerCurve | None:
    """Power curve of an audit, as its report shows it.

    Args:
      entry: of the report's `audits`, see `bandana.audits.summary.summarize`.

    Returns:
      quantity, factors, the share of audits that catch each, and how that was estimated; None where no factor is caught
      nearly always, or no bound was taken.
    """
    measured = entry["measurement"]
    smallest, test = measured["smallest_factor"], measured["test_budget"]
    budget, main = ("claimed", entry["main"]) if test is None else ("test", test["main"])
    looked = [b for b in measured["bounds"] if b["budget"] == budget and b["quantity"] == main["quantity"]]
    if smallest is None or not looked or not main["claimed"]:
        return None
    if looked[0]["view"] == OUTPUT:  # a release is audited in seconds, and its smallest fault is a rough estimate
        return None
    bound = max(looked, key=lambda b: (b["view"] == looked[0]["view"], b["n_data"]))  # the first view decides the claim
    method, parameters = method_of(_quantity(bound["quantity"]), measured["seed"], bound["view"] == "actions")
    last = min(LARGEST_FACTOR, 1 + 2 * max(smallest - 1, 1e-3))
    factors = sorted({smallest, *(1 + (last - 1) * step / _POINTS for step in range(_POINTS + 1))})
    caught = share_caught(method, parameters, bound["level"], main["claimed"], bound["n_data"], smallest, factors,
                          n_trials=_TRIALS)  # fmt: skip
    text = (
        f"Power curves are estimates from {_TRIALS} simulated audits of the mechanism that such claims are made for, at the "
        "budget where the faults were planted. Their standard error is at most 8 percentage points, and they "
        "understate rather than overstate shares below 95 %."
    )
    return {"quantity": bound["quantity"], "factors": factors, "caught": caught, "text": text}


def _quantity(text: str) -> Quantity:
    """A quantity from its name in a report."""
    if text.startswith("divergence of order "):
        return Quantity("divergence", alpha=float(text.rpartition(" ")[2]))
    if text.startswith("epsilon at delta "):
        return Quantity("epsilon", delta=float(text.rpartition(" ")[2]))
    return Quantity(text)
