"""The seeds of blocks: one for each purpose and block of a cell."""

from __future__ import annotations

import numpy as np

NOISE, REWARDS, COINS = 2, 3, 9
"""Purposes; those of environments are in `bandana.flows.problems.environment`."""


def seed_of(root: int, purpose: int, identity: str, block: int) -> np.random.SeedSequence:
    """A seed of its own for each purpose and block of a cell.

    Args:
      root: the spec's seed.
      purpose: `NOISE` or `REWARDS`.
      identity: SHA-256 of the cell's facts, in hex digits.
      block: its number.
    """
    words = np.frombuffer(bytes.fromhex(identity)[:16], dtype=np.uint32).tolist()
    return np.random.SeedSequence(root, spawn_key=(purpose, *words, block))
