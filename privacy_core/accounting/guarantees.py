"""Promises of a mechanism: the privacy definitions, and the exact conversions between them.

Every guarantee says between which data sets it holds (`relation`) and against whom (`trust`), answers
`epsilon_at(delta)`, and converts to another definition by `pure()`, `gdp()`, `zcdp()`, `renyi(alpha)`, `approx(delta)`,
or to a weaker relation or trust model by `weakened`. A conversion that does not hold raises `NoSuchConversion`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import erfinv, ndtr, ndtri, ndtri_exp

from bandana.privacy_core.accounting import gaussian
from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.checks import non_negative, order, positive, probability, rates


class Relation(StrEnum):
    """Relation that says which two data sets are neighbors."""

    REPLACE_REWARD = "replace one reward"
    REPLACE_RECORD = "replace one record"
    REPLACE_TRAJECTORY = "replace one trajectory"
    ADD_REMOVE = "add or remove one record"
    USER = "all records of one user"
    GIVEN_PAIR = "the given pair"


class TrustModel(StrEnum):
    """Who sees the data, and what the adversary sees of the output."""

    CENTRAL = "central"
    JOINT = "joint"
    SHUFFLE = "shuffle"
    LOCAL = "local"


_FOLLOWS = {
    (Relation.REPLACE_RECORD, Relation.REPLACE_REWARD): 1,
    (Relation.REPLACE_TRAJECTORY, Relation.REPLACE_REWARD): 1,
    (Relation.ADD_REMOVE, Relation.REPLACE_RECORD): 2,
    (Relation.ADD_REMOVE, Relation.REPLACE_REWARD): 2,
}
"""(holds, follows) -> how many steps of the first make one of the second: one reward is part of a record, and replacing
a record is removing one and adding another."""

_STRENGTH = {TrustModel.JOINT: 0, TrustModel.CENTRAL: 1, TrustModel.SHUFFLE: 2, TrustModel.LOCAL: 3}
"""A stronger model implies the weaker ones for outputs that are computed from messages alone: what is private where it is
sent stays so when it is shuffled, what is private as the shuffler passes it on stays so in every output, and what is private
in all outputs is so in those that other users see. An action that depends on a user's own contexts is no such output: there
local and shuffle privacy imply joint privacy, and central privacy only where a reward alone is replaced."""


class NoSuchConversion(ValueError):  # noqa: N818  (what it says is the condition, as with BudgetExceeded)
    """The asked guarantee does not follow from the one that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Promise(ABC):
    """Base of all guarantees.

    Attributes:
      relation: which data sets are neighbors.
      trust: who sees the data.
    """

    relation: Relation = Relation.REPLACE_RECORD
    trust: TrustModel = TrustModel.CENTRAL

    def pure(self) -> PureDP:
        """Pure DP guarantee that follows from this one."""
        self._refuse("pure DP", "its likelihood ratios are not bounded")

    def gdp(self) -> GaussianDP:
        """GDP guarantee with the smallest mu that follows from the definition."""
        self._refuse("GDP", "the definition allows trade-off functions below every Gaussian one")

    def zcdp(self) -> ZCDP:
        """The zCDP guarantee that follows from this one."""
        self._refuse("zCDP", "it bounds no Renyi divergence of high order")

    def renyi(self, alpha: float) -> RenyiDP:
        """RDP guarantee of order alpha: the smallest divergence that follows from the definition."""
        self._refuse(f"RDP of order {order('alpha', alpha):g}", "it bounds no Renyi divergence of that order")

    def approx(self, delta: float) -> ApproxDP:
        """(epsilon, delta)-DP guarantee that follows from this one, at the given delta."""
        epsilon = self.epsilon_at(delta)
        if not math.isfinite(epsilon):
            self._refuse(f"(epsilon, {delta:g})-DP", "no finite epsilon follows at that delta")
        return ApproxDP(epsilon, delta, relation=self.relation, trust=self.trust)

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """An epsilon for which (epsilon, delta)-DP follows, the smallest one where the definition allows to tell."""

    def weakened(self, *, relation: Relation | None = None, trust: TrustModel | None = None) -> Self:
        """The same kind of guarantee for a relation or trust model that follows from this one's.

        Replacing a record covers replacing a reward in it; adding or removing covers replacing, which is two steps (group
        privacy). Local privacy implies shuffle, shuffle implies central, central implies joint, for outputs that are
        computed from messages alone; of an action that depends on a user's own contexts no central promise follows.

        Raises:
          NoSuchConversion: it does not follow.
        """
        guarantee = self
        if relation is not None and relation is not self.relation:
            steps = _FOLLOWS.get((self.relation, relation))
            if steps is None:
                self._refuse(f"the relation {relation.value!r}", f"it holds for {self.relation.value!r}")
            guarantee = replace(guarantee if steps == 1 else guarantee._twice(), relation=relation)
        if trust is not None and trust is not self.trust:
            if _STRENGTH[trust] > _STRENGTH[self.trust]:
                self._refuse(f"the {trust.value} model", f"it holds in the {self.trust.value} model")
            guarantee = replace(guarantee, trust=trust)
        return guarantee

    @abstractmethod
    def _twice(self) -> Self:
        """The guarantee for two steps of the relation (group privacy)."""

    def _scope(self) -> dict[str, Any]:
        return {"relation": self.relation, "trust": self.trust}

    def _refuse(self, wanted: str, why: str) -> NoReturn:
        raise NoSuchConversion(f"{wanted} does not follow from {self}: {why}")


