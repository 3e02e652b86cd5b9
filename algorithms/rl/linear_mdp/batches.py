r"""When a batched algorithm releases and changes its policy: at times that are public, or by what it has released.

A batched algorithm looks at its matrices after so many episodes, and may then update: release its vectors too, which read
every episode so far, and with them change the policy. Each update costs every user of the first batch again, so that fewer
updates leave less noise. Three schemes; in all of them the whole transcript is private, for a reason that is short:

  static      Updates come after i ceil(K / B) episodes, i = 1, ..., B - 1. Proof: the times are public, so that the value of
              every release is a function of earlier outputs and of the records in its span; given those outputs a replaced
              record moves it by at most its sensitivity, and adaptive composition adds up. This is the paper's scheme.
  geometric   Updates come after K / 2^R, ..., K / 4, K / 2 episodes. The proof is the same, word for word; only R = O(log K)
              is much smaller than B = O(K^(2/5)). Its default R is about log2(K) / 2, so that the first batch is of sqrt K
              episodes, whose regret is of the order of what any algorithm has.
  determinant Looks come after every floor(sqrt K) episodes. At each the matrices are released; an update follows the first
              look, and each one at which a determinant of the *released* matrices, over that of what regularizes it, is by a
              factor of 1 + C above the largest one at an update before, at most `most_updates` times. Proof: let O_1, O_2,
              ... be the outputs. Whether there is a next release, which mechanism it uses and which records it reads are
              functions of O_1, ..., O_i alone. Given O_1, ..., O_i both data sets therefore take the same step, and the next
              output's law changes by at most its mechanism's price for the replaced record, by nothing outside the span. No
              batch boundary is a function of data, so there is nothing more to protect. What a record pays is random, but at
              most the price of all looks (one event in a factorized sum) and of `most_updates` updates, whatever happens;
              and composition with prices that are chosen adaptively below a fixed total costs that total (a filter: for
              Gaussian noise the privacy losses are a martingale with bounded variation, for pure losses they add up). So
              it is private for what `most_updates` updates cost, which is the most that the ledger is charged. Luyo and
              others (Remarks 4 and 8) find the analysis unclear, as the schedules of neighboring data sets differ when
              determinants are those of exact matrices; with released ones they do not. `most_switches` derives how many
              updates suffice.

Sources: static, Luyo, Garcelon, Lazaric and Pirotta, Algorithm 2, after Wang, Zhou and Gu (2021), LSVI-UCB-Batch, whose
LSVI-UCB-RareSwitch switches by determinants. Determinants of released matrices, with a cap on the updates: Ngo, Vietri and
Wu (2022), Improved regret for differentially private exploration in linear MDP; they look after every episode, we after
every sqrt K: less noise, and an update comes by as many episodes later.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bandana.algorithms.papers.luyo import lsvi_updates
from bandana.algorithms.regression.private_ridge import Regularizer
from bandana.privacy_core.checks import at_least, positive


@dataclass(frozen=True)
class Schedule:
    """When matrices are released, and when the policy is updated.

    Attributes:
      looks: after how many episodes the matrices are released, increasing.
      most_updates: how often the vectors may be released.
      log_growth: an update but the first waits until a log-determinant has grown by more; None: every look is an update.
    """

    looks: tuple[int, ...]
    most_updates: int
    log_growth: float | None = None

    def __post_init__(self) -> None:
        if not self.looks or self.most_updates < 1:
            raise ValueError(
                f"a schedule needs a look and an update, got looks {self.looks} and most_updates {self.most_updates}: with "
                "a single batch nothing is ever learned; ask for more episodes or batches"
            )
        if any(late <= early for early, late in zip((0, *self.looks), self.looks, strict=False)):
            raise ValueError(f"looks must be increasing numbers of episodes from 1 on, got {self.looks}")

    @property
    def batches(self) -> tuple[int, ...]:
        """Episodes of each batch but the last, where every look is an update."""
        return tuple(late - early for early, late in zip((0, *self.looks), self.looks, strict=False))


def static(episodes: int, batches: int) -> Schedule:
    """B batches of ceil(K / B) episodes, the last one shorter: B - 1 updates, or fewer if K ends before.

    Args:
      episodes: K.
      batches: B.
    """
    at_least("episodes", episodes, 1)
    size = math.ceil(episodes / at_least("batches", batches, 1))
    updates = lsvi_updates(episodes, batches)
    return Schedule(tuple(size * i for i in range(1, updates + 1)), updates)


def geometric(episodes: int, batches: int | None = None) -> Schedule:
    """Each batch but the first is as long as all before it.

    Args:
      episodes: K.
      batches: one more than there are updates; None: a first batch of about sqrt K episodes.
    """
    doublings = max(1, math.ceil(math.log2(at_least("episodes", episodes, 1)) / 2))
    updates = doublings if batches is None else at_least("batches", batches, 1) - 1
    looks = sorted({math.ceil(episodes / 2**i) for i in range(1, updates + 1)} - {episodes})
    return Schedule(tuple(looks), len(looks))


def determinant(episodes: int, batches: int | None = None, switch: float = 1.0) -> Schedule:
    """Updates where a released determinant has grown by a factor of 1 + C, and at most as often as is paid for.

    Args:
      episodes: K.
      batches: one more than there may be updates; None: as many updates as looks, for `most_switches` to lower.
      switch: C.
    """
    size = math.isqrt(at_least("episodes", episodes, 1))
    looks = tuple(range(size, episodes, size))
    updates = len(looks) if batches is None else min(at_least("batches", batches, 1) - 1, len(looks))
    return Schedule(looks, updates, math.log1p(positive("switch", switch)))


def most_switches(schedule: Schedule, dimension: int, length: int, regularizers: Sequence[Regularizer]) -> float:
    r"""Largest number of updates of a schedule by determinants, while the noise is within its bounds.

    After k_l episodes, at the l-th look, Lambda = sum phi phi^T + M with |phi| <= 1 and eigenvalues of M at most b_l, so
    that the trace of Lambda is at most k_l + d b_l, and with the shift s_l

        L = log det Lambda - d log s_l <= G = max_l d log((k_l / d + b_l) / s_l).

    For each step the algorithm keeps T, the largest L at an update so far, and 0 at first. The first update is not waited
    for; each later one raises the T of some step by more than log(1 + C); no T ever falls, and none exceeds G. So there are
    at most 1 + H G / log(1 + C) updates, rounded down, and never more than looks. A schedule that is paid for so many
    refuses an update only where the noise exceeds its bounds; its privacy does not depend on that.

    Args:
      schedule: by determinants.
      dimension: d.
      length: H.
      regularizers: of each look.

    Returns:
      the bound, not rounded.
    """
    assert schedule.log_growth is not None
    growth = max(
        dimension * math.log((k / dimension + each.largest) / each.added)
        for k, each in zip(schedule.looks, regularizers, strict=True)
    )
    return min(1 + length * growth / schedule.log_growth, float(len(schedule.looks)))
