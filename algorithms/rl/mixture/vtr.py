r"""UCRL-VTR: learning where actions lead in a linear-mixture MDP, under joint, local and pure privacy, and its twin.

A user lives through an episode of H steps. Transitions are p_h(s'|s, a) = <phi(s'|s, a), w_h> with public features and
unknown w_h, rewards r_h(s, a) are public.

Sources: Luyo, Garcelon, Lazaric and Pirotta, "Differentially private exploration in reinforcement learning with linear
representation", Algorithm 1, Theorem 7, Corollaries 5 and 6. Ayoub, Jia, Szepesvari, Wang and Yang (2020), "Model-based
reinforcement learning with value-targeted regression", for UCRL-VTR. Shariff and Sheffet (2018), "Differentially private
contextual linear bandits", for the noise and the shift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.mdp.models import MixtureModel, PlaysOnModel
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.regression.noise_norms import NoiseNorms
from bandana.algorithms.regression.private_ridge import PrivateRidge, Regularizer
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.rl.mixture.targets import Targets
from bandana.privacy_core import Interval, Ledger, PrivateSum, StackedLaplace
from bandana.privacy_core.checks import at_least, non_negative, positive, probability


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    sum: Any
    """Sums of (x x^T, y x) in all blocks: the state of the algorithm's sum."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums."""

    policy: IntArray
    """(n_reps, horizon, n_states) the action in each state."""
    values: FloatArray
    """(n_reps, horizon + 1, n_states) optimistic values."""
    estimate: FloatArray
    """(n_reps, n_blocks, d) of the parameters."""
    inverse: FloatArray
    """(n_reps, n_blocks, d, d) inverse of the noisy, shifted Gram matrix."""
    width: FloatArray
    """(n_reps, n_blocks) radius of the confidence ellipsoid."""
    clock: IntArray
    """(n_reps,) episodes played; the same in all replicates."""


