r"""Lower confidence bounds on mu over the whole trade-off curve, for mechanisms that promise to be mu-GDP for some mu.

A single threshold uses one point of the curve, and two confidence limits that need not both be bad at once. Two bounds
do better. `mu_lower_band` holds every threshold at once, chosen after looking, at no cost in samples. `mu_lower_curve`
weights many thresholds on held-out replays into one contrast that every mu bounds, and is nearly as sharp as if the scores
were known to be Gaussian; it assumes nothing about them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq, nnls
from scipy.special import ndtr, ndtri

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds.bound import ASSUMES_GDP, Bound, QuantityKind
from bandana.audits.bounds.means import Moments, contrast_lower
from bandana.audits.bounds.samples import checked_sides, count, edges_of, split
from bandana.privacy_core.checks import probability

_THRESHOLDS = 16
_TRAIN_SHARE = 0.15
"""Share of both sides that the contrast is designed on."""
_RAREST = 8
"""Errors of each kind that a threshold must show on the training replays, if any does."""


@dataclass(frozen=True)
class Contrast:
    r"""A weighted sum of tests whose advantage every mu-GDP claim bounds.

    With thresholds t_k, weights v_k >= 0 and real epsilon_k: g(Y) = sum of the v_k with Y >= t_k, h(X) = sum of the
    v_k e^epsilon_k with X >= t_k. If the mechanism is mu-GDP, Q(score >= t) <= e^epsilon P(score >= t) + delta_mu(epsilon)
    for all t and all real epsilon: q <= 1 - f(p) with f Gaussian, and 1 - f lies below its tangents, of slope e^epsilon and
    height delta_mu(epsilon) at 0 (Dong, Roth, Su 2022, Proposition 2.12). So

        E g(Y) - E h(X) <= limit(mu) = sum of v_k delta_mu(epsilon_k).

    The limit grows with mu, so a lower bound on the left side is one on mu.

    Attributes:
      thresholds: (k,) increasing.
      weights: (k,) at least 0, not all 0.
      epsilons: (k,) slopes at which the curve is touched, in nats.
      promise: what the training replays let hope for: mean of h(X), and variance of g(Y) - h(X).
      predicted: the bound on mu that they let hope for.
    """

    thresholds: FloatArray
    weights: FloatArray
    epsilons: FloatArray
    promise: Moments
    predicted: float

    def gain(self, neighbor: FloatArray) -> FloatArray:
        """(n,) g of the neighbor's scores."""
        return self._sums(self.weights)[np.searchsorted(self.thresholds, neighbor, side="right")]

    def loss(self, data: FloatArray) -> FloatArray:
        """(n,) h of the data's scores."""
        return self._sums(self.weights * np.exp(self.epsilons))[np.searchsorted(self.thresholds, data, side="right")]

    @property
    def ranges(self) -> tuple[float, float]:
        """The largest values of g and h; the smallest are 0."""
        return float(self.weights.sum()), float(self.weights @ np.exp(self.epsilons))

    def limit(self, mu: ArrayLike) -> FloatArray:
        """The largest contrast of a mu-GDP mechanism, for mu > 0 of any shape."""
        m = np.asarray(mu, dtype=float)[..., None]
        return np.asarray(_delta(m, self.epsilons) @ self.weights)

    def mu_of(self, contrast: float) -> float:
        """The smallest mu that allows this contrast, rounded down; 0 if all do."""
        contrast -= 1e-14 * float(self.weights.sum())  # more than the limit's rounding
        low, high = 1e-9, 1.0
        if contrast <= float(self.limit(low)):
            return 0.0
        while float(self.limit(high)) < contrast:
            if high > 64:
                return high
            low, high = high, 2 * high
        root = float(brentq(lambda mu: float(self.limit(mu)) - contrast, low, high, xtol=1e-13, rtol=1e-13))
        return root * (1 - 1e-9)

    @staticmethod
    def _sums(steps: FloatArray) -> FloatArray:
        return np.concatenate([[0.0], np.cumsum(steps)])


def _delta(mu: ArrayLike, epsilon: FloatArray) -> FloatArray:
    """The hockey-stick divergence of N(mu, 1) from N(0, 1) at any real epsilon, with broadcasting."""
    m = np.asarray(mu, dtype=float)
    return np.asarray(ndtr(m / 2 - epsilon / m) - np.exp(epsilon) * ndtr(-m / 2 - epsilon / m))


