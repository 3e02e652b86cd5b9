"""Costs of one noisy release to the record that it touches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import at_least, order, positive, probability


@dataclass(frozen=True, slots=True, order=True)
class GaussianEvent:
    r"""One Gaussian release of noise standard deviation `noise_multiplier` x L2 sensitivity.

    By itself it is exactly mu-GDP with mu = 1 / noise_multiplier.

    Source: Dong, Roth, Su (2022), Theorem 1.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def mu(self) -> float:
        """The event's GDP parameter."""
        return 1.0 / self.noise_multiplier

    @property
    def rho(self) -> float:
        """The event's zCDP parameter, mu^2 / 2."""
        return 0.5 * self.mu**2

    def rdp(self, alpha: float) -> float:
        """Renyi divergence of order alpha: alpha mu^2 / 2 (Mironov 2017, Corollary 3)."""
        return order("alpha", alpha) * self.rho


@dataclass(frozen=True, slots=True, order=True)
class NearlyGaussianEvent(GaussianEvent):
    r"""One release that is mu-GDP but for a probability of `slack`: bits that users add before they are shuffled.

    On every pair of neighbors the output's laws are P = (1 - s) P' + s B and Q = (1 - s) Q' + s C with the same s, at most
    the slack, and P', Q' as hard to tell apart as N(0, 1) and N(mu, 1). Hockey-stick divergences are jointly convex, so
    delta(epsilon) is at most that of mu-GDP plus s; of a composition, which is such a mixture too, the slacks add. A test
    with false-positive rate x has a false-negative rate of at least (1 - s) G(x / (1 - s)), G the trade-off function of
    mu-GDP, as x >= (1 - s) E_P' and the rate is at least (1 - s) E_Q'. No Renyi divergence is bounded.
    """

    slack: float

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)
        probability("slack", self.slack)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence, which is infinite at every order."""
        order("alpha", alpha)
        return math.inf


@dataclass(frozen=True, slots=True, order=True)
class LaplaceEvent:
    """One Laplace release of scale `noise_multiplier` x L1 sensitivity: pure (1 / noise_multiplier)-DP.

    Source: Dwork, McSherry, Nissim, Smith (2006), Proposition 1.
    """

    noise_multiplier: float

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def epsilon(self) -> float:
        """The event's pure epsilon, in nats."""
        return 1.0 / self.noise_multiplier

    @property
    def rho(self) -> float:
        """A zCDP parameter that the event satisfies: epsilon^2 / 2 (Bun and Steinke 2016, Prop. 1.4)."""
        return 0.5 * self.epsilon**2

    def rdp(self, alpha: float) -> float:
        """Renyi divergence of order alpha, e = 1 / noise_multiplier, the larger one of both directions.

        ln[alpha/(2 alpha - 1) e^((alpha - 1) e) + (alpha - 1)/(2 alpha - 1) e^(-alpha e)] / (alpha - 1); where e is so
        small that the digits cancel, the bound alpha e^2 / 2 that is larger.
        Source: Mironov (2017), Proposition 6.
        """
        e, both = self.epsilon, 2 * order("alpha", alpha) - 1
        if e < 1e-4:
            return min(alpha * e * e / 2, e)
        share = (alpha - 1) / both
        return e + math.log1p(share * math.expm1(-both * e)) / (alpha - 1)


