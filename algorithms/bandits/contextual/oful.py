r"""Linear bandits whose users bring their own actions: AdaR-OFUL and LinUCB under joint and local privacy.

User t offers vectors x_a, |x_a| <= 1; a reward lies in [low, high] and has the mean m + <theta, x>, m the middle of the
range. What is learned is y = reward - m, |y| <= (high - low) / 2. A range [-1, 1] has m = 0: the papers' own model.

Sources: Azize and Basu, "Renyi Differentially Private Bandits", Algorithm 4, Theorems 9 and 10, Appendix D. Abbasi-Yadkori,
Pal, Szepesvari (2011), "Improved algorithms for linear stochastic bandits", for OFUL and its rarely switching form. Shariff
and Sheffet (2018), "Differentially private contextual linear bandits". Zheng, Cai, Huang, Li, Wang (2020), "Locally
differentially private (contextual) bandits learning".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtri

from bandana.algorithms.bandits.contextual.offers import (
    Sensitive,
    centered,
    check_shape,
    features_of,
    optimistic,
    or_else,
    within_ball,
)
from bandana.algorithms.papers.azize_basu import most_updates, reward_sum_sd
from bandana.algorithms.protocol import DecidesEachRecord, FloatArray, IntArray, Record
from bandana.algorithms.regression import ridge_numba
from bandana.algorithms.regression.noisy_sums import UP
from bandana.privacy_core import Exact, FactorizedSum, Gaussian, Interval, Ledger, PhaseSum, PhaseTotal, PrivateSum, Relation
from bandana.privacy_core.checks import at_least, failure_of, non_negative, one_of, order, positive, probability

PARTS: Mapping[str, Mapping[str, str]] = {
    "printed": {"noise": "printed", "sum": "fresh", "width": "printed", "eigenvalue": "printed"},
    "tight": {"noise": "tight", "sum": "factorized", "width": "exact", "eigenvalue": "public"},
}
"""Calibration of AdaR-OFUL -> part -> option: noise of a block for [-1, 1] or for the range; blocks added up, each with its
own noise, or a factorized sum; R, B and the noise's quantile; the bound on the least eigenvalue, or that itself."""
_ROUNDING = 1e-12
"""Slack on log-determinants: one that has grown by exactly 1 + C is not due."""


class Released(NamedTuple):
    """All that decisions are made from; a function of noisy sums, of the contexts and of the actions."""

    estimate: FloatArray
    """(n_reps, d) of theta, as of the last update."""
    inverse_then: FloatArray
    """(n_reps, d, d) inverse of the Gram matrix then."""
    width: FloatArray
    """(n_reps,) radius of the confidence ellipsoid, in units of reward."""
    log_det_then: FloatArray
    """(n_reps,) log-determinant then."""
    gram: FloatArray
    """(n_reps, d, d) ridge I + sum of x x^T, now."""
    inverse: FloatArray
    """(n_reps, d, d) its inverse."""
    log_det: FloatArray
    """(n_reps,) its log-determinant."""
    n_updates: IntArray
    """(n_reps,)"""
    clock: IntArray
    """(n_reps,) rounds played."""


