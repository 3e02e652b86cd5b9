r"""Rules that turn predicted losses into a distribution of actions: inverse gap weighting and policy optimization.

All read one public thing, the rounds at which predictors were released, and predicted losses of what one user brings. In
units of the reward range's width, a loss is 1 minus the reward from the range's low end.

Sources: Foster and Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with regression oracles; Foster and
Krishnamurthy (2021), Efficient first-order contextual bandits; Attias, Levy, Ryabchenko and others (2026), Vanilla policy
optimization is both optimal and differentially private for stochastic contextual bandits, of which we know the abstract and
the authors' public code (policies `squarecb`, `fastcb`, `vpo`, `bpo`), not the printed constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import TIE
from bandana.privacy_core.checks import positive

_TILE = 16
_kernel = njit(cache=True, nogil=True, error_model="numpy")


@_kernel
def products(estimates, contexts, out):  # type: ignore[no-untyped-def]
    """out[r, j, a] = <estimates[r, j], contexts[r, a]>; (n_reps, m, d) and (n_reps, n_actions, d)."""
    n_reps, m, d = estimates.shape
    for r in range(n_reps):
        for j in range(m):
            for a in range(contexts.shape[1]):
                sum_ = 0.0
                for i in range(d):
                    sum_ += estimates[r, j, i] * contexts[r, a, i]
                out[r, j, a] = sum_


@_kernel
def _inverse_gaps(losses, rate, is_relative, slack, out):  # type: ignore[no-untyped-def]
    """Fills out (n_reps, n_actions) as `InverseGap` says, for losses of that shape; the first of equal ones is the best."""
    n_reps, n_actions = losses.shape
    for r in range(n_reps):
        least = losses[r].min()
        best = 0
        while losses[r, best] > least + slack * abs(least):
            best += 1
        unit = least if is_relative else 1.0
        rest = 1.0
        for a in range(n_actions):
            if a != best:
                out[r, a] = unit / (n_actions * unit + rate * max(losses[r, a] - least, 0.0))
                rest -= out[r, a]
        out[r, best] = rest


@_kernel
def _softmax(logits, most, total, out):  # type: ignore[no-untyped-def]
    """Fills out (n_actions, n) with exp(logits), each column scaled to a sum of 1; `most` and `total` (n,) are scratch."""
    most[:], total[:] = logits[0], 0.0
    for row in logits[1:]:
        for i in range(len(row)):
            most[i] = max(most[i], row[i])
    for a in range(len(logits)):
        for i in range(len(most)):
            out[a, i] = math.exp(logits[a, i] - most[i])
        for i in range(len(most)):
            total[i] += out[a, i]
    for a in range(len(logits)):
        for i in range(len(most)):
            out[a, i] /= total[i]


@_kernel
def _replayed(losses, ends, bonus, rate, out):  # type: ignore[no-untyped-def]
    """Fills out (n_reps, n_actions) as `BonusOptimization` says; losses: (n_reps, m, n_actions), ends: (m,).

    A few replicates go through the predictors side by side, so that the processor need not wait for one's exponential.
    """
    n_reps, m, n_actions = losses.shape
    logits, exposure, policy = np.empty((3, n_actions, min(_TILE, n_reps)))
    most, total = np.empty((2, min(_TILE, n_reps)))
    for first in range(0, n_reps, _TILE):
        n = min(_TILE, n_reps - first)
        logits[:] = 0.0
        exposure[:] = 0.0
        for j in range(m):
            _softmax(logits, most, total, policy)
            size = ends[j] - (ends[j - 1] if j > 0 else 0)
            scale = bonus * math.sqrt(ends[j] / n_actions)
            for a in range(n_actions):
                for i in range(n):
                    optimistic = losses[first + i, j, a] - min(1.0, scale / (1.0 + exposure[a, i]))
                    logits[a, i] -= rate * size * max(0.0, optimistic)
                    exposure[a, i] += size * policy[a, i]
        _softmax(logits, most, total, policy)
        out[first : first + n] = policy[:, :n].T


class ActionRule(Protocol):
    """Distribution of actions, given predicted losses.

    Attributes:
      n_coins: coins that a decision takes; the last one falls on an action.
      reads_all: whether it reads all predictors that were released, or the last one alone.
    """

    @property
    def n_coins(self) -> int:
        """Coins of a decision."""

    @property
    def reads_all(self) -> bool:
        """True if all predictors are read."""

    def probabilities(self, losses: FloatArray, ends: IntArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions) probabilities.

        Args:
          losses: (n_reps, m, n_actions), by each predictor that is read.
          ends: (n,) rounds after which predictors were released, those up to now, at least one.
          coins: (n_reps, n_coins) in [0, 1).
        """


