r"""Gaussian-process bandits on features of a kernel: GP-UCB under joint and under local privacy, and its twin.

User t offers points x_a of a domain; a reward lies in [low, high] and has the mean m + f(x), m the middle of the range. What
is learned is y = reward - m, |y| <= Y = (high - low)/2, as a linear function of Phi(x), |Phi(x)| <= 1, where the product of
Phi(x) and Phi(x') is within an error of the kernel k(x, x').

Source: Dubey (2021), "No-regret algorithms for private Gaussian process bandit optimization". Srinivas, Krause, Kakade and
Seeger (2010), "Gaussian process optimization in the bandit setting", for GP-UCB; Mutny and Krause (2018), "Efficient high
dimensional Bayesian optimization with additivity and quadrature Fourier features", for features in its place.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, Model
from bandana.algorithms.bandits.contextual.offers import UNIT_BALL, optimistic, or_else
from bandana.algorithms.papers.dubey import joint_printed_sd, local_printed_sds
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.regression import ridge_numba
from bandana.algorithms.regression.noisy_sums import NoisySums, exact_sums, printed_messages, printed_tree, private_sums
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.rkhs.features import FeatureMap
from bandana.privacy_core import ApproxDP, Interval, TrustModel
from bandana.privacy_core.checks import failure_of, one_of, positive

READINGS = ("lemma-2", "sketch", "lemma-12", "lemma-12-proof", "consistent")
"""Readings of the printed joint noise, five of them: see `bandana.algorithms.papers.dubey.joint_printed_sd`."""


@dataclass(frozen=True)
class GPUCB(LinUCB):
    r"""GP-UCB in the space of features: LinUCB whose actions are Phi(x), with what the features miss added to the width.

    After t rounds, with N_t and n_t the noise of the sums, q_t >= |N_t|, g_t >= |n_t|, a = lambda + q_t, b = lambda + 3 q_t,

        V = sum Phi Phi^T + N_t + (lambda + 2 q_t) I,      theta = V^-1 (sum y Phi + n_t),
        w = B sqrt(b) + R sqrt(2 log(2 n/failure) + log det V - m log a) + g_t / sqrt(a) + B e min(sqrt t, t / sqrt(a)),

    and a user is given argmax_x <theta, Phi(x)> + w |Phi(x)| in the norm of V^-1. Here m is the number of features, n as in
    `LinUCB`, e the kernel's error and B a bound on f = sum_i c_i k(x_i, .): sum |c_i| <= B, so that |theta*| <= B and the
    features miss f by at most B e (Lemmas 1 and 10). The last term is `misfit`; the paper has t B e / sqrt(a), which is
    larger from t = a on. Shift, a, b and w are made of public bounds and of V, which is released (the paper's eq. 22 has the
    determinant without noise, which leaks; its Theorem 1 the one with).

    Without noise and with an exact map (the linear kernel) this is `LinUCB`; with all points of a finite set as features, it
    is GP-UCB on them.

    Unit of privacy: one user's record, decision set and reward. What is protected: joint model, the actions of all *other*
    users; local model, the message that the user sends, Phi Phi^T and y Phi with noise. Claim: (epsilon, delta), neighbors
    that replace one record (Definitions 6 and 7). Sensitivity: features are shortened to norm 1 and rewards clipped, in
    whatever a record holds; what one can change is 1 + Y^2 for Y <= 1 and 2 Y above, in units of GOE noise of one scale
    (`JointGaussian`). The paper bounds |y| by a tail that holds with high probability over the rewards; a neighbor may hold
    any reward, so that without clipping no epsilon holds. Public: the kernel, hence the map, n_actions, T, the range.
    Cost a round: O(n_actions m^2 + m^3), and the map of the points: once for all rounds where the decision set is fixed and
    shared.

    Departures: said above, and in `GPUCBSettings.private`. In all forms rewards are centered, and y^2, which the paper's
    tree holds and nothing reads, is not released.

    Attributes:
      feature_map: Phi.
      preference: (n_reps, n_actions), of each replicate a permutation of the actions: of equally good ones the first in it
        is taken; None: the lowest. Public.
    """

    feature_map: FeatureMap = field(kw_only=True)
    preference: IntArray | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.feature_map.dimension != self.context_dimension:
            raise ValueError(
                f"feature_map takes points of dimension {self.feature_map.dimension}, context_dimension is "
                f"{self.context_dimension}: give both the dimension of the points"
            )

    @property
    def n_features(self) -> int:
        """Number of features of Phi: m."""
        return self.feature_map.n_features

    def offered(self, context: FloatArray) -> FloatArray:
        """(n_reps, n_actions, n_features) Phi of the points; computed once where all replicates share them."""
        return self.feature_map(context)

    def act(self, released: Model, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the actions with the largest upper confidence bound; of equal ones the first preferred."""
        offered = None if context is None else self.offered(context)
        return optimistic(released.estimate, released.inverse, released.width, offered, self.preference)

    def chosen(self, record: Record) -> FloatArray:
        """(n_reps, n_features) Phi of the point that was played, 0 where a replicate is done; in memory of its own."""
        points, actions = record.contexts, record.actions[:, 0]
        assert points is not None
        if points.strides[0] == 0:
            x = np.empty((len(points), self.n_features))
            ridge_numba.take(self.feature_map(points), actions, x)
        else:
            played = np.empty((len(points), self.context_dimension))
            ridge_numba.take(points, actions, played)
            x = self.feature_map(played)
        return UNIT_BALL.clip(np.where((record.n_records > 0)[:, None], x, 0.0))

    @property
    def inaccuracy(self) -> float:
        """B e: how far f may be from linear in Phi."""
        return self.parameter_bound * self.feature_map.error


