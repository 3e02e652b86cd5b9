"""Users who bring vectors from the unit sphere: fresh or fixed ones, with rewards that are linear or logistic in them."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.bandits.contextual import batched, logistic_ucb
from bandana.algorithms.bandits.contextual.batched import ProblemWithDropouts
from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.contexts import ContextLaw
from bandana.algorithms.environments.drawn import action_names
from bandana.algorithms.environments.sphere import LinearLink, LogisticLink, SphereContexts
from bandana.algorithms.environments.tables import RewardTable, sphere_table
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.problem import CONTEXTUAL, Problem
from bandana.algorithms.protocol import FloatArray
from bandana.flows.problems.environment import CONTEXTUAL_PSEUDO, UNIFORM, Classes, Environment, EnvironmentFields, Purpose
from bandana.flows.problems.linear import Contextual, LinearFields, parameter_of
from bandana.flows.texts.fields import Actions, Dimension, NoTruth
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

_ROUNDING = 1e-12


class SphereSpec(LinearFields):
    """Users who bring actions drawn from the unit sphere: fresh ones, or (`fixed-sphere`) the same for all."""

    problem_kind = CONTEXTUAL
    newer: ClassVar[tuple[str, ...]] = ("bend", "dropout")
    kind: Literal["sphere", "fixed-sphere"]
    actions: Actions = Field(description="Actions of each user.")
    dimension: Dimension = Field(description="Dimension of the action vectors.")
    rewards: Literal["two-point", "uniform"] = Field("two-point", description="Law of a reward.")
    low: float = Field(-1.0, description="Least reward.")
    high: float = Field(1.0, description="Largest reward.")
    bend: Annotated[float, Field(ge=0), NoTruth] = Field(
        0.0,
        description="How far means are from linear: with m = <theta, vector> and h half the range's width, a mean is the "
        "middle of the range plus m - bend m^2 / h.",
    )
    dropout: Annotated[float, Field(ge=0, lt=1), NoTruth] = Field(
        0.0, description="Share of users who get an action and do not answer; only linucb-batched knows of them."
    )

    @property
    def link(self) -> LinearLink:
        """The law of rewards."""
        return LinearLink(Interval(self.low, self.high), self.rewards, self.bend)

    @model_validator(mode="after")
    def _complete(self) -> SphereSpec:
        _check_theta(self.theta, self.dimension, (self.high - self.low) / 2, "half the width of the range")
        if self.bend and self.kind == "sphere":
            raise ValueError("bend is for actions that all users share: take the kind fixed-sphere")
        self.link.check(math.hypot(*self.theta or [self.signal * (self.high - self.low) / 2]))
        return self


class LogisticSpec(EnvironmentFields):
    """Users who bring actions drawn from the uniform unit sphere, and whose reward is 1 with logistic probability."""

    problem_kind = CONTEXTUAL
    kind: Literal["logistic"]
    actions: Actions = Field(description="Actions of each user.")
    dimension: Dimension = Field(description="Dimension of the action vectors.")
    contexts: Literal["fresh", "fixed"] = Field(
        "fresh", description="Fresh actions for each user, or the same for all users of a replicate, drawn once."
    )
    theta: list[float] | None = Field(None, min_length=1, description="The parameter; drawn if left out.")
    logit_bound: Annotated[float, Field(gt=0, le=30)] = Field(
        4.0, description="Largest log-odds of a reward, known to the public; the norm of a theta that is drawn."
    )
    link: ClassVar[LogisticLink] = LogisticLink()

    @model_validator(mode="after")
    def _complete(self) -> LogisticSpec:
        _check_theta(self.theta, self.dimension, self.logit_bound, "the logit_bound")
        return self


def _check_theta(theta: list[float] | None, dimension: int, most: float, what: str) -> None:
    if theta is not None and len(theta) != dimension:
        raise ValueError(f"theta must have {dimension} entries, one a dimension, got {len(theta)}")
    if theta is not None and math.hypot(*theta) > most * (1 + _ROUNDING):
        raise ValueError(f"theta must have norm at most {most:g}, {what}, got {math.hypot(*theta):.6g}")


class _Sphere(Contextual[Any]):
    """Contexts, fresh or fixed, and a link: each kind names one of both."""

    @property
    def names(self) -> tuple[str, ...]:
        return action_names(self.item.actions)

    @property
    def is_fixed(self) -> bool:
        """True if all users of a replicate bring the same actions."""
        return self.item.kind == "fixed-sphere" or getattr(self.item, "contexts", "fresh") == "fixed"

    @property
    def is_drawn(self) -> bool:  # type: ignore[override]
        """True if means are as the kind says: where they bend, no bound on regret holds."""
        return not self.item.link.bend

    @property
    def reward_range(self) -> Interval:
        link: LinearLink | LogisticLink = self.item.link
        return link.reward_range

    @property
    def dimension(self) -> int:
        return int(self.item.dimension)

    @property
    def theta(self) -> FloatArray:
        """(d,) the parameter, the same for every seed of the rewards."""
        return parameter_of(self.item.theta, self.dimension, self.norm, self._seed(Purpose.THETA))

    @property
    def norm(self) -> float:
        """Norm of a parameter that is drawn."""
        return float(self.item.signal * (self.reward_range.width / 2))

    def stream(self, seed: np.random.SeedSequence) -> SphereContexts:
        """Where actions are fixed, each replicate has its own."""
        item, horizon = self.item, self.setting.horizon
        return SphereContexts(self.theta, item.actions, horizon, seed, item.link, is_fixed=self.is_fixed)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact: which fresh actions are played makes no difference; with fixed ones, with each replicate's own."""
        return {UNIFORM: stream.uniform_gaps(n_reps)}

    def audit_table(self) -> RewardTable:
        shape = (self.setting.rounds, self.n_actions, self.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(Purpose.AUDIT_TABLE))