def design_contrast(thresholds: FloatArray, counts: FloatArray, level: float, n: float) -> Contrast | None:
    r"""The contrast that promises the largest mu.

    Every threshold estimates a mu_k = Phi^-1(q_k) - Phi^-1(p_k) from its rates; these are drawn toward their mean to the
    degree to which they agree within their errors (DerSimonian and Laird 1986). Against the claim mu_0, threshold k is
    ahead by about x_k = phi(Phi^-1(q_k)) (mu_k - mu_0), where the curve is touched. The weights v >= 0 maximize (v x) /
    sqrt(v S v), S the covariance of the tests: a quadratic program. mu_0 is where that promises a deviation that `level`
    demands.

    Args:
      thresholds: (bins - 1,) cuts between bins of scores.
      counts: (2, bins) training replays of the data and of the neighbor.
      level: of the bound.
      n: number of replays on each side that it will be taken from.

    Returns:
      a contrast with at most 16 thresholds; None if no threshold tells the sides apart.
    """
    if counts.shape[1] < 2:
        return None
    totals = counts.sum(axis=1, keepdims=True)
    above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1][:, 1:]
    pooled = (above / totals).mean(axis=0)
    levels = ndtr(np.linspace(2.3, -2.3, _THRESHOLDS))[::-1]
    picks = np.unique(np.clip(len(pooled) - np.searchsorted(pooled[::-1], levels), 0, len(pooled) - 1))
    rarest = np.minimum(above[0, picks], totals[1] - above[1, picks])
    picks = picks[rarest >= min(_RAREST, rarest.max())]
    p, q = (above[:, picks] + 0.5) / (totals + 1)
    z = ndtri(np.stack([p, q]))
    mu = z[1] - z[0]
    density = np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    error = (np.stack([p * (1 - p), q * (1 - q)]) / (density**2 * totals)).sum(axis=0)
    trust = 1 / error
    mean = float(mu @ trust / trust.sum())
    freedom = trust.sum() - (trust**2).sum() / trust.sum()
    between = max(0.0, float((mu - mean) ** 2 @ trust) - (len(mu) - 1)) / max(freedom, 1e-300)
    mu = mean + between / (between + error) * (mu - mean)
    low, high, best = 0.0, float(mu.max()), None
    goal = -float(ndtri(level))
    for _ in range(12):
        claim = (low + high) / 2
        weighted = _best_weights(claim, mu, z.mean(axis=0), goal / math.sqrt(n))
        if weighted is None:
            high = claim
        else:
            low, best = claim, weighted
    if best is None:
        return None
    weights, epsilons, variance = best
    return Contrast(thresholds[picks], weights, epsilons, Moments(float(weights * np.exp(epsilons) @ p), variance), low)


def _best_weights(
    claim: float, mu: FloatArray, middle: FloatArray, goal: float
) -> tuple[FloatArray, FloatArray, float] | None:
    """Weights, epsilons and the contrast's variance, if the promised ratio reaches `goal`; rates fall along thresholds."""
    if claim <= 0:
        return None
    p, q = np.asarray(ndtr(middle - mu / 2)), np.asarray(ndtr(middle + mu / 2))
    epsilons = np.clip(-claim * middle, -20, 20)
    ahead = q - np.exp(epsilons) * p - _delta(claim, epsilons)
    slopes = np.exp(epsilons)
    smaller, larger = np.minimum.outer(p, p), np.maximum.outer(p, p)
    covariance = np.minimum.outer(q, q) * (1 - np.maximum.outer(q, q)) + np.outer(slopes, slopes) * smaller * (1 - larger)
    factor = np.linalg.cholesky(covariance + 1e-9 * np.diag(np.diag(covariance) + 1e-12))
    weights, _ = nnls(factor.T, np.linalg.solve(factor, ahead))
    variance = float(weights @ covariance @ weights)
    if variance <= 0 or float(weights @ ahead) < goal * math.sqrt(variance):
        return None
    scale = 1 / math.sqrt(variance)
    return weights * scale, epsilons, 1.0


