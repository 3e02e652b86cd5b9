r"""Thompson sampling on finitely many arms, in batches: on sums with Gaussian noise, and on exact ones.

Sources: Hu and Hegde (2022), Near-optimal Thompson sampling-based algorithms for differentially private stochastic bandits
(Lazy-DP-TS); Ou, Medina and Cummings (2024), Thompson sampling itself is differentially private; the batches are those of
Karbasi, Mirrokni and Shadravan (2021), Parallelizing Thompson sampling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandana.algorithms.bandits.reward_noise import gaussian
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Ledger, OpenPhase, PhaseSum
from bandana.privacy_core.checks import positive

_LEAST_COIN = 2.0**-54
"""A coin is a multiple of 2^-53, and may be 0, where the quantile is infinite."""


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """Each arm's sum of rewards in the batch under way."""


class Released(NamedTuple):
    """All that decisions are made from, besides coins; a function of noisy sums, of actions and of public counts."""

    precision: FloatArray
    """(n_reps, n_arms) inverse variance of each arm's posterior; 0 before the first release."""
    weighted: FloatArray
    """(n_reps, n_arms) precision times the posterior's mean."""
    pulls: IntArray
    """(n_reps, n_arms) in complete batches."""
    fresh: IntArray
    """(n_reps, n_arms) in the batch under way."""
    clock: IntArray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class BatchedThompson(DecidesEachRecord):
    r"""Draws a mean for each arm from its posterior, given all noisy sums, and plays the arm with the largest draw.

    Every arm is played once; that is the first batch. Then posteriors stay what they are until some arm has been played as
    often in the batch as in all batches before: the vector of all arms' sums over the batch is released, with N(0, s^2)
    noise in each coordinate, s = width / mu. An arm with n rewards in a batch has there a noisy sum S of variance n width^2
    / 4 + s^2 at most, so that with a flat prior its posterior is Gaussian, with

        precision P_a = sum over batches of n^2 / (n width^2 / 4 + s^2),     mean (1 / P_a) sum n S / (n width^2 / 4 + s^2):

    batches in which an arm was hardly played count little, and noise that hides a mean widens its draws. Batches with n = 0
    tell nothing and are left out. A draw is mean + spread ndtri(coin) / sqrt(P_a), one coin of the loop for each arm and
    round (`bandana.algorithms.coins`).

    Unit of privacy: one reward (one round). Claim: (alpha, epsilon)-RDP of all actions, central model, as mu-GDP with
    mu = sqrt(2 epsilon / alpha) with equality. Sensitivity: a reward clipped to [low, high] lies in one coordinate of one
    batch's vector, which moves by at most high - low when it is replaced: that is the L2 sensitivity of the vector, and a
    batch ends as a function of actions, which are functions of earlier releases and of coins. By the one-touch lemma
    (`docs/privacy.md`) one Gaussian release of multiplier 1 / mu touches a record. Coins cost nothing and protect nothing.
    Public: arms, horizon, the reward range. Cost: O(n_arms) a round, at most n_arms (1 + log2 T) releases.

    Departures from the papers. Lazy-DP-TS is epsilon-DP: it adds Laplace noise to the mean of an arm's last 2^r rewards,
    moves it up by 3 log(t) / (epsilon 2^r), and draws from a Beta law. An arm's 2^r rewards are those of rounds between
    which other arms are played; here all arms are released together, so that batches are stretches of rounds. Noise is
    Gaussian, and enters the posterior in place of a shift; no batch is dropped. Ou and others take the draws themselves for
    the noise, which costs privacy in every round: mu grows with sqrt T. Regret: Hu and Hegde prove O(sum_a log(T) (1 / D_a +
    1 / epsilon)) for Lazy-DP-TS (Theorem 4); of ours nothing is proved.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of a batch, a vector with one coordinate for each arm.
      spread: factor on a draw's standard deviation.
    """

    n_actions: int
    reward_range: Interval
    sums: PhaseSum
    spread: float = 1.0

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        positive("spread", self.spread)

    @property
    def n_coins(self) -> int:
        """Coins that a decision takes: one for each arm."""
        return self.n_actions

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first pull."""
        table = (n_reps, self.n_actions)
        counts = np.zeros(table, dtype=np.int64)
        released = Released(
            np.zeros(table), np.zeros(table), counts, counts.copy(), np.zeros(n_reps, dtype=np.int64)
        )  # fmt: skip
        return Sensitive(self.sums.init(n_reps, (self.n_actions,))), released

    def act(self, released: Released, context: FloatArray | None, step: int, coins: FloatArray) -> IntArray:
        """(n_reps,) the arm with the largest draw; in the first rounds one arm after the other."""
        known = np.maximum(released.precision, np.finfo(float).tiny)
        draw = released.weighted / known + self.spread * ndtri(np.maximum(coins, _LEAST_COIN)) / np.sqrt(known)
        return np.where(released.clock < self.n_actions, released.clock, np.argmax(draw, axis=1))

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the reward to its arm's sum; where the batch is complete, releases all sums and updates the posteriors."""
        rows, arm = np.arange(len(record.user)), record.actions[:, 0]
        value = np.zeros(released.weighted.shape)
        value[rows, arm] = record.rewards[:, 0]
        phase = self.sums.add(sensitive.phase, value, record.n_records)
        released.fresh[rows, arm] += record.n_records
        np.add(released.clock, record.n_records, out=released.clock)
        is_double = released.fresh[rows, arm] >= np.maximum(released.pulls[rows, arm], 1)
        ended = np.flatnonzero(is_double & (released.clock >= self.n_actions) & (record.n_records > 0))
        if len(ended):
            phase, noisy, _ = self.sums.close(phase, ledger, None if len(ended) == ledger.n_reps else ended)
            self.learn(released, ended, noisy)
        return Sensitive(phase), released

    def learn(self, released: Released, ended: IntArray, noisy: FloatArray) -> None:
        """Takes the noisy sums (n_rows, n_arms) of ended batches into the posteriors, in place."""
        n, width = released.fresh[ended], self.reward_range.width
        weight = n / np.maximum(0.25 * width * width * n + self.sums.mechanism.scale**2, np.finfo(float).tiny)
        released.precision[ended] += n * weight
        released.weighted[ended] += weight * noisy
        released.pulls[ended] += n
        released.fresh[ended] = 0


def thompson(n_arms: int, reward_range: Interval, spread: float = 1.0) -> BatchedThompson:
    """Thompson sampling without noise, the non-private twin."""
    return BatchedThompson(n_arms, reward_range, PhaseSum(Exact()), spread)


def dp_thompson(n_arms: int, alpha: float, epsilon: float, reward_range: Interval, spread: float = 1.0) -> BatchedThompson:
    """Private Thompson sampling with total privacy (alpha, epsilon)-RDP, which is sqrt(2 epsilon / alpha)-GDP.

    Args:
      n_arms: at least 2.
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
      reward_range: declared range of a reward.
      spread: factor on a draw's standard deviation.
    """
    return BatchedThompson(n_arms, reward_range, PhaseSum(gaussian(alpha, epsilon, reward_range)), spread)
