r"""Noise of batched LSVI-UCB for a given budget, and bounds on its norms: as its paper prints them, or exact.

A run releases at each look the matrices of all H steps, in one release, and at each update a vector a step. Its budget is
mu^2 for Gaussian noise and epsilon for Laplace noise, both of which add up over what one user's episode enters: all updates,
and of the matrices one event in a factorized sum, or as many nodes of a tree as the number of looks has binary digits.

One budget can be spent in several ways, so that `printed` and `tight` can be taken apart. Each choice is made of the same
sensitivities, hence costs what it says:

  budget  that of the claim, split so that the widths at the last look are smallest; or what the printed noise really spends,
          matrices and each step's vectors apart (another sum, schedule or range of targets leaves these unchanged)
  sum     a tree over looks, or a factorized sum (Gaussian noise alone)
  norms   quantiles that are proved in `regression.norms`, or the printed ones, B_0 times the deviation of a node among them
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from bandana.algorithms.papers.luyo import depth, lsvi_printed_sds, lsvi_pure_printed_scales
from bandana.algorithms.regression.norms import goe_norm, laplace_matrix_norm, laplace_norm, normal_norm
from bandana.privacy_core import (
    ApproxDP,
    Event,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Mixture,
    PhaseTotal,
    PureDP,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.noise.sensitivities import matrix_l1_bound

GOE_WEIGHT = math.sqrt(0.5)
"""Weight of diagonal entries: noise of deviation s on D_ij and D_ii / sqrt 2 is the GOE's, and moves by |D|_F / sqrt 2."""
_UP = 1 + 1e-12


class Noise(NamedTuple):
    """Mechanisms that release the statistics, and bounds on the noise that they add."""

    matrices: TreeSum | FactorizedSum | PhaseTotal
    vectors: tuple[Mechanism, ...]
    diagonal_weight: float
    matrix_norms: tuple[float, ...]
    vector_norms: tuple[float, ...]


class Printed(NamedTuple):
    """Noise as the paper prints it, for B static batches."""

    matrix: float
    """Its sigma or scale on a node."""
    vector: float
    """That on a vector."""
    n_batches: int
    n_updates: int
    value: float
    """Largest target, of all steps but the last one, where it is 1."""


