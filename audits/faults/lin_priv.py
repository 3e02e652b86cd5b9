"""Faults of LinPriv: those of a tree of vectors under pure DP."""

from __future__ import annotations

from dataclasses import replace

from bandana.audits.faults import regression, releases
from bandana.audits.faults.contextual import CONTEXTS_NOT_CLIPPED
from bandana.audits.faults.fault import Control, with_part
from bandana.audits.outcome import SAMPLING

LIN_PRIV_CONTROLS: dict[str, tuple[Control, ...]] = {
    "lin-priv": (
        regression.ONE_NODE.caught(SAMPLING),
        replace(regression.PREFIX_NOISE_REDRAWN, plant=with_part(regression.redrawn_prefixes)).caught(SAMPLING),
        releases.ONE_A_LEVEL, releases.half_the_sensitivity("sums"), releases.HALVED_UNAWARE, releases.FIRST_UNPAID,
        releases.WIDE_RANGE, CONTEXTS_NOT_CLIPPED,
    ),
}  # fmt: skip
"""Label of an entry -> its planted faults."""
