r"""Private EXP3 for adversarial arms: exponential weights on noisy losses of batches, with the coins of the loop.

Sources: Asi, Raman and Talwar (2025), Faster rates for private adversarial bandits (ICML), whose conversion plays any bandit
on noisy mean losses of batches of about 1 / epsilon rounds; EXP3 is of Auer, Cesa-Bianchi, Freund and Schapire (2002). We
could read abstract and introduction of the former: rates, mixing and the bound on regret are derived here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.reward_noise import laplace
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Ledger, OpenPhase, PhaseSum
from bandana.privacy_core.checks import positive


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sum of the batch under way."""


class Released(NamedTuple):
    """All that decisions are made from, besides coins; a function of noisy sums, of actions and of public counts."""

    loss: FloatArray
    """(n_reps, n_arms) estimated total loss of each arm, in batches' mean losses."""
    arm: IntArray
    """(n_reps,) the arm of the batch under way."""
    left: IntArray
    """(n_reps,) rounds left in it; 0 draws an arm."""


@dataclass(frozen=True)
class BatchedExp3(DecidesEachRecord):
    r"""Exponential weights on estimated losses; an arm is drawn for a batch of B rounds.

    A reward r in [low, high] is the loss (high - r) / (high - low). For each batch an arm is drawn from

        p = (1 - mix) q + mix / K,        q_a proportional to exp(-rate L_a),

    with the coin of the batch's first round, and played for B rounds. The sum of the batch's rewards is released with
    Laplace noise of scale width / epsilon, which makes x, the noisy mean loss, and x / p_I is added to L_I, I the arm.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions, central model. Sensitivity: a batch's sum
    moves by at most high - low when one of its rewards is replaced, and each reward lies in one batch; arms are functions of
    earlier releases and of coins, so by the one-touch lemma (`docs/privacy.md`) one Laplace release of multiplier 1 /
    epsilon touches a record. Coins cost nothing and protect nothing. Which rewards are answered may change from round to
    round. Public: arms, horizon, the reward range. Cost: O(K) a round, T / B releases.

    Regret. For losses chosen beforehand, N = ceil(T / B) batches, b = 1 / (B epsilon) the noise on a mean, and
    mix >= 2 rate b K, the expected regret against the best arm in hindsight is at most

        B (log K / rate + rate N K (1/2 + 4 b^2 / 3) / (1 - mix) + mix N).

    Proof: W is the sum of the weights. Given the past, with s = rate / p_a <= 1 / (2 b), E e^(-s Z) = 1 / (1 - s^2 b^2) <= 1
    + 4 s^2 b^2 / 3 for the noise Z, and e^(-s l) <= min(1, 1 - s l + s^2 l^2 / 2) for a loss l in [0, 1]: their product is
    at most 1 - s l + s^2 (1/2 + 4 b^2 / 3). So the ratio of W after a batch to W before has an expectation of at most
    1 - rate sum_a q_a l_a + rate^2 sum_a (q_a / p_a) (1/2 + 4 b^2 / 3), and q_a / p_a <= 1 / (1 - mix). By Jensen's
    inequality E log(W_end / K) is at most the sum of these, without the 1; it is at least -rate times the loss of any arm
    minus log K, as estimates are unbiased. Playing p in place of q costs at most mix a batch, and a batch B times its mean
    loss; a batch that is cut short is one whose other losses are 0. With
    rate = sqrt(log K / (N K (1/2 + 4 b^2 / 3 + 2 b))) and B = ceil(1 / epsilon) it is O(sqrt(K T log K / epsilon)).

    Departures from the paper: it takes any bandit; the one that gives it sqrt(K T / epsilon) has no logarithm.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of a batch.
      length: B.
      rate: of learning.
      mix: share of uniform play.
    """

    n_actions: int
    reward_range: Interval
    sums: PhaseSum
    length: int
    rate: float
    mix: float

    n_coins = 1

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        if self.length < 1:
            raise ValueError(f"length must be at least 1 round, got {self.length!r}")
        positive("rate", self.rate)
        if not 0 <= self.mix <= 1:
            raise ValueError(f"mix must lie in [0, 1], got {self.mix!r}")

    @property
    def noise(self) -> float:
        """b, the scale of the noise on a batch's mean loss; 0 for the twin."""
        return self.sums.mechanism.scale / (self.reward_range.width * self.length)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first round."""
        zeros = np.zeros(n_reps, dtype=np.int64)
        return Sensitive(self.sums.init(n_reps)), Released(np.zeros((n_reps, self.n_actions)), zeros, zeros.copy())

    def probabilities(self, loss: FloatArray) -> FloatArray:
        """(n_rows, n_arms) of the arms, for estimated losses of that shape."""
        weight = np.exp(-self.rate * (loss - loss.min(axis=1, keepdims=True)))
        return np.asarray((1 - self.mix) * weight / weight.sum(axis=1, keepdims=True) + self.mix / self.n_actions)

    def act(self, released: Released, context: FloatArray | None, step: int, coins: FloatArray) -> IntArray:
        """(n_reps,) the batch's arm, or the one that the coin falls on."""
        if (released.left > 0).all():
            return released.arm.copy()
        bounds = np.cumsum(self.probabilities(released.loss), axis=1)[:, :-1]
        return np.where(released.left > 0, released.arm, (coins >= bounds).sum(axis=1))

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds to the batch's sum; where the batch is complete, releases it and adds its loss to the arm's estimate."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        np.copyto(released.arm, record.actions[:, 0])
        left = np.where(released.left > 0, released.left, self.length) - record.n_records
        np.copyto(released.left, left)
        ended = np.flatnonzero((left == 0) & (record.n_records > 0))
        if len(ended):
            phase, noisy, n = self.sums.close(phase, ledger, None if len(ended) == ledger.n_reps else ended)
            mean_loss = (self.reward_range.high - noisy / n) / self.reward_range.width
            arm, rows = released.arm[ended], np.arange(len(ended))
            released.loss[ended, arm] += mean_loss / self.probabilities(released.loss[ended])[rows, arm]
        return Sensitive(phase), released