@dataclass(frozen=True)
class Releases:
    """Releases of a run, and noise for them.

    Attributes:
      promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise.
      dimension: d.
      n_looks: releases of the matrices.
      targets: (H,) how far a vector moves in L2 when a user is replaced: 2 max |y - c_h|, as features have norm at most 1.
      is_factorized: whether matrices are summed by a factorization, in place of a tree.
      horizon: K.
      failure: of all norms and of the rewards' part of the widths, a third each.
    """

    promise: ApproxDP | PureDP
    dimension: int
    n_looks: int
    targets: tuple[float, ...]
    is_factorized: bool
    horizon: int
    failure: float

    @property
    def is_pure(self) -> bool:
        """True if noise is Laplace's."""
        return isinstance(self.promise, PureDP)

    @property
    def length(self) -> int:
        """H."""
        return len(self.targets)

    @property
    def root(self) -> float:
        """Power p: for n releases at the cost of one, each needs n^p times the noise."""
        return 1.0 if self.is_pure else 0.5

    @property
    def n_nodes(self) -> int:
        """Releases of matrices that one user's episode enters."""
        return 1 if self.is_factorized else self.n_looks.bit_length()

    @property
    def diagonal_weight(self) -> float:
        """Weight of diagonal entries in the triangles."""
        return 1.0 if self.is_pure else GOE_WEIGHT

    @property
    def bounds(self) -> tuple[float, ...]:
        """(H,) sensitivities of the vectors: in L1 for Laplace noise, sqrt d times those in L2."""
        return tuple(math.sqrt(self.dimension) * y for y in self.targets) if self.is_pure else self.targets

    def matrices(self, multiplier: float) -> TreeSum | FactorizedSum:
        """The sum of matrices with the noise multiplier of one release.

        Of a step, phi phi^T - phi' phi'^T has sqrt 2 in the Frobenius norm at most, so 1 as GOE triangle, and the entries of
        the plain triangle add up to at most `matrix_l1_bound`; H steps add in squares, or in sizes.
        """
        mechanism: Mechanism
        if self.is_pure:
            mechanism = Laplace(self.length * matrix_l1_bound(self.dimension), multiplier)
        else:
            mechanism = Gaussian(math.sqrt(self.length), multiplier)
        return (FactorizedSum if self.is_factorized else TreeSum)(mechanism, self.n_looks)

    def vectors(self, multipliers: Sequence[float]) -> tuple[Mechanism, ...]:
        """Mechanisms that release each step's vector."""
        kind = Laplace if self.is_pure else Gaussian
        return tuple(kind(bound, each) for bound, each in zip(self.bounds, multipliers, strict=True))

    # --- the claim's budget ------------------------------------------------------------------------------------------

    @cached_property
    def level(self) -> float:
        """The claim's mu, or its epsilon."""
        if isinstance(self.promise, PureDP):
            return self.promise.epsilon
        return GaussianDP.from_epsilon_delta(self.promise.epsilon, self.promise.delta).mu

    def matrix_multiplier(self, share: float, scale: float) -> float:
        """Noise multiplier with which the matrices cost their share of 1, for a scale of 1."""
        return float((self.n_nodes / share) ** self.root) * scale

    def vector_multipliers(self, share: float, scale: float, updates: float) -> list[float]:
        """Noise multipliers with which the vectors of so many updates cost the rest, for a scale of 1.

        Steps share it so that the sum of the noise's scales is smallest: scales in proportion to the sensitivity to the
        power 2/3 (Gaussian) or 1/2 (Laplace).
        """
        parts = [bound ** (0.5 if self.is_pure else 2 / 3) for bound in self.bounds]
        total = sum(parts)
        return [float((updates * total / ((1 - share) * part)) ** self.root) * scale for part in parts]

    def calibrated(self, share: float, updates: int) -> float:
        """Scale at which everything together costs exactly the claim."""
        events = Counter[Event]({self.matrices(self.matrix_multiplier(share, 1.0)).mechanism.event: self.n_nodes})
        for mechanism in self.vectors(self.vector_multipliers(share, 1.0, updates)):
            events[mechanism.event] += updates
        return calibrate(self.promise, Mixture(events))

    # --- the printed budget ------------------------------------------------------------------------------------------

    def printed(self, n_batches: int, n_updates: int) -> Printed:
        """The printed noise, for B static batches with so many updates."""
        promise, length = self.promise, self.length
        if isinstance(promise, PureDP):
            scales = lsvi_pure_printed_scales(promise.epsilon, length, n_batches)
        else:
            scales = lsvi_printed_sds(promise.epsilon, promise.delta, length, n_batches)
        return Printed(*scales, n_batches, n_updates, length + 1.0)

    def printed_matrix_multiplier(self, printed: Printed) -> float:
        """Noise multiplier with which the matrices cost what the printed ones do."""
        unit = self.length * matrix_l1_bound(self.dimension) if self.is_pure else math.sqrt(2 * self.length)
        return printed.matrix / unit * _UP * self._matrix_factor(printed)

    def printed_vector_multipliers(self, printed: Printed, updates: float) -> list[float]:
        """Noise multipliers with which each step's vectors, at so many updates, cost what the printed ones do."""
        more = float((updates / printed.n_updates) ** self.root)
        return [printed.vector / bound * _UP * more for bound in self._printed_bounds(printed)]

    def _matrix_factor(self, printed: Printed) -> float:
        return float((self.n_nodes / printed.n_updates.bit_length()) ** self.root)

    def _printed_bounds(self, printed: Printed) -> tuple[float, ...]:
        unit = 2 * math.sqrt(self.dimension) if self.is_pure else 2.0
        return (unit * printed.value,) * (self.length - 1) + (unit,)

    # --- norms -------------------------------------------------------------------------------------------------------

    def matrix_norms(self, sums: TreeSum | FactorizedSum) -> tuple[float, ...]:
        """Bounds on the norms of a step's noise matrix, 0 at first and one a look; together they fail with a third."""
        looks, failure = range(1, self.n_looks + 1), self.failure / (3 * self.length) / self.n_looks
        if self.is_pure:
            scale, most = float(sums.mechanism.scale), self.n_looks.bit_length()
            by_nodes = {n: laplace_matrix_norm(self.dimension, n, failure) * scale for n in range(1, most + 1)}
            return (0.0, *(by_nodes[t.bit_count()] for t in looks))
        norm = goe_norm(self.dimension, failure)
        return (0.0, *(norm * sums.noise_deviation(t) for t in looks))

    def vector_norms(self, vectors: tuple[Mechanism, ...], updates: float) -> tuple[float, ...]:
        """(H,) bounds on the norms of the vectors' noise at so many updates; together they fail with a third."""
        quantile: Callable[[int, float], float] = laplace_norm if self.is_pure else normal_norm
        norm = quantile(self.dimension, self.failure / (3 * self.length) / updates)
        return tuple(float(mechanism.scale) * norm for mechanism in vectors)

    def printed_matrix_norms(
        self, sums: TreeSum | FactorizedSum | PhaseTotal, n_batches: int, sd: float | None
    ) -> tuple[float, ...]:
        """The printed bound Upsilon, the same at each look: deviation of a node times B_0, or that of the factorized sum."""
        d, log = self.dimension, self._log
        norm = 2 * d + 2 * math.sqrt(d * log) + log if self.is_pure else 4 * math.sqrt(d) + 2 * log
        levels: float = depth(n_batches)
        if self.is_factorized:
            levels = max(sums.noise_deviation(t) for t in range(1, self.n_looks + 1)) / float(sums.mechanism.scale)
        if sd is None:
            sd = float(sums.mechanism.scale) * (1.0 if self.is_pure else math.sqrt(2))
        return (0.0, *(sd * levels * norm,) * self.n_looks)

    def printed_vector_norms(self, sds: Sequence[float]) -> tuple[float, ...]:
        """(H,) the printed bounds for vectors whose noise has these scales."""
        d, log = self.dimension, self._log
        if self.is_pure:
            return tuple(sd * math.sqrt(d) * log for sd in sds)
        return tuple(sd * (math.sqrt(d) + 2 * math.sqrt(log)) for sd in sds)

    def printed_matrix_sd(self, printed: Printed) -> float:
        """The paper's sigma on a node, changed as the budget asks."""
        return printed.matrix * self._matrix_factor(printed)

    def printed_vector_sds(self, printed: Printed, updates: float) -> list[float]:
        """(H,) the paper's sigma on a vector, changed as the budget asks."""
        more = float((updates / printed.n_updates) ** self.root)
        return [
            printed.vector * more * (bound / old)
            for bound, old in zip(self.bounds, self._printed_bounds(printed), strict=True)
        ]

    @cached_property
    def _log(self) -> float:
        most = 6 * self.horizon * self.length
        return math.log(most * self.dimension / self.failure) if self.is_pure else math.log(most / self.failure)