@dataclass(frozen=True, slots=True)
class GaussianDP(_Promise):
    """mu-GDP: no test tells two neighbors apart better than N(0, 1) from N(mu, 1).

    Source: Dong, Roth, Su (2022), Definition 2.6.
    """

    mu: float

    def __post_init__(self) -> None:
        positive("mu", self.mu)

    @classmethod
    def from_epsilon_delta(
        cls,
        epsilon: float,
        delta: float,
        *,
        relation: Relation = Relation.REPLACE_RECORD,
        trust: TrustModel = TrustModel.CENTRAL,
    ) -> GaussianDP:
        """The largest mu for which every mu-GDP mechanism is (epsilon, delta)-DP."""
        return cls(gaussian.mu_of(epsilon, delta), relation=relation, trust=trust)

    @classmethod
    def from_renyi(
        cls,
        alpha: float,
        epsilon: float,
        *,
        relation: Relation = Relation.REPLACE_RECORD,
        trust: TrustModel = TrustModel.CENTRAL,
    ) -> GaussianDP:
        """The mu of the Gaussian mechanism whose Renyi divergence of order alpha is epsilon: sqrt(2 epsilon / alpha).

        This is a statement on Gaussian mechanisms; a general (alpha, epsilon)-RDP mechanism need not be GDP.
        """
        mu = math.sqrt(2 * positive("epsilon", epsilon) / order("alpha", alpha))
        return cls(mu, relation=relation, trust=trust)

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon of (epsilon, delta)-DP, in nats. Exact."""
        return gaussian.epsilon_of(self.mu, delta)

    epsilon_at = epsilon

    def delta(self, epsilon: float) -> float:
        """The smallest delta of (epsilon, delta)-DP. Exact."""
        return gaussian.delta_of(self.mu, epsilon)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha: alpha mu^2 / 2."""
        return order("alpha", alpha) * self.mu**2 / 2

    def gdp(self) -> GaussianDP:
        """This guarantee itself."""
        return self

    def zcdp(self) -> ZCDP:
        """The zCDP guarantee, rho = mu^2 / 2."""
        return ZCDP(self.mu**2 / 2, **self._scope())

    def renyi(self, alpha: float) -> RenyiDP:
        """(alpha, alpha mu^2 / 2)-RDP, see `rdp`."""
        return RenyiDP(alpha, self.rdp(alpha), **self._scope())

    def tradeoff(self, fpr: ArrayLike) -> FloatArray:
        """The smallest false-negative rate of any test with the false-positive rate `fpr` (any shape, in [0, 1])."""
        # -ndtri(x) and not ndtri(1 - x), which is infinite for x below 1e-16.
        return np.asarray(ndtr(-ndtri(rates("fpr", fpr)) - self.mu))

    def _twice(self) -> Self:
        """2 mu (Dong, Roth, Su 2022, Theorem 2.14)."""
        return replace(self, mu=2 * self.mu)

    def __str__(self) -> str:
        return f"{self.mu:.6g}-GDP"


