r"""Best-arm identification with a fixed budget: DP-BAI on Laplace or Gaussian sums, sequential halving on exact ones.

Source: Chen, Karthik, Chee and Tan (2024), Fixed-budget differentially private best arm identification, DP-BAI; the
non-private algorithm is that of Karnin, Koren and Somekh (2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.best_arm.rules import noise_exponent, pooled_shares
from bandana.algorithms.bandits.best_arm.top_two import FOREVER, InEpisodes, Sensitive
from bandana.algorithms.bandits.reward_noise import gaussian, laplace
from bandana.algorithms.decision import Decision
from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Exact, Interval, PhaseSum
from bandana.privacy_core.checks import at_least, one_of

_TILTS = np.geomspace(1e-2, 1e7, 1050)


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums and of public counts."""

    mean: FloatArray
    """(n_reps, n_arms) estimates, in units of the range's width."""
    active: BoolArray
    """(n_reps, n_arms) arms that are not eliminated."""
    arm: IntArray
    """(n_reps,) the arm that is pulled; the recommended one after the last phase."""
    left: IntArray
    """(n_reps,) pulls left of it in this phase."""
    phase: IntArray
    """(n_reps,) phases that have ended."""
    clock: IntArray
    """(n_reps,) rounds played."""
    stopped: IntArray
    """(n_reps,) rounds after which the test ended; 0 before."""


