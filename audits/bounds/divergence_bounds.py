r"""Lower confidence bounds on divergences between a mechanism's outputs on two neighbors.

What is divided into bins or cut at thresholds was decided on held-out replays; by the data-processing inequality no
binning shows more than there is, so only the sampling error needs a bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, expit, logit

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.ties import first_largest, is_larger
from bandana.audits.bounds.bound import ASSUMES_NOTHING, REQUIRED, WANTS_RATIOS, Bound, QuantityKind
from bandana.audits.bounds.coin_flips import toss
from bandana.audits.bounds.means import Moments, contrast_lower
from bandana.audits.bounds.samples import (
    LARGEST,
    RATIO_EDGES,
    checked_sides,
    count,
    edges_of,
    learn_ratio,
    ratio_middles,
    split,
)
from bandana.privacy_core.checks import non_negative, order, probability

_TRIES = 48
_TRAIN_SHARE, _SEARCH_SHARE = 0.1, 0.2
"""Shares of the replays that are held out: of log ratios, and of scores that a threshold is chosen on."""


@dataclass(frozen=True)
class RenyiPlan:
    r"""Two functions of the log ratio whose means differ by at most e^((alpha - 1) D_alpha), times `unit`.

    Attributes:
      alpha: the order.
      sign: +1 bounds the divergence of the neighbor from the data, -1 that of the data from the neighbor.
      low: log ratios (times sign) below this are taken for this.
      high: and those above for this.
      unit: scale of the functions.
      promise: what the training replays let hope for.
      predicted: the bound on the divergence that they let hope for, in nats.
    """

    alpha: float
    sign: int
    low: float
    high: float
    unit: float
    promise: Moments
    predicted: float

    def values(self, log_ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gain alpha L^(alpha - 1) and loss (alpha - 1) L^alpha, L the capped ratio, same shape."""
        log_l = np.clip(self.sign * log_ratio, self.low, self.high)
        return (
            np.exp((self.alpha - 1) * log_l) * self.alpha * self.unit,
            np.exp(self.alpha * log_l) * (self.alpha - 1) * self.unit,
        )


def plan_renyi(log_ratio: FloatArray, counts: FloatArray, alpha: float, n: float) -> RenyiPlan:
    """The direction and the cap that promise the largest bound from n replays a side.

    Args:
      log_ratio: (bins,) not falling.
      counts: (2, bins) training replays.
      alpha: the order, above 1.
      n: how many replays on each side it will be used on.
    """
    pooled = counts.sum(axis=0)
    seen = np.flatnonzero(pooled)
    data, neighbor = (pooled * expit(-log_ratio))[seen], (pooled * expit(log_ratio))[seen]
    data, neighbor = data / data.sum(), neighbor / neighbor.sum()
    most, best = LARGEST / alpha, None
    for sign, winner, loser in ((1, neighbor, data), (-1, data, neighbor)):
        ordered = np.clip(sign * log_ratio[seen], -most, most)
        low = float(ordered.min())
        caps = np.append(  # near the largest ratios seen, and between them where few differ
            np.quantile(ordered, 1 - np.append(0.0, np.geomspace(1 / len(seen), 0.6, _TRIES))),
            np.linspace(low, float(ordered.max()), _TRIES),
        )
        highs = np.minimum(np.maximum(caps, low + 1e-9), most)
        units = np.exp(-alpha * np.maximum(highs, 0.0))
        # both functions grow with the log ratio: capping it or them is the same, and needs no exponential for each cap
        cap_gain, cap_loss = np.exp((alpha - 1) * highs)[:, None], np.exp(alpha * highs)[:, None]
        gain = alpha * units[:, None] * np.minimum(np.exp((alpha - 1) * ordered), cap_gain)
        loss = (alpha - 1) * units[:, None] * np.minimum(np.exp(alpha * ordered), cap_loss)
        mean_gain, mean_loss = gain @ winner, loss @ loser
        variance = (gain - mean_gain[:, None]) ** 2 @ winner + (loss - mean_loss[:, None]) ** 2 @ loser
        largest = (alpha - 1) * units * cap_loss[:, 0]
        promised = (mean_gain - mean_loss - 2 * np.sqrt(variance / n) - 8 * largest / n) / units
        i = first_largest(promised)
        if best is None or is_larger(float(promised[i]), best[0]):  # replays as likely on either side promise the same twice
            unseen = float(largest[i]) ** 2 / n  # the variance of a loss that one replay in n would have
            moments = Moments(float(mean_loss[i]), max(float(variance[i]), unseen))
            predicted = math.log(promised[i]) / (alpha - 1) if promised[i] > 1 else 0.0
            best = float(promised[i]), RenyiPlan(alpha, sign, low, float(highs[i]), float(units[i]), moments, predicted)
    assert best is not None
    return best[1]


