r"""Mechanisms that select: a vector of scores goes in, the number of one of them comes out.

`ledger.release` takes the scores (n_rows, k) of each row and answers (n_rows,) whole numbers. What a record may change is
bounded by a *range*: the largest difference between the changes of two scores,

    max_i d_i - min_i d_i <= sensitivity_range,     d = scores on the neighbor - scores on the data.

If each score moves by at most D, the range is at most 2 D. If all scores can only move the same way (monotone scores), or
only one of them can move, as when one reward enters the sum of one arm, it is at most D. A shift of all scores alike costs
nothing, since it changes no selection.

scale = sensitivity_range x noise_multiplier and epsilon = 1 / noise_multiplier; the familiar scale 2 D / epsilon is that of
a range of 2 D. Outcomes have probabilities in closed form, or as one integral (AboveThreshold and Laplace noise), so that
the likelihood ratio of a replay is exact.

  Exponential         probability proportional to e^(score / scale): the least costly in compositions
  PermuteAndFlip      never a lower expected score than Exponential, at the same epsilon
  NoisyMax            the largest score with Laplace noise
  RandomizedResponse  an option for itself: what a user sends under local privacy
  AboveThreshold      the first of a sequence of queries that exceeds 0, or none
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from bandana.privacy_core.accounting.events import BoundedRangeEvent, PureEvent, ResponseEvent
from bandana.privacy_core.accounting.guarantees import Relation
from bandana.privacy_core.arrays import FloatArray, IntArray
from bandana.privacy_core.checks import at_least, positive
from bandana.privacy_core.noise.mechanisms import Scaled
from bandana.privacy_core.noise.quadrature import log_integral, log_laplace_below, log_laplace_density
from bandana.privacy_core.noise.sources import EXPONENTIAL, GUMBEL, NoiseSource

_MOST_POINTS = 1 << 22


class Selection(Scaled):
    """Common part of all mechanisms that select; their outputs are whole numbers from 0."""

    __slots__ = ()

    norm = "range"

    @property
    def deviation(self) -> float:
        """NaN: the output is a number of a score, and has no noise that could be measured in units of scores."""
        return math.nan

    def whiten(self, value: FloatArray) -> FloatArray:
        """Refused: see `deviation`.

        Raises:
          TypeError: always.
        """
        raise TypeError(f"{type(self).__name__} selects; what it releases has no noise to be whitened")

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Refused: see `whiten`.

        Raises:
          TypeError: always.
        """
        raise TypeError(f"{type(self).__name__} selects; what it releases has no noise to be colored")

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,), the range of the change of the scores."""
        return np.asarray(np.ptp(neighbor - value, axis=1))

    @abstractmethod
    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) what is selected from the scores (n_rows, k)."""

    @abstractmethod
    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, n_outcomes) logarithm of the probability of each outcome."""

    def without_noise(self, value: FloatArray) -> IntArray:
        """(n_rows,) what would be selected without noise: the largest score, the first of equal ones."""
        return np.asarray(np.argmax(value, axis=1))

    def log_density_ratio(self, output: IntArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): log P(output | neighbor) - log P(output | value); infinite where one of them is 0 to all digits."""
        chosen = np.asarray(output, dtype=np.int64)[:, None]
        there, here = (np.take_along_axis(self.log_probabilities(v), chosen, axis=1)[:, 0] for v in (neighbor, value))
        with np.errstate(invalid="ignore"):
            return np.where(there == here, 0.0, there - here)


class _OfRange(Selection):
    """Selections that are calibrated to the range of the change."""

    __slots__ = ()

    sensitivity_range: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        positive("sensitivity_range", self.sensitivity_range)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """The largest range of the change."""
        return self.sensitivity_range

    @property
    def event(self) -> BoundedRangeEvent | PureEvent:
        """Cost of one release."""
        return PureEvent(1 / self.noise_multiplier)


