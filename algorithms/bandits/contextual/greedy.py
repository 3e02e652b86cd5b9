r"""Greedy ridge regression on noisy messages: local privacy at regret sqrt T where contexts explore by themselves.

Source: Han, Liang, Wang and Zhang (2021), Generalized linear bandits with local differential privacy, the estimator by least
squares; the bound on the regret is derived here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, Model
from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.parameters import FAILURE, RIDGE, Kind, Parameter, declared
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression.noisy_sums import NoisySums, exact_sums, quantiles
from bandana.algorithms.regression.private_ridge import PrivateRidge, Regularizer, regularizer
from bandana.privacy_core import ApproxDP, Interval, JointGaussian, LocalSum, TrustModel, calibrate
from bandana.privacy_core.checks import failure_of, probability

DIVERSITY = Parameter(
    "diversity", "Lower bound on the least eigenvalue of E[x x^T] of greedily chosen vectors; the regret bound needs it.",
    None, Kind.SHARE, otherwise="none: no regret bound is stated",
)  # fmt: skip


class LeastShift(PrivateRidge):
    """Ridge regression that shifts by lambda + q: enough for V >= sum x x^T + lambda I, and no more."""

    def regularizer(self, step: int | IntArray) -> Regularizer:
        """The regularizer after `step` records; for steps (n,) with their axis in front."""
        return regularizer(self.ridge, self.bounds(step)[0], margin=0.0)


@dataclass(frozen=True)
class GreedyRidge(LinUCB):
    r"""Plays the action of largest estimated mean; the estimate is that of a ridge regression on noisy messages.

    After t rounds, with N and n the noise that the messages hold together and q_t >= |N| a quantile,

        V = sum x x^T + N + (lambda + q_t) I,     theta_t = V^-1 (sum y x + n).

    Nothing explores but the contexts: each user brings fresh vectors, which point in all directions whatever is played. With
    a width, the noise of the matrix would enter it as (sqrt t)^(1/2), and the regret would be T^(3/4).

    Unit of privacy: one user's record, contexts and reward. Protected: the message that a user sends, x x^T and y x with
    noise, hence all that follows from messages. Claim: (epsilon, delta)-local DP, for neighbors that replace one record.
    Sensitivity: that of LinUCB. x is shortened to norm 1 and y = reward - middle to |y| <= Y, so that (x x^T, y x) moves by
    at most S of `JointGaussian`; each user sends one message, released once, so a record pays for one release. A user's
    action depends on the own contexts and on earlier messages alone. Public: T, d, the range. Cost a round: O(n_actions d +
    d^3).

    Departures from the paper: the noise is calibrated exactly, by the joint sensitivity of matrix and vector, and is that of
    the GOE, which is least; the shift is lambda plus one bound on the norm of the noise; rewards are centered.

    Attributes: those of `LinUCB`, and
      diversity: kappa of `regret_bound`; None: unknown.
    """

    diversity: float | None = None

    regressor = LeastShift

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.diversity is not None and probability("diversity", self.diversity) > 1 / self.context_dimension:
            raise ValueError(
                f"diversity must be at most 1 / d = {1 / self.context_dimension:g}, as |x| <= 1 for d = "
                f"{self.context_dimension}, got {self.diversity!r}"
            )

    def _learn(self, model: Model, statistic: FloatArray, step: int) -> None:
        """Fills the estimate from noisy sums (n_reps, d, d + 1); the width stays 0."""
        self.regression.fit(statistic, step, model.estimate, model.inverse)

    def error_bound(self, steps: IntArray) -> FloatArray:
        """(n,) bounds on |theta_t - theta| after t = `steps` rounds, infinite where none holds; see `regret_bound`.

        Raises:
          ValueError: `diversity` is not known.
        """
        if self.diversity is None:
            raise ValueError("diversity must be given: without a bound on E[x x^T] nothing is proved of a greedy choice")
        d, share = self.context_dimension, self.failure / 4
        matrix, vector = self.regression.bounds(steps)
        seen = self.diversity * steps
        least = seen - np.sqrt(2 * seen * math.log(d * self.horizon / share))
        eigenvalue = np.maximum(least, 0.0) + self.ridge
        chance = self.reward_scale * np.sqrt(2 * math.log(1 / share) + d * np.log1p(steps / (d * self.ridge)))
        shrunk = (self.ridge + 2 * matrix) * self.parameter_bound
        return np.asarray(chance / np.sqrt(eigenvalue) + (vector + shrunk) / eigenvalue)

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most `failure`, at every horizon; all constants are explicit.

        Assumed: given the past, the vector that is chosen for any theta_t has E[x x^T] >= kappa I, kappa = `diversity`, and
        |theta| <= B. Let S = sum x x^T, eta = sum x (y - E y), g_t >= |n|. Then V theta_t = S theta + eta + n, so

            theta_t - theta = V^-1 (eta + n - A theta),     A = N + (lambda + q_t) I,     lambda <= A <= lambda + 2 q_t,

        and with l = lambda_min(V) >= lambda_min(S) + lambda, as V >= S + lambda I,

            |theta_t - theta| <= |eta|_(S + lambda I)^-1 / sqrt l + (g_t + (lambda + 2 q_t) B) / l.

        The first norm is at most R sqrt(2 log(4/failure) + d log(1 + t / (lambda d))) at all t (Abbasi-Yadkori et al. 2011,
        Theorem 1). The matrix Chernoff bound for adapted sequences (Tropp 2011, User-friendly tail bounds for matrix
        martingales; with e^-s / (1 - s)^(1 - s) <= e^(-s^2/2)) gives lambda_min(S) >= kappa t - sqrt(2 kappa t log(4 d
        T/failure)) at all t <= T. The noise has failure/2 (`quantiles`). A round costs at most 2 |theta_t - theta|, as both
        actions' vectors have norm at most 1, and at most D, the range's width:

            R_T <= D + sum_(0 < t < T) min(D, 2 |theta_t - theta|),

        where the noise enters as sqrt t / (kappa t): sqrt T in all.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `diversity` is not known.
        """
        rounds = np.asarray(horizon, dtype=np.int64)
        steps = np.arange(1, max(int(rounds.max(initial=1)), 2))
        span = self.reward_range.width
        cost = np.concatenate([[0.0, span], span + np.cumsum(np.minimum(span, 2 * self.error_bound(steps)))])
        return np.asarray(cost[rounds])


