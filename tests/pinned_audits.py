"""What small audits of some entries say, which `tests/data/pinned_audits.json` keeps.

    python -m tests.pinned_audits      # writes the file anew: first say in CHANGELOG.md which audits changed, and why

Seeds, streams, scores and choices of a search decide no verdict here, and so no other test. But from evidence of an earlier
version the same numbers are replayed.
"""

import json
from pathlib import Path
from typing import Any

from bandana.algorithms.catalog import find
from bandana.audits.audit import audit
from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.outcome import Outcome
from tests.processor_results import EFFORT, trial_of

PLACE = Path(__file__).parent / "data" / "pinned_audits.json"
AUDITED = ("adar-ucb", "adap-ucb", "dp-klucb renyi", "linucb joint", "gp-ucb joint", "capri local", "dp-ucbvi joint")
"""Gaussian and Laplace sums, arms that take turns, solved systems, features of a kernel, messages of users, episodes."""


def _summary(outcome: Outcome) -> dict[str, Any]:
    """Words and numbers of an outcome, in JSON's own types."""
    scores = [[float(side.sum()), float(abs(side).max()), len(side)] for pair in outcome.scores.values() for side in pair]
    return {
        "words": [
            outcome.verdict.value, outcome.noise_finding,
            [(type(event).__name__, count) for event, count in outcome.events or ()],
            list(outcome.scores), list(outcome.caveats),
            [[*map(str, (one.view, one.attack, one.neighbor, one.quantity, one.method))] for one in outcome.bounds],
            [[one.name, sorted(one.caught_by)] for one in outcome.controls],
        ],
        "numbers": [number for side in scores for number in side],
        "bounds": [*(one.lower for one in outcome.bounds), *(one.level for one in outcome.bounds), outcome.power],
    }  # fmt: skip


def said() -> dict[str, dict[str, Any]]:
    """Entry -> what its audit says."""
    pins = {}
    for name in AUDITED:
        trial = trial_of(name, find(name).calibrations[0])
        pins[name] = _summary(audit(trial, CONTROLS[name][:3], EFFORT))
    return json.loads(json.dumps(pins))


def main() -> None:
    """Writes what is said now."""
    PLACE.write_text(json.dumps(said(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
