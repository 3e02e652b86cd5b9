"""What `make quick` runs: a few cases of each test that costs little."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

SLOW_TESTS = Path(__file__).parent / "data" / "slow_tests.txt"
CASES = 4
"""Cases of a test, at most."""


def listed() -> list[str]:
    """Functions that `python -m benchmarks.test_costs` found to cost too much."""
    return SLOW_TESTS.read_text(encoding="utf-8").splitlines()


def thinned(items: Sequence[pytest.Item], slow: Collection[str]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """A few cases of each test that is neither marked as slow or nightly nor listed, evenly spread over all of them.

    Returns:
      what stays, and what is left out, in the order given.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        name = item.nodeid.partition("[")[0]
        if name not in slow and not (item.get_closest_marker("slow") or item.get_closest_marker("nightly")):
            cases.setdefault(name, []).append(item)
    kept = {item for group in cases.values() for item in group[:: -(-len(group) // CASES)]}
    return [item for item in items if item in kept], [item for item in items if item not in kept]