@dataclass(frozen=True, slots=True)
class Exponential(_OfRange):
    r"""Selects i with probability proportional to exp(score_i / scale): the exponential mechanism.

    Equivalent to the largest score with Gumbel noise of that scale. On a neighbor log p_i changes by d_i / scale minus the
    change of the normalization, so all changes lie in an interval of length range / scale = 1 / noise_multiplier =: epsilon.
    The mechanism is of epsilon-bounded range, hence epsilon-DP and epsilon^2/8-zCDP: see `BoundedRangeEvent`.

    Source: McSherry and Talwar (2007); Durfee and Rogers (2019), Section 4.
    """

    sensitivity_range: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    @property
    def event(self) -> BoundedRangeEvent:
        """Cost of one release."""
        return BoundedRangeEvent(1 / self.noise_multiplier)

    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) what is selected from the scores (n_rows, k)."""
        return noise.select(value, self.scale, GUMBEL)

    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, k) logarithm of the probability of each score's number: exact."""
        return np.asarray(log_softmax(value / self.scale, axis=1))


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(_OfRange):
    r"""Visits the scores in a random order and selects i with probability w_i = exp((score_i - largest score) / scale).

    Equivalent to the largest score with exponential noise of that scale. That form shows the privacy: given the noise of all
    others, i is selected if its noise exceeds some c, on a neighbor a c that is larger by at most the range; and
    P(Z > c + range) >= exp(-range / scale) P(Z > c). So it is epsilon-DP, epsilon = 1 / noise_multiplier. It also gives the
    probabilities: with u = exp(-noise beyond the largest score), P(i) = w_i times the integral over u in [0, 1] of the
    product of 1 - w_j u, j not i: a polynomial, which a Gauss-Legendre rule of k/2 nodes integrates exactly.

    Source: McKenna and Sheldon (2020), Algorithm 1; Ding, Kifer, Sayed, Wang, Xiao, Zhang (2021) for the exponential noise.
    """

    sensitivity_range: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) what is selected from the scores (n_rows, k)."""
        return noise.select(value, self.scale, EXPONENTIAL)

    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, k) logarithm of the probability of each score's number: exact up to rounding."""
        log_w = (value - value.max(axis=1, keepdims=True)) / self.scale
        x, weight = np.polynomial.legendre.leggauss(value.shape[1] // 2 + 1)
        u, log_weight = (x + 1) / 2, np.log(weight / 2)
        log_miss = np.log1p(-np.exp(log_w)[:, None, :] * u[:, None])  # (n_rows, n_nodes, k)
        others = log_miss.sum(axis=2, keepdims=True) - log_miss
        return np.asarray(log_w + logsumexp(others + log_weight[:, None], axis=1))


@dataclass(frozen=True, slots=True)
class NoisyMax(_OfRange):
    r"""Selects the largest of the scores with Laplace noise of the given scale; the noisy scores stay hidden.

    The privacy is that of `PermuteAndFlip`, since Laplace noise has P(Z > c + range) >= exp(-range / scale) P(Z > c) too:
    epsilon-DP, epsilon = 1 / noise_multiplier. P(i) is the integral of the density of noisy score i at x times the
    probability that each other one is below x; for two scores a gap apart, in units of the scale, the lesser one is
    selected with probability e^-gap (1 + gap / 2) / 2.

    Source: Dwork and Roth (2014), Claim 3.9, for counts.
    """

    sensitivity_range: float
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) what is selected from the scores (n_rows, k)."""
        return np.asarray(np.argmax(noise.add_laplace(value, self.scale, self.noise_multiplier), axis=1))

    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, k) logarithm of the probability of each score's number."""
        return _by_rows(value, self._log_probabilities)

    def _log_probabilities(self, value: FloatArray) -> FloatArray:
        if value.shape[1] == 2:  # the difference of two Laplace variables has a closed form
            gap = np.abs(value[:, 1] - value[:, 0]) / self.scale
            lower = np.log1p(gap / 2) - gap - math.log(2)
            upper = np.log1p(-np.exp(lower))
            is_first = value[:, 0] > value[:, 1]
            return np.stack([np.where(is_first, upper, lower), np.where(is_first, lower, upper)], axis=1)

        def log_products(places: FloatArray) -> FloatArray:
            noise = places[:, :, None] - value[:, None, :]
            below = log_laplace_below(noise, self.scale)
            return np.asarray(log_laplace_density(noise, self.scale) + below.sum(axis=2, keepdims=True) - below)

        return log_integral(log_products, value, self.scale)


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Selection):
    """Answers the true one of some options with e^epsilon times the probability of each other one.

    The value is (n_rows, n_options), 1 at the true option and 0 elsewhere (`one_hot`); epsilon = 1 / noise_multiplier.
    Answers have the law of the exponential mechanism on these scores, and are drawn so; two options differ by a range of 2.
    The exact privacy loss of one response is that of `ResponseEvent`.

    Source: Warner (1965); Kairouz, Oh, Viswanath (2016).
    """

    n_options: int
    noise_multiplier: float
    relation: Relation = Relation.REPLACE_RECORD

    sensitivity = 2.0

    def __post_init__(self) -> None:
        at_least("n_options", self.n_options, 2)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def scale(self) -> float:
        """Scale of the Gumbel noise that is equivalent: 1 / epsilon, half of the sensitivity times the noise multiplier."""
        return self.noise_multiplier

    @property
    def event(self) -> ResponseEvent:
        """Cost of one release."""
        return ResponseEvent(1 / self.noise_multiplier, self.n_options)

    def one_hot(self, option: IntArray) -> FloatArray:
        """(n_rows, n_options) the value of each row's true option (n_rows,)."""
        return np.asarray(np.arange(self.n_options) == np.asarray(option)[:, None], dtype=float)

    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) the answers.

        Raises:
          ValueError: a row is not 1 at one option and 0 at all others.
        """
        if value.shape[1:] != (self.n_options,) or not ((value == 0) | (value == 1)).all() or (value.sum(axis=1) != 1).any():
            raise ValueError(
                f"value must be 1 at one of {self.n_options} options and 0 at the others, in each row; see one_hot"
            )
        return noise.select(value, self.scale, GUMBEL)

    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, n_options) logarithm of the probability of each answer: exact."""
        return np.asarray(log_softmax(value / self.scale, axis=1))


