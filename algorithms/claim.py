"""Promise that a source makes of an algorithm, in its own definition, as Gaussian differential privacy, and in words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, Participation, PureDP, Relation, RenyiDP, TrustModel

ALL_ACTIONS, THE_OUTPUT = "all actions", "the output"
"""Subjects of the claims that users write: on an algorithm, and on a release."""


@dataclass(frozen=True)
class Claim:
    """Promise that the source makes at given settings.

    Attributes:
      stated: the promise in the source's own definition.
      gaussian: the same as GDP: the audit holds its measurement against this.
      covers: what it is on, such as "all actions".
      theorem: where it is printed.
      source: the publication.
      relation: which data sets are neighbors.
      trust: who sees the data.
      unit: what one record is.
      assumption: under which the statement names it as GDP; empty where it does not.
    """

    stated: Guarantee
    gaussian: GaussianDP
    covers: str
    theorem: str
    source: str
    relation: Relation
    trust: TrustModel
    unit: str
    assumption: str = ""

    @property
    def statement(self) -> str:
        """The promise in words."""
        verb = "is" if self.covers == THE_OUTPUT else "are"
        return f"{self.covers} {verb} {self.stated}" + (f"; {self.assumption}" if self.assumption else "")

    def epsilon_at(self, delta: float) -> float:
        """Epsilon at delta: of pure DP its own, as that of the Gaussian DP which follows from it is larger."""
        return self.stated.epsilon_at(delta) if isinstance(self.stated, PureDP) else self.gaussian.epsilon(delta)


def claim_of(privacy: Guarantee, whose: str, theorem: str, source: str, unit: str) -> Claim:
    """A claim about the settings' privacy.

    Args:
      privacy: the promise, with its relation and trust model.
      whose: what it covers, such as "all actions".
      theorem: where it is printed.
      source: the publication.
      unit: what one record is.
    """
    scope: dict[str, Any] = {"relation": privacy.relation, "trust": privacy.trust}
    match privacy:
        case RenyiDP():
            gaussian = GaussianDP.from_renyi(privacy.alpha, privacy.epsilon, **scope)
        case ApproxDP():
            gaussian = GaussianDP.from_epsilon_delta(privacy.epsilon, privacy.delta, **scope)
        case ZCDP():
            gaussian = GaussianDP.from_renyi(2.0, 2 * privacy.rho, **scope)
        case _:
            gaussian = privacy.gdp()
    return Claim(privacy, gaussian, whose, theorem, source, privacy.relation, privacy.trust, unit)


USER_UNIT = "all records of one user"


def per_record(privacy: Guarantee, users: Participation, times: float | None = None) -> Guarantee:
    """A promise to one record from which the given one follows for users.

    By group privacy it does with `times` = m, whatever their m records do. Pure DP: epsilon / m. The others are met by
    Gaussian noise, of which mu / m: (epsilon, delta) becomes the epsilon of mu / m at the same delta, and a Renyi divergence
    or rho a m^2-th of it.

    Args:
      privacy: what is promised to a user.
      users: which records may be one user's.
      times: how many times the mu, or the pure epsilon, of the worst record a user pays at most; None: m.

    Source: Dong, Roth, Su (2022), Theorem 2.14.
    """
    if users.most == 1:
        return privacy
    times = users.most if times is None else times
    match privacy:
        case PureDP(epsilon):
            return replace(privacy, epsilon=epsilon / times)
        case RenyiDP(_, epsilon):
            return replace(privacy, epsilon=epsilon / times**2)
        case ZCDP(rho):
            return replace(privacy, rho=rho / times**2)
        case ApproxDP(epsilon, delta):
            mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu / times
            return replace(privacy, epsilon=GaussianDP(mu).epsilon(delta))
    raise ValueError(f"privacy must be a RenyiDP, a PureDP, an ApproxDP or a ZCDP, got {privacy!r}")


def for_users(claim: Claim, privacy: Guarantee, users: Participation) -> Claim:
    """The claim on all records of one user that follows from a claim on one record.

    Args:
      claim: made at `per_record(privacy, users, ...)`.
      privacy: what is promised to a user.
      users: which records may be one user's.
    """
    stated = replace(privacy, relation=Relation.USER, trust=claim.trust)
    theorem = f"{claim.theorem}; for {users}"
    return claim_of(stated, claim.covers, theorem, claim.source, USER_UNIT)
