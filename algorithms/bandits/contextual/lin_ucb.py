"""LinUCB with noisy sums, and its forms: the twin, joint and local privacy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.contextual.offers import (
    UNIT_BALL,
    Sensitive,
    centered,
    check_shape,
    features_of,
    optimistic,
    or_else,
    within_ball,
)
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.regression.noisy_sums import (
    NoisySums,
    exact_sums,
    parts_of,
    printed_messages,
    printed_tree,
    private_sums,
)
from bandana.algorithms.regression.norms import Bounded
from bandana.algorithms.regression.private_ridge import PrivateRidge, Regularizer
from bandana.privacy_core import ApproxDP, Interval, JointGaussian, Ledger, PrivateSum, TrustModel
from bandana.privacy_core.checks import failure_of, non_negative, positive, probability


class Model(NamedTuple):
    """All that LinUCB decides from; a function of noisy sums."""

    estimate: FloatArray
    """(n_reps, d) of theta."""
    inverse: FloatArray
    """(n_reps, d, d) inverse of the noisy, shifted Gram matrix."""
    width: FloatArray
    """(n_reps,) radius of the confidence ellipsoid."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""


@dataclass(frozen=True)
class LinUCB(DecidesEachRecord):
    r"""LinUCB on noisy sums of x x^T and y x, both released after every round.

    After t rounds theta, V and the width w are those of `PrivateRidge`, with C = B and one regression: with N_t and n_t the
    noise of the sums and q_t >= |N_t| a quantile, V = sum x x^T + N_t + (lambda + 2 q_t) I and theta = V^-1 (sum y x + n_t).

    Unit of privacy: one user's record, contexts and reward. What is protected: joint model, the actions of all *other* users
    (a user's own action may depend on the own contexts); local model, the message that the user sends, x x^T and y x with
    noise. Claim: (epsilon, delta), for neighbors that replace one record.
    Sensitivity: x is shortened to norm 1 and the reward clipped, whatever the record holds, so that |x| <= 1 and |y| <= Y =
    (high - low)/2; what one (x, y) can change is derived in `JointGaussian`: with GOE noise of scale s on the matrix and s
    on the vector (1 + Y^2)/s for Y <= 1, which is less than both worst cases added. A tree costs sqrt(T.bit_length()) times
    that, a factorized sum and a local message cost it once. Public: arms, d, T, the range. Cost a round: O(n_actions d^2 +
    d^3).

    Departures: see `LinUCBSettings.private`. In all forms rewards are centered on the middle of the range, and the twin's
    ridge is added, so that without noise this is LinUCB (OFUL, Abbasi-Yadkori et al. 2011) to the last digit.

    Attributes:
      n_actions: number of actions of each user.
      context_dimension: d.
      reward_range: declared range of a reward; every reward is clipped to it.
      horizon: T, most rounds.
      sums: of (x x^T, y x) in the shape (d, d + 1), closed after every round.
      ridge: lambda.
      failure: of the width.
      reward_scale: R.
      parameter_bound: B, of |theta|.
      matrix_norm: q_t in units of the deviation of the noise in one entry.
      vector_norm: g_t >= |n_t| in the same units.
      deviation: of the noise in one entry, a bound for all t; None: what `sums` says for each t.
      beta_scale: factor on the width.
    """

    n_actions: int
    context_dimension: int
    reward_range: Interval
    horizon: int
    sums: PrivateSum
    ridge: float
    failure: float
    reward_scale: float
    parameter_bound: float
    matrix_norm: float
    vector_norm: float
    deviation: float | None = None
    beta_scale: float = 1.0

    regressor: ClassVar[type[PrivateRidge]] = PrivateRidge
    """Its shift is that of the form."""

    def __post_init__(self) -> None:
        check_shape(self.n_actions, self.context_dimension, self.horizon)
        for name in ("ridge", "reward_scale", "parameter_bound"):
            positive(name, getattr(self, name))
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)

    @property
    def most_updates(self) -> int:
        """Number of times that the model changes: after each round."""
        return self.horizon

    @property
    def n_features(self) -> int:
        """Dimension of x, what is learned from: here the context itself."""
        return self.context_dimension

    def offered(self, context: FloatArray) -> FloatArray:
        """(n_reps, n_actions, n_features) x of each action, of norm at most 1."""
        return within_ball(context)

    def chosen(self, record: Record) -> FloatArray:
        """(n_reps, n_features) x of the action that was played, of norm at most 1; 0 where a replicate is done."""
        return UNIT_BALL.clip(features_of(record))

    def contribution(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """(n_reps, n_features) x and (n_reps,) y of the record, within the bounds that the noise is made for."""
        return self.chosen(record), centered(record, self.reward_range)

    def statistic(self, released: Model, record: Record) -> FloatArray:
        """(n_reps, n_features, n_features + 1) what the record adds to the sums."""
        return JointGaussian.statistic(*self.contribution(record))

    @property
    def inaccuracy(self) -> float:
        """Distance that a mean reward may be from linear in x: here it is not."""
        return 0.0

    def misfit(self, step: int) -> float:
        """Term that the width must add after `step` rounds where mean rewards are linear in x but nearly.

        Means that are missed by b_s, |b_s| <= `inaccuracy`, move V theta by sum b_s x_s, whose norm in V^-1 is at most the
        norm of b as V >= sum x x^T, and at most sum |b_s| / sqrt a.
        """
        if self.inaccuracy == 0:
            return 0.0
        return self.inaccuracy * min(math.sqrt(step), step / math.sqrt(self.shift(step).least))

    def init(self, n_reps: int) -> tuple[Sensitive, Model]:
        """The states before the first round."""
        d = self.n_features
        model = Model(np.zeros((n_reps, d)), np.zeros((n_reps, d, d)), np.zeros(n_reps), np.zeros(n_reps, dtype=np.int64))
        self._learn(model, np.zeros((n_reps, d, d + 1)), 0)
        return Sensitive(self.sums.init(n_reps, (d, d + 1))), model

    def act(self, released: Model, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the actions with the largest upper confidence bound (ties: the lowest)."""
        offered = None if context is None else self.offered(context)
        return optimistic(released.estimate, released.inverse, released.width, offered)

    def absorb(self, sensitive: Sensitive, released: Model, record: Record, ledger: Ledger) -> tuple[Sensitive, Model]:
        """Adds the record, releases the sums, and solves for theta."""
        value = self.statistic(released, record)
        state, noisy, _ = self.sums.close(self.sums.add(sensitive.sum, value, record.n_records), ledger)
        np.add(released.clock, record.n_records, out=released.clock)
        self._learn(released, noisy, int(released.clock[0]))
        return Sensitive(state), released

    @cached_property
    def regression(self) -> PrivateRidge:
        """The regression, with bounds on its noise after each update."""
        return self.regressor(
            self.n_features,
            self.ridge,
            self.most_updates,
            self._noise,
            self.reward_scale,
            self.parameter_bound,
            self.failure,
        )

    def _noise(self, step: int) -> tuple[float, float]:
        """q_t and g_t; before the first release there is no noise."""
        deviation = 0.0 if step == 0 else self.sums.noise_deviation(step) if self.deviation is None else self.deviation
        return self.matrix_norm * deviation, self.vector_norm * deviation

    def shift(self, step: int) -> Regularizer:
        """The regularizer after `step` rounds."""
        return self.regression.regularizer(step)

    @property
    def regularizers(self) -> tuple[float | None, int]:
        """The a' and n of the width; None for a' = a."""
        floor, n = self.regression.regularizers
        return None if np.isnan(floor) else float(floor), int(n)

    def _learn(self, model: Model, statistic: FloatArray, step: int) -> None:
        """Fills the model from noisy sums (n_reps, d, d + 1)."""
        log_det = self.regression.fit(statistic, step, model.estimate, model.inverse)
        np.copyto(model.width, self.beta_scale * (self.regression.radius(log_det, step) + self.misfit(step)))

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most `failure`, at every horizon; all constants are explicit.

        Whatever the contexts are, as long as |theta| <= B. With theta in every ellipsoid a round costs at most 2 w_t u_t,
        u_t the norm of the chosen x in V_t^-1, and never more than the range's width D; the first one at most D. As V_t is
        at least sum x x^T + a I, a the least a_t after a release, sum_t min(1, u_t^2) is at most log2 det(I + sum x x^T /
        a), since min(1, u) <= log2(1 + u); and det V_t is at most its trace over d, to the power d. With s the scale of the
        width and W_T the largest bound on w_t / s up to T,

            R_T <= D + max(D, 2 s W_T) sqrt(T G_T / log 2),    G_T = d log(1 + T / (a d)),
            w_t / s <= R sqrt(2 log(2 n/failure) + d log((t / d + b_t) / a')) + B sqrt(b_t) + g_t / sqrt(a_t),

        and R_T <= D T. Where means are linear in x but for e, `inaccuracy`, the width has `misfit` more, and T rounds 2 e T.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1: then nothing is proved.

        Source: Shariff and Sheffet (2018), the proof of their regret theorem, with the constants; Abbasi-Yadkori, Pal and
        Szepesvari (2011), Lemma 11.
        """
        if self.beta_scale < 1:
            raise ValueError(f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}")
        rounds, d = np.asarray(horizon, dtype=float), self.n_features
        steps = np.arange(int(rounds.max(initial=1.0)))  # rounds played before each
        _, least, largest = self.regression.regularizer(steps)
        width = self.regression.radius(d * np.log(steps / d + largest), steps)
        width += np.array([self.misfit(int(t)) for t in steps])
        widest = np.maximum.accumulate(width)[np.maximum(rounds.astype(np.int64), 1) - 1]
        growth = d * np.log1p(rounds / (d * least[1:].min(initial=least.max())))
        span = self.reward_range.width
        cost = np.maximum(span, 2 * self.beta_scale * widest) * np.sqrt(rounds * growth / math.log(2))
        return np.asarray(np.minimum(span * rounds, span + cost + 2 * self.inaccuracy * rounds))


@dataclass(frozen=True)
class LinUCBSettings(Bounded):
    """Settings that all forms of LinUCB share.

    Raises ValueError where one is out of its range; the message names it.

    Attributes:
      n_actions: of each user, at least 2.
      dimension: d of the contexts.
      horizon: T, rounds.
      reward_range: declared range of a reward.
      ridge: lambda.
      failure: of the width; None: 1 / horizon.
      parameter_bound: of |theta|; None: half of the range.
      beta_scale: factor on the width.
    """

    n_actions: int
    dimension: int
    horizon: int
    reward_range: Interval
    ridge: float = 1.0
    failure: float | None = None
    parameter_bound: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        check_shape(self.n_actions, self.dimension, self.horizon)
        failure_of(self.failure, self.horizon)

    def twin(self) -> LinUCB:
        """The non-private twin: LinUCB with the confidence width of OFUL."""
        return self._built(exact_sums())

    def private(self, promise: ApproxDP, trust: TrustModel, calibration: str | Mapping[str, str]) -> LinUCB:
        r"""The private form with the given promise: after Shariff and Sheffet (2018) or, local, after Zheng et al. (2020).

        Under local privacy a user gets theta, V and the width, chooses by the own contexts, and sends (x x^T, y x) with
        noise; the server adds up messages. Its noise grows with sqrt t, the shift with it.

        Args:
          promise: (epsilon, delta), epsilon above 0.
          trust: joint or local.
          calibration:
            `printed`, joint: the Gaussian variant. A binary tree over the (d + 1, d + 1) matrices [x, y]^T [x, y], m = 1 +
              ceil(log2 T) levels, noise (Z + Z^T)/sqrt 2 a node with Z of variance sigma^2 = 16 m (1 + Y^2)^2
              ln(4/delta)^2 / epsilon^2; norms and shift as in `printed_tree`. The entry y^2, which nothing uses, is not
              released; that costs and adds nothing.
            `as-known`, local: every entry of the symmetric matrix, and of the vector, gets noise of deviation sigma = 4
              sqrt(2 ln(1.25/delta)) / epsilon; norms and shift as in `printed_messages`. We could not read the text; this
              is the formula that the authors' public code states. The code itself leaves out the sqrt 2, and has less
              noise by that factor. It is made for |y| <= 1. We keep the width of `LinUCB`: theirs, with a factor d log T
              on the noise, has no use at any T in reach.
            `tree`, joint alone: the same tree, calibrated exactly, and sharper quantiles.
            `tight`: a factorized sum in place of the tree, one event a record and a fraction of the noise; or GOE noise at
              the exact budget of the joint message.
            A mixture of their parts: see `bandana.algorithms.regression.noisy_sums.parts_of`.

        Raises:
          ValueError: an argument or a setting out of its range; the message names it.
        """
        parts = parts_of(calibration, trust, "as-known" if trust is TrustModel.LOCAL else "printed")
        return self._built(private_sums(promise, trust, parts, self._published, *self._shape))

    @property
    def _shape(self) -> tuple[int, int, float, float]:
        return self.dimension, self.horizon, self._half, self._failure

    def _published(self, promise: ApproxDP, trust: TrustModel) -> NoisySums:
        epsilon, delta = promise.epsilon, promise.delta
        if trust is TrustModel.JOINT:
            m = 1 + math.ceil(math.log2(self.horizon))
            sigma = 4 * math.sqrt(m) * (1 + self._half**2) * math.log(4 / delta) / epsilon
            return printed_tree(sigma, *self._shape)
        if self._half > 1:
            raise ValueError(f"as-known is made for a range of width 2 at most, got {self.reward_range}: use 'tight'")
        return printed_messages(4 * math.sqrt(2 * math.log(1.25 / delta)) / epsilon, 1.0, *self._shape)

    def _built(self, noisy: NoisySums) -> LinUCB:
        return LinUCB(
            self.n_actions, self.dimension, self.reward_range, self.horizon, noisy.sums, self.ridge, self._failure,
            self._half, or_else(self._half, self.parameter_bound), *noisy[1:], self.beta_scale,
        )  # fmt: skip