@dataclass(frozen=True)
class GPUCBSettings(Bounded):
    """Settings that all forms of GP-UCB share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes: as in `LinUCBSettings`, and
      feature_map: Phi.
      norm_bound: B; None: half of the range.
    """

    n_actions: int
    feature_map: FeatureMap
    horizon: int
    reward_range: Interval
    ridge: float = 1.0
    failure: float | None = None
    norm_bound: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        failure_of(self.failure, self.horizon)
        positive("norm_bound", self._bound)

    def twin(self) -> GPUCB:
        """The non-private twin, GP-UCB on the same features."""
        return self._built(exact_sums())

    def private(
        self, promise: ApproxDP, trust: TrustModel, calibration: str | Mapping[str, str], reading: str = READINGS[-1]
    ) -> GPUCB:
        r"""The private form with the given promise: Algorithms 1 and 2 or, local, Algorithm 3.

        Under local privacy a user gets theta, V and the width, chooses by the own points, and sends (Phi Phi^T, y Phi) with
        noise; the server adds messages up. (Algorithm 3 prints that they are added to the exact sums, which no server has.)

        Args:
          promise: (epsilon, delta), epsilon above 0; the paper's alpha and beta.
          trust: joint or local.
          calibration:
            `printed`, joint: Lemma 2. A binary tree with noise (Z + Z^T)/sqrt 2 a node, Z of the deviation that `reading`
              names, with S = 1 + Y^2 (the rewards are bounded, so that rho is 0); norms and shift as in `printed_tree`
              (Lemma 3). Algorithm 2's words put noise on the leaves alone, with t noises in prefix t; what is meant is a
              noise of its own for each node. The paper does not center: for its rewards in [0, 1], Y = 1, declare the range
              [-1, 1].
            `printed`, local: Lemma 5. Every entry of the symmetric matrix gets noise of deviation sigma_X, of the vector
              sigma_u, sigma_X^2 = 8 ln(5 / (2 delta)) / epsilon^2, sigma_u^2 = 8 (B^2 + 2 ln(8 m / delta)) ln(5 / delta) /
              epsilon^2 (its "delta" is defined nowhere, and read as the claim's); norms and shift as in `printed_messages`
              with t = T throughout (Lemma 6), that of the vector in place of Lemma 6's kappa, whose units do not fit. The
              proof takes sensitivities sqrt 2 and 2 times too small. For |y| as large as the stated scale, |y|^2 <= B^2 + 2
              ln(8 m / delta), the claim holds up to epsilon = 7.9 (delta = 1e-5) and is false beyond: the ledger then shows
              more than the claim. For smaller rewards it holds further.
            `tree`, joint alone: the same tree, calibrated exactly, and sharper quantiles.
            `tight`: a factorized sum in place of the tree, one event a record and a fraction of the noise; or GOE noise of
              one scale at the exact budget of the joint message.
            a mixture of their parts: see `parts_of` and `private_sums`.
          reading: of the joint `printed`, one of `READINGS`. `consistent`, sigma^2 = 16 n S^2 ln(10/delta)^2 / epsilon^2
            with n = 1 + ceil(log2 T), is what the proof's own budgets ask for. Others are not what the claim needs: see
            `bandana calibrate gp-ucb`; where one is false, the ledger shows more than the claim.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        one_of("reading", reading, READINGS)
        printed = partial(self._printed, reading)
        return self._built(private_sums(promise, trust, calibration, printed, *self._shape))

    @property
    def _bound(self) -> float:
        return or_else(self._half, self.norm_bound)

    @property
    def _shape(self) -> tuple[int, int, float, float]:
        return self.feature_map.n_features, self.horizon, self._half, self._failure

    def _printed(self, reading: str, promise: ApproxDP, trust: TrustModel) -> NoisySums:
        level = promise.epsilon, promise.delta
        if trust is TrustModel.JOINT:
            return printed_tree(joint_printed_sd(*level, self.horizon, self._half, 0.0, reading), *self._shape)
        matrix_sd, vector_sd = local_printed_sds(*level, self.feature_map.n_features, self._bound)
        messages = printed_messages(matrix_sd, vector_sd / matrix_sd, *self._shape)
        return messages._replace(deviation=matrix_sd * math.sqrt(self.horizon))

    def _built(self, noisy: NoisySums) -> GPUCB:
        return GPUCB(
            self.n_actions, self.feature_map.dimension, self.reward_range, self.horizon, noisy.sums, self.ridge,
            self._failure, self._half, float(self._bound), *noisy[1:], self.beta_scale, feature_map=self.feature_map,
        )  # fmt: skip