def exp3(n_arms: int, epsilon: float | None, reward_range: Interval, horizon: int, rate_scale: float = 1.0) -> BatchedExp3:
    """Private EXP3 with total privacy epsilon-DP, its rate and mixing those of the bound.

    Args:
      n_arms: at least 2.
      epsilon: above 0; None: EXP3 without noise, in batches of one round, the non-private twin.
      reward_range: declared range of a reward.
      horizon: rounds.
      rate_scale: factor on the rate of learning; the bound is least near 1.
    """
    length, sums, noise = 1, PhaseSum(Exact()), 0.0
    if epsilon is not None:
        sums = PhaseSum(laplace(epsilon, reward_range))
        length = max(1, math.ceil(1 / epsilon))
        noise = 1 / (length * epsilon)
    n_batches, variance = -(-horizon // length), 0.5 + 4 * noise**2 / 3
    rate = rate_scale * math.sqrt(math.log(n_arms) / (n_batches * n_arms * (variance + 2 * noise)))
    mix = min(1.0, 2 * rate * noise * n_arms * (1 + 1e-9))
    return BatchedExp3(n_arms, reward_range, sums, length, rate, mix)


def adversarial_bound(algorithm: BatchedExp3, horizon: ArrayLike) -> FloatArray:
    """The bound of `BatchedExp3` on the expected regret against the best arm, for any losses; at most the width times T.

    Args:
      algorithm: private EXP3 or its twin, with any rate and mixing.
      horizon: numbers of rounds, any shape.
    """
    rounds, length, noise = np.asarray(horizon, dtype=float), algorithm.length, algorithm.noise
    width, n_arms = algorithm.reward_range.width, algorithm.n_actions
    if algorithm.mix >= 1 or algorithm.mix < 2 * algorithm.rate * noise * n_arms:
        return np.asarray(rounds * width)
    n_batches = np.ceil(rounds / length)
    second = n_arms * (0.5 + 4 * noise**2 / 3) / (1 - algorithm.mix)
    bound = length * (math.log(n_arms) / algorithm.rate + n_batches * (algorithm.rate * second + algorithm.mix))
    return np.asarray(np.minimum(bound, rounds) * width)
