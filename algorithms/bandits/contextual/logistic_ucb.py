r"""Optimism for logistic rewards: LinUCB on records that were linearized when they came, with noisy sums.

Source: Zhang, Yang, Jin, Xiao and Zhou (2016), Online stochastic linear optimization under one-bit feedback, whose online
Newton steps these are, on the noisy sums of Shariff and Sheffet (2018). Sarmasarkar (2026), Shuffle and joint differential
privacy for generalized linear contextual bandits, studies the problem first, and fits all records again and again by private
convex optimization; here a record is released once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, Model
from bandana.algorithms.bandits.contextual.linearized import LinearizedGaussian, Weights, linearized
from bandana.algorithms.bandits.contextual.offers import check_shape, or_else
from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, Parameter, declared
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.regression.noisy_sums import exact_sums, quantiles
from bandana.algorithms.regression.private_ridge import PrivateRidge, Regularizer
from bandana.privacy_core import ApproxDP, Factorized, FactorizedSum, Interval, PrivateSum, Structure, TrustModel, calibrate
from bandana.privacy_core.checks import failure_of, positive

NAME = "logistic-ucb"
_OTHERWISE = 3.0
_MOST_CHI = 0.5
LOGIT_BOUND = Parameter(
    "logit_bound", "Bound S on |theta|: log-odds of rewards lie in [-S, S].", None,
    otherwise="the environment's where it has logistic rewards, else 3",
)  # fmt: skip
FLOOR = Parameter(
    "floor", "Least eigenvalue a that the regularizer keeps, whatever the noise.", None,
    otherwise="that of the regret bound where beta_scale is at least 1; below, where nothing is proved, 1 + q",
)  # fmt: skip


class _ConstantShift(PrivateRidge):
    """Ridge regression whose shift is the same in all rounds: a + q, which leaves [a, a + 2 q] of any noise up to q."""

    def regularizer(self, step: int | IntArray) -> Regularizer:
        """The regularizer after `step` records; for steps (n,) with their axis in front."""
        matrix, _ = self.bounds(step)
        return Regularizer(self.ridge + matrix, self.ridge + 0 * matrix, self.ridge + 2 * matrix)


class Confidence(NamedTuple):
    """The confidence ellipsoid after some numbers of records."""

    growth: FloatArray
    """G_t."""
    radius: FloatArray
    """beta_t."""


@dataclass(frozen=True)
class LogisticUCB(LinUCB):
    r"""LinUCB on linearized records: the mean reward is sigma(<theta, x>), in units of the range's width from its low end.

    A record (x, y) is linearized at the estimate that its user was served with, see `linearized`: it adds (w x x^T, c x),
    with w the least slope of a chord of sigma at z, z = <theta_(t-1), x> moved into [-S, S], and c = y - sigma(z) + w z.
    After t rounds, with noise N_t and n_t, |N_t| <= q and |n_t| <= g for all t,

        V_t = G_t + N_t + (a + q) I,  G_t = sum w x x^T,     theta_t = V_t^-1 (sum c x + n_t),

    and each user gets the action of largest <theta_t, x> + beta_t |x| in V_t^-1. Old records stay linearized where they
    were: errors of early estimates are forgotten as weights of later ones add up, and no record is read twice.

    Unit of privacy: one user's record, contexts and reward. Protected: the actions of all other users. Claim: (epsilon,
    delta)-joint DP, for neighbors that replace one record. Sensitivity: `LinearizedGaussian`; x is shortened to norm 1 and
    the reward clipped, whatever the record holds. The pivot is released, and a later record's statistic depends on others'
    data through it alone: adaptive inputs, for which a factorized sum costs one event (`bandana.privacy_core.factorized`).
    Public: arms, d, T, S, the range. Cost a round: O(n_actions d^2 + d^3).

    Radius. Let eta = y - E y, 1/2-sub-Gaussian; b = a + 2 q, so that A_t = V_t - G_t has a <= A_t <= b; tau = 2 q / a; m =
    sigma'(S), the least w; U_t = G_t + b I; E_t = sum x (c - w <theta, x>) - b theta; Phi_t = |E_t|^2 in U_t^-1. A record
    adds rho x to E, rho = eta + (alpha - w) u, where u = <theta, x> - z and alpha >= w, alpha <= 1/4, is the slope of the
    chord of sigma between them; |rho| <= 1, as sigma(z) + w u lies between two values of sigma. With h = |x|^2 and p = <x,
    E> in U_(t-1)^-1 (Sherman and Morrison),

        Phi_t - Phi_(t-1) = (2 rho p + rho^2 h - w p^2) / (1 + w h).

    The estimate errs in direction x by p + e, e = x^T (V^-1 - U^-1) E + x^T V^-1 (n + (b - A) theta), so that |e| <= sqrt h
    (tau sqrt Phi + sqrt(1 + tau) nu), nu = (g + 2 q S) / sqrt a: U^(1/2) V^-1 U^(1/2) lies between 1 and 1 + tau. As u is
    -(p + e) moved towards 0, 2 (alpha - w) u p <= 2 (alpha - w) (|u e| - u^2) <= e^2 / 8. The noise of rewards, sum of (2
    eta p - w p^2) / (1 + w h), exceeds log(2 / failure) / (2 m) at some time with probability failure/2 at most: E exp(2 k
    eta p / (1 + w h)) <= exp(k^2 p^2 / (2 (1 + w h)^2)), which is exp(k w p^2 / (1 + w h)) at most for k = 2 m (Ville). The
    sum of h / (1 + w h) is at most G_t / m with

        G_t = d log(1 + w(0) t / (d b)) >= log det U_t - d log b.

    Together, with F_t a bound on Phi up to t, chi = tau^2 G_t / (4 m) < 1, and another failure/2 for the norms of the noise:

        F_t = (b S^2 + (G_t + log(2 / failure) / 2) / m + (1 + tau) nu^2 G_t / (4 m)) / (1 - chi),
        |theta_t - theta| in V_t <= beta_t = sqrt((1 + tau) F_t) + nu.

    Without noise, b = a, this is S^2 a + (G_t + ...) / m: the result of Zhang et al. up to constants. Where chi passes 1/2
    at the horizon, a being small, or where the width is scaled below 1, nothing is proved, and the radius is sqrt(b S^2 +
    (G_t + log(2 / failure) / 2) / m) + nu: what the proof adds for pivots that are noisy is left out.

    Departures from Zhang et al.: weights are chords' slopes, up to 1 / (2 S), where they have sigma'(S); z is moved into
    [-S, S], where they project the estimate; records are weighed into one sum, which can have noise.

    Attributes: those of `LinUCB`, where
      ridge: a.
      parameter_bound: S.
      deviation: of the noise in one entry off the diagonal, its largest in the run.
    """

    regressor = _ConstantShift

    @cached_property
    def weights(self) -> Weights:
        """Bounds that S implies on w and c."""
        return Weights(self.parameter_bound)

    def _noise(self, step: int) -> tuple[float, float]:
        """Q and g, the same before the first release."""
        assert self.deviation is not None
        return self.matrix_norm * self.deviation, self.vector_norm * self.deviation

    def statistic(self, released: Model, record: Record) -> FloatArray:
        """(n_reps, d, d + 1) what the record adds to the sums, linearized at the estimate of its round."""
        low, width = self.reward_range.low, self.reward_range.width
        y = (record.rewards[:, 0] - low * record.n_records) / width
        return linearized(self.chosen(record), y, released.estimate, self.parameter_bound)

    def _learn(self, model: Model, statistic: FloatArray, step: int) -> None:
        """Fills the model from noisy sums (n_reps, d, d + 1)."""
        self.regression.fit(statistic, step, model.estimate, model.inverse)
        model.width[:] = self.beta_scale * self._radii[step]

    @cached_property
    def _radii(self) -> FloatArray:
        """(horizon + 1,) beta_t, public."""
        return self.confidence(np.arange(self.horizon + 1)).radius

    @cached_property
    def shares(self) -> tuple[float, float, float]:
        """b, tau and nu."""
        (matrix, vector), a = self._noise(0), self.ridge
        return a + 2 * matrix, 2 * matrix / a, (vector + 2 * matrix * self.parameter_bound) / math.sqrt(a)

    def growth(self, steps: ArrayLike) -> FloatArray:
        """G_t after so many records, any shape."""
        d, largest = self.n_features, self.weights.largest
        return np.asarray(d * np.log1p(largest * np.asarray(steps, dtype=float) / (d * self.shares[0])))

    @cached_property
    def is_proved(self) -> bool:
        """True if a is so large that the radius holds up to the horizon, and the scale of the width at least 1."""
        chi = self.shares[1] ** 2 * float(self.growth(self.horizon)) / (4 * self.weights.least)
        return self.beta_scale >= 1 and chi <= _MOST_CHI

    def confidence(self, steps: ArrayLike) -> Confidence:
        """The ellipsoid after so many records, any shape."""
        (b, tau, nu), least, growth = self.shares, self.weights.least, self.growth(steps)
        square = b * self.parameter_bound**2 + (growth + math.log(2 / self.failure) / 2) / least
        if self.is_proved:
            square += (1 + tau) * nu**2 * growth / (4 * least)
            square *= (1 + tau) / (1 - tau**2 * growth / (4 * least))
        return Confidence(growth, np.sqrt(square) + nu)

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most `failure`, at every horizon; all constants are explicit.

        Whatever the contexts are, as long as |theta| <= S. With theta in every ellipsoid the log-odds of the best action
        are at most 2 s beta_t |x| in V_t^-1 above those of the chosen x, s the scale of the width, and a mean is at most a
        quarter of that above, in units of the range's width D; it is never more than tanh(S / 2) above. |x|^2 in V^-1 is at
        most (1 + tau) h, w h >= m h, and the sum of min(1, w h) is at most G_T / log 2, since min(1, u) <= log2(1 + u):

            R_T <= D max(tanh(S / 2), s beta_T sqrt((1 + tau) / m) / 2) sqrt(T G_T / log 2),  and at most D tanh(S / 2) T.

        Of order sqrt T in T; noise enters it by b = a + 2 q and by a, which is chosen of order q sqrt(log T).

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1, or `floor` too small: then nothing is proved.
        """
        if self.beta_scale < 1:
            raise ValueError(f"the regret bound holds for a beta_scale of at least 1, got {self.beta_scale!r}")
        rounds = np.asarray(horizon, dtype=float)
        if not self.is_proved:
            raise ValueError(f"floor must be larger for a regret bound over {self.horizon} rounds, got {self.ridge!r}")
        confidence, tau, most = self.confidence(rounds), self.shares[1], math.tanh(self.parameter_bound / 2)
        each = np.maximum(most, self.beta_scale * confidence.radius * math.sqrt((1 + tau) / self.weights.least) / 2)
        cost = each * np.sqrt(rounds * confidence.growth / math.log(2))
        return np.asarray(self.reward_range.width * np.minimum(most * rounds, cost))


