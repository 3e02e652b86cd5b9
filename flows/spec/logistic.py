"""Users who bring vectors, and answer yes or no with log-odds that are linear in the chosen vector."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.bandits.contextual import logistic_ucb
from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.contexts import sphere_table
from bandana.algorithms.environments.logistic import LogisticContexts
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.logistic import LogisticProblem
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.flows.spec.environment import CONTEXTUAL_PSEUDO, UNIFORM, Environment, EnvironmentFields, Purpose
from bandana.flows.spec.fields import Count

_ROUNDING = 1e-12


class LogisticSpec(EnvironmentFields):
    """Users who bring actions drawn from the uniform unit sphere, and whose reward is 1 with logistic probability."""

    problem_kind = CONTEXTUAL
    kind: Literal["logistic"]
    actions: Annotated[int, Field(ge=2)] = Field(description="Actions of each user.")
    dimension: Count = Field(description="Dimension of the action vectors.")
    contexts: Literal["fresh", "fixed"] = Field(
        "fresh", description="Fresh actions for each user, or the same for all users of a replicate, drawn once."
    )
    theta: list[float] | None = Field(None, min_length=1, description="The parameter; drawn if left out.")
    logit_bound: Annotated[float, Field(gt=0, le=30)] = Field(
        4.0, description="Largest log-odds of a reward, known to the public; the norm of a theta that is drawn."
    )

    @model_validator(mode="after")
    def _complete(self) -> LogisticSpec:
        if self.theta is not None and len(self.theta) != self.dimension:
            raise ValueError(f"theta must have {self.dimension} entries, one a dimension, got {len(self.theta)}")
        if self.theta is not None and math.hypot(*self.theta) > self.logit_bound * (1 + _ROUNDING):
            norm = math.hypot(*self.theta)
            raise ValueError(f"theta must have norm at most {self.logit_bound:g}, the logit_bound, got {norm:.6g}")
        return self


class _Logistic(Environment[LogisticSpec]):
    is_bernoulli = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"action {a}" for a in range(self.item.actions))

    def seen_by(self, entry: Entry) -> Environment[Any]:
        """The same problem, of which algorithms that assume linear means prove nothing; the lower bound is theirs too."""
        return self if entry.name == logistic_ucb.NAME else _ForOthers(self.spec, self.item)

    def problem(self, horizon: int) -> LogisticProblem:
        item = self.item
        return LogisticProblem(
            item.actions, self.reward_range, horizon, dimension=item.dimension, logit_bound=item.logit_bound
        )

    def stream(self, seed: np.random.SeedSequence) -> LogisticContexts:
        """Theta is the same for every seed."""
        item = self.item
        return LogisticContexts(self._theta(), item.actions, self.spec.horizon, seed, is_fixed=item.contexts == "fixed")

    def _theta(self) -> FloatArray:
        item = self.item
        if item.theta is not None:
            return np.asarray(item.theta)
        drawn = np.random.Generator(np.random.SFC64(self._seed(Purpose.THETA))).standard_normal(item.dimension)
        return np.asarray(item.logit_bound * drawn / np.linalg.norm(drawn))

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        return ContextualRegretCurve(stream, grid, n_reps)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact; with fixed actions, with each replicate's own."""
        return {UNIFORM: stream.uniform_gaps(n_reps)}

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.item.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(Purpose.AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        item = self.item
        whose = "Each user brings" if item.contexts == "fresh" else "All users of a replication bring the same"
        text = (
            f"{whose} {item.actions} vectors drawn from the uniform unit sphere in {item.dimension} dimensions; the reward "
            f"is 1 with probability 1 / (1 + exp(-<theta, vector>)), |theta| at most {item.logit_bound:g}, else 0. Audits "
            "replay fresh vectors for each user, and fair coins as rewards."
        )
        return "logistic", text, CONTEXTUAL_PSEUDO


class _ForOthers(_Logistic):
    """The environment for algorithms that assume linear means: none of their own bounds holds."""

    is_drawn = False
    bounds_everyone = True


CLASSES: dict[type, type[Environment[Any]]] = {LogisticSpec: _Logistic}
