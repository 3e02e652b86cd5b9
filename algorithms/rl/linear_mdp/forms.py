"""Batched LSVI-UCB in all its forms: without noise, jointly private, purely so; as printed, and with exact noise.

What `printed` and `tight` share, and where they part:

  Noise: printed constants are 1e3 to 1e5 times what the exact accountant asks for at the same claim. `tight` splits the
    budget between matrices and vectors so that the bonus of a direction that was seen K / d times is smallest, and the
    vectors' part among steps so that the sum of their deviations is smallest: sigma_h in proportion to the sensitivity to
    the power 2/3 (Gaussian) or 1/2 (Laplace).
  Sums: `printed` has a tree over batches, `tight` a factorized sum (Gaussian) or the tree (Laplace).
  Values: `printed` moves all of them into [0, H], `tight` those of step h into [0, H - h + 1], which is all they can be.
  Centers: `tight` subtracts the middle of the interval in which the targets lie, (H - h + 1) / 2, and adds it again in Q.
    A constant is linear in the features of a linear MDP, as <phi, sum_s mu_h(s)> = 1, so nothing is lost, and the
    sensitivity of u is halved: H - h + 1 in place of 2 (H - h + 1).
  Matrix and vector prices are added up as those of separate releases; `papers.readings.separate_statistics` has the joint
    supremum, which is somewhat smaller: no user is worst for both.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from scipy.optimize import minimize_scalar

from bandana.algorithms.mdp.models import LinearModel
from bandana.algorithms.papers.luyo import depth, lsvi_batches, lsvi_printed_sds, lsvi_pure_batches, lsvi_pure_printed_scales
from bandana.algorithms.regression.norms import goe_norm, laplace_matrix_norm, laplace_norm, normal_norm
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.algorithms.rl.linear_mdp.batches import Schedule, determinant, geometric, static
from bandana.privacy_core import (
    ApproxDP,
    Event,
    Exact,
    FactorizedSum,
    Gaussian,
    GaussianDP,
    Laplace,
    Mechanism,
    Mixture,
    PhaseSum,
    PhaseTotal,
    PureDP,
    TreeSum,
    calibrate,
)
from bandana.privacy_core.checks import at_least, failure_of, one_of, positive
from bandana.privacy_core.sensitivities import matrix_l1_bound

SCHEMES = ("static", "geometric", "determinant")
"""When the policy is updated."""
GOE_WEIGHT = math.sqrt(0.5)
"""Weight of diagonal entries: noise of deviation s on D_ij and D_ii / sqrt 2 is the GOE's, and moves by |D|_F / sqrt 2."""
_UP = 1 + 1e-12


class Noise(NamedTuple):
    """What releases the statistics, and bounds on what it adds."""

    matrices: PhaseTotal | TreeSum | FactorizedSum
    vectors: tuple[Mechanism, ...]
    diagonal_weight: float
    matrix_norms: tuple[float, ...]
    vector_norms: tuple[float, ...]


