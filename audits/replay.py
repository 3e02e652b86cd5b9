"""Many replays of an algorithm on a data set and on its neighbor, in blocks that each have a seed of their own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.observers import ActionLog
from algorithms.protocol import Algorithm, FloatArray, IntArray
from algorithms.run import run
from audits.neighbors import Pair
from privacy_core import LiveLedger, ReproducibleNoise, ScriptedLedger

BLOCK = 8192
_MAX_CODES = 4096


@dataclass(frozen=True)
class Replays:
    """What the adversary gets from each replay of one side.

    Attributes:
      log_ratio: (n_replays,) log p(transcript | neighbor) - log p(transcript | data), the exact privacy loss, in nats.
        Minus infinity on a replay of the data whose schedule or actions the neighbor cannot produce, plus infinity on
        one of the neighbor that the data cannot produce.
      action_code: (n_replays,) the arms of the first few phases after the canary, as one number.
    """

    log_ratio: FloatArray
    action_code: IntArray


def replay(algorithm: Algorithm, pair: Pair, on_neighbor: bool, n_replays: int, seed: np.random.SeedSequence) -> Replays:
    """Replays one side of a pair.

    Every replay is recorded live on its own side; then the algorithm runs on the other side with a scripted ledger, so
    that both act alike and the exact values of each release stand side by side. Their log density ratio, summed over
    the releases, is the likelihood ratio of the transcripts: the Neyman-Pearson statistic, for any algorithm.

    Args:
      algorithm: what to audit.
      pair: the two data sets.
      on_neighbor: replay the neighbor instead of the data set.
      n_replays: at least 1.
      seed: one child a block; the result does not depend on the block order.

    Returns:
      scores of `n_replays` replays.
    """
    if n_replays < 1:
        raise ValueError(f"n_replays must be at least 1, got {n_replays!r}")
    sizes = [min(BLOCK, n_replays - start) for start in range(0, n_replays, BLOCK)]
    blocks = [
        _replay_block(algorithm, pair, on_neighbor, size, child)
        for size, child in zip(sizes, seed.spawn(len(sizes)), strict=True)
    ]
    return Replays(
        np.concatenate([block.log_ratio for block in blocks]), np.concatenate([block.action_code for block in blocks])
    )


def _replay_block(algorithm: Algorithm, pair: Pair, on_neighbor: bool, n_reps: int, seed: np.random.SeedSequence) -> Replays:
    here, there = (pair.neighbor, pair.data) if on_neighbor else (pair.data, pair.neighbor)
    live = LiveLedger(n_reps, ReproducibleNoise(seed), keeps_transcript=True, n_records=here.n_users)
    actions = ActionLog()
    run(algorithm, here, live, observers=[actions])
    scripted = ScriptedLedger(n_reps, live.transcript)
    shadow = ActionLog()
    run(algorithm, there, scripted, observers=[shadow])
    scripted.finish()
    log_ratio = np.where((scripted.diverged >= 0) | actions_differ(actions, shadow), -np.inf, scripted.log_ratio)
    return Replays(-log_ratio if on_neighbor else log_ratio, action_codes(actions, pair.record, algorithm.n_actions))


def actions_differ(first: ActionLog, second: ActionLog) -> np.ndarray:
    """(n_reps,) whether two runs played different arms, or held them for different times, anywhere."""
    differ = np.zeros(len(first.actions[0]), dtype=bool)
    if len(first.actions) != len(second.actions):
        common = min(len(first.actions), len(second.actions))
        longer = first if len(first.actions) > common else second
        for n_records in longer.n_records[common:]:
            differ |= n_records > 0
    for mine, theirs, n_mine, n_theirs in zip(
        first.actions, second.actions, first.n_records, second.n_records, strict=False
    ):
        differ |= (n_mine != n_theirs) | ((mine != theirs) & (n_mine > 0))
    return differ


def action_codes(log: ActionLog, record: int, n_actions: int) -> IntArray:
    """(n_reps,) the arms of the first phases that begin after `record`, read as digits in base n_actions + 1.

    As many phases as keep the number of codes at or below 4096. A phase that a replicate does not reach adds no digit;
    digits start at 1, so shorter sequences have codes of their own.
    """
    base = n_actions + 1
    most = int(np.log(_MAX_CODES) / np.log(base))
    code = np.zeros(len(log.actions[0]), dtype=np.int64)
    taken = np.zeros(len(code), dtype=np.int64)
    for user, n_records, actions in zip(log.user, log.n_records, log.actions, strict=True):
        later = (user > record) & (n_records > 0) & (taken < most)
        code = np.where(later, code * base + actions + 1, code)
        taken += later
        if (taken == most).all():
            break
    return code