@dataclass(frozen=True, slots=True)
class AboveThreshold(Selection):
    r"""Answers the number of the first query that is at least 0 with noise, or k if none of the k queries is.

    A public threshold is subtracted from the queries beforehand. Laplace noise of scale D / epsilon_1 is added to the
    threshold, and of scale 2 D / epsilon_2 to each query, or D / epsilon_2 if all queries can only move the same way
    (`is_monotone`); D is the sensitivity.

    Privacy: on a neighbor, let the noise of the threshold be larger by D, at a cost of epsilon_1. Then no negative answer
    becomes less likely, and the positive one needs its query's noise to be larger by at most 2 D, at a cost of epsilon_2.
    If all queries move up, D is enough; if all move down, the threshold may stay and D is enough. So the mechanism is
    epsilon-DP for epsilon = epsilon_1 + epsilon_2 = 1 / noise_multiplier, however many answers are negative. The budget is
    split as 1 : 2^(2/3), evenly if monotone, which makes the noise of a comparison least. It stops after a positive answer:
    another one is another release.

    Source: Lyu, Su, Li (2017), Algorithms 1 and 7 with one positive answer; Dwork and Roth (2014), Algorithm 1. Lyu et al.
    list variants that are not private: without noise on the queries, without a limit on positive answers, or with the noisy
    value of the positive query as the answer.
    """

    sensitivity_query: float
    noise_multiplier: float
    is_monotone: bool = False
    relation: Relation = Relation.REPLACE_RECORD

    norm = "largest change of a query"

    def __post_init__(self) -> None:
        positive("sensitivity_query", self.sensitivity_query)
        positive("noise_multiplier", self.noise_multiplier)

    @property
    def sensitivity(self) -> float:
        """The largest change of a query."""
        return self.sensitivity_query

    @property
    def scales(self) -> tuple[float, float]:
        """Scale of the noise on the threshold, and on each query."""
        reach = 1.0 if self.is_monotone else 2.0
        share = 1 / (1 + reach ** (2 / 3))  # of the threshold
        return self.scale / share, reach * self.scale / (1 - share)

    @property
    def event(self) -> PureEvent:
        """Cost of one release."""
        return PureEvent(1 / self.noise_multiplier)

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,), the largest change of a query; infinite where `is_monotone` is declared and queries move both ways."""
        moved = neighbor - value
        largest = np.abs(moved).max(axis=1)
        if not self.is_monotone:
            return np.asarray(largest)
        return np.where((moved.min(axis=1) < 0) & (moved.max(axis=1) > 0), np.inf, largest)

    def draw(self, noise: NoiseSource, value: FloatArray) -> IntArray:
        """(n_rows,) number of the first query (n_rows, k) above the threshold, k where there is none."""
        of_threshold, of_query = self.scales
        threshold = noise.add_laplace(np.zeros((len(value), 1)), of_threshold, of_threshold / self.sensitivity_query)
        return first_above(noise.add_laplace(value, of_query, of_query / self.sensitivity_query) >= threshold)

    def log_probabilities(self, value: FloatArray) -> FloatArray:
        """(n_rows, k + 1) logarithm of the probability of each answer."""
        return _by_rows(value, self._log_probabilities)

    def _log_probabilities(self, value: FloatArray) -> FloatArray:
        of_threshold, of_query = self.scales

        def log_products(places: FloatArray) -> FloatArray:
            above = places[:, :, None] - value[:, None, :]
            negative = np.cumsum(log_laplace_below(above, of_query), axis=2)
            before = np.concatenate([np.zeros_like(negative[:, :, :1]), negative], axis=2)
            positive_ = np.concatenate([log_laplace_below(-above, of_query), np.zeros_like(negative[:, :, :1])], axis=2)
            return np.asarray(before + positive_ + log_laplace_density(places, of_threshold)[:, :, None])

        centers = np.concatenate([value, np.zeros((len(value), 1))], axis=1)
        return log_integral(log_products, centers, max(self.scales))

    def without_noise(self, value: FloatArray) -> IntArray:
        """(n_rows,) number of the first query of at least 0, k where there is none."""
        return first_above(value >= 0)


def first_above(is_above: NDArray[np.bool_]) -> IntArray:
    """(n_rows,) number of the first true one of (n_rows, k), k where none is."""
    return np.asarray(np.where(is_above.any(axis=1), np.argmax(is_above, axis=1), is_above.shape[1]))


def _by_rows(value: FloatArray, log_probabilities: object) -> FloatArray:
    """The same row by row as at once, in as many parts as memory asks for; equal rows are computed once."""
    rows, place = np.unique(value, axis=0, return_inverse=True)
    size = max(1, _MOST_POINTS // (200 * (rows.shape[1] + 2) ** 2))
    parts = [log_probabilities(rows[start : start + size]) for start in range(0, len(rows), size)]  # type: ignore[operator]
    return np.asarray(np.concatenate(parts)[place.ravel()])