@dataclass(frozen=True)
class RarelySwitchingOFUL(DecidesEachRecord):
    r"""OFUL that updates its estimate where the determinant of the Gram matrix has grown by a factor 1 + C.

    With V = lambda I + sum x_s x_s^T now and V_tau at the last update, a user is given argmax_x <theta, x> + w |x| in the
    norm of V_tau^-1. After a round that makes det V > (1 + C) det V_tau, the sum of y_s x_s over the rounds since the last
    update enters `sums`, which answers the noisy sum S over all of them; theta = V^-1 S. The width is

        w = R sqrt(2 log(1/failure) + log det V_tau/lambda^d) + sqrt(lambda) B + q_l / sqrt(lambda_min(V_tau)),

    R the rewards' sub-Gaussian scale, B the bound on |theta|, q_l a quantile of the noise's norm after l updates: as
    |S - E S|_(V^-1) is at most the self-normalized bound plus |noise|_(V^-1), and V >= lambda_min I, theta lies in the
    ellipsoid in every round with probability 1 - 2 failure.

    Unit of privacy: one reward (one round). Public: all contexts, hence, given the actions, V, its determinant and its
    eigenvalues; arms, horizon and all parameters. Claim: (alpha, epsilon)-RDP of all actions (Theorem 9), central model.
    Sensitivity: replacing one reward moves the sum of one block, by |x| |r - r'| <= high - low in L2, as a longer x is
    shortened to norm 1. A block's bounds are functions of actions and contexts, hence of what was released before; each
    reward lies in one block. So phase sums cost one Gaussian release (one-touch lemma, `docs/privacy.md`), and so does a
    factorized sum, whose columns have norm 1: with noise multiplier 1/mu the run is mu-GDP, mu = sqrt(2 epsilon / alpha),
    which is (alpha, epsilon)-RDP with equality. The paper's proof takes an expectation over block boundaries that "have the
    same law" under both reward sequences; after the changed reward they have not. Cost a round: O(n_actions d^2); an update
    O(d^3), at most `most_updates` of them.

    Departures, all in the builders:
      `printed` keeps the paper's constants: Y_l ~ N(0, 2 alpha/epsilon I) accumulate, which is exact for [-1, 1] and has
        twice the deviation that [0, 1] needs; R = B = 1; in place of lambda_min(V_tau) the bound of Lemma 27 with lambda_0,
        the least eigenvalue of E[x x^T]. That bound, lambda + lambda_0 t/4 - 8 log((t+3) d/failure) - 2 sqrt(t log((t+3)
        d/failure)), is negative up to t of about (64/lambda_0^2) log: there, and before the first update, where gamma_t /
        sqrt(t) divides by 0, the proof's own V >= lambda I is used. Of E_3's two readings of the noise's quantile, log(T /
        failure) throughout is taken, as Lemma 24 and a union over T rounds give it. Lemma 27 needs Assumption 2, which no
        law of unit vectors in d >= 2 meets (`bandana.algorithms.environments.contexts`), so the printed width has no proof.
      `tight` releases the sum through a factorization of at most `most_updates` steps, and uses the actual lambda_min,
        which is public, the exact chi-square quantile over that many updates, and the range: R = B = half its width.
      Both center rewards on the middle of the range (public, costs nothing). An update that no round would use, after the
        last one, is not made, as in the paper.

    Attributes: as in `LinUCB`, and
      sums: what the blocks enter; it answers the running sum.
      switch: C.
      failure: probability that either part of the width fails.
      noise_norms: q_0 = 0, q_1, ...: one for each update that can be made.
      least_share: lambda_0, where the width uses the paper's bound on the least eigenvalue; None: the eigenvalue itself.
      beta_scale: factor on the width; below 1 it explores less than the theorem asks for.
    """

    n_actions: int
    context_dimension: int
    reward_range: Interval
    horizon: int
    sums: PrivateSum
    ridge: float
    switch: float
    failure: float
    reward_scale: float
    parameter_bound: float
    noise_norms: tuple[float, ...]
    least_share: float | None = None
    beta_scale: float = 1.0

    def __post_init__(self) -> None:
        check_shape(self.n_actions, self.context_dimension, self.horizon)
        for name in ("ridge", "switch", "reward_scale", "parameter_bound"):
            positive(name, getattr(self, name))
        probability("failure", self.failure)
        non_negative("beta_scale", self.beta_scale)

    @property
    def most_updates(self) -> int:
        """Number of times the estimate can be updated, each time with one release."""
        return len(self.noise_norms) - 1

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The states before the first round: the estimate is 0, the ellipsoid a ball."""
        d = self.context_dimension
        inverse = np.tile(np.eye(d) / self.ridge, (n_reps, 1, 1))
        log_det = np.full(n_reps, d * math.log(self.ridge))
        zeros = np.zeros(n_reps, dtype=np.int64)
        width = self._width(log_det, zeros, zeros, np.full(n_reps, self.ridge))
        released = Released(
            np.zeros((n_reps, d)), inverse, width, log_det,
            np.tile(np.eye(d) * self.ridge, (n_reps, 1, 1)), inverse.copy(), log_det.copy(), zeros, zeros.copy(),
        )  # fmt: skip
        return Sensitive(self.sums.init(n_reps, (d,))), released

    def act(self, released: Released, context: FloatArray | None, step: int) -> IntArray:
        """(n_reps,) the actions with the largest upper confidence bound (ties: the lowest)."""
        offered = None if context is None else within_ball(context)
        return optimistic(released.estimate, released.inverse_then, released.width, offered)

    def chosen(self, record: Record) -> FloatArray:
        """(n_reps, d) x of the action that was played, of norm at most 1; 0 where a replicate is done."""
        return features_of(record)

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Adds the round to the block and to the Gram matrix; where the determinant has grown enough, updates."""
        x, y = self.chosen(record), centered(record, self.reward_range)
        value = np.empty_like(x)
        ridge_numba.weigh(x, y, value)
        state = self.sums.add(sensitive.sum, value, record.n_records)
        ridge_numba.add_rank_one(released.gram, released.inverse, released.log_det, x)
        np.add(released.clock, record.n_records, out=released.clock)
        is_due = self.is_due(released) & (released.n_updates < self.most_updates) & (released.clock < self.horizon)
        due = np.flatnonzero(is_due & (record.n_records > 0))
        if len(due):
            reps = None if len(due) == ledger.n_reps else due
            state, noisy, _ = self.sums.close(state, ledger, reps)
            gram = released.gram[due]  # from which all is computed anew: rounding of rank-one updates ends here
            estimate, inverse, log_det = released.estimate[due], released.inverse[due], released.log_det[due]
            statistic, is_positive = np.concatenate([gram, noisy[..., None]], axis=2), np.empty(len(due), dtype=np.bool_)
            ridge_numba.learn(statistic, np.zeros(len(due)), estimate, inverse, log_det, is_positive)
            released.estimate[due], released.inverse[due], released.log_det[due] = estimate, inverse, log_det
            least: FloatArray = np.empty(len(due))
            if self.least_share is None:
                ridge_numba.least_eigenvalues(gram, least)
            released.n_updates[due] += 1
            released.inverse_then[due], released.log_det_then[due] = inverse, log_det
            released.width[due] = self._width(log_det, released.n_updates[due], released.clock[due], least)
        return Sensitive(state), released

    def is_due(self, released: Released) -> np.ndarray:
        """(n_reps,) whether the determinant has grown by more than 1 + C since the last update."""
        return np.asarray(released.log_det - released.log_det_then > math.log1p(self.switch) + _ROUNDING)

    def _width(self, log_det: FloatArray, n_updates: IntArray, clock: IntArray, least: FloatArray) -> FloatArray:
        """(n_rows,) radii of the confidence ellipsoids; see the class."""
        growth = np.maximum(log_det - self.context_dimension * math.log(self.ridge), 0.0)
        width = self.reward_scale * np.sqrt(2 * math.log(1 / self.failure) + growth)
        width += math.sqrt(self.ridge) * self.parameter_bound
        if self.least_share is not None:
            spread = np.log((clock + 3) * self.context_dimension / self.failure)
            least = self.ridge + self.least_share * clock / 4 - 8 * spread - 2 * np.sqrt(clock * spread)
        width += np.array(self.noise_norms)[n_updates] / np.sqrt(np.maximum(least, self.ridge))
        return np.asarray(self.beta_scale * width)

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most 2 failure, at every horizon; all constants are explicit.

        Whatever the contexts are, as long as |theta| <= B. With theta in every ellipsoid, a round costs at most
        2 w |x| in the norm of V_tau^-1, which is at most sqrt(1 + C) |x| in that of V^-1 as det V <= (1 + C) det V_tau, and
        never more than the range's width D. The potential sum of min(1, |x|^2) is at most log2(det V_T / lambda^d), since
        min(1, u) <= log2(1 + u), and the width is largest at the end, with lambda_min(V_tau) >= lambda:

            R_T <= max(D, 2 s sqrt(1 + C) W_T) sqrt(T G_T / log 2),    G_T = d log(1 + T / (lambda d)),
            W_T = R sqrt(2 log(1/failure) + G_T) + sqrt(lambda) B + max(q_l, l <= L_T) / sqrt(lambda),

        s the scale of the width and L_T the most updates that T rounds allow; and R_T <= D T.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1, or the width is that of `printed`: for these nothing is proved.

        Source: Abbasi-Yadkori, Pal and Szepesvari (2011), Theorems 2 and 4, with the noise of Azize and Basu, Theorem 17.
        """
        if self.beta_scale < 1:
            raise ValueError(f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}")
        if self.least_share is not None:
            raise ValueError("the printed width assumes what no contexts meet; for its formula see theorem_10_formula")
        rounds = np.asarray(horizon, dtype=float)
        growth = self.context_dimension * np.log1p(rounds / (self.ridge * self.context_dimension))
        width = self.reward_scale * np.sqrt(2 * math.log(1 / self.failure) + growth)
        width += math.sqrt(self.ridge) * self.parameter_bound + self._largest_norm(growth) / math.sqrt(self.ridge)
        cost = np.maximum(self.reward_range.width, 2 * self.beta_scale * math.sqrt(1 + self.switch) * width)
        return np.asarray(np.minimum(self.reward_range.width * rounds, cost * np.sqrt(rounds * growth / math.log(2))))

    def theorem_10_formula(self, horizon: ArrayLike) -> FloatArray:
        r"""The formula that the proof of Theorem 10 ends with, with the constants that it drops; it proves nothing.

        With l = d log(1 + T / (lambda d)) / log(1 + C) updates and G = d log(1 + T / (lambda d)),

            R_T <= 2 sqrt(1 + C) beta_T sqrt(2 T G) + 2 sqrt(1 + C) gamma_T sqrt(2 (1 + C) (1 + lambda) l G),
            beta_T = R sqrt(2 log(1/failure) + G) + sqrt(lambda) B,    gamma_T = 2 q_l / sqrt(lambda_0),

        q_l the noise's quantile, and gamma_T the limit of the paper's, which is not defined in early rounds. The lower bound
        lambda_0 T / 4 on the least eigenvalue comes from Assumption 2, which no contexts meet in d >= 2.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape.

        Returns:
          in units of reward, the shape of `horizon`; at most the range's width a round.

        Raises:
          ValueError: `beta_scale` is below 1, or the calibration is not `printed`.

        Source: Azize and Basu, Theorem 10, Appendix D.2, eqs. (14), (15), (18).
        """
        if self.least_share is None or self.beta_scale < 1:
            raise ValueError("the formula is that of the printed width, at a beta_scale of at least 1")
        rounds = np.asarray(horizon, dtype=float)
        growth = self.context_dimension * np.log1p(rounds / (self.ridge * self.context_dimension))
        updates = growth / math.log1p(self.switch)
        beta = self.reward_scale * np.sqrt(2 * math.log(1 / self.failure) + growth)
        beta += math.sqrt(self.ridge) * self.parameter_bound
        gamma = 2 * self._largest_norm(growth) / math.sqrt(self.least_share)
        noise = gamma * np.sqrt(2 * (1 + self.switch) * (1 + self.ridge) * updates * growth)
        bound = 2 * self.beta_scale * math.sqrt(1 + self.switch) * (beta * np.sqrt(2 * rounds * growth) + noise)
        return np.asarray(np.minimum(self.reward_range.width * rounds, bound))

    def _largest_norm(self, growth: FloatArray) -> FloatArray:
        """The largest quantile of the noise's norm among the updates that a log-determinant's growth allows."""
        largest = np.maximum.accumulate(np.array(self.noise_norms))
        most = np.floor(growth / math.log1p(self.switch)).astype(np.int64)
        return np.asarray(largest[np.minimum(most, len(largest) - 1)])


def oful(
    n_actions: int,
    dimension: int,
    horizon: int,
    reward_range: Interval,
    *,
    ridge: float = 1.0,
    switch: float = 1.0,
    failure: float | None = None,
    parameter_bound: float | None = None,
    beta_scale: float = 1.0,
) -> RarelySwitchingOFUL:
    """The non-private twin, rarely switching OFUL; arguments as of `adar_oful`."""
    updates = _updates(dimension, horizon, switch, ridge)
    half = reward_range.width / 2
    return RarelySwitchingOFUL(
        n_actions, dimension, reward_range, horizon, PhaseTotal(PhaseSum(Exact())), ridge, switch,
        failure_of(failure, horizon), half, or_else(half, parameter_bound), (0.0,) * (updates + 1),
        beta_scale=beta_scale,
    )  # fmt: skip


def adar_oful(
    n_actions: int,
    dimension: int,
    horizon: int,
    alpha: float,
    epsilon: float,
    reward_range: Interval,
    calibration: str | Mapping[str, str],
    *,
    ridge: float = 1.0,
    switch: float = 1.0,
    failure: float | None = None,
    parameter_bound: float | None = None,
    least_share: float | None = None,
    beta_scale: float = 1.0,
) -> RarelySwitchingOFUL:
    """AdaR-OFUL with total privacy (alpha, epsilon)-RDP.

    Args: as in `LinUCBSettings`, and
      alpha: Renyi order, above 1.
      epsilon: Renyi divergence bound, above 0.
      reward_range: declared range of a reward; `printed` is made for one inside [-1, 1].
      calibration: `printed` or `tight`, see `RarelySwitchingOFUL`, or an option for each part of `PARTS`. A reward enters
        one release of either sum, so that `noise` alone decides what it pays. `noise` and `width` as printed are made for
        rewards in [-1, 1].
      switch: C.
      failure: of each part of the width; None: 1 / horizon.
      parameter_bound: of |theta|; None: half of the range, and 1 for the printed width.
      least_share: lambda_0 of the printed eigenvalue; None: 1 / d, its largest possible value, that of the uniform sphere.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    order("alpha", alpha)
    positive("epsilon", epsilon)
    updates = _updates(dimension, horizon, switch, ridge)
    failure = failure_of(failure, horizon)
    width = positive("the width of reward_range", reward_range.width)
    parts = PARTS[one_of("calibration", calibration, tuple(PARTS))] if isinstance(calibration, str) else calibration
    if "printed" in (parts["noise"], parts["width"]) and (reward_range.low < -1 or reward_range.high > 1):
        raise ValueError(f"printed is made for rewards in [-1, 1], got {reward_range}: scale them, or use 'tight'")
    unit = reward_sum_sd(alpha, epsilon, 2.0) / width if parts["noise"] == "printed" else reward_sum_sd(alpha, epsilon, 1.0)
    noise = Gaussian(width, unit * UP, Relation.REPLACE_REWARD)
    sums: PrivateSum = PhaseTotal(PhaseSum(noise)) if parts["sum"] == "fresh" else FactorizedSum(noise, updates)
    if parts["width"] == "printed":
        log = math.log(horizon / failure)
        norm, scale = math.sqrt(dimension + 2 * math.sqrt(dimension * log) + 2 * log), 1.0
    else:
        norm, scale = math.sqrt(chdtri(dimension, failure / updates)), width / 2
    bound, share = or_else(scale, parameter_bound), None
    if parts["eigenvalue"] == "printed":
        share = positive("least_share", or_else(1 / dimension, least_share))
    elif least_share is not None:
        raise ValueError(f"least_share belongs to 'printed'; 'tight' uses the actual eigenvalue, got {least_share!r}")
    norms = (0.0, *(sums.noise_deviation(step) * norm for step in range(1, updates + 1)))
    return RarelySwitchingOFUL(
        n_actions, dimension, reward_range, horizon, sums, ridge, switch, failure, scale, bound, norms, share, beta_scale
    )


def _updates(dimension: int, horizon: int, switch: float, ridge: float) -> int:
    at_least("dimension", dimension, 1)
    at_least("horizon", horizon, 1)
    return most_updates(dimension, horizon, positive("switch", switch), positive("ridge", ridge))
