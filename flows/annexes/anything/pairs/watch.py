"""A release watched while it runs: a broken one is refuted early, an honest one ends at its budget.

Every block of runs is bet on with a score and a ratio learned from the blocks before it (`bandana.audits.bounds.evalues`).
The score is learned anew now and then; each generation of it starts with a share of the wealth, so the sum is still a
supermartingale that starts at 1, and the claim is refuted when it reaches 1 over the level.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.ties import first_largest
from bandana.audits.bounds import methods
from bandana.audits.bounds.evalues import ApproxClaims, Claims, EProcess, GaussianClaims, RenyiClaims
from bandana.audits.bounds.methods import method_of
from bandana.audits.claims import Quantity
from bandana.flows.annexes.anything.outputs.calls import Caller, Outputs
from bandana.flows.annexes.anything.outputs.encoding import Encoder, joined
from bandana.flows.annexes.anything.outputs.scores import Scorer, learn
from bandana.flows.annexes.anything.pairs.release import Samples
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP
from bandana.privacy_core.checks import probability

_FIRST, _LARGEST_BLOCK = 512, 8192
_AGAIN = 4
"""The score is learned anew from this many times as many runs."""
_ORDERS = (1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True)
class WatchedRelease:
    """Result of watching a release.

    Attributes:
      stated: the claim.
      level: probability with which a release that keeps its claim is ever refuted, at most.
      log_wealth: logarithm of the bets' wealth at the end.
      n_runs: on each side.
      is_cut: whether the time ended before the runs were made.
      samples: all outputs, in the order in which they were made.
    """

    stated: Guarantee
    level: float
    log_wealth: float
    n_runs: int
    is_cut: bool
    samples: Samples

    @property
    def is_refuted(self) -> bool:
        """True if the claim is refuted."""
        return self.log_wealth >= -math.log(self.level)

    def __str__(self) -> str:
        bets = "bets reached" if self.is_refuted else "bets did not reach"
        return f"{bets} 1/{self.level:.2g}, which refutes {self.stated} on this pair, in {self.n_runs} runs a side"


@dataclass
class _Generation:
    """One learned score, and the bets on it."""

    encoder: Encoder
    scorer: Scorer
    processes: list[EProcess]

    def bet(self, blocks: Sequence[Outputs]) -> None:
        scores = [self.scorer(_table(self.encoder, list(block))) for block in blocks]
        for process in self.processes:
            process.update(*scores)

    @property
    def log_wealth(self) -> float:
        """The mean over processes, as a logarithm."""
        last = [float(process.history[-1][0]) for process in self.processes]
        return float(logsumexp(last)) - math.log(len(last))


def watch(
    caller: Caller,
    data: object,
    neighbor: object,
    stated: Guarantee,
    *,
    level: float,
    most_runs: int,
    seed: int,
    seconds: float,
) -> WatchedRelease:
    """Runs the function on both data sets until the claim is refuted, or the runs or the time are spent.

    Args: as in `bandana.flows.annexes.anything.pairs.release.draw`, and
      stated: the claim.
      level: probability with which a release that keeps its claim is ever refuted, at most.
      most_runs: on each side, at least 1024.
      seconds: after which no further block begins.

    Raises:
      ValueError: too few runs, or a level out of (0, 1).
    """
    probability("level", level)
    if most_runs < 2 * _FIRST:
        raise ValueError(f"most_runs must be at least {2 * _FIRST}, got {most_runs!r}")
    coins, *drawn = (np.random.default_rng(child) for child in np.random.SeedSequence(seed, spawn_key=(11,)).spawn(3))
    seen: tuple[list[object], list[object]] = ([], [])
    generations: list[_Generation] = []
    begun, n, size, learned, wealth = time.monotonic(), 0, _FIRST, 0, 0.0
    while n < most_runs:
        size = min(size, most_runs - n)
        blocks: list[Outputs] = [(), ()]
        for side in (0, 1) if coins.random() < 0.5 else (1, 0):
            blocks[side] = caller.runs((data, neighbor)[side], drawn[side].integers(0, 2**32, size).tolist())
            seen[side].extend(blocks[side])
        n += size
        for generation in generations:
            generation.bet(blocks)
        wealth = _sum(generations)
        if wealth >= -math.log(level) or time.monotonic() - begun > seconds:
            break
        if n >= _AGAIN * learned:
            generations.append(_learned(seen, stated, seed))
            learned = n
        size = min(_LARGEST_BLOCK, n)
    samples = Samples(joined([seen[0]]), joined([seen[1]]), n < most_runs and wealth < -math.log(level), caller.batch.value)
    return WatchedRelease(stated, level, wealth, n, samples.is_cut, samples)


def _sum(generations: list[_Generation]) -> float:
    """Logarithm of the wealth: generation k began with 2^-k, and what is not bet yet lies still."""
    shares = [-(k + 1) * math.log(2) for k in range(len(generations))]
    bet = [share + one.log_wealth for share, one in zip(shares, generations, strict=True)]
    return float(logsumexp([*bet, -len(generations) * math.log(2)]))


def _learned(seen: tuple[list[object], list[object]], stated: Guarantee, seed: int) -> _Generation:
    """A score taught on half of the runs so far; the other half chooses the learner, and teaches the bets its ratio."""
    half = len(seen[0]) // 2
    both = joined([side[:half] for side in seen])
    encoder = Encoder.learn(both[:half], both[half:])
    tables = [_table(encoder, side) for side in seen]
    quantity = Quantity.of(stated)
    method, parameters = method_of(quantity, seed, is_learned=True)
    scorers = list(learn(tables[0][:half], tables[1][:half], seed).values())
    held = [tuple(scorer(table[half:]) for table in tables) for scorer in scorers]
    promises = [methods.bound(method, sides[0], sides[1], 0.05, **parameters) for sides in held]
    best = first_largest(np.array(promises))
    processes = [EProcess(claims, is_learned=True) for claims in _claims(stated)]
    for process in processes:
        process.update(*held[best])
    return _Generation(encoder, scorers[best], processes)


def _table(encoder: Encoder, outputs: list[object]) -> FloatArray:
    return encoder.table(joined([outputs]) if encoder.columns is None else outputs)


def _claims(stated: Guarantee) -> list[Claims]:
    """The claim as e-processes test it; a zCDP claim at several orders."""
    match stated:
        case GaussianDP(mu=mu):
            return [GaussianClaims(np.array([mu]))]
        case RenyiDP(alpha=alpha, epsilon=epsilon):
            return [RenyiClaims(alpha, np.array([epsilon]))]
        case ZCDP(rho=rho):
            return [RenyiClaims(alpha, np.array([rho * alpha])) for alpha in _ORDERS]
        case PureDP(epsilon=epsilon):
            return [ApproxClaims(np.array([epsilon]), 0.0)]
        case ApproxDP(epsilon=epsilon, delta=delta):
            return [ApproxClaims(np.array([epsilon]), delta)]
    raise ValueError(f"{stated} promises nothing that can be tested")
