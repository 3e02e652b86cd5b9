"""What the catalog says of an algorithm: what it plays on, what it takes, how it is built, and what it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from bandana.algorithms.mdp.models import LinearModel, MixtureModel
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.rkhs.kernels import Kernel
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import ApproxDP, GaussianDP, Guarantee, Interval, PureDP, Relation, RenyiDP, TrustModel
from bandana.privacy_core.checks import failure_of

FINITE, LINEAR, CONTEXTUAL, KERNEL, POOLED = "finite", "linear", "contextual", "kernel", "pooled"
"""What actions are: arms; arms with known features; vectors that each user brings; points of [-1, 1]^d that each user
brings, with a kernel for how alike they are; such points, of a finite public pool."""
MIXTURE, LINEAR_MDP = "linear-mixture", "linear-mdp"
"""Users live through episodes, of a linear-mixture or of a linear Markov decision process."""
EPISODIC = (MIXTURE, LINEAR_MDP)
"""Kinds in which a user is an episode."""
FROM_USERS = (CONTEXTUAL, KERNEL, POOLED)
"""Kinds in which users bring the actions."""
ARMS = (FINITE, LINEAR)
"""Kinds in which actions are arms, the same for all users: each is played once first."""


@dataclass(frozen=True)
class Problem:
    """What is publicly known of what an algorithm plays on.

    Attributes:
      n_actions: number of arms, or of actions that each user brings.
      reward_range: declared range of a reward.
      horizon: rounds or episodes; None where nobody asked.
      features: (n_actions, d) of linear arms.
      dimension: d of the vectors or points that users bring.
      kernel: of the points; they lie in [-1, 1]^d.
      pool: all that users may bring, if that is a finite public set.
      model: of episodes, all but the parameters.
    """

    n_actions: int
    reward_range: Interval
    horizon: int | None = None
    features: tuple[tuple[float, ...], ...] | None = None
    dimension: int | None = None
    kernel: Kernel | None = None
    pool: Pool | None = None
    model: MixtureModel | LinearModel | None = None

    def __post_init__(self) -> None:
        if self.model is not None and self.model.n_actions != self.n_actions:
            raise ValueError(f"model has {self.model.n_actions} actions, and the problem {self.n_actions}: they must agree")
        if self.kernel is not None and self.dimension is None:
            raise ValueError("dimension must be given with a kernel: it is that of the points")
        if self.pool is None:
            return
        if self.kernel is None:
            raise ValueError("a pool is one of points: give its kernel too")
        if (self.pool.n_actions, self.pool.dimension) != (self.n_actions, self.dimension):
            raise ValueError(
                f"pool has {self.pool.n_actions} actions of dimension {self.pool.dimension}, and the problem "
                f"{self.n_actions} of dimension {self.dimension}: they must agree"
            )

    @property
    def kind(self) -> str:
        """finite, linear, contextual, kernel, pooled, linear-mixture or linear-mdp."""
        if self.model is not None:
            return MIXTURE if isinstance(self.model, MixtureModel) else LINEAR_MDP
        if self.kernel is not None:
            return KERNEL if self.pool is None else POOLED
        if self.dimension is not None:
            return CONTEXTUAL
        return FINITE if self.features is None else LINEAR

    @property
    def known_horizon(self) -> int:
        """The horizon, of an algorithm that needs it.

        Raises:
          ValueError: it is not known.
        """
        if self.horizon is None:
            raise ValueError("this algorithm needs the horizon")
        return self.horizon


@dataclass(frozen=True)
class Settings:
    """What a user chooses for one algorithm.

    Attributes:
      problem: what it plays on.
      parameters: the entry's own parameters, all of them.
      calibration: one of the entry's, None for a non-private algorithm.
      privacy: the promise to calibrate to, None for a non-private algorithm.
    """

    problem: Problem
    parameters: Mapping[str, float]
    calibration: str | None = None
    privacy: Guarantee | None = None

    def shown(self) -> dict[str, float]:
        """The public parameters and the privacy level, for keys, MLflow and the report."""
        level: dict[str, float] = {}
        match self.privacy:
            case RenyiDP(alpha=alpha, epsilon=epsilon):
                level = {"alpha": alpha, "epsilon": epsilon}
            case PureDP(epsilon=epsilon):
                level = {"epsilon": epsilon}
            case ApproxDP(epsilon=epsilon, delta=delta):
                level = {"epsilon": epsilon, "privacy_delta": delta}
        return {**self.parameters, **level}

    def with_parameters(self, **changed: float) -> Settings:
        """The same with other parameters."""
        return replace(self, parameters={**self.parameters, **changed})


@dataclass(frozen=True)
class Claim:
    """What the source promises at given settings.

    Attributes:
      stated: the promise in the source's own definition.
      gaussian: the same as GDP: the audit holds its measurement against this.
      statement: in words.
      theorem: where it is printed.
      source: the publication.
      relation: which data sets are neighbors.
      trust: who sees the data.
      unit: what one record is.
    """

    stated: Guarantee
    gaussian: GaussianDP
    statement: str
    theorem: str
    source: str
    relation: Relation
    trust: TrustModel
    unit: str

    def epsilon_at(self, delta: float) -> float:
        """Epsilon at delta: of pure DP its own, as that of the Gaussian DP which follows from it is larger."""
        return self.stated.epsilon_at(delta) if isinstance(self.stated, PureDP) else self.gaussian.epsilon(delta)


class RegretBound(NamedTuple):
    """What a source proves of the regret at given settings.

    Attributes:
      values: (n_grid,), in units of reward, after so many rounds.
      text: the theorem and its constants, one line.
    """

    values: FloatArray
    text: str


Bound = Callable[[Settings, FloatArray | None, IntArray], RegretBound | None]
"""Settings, mean rewards (n_actions,) or None where they are unknown, grid of rounds -> the bound; None: none is proved."""


def claim_of(privacy: Guarantee, whose: str, theorem: str, source: str, unit: str) -> Claim:
    """A claim about the settings' privacy, its statement in the words of the guarantee.

    Args:
      privacy: the promise, with its relation and trust model.
      whose: what it covers, such as "all actions".
      theorem: where it is printed.
      source: the publication.
      unit: what one record is.
    """
    scope: dict[str, Any] = {"relation": privacy.relation, "trust": privacy.trust}
    match privacy:
        case RenyiDP():
            gaussian = GaussianDP.from_renyi(privacy.alpha, privacy.epsilon, **scope)
        case ApproxDP():
            gaussian = GaussianDP.from_epsilon_delta(privacy.epsilon, privacy.delta, **scope)
        case _:
            gaussian = privacy.gdp()
    statement = f"{whose} are {privacy}"
    return Claim(privacy, gaussian, statement, theorem, source, privacy.relation, privacy.trust, unit)


def _as_asked(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True)
class Entry:
    """One catalog line.

    Attributes:
      name: the algorithm's name.
      family: the folder that it stands in.
      privacy_model: none, central, joint or local.
      guarantee: approximate, pure or renyi; None for a non-private algorithm.
      calibrations: names of the noise calibrations.
      claim: the promise in words.
      source: publication and theorem.
      build: settings -> algorithm.
      plays_on: kinds of problems.
      parameters: name -> default value; None stands for 1 / horizon, see `failure_of`.
      promise: settings -> claim; None for a non-private algorithm.
      probes: n_actions -> the records at which a changed reward costs most; audits plant their canaries there.
      in_audit: settings -> the same with public parameters under which the few rounds of a replay hold several releases. The
        noise of a release depends on none of them, but for the number of batches of LSVI-UCB, which short runs cannot hold.
      audit_shape: (number of actions, d) of the problem that the catalog's own audit plays on.
      bound: the source's bound on the regret, where rewards are drawn as it assumes; None where it states none.
    """

    name: str
    family: str
    privacy_model: str
    guarantee: str | None
    calibrations: tuple[str, ...]
    claim: str
    source: str
    build: Callable[[Settings], Algorithm]
    plays_on: tuple[str, ...] = (FINITE, LINEAR)
    parameters: Mapping[str, float | None] = field(default_factory=dict)
    promise: Callable[[Settings], Claim] | None = None
    probes: Callable[[int], tuple[int, ...]] | None = None
    in_audit: Callable[[Settings], Settings] = _as_asked
    audit_shape: tuple[int, int] = (2, 2)
    bound: Bound | None = None

    def summary(self) -> dict[str, object]:
        """The public facts, for `bandana list --json`."""
        shown = ("name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source")
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name in shown}
        return found | {"plays_on": self.plays_on, "parameters": tuple(self.parameters)}

    def settings(
        self, problem: Problem, calibration: str | None = None, privacy: Guarantee | None = None, **parameters: float
    ) -> Settings:
        """Checked settings; a parameter that is not given has the entry's default.

        Raises:
          ValueError: it does not play on such a problem; a parameter is unknown; a calibration or privacy level is missing,
            unknown, of another kind, or given to a non-private algorithm.
        """
        if problem.kind not in self.plays_on:
            raise ValueError(f"{self.name} plays on {' and '.join(self.plays_on)} problems, not on a {problem.kind} one")
        for name in parameters:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ValueError(f"{self.name} takes no parameter {name}; its parameters are: {known}")
        if self.promise is None:
            if calibration is not None or privacy is not None:
                raise ValueError(f"{self.name} is not private: it takes neither a calibration nor a privacy level")
        elif calibration not in self.calibrations:
            raise ValueError(
                f"calibration of {self.name} must be one of {', '.join(self.calibrations)}, got {calibration!r}"
            )
        elif privacy is None:
            raise ValueError(f"{self.name} needs a privacy level")
        elif kind_of(privacy) != self.guarantee:
            raise ValueError(f"{self.name} promises {self.guarantee} privacy, got {privacy}")
        filled = {
            name: parameters.get(name, failure_of(None, problem.known_horizon) if default is None else default)
            for name, default in self.parameters.items()
        }
        return Settings(problem, filled, calibration, privacy)

    def at_test_budget(self, settings: Settings) -> Settings:
        """The same settings with a promise that is 1-GDP: a budget at which audits see small faults."""
        match settings.privacy:
            case RenyiDP(alpha=alpha):
                near: Guarantee = RenyiDP(alpha, alpha / 2)
            case ApproxDP(delta=asked):
                delta = min(asked, _MOST_DELTA)
                near = ApproxDP(GaussianDP(1.0).epsilon(delta), delta)
            case _:
                near = PureDP(_PURE_OF_UNIT_MU)
        return replace(settings, privacy=near)


# At delta of 2 Phi(1/2) - 1 = 0.38 and above, 1-GDP is delta-DP with an epsilon of 0, and so is much that is less private.
_MOST_DELTA = 0.1
# epsilon-DP is mu-GDP with Phi(mu / 2) = 1 / (1 + e^-epsilon).
_PURE_OF_UNIT_MU = 0.8069  # just below log(Phi(1/2) / Phi(-1/2)) = 0.80697


def kind_of(privacy: Guarantee) -> str:
    """renyi, pure or approximate."""
    match privacy:
        case RenyiDP():
            return "renyi"
        case PureDP():
            return "pure"
        case ApproxDP():
            return "approximate"
    raise ValueError(f"privacy must be a RenyiDP, a PureDP or an ApproxDP, got {privacy!r}")
