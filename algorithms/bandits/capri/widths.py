"""The confidence widths of CAPRI's epochs: exact, and as printed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import ndtri

from bandana.algorithms.bandits.capri import projection
from bandana.algorithms.bandits.capri.projection import Error, Projection
from bandana.algorithms.protocol import FloatArray


class Epoch(NamedTuple):
    """Parts of a confidence width: public."""

    length: int
    """T_r."""
    features: FloatArray
    """(n_points, n_features) phi."""
    projection: Projection
    rounds: FloatArray
    """(n_points,) expected rounds at each point; 0 where it cannot be played."""
    is_active: np.ndarray
    """(n_points,) bool, in any context."""
    deviation: float
    """Standard deviation of the noise in the sum of y v(w), in each coordinate."""


class Width(Protocol):
    """Confidence width: how far an estimate may be off."""

    def half_widths(self, epoch: Epoch) -> FloatArray:
        """(n_points,) half-widths of the intervals, at `beta_scale` 1."""
        ...


@dataclass(frozen=True, slots=True)
class ExactWidth:
    r"""A proved interval for each point.

    Given what was released before, the points w_t of an epoch are independent draws from a law that is known: the context
    from kappa, the action uniformly. So the estimate v(w)^T (sum_t y_t v(w_t) + noise) is a sum of independent terms, of
    mean and variance that can be computed (`projection.error`): with L = log(2 |W| R / failure), s the noise's deviation in
    a coordinate, a the largest weight of one reward,

        |f(w) - estimate| <= |f| bias(w) + sqrt(2 L (B^2 variance(w) + s^2 |v(w)|^2)) + B a(w) L / 3,

    except with probability failure / (|W| R), by Bernstein's inequality for variables bounded on one side (Boucheron, Lugosi
    and Massart 2013, Theorem 2.10), whose moment bound holds for the Gaussian part too. Where noise dominates, the same with
    half of the failure for the noise alone, z s |v(w)| with z = Phi^-1(1 - failure / (4 |W| R)), is shorter; the shorter is
    taken. It assumes that the pool's law is the law of the contexts; a law that is off by a factor of 1 +- u makes it off by
    about u.

    Attributes:
      reward_bound: B.
      norm_bound: of f.
      failure: probability that some interval of some epoch fails.
      n_epochs: R.
      error_scale: factor on B and |f| here, that is, on all but the privacy noise, whose law is known exactly.
    """

    reward_bound: float
    norm_bound: float
    failure: float
    n_epochs: int
    error_scale: float = 1.0

    def half_widths(self, epoch: Epoch) -> FloatArray:
        """(n_points,) half-widths by Bernstein's inequality, or with the noise's own quantile where that is shorter."""
        error = projection.error(epoch.features, epoch.projection.vectors, epoch.rounds)
        return self.of(error, epoch.deviation * epoch.projection.norm, len(error.bias))

    def of(self, error: Error, noise: FloatArray, n_points: int) -> FloatArray:
        """Half-widths for estimates with such errors and deviations of the noise, if there are n_points points in all."""
        share = self.failure / (2 * n_points * self.n_epochs)
        bound = self.error_scale * self.reward_bound
        variance = bound**2 * error.variance

        def bernstein(square: FloatArray, log: float) -> FloatArray:
            return np.sqrt(2 * log * square) + bound * error.weight * log / 3

        at_once = bernstein(variance + noise**2, math.log(1 / share))
        apart = bernstein(variance, math.log(2 / share)) - float(ndtri(share / 2)) * noise
        return np.asarray(self.error_scale * self.norm_bound * error.bias + np.minimum(at_once, apart))


@dataclass(frozen=True, slots=True)
class PrintedWidth:
    r"""The paper's constants: Delta_r = beta sigma_max + beta_1 sigma_max^2 for all points, whatever noise was added.

    An action stays if its estimate is at least the largest minus 4 Delta_r, which is to say that intervals of half-width 2
    Delta_r meet (2 Delta_r, half of it, would be enough for the paper's own proof).

    Attributes:
      beta: of Lemma 6.6.
      beta_1: of eq. (7) or of Lemma 6.6.
      is_local: under local privacy beta_1 grows with sqrt(T_r).
      error_scale: factor on beta, which is for all but the privacy noise.
    """

    beta: float
    beta_1: float
    is_local: bool
    error_scale: float = 1.0

    def half_widths(self, epoch: Epoch) -> FloatArray:
        """(n_points,) half-widths, all equal to the paper's 2 Delta_r."""
        largest = float(epoch.projection.spread[epoch.is_active].max())
        beta_1 = self.beta_1 * (math.sqrt(epoch.length) if self.is_local else 1.0)
        return np.full(len(epoch.rounds), 2 * (self.error_scale * self.beta * largest + beta_1 * largest**2))
