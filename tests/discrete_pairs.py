"""Two distributions on a few outcomes, of which every privacy number is known: worst cases to hold guarantees against."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, PureDP, RenyiDP

ORDERS = 1 + np.concatenate([np.geomspace(1e-4, 1e4, 81), [1.0, 2.0, 3.0]])


@dataclass(frozen=True)
class Pair:
    """The laws of the output on two neighbors, as probabilities of the same outcomes."""

    p: NDArray[np.float64]
    q: NDArray[np.float64]

    def delta(self, epsilon: float) -> float:
        """The smallest delta at epsilon, of both directions."""
        factor = math.exp(min(epsilon, 700.0))
        return max(float(np.maximum(a - factor * b, 0).sum()) for a, b in ((self.p, self.q), (self.q, self.p)))

    def renyi(self, alpha: float) -> float:
        """Renyi divergence of order alpha, the larger one of both directions."""
        return max(_renyi(self.p, self.q, alpha), _renyi(self.q, self.p, alpha))

    @property
    def pure(self) -> float:
        if ((self.p > 0) != (self.q > 0)).any():
            return math.inf
        return float(np.abs(np.log(self.p / self.q)).max())

    @property
    def rho(self) -> float:
        """Rho of zCDP: the supremum of divergence over order, refined about the best of a grid; the limit at order 1 too."""
        limit = max(float((a * np.log(a / b)).sum()) for a, b in ((self.p, self.q), (self.q, self.p)))
        ratios = [self.renyi(float(alpha)) / float(alpha) for alpha in ORDERS]
        near = float(np.log(ORDERS[int(np.argmax(ratios))] - 1))
        found = minimize_scalar(
            lambda x: -self.renyi(1 + math.exp(x)) / (1 + math.exp(x)), bounds=(near - 0.5, near + 0.5), method="bounded"
        )
        return max(limit, *ratios, -float(found.fun))

    @property
    def mu(self) -> float:
        """Mu of GDP. A Gaussian trade-off function is convex, so it lies below a polygon if it does at the corners."""
        order = np.argsort(-self.q / self.p, kind="stable")
        p, q = self.p[order], self.q[order]
        # Rates and their complements, each summed from its small end.
        fpr, specificity = np.cumsum(p)[:-1], np.cumsum(p[::-1])[::-1][1:]
        power, fnr = np.cumsum(q)[:-1], np.cumsum(q[::-1])[::-1][1:]
        below = np.where(fpr < 0.5, -ndtri(fpr), ndtri(specificity))
        above = np.where(fnr < 0.5, -ndtri(fnr), ndtri(power))
        # The other direction has the mirrored trade-off function, and a Gaussian one is its own mirror image.
        return float((below + above).max())

    def keeps(self, guarantee: object, slack: float = 1e-9) -> bool:
        """Whether the pair is as private as the guarantee says."""
        match guarantee:
            case PureDP(epsilon):
                return self.pure <= epsilon * (1 + slack)
            case ApproxDP(epsilon, delta):
                return self.delta(epsilon * (1 + slack)) <= delta * (1 + slack) + 1e-15
            case RenyiDP(alpha, epsilon):
                return self.renyi(alpha) <= epsilon * (1 + slack) + 1e-13
            case ZCDP(rho):
                return all(self.renyi(float(alpha)) <= rho * float(alpha) * (1 + slack) + 1e-13 for alpha in ORDERS)
            case GaussianDP(mu):
                return self.mu <= mu * (1 + slack) + 1e-9
        raise TypeError(guarantee)


def _renyi(p: NDArray[np.float64], q: NDArray[np.float64], alpha: float) -> float:
    held = p > 0
    if (q[held] == 0).any():
        return math.inf
    terms = alpha * np.log(p[held]) - (alpha - 1) * np.log(q[held])
    return float(np.logaddexp.reduce(terms)) / (alpha - 1)


def randomized_response(epsilon: float) -> Pair:
    """The worst case of pure DP."""
    truth = 1 / (1 + math.exp(-epsilon))
    lie = 1 / (1 + math.exp(epsilon))
    return Pair(np.array([truth, lie]), np.array([lie, truth]))


def leaky_response(epsilon: float, delta: float) -> Pair:
    """The worst case of (epsilon, delta)-DP: with probability delta the truth comes out."""
    response = randomized_response(epsilon)
    return Pair(np.array([delta, *((1 - delta) * response.p), 0.0]), np.array([0.0, *((1 - delta) * response.q), delta]))


def distributions(n_outcomes: int = 3) -> st.SearchStrategy[NDArray[np.float64]]:
    """Probabilities of a few outcomes, none below 1e-7 or so."""
    weights = st.lists(st.floats(-7.0, 0.0), min_size=n_outcomes, max_size=n_outcomes)
    return weights.map(lambda logs: (lambda w: w / w.sum())(10.0 ** np.array(logs)))


def pairs(n_outcomes: int = 3) -> st.SearchStrategy[Pair]:
    """Two different distributions on the same outcomes."""
    both = st.tuples(distributions(n_outcomes), distributions(n_outcomes))
    return both.filter(lambda two: float(np.abs(two[0] - two[1]).max()) > 1e-6).map(lambda two: Pair(*two))
