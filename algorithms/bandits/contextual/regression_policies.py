r"""Policies that draw actions from predictions of a private regression: SquareCB, FastCB and policy optimization.

The regression is that of `LinUCB` (or, of logistic means, of `LogisticUCB`): noisy sums, released at public rounds. Coins
choose the action from predicted losses, by a rule of `action_rules`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.contextual.action_rules import (
    ActionRule,
    BonusOptimization,
    InverseGap,
    PolicyOptimization,
    products,
)
from bandana.algorithms.bandits.contextual.greedy import LeastShift
from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, LinUCBSettings
from bandana.algorithms.bandits.contextual.logistic_ucb import LOGIT_BOUND, LogisticSettings, LogisticUCB, logit_bound_of
from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.entry import BuiltBy, Entry, Form, Settings, built_by
from bandana.algorithms.logistic import mean_of
from bandana.algorithms.parameters import RIDGE, Parameter, declared
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import ApproxDP, Exact, Interval, Ledger, PhaseSum, PhaseTotal, PrivateSum, TrustModel
from bandana.privacy_core.checks import failure_of


class Predictors(NamedTuple):
    """All that decisions are made from, besides coins; a function of noisy sums."""

    estimate: FloatArray
    """(n_reps, d) of theta, by the last release."""
    inverse: FloatArray
    """(n_reps, d, d) inverse of the noisy, shifted Gram matrix."""
    width: FloatArray
    """(n_reps,) 0: there is no confidence ellipsoid."""
    clock: IntArray
    """(n_reps,) rounds played; the same in all replicates."""
    past: FloatArray
    """(n_reps, n_releases, d) the estimates of all releases, 0 before each; none for rules that read the last one."""


_UNIT_GAPS = InverseGap(1.0)
"""Rule where none is given: fields of `LinUCB` have defaults, so this one needs one."""


@dataclass(frozen=True)
class RegressionPolicy(LinUCB):
    r"""Draws each action from a rule's distribution, given the losses that a private ridge regression predicts.

    The sums of (x x^T, y x) over all users so far are released after the rounds of `ends`, about `growth` times as many each
    time. After release k, with N and n the noise of the sums and q_k >= |N| a quantile,

        V = sum x x^T + N + (lambda + q_k) I,     theta_k = V^-1 (sum y x + n),

    and action a has the predicted loss 1/2 - <theta_k, x_a> / D, D the range's width. Users of the batch after it get an
    action that coins draw from `rule`; those of the first batch a uniform one.

    Unit of privacy: one user's record, contexts and reward. Protected: the actions of all *other* users. Claim: (epsilon,
    delta)-joint DP, for neighbors that replace one record. Sensitivity: that of LinUCB. x is shortened to norm 1, and the
    reward clipped and centered to |y| <= Y, whatever the record holds, so that a record moves its batch's (sum x x^T, sum y
    x) by at most S of `JointGaussian`. A record lies in one batch, which enters a factorized sum as one step: all releases
    together cost one Gaussian event of mu = S / sigma (`bandana.privacy_core.factorized`), also for batches whose actions
    depend on earlier releases. Batches end at public rounds.

    The rest is post-processing. Let A_i be the action of user i, and C all coins, whose law depends on no data. A_i is a
    function of C, of the releases before user i and of the own vectors: other records enter it through releases alone. So
    given C, actions of all users but i are a function of the releases and of records other than i's, which neighbors share
    (the Billboard lemma of Hsu, Huang, Roth, Roughgarden and Wu 2014). The releases are (epsilon, delta)-DP given each C: so
    are these actions, and C with them (the proposition of `bandana.algorithms.coins`). Constants of the rule are public: no
    rate follows data.
    The own action may show the own vectors to whoever sees it.

    Public: arms, d, T, the range, all parameters. Cost: O(n_actions d) a round, times the number of releases for rules that
    read all predictors, and O(d^3) a release.

    Departures from Attias and others (2026): their oracle is fitted to the last batch alone, whose matrix and vector get
    noise each; here the sums of all batches are released, which is post-processing as cheap, with joint noise, and the
    regularizer outweighs the noise. Their batches double.

    Attributes: those of `LinUCB`, of which `failure` is that of the shift, and
      rule: turns predicted losses into probabilities.
      growth: factor from one release's round to the next one's, at least 1.
    """

    rule: ActionRule = _UNIT_GAPS
    growth: float = 2.0

    regressor = LeastShift

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.growth < math.inf:
            raise ValueError(f"growth must be a finite number of at least 1, got {self.growth!r}")

    @property
    def n_coins(self) -> int:
        """Coins of a decision."""
        return self.rule.n_coins

    @cached_property
    def ends(self) -> IntArray:
        """(n_releases,) public rounds after which sums are released."""
        return ends_of(self.horizon, self.growth)

    @property
    def most_updates(self) -> int:
        """Number of releases."""
        return len(self.ends)

    def init(self, n_reps: int) -> tuple[Sensitive, Predictors]:  # type: ignore[override]
        """The states before the first round."""
        sensitive, model = super().init(n_reps)
        n_kept = self.most_updates if self.rule.reads_all else 0
        return sensitive, Predictors(*model, np.zeros((n_reps, n_kept, self.n_features)))

    def losses(self, estimates: FloatArray, context: FloatArray) -> FloatArray:
        """(n_reps, m, n_actions) losses of the offered actions that estimates (n_reps, m, d) predict."""
        return np.asarray(0.5 - self._logits(estimates, context) / self.reward_range.width)

    def _logits(self, estimates: FloatArray, context: FloatArray) -> FloatArray:
        offered = self.offered(context)
        out = np.empty((*estimates.shape[:2], offered.shape[1]))
        products(estimates, offered, out)
        return out

    def probabilities(self, released: Predictors, context: FloatArray, coins: FloatArray) -> FloatArray:
        """(n_reps, n_actions) of the actions; with several coins, given all but the last one."""
        n = int(np.searchsorted(self.ends, released.clock[0], side="right"))
        if n == 0:
            return np.full((len(coins), self.n_actions), 1 / self.n_actions)
        read = released.past[:, :n] if self.rule.reads_all else released.estimate[:, None]
        return self.rule.probabilities(self.losses(read, context), self.ends[:n], coins)

    def act(  # type: ignore[override]
        self, released: Predictors, context: FloatArray | None, step: int, coins: FloatArray
    ) -> IntArray:
        """(n_reps,) the actions that the last coin falls on."""
        if context is None:
            raise ValueError("this algorithm decides from contexts, and the stream offers none")
        bounds = np.cumsum(self.probabilities(released, context, coins), axis=1)[:, :-1]
        return np.asarray((coins[:, -1:] >= bounds).sum(axis=1), dtype=np.int64)

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Predictors, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Predictors]:
        """Adds the record to its batch; after the last one of a batch releases the sums, and solves for theta."""
        state = self.sums.add(sensitive.sum, self.statistic(released, record), record.n_records)  # type: ignore[arg-type]
        np.add(released.clock, record.n_records, out=released.clock)
        place = int(np.searchsorted(self.ends, released.clock[0]))
        if place < len(self.ends) and self.ends[place] == released.clock[0]:
            state, noisy, _ = self.sums.close(state, ledger)
            self._learn(released, noisy, place + 1)
            released.past[:, place : place + 1] = released.estimate[:, None]
        return Sensitive(state), released

    def _noise(self, step: int) -> tuple[float, float]:
        """Bounds on the norms of the noise of a release."""
        return LinUCB._noise(self, step)

    def _learn(self, model: Predictors, statistic: FloatArray, step: int) -> None:  # type: ignore[override]
        """Fills the estimate from noisy sums (n_reps, d, d + 1); the width stays 0."""
        self.regression.fit(statistic, step, model.estimate, model.inverse)

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        """Nothing is proved at these batches and rates.

        Raises:
          ValueError: always.
        """
        raise ValueError(f"no bound is proved on the regret of a {type(self).__name__} that releases sums of batches")


@dataclass(frozen=True)
class LogisticPolicy(RegressionPolicy, LogisticUCB):  # type: ignore[misc]
    r"""Draws each action by the losses 1 - sigma(<theta, x>) that a private logistic regression predicts.

    The regression is that of `LogisticUCB`: a record adds (w x x^T, c x), linearized at the released estimate of its batch,
    and the sums are released as those of `RegressionPolicy` are, with the noise of `LinearizedGaussian`. The pivot being
    released, a batch's statistic depends on other records through releases alone, and a record moves it by at most the
    mechanism's sensitivity: the privacy of `RegressionPolicy` carries over with it.

    Departures: FastCB's oracle minimizes the logistic loss of all records. In the code of Attias and others (2026) a random
    linear term makes it private, by a theorem on the exact minimizer (Chaudhuri, Monteleoni and Sarwate 2011, Algorithm 2),
    which says nothing of what a solver returns. The steps here need no solver, and release each record once.

    Attributes: those of `RegressionPolicy`, where `parameter_bound` is S, the bound on log-odds.
    """

    def losses(self, estimates: FloatArray, context: FloatArray) -> FloatArray:
        """(n_reps, m, n_actions) losses of the offered actions that estimates (n_reps, m, d) predict."""
        bound = self.parameter_bound
        return mean_of(-np.clip(self._logits(estimates, context), -bound, bound))


def ends_of(horizon: int, growth: float) -> IntArray:
    """(n,) rounds after which sums are released: 1, and then e -> max(e + 1, ceil(growth (e + 1)) - 1) below the horizon.

    For a growth of 2, batches of 1, 2, 4, ... rounds; for 1, of one round each.
    """
    ends = [1]
    while (following := max(ends[-1] + 1, math.ceil(growth * (ends[-1] + 1)) - 1)) < horizon:
        ends.append(following)
    return np.array(ends, dtype=np.int64)


def _exact() -> PrivateSum:
    """Sums of batches without noise."""
    return PhaseTotal(PhaseSum(Exact()))


@dataclass(frozen=True)
class PolicySettings:
    """Settings of the policies on a linear regression; see `LinUCBSettings` for those that are not here.

    Attributes: as in `LinUCBSettings`, and
      rule: of actions.
      growth: factor between the rounds of releases.
    """

    n_actions: int
    dimension: int
    horizon: int
    reward_range: Interval
    rule: ActionRule
    growth: float
    ridge: float = 1.0

    def twin(self) -> RegressionPolicy:
        """The non-private twin: the same on exact sums."""
        return self._policy(RegressionPolicy, self._linear.twin(), sums=_exact())

    def private(self, promise: ApproxDP) -> RegressionPolicy:
        """The form under joint privacy: a factorized sum over the batches, with GOE noise at exactly the promise."""
        return self._policy(RegressionPolicy, self._linear.private(promise, TrustModel.JOINT, "tight"))

    @property
    def _linear(self) -> LinUCBSettings:
        """LinUCB, of which only the sums are used, with a step for each batch."""
        steps, failure = len(ends_of(self.horizon, self.growth)), failure_of(None, self.horizon)
        return LinUCBSettings(self.n_actions, self.dimension, steps, self.reward_range, self.ridge, failure)

    def _policy(self, kind: type[RegressionPolicy], learner: LinUCB, **more: PrivateSum) -> RegressionPolicy:
        parts = {part.name: getattr(learner, part.name) for part in fields(learner)}
        parts |= {"horizon": self.horizon, "rule": self.rule, "growth": self.growth, "deviation": None, **more}
        return kind(**parts)


@dataclass(frozen=True)
class LogisticPolicySettings(PolicySettings):
    """Settings of the policies on a logistic regression.

    Attributes: those of `PolicySettings`, and
      logit_bound: S.
    """

    logit_bound: float = 3.0

    def twin(self) -> RegressionPolicy:
        """The non-private twin: the same on exact sums."""
        return self._policy(LogisticPolicy, self._logistic.twin(), sums=_exact())

    def private(self, promise: ApproxDP) -> RegressionPolicy:
        """The form under joint privacy, see `LogisticPolicy`."""
        return self._policy(LogisticPolicy, self._logistic.private(promise))

    @property
    def _logistic(self) -> LogisticSettings:
        steps, failure = len(ends_of(self.horizon, self.growth)), failure_of(None, self.horizon)
        return LogisticSettings(
            self.n_actions, self.dimension, steps, self.reward_range, self.logit_bound, failure, floor=self.ridge
        )


GROWTH = Parameter("growth", "Factor from the round of one release to that of the next, at least 1.", 1.3)
GAMMA_SCALE = Parameter("gamma_scale", "Gaps are weighed by gamma = gamma_scale sqrt(n_actions t), t rounds before.", 10.0)
RATE_SCALE = Parameter("rate_scale", "Factor on the learning rate min(1/K, 1/sqrt(K B)) after a batch of B rounds.", 128.0)
BONUS = Parameter("bonus", "Scale of the bonus of actions that would have been played little.", 0.01)
RATE = Parameter("rate", "Learning rate of the exponential weights, for each round of a batch.", 0.1)

_FOSTER_RAKHLIN = "Foster and Rakhlin (2020), Beyond UCB: optimal and efficient contextual bandits with regression oracles"
_FOSTER_KRISHNAMURTHY = "Foster and Krishnamurthy (2021), Efficient first-order contextual bandits"
_ATTIAS = (
    "Attias, Levy, Ryabchenko et al. (2026), Vanilla policy optimization is both optimal and differentially private for "
    "stochastic contextual bandits"
)


def _inverse_gap(settings: Settings, is_relative: bool = False) -> ActionRule:
    return InverseGap(settings.parameters["gamma_scale"], is_relative=is_relative)


def _bonus(settings: Settings) -> ActionRule:
    return BonusOptimization(settings.parameters["bonus"], settings.parameters["rate"])


def _vanilla(settings: Settings) -> ActionRule:
    return PolicyOptimization(settings.parameters["rate_scale"])


def _entries(name: str, paper: str, build: BuiltBy, *parameters: Parameter) -> tuple[Entry, ...]:
    """The twin and the form under joint privacy."""
    forms = (
        Form(f"{paper}, on a ridge regression", paper),
        Form(
            f"{paper}, on a private regression (as in arXiv:2609.33888)", paper, TrustModel.JOINT, "approximate", ("tight",),
            "(epsilon, delta)-joint DP: the actions of all other users, replace one record (contexts and rewards)",
            "the actions of all other users", "one release of each record's statistic, derived here",
        ),
    )  # fmt: skip
    return tuple(
        form.entry(
            name, "bandits/contextual", build, "one user's record (contexts and rewards)", plays_on=(CONTEXTUAL,),
            parameters=declared(*parameters, GROWTH, RIDGE), audit_shape=(3, 3),
        )
        for form in forms
    )  # fmt: skip


POLICIES: tuple[Entry, ...] = (
    *_entries("squarecb", _FOSTER_RAKHLIN, built_by(PolicySettings, rule=_inverse_gap), GAMMA_SCALE),
    *_entries(
        "fastcb", _FOSTER_KRISHNAMURTHY,
        built_by(LogisticPolicySettings, rule=partial(_inverse_gap, is_relative=True), logit_bound=logit_bound_of),
        GAMMA_SCALE, LOGIT_BOUND,
    ),
    *_entries("bpo", _ATTIAS, built_by(PolicySettings, rule=_bonus), BONUS, RATE),
    *_entries("vpo", _ATTIAS, built_by(PolicySettings, rule=_vanilla), RATE_SCALE),
)  # fmt: skip
"""Policies on a private regression under joint privacy, and their twins."""
