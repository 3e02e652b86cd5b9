"""Arms and actions with vectors, in which mean rewards are linear or may be."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.bandits.linear.phased_elimination import checked_features
from bandana.algorithms.environments.contexts import ContextLaw, check_assumption_2
from bandana.algorithms.environments.linear import LinearArms, random_arms
from bandana.algorithms.environments.logged import (
    DIGIT_NAMES,
    N_IMAGES,
    RANDHIE_ARMS,
    digits_table,
    drawn_people,
    randhie,
    randhie_table,
)
from bandana.algorithms.environments.tables import ContextTable, RewardTable, random_table
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.problem import CONTEXTUAL, LINEAR, Problem
from bandana.algorithms.protocol import FloatArray, IntArray, Stream
from bandana.flows.problems.environment import (
    CONSTANT,
    HINDSIGHT,
    PSEUDO,
    UNIFORM,
    Classes,
    Environment,
    EnvironmentFields,
    Item,
    Purpose,
)
from bandana.flows.texts.fields import Actions, Dimension, ordered
from bandana.privacy_core import Interval

_ROUNDING = 1e-12
_LAWS: dict[tuple[object, ...], ContextLaw] = {}


class LinearFields(EnvironmentFields):
    """Mean rewards that are linear in a vector of each action, with a parameter theta that nobody knows."""

    theta: list[float] | None = Field(None, min_length=1, description="The parameter; drawn if left out.")
    signal: Annotated[float, Field(gt=0, le=1)] = Field(
        0.8, description="Norm of a drawn theta, in units of half the reward range: 1 is the easiest."
    )
    low: float = Field(description="Least reward.")
    high: float = Field(description="Largest reward.")

    _is_ordered = model_validator(mode="after")(ordered)


class LinearSpec(LinearFields):
    """Arms with known features: given, or drawn from the unit sphere."""

    problem_kind = LINEAR
    kind: Literal["linear"]
    features: list[list[float]] | None = Field(None, description="One vector an arm, of norm at most 1; they must span.")
    arms: Actions | None = Field(None, description="Number of arms to draw.")
    dimension: Dimension | None = Field(None, description="Dimension of the arms that are drawn.")
    rewards: Literal["bernoulli", "uniform"] = Field("bernoulli", description="Law of a reward.")
    low: float = Field(0.0, description="Least reward.")
    high: float = Field(1.0, description="Largest reward.")

    @model_validator(mode="after")
    def _complete(self) -> LinearSpec:
        drawn = (self.arms, self.dimension)
        if (self.features is None) != all(given is not None for given in drawn):
            given = sorted({"features", "arms", "dimension"} & self.model_fields_set)
            names = ", ".join(given) or "neither"
            raise ValueError(f"features, or arms and dimension, must be given, and not both; got {names}")
        if self.features is not None:
            if any(given is not None for given in drawn):
                raise ValueError("arms and dimension are those of the features: leave them out")
            checked_features(self.features)
        elif (self.arms or 0) < (self.dimension or 0):
            raise ValueError(f"arms must be at least dimension = {self.dimension}, to span the space, got {self.arms}")
        d = self.dimension if self.features is None else len(self.features[0])
        if self.theta is not None and len(self.theta) != d:
            raise ValueError(f"theta must have {d} entries, one a dimension, got {len(self.theta)}")
        if self.theta is not None and self.features is None and math.hypot(*self.theta) > 1 + _ROUNDING:
            raise ValueError(f"theta must have norm at most 1 where arms are drawn, got {math.hypot(*self.theta):.6g}")
        for arm, row in enumerate(self.features or ()):
            value = math.fsum(x * t for x, t in zip(row, self.theta or (), strict=False))
            if abs(value) > 1 + _ROUNDING:
                raise ValueError(f"theta must have <theta, features> in [-1, 1]; arm {arm} has {value:.6g}: scale it down")
        return self

    @property
    def n_arms(self) -> int | None:
        """Number of arms: those that are given, or drawn."""
        return self.arms if self.features is None else len(self.features)


class _Linear(Environment[LinearSpec]):
    @cached_property
    def arms(self) -> LinearArms:
        """Its features and its parameter; what it answers is not used."""
        return self.stream(np.random.SeedSequence(0))

    @property
    def names(self) -> tuple[str, ...]:
        return self.arms.names

    @property
    def reward_range(self) -> Interval:
        return Interval(self.item.low, self.item.high)

    @property
    def means(self) -> FloatArray:
        return self.arms.means

    def stream(self, seed: np.random.SeedSequence) -> LinearArms:
        """The features and the parameter are the same for every seed of the rewards."""
        item = self.item
        features = item.features
        if features is None:
            assert item.arms is not None
            assert item.dimension is not None
            features = random_arms(item.arms, item.dimension, self._seed(Purpose.FEATURES)).tolist()
        theta = parameter_of(item.theta, len(features[0]), item.signal, self._seed(Purpose.THETA))
        return LinearArms(features, theta, self.setting.horizon, seed, rewards=item.rewards, reward_range=self.reward_range)

    def audit_table(self) -> RewardTable:
        return random_table(self.setting.rounds, self.n_actions, self.reward_range, self.setting.seed)

    def problem(self, horizon: int) -> Problem:
        features = tuple(tuple(row) for row in self.arms.features.tolist())
        return Problem(self.n_actions, self.reward_range, horizon, features)

    def about(self) -> tuple[str, str, str]:
        n, d = self.arms.features.shape
        whence = "drawn from the unit sphere" if self.item.features is None else "given"
        text = (
            f"{n} arms with known features in {d} dimensions, {whence}; the mean reward of an arm is the middle of the "
            "range plus half its width times <theta, features>. Audits replay rewards drawn at the ends of the range."
        )
        return "linear", text, PSEUDO


class Contextual(Environment[Item]):
    """Users bring their actions as vectors."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Dimension d of the vectors."""

    def problem(self, horizon: int) -> Problem:
        """Public facts, at that horizon."""
        return Problem(self.n_actions, self.reward_range, horizon, dimension=self.dimension)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        """Regret against the best of each user's actions."""
        return ContextualRegretCurve(stream, grid, n_reps)


