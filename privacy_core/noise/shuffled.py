r"""Sums of bits that a shuffler mixes: the shuffle model, in which nobody but the shuffler is trusted.

Each user of a batch writes every coordinate of the own value as a whole number v from 0 to some g, and sends g bits, v of
them ones, and b fair bits besides. The shuffler mixes the bits of a coordinate; as they carry nothing else, what it passes
on is the number of ones among them,

    sum of v + Z,     Z ~ Binomial(N, 1/2),     N = b times the number of users.

No message is private by itself. Protected is what the shuffler passes on, against everybody, if all users of the batch
follow the protocol; if a share of them does, N counts their bits alone.

**Accounting.** Replacing one user's value moves the count of coordinate j by some whole k_j. For one coordinate let P be the
law of Z, Q that of Z + k, and A the whole numbers from a to N + k - a. The reflection z -> N + k - z maps P to Q and A to
itself, so both leave A with the same probability, at most 2 P(Z < a) <= t, the tail. On A the likelihood ratio grows with z,
so the most powerful tests are thresholds; the trade-off function of P and Q given A is linear between them, and the convex
one of mu-GDP lies below it if it does at each threshold c:

    mu_k = max over c in A of  Phi^-1(Q(Z >= c | A)) - Phi^-1(P(Z >= c | A)),

a maximum over finitely many numbers that are computed. So (P, Q) is mu_k-GDP but for a probability of t
(`NearlyGaussianEvent`). Coordinates have bits of their own: given that all stay in their A they are sqrt(sum_j mu_kj^2)-GDP
(Dong, Roth, Su 2022, Corollary 3.3), and with u the largest mu_k / k over the k that one user can cause,

    sqrt(sum_j mu_kj^2) <= u |k|_2 <= u S,     slack <= m t,

S the L2 sensitivity and m the number of coordinates. For large N, u is 2 / sqrt N, the inverse of the noise's deviation, up
to a factor of 1 + O(log(1/t) / N).

Source: Cheu, Joseph, Mao and Peng (2022), Shuffle private stochastic convex optimization, for sums of vectors from shuffled
bits; Chowdhury and Zhou (2022) use it for bandits. They account for it by concentration and advanced composition over the
coordinates; the accounting here is ours.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy.special import bdtr, gammaln, ndtri

from bandana.privacy_core.accounting.events import NearlyGaussianEvent
from bandana.privacy_core.accounting.gaussian import mu_of
from bandana.privacy_core.accounting.guarantees import ApproxDP, Relation
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least, positive, probability
from bandana.privacy_core.noise.mechanisms import Scaled, _flat, _Isotropic
from bandana.privacy_core.noise.sources import NoiseSource

_NEVER_LESS = 1 + 1e-9
"""The probabilities have ten digits."""
_SLACK_SHARE, _MOST_SLACK = 1e-6, 1e-11
"""The slack is this share of delta, and so small that no audit meets the event that it stands for."""
_MOST_BITS, _LEAST_DELTA = 5_000_000, 1e-30
"""In a batch, as their accountant walks through every number of ones; and a delta whose slack floats still hold."""


@dataclass(frozen=True)
class ShuffledBits(_Isotropic, Scaled):
    """Counts plus Binomial(n_bits, 1/2) - n_bits / 2 in each coordinate: what a shuffler passes on, less a public number.

    Attributes:
      sensitivity_l2: S, the L2 norm of what one user can change.
      most: the largest change of one coordinate.
      n_bits: N.
      n_coordinates: m, among which the slack is shared.
      slack: probability that is left out of the trade-off function.
      relation: between which data sets.
    """

    norm = "L2"
    sensitivity_l2: float
    most: int
    n_bits: int
    n_coordinates: int
    slack: float
    relation: Relation = Relation.REPLACE_RECORD

    def __post_init__(self) -> None:
        positive("sensitivity_l2", self.sensitivity_l2)
        for name in ("most", "n_bits", "n_coordinates"):
            at_least(name, getattr(self, name), 1)
        probability("slack", self.slack)

    @property
    def sensitivity(self) -> float:
        """L2 sensitivity."""
        return self.sensitivity_l2

    @property
    def noise_multiplier(self) -> float:  # type: ignore[override]
        """The noise's deviation over the sensitivity; its cost is a little more than that of Gaussian noise, see `event`."""
        return self.scale / self.sensitivity_l2

    @property
    def scale(self) -> float:
        """Standard deviation of the noise in each coordinate, sqrt(N) / 2."""
        return math.sqrt(self.n_bits) / 2

    deviation = scale

    @property
    def event(self) -> NearlyGaussianEvent:
        """Cost of one release."""
        mu = unit_mu(self.n_bits, self.most, self.slack / self.n_coordinates) * self.sensitivity_l2
        return NearlyGaussianEvent(1 / mu, self.slack)

    def scaled(self, factor: float) -> ShuffledBits:
        """The same mechanism with `factor` squared times as many bits, hence with `factor` times the noise."""
        return replace(self, n_bits=max(1, round(self.n_bits * positive("factor", factor) ** 2)))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus the ones among fresh bits, less half of their number.

        Raises:
          ValueError: a value is no whole number.
        """
        if not (np.rint(value) == value).all():  # written so that NaN is refused too
            raise ValueError(f"counts must be whole numbers, got {float(value[np.rint(value) != value][0])!r}")
        return np.asarray(value + (noise.binomial(self.n_bits, value.shape) - self.n_bits / 2))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): the sum over coordinates of log C(N, ones on the neighbor) - log C(N, ones); exact."""
        terms = [self._log_choices(output - side) for side in (neighbor, value)]
        with np.errstate(invalid="ignore"):
            return np.asarray(_flat(terms[0]).sum(axis=1) - _flat(terms[1]).sum(axis=1))

    def _log_choices(self, added: FloatArray) -> FloatArray:
        """Logarithm of the number of ways to add so much; minus infinity where there is none."""
        ones = np.rint(added + self.n_bits / 2).astype(np.int64)
        log_choices = _log_choices(self.n_bits)[np.clip(ones, 0, self.n_bits)]
        return np.where((ones < 0) | (ones > self.n_bits), -np.inf, log_choices)


