r"""GP-UCB where all users have one decision set, which is public: what was played is public too, and only rewards are noisy.

The action of a round is a function of what was released before it, so that the counts of the points are post-processing:
for two data sets that differ in one record, given equal releases before it, its action is the same, and given equal releases
after it, so are all later actions. What the record changes is its own reward, in the sum of one point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.kernel.pooled_gp_ucb import PooledGPUCB, Sensitive
from bandana.algorithms.bandits.kernel.posterior_numba import observe, upper_bounds
from bandana.algorithms.protocol import FloatArray, IntArray, Record


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums."""

    counts: FloatArray
    """(n_reps, n_points) how often each point was played."""
    sums: FloatArray
    """(n_reps, n_points) noisy sums of centered rewards; 0 where nothing was played."""
    total: FloatArray
    """(n_reps, ...) what the sum answered last."""
    known: FloatArray
    """(n_reps, n_points) the counts that V is made of."""
    products: FloatArray
    """(n_reps, n_points, n_points) products of the points' features in V^-1: H."""
    log_det: FloatArray
    """(n_reps,) of V / lambda."""
    upper: FloatArray
    """(n_reps, n_points) upper confidence bounds of the centered mean rewards."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""


@dataclass(frozen=True, eq=False)
class FixedSetGPUCB(PooledGPUCB):
    r"""GP-UCB on exact counts n_a and noisy sums S_a of centered rewards, where the pool has one context.

    With features phi of the kernel, f_a = <phi_a, theta>, |theta| <= B, and H_ab = <phi_a, V^-1 phi_b>,

        V = lambda I + sum n_a phi_a phi_a^T,   index_a = sum_b S_b H_ab + w sqrt(H_aa) + Y q sum_b |H_ab|,

    sums over points that were played. V (theta_hat - theta) = -lambda theta + sum eta phi + sum xi_b phi_b, eta the rewards'
    own deviations and xi the noise of S, |xi_b| <= Y q. In direction phi_a the last is sum xi_b H_ab; the others are at most
    sqrt(H_aa) times their norms in V^-1,

        w = R sqrt(2 log(2/failure) + log det(V / lambda)) + sqrt(lambda) B.

    Without noise q = 0, and this is GP-UCB.

    Unit of privacy: one user's record, decision set and reward. What is protected: all actions, the user's own too, which is
    more than the claim. A record's decision set is not read: whatever it holds, the public one is played. Sensitivity: 2 in
    L2, as a reward, clipped to the range and divided by its half-width Y, moves one sum by at most 2. Public: the decision
    set, kernel, T, the range. Cost: O(n^2) for n points, in each `every` rounds; memory O(n^2) a replicate.

    Attributes:
      sums: of y / Y in the shape (n_points, 1), closed after every round.
    """

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:  # type: ignore[override]
        """The states before the first round."""
        shape = self.contribution_shape
        counts, sums, known, upper = np.zeros((4, n_reps, len(self.gram)))
        products = np.tile(self.gram / self.ridge, (n_reps, 1, 1))
        clock = np.zeros(n_reps, dtype=np.int64)
        released = Released(
            counts, sums, np.zeros((n_reps, *shape)), known, products, np.zeros(n_reps), upper, clock
        )  # fmt: skip
        self._look(released, 0)
        return Sensitive(self.sums.init(n_reps, shape)), released

    @property
    def contribution_shape(self) -> tuple[int, ...]:
        """Shape of what a record adds to the sum."""
        return len(self.gram), 1

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, n_points, 1) what the record adds: y / Y at its point; 0 where a replicate is done."""
        rows = np.arange(len(record.user))
        value = np.zeros((len(rows), *self.contribution_shape))
        value[rows, record.actions[:, 0], 0] = self.message(record)
        return value

    def message(self, record: Record) -> FloatArray:
        """(n_reps,) y / Y, in [-1, 1]."""
        centered = self.reward_range.clip(record.rewards[:, 0]) - self._middle
        return np.where(record.n_records > 0, centered / self._half, 0.0)

    def _note(self, released: Released, record: Record, noisy: FloatArray) -> None:  # type: ignore[override]
        rows, at, step = np.arange(len(record.user)), record.actions[:, 0], int(released.clock[0])
        released.counts[rows, at] += record.n_records
        self._read(released, noisy, at)
        np.copyto(released.total, noisy)
        if step % self.every == 0:
            self._look(released, step)

    def _read(self, released: Released, noisy: FloatArray, at: IntArray) -> None:
        """Fills the noisy sums of the points from what the sum answers."""
        np.multiply(noisy[:, :, 0], self._half * (released.counts > 0), out=released.sums)

    def _look(self, released: Released, step: int) -> None:
        """Regresses, and bounds every point's mean reward."""
        observe(released.counts, released.known, released.products, released.log_det)
        width, on_sums = self.radii(released.log_det, step)
        upper_bounds(
            released.counts, released.sums, released.products, self.beta_scale * width, self.beta_scale * on_sums,
            released.upper,
        )  # fmt: skip

    def radii(self, log_det: FloatArray, step: int) -> tuple[FloatArray, float]:
        """(n_reps,) w, and Y q, after `step` rounds; before they are scaled."""
        return self._radius(self._half, log_det), self._half * self.bound(step)

    def _radius(self, scale: float, log_det: FloatArray) -> FloatArray:
        """Radius w where noisy rewards are sub-Gaussian of this scale."""
        return scale * np.sqrt(2 * math.log(2 / self.failure) + log_det) + math.sqrt(self.ridge) * self.norm_bound

    def widest(self, rounds: FloatArray, growth: FloatArray) -> FloatArray:
        """W: bound on all that the index adds to the mean, over sqrt(H_aa) and the scale, up to so many rounds.

        As sum_b n_b H_ab^2 <= H_aa, sum_b |H_ab| is at most sqrt(H_aa sum_b 1 / n_b), and at most min(n, T) points are
        played.
        """
        q = max(self.bound(step) for step in (1, self.horizon))
        return self._radius(self._half, growth) + self._half * q * np.sqrt(np.minimum(rounds, len(self.gram)))

    @property
    def shown_width(self) -> str:
        """W in words."""
        return (
            "R sqrt(2 log(2 / failure) + G) + sqrt(lambda) B + R q sqrt(min(t, n)), q = "
            f"{max(self.bound(step) for step in (1, self.horizon)):.3g}"
        )