@dataclass(frozen=True, slots=True)
class ZCDP(_Promise):
    """rho-zero-concentrated DP: Renyi divergence of every order alpha at most rho alpha (Bun and Steinke 2016)."""

    rho: float

    def __post_init__(self) -> None:
        positive("rho", self.rho)

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha."""
        return order("alpha", alpha) * self.rho

    def zcdp(self) -> ZCDP:
        """This guarantee itself."""
        return self

    def renyi(self, alpha: float) -> RenyiDP:
        """(alpha, rho alpha)-RDP, the definition."""
        return RenyiDP(alpha, self.rdp(alpha), **self._scope())

    def _twice(self) -> Self:
        """4 rho (Bun and Steinke 2016, Proposition 1.9)."""
        return replace(self, rho=4 * self.rho)

    def epsilon_at(self, delta: float) -> float:
        """An epsilon of (epsilon, delta)-DP: the improved RDP conversion at its best order.

        The stationary order solves rho + ln(delta alpha) / (alpha - 1)^2 = 0.
        Source: Canonne, Kamath, Steinke (2020), Proposition 12.
        """
        probability("delta", delta)
        if self.rho > 1e15:  # the best order is 1 to the last bit; the bound without the improvement is as good
            return self.rho + 2 * math.sqrt(-self.rho * math.log(delta))

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
class RenyiDP(_Promise):
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

    def renyi(self, alpha: float) -> RenyiDP:
        """The same bound at a lower order: the divergence grows with its order (van Erven and Harremoes 2014, Thm 3)."""
        if order("alpha", alpha) > self.alpha:
            self._refuse(f"RDP of order {alpha:g}", "a divergence of higher order may be larger")
        return replace(self, alpha=alpha)

    def _twice(self) -> Self:
        """(alpha / 2, 3 epsilon), for alpha >= 4 (Mironov 2017, Proposition 2)."""
        if self.alpha < 4:
            self._refuse("a guarantee for two steps", "group privacy of RDP needs an order of at least 4")
        return replace(self, alpha=self.alpha / 2, epsilon=3 * self.epsilon)

    def __str__(self) -> str:
        return f"({self.alpha:g}, {self.epsilon:g})-RDP"


@dataclass(frozen=True, slots=True)
class PureDP(_Promise):
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
        loss = delta * (1 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log1p(-loss)) if loss < 1 else 0.0

    def pure(self) -> PureDP:
        """This guarantee itself."""
        return self

    def gdp(self) -> GaussianDP:
        """The smallest mu-GDP that the definition implies: mu = -2 Phi^-1(1 / (1 + e^epsilon)).

        The trade-off function of epsilon-DP is two lines that meet where both error rates are 1 / (1 + e^epsilon); a
        convex curve through that corner and through (0, 1), (1, 0) stays below both lines.
        """
        if self.epsilon < 1:  # the same number, to full precision where it is small
            return GaussianDP(float(math.sqrt(8) * erfinv(math.tanh(self.epsilon / 2))), **self._scope())
        return GaussianDP(float(-2 * ndtri_exp(-np.logaddexp(0.0, self.epsilon))), **self._scope())

    def zcdp(self) -> ZCDP:
        """Rho = epsilon^2 / 2 (Bun and Steinke 2016, Proposition 1.4)."""
        return ZCDP(self.epsilon**2 / 2, **self._scope())

    def rdp(self, alpha: float) -> float:
        """Renyi divergence bound of order alpha, attained by randomized response.

        With e for epsilon: ln[(sinh(alpha e) - sinh((alpha - 1) e)) / sinh e] / (alpha - 1), here in the form
        e + ln[(1 + e^(-(2 alpha - 1) e)) / (1 + e^-e)] / (alpha - 1), which does not overflow. It is at most
        alpha e^2 / 2, which is what is returned where e is so small that the digits cancel.
        Source: Bun and Steinke (2016), Propositions 1.4 and 3.3.
        """
        excess, e = order("alpha", alpha) - 1, self.epsilon
        if e < 1e-4:
            return min(alpha * e * e / 2, e)
        return e + math.log1p(math.expm1(-2 * excess * e) * math.exp(-e) / (1 + math.exp(-e))) / excess

    def renyi(self, alpha: float) -> RenyiDP:
        """RDP of order alpha, see `rdp`."""
        return RenyiDP(alpha, self.rdp(alpha), **self._scope())

    def _twice(self) -> Self:
        """The guarantee for two steps of the relation: 2 epsilon."""
        return replace(self, epsilon=2 * self.epsilon)

    def __str__(self) -> str:
        return f"{self.epsilon:.6g}-DP"


@dataclass(frozen=True, slots=True)
class ApproxDP(_Promise):
    """(epsilon, delta)-DP (Dwork, Kenthapadi, McSherry, Mironov, Naor 2006)."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        non_negative("epsilon", self.epsilon)
        probability("delta", self.delta)

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon that follows at delta; at a delta below the definition's own nothing does: infinity.

        The definition's trade-off function has its corner at the rate (1 - delta0) / (1 + e^epsilon0), so that at
        epsilon <= epsilon0 it implies delta(epsilon) = 1 - (1 - delta0)(1 + e^epsilon) / (1 + e^epsilon0).
        Source: Kairouz, Oh, Viswanath (2015), Theorem 3.1, solved for epsilon.
        """
        probability("delta", delta)
        if delta <= self.delta:
            return self.epsilon if delta == self.delta else math.inf
        # e^(epsilon' - epsilon0) = (1 - drop) - drop e^-epsilon0, drop = (delta - delta0) / (1 - delta0)
        drop = (delta - self.delta) / (1 - self.delta)
        loss = drop * (1 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log1p(-loss)) if loss < 1 else 0.0

    def _twice(self) -> Self:
        """(2 epsilon, (1 + e^epsilon) delta): the definition, used twice."""
        delta = self.delta * (1 + math.exp(self.epsilon)) if self.epsilon < 700 else math.inf
        if delta >= 1:
            self._refuse("a guarantee for two steps", "its delta would reach 1")
        return replace(self, epsilon=2 * self.epsilon, delta=delta)

    def __str__(self) -> str:
        return f"({self.epsilon:g}, {self.delta:g})-DP"


@dataclass(frozen=True, slots=True)
class NoPrivacy(_Promise):
    """No promise: some record's value was released as it is."""

    mu: float = math.inf

    def epsilon_at(self, delta: float) -> float:
        """Epsilon, which is infinite at every delta."""
        probability("delta", delta)
        return math.inf

    def _twice(self) -> Self:
        """The guarantee for two steps of the relation: none either."""
        return self

    def __str__(self) -> str:
        return "no privacy"


Guarantee = GaussianDP | ZCDP | RenyiDP | PureDP | ApproxDP | NoPrivacy