@lru_cache(maxsize=8)
def _log_choices(n_bits: int) -> FloatArray:
    """(N + 1,) log C(N, z), up to a constant."""
    z = np.arange(n_bits + 1)
    return np.asarray(-gammaln(z + 1) - gammaln(n_bits - z + 1))


def _least_kept(n_bits: int, tail: float) -> int:
    """a, the least z with P(Z <= z) >= tail / 2, so that P(Z < a) is below it."""
    return bisect_left(range(n_bits), True, key=lambda z: bool(bdtr(z, n_bits, 0.5) >= tail / 2))


@lru_cache(maxsize=256)
def unit_mu(n_bits: int, most: int, tail: float) -> float:
    """The largest mu_k / k over changes k = 1, ..., `most` of one coordinate, see the module.

    Args:
      n_bits: N.
      most: the largest k.
      tail: t, probability that is left out for one coordinate.

    Raises:
      ValueError: there are so few bits that a change of `most` leaves what they can hide.
    """
    first = _least_kept(n_bits, tail)
    if first < most:
        raise ValueError(f"n_bits must be large enough to hide a change of {most} but for {tail:g}, got {n_bits}: add bits")
    largest = 0.0
    for k in range(1, most + 1):
        last, middle = n_bits + k - first, (n_bits + k) // 2 + 1
        z = np.arange(first - k, last + 1)
        mass = np.exp(_log_choices(n_bits)[np.clip(z, 0, n_bits)] + gammaln(n_bits + 1) - n_bits * math.log(2))
        kept = mass[k:].sum()
        # Tails from the top, so that the smallest are exact; thresholds below the middle mirror those above it.
        here = np.cumsum(mass[k:][::-1])[::-1][middle - first :] / kept
        there = np.cumsum(mass[:-k][::-1])[::-1][middle - first :] / kept
        largest = max(largest, float((ndtri(there) - ndtri(here)).max()) / k)
    return largest * _NEVER_LESS


def bits_for(promise: ApproxDP, sensitivity_l2: float, most: int, n_coordinates: int, n_users: int) -> ShuffledBits:
    """The fewest bits a user with which counts from a batch keep a promise.

    Args:
      promise: (epsilon, delta).
      sensitivity_l2: S.
      most: the largest change of one coordinate.
      n_coordinates: m.
      n_users: of a batch; each adds the same number of fair bits to every coordinate.

    Returns:
      the mechanism; its number of bits is a multiple of `n_users`.

    Raises:
      ValueError: it takes more bits than can be counted here, or delta is too small for that.
    """
    if promise.delta < _LEAST_DELTA:
        raise ValueError(f"delta must be at least {_LEAST_DELTA:g} with shuffled bits, got {promise.delta!r}")
    slack = min(_SLACK_SHARE * promise.delta, _MOST_SLACK)
    limit = mu_of(promise.epsilon, promise.delta - slack)

    def keeps(each: int) -> bool:
        n_bits = each * n_users
        if _least_kept(n_bits, slack / n_coordinates) < most:
            return False
        return unit_mu(n_bits, most, slack / n_coordinates) * sensitivity_l2 <= limit

    at_least("n_users", n_users, 1)
    low, high = 0, max(1, int((2 * sensitivity_l2 / limit) ** 2 / n_users))
    while high * n_users <= _MOST_BITS and not keeps(high):
        low, high = high, 1 + high * 21 // 20
    if high * n_users > _MOST_BITS:
        raise ValueError(
            f"epsilon = {promise.epsilon:g} with delta = {promise.delta:g} needs more than {_MOST_BITS:,} shuffled bits "
            "from a batch, which are too many to account for: give a larger epsilon or delta"
        )
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if keeps(middle) else (middle, high)
    return ShuffledBits(sensitivity_l2, most, high * n_users, n_coordinates, slack)


def ones_below(ones: IntArray, n_bits: int) -> FloatArray:
    """Probability of fewer ones among fair bits, for the noise audit."""
    return np.where(ones < 1, 0.0, bdtr(np.clip(ones - 1, 0, n_bits), n_bits, 0.5))
