"""The page of planted faults, read from the catalog of faults itself."""

from __future__ import annotations

import math
from collections.abc import Iterable

from bandana.audits.faults.catalog import CONTROLS
from bandana.audits.faults.fault import Control
from bandana.audits.faults.linear_mdp import LSVI_UTILITY
from bandana.audits.faults.places import SELDOM, planted_at_random
from bandana.audits.faults.releases import GENERIC
from bandana.audits.faults.sums import CONTROLS_OF_SUMS, UTILITY_FAULTS
from bandana.audits.outcome import SAMPLING

_HEAD = """# Planted faults

Each audit plants these in the algorithm that it audits, at a budget of about mu = 1, and must catch them with the
same effort; else its verdict is INCONCLUSIVE. *Caught by* names the searches that must see the fault: sampling
(replays), deterministic (a search for a counterexample), noise (the noise audit). *Factor* is the true privacy loss
over the claimed one, where it is finite and known; *replays* are those on each side with which sampling sees it.
"""

COSTLY: dict[str, tuple[Control, ...]] = {**UTILITY_FAULTS, "lsvi-ucb joint": LSVI_UTILITY}
"""Algorithm or bed -> planted faults that cost utility and no privacy."""
_PUBLIC = {
    "successive elimination, one scalar draw shared by all arms": ("dp-se", "one-noise-for-all"),
    "an index of first pulls without noise": ("adap-ucb", "first-pull-exact"),
    "joint-DP LinUCB, the same noise in consecutive rounds": ("linucb joint", "noise-reused"),
    "batched LSVI-UCB, the update condition never holds (costs utility, no privacy)": ("lsvi-ucb joint", "never-updates"),
    "batched LSVI-UCB, the noise on u is never used": ("lsvi-ucb joint", "vector-noise-unused"),
    "LDP LinUCB, sigma is sqrt 2 below its own formula": ("linucb local", "noise-sqrt2"),
}
"""Defects of public implementations, and the planted faults that stand for them: on which algorithm or bed, and which."""


def markdown() -> str:
    """The page of planted faults, in Markdown."""
    parts = [_HEAD.rstrip()]
    for name, controls in CONTROLS.items():
        parts += [f"\n## Of {name}\n", *_table(controls)]
    parts += ["\n## Of anybody's algorithm, planted in its ledger\n", *_table(GENERIC)]
    places = planted_at_random(32, (0.0, 1.0, 0.5), SELDOM, 0, has_digits=True)
    parts += ["\n## Of anybody's algorithm, at places that the seed draws (here those of seed 0)\n", *_table(places)]
    for name, of_bed in CONTROLS_OF_SUMS.items():
        parts += [f"\n## Of the building block {name}\n", *_table(of_bed)]
    parts += [
        "\n## Faults that cost utility and no privacy\n",
        "An audit of privacy must not take these for leaks; it measures less than the claim.\n",
    ]
    for name, faults in COSTLY.items():
        parts += [f"- {name}, `{fault.name}`: {fault.fault}" for fault in faults]
    parts += ["\n## Defects of public implementations\n", "| what was seen in public code | planted as |", "|---|---|"]
    parts += [f"| {seen} | `{fault}` of {where} |" for seen, (where, fault) in _PUBLIC.items()]
    return "\n".join(parts) + "\n"


def _table(controls: Iterable[Control]) -> list[str]:
    rows = ["| name | fault | caught by | factor | replays |", "|---|---|---|---|---|"]
    for control in controls:
        factor = f"{control.factor:.3g}" if math.isfinite(control.factor) else "-"
        needed = f"{control.replays:,}" if SAMPLING in control.caught_by else "-"
        rows.append(f"| `{control.name}` | {control.fault} | {', '.join(control.caught_by)} | {factor} | {needed} |")
    return rows
