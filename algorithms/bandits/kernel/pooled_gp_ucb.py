r"""GP-UCB where all that users may bring is a finite public set of points: counts and sums of rewards, one of each a point.

What a record adds to a regression on features is a matrix phi phi^T, and noise that hides it fills every direction of the
features' space: its norm grows with the root of their number, and so does the ridge that keeps the noisy matrix positive. On
a finite set W the same regression needs only how often each point was played and what that earned in all, 2 |W| numbers of
which a record changes four. Their noise is positive again after a cut at 0, needs no ridge, and the kernel is exact.

Sources: Srinivas, Krause, Kakade and Seeger (2010), "Gaussian process optimization in the bandit setting"; Dubey (2021),
"No-regret algorithms for private Gaussian process bandit optimization", whose claims these are; the release is ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.kernel.posterior_numba import first_of_the_largest, posterior
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.rkhs.finite_sets import triangular_features
from bandana.algorithms.rkhs.information_gain import gain_bounds
from bandana.algorithms.rkhs.pool import Pool
from bandana.algorithms.ties import TIE
from bandana.privacy_core import Interval, Ledger, PrivateSum
from bandana.privacy_core.checks import at_least, non_negative, positive, probability

SENSITIVITY = 2.0
"""L2 sensitivity of the sums of (1, y / Y): a record that moves to another point changes four numbers by at most 1 each,
one that stays changes one by at most 2."""
_LEAST = 1.0
"""Counts are whole: where the bound on one is below 1, it is 0."""


class Sensitive(NamedTuple):
    """Sensitive state: exact statistics, which decisions never read."""

    sum: Any
    """Sums of (1, y / Y) at each point: the state of the algorithm's sum."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums."""

    weights: FloatArray
    """(n_reps, n_points) D, at least the exact counts with the probability that the width counts on."""
    sums: FloatArray
    """(n_reps, n_points) noisy sums of centered rewards."""
    upper: FloatArray
    """(n_reps, n_points) upper confidence bounds of the centered mean rewards."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""


@dataclass(frozen=True, eq=False)
class PooledGPUCB(DecidesEachRecord):
    r"""GP-UCB on noisy counts N_a and noisy sums S_a of centered rewards, of each point a of a pool.

    With q_t a bound on the noise of every count after t rounds, and Y q_t on that of every sum, the weights are D_a = N_a +
    q_t, and 0 with S_a where that is below 1: then the exact count n_a <= D_a < 1 is 0. With features phi of the kernel,
    f_a = <phi_a, theta>, |theta| <= B,

        V = lambda I + sum D_a phi_a phi_a^T,   mean_a = <phi_a, V^-1 sum S_b phi_b>,   index_a = mean_a + w |phi_a|_(V^-1).

    V (theta_hat - theta) = -lambda theta - sum (D_a - n_a) f_a phi_a + sum eta phi + sum xi_a phi_a, eta the rewards' own
    deviations and xi the noise of S. In the norm of V^-1 the first is at most sqrt(lambda) B; a sum of u_a phi_a is at most
    sqrt(sum u_a^2 / D_a), as V >= sum D_a phi_a phi_a^T; and as V >= lambda I + sum n_a phi_a phi_a^T, that of eta is at
    most the self-normalized bound. With 0 <= D_a - n_a <= min(2 q, D_a), F = min(B, Y) >= |f_a| and |xi_a| <= Y q,

        w = R sqrt(2 log(2/failure) + log det(V / lambda)) + sqrt(lambda) B + F sqrt(sum min(2q, D_a)^2 / D_a)
            + Y q sqrt(sum 1 / D_a),

    sums over points of positive weight. Without noise D = n, S are the exact sums, and this is GP-UCB on exact features.

    Unit of privacy: one user's record, decision set and reward. What is protected: joint model, the actions of all *other*
    users; local model, the message that the user sends. Claim: (epsilon, delta), for neighbors that replace one record; a
    decision set outside the pool is taken for the nearest, unless `is_strict`. Sensitivity: 2 in L2, see `SENSITIVITY`, for
    rewards clipped to the range and divided by its half-width Y. Public: pool, kernel, T, the range. Cost a round: O(n^3)
    for the n points that were played.

    Attributes: as in `PooledSettings`, and
      gram: (n_points, n_points) the kernel of each two points; context c and action a are the point c n_actions + a.
      reward_range: declared range of a reward; every reward is clipped to it.
      horizon: T, most rounds.
      sums: of (1, y / Y) in the shape (n_points, 2), closed after every round.
      ridge: lambda.
      failure: of the width; half of it is the noise's.
      quantile: of one number's noise, in its deviations: q_t = quantile * deviation.
      every: rounds between two looks at what was released; decisions in between are made from the last one.
      preference: (n_reps, n_actions), of each replicate a permutation of the actions: of equally good ones the first in it
        is taken; None: the lowest. Public.
    """

    pool: Pool
    gram: FloatArray
    reward_range: Interval
    horizon: int
    sums: PrivateSum
    ridge: float
    failure: float
    norm_bound: float
    quantile: float
    beta_scale: float = 1.0
    is_strict: bool = False
    every: int = 1
    preference: IntArray | None = None

    def __post_init__(self) -> None:
        at_least("horizon", self.horizon, 1)
        at_least("every", self.every, 1)
        for name in ("ridge", "norm_bound"):
            positive(name, getattr(self, name))
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)
        positive("the width of reward_range", self.reward_range.width)

    @property
    def n_actions(self) -> int:
        """Number of actions of each user."""
        return self.pool.n_actions

    @property
    def context_dimension(self) -> int:
        """Dimension of the points."""
        return self.pool.dimension

    @cached_property
    def _middle(self) -> float:
        return (self.reward_range.low + self.reward_range.high) / 2

    @property
    def _half(self) -> float:
        return self.reward_range.width / 2

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first round."""
        n_points = len(self.gram)
        weights, sums, upper = np.zeros((3, n_reps, n_points))
        released = Released(weights, sums, upper, np.zeros(n_reps, dtype=np.int64))
        self._learn(released, np.zeros((n_reps, n_points, 2)), 0)
        return Sensitive(self.sums.init(n_reps, (n_points, 2))), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the actions with the largest upper confidence bound; of those equal up to `TIE`, the first preferred.

        Raises:
          ValueError: there are no contexts, or one is outside the pool (where that is refused).
        """
        place = self.pool.placed(context, self.is_strict)
        chosen = np.empty(len(place), dtype=np.int64)
        first_of_the_largest(released.upper, place, self.n_actions, self._order, TIE, chosen)
        return chosen

    @cached_property
    def _order(self) -> IntArray:
        """(n_reps or 1, n_actions) actions in the order in which equally good ones are taken; one row is all replicates'."""
        return np.arange(self.n_actions)[None] if self.preference is None else self.preference

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the record, releases counts and sums, and looks at every point anew where it is time."""
        state, noisy, _ = self.sums.close(self.sums.add(sensitive.sum, self.contribution(record), record.n_records), ledger)
        np.add(released.clock, record.n_records, out=released.clock)
        self._note(released, record, noisy)
        return Sensitive(state), released

    def _note(self, released: Released, record: Record, noisy: FloatArray) -> None:
        """Takes in what was released after the record."""
        step = int(released.clock[0])
        if step % self.every == 0:
            self._learn(released, noisy, step)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, n_points, 2) what the record adds: 1 and y / Y at its point; 0 where a replicate is done."""
        rows = np.arange(len(record.user))
        at = self.pool.placed(record.contexts, self.is_strict) * self.n_actions + record.actions[:, 0]
        value = np.zeros((len(rows), len(self.gram), 2))
        value[rows, at, 0] = record.n_records
        centered = self.reward_range.clip(record.rewards[:, 0]) - self._middle
        value[rows, at, 1] = np.where(record.n_records > 0, centered / self._half, 0.0)
        return value

    def bound(self, step: int) -> float:
        """q, on the noise of every count after `step` rounds."""
        return 0.0 if step == 0 else self.quantile * self.sums.noise_deviation(step)

    def _learn(self, released: Released, noisy: FloatArray, step: int) -> None:
        """Fills the released state from noisy counts and sums (n_reps, n_points, 2)."""
        q = self.bound(step)
        np.add(noisy[:, :, 0], q, out=released.weights)
        is_played = released.weights >= _LEAST
        released.weights[~is_played] = 0.0
        np.multiply(noisy[:, :, 1], self._half * is_played, out=released.sums)
        deviation, log_det = np.empty_like(released.upper), np.empty(len(noisy))
        posterior(self.gram, released.weights, released.sums, self.ridge, released.upper, deviation, log_det)
        released.upper[:] += self.width(released.weights, log_det, q, q)[:, None] * deviation

    def width(self, weights: FloatArray, log_det: FloatArray, on_counts: float, on_sums: float) -> FloatArray:
        """(n_reps,) w, see the class, times its scale.

        Args:
          weights: (n_reps, n_points) D.
          log_det: (n_reps,) of V / lambda.
          on_counts: bound on the noise of a count.
          on_sums: bound on the noise of a sum, over Y.
        """
        half, bound = self._half, self.norm_bound
        width = half * np.sqrt(2 * math.log(2 / self.failure) + log_det) + math.sqrt(self.ridge) * bound
        if on_sums > 0:
            inverse = np.divide(1.0, weights, out=np.zeros_like(weights), where=weights > 0)
            width += min(bound, half) * np.sqrt((np.minimum(2 * on_counts, weights) ** 2 * inverse).sum(axis=1))
            width += half * on_sums * np.sqrt(inverse.sum(axis=1))
        return np.asarray(self.beta_scale * width)

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most `failure`, at every horizon; all constants are explicit.

        Whatever decision sets users bring, as long as |theta| <= B. With theta in every ellipsoid a round costs at most
        2 w u, u the norm of phi in V^-1 when released values were last looked at, and never more than the range's width D.
        There V >= U = lambda I + sum n_a phi_a phi_a^T, which within the less than `every` rounds since has become at most
        r = 1 + (every - 1) / lambda times as large. So the sum of min(1, u^2) is at most r times that in the norms of the
        current U^-1, which is at most log2 det(U_T / lambda) <= G_T / log 2. With s the scale of the width and W_T its
        largest bound,

            R_T <= D + max(D, 2 s W_T) sqrt(r T G_T / log 2),    G_T = 2 gamma_T,

        and R_T <= D T. The maximum information gain gamma_T of the pool is bounded from above by `gain_bounds`.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1: for narrower ellipsoids nothing is proved.

        Source: Dubey (2021), Theorem 3; Abbasi-Yadkori, Pal and Szepesvari (2011), Theorem 3, with the noise of the class.
        """
        if self.beta_scale < 1:
            raise ValueError(f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}")
        rounds, span = np.asarray(horizon, dtype=float), self.reward_range.width
        growth = self.growth(rounds)
        stale = 1 + (self.every - 1) / self.ridge
        cost = np.maximum(span, 2 * self.beta_scale * self.widest(rounds, growth))
        cost *= np.sqrt(stale * rounds * growth / math.log(2))
        return np.asarray(np.minimum(span * rounds, span + cost))

    def growth(self, rounds: FloatArray) -> FloatArray:
        """G: bound on log det(U / lambda) after so many rounds, twice the maximum information gain of the pool.

        The gain is bounded for features that miss the kernel's matrix by E, E positive semidefinite with a diagonal of at
        most e, which adds at most trace(E) T / lambda.
        """
        features, error = triangular_features(self.gram)
        return np.asarray(2 * gain_bounds(features, rounds, self.ridge) + rounds * error / self.ridge)

    def widest(self, rounds: FloatArray, growth: FloatArray) -> FloatArray:
        """W: bound on w over its scale, up to so many rounds.

        Of the n points each has 1 <= D_a <= n_a + 2 q or weight 0, q the largest of the run, so that min(2 q, D_a)^2 / D_a
        <= 2 q and 1 / D_a <= 1: W = R sqrt(2 log(2/failure) + n log(1 + (T / n + 2 q) / lambda)) + sqrt(lambda) B +
        F sqrt(2 q n) + Y q sqrt n.
        """
        n, q, half = len(self.gram), max(self.bound(step) for step in (1, self.horizon)), self._half
        width = half * np.sqrt(2 * math.log(2 / self.failure) + n * np.log1p((rounds / n + 2 * q) / self.ridge))
        width += math.sqrt(self.ridge) * self.norm_bound
        return width + min(self.norm_bound, half) * math.sqrt(2 * q * n) + half * q * math.sqrt(n)

    @property
    def shown_width(self) -> str:
        """W in words."""
        return (
            f"R sqrt(2 log(2 / failure) + n log(1 + (t / n + 2 q) / lambda)) + sqrt(lambda) B + min(B, R) sqrt(2 q n) + "
            f"R q sqrt n, q = {max(self.bound(step) for step in (1, self.horizon)):.3g}"
        )