@dataclass(frozen=True)
class LSVI:
    """Settings that all forms of batched LSVI-UCB share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes:
      model: features and H.
      horizon: K, episodes.
      batches: the scheme, one of `SCHEMES` (`bandana.algorithms.rl.linear_mdp.batches`); None: geometric, and static for
        `printed`.
      n_batches: one more than there are, or may be, updates; None: the scheme's own number. For static batches that is B of
        Appendix E.1 (epsilon of the claim, and 1 for the twin).
      switch: C, of the determinant scheme.
      ridge: lambda over d; the paper has lambda = d.
      failure: of the width; None: 1 / horizon.
      beta_scale: factor on the width.
    """

    model: LinearModel
    horizon: int
    batches: str | None = None
    n_batches: int | None = None
    switch: float = 1.0
    ridge: float = 1.0
    failure: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        failure_of(self.failure, self.horizon)
        positive("ridge", self.ridge)
        if self.batches is not None:
            one_of("batches", self.batches, SCHEMES)
        if self.n_batches is not None:
            at_least("n_batches", self.n_batches, 1)

    def twin(self) -> BatchedLSVI:
        """The non-private twin: the same algorithm on exact statistics."""
        schedule = self._schedule("geometric", lsvi_batches(1.0, *self._size))
        length = self.model.horizon
        matrices, zeros = PhaseTotal(PhaseSum(Exact())), (0.0,) * (len(schedule.looks) + 1)
        return self._clipped(schedule, Noise(matrices, (Exact(),) * length, GOE_WEIGHT, zeros, (0.0,) * length))

    def private(self, promise: ApproxDP | PureDP, calibration: str) -> BatchedLSVI:
        """The form under joint privacy with the given promise.

        Args:
          promise: approximate privacy, with Gaussian noise, or pure privacy, with Laplace noise on the upper triangles and
            on the vectors.
          calibration:
            `printed`, approximate: Appendix E.1. Static batches; node noise (Z + Z^T)/2, sigma_Lambda and sigma_u as
              printed; beta = 24 H sqrt(d (lambda + c_K)) log chi with chi of Lemma 20; shift c_K + Upsilon, where Upsilon
              has B_0 where sqrt B_0 would do. c_K is defined nowhere: eq. (20) needs c_K >= d Upsilon, and the stated rate
              no more, so c_K = d Upsilon. At any K up to 1e9 and more its bonus exceeds H: the policy explores and never
              uses what it learned.
            `printed`, pure: Appendix E.3, which gives orders; with the constants of E.2's proof and its L2 sensitivities,
              as `lsvi_pure_printed_scales` derives them. The L1 sensitivities that Laplace noise needs are larger by up to
              sqrt(d (d + 3)/2) / 2 and sqrt d. What is wasted elsewhere covers that up to about d = 16; beyond, with many
              updates, the claim is false and the ledger, which knows the right sensitivities, shows more than the claim.
            `tight`: see the module; any of the three schemes. For pure privacy with the right L1 sensitivities: sqrt(d (d +
              3)/2) a step for a matrix (`matrix_l1_bound`), sqrt d (H - h + 1) for a vector.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        is_printed = one_of("calibration", calibration, ("printed", "tight")) == "printed"
        if is_printed and self.batches not in (None, "static"):
            raise ValueError(f"printed is made for static batches: batches must be static or left out, got {self.batches!r}")
        own = (lsvi_pure_batches if isinstance(promise, PureDP) else lsvi_batches)(promise.epsilon, *self._size)
        schedule = self._schedule("static" if is_printed else "geometric", own)
        if not is_printed:
            return self._clipped(schedule, self._tight_noise(promise, schedule))
        return self._as_printed(schedule, self._printed_noise(promise, schedule, self.n_batches or own))

    @property
    def _size(self) -> tuple[int, int, int]:
        return self.horizon, self.model.horizon, self.model.dimension

    @property
    def _failure(self) -> float:
        return failure_of(self.failure, self.horizon)

    @property
    def _targets(self) -> tuple[float, ...]:
        """H - h + 1: the largest value from each step on, which is the largest target too."""
        return tuple(float(self.model.horizon - h) for h in range(self.model.horizon))

    def _schedule(self, usual: str, own: int) -> Schedule:
        """The schedule of the scheme that was asked for, or of the usual one."""
        match self.batches or usual:
            case "static":
                return static(self.horizon, own if self.n_batches is None else self.n_batches)
            case "geometric":
                return geometric(self.horizon, self.n_batches)
            case _:
                return determinant(self.horizon, self.n_batches, self.switch)

    def _clipped(self, schedule: Schedule, noise: Noise) -> BatchedLSVI:
        """The algorithm with values in [0, H - h + 1], centered targets and the proved width."""
        caps = self._targets
        return BatchedLSVI(
            self.model, self.horizon, schedule, *noise, caps, tuple(cap / 2 for cap in caps),
            self.ridge * self.model.dimension, 1.0, self._failure, beta_scale=self.beta_scale,
        )  # fmt: skip

    def _as_printed(self, schedule: Schedule, noise: Noise) -> BatchedLSVI:
        """The algorithm with values in [0, H], c_K = d Upsilon, and beta of Appendix E.1."""
        horizon, length, d = self._size
        least = self.ridge * d + d * noise.matrix_norms[1]
        longest = max(1.0, 2 * length * math.sqrt(d * horizon / least) + noise.vector_norms[0] / least)
        chi = 24**2 * 18 * horizon**2 * d * longest * length / self._failure
        beta = 24 * length * math.sqrt(d * least) * math.log(chi)
        return BatchedLSVI(
            self.model, horizon, schedule, *noise, (float(length),) * length, (0.0,) * length, self.ridge * d, float(d),
            self._failure, width=beta, beta_scale=self.beta_scale,
        )  # fmt: skip

    def _printed_noise(self, promise: ApproxDP | PureDP, schedule: Schedule, n_batches: int) -> Noise:
        horizon, length, d = self._size
        most = 6 * horizon * length
        kind: type[Gaussian | Laplace]
        if isinstance(promise, PureDP):
            matrix, vector = lsvi_pure_printed_scales(promise.epsilon, length, n_batches)
            log = math.log(most * d / self._failure)
            norm, vector_norm = 2 * d + 2 * math.sqrt(d * log) + log, vector * math.sqrt(d) * log
            kind, weight, unit = Laplace, 1.0, 2 * math.sqrt(d)
            whole = length * matrix_l1_bound(d)
            multiplier = matrix / whole
        else:
            matrix, vector = lsvi_printed_sds(promise.epsilon, promise.delta, length, n_batches)
            log = math.log(most / self._failure)
            norm, vector_norm = 4 * math.sqrt(d) + 2 * log, vector * (math.sqrt(d) + 2 * math.sqrt(log))
            kind, weight, unit = Gaussian, GOE_WEIGHT, 2.0
            whole, multiplier = math.sqrt(length), matrix / math.sqrt(2 * length)
        bounds = (unit * (length + 1),) * (length - 1) + (unit,)
        return Noise(
            TreeSum(kind(whole, multiplier * _UP), schedule.most_updates),
            tuple(kind(bound, vector / bound * _UP) for bound in bounds),
            weight,
            (0.0, *(matrix * depth(n_batches) * norm,) * len(schedule.looks)),
            (vector_norm,) * length,
        )

    def _tight_noise(self, promise: ApproxDP | PureDP, schedule: Schedule) -> Noise:
        """Noise at exactly the promise, split so that the sum of the steps' widths at the last look is smallest.

        Once K is large, bonuses are in proportion to it.
        """
        if isinstance(promise, PureDP):
            at, level, nodes = partial(self._laplace, schedule), promise.epsilon, len(schedule.looks).bit_length()
        else:
            level = GaussianDP.from_epsilon_delta(promise.epsilon, promise.delta).mu
            at, nodes = partial(self._gaussian, schedule), 1

        def size(share: float) -> float:
            built = replace(self, beta_scale=1.0)._clipped(schedule, at(share, 1 / level))
            return float(built.widths(len(schedule.looks)).sum())

        found = minimize_scalar(size, bounds=(1e-3, 1 - 1e-3), method="bounded", options={"xatol": 1e-4})
        share = float(found.x)
        unit = at(share, 1.0)
        events = Counter[Event]({unit.matrices.mechanism.event: nodes})
        for mechanism in unit.vectors:
            events[mechanism.event] += schedule.most_updates
        return at(share, calibrate(promise, Mixture(events)))

    def _gaussian(self, schedule: Schedule, share: float, scale: float) -> Noise:
        """A factorized sum of matrices and fresh noise on each vector.

        At a scale of 1 all together are 1-GDP, of which the matrices have the share in mu^2.
        """
        length, d = self.model.horizon, self.model.dimension
        parts = [bound ** (2 / 3) for bound in self._targets]
        total, updates = sum(parts), schedule.most_updates
        matrices = FactorizedSum(Gaussian(math.sqrt(length), 1 / math.sqrt(share) * scale), len(schedule.looks))
        vectors = tuple(
            Gaussian(bound, math.sqrt(updates * total / ((1 - share) * part)) * scale)
            for bound, part in zip(self._targets, parts, strict=True)
        )
        matrix_failure, vector_failure = self._failures(schedule)
        norm, vector_norm = goe_norm(d, matrix_failure), normal_norm(d, vector_failure)
        norms = (0.0, *(norm * matrices.noise_deviation(t) for t in range(1, len(schedule.looks) + 1)))
        return Noise(matrices, vectors, GOE_WEIGHT, norms, tuple(m.scale * vector_norm for m in vectors))

    def _laplace(self, schedule: Schedule, share: float, scale: float) -> Noise:
        """A tree of triangles and fresh noise on each vector.

        At a scale of 1 all together are 1-DP, of which the matrices have the share.
        """
        d, looks, updates = self.model.dimension, len(schedule.looks), schedule.most_updates
        whole, bounds = self.model.horizon * matrix_l1_bound(d), [math.sqrt(d) * y for y in self._targets]
        nodes, total = looks.bit_length(), sum(math.sqrt(bound) for bound in bounds)
        node = Laplace(whole, nodes / share * scale)
        vectors = tuple(Laplace(bound, updates * total / ((1 - share) * math.sqrt(bound)) * scale) for bound in bounds)
        matrix_failure, vector_failure = self._failures(schedule)
        by_nodes = {n: laplace_matrix_norm(d, n, matrix_failure) * node.scale for n in range(1, nodes + 1)}
        norms = (0.0, *(by_nodes[t.bit_count()] for t in range(1, looks + 1)))
        vector_norm = laplace_norm(d, vector_failure)
        return Noise(TreeSum(node, looks), vectors, 1.0, norms, tuple(m.scale * vector_norm for m in vectors))

    def _failures(self, schedule: Schedule) -> tuple[float, float]:
        """A third of the failure each, for every step's matrix at every look and for every vector that is released."""
        third = self._failure / (3 * self.model.horizon)
        return third / len(schedule.looks), third / schedule.most_updates
