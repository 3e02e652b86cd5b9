"""What a mechanism promises: the privacy definitions, and the exact conversions between them.

A conversion exists here only in the direction that holds. Every guarantee answers `epsilon_at(delta)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import erfinv, ndtr, ndtri, ndtri_exp

from privacy_core import gaussian
from privacy_core.checks import non_negative, order, positive, probability


class Relation(StrEnum):
    """Which two data sets are neighbors."""

    REPLACE_REWARD = "replace one reward"
    REPLACE_RECORD = "replace one record"
    REPLACE_TRAJECTORY = "replace one trajectory"


class TrustModel(StrEnum):
    """Who sees the data, and what the adversary sees of the output."""

    CENTRAL = "central"
    JOINT = "joint"
    LOCAL = "local"


@dataclass(frozen=True, slots=True)
class GaussianDP:
    """mu-GDP: no test tells two neighbors apart better than N(0, 1) from N(mu, 1).

    Source: Dong, Roth, Su (2022), Definition 2.6.
    """

    mu: float

    def __post_init__(self) -> None:
        positive("mu", self.mu)

    @classmethod
    def from_epsilon_delta(cls, epsilon: float, delta: float) -> GaussianDP:
        """The largest mu for which every mu-GDP mechanism is (epsilon, delta)-DP."""
        return cls(gaussian.mu_of(epsilon, delta))

    @classmethod
    def from_renyi(cls, alpha: float, epsilon: float) -> GaussianDP:
        """The mu of the Gaussian mechanism whose Renyi divergence of order alpha is epsilon: sqrt(2 epsilon / alpha).

        This is a statement on Gaussian mechanisms; a general (alpha, epsilon)-RDP mechanism need not be GDP.
        """
        return cls(math.sqrt(2 * positive("epsilon", epsilon) / order("alpha", alpha)))

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon of (epsilon, delta)-DP, in nats. Exact."""
        return gaussian.epsilon_of(self.mu, delta)

    def epsilon_at(self, delta: float) -> float:
        """`epsilon(delta)`, under the name that every guarantee shares."""
        return self.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The smallest delta of (epsilon, delta)-DP. Exact."""
        return gaussian.delta_of(self.mu, epsilon)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha: alpha mu^2 / 2."""
        return order("alpha", alpha) * self.mu**2 / 2

    def zcdp(self) -> ZCDP:
        """The zCDP guarantee, rho = mu^2 / 2."""
        return ZCDP(self.mu**2 / 2)

    def tradeoff(self, fpr: ArrayLike) -> NDArray[np.float64]:
        """The smallest false-negative rate of any test with the false-positive rate `fpr` (any shape, in [0, 1])."""
        # -ndtri(x) and not ndtri(1 - x), which is infinite for x below 1e-16.
        return np.asarray(ndtr(-ndtri(np.asarray(fpr, dtype=float)) - self.mu))

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"


@dataclass(frozen=True, slots=True)
class ZCDP:
    """rho-zero-concentrated DP: Renyi divergence of every order alpha at most rho alpha (Bun and Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        positive("rho", self.rho)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha."""
        return order("alpha", alpha) * self.rho

    def epsilon_at(self, delta: float) -> float:
        """An epsilon of (epsilon, delta)-DP: the improved RDP conversion at its best order.

        The stationary order solves rho + ln(delta alpha) / (alpha - 1)^2 = 0.
        Source: Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        probability("delta", delta)

        def slope(log_excess: float) -> float:
            excess = math.exp(log_excess)
            return self.rho * excess**2 + math.log(delta) + math.log1p(excess)

        high = 0.5 * math.log(-math.log(delta) / self.rho)
        if slope(high) <= 0:  # delta so large that the optimum lies at order 1 / delta
            high = -math.log(delta)
        best = float(brentq(slope, -60.0, high, xtol=1e-14))
        return RenyiDP(1 + math.exp(best), self.rdp(1 + math.exp(best))).epsilon_at(delta)

    def __str__(self) -> str:
        return f"{self.rho:.6g}-zCDP"


@dataclass(frozen=True, slots=True)
class RenyiDP:
    """(alpha, epsilon)-RDP: Renyi divergence of order alpha at most epsilon (Mironov 2017, Definition 4)."""

    alpha: float
    epsilon: float

    def __post_init__(self) -> None:
        order("alpha", self.alpha)
        positive("epsilon", self.epsilon)

    def epsilon_at(self, delta: float) -> float:
        """An epsilon of (epsilon, delta)-DP: epsilon + ln(1 - 1/alpha) - ln(delta alpha) / (alpha - 1), at least 0.

        Source: Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        probability("delta", delta)
        alpha = self.alpha
        value = self.epsilon + math.log1p(-1 / alpha) - math.log(delta * alpha) / (alpha - 1)
        return max(0.0, value)

    def __str__(self) -> str:
        return f"({self.alpha:g}, {self.epsilon:g})-RDP"


@dataclass(frozen=True, slots=True)
class PureDP:
    """epsilon-DP: every likelihood ratio at most e^epsilon (Dwork, McSherry, Nissim, Smith 2006)."""

    epsilon: float

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon at delta that follows from the definition alone.

        Randomized response is the worst case: delta(eps') = (e^eps - e^eps') / (1 + e^eps), so
        eps' = ln(e^eps - delta (1 + e^eps)). Source: Kairouz, Oh, Viswanath (2015), Theorem 3.4 at k = 1.
        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
        ratio = 1 - delta * (1 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log(ratio)) if ratio > 0 else 0.0

    def gdp(self) -> GaussianDP:
        """The smallest mu-GDP that the definition implies: mu = -2 Phi^-1(1 / (1 + e^epsilon)).

        The trade-off function of epsilon-DP is two lines that meet where both error rates are 1 / (1 + e^epsilon); a
        convex curve through that corner and through (0, 1), (1, 0) stays below both lines.
        """
        if self.epsilon < 1:  # the same number, to full precision where it is small
            return GaussianDP(float(math.sqrt(8) * erfinv(math.tanh(self.epsilon / 2))))
        return GaussianDP(float(-2 * ndtri_exp(-np.logaddexp(0.0, self.epsilon))))

    def zcdp(self) -> ZCDP:
        """Rho = epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return ZCDP(self.epsilon**2 / 2)

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP"


@dataclass(frozen=True, slots=True)
class ApproxDP:
    """(epsilon, delta)-DP (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006)."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        probability("delta", self.delta)

    def epsilon_at(self, delta: float) -> float:
        """Epsilon at the definition's own delta or a larger one; at a smaller one nothing follows: infinity."""
        probability("delta", delta)
        return self.epsilon if delta >= self.delta else math.inf

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"


@dataclass(frozen=True, slots=True)
class NoPrivacy:
    """No promise: some record's value was released as it is."""

    mu: float = math.inf

    def epsilon_at(self, delta: float) -> float:
        """Infinity."""
        probability("delta", delta)
        return math.inf

    def __str__(self) -> str:
        return "no privacy"


Guarantee = GaussianDP | ZCDP | RenyiDP | PureDP | ApproxDP | NoPrivacy
