"""The search by sampling: how many replays it takes, and how its failure probability is split."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bandana.algorithms.protocol import Algorithm
from bandana.audits.bounds.methods import bound
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import Effort
from bandana.audits.replays.measure import PlannedBound, method_of
from bandana.audits.replays.replay import replay

POWER_TRIALS = 40


_MOST_TOLD_APART = 1 << 21
"""Replays a side up to which it is asked how many would be enough."""


_PROMISE, _FEW_REPLAYS = 0x7072_6F6D, 512


_PART, _FEWEST_OF_PART = 8, 2048


def too_few(claimed: float, level: float, n: int, effort: Effort, planned: PlannedBound) -> tuple[str, ...]:
    """Why bounds from n replays a side can say nothing, in words; empty if they are enough.

    They are too few if no outcome of the replays could refute the claim: then its silence could not speak for it.
    """
    method, parameters = method_of(planned.quantity, effort.seed, is_learned=False)
    times, most = 1, max(2, _MOST_TOLD_APART // n)
    while times < most and not bound(method, *_told_apart(times * n), level, **parameters) > claimed:
        times *= 2
    if times == 1:
        return ()
    return (
        f"{effort.replays} replays are too few: at {effort.confidence:.6g} confidence not even a test without errors could "
        f"refute {planned.quantity} = {claimed:.6g}; that needs {'about' if times < most else 'more than'} "
        f"{times * effort.replays}",
    )


def _told_apart(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.full(n, -np.inf), np.full(n, np.inf)


def promise(algorithm: Algorithm, pair: Pair, seed: int) -> float:
    """What a few replays of a pair promise, as a mu: planted faults are looked for where they show first.

    The mean log-likelihood ratios of the two sides differ by mu^2 where the loss is Gaussian. The replays have seeds of
    their own: bounds on others hold whatever order is made of it. -1 where scores are NaN.
    """
    root = np.random.SeedSequence(seed, spawn_key=(_PROMISE,))
    sides = zip((False, True), root.spawn(2), strict=True)
    scores = [replay(algorithm, pair, side, _FEW_REPLAYS, child).log_ratio for side, child in sides]
    if any(np.isnan(side).any() for side in scores):
        return -1.0
    return math.sqrt(max(0.0, float(scores[1].mean() - scores[0].mean())))


def attempts(effort: Effort, plan: tuple[PlannedBound, ...]) -> list[tuple[Effort, tuple[PlannedBound, ...]]]:
    """The transcripts of a part of the replays, then the whole effort: most faults are caught with the first."""
    whole = (effort, plan)
    if effort.replays < _PART * _FEWEST_OF_PART:
        return [whole]
    return [(replace(effort, replays=effort.replays // _PART), plan[:1]), whole]
