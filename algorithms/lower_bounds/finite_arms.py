r"""Lower bounds for finitely many arms: on the problem at hand asymptotically, and on the worst problem at each horizon.

Rewards lie in a range of width W; all is computed in units of W and returned in units of reward.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, local_kl, private_kl
from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy, Reach
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import Interval, TrustModel

_AUER = "Auer, Cesa-Bianchi, Freund and Schapire (2002), The nonstochastic multiarmed bandit problem, Theorem 5.1"


def asymptotic_bound(grid: ArrayLike, means: ArrayLike, reward_range: Interval, privacy: Privacy) -> LowerBound | None:
    r"""On this Bernoulli problem, for consistent algorithms: of regret o(T^p) for every p > 0 on every Bernoulli problem.

    In units of the width, with gaps D_a > 0, best mean m* and p_a the mean of arm a,

        no privacy        liminf R_T / log T >= sum_a D_a / kl(p_a, m*)                    (Lai and Robbins 1985);
        epsilon-DP        liminf R_T / log T >= sum_a D_a / d_epsilon(p_a, m*)             (`divergences.private_kl`);
        local             liminf R_T / log T >= sum_a D_a / k_a, k_a the most that a message tells (`divergences.local_kl`);
        mu-GDP            liminf R_T / log T >= sum_a D_a / kl(p_a, m*), and
                          liminf R_T / sqrt(log T) >= sum_a sqrt(2) / mu, of which the larger is shown for each arm.

    Since d_epsilon <= min(kl, epsilon D_a), the second is at least every bound of the form of Azize and Basu (2022), with
    the smaller of kl and a multiple of epsilon D_a, of 1 or more. Joint DP does not protect a user's own action together
    with those of others, and adds nothing here.

    Proof. Raise the mean of arm a above m*. Under the new problem all but o(T^p) pulls are of arm a, so {N_a <= T / 2} has
    probability o(T^(p - 1)) there and tends to 1 here; data processing gives (1 + o(1)) log T <= E[N_a] d, with d the
    divergence that one pull adds to the law of the actions. For mu-GDP couple the rewards of each pull of arm a: with n =
    c sqrt(log T) pulls at most k = n (D_a + o(1)) differ, but for a vanishing probability, and the errors of the event {N_a
    <= n} obey Phi^-1 at a distance of k mu, so that Phi(-k mu + O(1)) = o(T^(p - 1)), and k mu >= (1 + o(1)) sqrt(2 log T).
    This last step needs privacy against whoever chooses the two rewards of a round after seeing its action: so it holds for
    all algorithms in which a reward enters one Gaussian release (the one-touch lemma, `docs/privacy.md`). The paper of
    AdaR-UCB conjectures this order, sqrt((alpha / epsilon) log T).

    Args:
      grid: (n_grid,) numbers of rounds.
      means: (n_arms,) mean rewards.
      reward_range: rewards are one of its two ends.
      privacy: of the class of algorithms; replace one reward.

    Returns:
      The leading term; None where the best mean is the upper end of the range: no arm can be made better.

    Source: Lai and Robbins (1985), Theorem 1; Azize and Basu (2022), When privacy meets partial information; Azize, Wu,
    Honda, Orabona, Ito and Basu (2025); Basu, Dimitrakakis and Tossou (2019) for local DP.
    """
    p = (np.asarray(means, dtype=float) - reward_range.low) / reward_range.width
    if not p.max() < 1:
        return None
    gaps = p.max() - p
    p, gaps = p[gaps > 0], gaps[gaps > 0]
    if privacy.trust is TrustModel.LOCAL:
        each = local_kl(p, p + gaps, privacy.epsilon, privacy.mu)
        words = "k the most that a private message tells of p and the best mean"
    elif privacy.trust is TrustModel.CENTRAL and privacy.epsilon is not None:
        each = private_kl(p, p + gaps, privacy.epsilon)
        words = "k = inf over r of epsilon |r - p| + kl(r, best) (as in Azize, Wu, Honda and others 2025)"
    else:
        each, words = bernoulli_kl(p, p + gaps), "k = kl(p, best) (Lai and Robbins 1985)"
    rounds = np.asarray(grid, dtype=float)
    log = np.log(np.maximum(rounds, 1.0))[:, None]
    pulls = log / each
    if privacy.trust is TrustModel.CENTRAL and privacy.mu is not None:
        pulls = np.maximum(pulls, np.sqrt(2 * log) / (privacy.mu * gaps))
        words += ", or sqrt(2 log t) / (mu gap) pulls where that is more"
    most = rounds * gaps.max(initial=0.0)
    return LowerBound(
        reward_range.width * np.minimum((gaps * pulls).sum(axis=1), most),
        f"leading term, for consistent algorithms, {privacy}, on Bernoulli arms: sum over arms of gap log(t) / k, {words}; "
        f"the limit inferior of regret over it is at least 1; never above the largest gap times t",
        Reach.THIS_PROBLEM,
    )


def minimax_bound(grid: ArrayLike, n_arms: int, reward_range: Interval, privacy: Privacy) -> LowerBound:
    r"""On the worst problem with K arms, for all algorithms of the class, at each horizon T: the larger of two bounds.

    Without privacy (1/20) min(sqrt(K T), T) (Auer and others 2002, rewards of 0 and 1; their proof is of this regret). The
    other, in units of the width:

        epsilon-DP   (K - 1) m / 2,  m the root of (K - 1) m = (T - m) e^(-epsilon m);
        mu-GDP       (K - 1) m / 2,  m the root of (K - 1) m = max (T - n) Phi(Phi^-1(1 - m / (n + 1)) - n mu) over whole
                     n >= m;
        local        max over D of (T D / 8) e^(-T k(D) / (K - 1)), k `local_kl` of the means 1/2 and 1/2 + 2 D.

    They grow as (K - 1) log(epsilon T / K) / epsilon, and as (K - 1) sqrt(log T) / mu: the logarithm is what certainty about
    every arm costs. The inequality of Bretagnolle and Huber, the usual way to such bounds (Azize and Basu 2022 for
    epsilon-DP), gives (K - 1) / (16 e epsilon) without it.

    Proof. Arm 1 has mean 1/2, all others always answer 0; let m_i be the expected pulls of arm i > 1, and m the least: the
    regret is (1/2) sum m_i >= (K - 1) m / 2. In problem i arm i always answers 1, and the regret is at least E_i[T - N_i] /
    2. The two differ in the rewards of the N_i pulls of arm i, so that a sequence of actions keeps e^(-epsilon N_i) of its
    probability, and by Jensen E_i[T - N_i] >= E[(T - N_i) e^(-epsilon N_i)] >= (T - m) e^(-epsilon m). With mu-GDP, until
    the (n + 1)-th choice of arm i at most n rewards differ, and P(N_i <= n) >= 1 - m / (n + 1) by Markov's inequality; here
    privacy must hold against whoever chooses the rewards of a round after its action, as in `asymptotic_bound`. The larger
    of two regrets, one growing in m and one falling, is least where they are equal. Local: arm 1 has mean 1/2 + D, the
    others 1/2, and in problem i arm i has 1/2 + 2 D; Bretagnolle and Huber, and the arm with the fewest pulls.

    Args:
      grid: (n_grid,) numbers of rounds.
      n_arms: K, at least 2.
      reward_range: of rewards.
      privacy: of the class of algorithms; replace one reward. Joint DP adds nothing here.
    """
    rounds = np.asarray(grid, dtype=float)
    values = np.minimum(np.sqrt(n_arms * rounds), rounds) / 20
    words = f"min(sqrt(K t), t) / 20 ({_AUER})"
    if privacy.trust is TrustModel.LOCAL and not privacy.is_none:
        values = np.maximum(values, _of_messages(rounds, n_arms, privacy))
        words += " and max over D of (t D / 8) exp(-t k(D) / (K - 1)), k what a private message tells of 2 D"
    elif privacy.trust is TrustModel.CENTRAL and privacy.epsilon is not None:
        values = np.maximum(values, pure_minimax(rounds, n_arms, privacy.epsilon))
        words += " and (K - 1) m / 2, (K - 1) m = (t - m) exp(-epsilon m)"
    elif privacy.trust is TrustModel.CENTRAL and privacy.mu is not None:
        values = np.maximum(values, gaussian_minimax(rounds, n_arms, privacy.mu))
        words += " and (K - 1) m / 2, (K - 1) m = max_n (t - n) Phi(Phi^-1(1 - m / (n + 1)) - n mu)"
    return LowerBound(
        reward_range.width * values,
        f"all algorithms, {privacy}, on the worst of the problems with K = {n_arms} arms: the larger of {words}",
        Reach.WORST_PROBLEM,
    )


def linear_minimax_bound(grid: ArrayLike, dimension: int, reward_range: Interval, privacy: Privacy) -> LowerBound | None:
    """On the worst linear problem in d dimensions, for all algorithms of the class, at each horizon.

    Arms whose features are the d unit vectors have any means in the range, so that `minimax_bound` with K = d
    holds. On given features nothing is said: they may be easier, and their own asymptotic bound (Graves and Lai 1997) is an
    optimization over them that is not computed here. Azize and Basu (2022) have d / epsilon for rewards of normal noise on
    [-1, 1]^d.

    Args:
      grid: (n_grid,) numbers of rounds.
      dimension: d.
      reward_range: of rewards.
      privacy: of the class of algorithms; replace one reward.

    Returns:
      None in one dimension, where there is one arm.
    """
    if dimension < 2:
        return None
    bound = minimax_bound(grid, dimension, reward_range, privacy)
    words = f"the problems with d = {dimension} arms, the unit vectors, in as many dimensions"
    return bound._replace(text=bound.text.replace(f"the problems with K = {dimension} arms", f"{words} (K = d)"))


def pure_minimax(rounds: FloatArray, n_arms: int, epsilon: float) -> FloatArray:
    """(n_grid,) (K - 1) m / 2 of `minimax_bound` under epsilon-DP at horizons `rounds`, (n_grid,); in units of the width."""
    return _at_the_crossing(rounds, n_arms, lambda m: (rounds - m) * np.exp(-epsilon * m))


def gaussian_minimax(rounds: FloatArray, n_arms: int, mu: float) -> FloatArray:
    """(n_grid,) (K - 1) m / 2 of `minimax_bound` under mu-GDP at horizons `rounds`, (n_grid,); in units of the width.

    It tries some of the n, so the bound may be smaller than the largest one; those beyond 20 / mu would change no digit.
    """
    largest = min(float(rounds.max(initial=0)), 20 / mu)
    every = np.unique(np.append(np.arange(0.0, 30.0), np.ceil(np.geomspace(30, max(31.0, largest), 200))))
    every = every[every <= largest]

    def other(m: FloatArray) -> FloatArray:
        kept = np.maximum(1 - m[:, None] / (every + 1), 0.0)
        value = (rounds[:, None] - every) * ndtr(ndtri(kept) - every * mu) * (every >= m[:, None])
        return np.asarray(value.max(axis=1, initial=0.0))

    return _at_the_crossing(rounds, n_arms, other)


def _at_the_crossing(rounds: FloatArray, n_arms: int, other: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """(n_grid,) (K - 1) m / 2 where (K - 1) m equals `other`, which falls in m (n_grid,); by bisection, from below."""
    low, high = np.zeros_like(rounds), rounds / (n_arms - 1)
    for _ in range(52):
        middle = (low + high) / 2
        is_below = (n_arms - 1) * middle < other(middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((n_arms - 1) * low / 2)


def _of_messages(rounds: FloatArray, n_arms: int, privacy: Privacy) -> FloatArray:
    gap = np.geomspace(1e-6, 0.25, 400)
    divergence = local_kl(0.5, 0.5 + 2 * gap, privacy.epsilon, privacy.mu)
    return np.asarray((rounds[:, None] * gap / 8 * np.exp(-rounds[:, None] * divergence / (n_arms - 1))).max(axis=1))
