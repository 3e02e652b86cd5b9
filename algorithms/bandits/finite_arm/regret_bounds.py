r"""Bounds on the regret of bandits with finitely many arms, from the gaps, with all constants.

With expected pulls N_a of the arms of gap D_a the expected regret is sum_a D_a N_a; with pulls that hold at once with some
probability the same sum bounds the regret itself. T rounds are T pulls: the largest such sum has the worst arms first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.finite_arm import elimination_numba
from bandana.algorithms.bandits.finite_arm.episodic_ucb import EpisodicUCB
from bandana.algorithms.bandits.finite_arm.indices_numba import laplace_sum_quantile
from bandana.algorithms.bandits.finite_arm.successive_elimination import SuccessiveElimination
from bandana.algorithms.bandits.finite_arm.tree_ucb import TreeUCB
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import Interval


def episodic_bound(algorithm: EpisodicUCB, horizon: ArrayLike, means: ArrayLike) -> FloatArray:
    r"""A bound on the expected regret of indices in doubling episodes, with Laplace noise or without.

    Say w_k(t) is the width of an arm's index after its release k = 0, 1, ..., a function of k and t alone, which grows with
    t; its next episode brings its pulls from 2^k to 2^(k+1). An episode of arm a begins in round t only if its mean is off
    by w_k(t) or more, or the best arm's index is below its mean, or 2 w_k(t) >= D_a. The last ends where 2 w_k(T) < D_a for
    k from some k_a on: 2^k_a pulls. The others are rare. Each index fails with probability at most c t^-beta, and with 2^j
    pulls of the best arm and one of each other arm t >= 2^j + 2^k + K - 1, so that in expectation they bring at most

        sum_k 2^k c ((2^k + K)^-beta + sum_j (2^j + 2^k + K - 1)^-beta),   over 2^k + K <= T,

    pulls. The k-th episode of an arm reads rewards of that arm which do not depend on when it is played, so each term is
    one tail bound. `tight` combines episodes with fixed weights, of which the same holds.

    Args:
      algorithm: with doubling episodes.
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.

    Raises:
      ValueError: episodes are single rounds.

    Source: Azize and Basu (2022), Theorems 7 and 8, whose proof this follows; they bound the widths by their leading terms
    and the rare pulls by 3 beta / (beta - 3), and need beta > 3.
    """
    if not algorithm.doubling:
        raise ValueError("the bound is of doubling episodes; of single rounds see ucb_bound")
    rounds, gaps = np.asarray(horizon, dtype=float), _gaps(means, algorithm.reward_range)
    n_releases, n_arms, beta = int(math.log2(max(2.0, rounds.max(initial=2.0)))) + 2, algorithm.n_actions, algorithm.beta
    deviation, tail = _after_releases(algorithm, n_releases)
    logarithm = np.log(np.maximum(rounds, 2.0))[..., None]
    width = algorithm.index.width(deviation, tail, beta, logarithm, np.arange(1, n_releases + 1))
    width /= algorithm.reward_range.width
    length = 2.0 ** np.arange(n_releases)
    last = np.stack([_last(2 * width >= gap) for gap in gaps], axis=-1) if len(gaps) else np.zeros((*rounds.shape, 0))
    best = (length[:, None] + length + n_arms - 1) ** -beta
    rare = algorithm.index.misses * length * ((length + n_arms) ** -beta + best.sum(axis=1))
    begun = length + n_arms <= rounds[..., None]
    return largest_regret(rounds, gaps, 2.0**last + (rare * begun).sum(axis=-1)[..., None]) * algorithm.reward_range.width


def _after_releases(algorithm: EpisodicUCB, n_releases: int) -> tuple[FloatArray, FloatArray]:
    """(n_releases,) deviation and tail of an arm's estimate after each of its releases, in units of reward."""
    _, released = algorithm.init(1)
    spreads = np.empty((2, n_releases))
    only = np.zeros(1, dtype=np.int64)
    for k in range(n_releases):
        algorithm.index.learn(released, algorithm.ended(only, only, np.zeros(1), np.array([2 ** max(0, k - 1)]), k == 0))
        spreads[:, k] = released.deviation[0, 0], released.tail[0, 0]
    return spreads[0], spreads[1]


def _last(is_wide: np.ndarray) -> FloatArray:
    """The number of releases up to the last one that is wide, along the last axis; 0 if none is."""
    n = is_wide.shape[-1]
    return np.asarray(np.where(is_wide, np.arange(1.0, n + 1), 0.0).max(axis=-1))


