"""Rounds that audits reached: what no replay played and no walk met was not seen, and the first page says so."""

from __future__ import annotations

from bandana.audits.documents.report import Report
from bandana.audits.reporting.numbers import number, unit_of


def reach(document: Report) -> str:
    """Rounds that were replayed and walked, of those that the benchmark plays; empty where no audit counted them."""
    unit = unit_of(document["environments"])
    horizon = max((environment["horizon"] for environment in document["environments"]), default=0)
    reached = [(audit["rounds"]["replayed"], audit["rounds"]["walked"]) for audit in document["audits"] if audit["rounds"]]
    if not reached or document["kind"] == "catalog":
        return ""
    replayed, walked = min(replayed for replayed, _ in reached), min(max(pair) for pair in reached)
    words = f"Replayed {number(replayed)} of {number(max(horizon, replayed))} {unit}"
    return f"{words}; walked {number(walked)} of {number(max(horizon, walked))}."


def is_whole(document: Report) -> bool:
    """True if every audit that counts rounds reached all rounds of the benchmark."""
    horizon = max((environment["horizon"] for environment in document["environments"]), default=0)
    reached = [audit["rounds"] for audit in document["audits"]]
    return all(rounds is None or max(rounds["replayed"], rounds["walked"]) >= horizon for rounds in reached)
