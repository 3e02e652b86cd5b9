"""What a source promises of an algorithm, in its own definition, as Gaussian differential privacy, and in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bandana.privacy_core import ApproxDP, GaussianDP, Guarantee, PureDP, Relation, RenyiDP, TrustModel


@dataclass(frozen=True)
class Claim:
    """What the source promises at given settings.

    Attributes:
      stated: the promise in the source's own definition.
      gaussian: the same as GDP: the audit holds its measurement against this.
      statement: in words.
      theorem: where it is printed.
      source: the publication.
      relation: which data sets are neighbors.
      trust: who sees the data.
      unit: what one record is.
    """

    stated: Guarantee
    gaussian: GaussianDP
    statement: str
    theorem: str
    source: str
    relation: Relation
    trust: TrustModel
    unit: str

    def epsilon_at(self, delta: float) -> float:
        """Epsilon at delta: of pure DP its own, as that of the Gaussian DP which follows from it is larger."""
        return self.stated.epsilon_at(delta) if isinstance(self.stated, PureDP) else self.gaussian.epsilon(delta)


def claim_of(privacy: Guarantee, whose: str, theorem: str, source: str, unit: str) -> Claim:
    """A claim about the settings' privacy, its statement in the words of the guarantee.

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
        case _:
            gaussian = privacy.gdp()
    statement = f"{whose} are {privacy}"
    return Claim(privacy, gaussian, statement, theorem, source, privacy.relation, privacy.trust, unit)