def renyi_lower(data: ArrayLike, neighbor: ArrayLike, alpha: float, level: float, *, is_learned: bool = False) -> float:
    r"""Lower confidence bound on the larger of both Renyi divergences of order alpha, in nats.

    Args:
      data: (n,) log-likelihood ratios log q/p of replays of the data set, n >= 100.
      neighbor: (n,) the same of the neighbor.
      alpha: the order, above 1.
      level: probability of a bound that is too large.
      is_learned: scores are of any scale, larger where the neighbor is likelier; the ratio is learned on held-out replays.

    Returns:
      a divergence of at least 0. Of high orders little can be certified: they live on outputs that are hardly ever seen.

    Raises:
      ValueError: unusable scores (see `samples.checked_sides`), or alpha or level out of range.

    Guarantee: with probability at least 1 - level it is at most max(D_alpha(P|Q), D_alpha(Q|P)). Proof: for x = q/p and
    any function L > 0, x^alpha >= alpha x L^(alpha - 1) - (alpha - 1) L^alpha (a convex power lies above its tangents), so
    E_Q[alpha L^(alpha - 1)] - E_P[(alpha - 1) L^alpha] <= E_P[(q/p)^alpha] = e^((alpha - 1) D). A capped L, chosen on
    held-out replays, makes both bounded, and `means.contrast_lower` bounds the left side. With L constant on bins the left
    side is at most the divergence between the binned laws, and equal to it for the best constants: no bound from a
    binning is sharper. Source: Birrell, Dupuis, Katsoulakis, Rey-Bellet, Wang (2021) for the variational formula.
    """
    order("alpha", alpha)
    return _best_order(data, neighbor, (alpha,), level, is_learned)[1]


ORDERS = (1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0, 16.0, 32.0)
"""Orders among which `rho_lower` chooses."""


def rho_lower(data: ArrayLike, neighbor: ArrayLike, level: float, *, is_learned: bool = False) -> float:
    """Lower confidence bound on the rho of zCDP: Renyi divergence at most rho alpha at every order alpha, both ways.

    Arguments and errors are as for `renyi_lower`.

    Returns:
      rho, at least 0.

    Guarantee: with probability at least 1 - level the mechanism is not rho-zCDP for any smaller rho. The held-out replays
    choose the one order of `ORDERS` that promises most, and the others bound the divergence of this order alone: a choice
    among orders costs nothing of the level. Source: Bun and Steinke (2016), Definition 1.1, and as `renyi_lower`.
    """
    alpha, divergence = _best_order(data, neighbor, ORDERS, level, is_learned)
    return divergence / alpha


