"""Aims of algorithms: little regret, a certain answer as soon as it may be, or a good one after a given time."""

from __future__ import annotations

from enum import StrEnum

from bandana.algorithms.entry import Entry

_TESTS = "bandits/best_arm"


class Aim(StrEnum):
    """Aim that an algorithm is made for, and that a benchmark's problem measures."""

    REGRET = "regret"
    """Little regret."""
    FIXED_CONFIDENCE = "fixed-confidence"
    """A test that stops as soon as it is wrong with small probability only: the fewer rounds, the better."""
    FIXED_BUDGET = "fixed-budget"
    """A test of a given number of rounds: the fewer wrong recommendations, the better."""


def aim_of(entry: Entry) -> Aim:
    """Aim that an entry of the catalog is made for."""
    if entry.family != _TESTS:
        return Aim.REGRET
    return Aim.FIXED_CONFIDENCE if "error" in entry.parameters else Aim.FIXED_BUDGET
