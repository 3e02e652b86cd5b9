r"""When a noisy mean is certainly the largest, by what each estimate tells of its own mean: transport costs.

Source: Jourdan and Azize (2025), Optimal best arm identification under differential privacy, DP-TT: a test that stops by the
costs that its lower bound is made of, d_epsilon between Bernoulli means, and pulls a leader and the challenger of the least
cost. The paper's text beyond its abstract was not at hand: statistic, thresholds and proofs are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import lambertw

from bandana.algorithms.bandits.best_arm.rules import DifferenceRules, Episodes, Judged, Rules, noise_exponent
from bandana.algorithms.bandits.best_arm.transport_numba import add_exponents, transport_cost, transport_costs
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import Laplace, Mechanism

MEANS = np.sin(np.linspace(0, math.pi / 2, 193)) ** 2
"""Where costs are tabulated, closest at 0 and 1."""
_LARGEST = 12.0
"""The largest tilt of a reward, at e^12 times its odds. Any set of tilts is valid; steps of a tenth cost 0.3 % at most."""
_LEAST_GROWTH = 1.05
"""Smaller growth has more episodes; their tables would take hundreds of megabytes."""


class Costs(NamedTuple):
    """Values that transport costs are computed from; row 0 stands for k = 1."""

    episodes: Episodes
    table: FloatArray
    """(n, n_means, n_tilts) G of the k-th statistic, the logarithm of its moment generating function at most."""
    slack: FloatArray
    """(n, n_means - 1, n_tilts) how far G is above the chord between two neighboring means, at most."""
    sizes: FloatArray
    """(n,) the k-th statistic over the k-th estimate: the rewards that count fully."""
    tilts: FloatArray
    """(n_tilts,) rising from 0."""
    threshold: float
    """The cost that is certain."""
    lead: FloatArray
    """(n, n) the difference that is certain."""
    log_pulls: FloatArray
    """(n,) logarithm of an arm's pulls."""


@dataclass(frozen=True)
class TransportRules(Rules):
    r"""DP-TT's: the transport cost of one arm over every other must reach a threshold; the challenger has the least.

    Means are in units of the range, from 0 to 1. An arm's estimate is sum over its episodes of v_e (S_e + noise_e), S_e the
    sum of n_e rewards; with v the largest of the v_e, the statistic X = estimate / v has w_e = v_e / v <= 1 rewards' worth
    of each reward of episode e. If rewards have mean u, its moments satisfy, for t >= 0,

        log E[exp(t X)] <= G(t, u) = sum over e of n_e log(1 + u (exp(w_e t) - 1)) + phi(w_e t),

    phi the exponent of the noise, as exp is below its chord on [0, 1]. What tells that the mean is above u is

        A(u) = max over t >= 0 of (t X - G(t, u)),        P(A(mean) >= y) <= exp(-y)

    by Chernoff's bound, A being a rising function of X. What tells that it is below u is the same of 1 - reward and 1 - u,
    the noise being symmetric: B(u). The transport cost of arm i over arm j is

        W_ij = min over u of (A_i(u) + B_j(u)).

    phi is infinite from t = epsilon on: without the rest of it, A and B per reward are then kl with slope at most epsilon,
    which is d_epsilon (`algorithms/lower_bounds/divergences.py`), so that W is what the lower bound has, but for the noise.

    The test stops where for every j either W_ij >= c, (1 + c) exp(-c) = (error / 2) / ((K - 1) k_max^2), k_max the number of
    an arm's episodes that may end within the horizon, or the difference of the estimates is what `DifferenceRules` ask for
    at error / 2. Costs count a lead for more where means are near 0 or 1, as rates of conversion are; near 1/2, and where
    noise is larger than what rewards vary, a difference needs no factor 1 + c.
    Guarantee: for independent rewards in the range, each arm's of one mean, a wrong arm is recommended with probability at
    most `error`, whatever the sampling rule. Proof. Let * be the best arm, i a wrong one, m its mean. A test that stops
    with i by costs has c <= W_i* <= A_i(m) + B_*(m) <= A_i(m) + B_*(m_*), as B rises with u and m <= m_*. For each pair
    (k_i, k_*) the two are functions of different arms' rewards and noise, an arm's n-th reward not depending on when it is
    pulled, nor lengths on data. Each is thus stochastically below an independent exponential variable of mean 1, and the
    sum of two of those reaches c with probability (1 + c) exp(-c). Add up over wrong arms and pairs (k_i, k_*); the other
    half of the error is that of differences.

    The maximum is over finitely many t, which makes A and B smaller. A + B is convex in u, as G is concave in it: so the
    minimum lies beside the best of the points at which it is computed. Between two points G is below its chord plus a slack,
    whose A + B is the largest of straight lines; its minimum is bounded by some of them. Weights are inverse to 1 / (4n) +
    s^2 / n^2, as in `DifferenceRules`.

    The leader has the largest estimate; the challenger the smallest W + log N, N its pulls, which brings arms back whose
    first estimates the noise has spoiled (Jourdan and others 2022, TCI).

    Attributes:
      offset: lower end of the range, over its width.
    """

    offset: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.growth < _LEAST_GROWTH:
            raise ValueError(f"growth must be at least {_LEAST_GROWTH} for transport costs, got {self.growth!r}")

    @property
    def costs(self) -> Costs:
        """The tables, computed once for each rules."""
        return _costs(self)

    @property
    def episodes(self) -> Episodes:
        """Weights are inverse to variance proxies."""
        return self.costs.episodes

    def judge(self, k: IntArray, mean: FloatArray, rounds: IntArray) -> Judged:
        """Certain is a transport cost over every other arm of at least the threshold.

        So is a large lead. The leader has the largest estimate, the challenger the least cost plus logarithm of its pulls.
        """
        of, best, cost, rows = self.costs, mean.argmax(axis=1), np.empty(mean.shape), np.arange(len(mean))
        transport_costs(mean - self.offset, k - 1, best, of.table, of.slack, of.sizes, MEANS, of.tilts, cost)
        leads = mean[rows, best][:, None] - mean >= of.lead[k[rows, best][:, None] - 1, k - 1]
        return Judged(best, ((cost >= of.threshold) | leads).all(axis=1), best, (cost + of.log_pulls[k - 1]).argmin(axis=1))

    def scale_of(self, lead: float) -> float:
        """For a lead around the middle of the range, by its cost or by itself."""
        of = self.costs
        cost = transport_cost((1 + lead) / 2, 1, (1 - lead) / 2, 1, of.table, of.slack, of.sizes, MEANS, of.tilts)
        return self.scale * max(float(cost) / of.threshold, lead / float(of.lead[1, 1]))