def elimination_bound(algorithm: SuccessiveElimination, horizon: ArrayLike, means: ArrayLike) -> FloatArray:
    r"""A bound on the regret of successive elimination that fails with probability at most `failure`, for all T at once.

    Where all means of all epochs are within h_e + c_e (see `SuccessiveElimination`), the best arm stays, and an arm is
    eliminated after the first epoch with 4 (h_e + c_e) < D_a, whatever the number of active arms then; until then it is
    pulled at most R_e(K) times in epoch e, K being all arms.

    Args:
      algorithm: DP-SE or its twin.
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.

    Source: Sajed and Sheffet (2019), the proof of the regret of Algorithm 2, with the real lengths of epochs.
    """
    rounds, gaps = np.asarray(horizon, dtype=float), _gaps(means, algorithm.reward_range)
    pulls, settled = np.zeros(len(gaps)), np.zeros(len(gaps), dtype=bool)
    epoch, longest = 1, rounds.max(initial=1.0)
    while not settled.all() and pulls[~settled].min() < longest:
        lengths = [
            elimination_numba.epoch_length(n, epoch, algorithm.failure, algorithm.noise, algorithm.length_scale)
            for n in range(2, algorithm.n_actions + 1)
        ]
        arms = np.arange(2, algorithm.n_actions + 1) * epoch**2 / algorithm.failure
        n = np.array(lengths, dtype=float)
        reach = 4 * (np.sqrt(np.log(8 * arms) / (2 * n)) + algorithm.noise * np.log(4 * arms) / n)
        pulls[~settled] += n[-1]
        settled |= reach.max() < gaps
        epoch += 1
    return largest_regret(rounds, gaps, pulls) * algorithm.reward_range.width


def tree_bound(algorithm: TreeUCB, horizon: ArrayLike, means: ArrayLike) -> FloatArray:
    r"""A bound on the expected regret of DP-UCB.

    An arm is played in round t only if its mean or the best arm's is off by its width, or the width w of n pulls in round T
    has 2 w >= D_a, which is so for n <= n_a,

        sqrt(2 beta log(T) / n_a) + 2 b q / n_a = D_a,

    in units of the range, q the largest quantile of a sum of up to log2(T + 1) Laplace variables at beta log T. The former
    happens in at most 2 sum_(t > K) (t^(1 - beta) + t^-beta) <= 2 (K^(2 - beta) / (beta - 2) + K^(1 - beta) / (beta - 1))
    rounds, so that the expected pulls are at most n_a + 1 and these.

    Args:
      algorithm: DP-UCB or its twin.
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.

    Raises:
      ValueError: `beta` is not above 2, for which nothing is proved.

    Source: Auer, Cesa-Bianchi and Fischer (2002), Theorem 1, with the noise of Mishra and Thakurta (2015).
    """
    beta, n_arms = algorithm.beta, algorithm.n_actions
    if not beta > 2:
        raise ValueError(f"the regret bound holds for a beta above 2, got {beta!r}")
    rounds, gaps = np.asarray(horizon, dtype=float), _gaps(means, algorithm.reward_range)
    level = beta * np.log(np.maximum(rounds, 2.0))
    scale = algorithm.sums.mechanism.scale / algorithm.reward_range.width
    noise = np.array([scale * _largest_quantile(t, x) for t, x in zip(rounds.ravel(), level.ravel(), strict=True)])
    sampling, noise = np.sqrt(2 * level)[..., None], 2 * noise.reshape(rounds.shape)[..., None]
    root = (sampling + np.sqrt(sampling**2 + 4 * noise * gaps)) / (2 * gaps)
    rare = 2 * (n_arms ** (2 - beta) / (beta - 2) + n_arms ** (1 - beta) / (beta - 1))
    return largest_regret(rounds, gaps, root**2 + 1 + rare) * algorithm.reward_range.width


def _largest_quantile(rounds: float, level: float) -> float:
    """The largest quantile of the noise on any prefix of at most so many rounds, in units of a node's scale."""
    return max(float(laplace_sum_quantile(m, level)) for m in range(1, int(math.log2(rounds + 1)) + 1))


def theorem_5_bound(
    horizon: ArrayLike, means: ArrayLike, alpha: float, epsilon: float, beta: float, reward_range: Interval
) -> FloatArray:
    r"""Theorem 5 with its constants: a bound on the expected regret of AdaR-UCB, in both calibrations.

    In units of the range's width, with gaps D_a, over the arms of D_a > 0,

        R_T <= sum_a 8 beta log(T) / D_a + 8 sqrt(beta (alpha / epsilon) log T) + 2 beta / (beta - 3),

    and never more than T times the largest gap. Proof, as printed: arm a is not played again once its last episode had
    n = 2^l >= 2 beta log(T) / D_a^2 + 2 sqrt(beta (alpha / epsilon) log T) / D_a rounds, except with probability 1/T; it has
    then 2^(l + 1) <= 4 times that many. The optimal arm's index fails in all rounds together beta / (beta - 3) times.
    `tight` combines episodes: its variance proxy is at most that of the last episode alone, which is all that is used of
    it. First pulls of `printed` have a bonus for half a sample, which is more than their noise needs.

    Args:
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.
      alpha: Renyi order.
      epsilon: Renyi divergence bound.
      beta: exploration, above 3.
      reward_range: declared range of a reward.

    Raises:
      ValueError: `beta` is not above 3, for which nothing is proved.

    Source: Azize and Basu, Theorem 5 and Appendix B.2, for [0, 1]; scaled to the range.
    """
    if not beta > 3:
        raise ValueError(f"the regret bound holds for a beta above 3, got {beta!r}")
    rounds, gaps = np.asarray(horizon, dtype=float), _gaps(means, reward_range)
    log = np.log(rounds)
    noise = 8 * np.sqrt(beta * alpha / epsilon * log) + 2 * beta / (beta - 3)
    bound = 8 * beta * log * (1 / gaps).sum() + len(gaps) * noise
    return _at_most_the_largest(bound, rounds, gaps, reward_range)