@dataclass(frozen=True)
class GreedySettings:
    """Settings of all forms of the greedy regression; see `LinUCBSettings` for their meaning."""

    n_actions: int
    dimension: int
    horizon: int
    reward_range: Interval
    ridge: float = 1.0
    failure: float | None = None
    diversity: float | None = None

    def twin(self) -> GreedyRidge:
        """The non-private twin: greedy ridge regression on exact sums."""
        return self._built(exact_sums())

    def private(self, promise: ApproxDP) -> GreedyRidge:
        """The form under local privacy, its messages with GOE noise at exactly the promise."""
        half = self.reward_range.width / 2
        sums = LocalSum(JointGaussian(1.0, half, calibrate(promise)))
        return self._built(NoisySums(sums, *quantiles(self.dimension, self.horizon, failure_of(self.failure, self.horizon))))

    def _built(self, noisy: NoisySums) -> GreedyRidge:
        half = self.reward_range.width / 2
        return GreedyRidge(
            self.n_actions, self.dimension, self.reward_range, self.horizon, noisy.sums, self.ridge,
            failure_of(self.failure, self.horizon), half, half, *noisy[1:], diversity=self.diversity,
        )  # fmt: skip


_HAN = "Han, Liang, Wang and Zhang (2021), Generalized linear bandits with local differential privacy"


_greedy = built_by(GreedySettings)


def _bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _greedy(settings)
    if algorithm.diversity is None:
        return None
    matrix, vector = algorithm.regression.bounds(int(grid[-1]))
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{_HAN}, as derived here, with constants: D + sum min(D, 2 e_t), e_t = R sqrt(2 log(4 / failure) + d log(1 + t / "
        f"(lambda d))) / sqrt l + (g_t + (lambda + 2 q_t) B) / l, l = lambda + max(0, kappa t - sqrt(2 kappa t log(4 d T / "
        f"failure))). It holds where greedy choices have E[x x^T] >= kappa I and |theta| <= B. Here kappa = "
        f"{algorithm.diversity:g}, D = {algorithm.reward_range.width:g}, d = {algorithm.context_dimension}, lambda = "
        f"{algorithm.ridge:g}, R = B = {algorithm.reward_scale:g}, q_t = {matrix:.3g} and g_t = {vector:.3g} at the end. "
        f"Exceeded with probability at most {algorithm.failure:.3g}",
    )


_FORMS = (
    Form(f"{_HAN}, least squares without noise", _HAN),
    Form(
        f"{_HAN}, least squares", _HAN, TrustModel.LOCAL, "approximate", ("tight",),
        "(epsilon, delta)-local DP of a user's message, replace one record (contexts and rewards)",
        "a user's messages", "privacy of the estimator by least squares",
    ),
)  # fmt: skip
GREEDY: tuple[Entry, ...] = tuple(
    form.entry(
        "greedy-ridge", "bandits/contextual", _greedy, "one user's record (contexts and rewards)", plays_on=(CONTEXTUAL,),
        parameters=declared(FAILURE, RIDGE, DIVERSITY), bound=_bound, audit_shape=(3, 3),
    )
    for form in _FORMS
)  # fmt: skip
"""Greedy regression under local privacy, and its twin."""