@lru_cache(maxsize=8)
def _costs(rules: TransportRules) -> Costs:
    half = DifferenceRules(
        rules.n_actions, rules.noise, rules.width, rules.error / 2, rules.growth, rules.horizon, rules.scale
    )  # fmt: skip
    (lengths, shares), tilts = half.episodes, _tilts(rules.noise, rules.width)
    n = lengths[:-1].astype(float)
    table, slack = np.empty((len(n), len(MEANS), len(tilts))), np.zeros((len(n), len(MEANS) - 1, len(tilts)))
    sizes, weights = np.empty(len(n)), np.zeros(0)
    for last, share in enumerate(shares):
        weights = np.append(weights * (1 - share), share)
        each = weights / n[: last + 1]
        sizes[last] = 1 / each.max()
        each = each * sizes[last]
        table[last] = noise_exponent(rules.noise, each[:, None] * tilts / rules.width).sum(axis=0)
        add_exponents(n[: last + 1], each, MEANS, tilts, table[last], slack[last])
    threshold = rules.scale * two_exponentials(half.level)
    lead, log_pulls = half.tables.threshold, np.log(np.cumsum(n))
    return Costs(half.episodes, table, slack, sizes, tilts, threshold, lead, log_pulls)


def _tilts(noise: Mechanism, width: float) -> FloatArray:
    """From 0 to where the noise has moments, a tenth apart, and closer to the end of those of Laplace noise."""
    most = min(_LARGEST, width / noise.scale * (1 - 1e-6)) if isinstance(noise, Laplace) else _LARGEST
    tilts = most * np.exp(-np.arange(0, math.log(1e5), 0.1))
    return np.unique(np.concatenate([[0.0], tilts, most * (1 - np.geomspace(1e-6, 0.1, 30))]))


def two_exponentials(level: float) -> float:
    """The c with (1 + c) exp(-c) = exp(-level): what the sum of two exponential variables reaches with that probability."""
    return float(-1 - lambertw(-math.exp(-level - 1), -1).real) * (1 + 1e-12)