def _best_order(
    data: ArrayLike, neighbor: ArrayLike, alphas: tuple[float, ...], level: float, is_learned: bool
) -> tuple[float, float]:
    """The order that promises the largest bound for its size, and the lower bound on its divergence."""
    data, neighbor = checked_sides(data, neighbor)
    probability("level", level)
    train, test = split(data, neighbor, _TRAIN_SHARE)
    if is_learned:
        ratio = learn_ratio(*train)
        train, test = [(ratio(mine), ratio(theirs)) for mine, theirs in (train, test)]
    counts = np.stack([count(RATIO_EDGES, scores) for scores in train]).astype(float)
    plans = [plan_renyi(ratio_middles(), counts, alpha, len(test[0])) for alpha in alphas]
    plan = plans[first_largest(np.array([plan.predicted / plan.alpha for plan in plans]))]
    winner, loser = (test[1], test[0]) if plan.sign > 0 else (test[0], test[1])
    gain, loss = plan.values(winner)[0], plan.values(loser)[1]
    most_gain, most_loss = (float(f[0]) for f in plan.values(np.array([plan.sign * plan.high])))
    bound = contrast_lower(gain, loss, most_gain, most_loss, plan.promise, level) / plan.unit
    return plan.alpha, math.log(bound) / (plan.alpha - 1) if bound > 1 else 0.0


def hockey_stick_lower(data: ArrayLike, neighbor: ArrayLike, epsilon: float, level: float) -> float:
    """Lower confidence bound on delta(epsilon), the larger hockey-stick divergence of both directions.

    Args:
      data: (n,) scores of the data set, larger where the neighbor is likelier, of any scale; n >= 100.
      neighbor: (n,) the same of the neighbor.
      epsilon: in nats, at least 0.
      level: probability of a bound that is too large.

    Returns:
      delta in [0, 1]; 0 for an epsilon above 40, of which no number of replays can tell.

    Raises:
      ValueError: unusable scores (see `samples.checked_sides`), or epsilon or level out of range.

    Guarantee: with probability at least 1 - level no (epsilon, delta)-DP with a smaller delta holds: that says Q(A) -
    e^epsilon P(A) <= delta and P(A) - e^epsilon Q(A) <= delta for every event A; one is chosen on held-out replays, and
    `means.contrast_lower` bounds the difference, jointly and not one probability at a time.
    """
    data, neighbor = checked_sides(data, neighbor)
    non_negative("epsilon", epsilon)
    probability("level", level)
    (train, train_n), (test, test_n) = split(data, neighbor, _SEARCH_SHARE)
    edges = edges_of(np.concatenate([train, train_n]))
    if not len(edges) or epsilon > LARGEST:
        return 0.0
    n, grow = len(test), math.exp(epsilon)
    rates = np.stack([(np.cumsum(count(edges, s)[::-1])[::-1][1:] + 0.5) / (len(s) + 1) for s in (train, train_n)])
    best = (-math.inf, 0.0, False, 0.0, 1.0)
    for is_reversed, p, q in ((False, rates[0], rates[1]), (True, 1 - rates[1], 1 - rates[0])):
        variance = q * (1 - q) + grow**2 * p * (1 - p)
        promised = q - grow * p - 3 * np.sqrt(variance / n) - 3 * grow / n
        i = first_largest(promised)
        if is_larger(float(promised[i]), best[0]):
            best = (float(promised[i]), float(edges[i]), is_reversed, float(grow * p[i]), float(variance[i]))
    _, threshold, is_reversed, mean, variance = best
    winner, loser = (test < threshold, test_n < threshold) if is_reversed else (test_n >= threshold, test >= threshold)
    return max(
        0.0,
        contrast_lower(
            winner.astype(np.float64), grow * loser.astype(np.float64), 1.0, grow, Moments(mean, variance), level
        ),
    )