@dataclass(frozen=True)
class LogisticSettings:
    """Settings of all forms of LogisticUCB.

    Attributes: as in `LinUCBSettings`, and
      logit_bound: S, bound on |theta|.
      floor: a; None: `best_floor` at a beta_scale of at least 1, and below, where nothing is proved, 1 + q, as of LinUCB.
    """

    n_actions: int
    dimension: int
    horizon: int
    reward_range: Interval
    logit_bound: float = _OTHERWISE
    failure: float | None = None
    beta_scale: float = 1.0
    floor: float | None = None

    def __post_init__(self) -> None:
        check_shape(self.n_actions, self.dimension, self.horizon)
        positive("logit_bound", self.logit_bound)
        failure_of(self.failure, self.horizon)

    def twin(self) -> LogisticUCB:
        """The non-private twin: the same on exact sums."""
        return self._built(exact_sums().sums, 0.0, 0.0, 0.0)

    def private(self, promise: ApproxDP) -> LogisticUCB:
        """The form under joint privacy: a factorized sum, one event a record, with GOE noise at exactly the promise."""
        noise = LinearizedGaussian.of(self.logit_bound, calibrate(promise, Factorized(self.horizon)))
        sums = FactorizedSum(noise, self.horizon)
        largest = max(sums.noise_deviation(step) for step in range(1, self.horizon + 1))
        matrix, vector = quantiles(self.dimension, self.horizon, failure_of(self.failure, self.horizon))
        return self._built(sums, matrix, noise.vector_ratio * vector, largest)

    def best_floor(self, matrix: float, vector: float) -> float:
        """The a at which chi is at most 1/2 and its own share of F about that of b S^2; at least 1.

        sqrt(G / (2 m)) (g + 2 q S) / S, G at b = 1: then chi = 2 q^2 S^2 / (g + 2 q S)^2 <= 1/2, and (1 + tau) nu^2 G / (4
        m) = b S^2 / 2, each with G in place of the smaller G_t.

        Args:
          matrix: q.
          vector: g.
        """
        weights, s = Weights(self.logit_bound), self.logit_bound
        growth = self.dimension * math.log1p(weights.largest * self.horizon / self.dimension)
        return max(1.0, math.sqrt(growth / (2 * weights.least)) * (vector + 2 * matrix * s) / s)

    def _built(self, sums: PrivateSum, matrix: float, vector: float, deviation: float) -> LogisticUCB:
        q, g = matrix * deviation, vector * deviation
        floor = or_else(self.best_floor(q, g) if self.beta_scale >= 1 else 1 + q, self.floor)
        return LogisticUCB(
            self.n_actions, self.dimension, self.reward_range, self.horizon, sums, floor,
            failure_of(self.failure, self.horizon), 0.5, self.logit_bound, matrix, vector, deviation, self.beta_scale,
        )  # fmt: skip


