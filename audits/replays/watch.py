"""An audit that may be watched: replays come block by block, and it stops once a claim is refuted, with the error kept.

Every look at a fixed-size test spends some of its error; an e-process (`bandana.audits.bounds.evalues`) may be looked at
after every block. So a claim that is far off is refuted after a few thousand replays, and one that is nearly right gets as
many as there are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import Algorithm, FloatArray
from bandana.audits.bounds.evalues import Claims, EProcess, lower_of
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.replays.attacks import likelihood_ratio
from bandana.audits.replays.replay import BLOCK, replay_both
from bandana.privacy_core.checks import at_least, probability


@dataclass(frozen=True)
class Watched:
    """What a watched audit saw.

    Attributes:
      lower: the largest value refuted together with all before it; 0 if the first one stands.
      is_refuted: whether the claimed value is refuted.
      n_replays: on each side, when it stopped.
      history: (n_blocks, n_claims) logarithm of the wealth against each value after each block.
    """

    lower: float
    is_refuted: bool
    n_replays: int
    history: FloatArray


def watch(
    algorithm: Algorithm, pair: Pair, claims: Claims, claimed: float, *, most_replays: int, level: float, seed: int
) -> Watched:
    """Replays a pair until a claim is refuted, or the replays are spent.

    Args:
      algorithm: what to audit, by the exact likelihood ratio of its transcript.
      pair: the two data sets.
      claims: increasing values of one kind of claim, `ApproxClaims`, `GaussianClaims` or `RenyiClaims`.
      claimed: the value, at least the first of `claims.values`: it stops when this and all before it are refuted.
      most_replays: on each side, at least two blocks of 8192: the first one is only learned from.
      level: probability with which a claim that holds is ever refuted, at most.
      seed: root of the replays' seeds.

    Returns:
      what was seen. It may be stopped, continued with more replays, or looked at at any time: the level holds.

    Raises:
      ValueError: too few replays, a level out of (0, 1), or a claim below all that are tested.
    """
    probability("level", level)
    at_least("most_replays", most_replays, 2 * BLOCK)
    tested = claims.values[claims.values <= claimed]
    if not len(tested):
        raise ValueError(f"claimed must be at least the first tested value, {claims.values[0]:.6g}, got {claimed!r}")
    process, n = EProcess(claims), 0
    for block in np.random.SeedSequence(seed).spawn(most_replays // BLOCK):
        data, neighbor = block.spawn(2)
        process.update(*(likelihood_ratio(side) for side in replay_both(algorithm, pair, BLOCK, (data, neighbor))))
        n += BLOCK
        history = np.array(process.history)
        lower = lower_of(claims.values, history, level)
        if lower >= tested[-1]:
            break
    return Watched(lower, math.isclose(lower, tested[-1]) or lower > tested[-1], n, history)