def pure_epsilon_lower(
    data: ArrayLike, neighbor: ArrayLike, level: float, *, seed: int = 0, train_share: float = 0.3
) -> float:
    """Lower confidence bound on the epsilon of pure DP from one event, found by search on held-out replays.

    Where every log ratio is known, `coin_flips.epsilon_lower` at delta 0 uses all events at once. This one asks for nothing
    but an order of the outputs, and finds an event that is rare and telling: noise that betrays its side by its last bit.

    Args: as in `hockey_stick_lower`, and
      seed: of the auditor's coins (see `coin_flips.toss`).
      train_share: share of the replays that is searched.

    Returns:
      epsilon in nats, at least 0; where the event is seen on one side only, about log(n_seen / log(1/level)).

    Raises:
      ValueError: unusable scores (see `samples.checked_sides`), or level or share out of range.

    Guarantee: with probability at least 1 - level the mechanism is not epsilon-DP for any smaller epsilon. Proof: a fair
    coin takes each counted replay from one side. Given that it fell into the event, it is of the side where the event is
    likelier with probability at most e^epsilon / (1 + e^epsilon), so the share of that side obeys Clopper and Pearson's
    limit for one proportion: no limit for each side, no ratio of limits. Source: Bichsel et al. (2021) for the search.
    """
    data, neighbor = checked_sides(data, neighbor)
    probability("level", level)
    train, test = split(data, neighbor, train_share)
    edges = edges_of(np.concatenate(train))
    if not len(edges):
        return 0.0
    above = np.stack([np.cumsum(count(edges, s)[::-1])[::-1][1:] for s in train])
    best = (-1.0, 0.0, False)
    for is_reversed, counts in ((False, above), (True, len(train[0]) - above[::-1])):
        promised = _share_lower(counts[1], counts.sum(axis=0), level / 10)  # wary of what is best by luck
        i = first_largest(promised)
        if is_larger(float(promised[i]), best[0]):
            best = (float(promised[i]), float(edges[i]), is_reversed)
    n_data, n_neighbor, _ = toss(len(test[0]), seed, train)
    inside = [
        int((s < best[1]).sum() if best[2] else (s >= best[1]).sum()) for s in (test[0][:n_data], test[1][:n_neighbor])
    ]
    share = float(_share_lower(np.array(inside[0 if best[2] else 1]), np.array(sum(inside)), level))
    return max(0.0, float(logit(share))) if share > 0 else 0.0


def _share_lower(right: IntArray, total: IntArray, level: float) -> FloatArray:
    """Lower limit for a binomial proportion; 0 of no trials."""
    return np.asarray(np.where(right > 0, betaincinv(np.maximum(right, 1), total - right + 1, level), 0.0))


PURE_EVENT = Bound(
    "pure-event",
    QuantityKind.EPSILON,
    pure_epsilon_lower,
    {"seed": 0},
    theorem="Bichsel et al. (2021) for the search; Clopper and Pearson (1934)",
    assumption=ASSUMES_NOTHING,
    words="One event, found on other replays, and exact limits for its two probabilities (Bichsel et al. 2021).",
)

HOCKEY_STICK = Bound(
    "hockey-stick",
    QuantityKind.DELTA,
    hockey_stick_lower,
    {"epsilon": REQUIRED},
    theorem="Balle and Wang (2018); Berry-Esseen, or Waudby-Smith and Ramdas (2023)",
    assumption=ASSUMES_NOTHING,
    words="The mass by which one distribution exceeds exp(ε) times the other (Balle and Wang 2018).",
)

RENYI = Bound(
    "renyi",
    QuantityKind.DIVERGENCE,
    renyi_lower,
    {"alpha": REQUIRED, "is_learned": False},
    theorem="Birrell, Dupuis, Katsoulakis, Rey-Bellet, Wang (2021)",
    assumption=ASSUMES_NOTHING + WANTS_RATIOS,
    words="Two functions of the score, learned on other replays; the divergence limits the difference of their means "
    "(Birrell et al. 2021).",
)

RHO = Bound(
    "rho",
    QuantityKind.RHO,
    rho_lower,
    {"is_learned": False},
    theorem="Birrell, Dupuis, Katsoulakis, Rey-Bellet, Wang (2021); Bun and Steinke (2016)",
    assumption=ASSUMES_NOTHING + WANTS_RATIOS,
    words="The bound on the Rényi divergence at several orders, each divided by its order (Birrell et al. 2021).",
)
