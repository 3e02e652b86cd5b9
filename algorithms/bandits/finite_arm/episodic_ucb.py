r"""UCB on finitely many arms, in episodes: AdaR-UCB on Gaussian sums, AdaP-UCB and AdaP-KLUCB on Laplace ones, UCB on exact.

Sources: Azize and Basu, "Renyi Differentially Private Bandits", Algorithm 2, Theorems 4 and 5; the episodic wrapper and the
pure algorithms are theirs of 2022, "When Privacy Meets Partial Information", Algorithm 1, Theorems 6 to 8. The twin with
one-round episodes and beta = 4 is UCB1 of Auer, Cesa-Bianchi and Fischer (2002).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.finite_arm import batches_numba
from bandana.algorithms.bandits.finite_arm.indices import (
    KULLBACK_LEIBLER,
    LAPLACE,
    POOLED,
    SEPARATE,
    SUB_GAMMA,
    SUB_GAUSSIAN,
    Ended,
    Index,
    Released,
)
from bandana.algorithms.bandits.reward_noise import gaussian, laplace
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import Exact, Interval, Ledger, OpenPhase, PhaseSum
from bandana.privacy_core.checks import positive


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    phase: OpenPhase
    """The reward sum of the episode under way."""


@dataclass(frozen=True)
class EpisodicUCB:
    r"""Upper confidence bounds, one arm an episode, the index from noisy episode means.

    Every arm is pulled once. Then, at each episode's start, the arm with the largest index (see `indices`), for AdaR-UCB

        mean_a + sqrt(2 v_a beta log t),

    is played until its number of pulls has doubled, and the sum of the episode's n rewards is released with noise of
    variance s^2. v_a is the variance proxy of the estimate: 1/(4n) + s^2/n^2 for one episode of rewards in [0, 1], which is
    the paper's bonus, since 2 v = 1/(2n) + alpha/(epsilon n^2) at s^2 = alpha/(2 epsilon).

    Unit of privacy: one reward (one round). Claim: (alpha, epsilon)-RDP of all actions (Theorem 4), central model; with
    Laplace noise of scale width / epsilon, epsilon-DP (Theorem 6 of 2022).
    Sensitivity: a sum of rewards clipped to [low, high] moves by at most high - low when one is replaced; each reward lies
    in one released sum, so one Gaussian release of noise multiplier 1/mu touches it and the run is mu-GDP with
    mu = sqrt(2 epsilon / alpha), which is (alpha, epsilon)-RDP with equality.
    The paper's proof takes an expectation over episode boundaries that "have the same law" under both reward sequences;
    after the changed reward they have not. The conclusion holds by the one-touch lemma (`docs/privacy.md`).
    Public: arms, horizon, beta, the reward range. Cost: O(n_arms) a decision, at most n_arms (1 + log2(T / n_arms)) of them.

    Departures from the paper, all in the parts of the calibrations, `PARTS`:
      `noise`, `width`: the paper's noise on a mean uses N/2 for the number of samples, which for the very first pull (N = 1)
        reads 1/2 where one sample was taken. As printed that is twice the noise that is needed (it spends half the claimed
        mu), and a bonus for half a sample and its noise; `tight` noise and the `exact` width give the pull its true size.
      `estimator`: the `last` episode alone, as printed, or `all` past episode means of an arm with inverse-variance weights:
        post-processing of what was released anyway. The index stays valid: the k-th episode of an arm has a length that does
        not depend on data, so the combination is a fixed average of independent sub-Gaussian means.
    Every mixture keeps the claim, as no noise is smaller than `tight`, and every index is valid: the width counts at least
    the noise that was added.

    Attributes:
      n_actions: number of arms.
      reward_range: declared range of a reward; every reward is clipped to it.
      sums: the phase sum of an ordinary episode.
      first_sums: that of an arm's first pull.
      first_share: how much of a sample the bonus of a first pull counts, in (0, 1].
      doubling: whether an episode doubles the arm's pulls; without, it is one round.
      combines: whether all past episodes count or only the last one.
      beta: exploration; the regret theorems need beta > 3. The paper of 2022 writes alpha.
      index: which upper confidence bound an arm is chosen by.
    """

    n_actions: int
    reward_range: Interval
    sums: PhaseSum
    first_sums: PhaseSum
    first_share: float
    doubling: bool
    combines: bool
    beta: float
    index: Index = SUB_GAUSSIAN

    def __post_init__(self) -> None:
        if self.n_actions < 2:
            raise ValueError(f"n_actions must be at least 2, got {self.n_actions!r}")
        positive("beta", self.beta)
        if not 0 < self.first_share <= 1:
            raise ValueError(f"first_share must lie in (0, 1], got {self.first_share!r}")
        if (self.combines or self.first_share < 1) and not self.index.combines:
            raise ValueError(f"{self.index} looks at the last episode alone, and at whole samples: it can combine none")

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first pull."""
        table = (n_reps, self.n_actions)
        released = Released(
            mean=np.zeros(table),
            deviation=np.full(table, np.inf),
            pulls=np.zeros(table, dtype=np.int64),
            arm=np.zeros(n_reps, dtype=np.int64),
            left=np.zeros(n_reps, dtype=np.int64),
            clock=np.zeros(n_reps, dtype=np.int64),
            tail=np.zeros(table),
        )
        return Sensitive(self.sums.init(n_reps)), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the episode's arm, or the one with the largest index (ties: the lowest arm)."""
        chosen = np.empty(len(released.clock), dtype=np.int64)
        self.index.choose(released, self.beta, self.reward_range, chosen)
        return chosen

    def hold(self, released: Released, actions: IntArray) -> IntArray:
        """(n_reps,) rounds until the episode ends: as many as the arm has been pulled, or one."""
        lengths = np.empty(len(actions), dtype=np.int64)
        batches_numba.batch_lengths(released.pulls, released.left, actions, float(self.doubling), lengths)
        return lengths

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds to the episode's sum; where the episode is complete, releases it and updates the arm's estimate."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        ended = np.empty(len(record.user), dtype=np.int64)
        n_ended = batches_numba.advance(
            released.pulls, released.arm, released.left, released.clock,
            record.actions[:, 0], record.n_records, float(self.doubling), ended,
        )  # fmt: skip
        if n_ended:
            phase = self._release(phase, released, record, ledger, ended[:n_ended])
        return Sensitive(phase), released

    def _release(self, phase: OpenPhase, released: Released, record: Record, ledger: Ledger, ended: IntArray) -> OpenPhase:
        # All replicates pull each arm once, in the same rounds, before anything is decided from rewards.
        is_first = int(record.user[0]) < self.n_actions
        is_whole = len(ended) == ledger.n_reps
        sums = self.first_sums if is_first else self.sums
        phase, noisy, n_samples = sums.close(phase, ledger, None if is_whole else ended)
        arm = released.arm if is_whole else released.arm[ended]
        self.index.learn(released, self.ended(ended, arm, noisy, n_samples, is_first))
        return phase

    def ended(self, reps: IntArray, arm: IntArray, noisy: FloatArray, n_samples: IntArray, is_first: bool) -> Ended:
        """Statistics that an index learns from episodes that have ended, first pulls or later ones.

        A first pull that counts as `first_share` of a sample has the noise on a mean of so many, or what it really has.
        """
        share, scale = 1.0, self.sums.mechanism.scale
        if is_first:
            share, scale = self.first_share, max(self.first_sums.mechanism.scale, scale / self.first_share)
        return Ended(reps, arm, noisy, n_samples, share, scale, self.reward_range.width, self.combines)