def corollary_6_bound(
    horizon: ArrayLike, n_arms: int, alpha: float, epsilon: float, beta: float, reward_range: Interval
) -> FloatArray:
    r"""Corollary 6 with its constants: a bound on the expected regret of AdaR-UCB that holds for all means.

    In units of the range's width, with K arms,

        R_T <= sqrt(32 beta (K - 1) T log T) + (K - 1) (8 sqrt(beta (alpha / epsilon) log T) + 2 beta / (beta - 3)),

    and never more than T. Proof: arms of gap at most D cost D T together, and the others at most what Theorem 5 says, where
    8 beta log(T) / D_a is at most 8 beta log(T) / D; D = sqrt(8 beta (K - 1) log(T) / T) makes both alike. The paper has the
    order sqrt(K T log T) + K sqrt((alpha / epsilon) log T), and log T in place of its root in Table 1.

    Args: as in `theorem_5_bound`, and
      n_arms: K, at least 2.

    Raises:
      ValueError: `beta` is not above 3, for which nothing is proved.

    Source: Azize and Basu, Corollary 6, which leaves the constants open.
    """
    if not beta > 3:
        raise ValueError(f"the regret bound holds for a beta above 3, got {beta!r}")
    rounds = np.asarray(horizon, dtype=float)
    log = np.log(rounds)
    each = 8 * np.sqrt(beta * alpha / epsilon * log) + 2 * beta / (beta - 3)
    bound = np.sqrt(32 * beta * (n_arms - 1) * rounds * log) + (n_arms - 1) * each
    return np.asarray(reward_range.width * np.minimum(bound, rounds))


def ucb_bound(horizon: ArrayLike, means: ArrayLike, beta: float, reward_range: Interval) -> FloatArray:
    r"""A bound on the expected regret of UCB with one-round episodes; at beta = 4 it is UCB1's, with a smaller constant.

    In units of the range's width, with gaps D_a, over the arms of D_a > 0,

        R_T <= sum_a 2 beta log(T) / D_a + D_a (1 + 2 (beta - 1) / (beta - 2)),

    and never more than T times the largest gap. Proof, that of UCB1: after n >= 2 beta log(T) / D_a^2 pulls the bonus
    sqrt(beta log(t) / (2 n)) is at most D_a / 2, so arm a is played only if its mean or the best arm's is off by its bonus.
    Each has probability at most t^-beta at each of at most t counts: in all 2 sum_t t^(1 - beta) <= 2 (beta - 1) /
    (beta - 2) rounds. Auer et al. count pairs of counts, and have pi^2 / 3 at beta = 4 where this has 3.

    Args:
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.
      beta: exploration, above 2.
      reward_range: declared range of a reward.

    Raises:
      ValueError: `beta` is not above 2, for which nothing is proved.

    Source: Auer, Cesa-Bianchi and Fischer (2002), Theorem 1.
    """
    if not beta > 2:
        raise ValueError(f"the regret bound holds for a beta above 2, got {beta!r}")
    rounds, gaps = np.asarray(horizon, dtype=float), _gaps(means, reward_range)
    bound = 2 * beta * np.log(rounds) * (1 / gaps).sum() + gaps.sum() * (1 + 2 * (beta - 1) / (beta - 2))
    return _at_most_the_largest(bound, rounds, gaps, reward_range)


def largest_regret(rounds: FloatArray, gaps: FloatArray, pulls: FloatArray) -> FloatArray:
    """(...) the largest sum of gaps over `rounds` (...) rounds with at most `pulls` (..., n) of the arms with gaps (n,)."""
    left, total = rounds.copy(), np.zeros(rounds.shape)
    for arm in np.argsort(-gaps, kind="stable"):
        taken = np.minimum(np.broadcast_to(pulls, (*rounds.shape, len(gaps)))[..., arm], left)
        total, left = total + gaps[arm] * taken, left - taken
    return np.asarray(total)


def _gaps(means: ArrayLike, reward_range: Interval) -> FloatArray:
    """Those above 0, in units of the range's width."""
    array = np.asarray(means, dtype=float)
    gaps = (array.max() - array) / reward_range.width
    return np.asarray(gaps[gaps > 0])


def _at_most_the_largest(bound: FloatArray, rounds: FloatArray, gaps: FloatArray, reward_range: Interval) -> FloatArray:
    return np.asarray(reward_range.width * np.minimum(bound, rounds * gaps.max(initial=0.0)))