def mu_lower_curve(data: ArrayLike, neighbor: ArrayLike, level: float) -> float:
    """Lower confidence bound on mu from the whole trade-off curve.

    Args: as in `bandana.audits.bounds.divergence_bounds.hockey_stick_lower`.

    Returns:
      mu, at least 0.

    Raises:
      ValueError: the scores are unequal in number, too few or NaN; a level outside (0, 1).

    Guarantee: with probability at least 1 - level every mu for which the mechanism is mu-GDP is at least this. Assumes: the
    promise tested is a GDP one; replays are independent and alike. The contrast depends on the training replays only, and
    `means.contrast_lower` bounds it from the others; see `Contrast` for what follows. The smaller the scores' disagreement
    with the Gaussian curve, the closer this is to the bound that knows them to be Gaussian, 1.645 sqrt(2/n) below mu.
    """
    data, neighbor = checked_sides(data, neighbor)
    probability("level", level)
    (train, train_n), (test, test_n) = split(data, neighbor, _TRAIN_SHARE)
    edges = edges_of(np.concatenate([train, train_n]))
    counts = np.stack([count(edges, train), count(edges, train_n)]).astype(float)
    contrast = design_contrast(edges, counts, level, len(test))
    if contrast is None:
        return 0.0
    bound = contrast_lower(contrast.gain(test_n), contrast.loss(test), *contrast.ranges, contrast.promise, level)
    return contrast.mu_of(bound)


def tradeoff_band(data: ArrayLike, neighbor: ArrayLike, level: float) -> tuple[FloatArray, FloatArray]:
    """Upper limits on both error rates of every threshold at once.

    Args:
      data: (n,) scores of the data set, n >= 100.
      neighbor: (m,) the same of the neighbor.
      level: probability with which some limit, at some threshold, lies below the true rate, at most.

    Returns:
      (fpr, fnr), each (n_thresholds,) in [0, 1]: "score >= t" for each score t that occurs, in increasing order.

    Guarantee: each side's empirical law is below its true one by at most sqrt(log(2/level) / 2n), at all points at once,
    with probability at least 1 - level/2 (Massart 1990, the constant of Dvoretzky, Kiefer and Wolfowitz 1956).
    """
    data, neighbor = checked_sides(data, neighbor, is_paired=False)
    probability("level", level)
    data, neighbor = np.sort(data), np.sort(neighbor)
    thresholds = np.unique(np.concatenate([data, neighbor]))
    false_positives = 1 - np.searchsorted(data, thresholds, side="left") / len(data)
    false_negatives = np.searchsorted(neighbor, thresholds, side="left") / len(neighbor)
    width = [math.sqrt(math.log(2 / level) / (2 * len(scores))) for scores in (data, neighbor)]
    return np.minimum(1.0, false_positives + width[0]), np.minimum(1.0, false_negatives + width[1])


def mu_lower_band(data: ArrayLike, neighbor: ArrayLike, level: float) -> float:
    """Lower confidence bound on mu by the best of all thresholds, chosen after looking: no replay is held out.

    Guarantee: as `mu_lower_curve`, since mu >= Phi^-1(1 - fpr) - Phi^-1(fnr) for the true rates, and `tradeoff_band` bounds
    those of all thresholds at once. The maximum of limits that hold one threshold at a time has no such guarantee.
    """
    fpr, fnr = tradeoff_band(data, neighbor, level)
    return max(0.0, float(np.max(-ndtri(fpr) - ndtri(fnr))))


MU_CURVE = Bound(
    "mu-curve",
    QuantityKind.MU,
    mu_lower_curve,
    {},
    theorem="Dong, Roth, Su (2022) for the tangents of the curve; Berry-Esseen, or Waudby-Smith and Ramdas (2023)",
    assumption=ASSUMES_GDP,
    words="Many thresholds on the score at once, weighted into one contrast that µ bounds: the tangents of the trade-off "
    "curve (Dong, Roth, Su 2022).",
)

MU_BAND = Bound(
    "mu-band",
    QuantityKind.MU,
    mu_lower_band,
    {},
    theorem="Massart (1990); Dong, Roth, Su (2022)",
    assumption=ASSUMES_GDP,
    words="All thresholds on the score at once, by a confidence band around both error rates (Massart 1990).",
)
