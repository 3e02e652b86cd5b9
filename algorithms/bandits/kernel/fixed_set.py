r"""GP-UCB where all users have one decision set, which is public: what was played is public too, and only rewards are noisy.

The action of a round is a function of what was released before it, so that the counts of the points are post-processing:
for two data sets that differ in one record, given equal releases before it, its action is the same, and given equal releases
after it, so are all later actions. What the record changes is its own reward, in the sum of one point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bandana.algorithms.bandits.kernel.pooled_gp_ucb import PooledGPUCB, Sensitive
from bandana.algorithms.bandits.kernel.posterior_numba import means_of, observe
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.rkhs.information_gain import gain_bounds


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
    inverse: FloatArray
    """(n_reps, n_features, n_features) of V."""
    squares: FloatArray
    """(n_reps, n_points) squared norms of the points' features in V^-1."""
    log_det: FloatArray
    """(n_reps,) of V / lambda."""
    upper: FloatArray
    """(n_reps, n_points) upper confidence bounds of the centered mean rewards."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""


@dataclass(frozen=True, eq=False)
class FixedSetGPUCB(PooledGPUCB):
    r"""GP-UCB on exact counts n_a and noisy sums S_a of centered rewards, where the pool has one context.

    With features phi of the points, from which the kernel's matrix differs by at most e, f = <phi, theta> + g with |theta|
    <= B and |g| <= B sqrt e (`triangular_features`),

        V = lambda I + sum n_a phi_a phi_a^T,   mean_a = <phi_a, V^-1 sum S_b phi_b>,   index_a = mean_a + w |phi_a|_(V^-1),

    S_a = 0 where n_a = 0. V (theta_hat - theta) = -lambda theta + sum n_a g_a phi_a + sum eta phi + sum xi_a phi_a, eta the
    rewards' own deviations and xi the noise of S, |xi_a| <= Y q. A sum of u_a phi_a has a norm in V^-1 of at most sqrt(sum
    u_a^2 / n_a), so that after t rounds

        w = R sqrt(2 log(2/failure) + log det(V / lambda)) + sqrt(lambda) B + B sqrt(e t) + Y q sqrt(sum 1 / n_a),

    the last sum over points that were played. Without noise q = 0, and this is GP-UCB.

    Unit of privacy: one user's record, decision set and reward. What is protected: all actions, the user's own too, which is
    more than the claim. A record's decision set is not read: whatever it holds, the public one is played. Sensitivity: 2 in
    L2, as a reward, clipped to the range and divided by its half-width Y, moves one sum by at most 2. Public: the decision
    set, kernel, T, the range. Cost a round: O(m (n + m)) for n points and m features, each `every` rounds.

    Attributes:
      sums: of y / Y in the shape (n_points, 1), closed after every round.
      features: (n_points, n_features) phi.
      error: e.
    """

    features: FloatArray = field(kw_only=True)
    error: float = field(kw_only=True)

    @cached_property
    def _columns(self) -> FloatArray:
        return np.ascontiguousarray(self.features.T)

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:  # type: ignore[override]
        """The states before the first round."""
        n, m = self.features.shape
        shape = self.contribution_shape
        counts, sums, known, upper = np.zeros((4, n_reps, n))
        inverse = np.tile(np.eye(m) / self.ridge, (n_reps, 1, 1))
        squares = np.tile((self.features**2).sum(axis=1) / self.ridge, (n_reps, 1))
        clock = np.zeros(n_reps, dtype=np.int64)
        total = np.zeros((n_reps, *shape))
        released = Released(counts, sums, total, known, inverse, squares, np.zeros(n_reps), upper, clock)
        self._look(released, 0)
        return Sensitive(self.sums.init(n_reps, shape)), released

    @property
    def contribution_shape(self) -> tuple[int, int]:
        """Shape of what a record adds to the sum."""
        return len(self.features), 1

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
        points = self.features, self._columns
        observe(*points, released.counts, released.known, released.inverse, released.squares, released.log_det)
        means_of(*points, released.sums, released.inverse, released.upper)
        width = self._width_after(released, step)
        released.upper[:] += width[:, None] * np.sqrt(released.squares)

    def _width_after(self, released: Released, step: int) -> FloatArray:
        """(n_reps,) w after `step` rounds, times its scale."""
        return self.width(released.counts, released.log_det, 0.0, self.bound(step)) + self._missed(step)

    def _missed(self, step: float) -> float:
        """What the features miss, in the width."""
        return self.beta_scale * self.misfit * math.sqrt(step)

    @property
    def misfit(self) -> float:
        """B sqrt e: how far a mean reward may be from linear in phi."""
        return self.norm_bound * math.sqrt(self.error)

    def growth(self, rounds: FloatArray) -> FloatArray:
        """G: bound on log det(V / lambda) after so many rounds, twice the maximum information gain of the features."""
        return 2 * gain_bounds(self.features, rounds, self.ridge)

    def widest(self, rounds: FloatArray, growth: FloatArray) -> FloatArray:
        """W: bound on w over its scale, up to so many rounds, as at most min(n, T) points are played, each at least once."""
        found = self._half * np.sqrt(2 * math.log(2 / self.failure) + growth) + math.sqrt(self.ridge) * self.norm_bound
        q = max(self.bound(step) for step in (1, self.horizon))
        played = np.sqrt(np.minimum(rounds, len(self.features)))
        return np.asarray(found + self.misfit * np.sqrt(rounds) + self._half * q * played)

    @property
    def shown_width(self) -> str:
        """W in words."""
        return (
            "R sqrt(2 log(2 / failure) + G) + sqrt(lambda) B + g sqrt t + R q sqrt(min(t, n)), q = "
            f"{max(self.bound(step) for step in (1, self.horizon)):.3g}, g = {self.misfit:.2g}"
        )


@dataclass(frozen=True, eq=False)
class FixedSetMessages(FixedSetGPUCB):
    r"""The same where each user sends the own reward with noise: local privacy.

    The user is told what to play, plays it, and sends y / Y with noise of deviation s, one number: which point it belongs to
    is public. To the server this is GP-UCB with noisier rewards. The noise is drawn after the action and apart from all
    else, so that reward and noise deviate from their mean by a sub-Gaussian number of scale R' = sqrt(R^2 + Y^2 s^2), and

        w = R' sqrt(2 log(2/failure) + log det(V / lambda)) + sqrt(lambda) B + B sqrt(e t).

    Sensitivity: 2, of one number.

    Attributes:
      sums: of y / Y in the shape (1,), closed after every round.
    """

    @property
    def contribution_shape(self) -> tuple[int, ...]:  # type: ignore[override]
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

    def _width_after(self, released: Released, step: int) -> FloatArray:
        found = self.reward_scale * np.sqrt(2 * math.log(2 / self.failure) + released.log_det)
        found += math.sqrt(self.ridge) * self.norm_bound
        return np.asarray(self.beta_scale * found + self._missed(step))

    def widest(self, rounds: FloatArray, growth: FloatArray) -> FloatArray:
        """W: bound on w over its scale, up to so many rounds."""
        found = self.reward_scale * np.sqrt(2 * math.log(2 / self.failure) + growth)
        return np.asarray(found + math.sqrt(self.ridge) * self.norm_bound + self.misfit * np.sqrt(rounds))

    @property
    def shown_width(self) -> str:
        """W in words."""
        return (
            f"R' sqrt(2 log(2 / failure) + G) + sqrt(lambda) B + g sqrt t, R' = {self.reward_scale:.3g} with the noise, g = "
            f"{self.misfit:.2g}"
        )
