"""What one noisy release costs the record that it touches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bandana.privacy_core.checks import order, positive


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


Event = GaussianEvent | LaplaceEvent | ConcentratedEvent | NonPrivateEvent