@dataclass(frozen=True, eq=False)
class FixedSetMessages(FixedSetGPUCB):
    r"""The same where each user sends the own reward with noise: local privacy, which implies joint privacy.

    The user is told what to play, plays it, and sends y / Y with noise of deviation s, one number: which point it belongs to
    is public. To the server this is GP-UCB with noisier rewards. The noise is drawn after the action and apart from all
    else, so that reward and noise deviate from their mean by a sub-Gaussian number of scale R' = sqrt(R^2 + Y^2 s^2), and

        w = R' sqrt(2 log(2/failure) + log det(V / lambda)) + sqrt(lambda) B,   q = 0.

    Sensitivity: 2, of one number.

    Attributes:
      sums: of y / Y in the shape (1,), closed after every round.
    """

    @property
    def contribution_shape(self) -> tuple[int, ...]:
        """Shape of what a record adds to the sum: one number."""
        return (1,)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, 1) y / Y; 0 where a replicate is done."""
        return self.message(record)[:, None]

    def _read(self, released: Released, noisy: FloatArray, at: IntArray) -> None:
        """Adds the message, by which the sum of all messages has grown, to the sum of its point."""
        released.sums[np.arange(len(at)), at] += self._half * (noisy - released.total)[:, 0]

    @property
    def reward_scale(self) -> float:
        """R': how sub-Gaussian a noisy reward is."""
        return self._half * math.hypot(1.0, self.sums.noise_deviation(1))

    def radii(self, log_det: FloatArray, step: int) -> tuple[FloatArray, float]:
        """(n_reps,) w, and 0; before they are scaled."""
        return self._radius(self.reward_scale, log_det), 0.0

    def widest(self, rounds: FloatArray, growth: FloatArray) -> FloatArray:
        """W: bound on w over its scale, up to so many rounds."""
        return self._radius(self.reward_scale, growth)

    @property
    def shown_width(self) -> str:
        """W in words."""
        return f"R' sqrt(2 log(2 / failure) + G) + sqrt(lambda) B, R' = {self.reward_scale:.3g} with the noise"