@dataclass(frozen=True)
class Halving(InEpisodes):
    r"""Spends a budget in phases, in each of which all arms left are pulled equally often and the worse half goes.

    Of K arms s_1 = K, s_(p+1) = ceil(s_p / 2), and M = ceil(log2 K) phases leave one. In phase p each of the s_p arms is
    pulled n_p = floor(budget / (M s_p)) times, the sum of these rewards alone is released with noise, fresh for each arm,
    and the s_(p+1) arms of the largest estimates stay. The last one is recommended, and played to the horizon; nothing more
    is released.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions and of the recommendation (the paper's
    privacy proposition), central model; with Gaussian noise of deviation width / mu, mu-GDP, mu = sqrt(2 epsilon / alpha),
    which is (alpha, epsilon)-RDP.
    Sensitivity: a sum of rewards clipped to [low, high] moves by at most high - low when one is replaced; each reward lies
    in one released sum, whose length is public, and which arms are left is a function of earlier releases: the one-touch
    lemma applies (`docs/privacy.md`).
    Public: arms, budget, horizon, the reward range. Cost: O(n_arms) a phase.

    Departures from the paper: it plays on arms with features of dimension d, and pulls a set of the largest determinant
    where arms outnumber d^2; arms without features are its case d = K, in which it pulls all arms that are left. Pulls of a
    phase are floor(budget / (M s_p)), so that no budget is exceeded, and an arm's pulls follow one another. The paper's
    text beyond its abstract was not at hand when this was written: these lengths and `error_bound` are ours. So is
    `pools`: an arm's estimate is the mean of all its phases, with weights inverse to their variance, post-processing of
    what was released anyway.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of an arm's pulls.
      budget: rounds that the test may take.
      pools: whether all phases of an arm count, or the last one alone.
    """

    budget: int
    pools: bool

    def __post_init__(self) -> None:
        at_least("n_actions", self.n_actions, 2)
        least = len(self.sizes) * self.n_actions
        if self.budget < least:
            raise ValueError(
                f"budget must be at least {least}, a pull of every arm in all {len(self.sizes)} phases, got {self.budget}"
            )

    @property
    def sizes(self) -> list[int]:
        """Arms left in each phase."""
        sizes = [self.n_actions]
        while (after := -(-sizes[-1] // 2)) > 1:
            sizes.append(after)
        return sizes

    @property
    def lengths(self) -> IntArray:
        """(n_phases,) pulls of each arm."""
        return np.array([self.budget // (len(self.sizes) * size) for size in self.sizes], dtype=np.int64)

    @property
    def shares(self) -> FloatArray:
        """(n_phases,) weight of a phase's own mean in the estimate."""
        lengths = self.lengths.astype(float)
        if not self.pools:
            return np.ones_like(lengths)
        return pooled_shares(lengths, self.sums.mechanism.deviation / self.reward_range.width)

    def error_bound(self, means: FloatArray) -> float:
        r"""A bound on the probability that another arm than the best is recommended, for means in units of reward.

        The best arm goes in phase p only if at least s_(p+1) others are above it. Leave out the j closest: of the rest at
        least s_(p+1) - j are above it, and by Markov's inequality this has probability at most the sum of e^-x_i over the
        rest, divided by s_(p+1) - j, x_i Chernoff's exponent of the gap for the difference of two estimates; the least over
        j < s_(p+1) counts, and phases add up. Where the last phase alone counts, its rewards do not depend on which arms are
        left, and the rest is at worst the closest s_p - 1 - j of those not left out; pooled, it is all of them, with the
        estimates that they would have.
        """
        gaps = np.sort(means.max() - means)[1:] / self.reward_range.width
        exponents = self._exponents(gaps)
        total = 0.0
        for phase, size in enumerate(self.sizes):
            misses = np.exp(-exponents[phase])  # of rising gaps: falling
            rest, stay = self.n_actions - 1 if self.pools else size - 1, -(-size // 2)
            total += min(float(misses[j:rest].sum()) / (stay - j) for j in range(stay))
        return min(1.0, total)

    def _exponents(self, gaps: FloatArray) -> FloatArray:
        """(n_phases, n_gaps) the largest x with P(an arm so much worse has the larger estimate) <= e^-x."""
        exponents, weights = np.empty((len(self.sizes), len(gaps))), np.zeros(0)
        for phase, share in enumerate(self.shares):
            weights = np.append(weights * (1 - share), share)
            n = self.lengths[: phase + 1, None]
            tilt = weights[:, None] * _TILTS
            of_noise = noise_exponent(self.sums.mechanism, tilt / (n * self.reward_range.width))
            psi = 2 * (tilt**2 / (8 * n) + of_noise).sum(axis=0)
            exponents[phase] = np.maximum(0.0, (gaps[:, None] * _TILTS - psi).max(axis=1))
        return exponents

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first phase, at its first arm."""
        table, each = (n_reps, self.n_actions), np.zeros(n_reps, dtype=np.int64)
        first = np.full(n_reps, self.lengths[0], dtype=np.int64)
        released = Released(np.zeros(table), np.ones(table, dtype=bool), each, first, each.copy(), each.copy(), each.copy())
        return Sensitive(self.sums.init(n_reps)), released

    def decide(self, released: Released) -> Decision:
        """The recommendation, and when the test ended; before its end the best estimate among the arms left."""
        best = np.where(released.active, released.mean, -np.inf).argmax(axis=1)
        return Decision(best, released.stopped.copy())

    def learn(self, released: Released, ended: IntArray, mean: FloatArray) -> None:
        """Takes the noisy means of ended pulls into the estimates."""
        arm, share = released.arm[ended], self.shares[released.phase[ended]]
        released.mean[ended, arm] = (1 - share) * released.mean[ended, arm] + share * mean

    def _go_on(self, released: Released, ended: IntArray) -> None:
        later = released.active[ended] & (np.arange(self.n_actions) > released.arm[ended][:, None])
        is_last = np.asarray(~later.any(axis=1))
        self._halve(released, ended[is_last])
        to_come = np.where(is_last[:, None], released.active[ended], later)
        released.arm[ended] = to_come.argmax(axis=1)
        at = np.minimum(released.phase[ended], len(self.sizes) - 1)
        released.left[ended] = np.where(released.stopped[ended] > 0, FOREVER, self.lengths[at])

    def _halve(self, released: Released, rows: IntArray) -> None:
        if not len(rows):
            return
        mean = np.where(released.active[rows], released.mean[rows], -np.inf)
        rank = np.argsort(np.argsort(-mean, axis=1, kind="stable"), axis=1, kind="stable")
        stay = np.array([-(-size // 2) for size in self.sizes])[released.phase[rows]]
        released.active[rows] = released.active[rows] & (rank < stay[:, None])
        released.phase[rows] += 1
        over = rows[released.phase[rows] == len(self.sizes)]
        released.stopped[over] = released.clock[over]


def sequential_halving(n_arms: int, reward_range: Interval, budget: int) -> Halving:
    """Sequential halving without noise, the non-private twin."""
    return Halving(n_arms, reward_range, PhaseSum(Exact()), budget, False)


def dp_bai(n_arms: int, epsilon: float, reward_range: Interval, budget: int, calibration: str = "tight") -> Halving:
    """DP-BAI with total privacy epsilon-DP.

    Args:
      n_arms: at least 2.
      epsilon: above 0.
      reward_range: declared range of a reward.
      budget: rounds that the test may take.
      calibration: `as-known` or `tight`; their noise is the same, and meets the claim exactly.
    """
    one_of("calibration", calibration, ("as-known", "tight"))
    return Halving(n_arms, reward_range, PhaseSum(laplace(epsilon, reward_range)), budget, calibration == "tight")


def gaussian_bai(n_arms: int, alpha: float, epsilon: float, reward_range: Interval, budget: int) -> Halving:
    """The same with Gaussian noise and total privacy (alpha, epsilon)-RDP, all phases pooled."""
    return Halving(n_arms, reward_range, PhaseSum(gaussian(alpha, epsilon, reward_range)), budget, True)