@dataclass(frozen=True)
class UCRLVTR(PlaysOnModel, DecidesEachRecord):
    r"""UCRL-VTR on noisy sums of x x^T and y x for each step, all released at once after every episode.

    Before episode k the values V_h of all steps are planned backwards: with c the center of a step's `targets`, x =
    phi_(V_(h+1) - c)(s, a) and y = V_(h+1)(s') - c, whose mean is <x, w_h>,

        Q_h(s, a) = r_h(s, a) + c + <x, w> + beta |x|,     V_h(s) = max_a Q_h(s, a), moved into [low_h, high_h],

    the norm in Lambda^-1, and the user takes the action of the largest Q_h in each state. Then the user's x_h, y_h enter the
    sums. Lambda (its V), w (its theta) and beta (its w) are those of `PrivateRidge`, with lambda R^2 for lambda, R the bound
    on |x|, half the range of the values for its R, and C = C_w. Its bound holds as the values of an episode are functions of
    earlier ones. Before the first release Lambda is lambda R^2 I.

    Unit of privacy: one user's whole episode, every step's state and action, in whatever the user's tree would have
    answered. What is protected: joint model, the actions of all other users and the final policy; local model, the message
    that the user sends, (x x^T, y x) of all steps with noise. Claim: (epsilon, delta), or epsilon where noise is Laplace's,
    for neighbors that replace one episode (Corollaries 5, 6, Remark 1). The values of an episode are functions of what was
    released before it, so that releases compose adaptively. Sensitivity: x is shortened to R and y clipped, whatever the
    record holds; all steps' pairs are one release, and what one episode can change is derived in `StackedGaussian` and
    `StackedLaplace`. Public: features, rewards, H, K. Realized rewards are not used. Cost an episode: O(H S A (S d + d^2) +
    H d^3).

    Departures, all in the builders but two. The proof bounds the norm of (N + shift) w in Lambda^-1 by b C_w / sqrt a; it is
    at most sqrt(b) C_w. All steps of a user are one release, where the paper composes 2 H of them.

    Attributes:
      model: features, rewards, and C_w.
      horizon: K, most episodes.
      reward_range: declared range of a reward.
      sums: of (x x^T, y x) in the shape (n_blocks, d, d + 1), closed after every episode.
      norms: of the noise in them.
      targets: the regressions.
      shares: (n_blocks,) deviation of each block's noise over that which `norms` and `sums` state.
      ridge: lambda.
      failure: of the width.
      is_published: whether `norms` are the printed bounds on the noise, and the width that of the paper.
      beta_scale: factor on the width.
      preference: (n_reps, n_actions), of each replicate a permutation of the actions: of equally good ones the first in it
        is taken; None: the lowest. Public.
    """

    model: MixtureModel
    horizon: int
    reward_range: Interval
    sums: PrivateSum
    norms: NoiseNorms
    targets: Targets
    shares: tuple[float, ...]
    ridge: float = 1.0
    failure: float = 0.01
    is_published: bool = False
    beta_scale: float = 1.0
    preference: IntArray | None = None

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        positive("ridge", self.ridge)
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)
        if len(self.shares) != self.n_blocks:
            raise ValueError(f"shares must name {self.n_blocks} blocks, got {len(self.shares)}")

    @property
    def n_blocks(self) -> int:
        """Number of regressions."""
        return self.targets.n_blocks

    @property
    def regressor_bounds(self) -> FloatArray:
        """(n_blocks,) R, bound on |x| of each regression."""
        return np.array(self.targets.norm_bound)

    @property
    def ridges(self) -> FloatArray:
        """(n_blocks,) regularizers lambda R^2."""
        return np.asarray(self.ridge * self.regressor_bounds**2)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The state before the first episode."""
        shape, d = (n_reps, self.n_blocks), self.model.dimension
        released = Released(
            np.zeros((n_reps, self.episode_length, self.n_states), dtype=np.int64),
            np.zeros((n_reps, self.episode_length + 1, self.n_states)),
            np.zeros((*shape, d)),
            np.zeros((*shape, d, d)),
            np.zeros(shape),
            np.zeros(n_reps, dtype=np.int64),
        )
        self.learn(released, np.zeros((*shape, d, d + 1)), 0)
        return Sensitive(self.sums.init(n_reps, (shape[1], d, d + 1))), released

    def act(self, released: Released, context: IntArray, step: int) -> IntArray:
        """(n_reps,) the policy's actions in the states (n_reps,)."""
        return np.asarray(released.policy[np.arange(len(context)), step, context])

    def contribution(self, released: Released, record: Record) -> FloatArray:
        """(n_reps, n_blocks, d, d + 1) of the record, within the bounds that the noise is made for."""
        if record.states is None:
            raise ValueError("this algorithm learns from episodes, and the stream has none")
        out = np.empty((len(record.user), self.n_blocks, self.model.dimension, self.model.dimension + 1))
        value_targets_numba.contribute(
            self.model.features, *self._aims, released.values, record.states, record.actions, out
        )  # fmt: skip
        return out

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the episode, releases the sums, and plans."""
        value = self.contribution(released, record)
        state, noisy, _ = self.sums.close(self.sums.add(sensitive.sum, value, record.n_records), ledger)
        np.add(released.clock, record.n_records, out=released.clock)
        self.learn(released, noisy, int(released.clock[0]))
        return Sensitive(state), released

    def learn(self, released: Released, statistic: FloatArray, step: int) -> None:
        """Regresses and plans from noisy sums (n_reps, n_blocks, d, d + 1), after `step` episodes."""
        log_det = self.regression.fit(statistic, step, released.estimate, released.inverse)
        np.copyto(released.width, self.beta_scale * self.radius(log_det, released.inverse, step))
        order = self.preference
        if order is None:
            order = np.empty((len(statistic), self.n_actions), dtype=np.int64)
            order[:] = np.arange(self.n_actions)
        value_targets_numba.plan(
            *self._public, order, released.estimate, released.inverse, released.width, released.policy, released.values
        )  # fmt: skip

    def radius(self, log_det: FloatArray, inverse: FloatArray, step: int) -> FloatArray:
        """(n_reps, n_blocks) beta after `step` episodes, where Lambda has these log-determinants and this inverse."""
        if self.is_published:
            return np.broadcast_to(self.published(step), log_det.shape)
        return self.regression.radius(log_det, step)

    def published(self, step: int) -> FloatArray:
        """(n_blocks,) the width of Corollaries 5 and 6, for all episodes, with |y| <= Y and R where they have H.

        3 (C_w + 1) sqrt(lambda R^2 + U) + sqrt(2 Y^2 log(3H (1 + KH)^(d/2) / p)), U the printed bound on the noise.
        """
        log = math.log(3 * self.episode_length / self.failure)
        log += self.model.dimension / 2 * math.log1p(self.horizon * self.episode_length)
        chance = np.sqrt(2 * np.array(self.targets.value_bound) ** 2 * log)
        return np.asarray(self._published_noise + chance)

    @property
    def _published_noise(self) -> FloatArray:
        """(n_blocks,) the part of a printed width that is due to shift and noise."""
        return np.asarray(3 * (self.model.parameter_bound + 1) * np.sqrt(self.ridges + self._noise(1)[0]))

    @property
    def noise_scale(self) -> FloatArray:
        """(n_blocks,) sub-Gaussian scales S of the regressions' targets."""
        return np.array(self.targets.spread)

    @property
    def _radius_failure(self) -> float:
        """Failure that the regressions' own radii are made for, of which they use half."""
        return self.failure

    @cached_property
    def regression(self) -> PrivateRidge:
        """The regressions, with bounds on their noise after each episode."""
        return PrivateRidge(
            self.model.dimension, self.ridges, self.horizon, self._noise, self.noise_scale, self.model.parameter_bound,
            self._radius_failure,
        )  # fmt: skip

    def _noise(self, step: int) -> tuple[FloatArray, FloatArray]:
        """(n_blocks,) q_k and (n_blocks,) g_k; before the first release there is no noise."""
        matrix, vector = self.norms.bounds(self.sums, step) if step else (0.0, 0.0)
        shares, ratio = np.array(self.shares), getattr(self._mechanism, "vector_ratio", 1.0)
        return matrix * shares, vector * ratio * shares

    @property
    def _mechanism(self) -> Any:
        sums: Any = self.sums
        return sums.mechanism

    def shift(self, step: int) -> Regularizer:
        """(n_blocks,) each: the regularizers after `step` episodes."""
        return self.regression.regularizer(step)

    @cached_property
    def _aims(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Steps, centers and bounds of the regressions, as arrays for compiled code."""
        t = self.targets
        return np.array(t.steps, dtype=np.int64), np.array(t.center), np.array(t.norm_bound), np.array(t.value_bound)

    @cached_property
    def _public(self) -> tuple[FloatArray, FloatArray, IntArray, FloatArray, FloatArray, FloatArray]:
        """Public quantities that planning needs beside what is released."""
        model, t = self.model, self.targets
        return (
            value_targets_numba.by_next_state(np.asarray(model.features)),
            np.ascontiguousarray(np.asarray(model.rewards).reshape(model.horizon, -1)),
            t.block_of_step(model.horizon), np.array(t.center), np.array(t.low), np.array(t.high),
        )  # fmt: skip

    @property
    def largest_deviation(self) -> FloatArray:
        """(targets.n_blocks,) the largest factor by which a step's x is divided before it is regressed: 1."""
        return np.ones(self.targets.n_blocks)

    @property
    def why_unproved(self) -> str | None:
        """Why there is no regret bound; None where there is one."""
        if self.beta_scale < 1:
            return f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}"
        if self.is_published and isinstance(self._mechanism, StackedLaplace):
            return "the printed bounds on sums of Laplace noise are not proved, and no regret bound follows from them"
        if self.is_published and self.ridge * self.model.dimension * self.episode_length < 1:
            return f"the printed width holds for a ridge of at least 1 / (d H), got {self.ridge!r}"
        return None

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most 2 failure, at every number of episodes; all constants explicit.

        With every w_h in its ellipsoid, values are optimistic, and an episode loses at most the sum over its steps of
        min(D_h, 2 beta |x_h|), D_h = high_h - low_h, plus a martingale difference that lies in an interval of length
        high_(h+1) - low_(h+1) (of the value's own excess over the policy's). What is regressed is x_h over v <= v_h
        (`largest_deviation`). The potential sum of min(1, |x/v|^2), the norm in Lambda^-1, is at most log2 det(I + sum x x^T
        / (v^2 a)), a the least a_k after a release, as min(1, u) <= log2(1 + u); and det Lambda is at most its trace over d,
        to the power d. With s the scale of the width, R_h the bound on |x/v| and W_h the largest beta_h / s up to K,

            R_K <= sum_h (D_h + max(D_h, 2 s v_h W_h) sqrt(K G_h / log 2)) + sqrt(K sum_h (high_(h+1) - low_(h+1))^2
                   log(1/failure) / 2),         G_h = d log(1 + K R_h^2 / (a_h d)),
            W_h <= S_h sqrt(2 log(2 B n/failure) + d log((K R_h^2 / d + b) / a')) + C_w sqrt(b) + g / sqrt(a),

        S_h half the range of the step's values over the least v, sums over the steps that have a regression (the others lose
        nothing), and R_K <= D_1 K. A printed width is its own W_h. It holds for Gaussian noise: the norm of a matrix exceeds
        U with probability at most p / (6KH), as 4 sqrt d + 2 l >= 2 sqrt d + 2 sqrt(l + log 2) for l = log(6KH/p) >= log 6,
        a vector's is smaller, (b C_w + U) / sqrt a <= 3 (C_w + 1) sqrt(lambda R^2 + U), and the determinant grows by at most
        (1 + K / (d lambda))^d, which the printed logarithm covers for lambda >= 1 / (d H).

        Args:
          horizon: numbers of episodes, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: nothing is proved of this algorithm; the message says why.

        Source: Luyo and others, Theorem 7, with the constants; its proof's "sqrt(H^2 d K beta_K log(1 + HK))" has beta
        inside the root by mistake.
        """
        if self.why_unproved is not None:
            raise ValueError(self.why_unproved)
        episodes = np.asarray(horizon, dtype=float)
        t, d, n = self.targets, self.model.dimension, self.targets.n_blocks
        played = np.arange(1, int(episodes.max(initial=1.0)) + 1)
        shift = self.regression.regularizer(played)
        square, reach = self.regressor_bounds**2, np.array(t.high)[:-1] - np.array(t.low)[:-1]
        after = (np.array(t.high) - np.array(t.low))[np.array(t.steps) + 1]
        if self.is_published:
            widest = self.published(int(played[-1]))
        else:
            width = self.regression.radius(d * np.log(played[:, None] * square / d + shift.largest), played)
            widest = np.maximum.accumulate(width)[np.maximum(episodes.astype(np.int64), 1) - 1]
        growth = d * np.log1p(episodes[..., None] * square / (shift.least.min(axis=0) * d))
        lost = reach[list(t.steps)]
        most = np.maximum(lost, 2 * self.beta_scale * self.largest_deviation * widest[..., :n])
        explored = lost + most * np.sqrt(episodes[..., None] * growth[..., :n] / math.log(2))
        luck = np.sqrt(episodes * (after**2).sum() * math.log(1 / self.failure) / 2)
        return np.asarray(np.minimum(reach[0] * episodes, explored.sum(axis=-1) + luck))