class _LinearSphere(_Sphere):
    def problem(self, horizon: int) -> Problem:
        facts, dropout = super().problem(horizon), self.item.dropout
        return ProblemWithDropouts(**vars(facts), dropout=dropout) if dropout else facts

    def seen_by(self, entry: Entry) -> Environment[EnvironmentFields]:
        if self.item.dropout and entry.name not in (batched.NAME, *self.references):
            raise SpecError(f"environment.dropout: {entry.name} does not know who answers; only {batched.NAME} does")
        return self

    @property
    def law(self) -> ContextLaw:
        return self.stream(np.random.SeedSequence(0)).law

    def about(self) -> tuple[str, str, str]:
        bent = f" - {self.item.bend:g} m^2 / h, h half the range's width: it is not linear" if self.item.link.bend else ""
        mean = f"the mean reward is the middle of the range plus m = <theta, vector>{bent}"
        mean += f"; a share of {self.item.dropout:g} of users, evenly spaced, does not answer" if self.item.dropout else ""
        if self.is_fixed:
            text = (
                f"All users bring the same {self.n_actions} vectors, drawn once for each replication from the uniform unit "
                f"sphere in {self.dimension} dimensions; {mean}. Audits replay fresh vectors for each user. For the law of "
                f"a drawn vector, {self.law}."
            )
        else:
            text = (
                f"Each user brings {self.n_actions} vectors drawn from the uniform unit sphere in {self.dimension} "
                f"dimensions; {mean}. {self.law}."
            )
        return self.item.kind, text, CONTEXTUAL_PSEUDO


class _Logistic(_Sphere):
    is_bernoulli = True

    def seen_by(self, entry: Entry) -> Environment[EnvironmentFields]:
        """The same problem, of which algorithms that assume linear means prove nothing; the lower bound is theirs too."""
        return self if entry.name == logistic_ucb.NAME else _ForOthers(self.setting, self.item)

    @property
    def norm(self) -> float:
        return float(self.item.logit_bound)

    def problem(self, horizon: int) -> Problem:
        bound = self.item.logit_bound
        return LogisticProblem(self.n_actions, self.reward_range, horizon, dimension=self.dimension, logit_bound=bound)

    def about(self) -> tuple[str, str, str]:
        whose = "All users of a replication bring the same" if self.is_fixed else "Each user brings"
        text = (
            f"{whose} {self.n_actions} vectors drawn from the uniform unit sphere in {self.dimension} dimensions; the "
            f"reward is 1 with probability 1 / (1 + exp(-<theta, vector>)), |theta| at most {self.item.logit_bound:g}, "
            "else 0. Audits replay fresh vectors for each user, and fair coins as rewards."
        )
        return "logistic", text, CONTEXTUAL_PSEUDO


class _ForOthers(_Logistic):
    """The environment for algorithms that assume linear means: none of their own bounds holds."""

    is_drawn = False
    bounds_everyone = True


CLASSES: Classes = {SphereSpec: _LinearSphere, LogisticSpec: _Logistic}
