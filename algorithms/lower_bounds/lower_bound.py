"""Lower bounds on regret, and the algorithms that they hold for: those that keep the same privacy."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from bandana.algorithms.entry import Claim
from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core import PureDP, TrustModel


class Reach(StrEnum):
    """Problems and horizons that a lower bound speaks of."""

    THIS_PROBLEM = "this problem, asymptotically"
    WORST_PROBLEM = "the worst problem of the same size, at each horizon"


class LowerBound(NamedTuple):
    """Regret that no algorithm of a class can beat.

    Attributes:
      values: (n_grid,), in units of reward, after so many rounds. Of `THIS_PROBLEM` the leading term: regret over it has a
        limit inferior of at least 1 as rounds grow, and regret may lie below it at any finite number of rounds.
      text: theorem, source, class of algorithms and constants, one line.
      reach: problems and horizons that it speaks of.
    """

    values: FloatArray
    text: str
    reach: Reach


@dataclass(frozen=True)
class Privacy:
    """The privacy that the algorithms of a class have, as lower bounds use it.

    Every bound for pure DP uses its epsilon. All other claims of the catalog are met by Gaussian noise, and what is used of
    them is mu-GDP, which the ledger derives: (alpha, epsilon)-RDP of a Gaussian mechanism is sqrt(2 epsilon / alpha)-GDP,
    and mu-GDP is (mu^2 / 2)-zCDP, so a bound for zCDP holds with rho = mu^2 / 2. For mechanisms that are (alpha,
    epsilon)-RDP at one order only, and not GDP, nothing is said here.

    Attributes:
      epsilon: of pure DP, else None.
      mu: of Gaussian DP, else None; both are None without privacy.
      trust: who sees the data.
    """

    epsilon: float | None = None
    mu: float | None = None
    trust: TrustModel = TrustModel.CENTRAL

    @classmethod
    def of(cls, claim: Claim | None) -> Privacy:
        """Privacy of a claim; None is no privacy. Shuffled bits are not exactly GDP: they count as not private."""
        if claim is None or claim.trust is TrustModel.SHUFFLE:
            return cls()
        if isinstance(claim.stated, PureDP):
            return cls(epsilon=claim.stated.epsilon, trust=claim.trust)
        return cls(mu=claim.gaussian.mu, trust=claim.trust)

    @property
    def is_none(self) -> bool:
        """True if nothing is promised."""
        return self.epsilon is None and self.mu is None

    def __str__(self) -> str:
        if self.is_none:
            return "private or not"
        words = f"{self.epsilon:g}-DP" if self.epsilon is not None else f"{self.mu:.4g}-GDP"
        return f"{words} in the {self.trust} model"