@dataclass(frozen=True)
class InverseGap:
    r"""SquareCB's rule, inverse gap weighting: p_a = 1 / (K + gamma gap_a), and the best action has the rest.

    With f_a the predicted loss and b the least one's action, gap_a = f_a - f_b. FastCB's rule, `is_relative`, weighs gaps by
    the least loss: p_a = f_b / (K f_b + gamma gap_a), so that little is explored where hardly anything is lost. gamma =
    gamma_scale sqrt(K t), t the rounds before the batch: public, and of the theorem's order sqrt(K t / R), R the regret of
    the regression, which depends on t by logarithms.

    With mean losses f*, a* the best action, and E over p, SquareCB's rule loses

        E f*_a - f*_(a*) <= 2 K / gamma + (gamma / 2) E (f_a - f*_a)^2.

    Proof, with e = f - f*: it is E (f_a - f_b) - E e_a + (e_(a*) - gap_(a*)). The first term is at most (K - 1) / gamma; the
    second 1 / gamma + (gamma / 4) E e_a^2; and e_(a*) <= (gamma / 4) p_(a*) e_(a*)^2 + 1 / (gamma p_(a*)), where 1 / p_(a*)
    <= K + gamma gap_(a*).

    Source: Foster and Rakhlin (2020), Algorithm 1 and Lemma 3, where K is mu; Foster and Krishnamurthy (2021), Algorithm 1.

    Attributes:
      gamma_scale: above 0.
      is_relative: whether gaps are weighed by the least loss, which must be above 0.
    """

    gamma_scale: float
    is_relative: bool = False

    n_coins = 1
    reads_all = False

    def __post_init__(self) -> None:
        positive("gamma_scale", self.gamma_scale)

    def gamma(self, n_actions: int, step: int) -> float:
        """Gamma, after so many rounds before the batch."""
        return self.gamma_scale * math.sqrt(n_actions * step)

    def probabilities(self, losses: FloatArray, ends: IntArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions) probabilities, see `ActionRule`."""
        last = losses[:, -1]
        out = np.empty(last.shape)
        _inverse_gaps(last, self.gamma(last.shape[1], int(ends[-1])), self.is_relative, TIE, out)
        return out


@dataclass(frozen=True)
class PolicyOptimization:
    r"""Vanilla policy optimization in batches: the mixture of exponential weights on the last predictor's losses.

    For a batch that follows one of B rounds, with eta = rate min(1 / K, 1 / sqrt(K B)), the policy is the mean of q_0, ...,
    q_(B - 1), q_k proportional to exp(-k eta f). The first coin chooses k, the second falls on an action of q_k.

    Source: Attias, Levy, Ryabchenko and others (2026), as the authors' code has it: `vpo_parameters` and
    `sample_virtual_mixture_component`.

    Attributes:
      rate: factor on eta, above 0.
    """

    rate: float

    n_coins = 2
    reads_all = False

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    def probabilities(self, losses: FloatArray, ends: IntArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions) probabilities given the first coin, see `ActionRule`."""
        last = losses[:, -1]
        size = int(ends[-1] - (ends[-2] if len(ends) > 1 else 0))
        eta = self.rate * min(1 / last.shape[1], 1 / math.sqrt(last.shape[1] * size))
        k = np.floor(coins[:, :1] * size)
        weights = np.exp(-eta * k * (last - last.min(axis=1, keepdims=True)))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class BonusOptimization:
    r"""Policy optimization with a bonus: exponential weights that replay all predictors, each less what is unexplored.

    For the vectors that a user brings, from uniform q_1 and no exposure D_1, over predictors j with batches of N_j rounds,
    T_j in all:

        b_j = min(1, bonus sqrt(T_j / K) / (1 + D_j)),     q_(j+1) proportional to q_j exp(-rate N_j max(0, f_j - b_j)),
        D_(j+1) = D_j + N_j q_j,

    all for each action. D counts how often this user's policy would have played the action in earlier batches: it is
    computed from released predictors and own vectors, not from what others were given.

    Source: Attias, Levy, Ryabchenko and others (2026), as the authors' code has it: `bpo_policy`.

    Attributes:
      bonus: scale of the bonus, above 0.
      rate: of learning, above 0.
    """

    bonus: float
    rate: float

    n_coins = 1
    reads_all = True

    def __post_init__(self) -> None:
        positive("bonus", self.bonus)
        positive("rate", self.rate)

    def probabilities(self, losses: FloatArray, ends: IntArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions) probabilities, see `ActionRule`."""
        out = np.empty((len(losses), losses.shape[2]))
        _replayed(losses, ends, self.bonus, self.rate, out)
        return out