class PeopleFields(EnvironmentFields):
    """Real people: the same in all replications, or drawn anew in each."""

    newer: ClassVar[tuple[str, ...]] = ("people",)
    people: Literal["fixed", "drawn"] = Field(
        "fixed",
        description="`fixed`: all replications meet the same rows, and differ in the noise alone; `drawn`: each draws rows "
        "anew from all that there are, so that an interval speaks of other people too.",
    )


People = TypeVar("People", bound=PeopleFields, covariant=True)


class _Logged(Contextual[People]):
    """Real users, each a row: features, and what the person would answer to each action."""

    is_drawn = False
    references = (UNIFORM, CONSTANT)

    @abstractmethod
    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        """The rows of `rounds` users, chosen with the seed."""

    @cached_property
    def table(self) -> ContextTable:
        """The rows that benchmarks play on, or draw from."""
        is_fixed = self.item.people == "fixed"
        return self._rows(self._seed(Purpose.ROWS), self.setting.horizon if is_fixed else self.most_users["horizon"])

    @property
    def n_people(self) -> int | None:
        return None if self.item.people == "fixed" else self.most_users["horizon"]

    @property
    def dimension(self) -> int:
        return self.table.context_dimension

    @property
    def law(self) -> ContextLaw:
        key = (type(self), self.item.model_dump_json(), self.setting.seed, self.table.n_users)
        if key not in _LAWS:
            _LAWS[key] = check_assumption_2(self.table.features)
        return _LAWS[key]

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        if self.item.people == "fixed":
            return self.table
        return drawn_people(self.table, self.setting.block_size, self.setting.horizon, seed)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact, from the rows that are played."""
        if self.item.people == "drawn":
            own = stream.gaps(n_reps)
            return {UNIFORM: own.mean(axis=1), CONSTANT: own.min(axis=1)}
        rewards = self.table.rewards[: self.setting.horizon]
        gaps = rewards.max(axis=1) - rewards.mean(axis=1), rewards.max(axis=1)[:, None] - rewards
        values = {UNIFORM: gaps[0].mean(), CONSTANT: gaps[1].mean(axis=0).min()}
        return {name: np.full(n_reps, value) for name, value in values.items()}

    def audit_table(self) -> RewardTable:
        return self._rows(self._seed(Purpose.AUDIT_TABLE), self.setting.rounds)


class RandhieSpec(PeopleFields):
    """People of the RAND health insurance experiment, who bring features; see `bandana.algorithms.environments.logged`."""

    problem_kind = CONTEXTUAL
    whose_data: ClassVar[str] = "public"
    kind: Literal["randhie"]


class _Randhie(_Logged[RandhieSpec]):
    names = RANDHIE_ARMS

    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        return randhie_table(seed, rounds)

    @property
    def most_users(self) -> dict[str, int]:
        n = len(randhie()[0])
        return {"horizon": n, "audit.rounds": n}

    def about(self) -> tuple[str, str, str]:
        text = (
            "The RAND health insurance experiment (Manning et al. 1987, data of the package statsmodels): people were "
            "randomized to plans that let them pay a share of their bills. The five arms are shares, the reward is 1 if the "
            "person saw a doctor in the year; what a person would have done under another plan is taken from the most "
            f"similar person of that plan. Features: plan, health and income, and their product with the share. {self.law}."
        )
        return "randhie", text, HINDSIGHT


class DigitsSpec(PeopleFields):
    """Handwritten digits to be named, as a contextual bandit; see `bandana.algorithms.environments.logged`."""

    problem_kind = CONTEXTUAL
    whose_data: ClassVar[str] = "public"
    kind: Literal["digits"]
    projected: Annotated[int, Field(ge=1, le=64)] = Field(6, description="Dimensions that an image is projected to.")


class _Digits(_Logged[DigitsSpec]):
    names = DIGIT_NAMES

    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        return digits_table(seed, rounds, self.item.projected)

    @property
    def most_users(self) -> dict[str, int]:
        return {"horizon": N_IMAGES, "audit.rounds": N_IMAGES}

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Handwritten digits (data of the package scikit-learn), projected to {self.item.projected} dimensions; the ten "
            f"actions name a digit, the reward is 1 if it is the right one. {self.law}."
        )
        return "digits", text, HINDSIGHT


def parameter_of(given: list[float] | None, dimension: int, norm: float, seed: np.random.SeedSequence) -> FloatArray:
    """(dimension,) theta: the given one, or one that is drawn with a norm."""
    if given is not None:
        return np.asarray(given)
    drawn = np.random.Generator(np.random.SFC64(seed)).standard_normal(dimension)
    return np.asarray(norm * drawn / np.linalg.norm(drawn))


CLASSES: Classes = {LinearSpec: _Linear, RandhieSpec: _Randhie, DigitsSpec: _Digits}