PARTS = {
    "printed": {"noise": "printed", "width": "printed", "estimator": "last"},
    "tight": {"noise": "tight", "width": "exact", "estimator": "all"},
}
"""Calibration of AdaR-UCB -> its parts, see `EpisodicUCB`."""
PURE_PARTS = {"printed": {"width": "printed", "estimator": "last"}, "tight": {"width": "exact", "estimator": "all"}}
"""Calibration of AdaP-UCB -> its parts, see `adap_ucb`; its noise is exact in both."""


def _parts(calibration: str | Mapping[str, str], known: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The parts of a calibration, by its name or as they are."""
    if not isinstance(calibration, str):
        return calibration
    if calibration not in known:
        raise ValueError(f"calibration must be {' or '.join(map(repr, known))}, got {calibration!r}")
    return known[calibration]


def _in_episodes(
    n_arms: int, epsilon: float, beta: float, reward_range: Interval, index: Index, combines: bool = False
) -> EpisodicUCB:
    """Doubling episodes, each forgotten, with Laplace noise on their sums: epsilon-DP in all."""
    sums = PhaseSum(laplace(epsilon, reward_range))
    return EpisodicUCB(n_arms, reward_range, sums, sums, 1.0, doubling=True, combines=combines, beta=beta, index=index)


def ucb(n_arms: int, beta: float, reward_range: Interval, doubling: bool = False) -> EpisodicUCB:
    """The non-private twin; with `doubling` it plays in AdaR-UCB's episodes, without it is UCB1 at beta = 4."""
    exact = PhaseSum(Exact())
    return EpisodicUCB(n_arms, reward_range, exact, exact, 1.0, doubling, combines=True, beta=beta)


def adar_ucb(
    n_arms: int, alpha: float, epsilon: float, beta: float, reward_range: Interval, calibration: str | Mapping[str, str]
) -> EpisodicUCB:
    """AdaR-UCB with total privacy (alpha, epsilon)-RDP.

    Args:
      n_arms: at least 2.
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
      beta: exploration.
      reward_range: declared range of a reward.
      calibration: `printed` or `tight`, or a mixture of their `PARTS`, see `EpisodicUCB`.
    """
    mechanism = gaussian(alpha, epsilon, reward_range)
    parts = _parts(calibration, PARTS)
    first = mechanism.scaled(2.0) if parts["noise"] == "printed" else mechanism
    share = 0.5 if parts["width"] == "printed" else 1.0
    combines = parts["estimator"] == "all"
    return EpisodicUCB(
        n_arms, reward_range, PhaseSum(mechanism), PhaseSum(first), share, doubling=True, combines=combines, beta=beta
    )


def adac_ucb(
    n_arms: int, rho: float, beta: float, reward_range: Interval, calibration: str | Mapping[str, str]
) -> EpisodicUCB:
    """AdaC-UCB with total privacy rho-zCDP: `adar_ucb` with noise of variance 1 / (2 rho).

    Claim: rho-zCDP of all actions, replace one reward, central model. Gaussian noise of multiplier 1 / mu touches a reward
    once, so the run is mu-GDP and, with mu = sqrt(2 rho), rho-zCDP (Bun and Steinke 2016, Proposition 1.6). That is
    (alpha, rho alpha)-RDP at every order alpha; `adar_ucb` asks for it at one order and gets the same noise.
    Source: Azize and Basu (2024), Concentrated Differential Privacy for Bandits, AdaC-UCB.

    Args: as in `adar_ucb`, and
      rho: of zero-concentrated DP, above 0.
    """
    return adar_ucb(n_arms, 2.0, 2 * positive("rho", rho), beta, reward_range, calibration)


def adap_ucb(
    n_arms: int, epsilon: float, beta: float, reward_range: Interval, calibration: str | Mapping[str, str]
) -> EpisodicUCB:
    r"""AdaP-UCB with total privacy epsilon-DP: `EpisodicUCB` with Laplace noise of scale width / epsilon.

    Unit of privacy: one reward (one round). Claim: epsilon-DP of all actions (Theorem 6), central model. Sensitivity: as for
    AdaR-UCB in L1, the width of the range for the one episode's sum that holds the reward, so one Laplace release touches it
    and the run is epsilon-DP by the one-touch lemma. (Lemma 1 of the paper proves it for fixed episode ends only, and
    divides a sum of j - i + 1 rewards by j - i; Algorithm 1's ends depend on earlier outputs.)
    Public: arms, horizon, beta, the reward range.

    First pulls: the paper's Lap(2 / (epsilon N)) reads Lap(2 / epsilon) for N = 1, its Example 2 says r + Lap(1 / epsilon);
    one sample was taken, so the latter is meant. First pulls enter the index with their noise, as Theorem 6 needs.
    Departures from the paper, none of which touches the noise, for the claim is exact with it, in `PURE_PARTS`:
      `estimator`: the `last` episode alone, as printed, or `all` past episode means of an arm with weights inverse to their
        variances, post-processing of what was released anyway.
      `width`: as `printed`, rewards and noise bounded separately (`LaplaceIndex`, and `SeparateIndex` where episodes are
        combined), or `exact`, bounded together as what they are, sub-gamma variables (`SubGammaIndex`).
      Both together, `tight`, have half the regret where epsilon is 1 or more.
    Source: Azize and Basu (2022), When Privacy Meets Partial Information, Algorithm 1, eq. (7), Theorems 6 and 7.

    Args: as in `adar_ucb`, and
      epsilon: above 0.
      beta: exploration, the paper's alpha; its theorem needs more than 3, its figure takes 3.1.
      calibration: `printed` or `tight`, or a mixture of their `PURE_PARTS`, see above.
    """
    parts = _parts(calibration, PURE_PARTS)
    combines = parts["estimator"] == "all"
    separate = SEPARATE if combines else LAPLACE
    index = separate if parts["width"] == "printed" else SUB_GAMMA
    return _in_episodes(n_arms, epsilon, beta, reward_range, index, combines)


KL_PARTS = {"printed": {"estimator": "last"}, "tight": {"estimator": "all"}}
"""Calibration of AdaP-KLUCB -> its part, see `adap_klucb`; its noise is exact in both."""


def adap_klucb(
    n_arms: int, epsilon: float, beta: float, reward_range: Interval, calibration: str | Mapping[str, str] = "printed"
) -> EpisodicUCB:
    """AdaP-KLUCB with total privacy epsilon-DP: as `adap_ucb`, also in its arguments, with the Kullback-Leibler index.

    `estimator` is the `last` episode alone, as printed, or `all` rewards of an arm, with the noise of all its episodes
    (`PooledKullbackLeiblerIndex`): post-processing of what was released anyway.

    An arm whose noisy mean is moved to the end of the range has the largest index there is. Such ties, which the paper
    leaves open, go to the arm of the largest mean before it is moved: at small epsilon most decisions are such ties, and
    giving them to the lowest arm would make the order of arms matter.
    Source: Azize and Basu (2022), When Privacy Meets Partial Information, Algorithm 1, Theorems 6 and 8.
    """
    combines = _parts(calibration, KL_PARTS)["estimator"] == "all"
    return _in_episodes(n_arms, epsilon, beta, reward_range, POOLED if combines else KULLBACK_LEIBLER, combines)
