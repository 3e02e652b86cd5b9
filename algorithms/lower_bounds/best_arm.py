r"""Lower bounds on tests for the best arm: rounds at a given probability of error, and errors after given rounds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtr, ndtri

from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, private_kl
from bandana.algorithms.lower_bounds.lower_bound import Privacy
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import Interval, TrustModel

_N_MEANS = 2000
"""Common means at which an arm could meet the best one; fewer make the bound smaller, never invalid."""
_ROUNDING = 1e-6
_SMALLEST = -700.0
"""Logarithm of the smallest share of errors that is distinguished from none."""
_HIGHEST = 50.0
"""Cost up to which is searched where all other arms have means at the lower end: no bound there needs more."""


class LeastRounds(NamedTuple):
    """The least expected number of rounds of a test."""

    rounds: float
    text: str


class LeastErrors(NamedTuple):
    """The least probability of a wrong recommendation."""

    share: float
    text: str


def least_rounds(means: ArrayLike, reward_range: Interval, privacy: Privacy, error: float) -> LeastRounds | None:
    r"""On this Bernoulli problem, for tests that stop and recommend a wrong arm with probability at most `error` anywhere.

    With m* the best mean, in units of the range, and d the divergence that one pull adds,

        E[rounds] >= kl(error, 1 - error) / max over shares w of min over arms a and u of (w* d(m*, u) + w_a d(m_a, u)),

    d = kl without privacy (Garivier and Kaufmann 2016) and d = d_epsilon under epsilon-DP (`divergences.private_kl`, whose
    proof holds for any number of arms, and for the recommendation and the stopping time beside the actions, as they are
    outputs of the algorithm too; Jourdan and Azize 2025 have the same quantity). Under mu-GDP the bound without privacy
    holds, and for every n and m

        E[rounds] >= (n + 1) (1 - error - Phi(Phi^-1(error + P(Binomial(n, D / 2) > m)) + m mu)),

    D the smallest gap; the larger of the two is returned.

    Proof. Let u lie between m_a and m*, and move both arms to u, or the one just above the other: the best arm is another
    one then, so the event that arm * is recommended has probability at least 1 - error before and at most error after, and
    data processing bounds the sum of E[N_a] d from below by kl(1 - error, error). Maximize over the shares of rounds. For
    mu-GDP move the two arms that are D apart to their middle: a pull changes with probability D / 2. Let A be the event
    that arm * is recommended within n rounds: P(A) >= 1 - error - E[rounds] / (n + 1) by Markov's inequality. With the
    first m changes alone the probability of A is at least Phi(Phi^-1(P(A)) - m mu), and with all of them it is at most
    error; the two differ by at most the probability of more than m changes. As in `finite_arms.asymptotic_bound` this needs
    privacy against whoever chooses the rewards of a round after its action, which holds where a reward enters one Gaussian
    release (the one-touch lemma, `docs/privacy.md`).

    Args:
      means: (n_arms,) mean rewards.
      reward_range: rewards are one of its two ends.
      privacy: of the class of tests; replace one reward.
      error: the largest probability of a wrong recommendation, below 1/2.

    Returns:
      None where two arms are equally good, where an error of 1/2 is allowed, and in the local model, of which nothing is
      said here.
    """
    p = np.sort((np.asarray(means, dtype=float) - reward_range.low) / reward_range.width)[::-1]
    if p[0] == p[1] or error >= 0.5 or privacy.trust is TrustModel.LOCAL:
        return None
    epsilon = privacy.epsilon if privacy.trust is TrustModel.CENTRAL else None
    needed = math.log((1 - error) / error) * (1 - 2 * error)
    rounds = needed / _most_told(p, epsilon) * (1 - _ROUNDING)
    text = f"tests of error at most {error:g}, {privacy}, on these Bernoulli arms: kl(error, 1 - error) / max_w min_a,u (w* "
    text += "d(m*, u) + w_a d(m_a, u)), d = "
    text += "d_epsilon (as in Jourdan and Azize 2025)" if epsilon is not None else "kl (Garivier and Kaufmann 2016)"
    if privacy.trust is TrustModel.CENTRAL and privacy.mu is not None:
        rounds = max(rounds, gaussian_length(float(p[0] - p[1]), privacy.mu, error))
        text += "; and max over n, m of (n + 1) (1 - error - Phi(Phi^-1(error + P(Bin(n, D / 2) > m)) + m mu))"
    return LeastRounds(float(rounds), text)


def least_errors(means: ArrayLike, reward_range: Interval, privacy: Privacy, rounds: int) -> LeastErrors | None:
    r"""On this Bernoulli problem with its arms in random order, for tests that recommend an arm after so many rounds.

    For each j >= 2 and u the probability e of a wrong recommendation, over the order too, satisfies

        kl(1 / j, 1 - e) <= (rounds / j) sum over the j best arms a of d(u, m_a)     or     e >= 1 - 1 / j,

    d as in `least_rounds`; the largest e over j and u is returned. It falls exponentially in the rounds; with one arm of
    mean m* and K - 1 of mean m it is about exp(-rounds d(m, m*) / (K - 1)). Under mu-GDP the bound without privacy holds.

    Proof. Tell the test where all arms but the j best ones are, which makes no error more likely. Given that, the orders
    of the j best arms fall into sets of j that are shifts of each other; take one set, and number its problems by the place
    i of the best arm. Let nu_i be such a problem and nu_0 the one in which all j arms have mean u. Data processing for the
    event that place i is recommended: kl(P_0(i), P_i(i)) <= sum over places b of E_0[N_b] d(u, m_(i, b)). Average over i:
    on the right each place meets each of the j means once, and the E_0[N_b] add up to at most the rounds; on the left kl is
    convex in both, P_0(i) adds up to at most 1, and kl(x, y) falls in x up to y. Were the order known, nothing could be
    said: the test that always recommends one arm makes no error where that arm is the best. (The form is Fano's. For the
    worst of several problems in place of a random order: Carpentier and Locatelli 2016; under privacy Chen and others 2024,
    whose exponent is of the same order, but whose text was not at hand for its constants.)

    Args:
      means: (n_arms,) mean rewards.
      reward_range: rewards are one of its two ends.
      privacy: of the class of tests; replace one reward.
      rounds: that a test may take.

    Returns:
      None where two arms are equally good, and in the local model, of which nothing is said here.
    """
    p = np.sort((np.asarray(means, dtype=float) - reward_range.low) / reward_range.width)[::-1]
    if p[0] == p[1] or privacy.trust is TrustModel.LOCAL:
        return None
    epsilon = privacy.epsilon if privacy.trust is TrustModel.CENTRAL else None
    share = max(_least_share(j, rounds * _least_told(p[:j], epsilon)) for j in range(2, len(p) + 1))
    text = f"tests of {rounds} rounds, {privacy}, on these Bernoulli arms in random order: kl(1 / j, 1 - e) <= (rounds / j) "
    text += "sum_(a <= j) d(u, m_a) for the j best arms and any u, d = "
    return LeastErrors(share * (1 - _ROUNDING), text + ("d_epsilon" if epsilon is not None else "kl"))


def _least_told(p: FloatArray, epsilon: float | None) -> float:
    """The least mean of d(u, p) over u: what a pull tells on average of which arm is which."""
    u = np.linspace(p[-1], p[0], _N_MEANS)[:, None]
    divergence = bernoulli_kl(u, p) if epsilon is None else private_kl(u, p, epsilon)
    return float(np.asarray(divergence).mean(axis=1).min())


def _least_share(j: int, information: float) -> float:
    """The smallest e with kl(1 / j, 1 - e) <= told; 0 where it is below any number."""

    def excess(log_e: float) -> float:
        e = math.exp(log_e)
        return (math.log(1 / j) - math.log1p(-e)) / j + (1 - 1 / j) * (math.log(1 - 1 / j) - log_e) - information

    most = math.log(1 - 1 / j)
    if information == 0:
        return math.exp(most)
    return math.exp(brentq(excess, _SMALLEST, most, xtol=1e-12)) if excess(_SMALLEST) > 0 else 0.0


def _most_told(p: FloatArray, epsilon: float | None) -> float:
    """Max over shares of the least transport cost, for means in falling order; never too small but for rounding.

    All costs are equal at the maximum. If each is y times the best arm's share, arm a has x_a = max over u of (y - d(m*, u))
    / d(m_a, u) times that share, and y / (1 + sum x_a) is what is told; its reciprocal is convex in y.
    """
    costs = []
    for q in p[1:]:
        u = np.linspace(q, p[0], _N_MEANS)
        divergence = bernoulli_kl if epsilon is None else lambda a, b: private_kl(a, b, epsilon)
        costs.append((np.asarray(divergence(p[0], u)), np.asarray(divergence(q, u))))
    most = min((float(best[0]) for best, _ in costs if np.isfinite(best[0])), default=_HIGHEST)

    def length(y: float) -> float:
        total = 1.0
        for best, other in costs:
            short = y - best
            with np.errstate(divide="ignore", invalid="ignore"):
                total += float(np.where(short > 0, short / other, 0.0).max())
        return total / y

    solution = minimize_scalar(
        length, bounds=(most * 1e-9, most * (1 - 1e-9)), method="bounded", options={"xatol": most * 1e-10}
    )
    return 1 / float(solution.fun)


def gaussian_length(gap: float, mu: float, error: float) -> float:
    """The bound of `least_rounds` that is for mu-GDP alone; gap in units of the range."""
    from scipy.stats import binom

    changes = np.unique(np.append(np.arange(0.0, 30.0), np.rint(np.geomspace(30, max(31.0, 20 / mu), 100))))
    best = 0.0
    for m in changes:
        n = np.unique(np.rint(np.linspace(0.02, 1.0, 100) * 2 * (m + 1) / gap))
        missed = np.minimum(error + binom.sf(m, n, gap / 2), 1.0)
        best = max(best, float(((n + 1) * (1 - error - ndtr(ndtri(missed) + m * mu))).max()))
    return best * (1 - _ROUNDING)