@dataclass(frozen=True, slots=True, order=True)
class ConcentratedEvent:
    """One release that is rho-zCDP and no more is known: discrete Gaussian noise on a grid.

    Source: Canonne, Kamath, Steinke (2020), Theorem 14.
    """

    rho: float

    def __post_init__(self) -> None:
        positive("rho", self.rho)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha: rho alpha, the definition."""
        return order("alpha", alpha) * self.rho


@dataclass(frozen=True, slots=True, order=True)
class ResponseEvent:
    r"""One randomized response among `n_options`: the true one with probability p, each other one with probability q.

    p = e^epsilon q and p + (n_options - 1) q = 1. On two inputs the privacy loss is epsilon, -epsilon or 0 with the
    probabilities p, q and (n_options - 2) q; everything below is exact, and the same for all pairs of inputs.

    Source: Warner (1965); Kairouz, Oh, Viswanath, Extremal Mechanisms for Local Differential Privacy (JMLR 2016).
    """

    epsilon: float
    n_options: int = 2

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        at_least("n_options", self.n_options, 2)

    @property
    def other(self) -> float:
        """q, the probability of each untrue option."""
        return math.exp(-self.epsilon) / (1 + (self.n_options - 1) * math.exp(-self.epsilon))

    @property
    def true(self) -> float:
        """p, the probability of the true option."""
        return 1 / (1 + (self.n_options - 1) * math.exp(-self.epsilon))

    @property
    def rho(self) -> float:
        """A zCDP parameter: epsilon^2 / 2 (Bun and Steinke 2016, Prop. 1.4)."""
        return 0.5 * self.epsilon**2

    @property
    def mu(self) -> float:
        """The smallest mu of GDP, Phi^-1(p) - Phi^-1(q).

        The trade-off function is linear between (0, 1), (q, 1 - p), (1 - p, q) and (1, 0). A convex function lies below it
        if and only if it does at these points, and G_mu(q) <= 1 - p is Phi^-1(1 - q) - mu <= Phi^-1(1 - p).
        """
        return float(ndtri(self.true) - ndtri(self.other))

    def rdp(self, alpha: float) -> float:
        """Renyi divergence of order alpha: log(p^a q^(1-a) + q^a p^(1-a) + (k - 2) q) / (a - 1)."""
        order("alpha", alpha)
        e, gain = self.epsilon, (alpha - 1) * self.epsilon
        # E under P of e^((a-1) L) is p e^gain + q e^-gain + (k - 2) q = 1 + p (e^gain - 1) + q (e^-gain - 1).
        if gain > 1:
            rest = self.other * math.exp(-2 * gain) + (self.n_options - 2) * self.other * math.exp(-gain)
            return min(e, e + math.log(self.true + rest) / (alpha - 1))
        return min(e, math.log1p(self.true * math.expm1(gain) + self.other * math.expm1(-gain)) / (alpha - 1))

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """The smallest delta of (epsilon, delta)-DP at any epsilon, also below 0; same shape."""
        weight = np.exp(np.asarray(epsilon, dtype=float))
        gains = np.maximum(0.0, self.true - weight * self.other) + np.maximum(0.0, self.other - weight * self.true)
        return np.asarray(gains + (self.n_options - 2) * self.other * np.maximum(0.0, 1 - weight))

    def epsilon_of(self, delta: float) -> float:
        """The smallest epsilon >= 0 at delta: log((p - delta) / q), where that is not below 0."""
        return math.log((self.true - delta) / self.other) if delta < self.true - self.other else 0.0


@dataclass(frozen=True, slots=True, order=True)
class PureEvent:
    """One release that is epsilon-DP and no more is known: permute-and-flip, a noisy maximum, AboveThreshold.

    Its loss is dominated by that of a randomized response of two options.

    Source: Kairouz, Oh, Viswanath, The Composition Theorem for Differential Privacy (2015), Theorem 3.3.
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)

    @property
    def _response(self) -> ResponseEvent:
        return ResponseEvent(self.epsilon)

    @property
    def rho(self) -> float:
        """A zCDP parameter: epsilon^2 / 2 (Bun and Steinke 2016, Prop. 1.4)."""
        return 0.5 * self.epsilon**2

    @property
    def mu(self) -> float:
        """The smallest mu of GDP that follows."""
        return self._response.mu

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha, that of the randomized response."""
        return self._response.rdp(alpha)

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """The smallest delta that follows at any epsilon; same shape."""
        return self._response.delta(epsilon)

    def epsilon_of(self, delta: float) -> float:
        """The smallest epsilon >= 0 that follows at delta."""
        return self._response.epsilon_of(delta)


@dataclass(frozen=True, slots=True, order=True)
class BoundedRangeEvent:
    r"""One release whose privacy losses lie in an interval of length epsilon: the exponential mechanism.

    Let log p/q lie in [t - epsilon, t] with t in [0, epsilon]. Given its mean under q, e^-L is most spread if it is at one
    of the two ends, so the least private case has the losses t and t - epsilon, the former with probability (e^epsilon -
    e^t) / (e^epsilon - 1) under p: a generalized randomized response.

    - delta(x) = max over t of P(L = t) (1 - e^(x - t)) = (e^(epsilon/2) - e^(x/2))^2 / (e^epsilon - 1), at t = (x +
      epsilon) / 2. The loss of density proportional to e^(x/2) on [-epsilon, epsilon] has this curve, so it dominates every
      such release, also in adaptive compositions (Zhu, Dong, Wang 2022, Theorem 10). - GDP: that loss has the log density
      -x/2 under q up to a constant, and a Gaussian one the same slope at 0. With 2 Phi(mu/2) - 1 = delta(0) =
      tanh(epsilon/4) the two curves touch at 0; the ratio of the densities is least there, so their tails cross once, and
      the Gaussian curve is above. Hence mu = 2 Phi^-1(1 / (1 + e^(-epsilon/2))) is the smallest: half of epsilon is paid,
      as far as GDP goes.

    Source: Durfee and Rogers (2019), Definition 4.1; Dong, Durfee, Rogers (2020), Section 4 (curve of one release);
    Cesar and Rogers (2021), Lemma 3.4 (zCDP). The GDP parameter is derived here.
    """

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)

    @property
    def rho(self) -> float:
        """A zCDP parameter: epsilon^2 / 8."""
        return self.epsilon**2 / 8

    @property
    def mu(self) -> float:
        """The smallest mu of GDP that follows."""
        return float(-2 * ndtri(1 / (1 + math.exp(self.epsilon / 2))))

    def rdp(self, alpha: float) -> float:
        r"""Renyi divergence bound of order alpha, the largest over t, which is attained.

        E_p e^((a-1) L) = (A x^(a-1) - B x^a) / (e^epsilon - 1) with x = e^t, A = e^epsilon - e^(-(a-1) epsilon) and
        B = 1 - e^(-(a-1) epsilon) is largest at x = (a - 1) A / (a B), where it is A x^(a-1) / (a (e^epsilon - 1)).
        """
        excess, e = order("alpha", alpha) - 1, self.epsilon
        if e < 1e-4:  # digits cancel: the bounds that are larger
            return min(alpha * self.rho, e)
        log_b = math.log(-math.expm1(-excess * e))
        log_a = e + math.log(-math.expm1(-alpha * e))
        log_x = math.log(excess / alpha) + log_a - log_b
        log_unit = e + math.log(-math.expm1(-e))
        return min((log_a + excess * log_x - math.log(alpha) - log_unit) / excess, alpha * self.rho, e)

    def delta(self, epsilon: ArrayLike) -> FloatArray:
        """The smallest delta that follows at any epsilon, also below 0; same shape."""
        x, e = np.asarray(epsilon, dtype=float), self.epsilon
        inside = (1 - np.exp((np.clip(x, -e, e) - e) / 2)) ** 2 / -math.expm1(-e)
        return np.where(x <= -e, -np.expm1(np.minimum(x, 0.0)), np.where(x >= e, 0.0, inside))

    def epsilon_of(self, delta: float) -> float:
        """The smallest epsilon >= 0 that follows at delta: the curve, solved."""
        root = math.sqrt(delta * -math.expm1(-self.epsilon))
        return max(0.0, self.epsilon + 2 * math.log1p(-root)) if root < 1 else 0.0


@dataclass(frozen=True, slots=True, order=True)
class NonPrivateEvent:
    """A value that was released as it is."""

    @property
    def rho(self) -> float:
        """Rho of zCDP, which is infinite."""
        return math.inf

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound, which is infinite at every order."""
        order("alpha", alpha)
        return math.inf


BoundedEvent = LaplaceEvent | ResponseEvent | PureEvent | BoundedRangeEvent
"""Events of pure DP: the privacy loss is at most `epsilon`."""

Event = GaussianEvent | BoundedEvent | ConcentratedEvent | NonPrivateEvent
