"""Pairs of data sets on which one reward can tip a decision.

An algorithm that decides from exact values differs from an honest one only where a decision is close. Random data leave few
decisions close; these tables leave all of them, as every arm has earned the same.
"""

from __future__ import annotations

import numpy as np

from algorithms.environments.tables import RewardTable
from algorithms.protocol import Algorithm
from audits.neighbors import Pair
from audits.replay import replay
from privacy_core import Interval

_PILOT = 64
_LARGEST = 50.0


def candidates(rounds: int, n_arms: int, reward_range: Interval, probes: tuple[int, ...], seed: int) -> list[Pair]:
    """Pairs worth trying: a canary at each of the probes, in data that leave every decision open.

    All arms are equal, at one end of the range or by turns at both; a last table is drawn by fair coins. Where no probes are
    given they stand at the first rounds, at twice, four times, ... as late, and half a step later.
    """
    low, high = reward_range.low, reward_range.high
    if not probes:
        late = [step * 2**power for power in range(12) for step in (2, 3)]
        probes = tuple(sorted({record for record in (0, 1, *late, n_arms) if record < rounds // 2 or record < 2}))
    turns = np.where(np.arange(rounds) % 2, high, low)[:, None]
    coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(1,)))).integers(
        0, 2, (rounds, n_arms)
    )
    tables = {
        f"all other rewards {low:g}": np.full((rounds, n_arms), low),
        f"all other rewards {high:g}": np.full((rounds, n_arms), high),
        f"all others {low:g} and {high:g} by turns": np.broadcast_to(turns, (rounds, n_arms)),
        "all others by fair coins": np.array([low, high])[coins],
    }
    found = []
    for told, rewards in tables.items():
        for record in probes:
            data = RewardTable(rewards, reward_range).replaced(record, np.full(n_arms, low))
            neighbor = data.replaced(record, np.full(n_arms, high))
            found.append(Pair(data, neighbor, record, f"record {record}: every reward {low:g} becomes {high:g}; {told}"))
    return found


def tipping_pair(algorithm: Algorithm, tried: list[Pair], seed: int) -> Pair:
    """The candidate on which a few replays show the largest privacy loss: infinite where a decision is tipped.

    Its replays are used for nothing else, so that bounds on the pair stay valid.

    Args:
      algorithm: what to audit.
      tried: candidates, at least one.
      seed: of the pilot, which has seeds of its own.
    """
    seeds = np.random.SeedSequence(seed, spawn_key=(6,)).spawn(len(tried))
    losses = [replay(algorithm, pair, True, _PILOT, child).log_ratio for pair, child in zip(tried, seeds, strict=True)]
    worth = [float(np.clip(np.nan_to_num(loss, posinf=np.inf), -_LARGEST, _LARGEST).mean()) for loss in losses]
    return tried[int(np.argmax(worth))]