_ZHANG = "Zhang, Yang, Jin, Xiao and Zhou (2016), Online stochastic linear optimization under one-bit feedback"


def logit_bound_of(settings: Settings) -> float:
    """S: as given, or the problem's, or 3 where its rewards are not said to be logistic."""
    problem, given = settings.problem, settings.parameters[LOGIT_BOUND.name]
    return given or (problem.logit_bound if isinstance(problem, LogisticProblem) else _OTHERWISE)


_logistic = built_by(LogisticSettings, logit_bound=logit_bound_of)


def _structure(settings: Settings) -> Structure | None:
    return None if settings.privacy is None else Factorized(settings.problem.known_horizon)


def _bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """Only where rewards are logistic, with |theta| within the bound that the algorithm counts on."""
    problem, algorithm = settings.problem, _logistic(settings)
    if not isinstance(problem, LogisticProblem) or problem.logit_bound > algorithm.parameter_bound:
        return None
    if not algorithm.is_proved:
        return None
    beta = algorithm.confidence(grid[-1])
    q, g = algorithm.regression.bounds(0)
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{_ZHANG}, as derived here with noise: D max(tanh(S / 2), s beta_t sqrt((1 + tau) / m) / 2) sqrt(t G_t / log 2), "
        "and at most D tanh(S / 2) t, D the range's width, for any contexts and |theta| <= S. Here G_t = d log(1 + w t / "
        "(d b)), beta_t = sqrt((1 + tau) F_t) + nu, F_t = (b S^2 + (G_t + log(2 / failure) / 2) / m + (1 + tau) nu^2 G_t / "
        "(4 m)) / (1 - tau^2 G_t / (4 m)), nu = (g + 2 q S) / sqrt a, b = a + 2 q, tau = 2 q / a. Numbers: d = "
        f"{algorithm.n_features}, S = {algorithm.parameter_bound:g}, m = {algorithm.weights.least:.3g}, w = "
        f"{algorithm.weights.largest:.3g}, s = {algorithm.beta_scale:g}, a = {algorithm.ridge:.3g}, q = {q:.3g}, g = "
        f"{g:.3g}, beta = {float(beta.radius):.3g} at the end. Exceeded with probability at most {algorithm.failure:.3g}",
    )


_FORMS = (
    Form(f"{_ZHANG}, in one weighted sum", _ZHANG),
    Form(
        f"{_ZHANG}, on noisy sums after Shariff and Sheffet (2018)", _ZHANG, TrustModel.JOINT, "approximate", ("tight",),
        "(epsilon, delta)-joint DP: the actions of all other users, replace one record (contexts and rewards)",
        "the actions of all other users", "one release of each linearized record, derived here",
    ),
)  # fmt: skip
LOGISTIC: tuple[Entry, ...] = tuple(
    form.entry(
        NAME, "bandits/contextual", _logistic, "one user's record (contexts and rewards)", plays_on=(CONTEXTUAL,),
        parameters=declared(FAILURE, BETA_SCALE, LOGIT_BOUND, FLOOR), bound=_bound, structure=_structure, audit_shape=(3, 3),
    )
    for form in _FORMS
)  # fmt: skip
"""Optimism for logistic rewards under joint privacy, and its twin."""
