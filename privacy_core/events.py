"""What one noisy release costs the record that it touches."""

from __future__ import annotations

import math
from dataclasses import dataclass

from privacy_core.checks import positive


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


@dataclass(frozen=True, slots=True, order=True)
class NonPrivateEvent:
    """A value that was released as it is."""

    @property
    def rho(self) -> float:
        """Infinite."""
        return math.inf


Event = GaussianEvent | LaplaceEvent | NonPrivateEvent
