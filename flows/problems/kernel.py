"""Points with a kernel, in whose space the mean reward lies."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.kernel_functions import (
    FixedArms,
    GapFunctions,
    PooledFunction,
    gap_points,
    product_pool,
    random_function,
)
from bandana.algorithms.environments.logged import N_PATIENTS, DrawnPeople, diabetes_table
from bandana.algorithms.environments.tables import ContextTable, RewardTable, random_table
from bandana.algorithms.environments.worst_pools import extrapolating_pool, worst_pool
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.problem import FINITE, KERNEL, POOLED, Problem
from bandana.algorithms.protocol import FloatArray, IntArray, Stream
from bandana.algorithms.rkhs import kernels
from bandana.algorithms.rkhs.pool import Pool
from bandana.flows.problems.environment import (
    CONSTANT,
    CONTEXTUAL_PSEUDO,
    HINDSIGHT,
    UNIFORM,
    Classes,
    Environment,
    EnvironmentFields,
    Item,
    Purpose,
)
from bandana.flows.problems.linear import PeopleFields
from bandana.flows.texts.fields import MOST_POINTS, Actions, Choices, Count, Dimension, Points, Positive
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

_MOST_LISTED, FEW_ACTIONS = 32, 2
MARGIN = 2.0
"""Deviations of normal noise by which a reward range is wider than the means."""
_ROUNDING = 1e-12
Stationary = Literal[
    "squared-exponential", "matern-1/2", "matern-3/2", "matern-5/2", "product-matern-1/2", "product-matern-3/2",
    "product-matern-5/2",
]  # fmt: skip
KernelName = Stationary | Literal["linear"]
_KERNELS: dict[str, Callable[[float], kernels.Kernel]] = {
    "squared-exponential": kernels.SquaredExponential,
    "linear": kernels.Linear,
    **{f"matern-{n}/2": partial(kernels.Matern, n / 2) for n in (1, 3, 5)},
    **{f"product-matern-{n}/2": partial(kernels.ProductMatern, n / 2) for n in (1, 3, 5)},
}
Frequencies = Annotated[list[Annotated[float, Field(ge=0, allow_inf_nan=False)]], Field(min_length=1)]
_OF_KERNEL = "Kernel whose space holds the mean reward; known to algorithms."


class KernelSpec(EnvironmentFields, ABC):
    """Points of [-1, 1]^d and a kernel that measures how alike two of them are."""

    problem_kind = KERNEL
    kernel: KernelName = Field("squared-exponential", description=_OF_KERNEL)
    lengthscale: Positive | None = Field(None, description="Lengthscale of the kernel, for points in [-1, 1]^d.")
    additive: bool | None = Field(None, description="Whether the kernel is the mean, over coordinates, of a kernel on each.")

    @property
    @abstractmethod
    def points_dimension(self) -> int:
        """Dimension d of the points."""

    @property
    @abstractmethod
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale, and whether the kernel is additive by default."""

    @property
    def scale(self) -> float:
        """The lengthscale in use: the given one, or the default."""
        return self.usual[0] if self.lengthscale is None else self.lengthscale

    @property
    def _is_additive(self) -> bool:
        return self.usual[1] if self.additive is None else self.additive

    def public_kernel(self) -> kernels.Kernel:
        """The kernel, which algorithms know."""
        part = _KERNELS[self.kernel](self.scale)
        if self._is_additive:
            return kernels.Additive.of_coordinates(part, self.points_dimension)
        return part

    @model_validator(mode="after")
    def _of_norm_1(self) -> KernelSpec:
        if self.kernel != "linear":
            return self
        scale, least = self.scale, 1.0 if self._is_additive else math.sqrt(self.points_dimension)
        if scale < least * (1 - _ROUNDING):
            raise ValueError(
                f"{'lengthscale' if self.lengthscale is not None else 'kernel'}: a linear kernel needs a lengthscale of at "
                f"least {least:.6g}, so that points of [-1, 1]^{self.points_dimension} have features of norm at most 1, "
                f"got {scale:g}"
            )
        return self


class _Kernel(Environment[Item]):
    """Users bring their actions as points of [-1, 1]^d, and a kernel is known."""

    noun = "action"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.noun} {a}" for a in range(self.item.actions))  # type: ignore[attr-defined]

    def problem(self, horizon: int) -> Problem:
        dimension, kernel = self.item.points_dimension, self.item.public_kernel()  # type: ignore[attr-defined]
        return Problem(self.n_actions, self.reward_range, horizon, dimension=dimension, kernel=kernel)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        return ContextualRegretCurve(stream, grid, n_reps)

    def describe(self) -> Any:
        """Description for the report, which does not list hundreds of points."""
        return super().describe() | ({"actions": []} if self.n_actions > _MOST_LISTED else {})

    def _at_the_ends(self, points: FloatArray) -> ContextTable:
        """Such points, with rewards at the ends of the range by fair coins: a claim holds for all data."""
        coins = random_table(len(points), points.shape[1], self.reward_range, self.setting.seed)
        return ContextTable(points, coins.rewards, self.reward_range)


class GapSpec(KernelSpec):
    """Random functions of a kernel's space, one a replicate: one action of each user is good, the others are not.

    See `bandana.algorithms.environments.kernel_functions`.
    """

    kind: Literal["rkhs-gap"]
    kernel: Stationary = Field("squared-exponential", description=_OF_KERNEL)
    actions: Actions = Field(25, description="Actions of each user.")
    dimension: Dimension = Field(2, description="Dimension of the points, which lie in the unit ball.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale 0.5, and a kernel that is not additive."""
        return 0.5, False


class _Gap(_Kernel[GapSpec]):
    def stream(self, seed: np.random.SeedSequence) -> Stream:
        item = self.item
        return GapFunctions(item.public_kernel(), item.dimension, item.actions, self.setting.horizon, seed)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact on the function of each replicate."""
        return {UNIFORM: stream.uniform_gaps(n_reps)}

    def audit_table(self) -> RewardTable:
        shape = (self.setting.rounds, self.n_actions, self.item.dimension)
        return self._at_the_ends(gap_points(*shape, self._seed(Purpose.AUDIT_TABLE)))

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Random functions with four centers in the unit ball of {self.item.dimension} dimensions and of norm at most "
            f"1 in the space of the kernel ({self.item.public_kernel()}), one a replicate. Each user brings "
            f"{self.n_actions} points: at one the function is at least 0.8, at the others at most 0.6. The reward is 1 "
            "with the function's value as probability, where that is negative 0. Audits replay points of the ball and "
            "rewards drawn at random."
        )
        return self.item.kind, text, CONTEXTUAL_PSEUDO


class Pooled(_Kernel[Item]):
    """All that users may bring is a finite public pool."""

    def seen_by(self, entry: Entry) -> Environment[EnvironmentFields]:
        """Its points as arms, for algorithms that know of no kernel; they play where there is one context."""
        return self if POOLED in entry.plays_on else _AsArms(self)

    @property
    @abstractmethod
    def pool(self) -> Pool:
        """Contexts, points and law; the same in all blocks."""

    @abstractmethod
    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        """Users who bring the pool's contexts."""

    @property
    def references(self) -> tuple[str, ...]:  # type: ignore[override]
        """With one context the best constant action is what regret is counted against."""
        return (UNIFORM,) if self.pool.n_contexts == 1 else (UNIFORM, CONSTANT)

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact, from the values of the pool and the law of its contexts."""
        gaps = stream.action_gaps
        by_name = {UNIFORM: gaps.mean(axis=-1), CONSTANT: gaps.min(axis=-1)}
        return {name: np.broadcast_to(np.atleast_1d(by_name[name])[:n_reps], n_reps) for name in self.references}

    def problem(self, horizon: int) -> Problem:
        """Public facts, the pool among them."""
        return replace(super().problem(horizon), pool=self.pool)


class _AsArms(Environment[Item]):
    """A pool with one context as algorithms see it that know of no kernel: finitely many arms, the same for all users.

    Audits replay few of them: a claim holds for any number.
    """

    def __init__(self, pooled: Pooled[Item]) -> None:
        super().__init__(pooled.setting, pooled.item)
        self._pooled = pooled

    def __getstate__(self) -> dict[str, object]:
        return super().__getstate__() | {"_pooled": self._pooled}

    @property
    def kind(self) -> str:
        """Kind of problem: finite."""
        return FINITE

    @property
    def names(self) -> tuple[str, ...]:
        return self._pooled.names

    @property
    def reward_range(self) -> Interval:
        return self._pooled.reward_range

    @cached_property
    def means(self) -> FloatArray:
        """(n_actions,) the function's values."""
        return np.asarray(self._pooled.stream(np.random.SeedSequence(0)).values[0])

    def stream(self, seed: np.random.SeedSequence) -> FixedArms:
        return FixedArms(self._pooled.stream(seed))

    def describe(self) -> Any:
        return self._pooled.describe()

    def audit_table(self) -> RewardTable:
        return random_table(self.setting.rounds, FEW_ACTIONS, self.reward_range, self.setting.seed)

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        return replace(super().audit_problem(problem, entry), n_actions=FEW_ACTIONS)

    def about(self) -> tuple[str, str, str]:
        return self._pooled.about()

    def check(self) -> None:
        if (horizon := self.setting.horizon) < (least := self.n_actions):
            raise SpecError(f"horizon: must be at least {least} for {least} arms, got {horizon}")


class RkhsSpec(KernelSpec):
    """A random function of a kernel's space on a finite pool: contexts are drawn, and each has the same actions."""

    problem_kind = POOLED
    kind: Literal["rkhs"]
    contexts: Points = Field(10, description="Number of contexts, drawn with equal probability.")
    unseen: Annotated[int, Field(ge=0)] = Field(0, description="Contexts that are never drawn, but that a record may hold.")
    law: Frequencies | None = Field(
        None, description="Relative frequencies of the contexts, one for each; all that are drawn have the same if left out."
    )
    assumed_law: Frequencies | None = Field(
        None,
        description="Relative frequencies that algorithms are told in place of the true ones; the true ones if left out.",
    )
    actions: Choices = Field(50, description="Actions of each context.")
    context_dimension: Dimension = Field(1, description="Coordinates of a context.")
    action_dimension: Dimension = Field(1, description="Coordinates of an action.")
    centers: Count | None = Field(None, description="Points of the pool whose kernels the function sums; 8 if left out.")
    functions: Literal["one", "each"] = Field(
        "one", description="Whether all replications play one function, or each a function of its own."
    )
    norm: Positive = Field(1.0, description="Norm of the function in the kernel's space, which bounds mean rewards.")
    rewards: Literal["two-point", "gaussian"] = Field("two-point", description="Law of a reward.")
    noise: Annotated[float, Field(ge=0)] | None = Field(None, description="Standard deviation of Gaussian rewards.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.context_dimension + self.action_dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale, sqrt(d) for the linear kernel and 0.3 for others, and a kernel that is not additive."""
        return (math.sqrt(self.points_dimension) if self.kernel == "linear" else 0.3), False

    @property
    def played_as(self) -> tuple[str, ...]:
        """Pooled, and finitely many arms where there is one context."""
        return (POOLED, FINITE) if self.contexts == 1 else (POOLED,)

    @property
    def n_centers(self) -> int:
        """Number of kernels that the function sums: at most one a point of the pool."""
        return min(8, self.contexts * self.actions) if self.centers is None else self.centers

    @model_validator(mode="after")
    def _consistent(self) -> RkhsSpec:
        if (points := self.contexts * self.actions) > MOST_POINTS:
            raise ValueError(f"contexts times actions must be at most {MOST_POINTS:,} points, got {points:,}")
        if self.noise is not None and self.rewards != "gaussian":
            raise ValueError("noise is that of gaussian rewards: two-point ones have none to choose")
        for name, law in (("law", self.law), ("assumed_law", self.assumed_law)):
            if law is not None and (len(law) != self.contexts or not sum(law) > 0):
                raise ValueError(f"{name} must hold a frequency for each of {self.contexts} contexts, not all 0; got {law}")
        if self.law is not None and self.unseen:
            raise ValueError("law says which contexts are never drawn: leave unseen out, and give them frequency 0")
        if self.functions == "each" and self.contexts == 1:
            raise ValueError("functions: each replication has a function of its own only where there are several contexts")
        if self.unseen >= self.contexts:
            raise ValueError(f"unseen must be below contexts = {self.contexts}, got {self.unseen}")
        if (self.centers or 1) > self.contexts * self.actions:
            raise ValueError(
                f"centers must be at most contexts times actions = {self.contexts * self.actions}, got {self.centers}"
            )
        return self


class _Rkhs(Pooled[RkhsSpec]):
    @property
    def is_drawn(self) -> bool:  # type: ignore[override]
        """True if contexts are drawn as algorithms are told."""
        return self.item.assumed_law is None

    @cached_property
    def true_pool(self) -> Pool:
        """Contexts, points, and the law that contexts are drawn by."""
        item = self.item
        dimensions = item.context_dimension, item.action_dimension
        pool = product_pool(item.contexts, item.actions, dimensions, self._seed(Purpose.POOL), item.unseen)
        return _with_law(pool, item.law)

    @cached_property
    def pool(self) -> Pool:
        """Pool that algorithms are told: the same contexts and points, with the assumed law."""
        return _with_law(self.true_pool, self.item.assumed_law)

    def facts(self) -> dict[str, object]:
        """Facts for keys and seeds; fields that are left out change no seed of specs that were written before them."""
        facts = super().facts()
        for name in ("law", "assumed_law", "functions"):
            if facts[name] in (None, "one"):
                del facts[name]
        return facts

    @property
    def _noise(self) -> float:
        return 0.1 * self.item.norm if self.item.noise is None else self.item.noise

    @property
    def reward_range(self) -> Interval:
        most = self.item.norm + (MARGIN * self._noise if self.item.rewards == "gaussian" else 0.0)
        return Interval(-most, most)

    @cached_property
    def values(self) -> FloatArray:
        """(contexts, actions) of the one function; the same in all blocks."""
        return self._drawn_values(self._seed(Purpose.THETA), self._seed(Purpose.FUNCTION))

    def _drawn_values(self, of_centers: np.random.SeedSequence, of_weights: np.random.SeedSequence) -> FloatArray:
        points = self.pool.points.reshape(-1, self.pool.dimension)
        kernel, generator = self.item.public_kernel(), np.random.Generator(np.random.SFC64(of_centers))
        centers = points[generator.choice(len(points), self.item.n_centers, replace=False)]
        return random_function(kernel, centers, of_weights, self.item.norm)(self.pool.points)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        values = self.values
        if self.item.functions == "each":  # a function of its own for each replication of a block
            keys = (np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, key)) for key in (1, 2))
            seeds = zip(*(key.spawn(self.setting.block_size) for key in keys), strict=True)
            values = np.array([self._drawn_values(*pair) for pair in seeds])
        return PooledFunction(
            self.true_pool, values, self.setting.horizon, seed, self.reward_range, law=self.item.rewards, noise=self._noise
        )

    @cached_property
    def audit_pool(self) -> Pool:
        """The smallest pool at the kernel's lengthscale: a claim holds for all pools, and faults show on this one."""
        return extrapolating_pool(FEW_ACTIONS, self.pool.dimension, self.item.scale)

    def audit_table(self) -> RewardTable:
        generator = np.random.Generator(np.random.SFC64(self._seed(Purpose.AUDIT_TABLE)))
        return self._at_the_ends(self.audit_pool.points[self.audit_pool.drawn(self.setting.rounds, generator)])

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """The problem on the algorithm's pool of audits, whose contexts are taken for the nearest there."""
        pool = worst_pool(entry.audit_pool, FEW_ACTIONS, self.pool.dimension, self.item.scale)
        return replace(super().audit_problem(problem, entry), n_actions=FEW_ACTIONS, pool=pool)

    def about(self) -> tuple[str, str, str]:
        item = self.item
        drawn = "drawn with the same probability"
        if item.law is not None:
            drawn = f"drawn in proportion to {_listed(item.law)}"
        if item.assumed_law is not None:
            drawn += f" (algorithms are told {_listed(item.assumed_law)})"
        if item.unseen:
            drawn += f" but for {item.unseen} that {'is' if item.unseen == 1 else 'are'} never drawn"
        law = "are at the ends of the range"
        if item.rewards == "gaussian":
            bias = self.stream(np.random.SeedSequence(0)).clipping_bias
            law = (
                f"have normal noise of deviation {self._noise:g} and are clipped to the range, which moves means by at most "
                f"{bias:.2g}"
            )
        each = ", one for each replication" if item.functions == "each" else ""
        text = (
            f"A random function of norm {item.norm:g} in the space of the kernel ({item.public_kernel()}), with "
            f"{item.n_centers} centers{each}. Each user brings one of {item.contexts} contexts, {drawn}, "
            f"and {item.actions} actions: points of the unit ball in {self.pool.dimension} dimensions. Rewards {law}. "
            f"Audits replay {self.audit_pool.n_contexts} contexts of {FEW_ACTIONS} actions, one of which is never drawn and "
            "hides a record least (GP-UCB takes them for the nearest of a pool of its own), and rewards drawn at random."
        )
        return item.kind, text, CONTEXTUAL_PSEUDO


def _with_law(pool: Pool, frequencies: list[float] | None) -> Pool:
    return pool if frequencies is None else replace(pool, law=np.array(frequencies) / sum(frequencies))


def _listed(frequencies: list[float]) -> str:
    return " : ".join(f"{each:g}" for each in frequencies)


class DiabetesSpec(KernelSpec, PeopleFields):
    """Diabetes patients, of whom the one who gets worst is looked for; see `bandana.algorithms.environments.logged`."""

    whose_data: ClassVar[str] = "public"
    kind: Literal["diabetes"]
    actions: Annotated[int, Field(ge=2, le=N_PATIENTS)] = Field(10, description="Patients that are shown in a round.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return 10

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale and whether the kernel is additive: sqrt(10) and no if it is linear, 0.8 and yes if not."""
        return (math.sqrt(10.0), False) if self.kernel == "linear" else (0.8, True)


class _Diabetes(_Kernel[DiabetesSpec]):
    is_drawn = False
    noun = "patient"
    n_people = N_PATIENTS

    @cached_property
    def table(self) -> ContextTable:
        """The rounds that benchmarks play on."""
        return diabetes_table(self._seed(Purpose.ROWS), self.setting.horizon, self.item.actions)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        if self.item.people == "fixed":
            return self.table
        n_reps, horizon = self.setting.block_size, self.setting.horizon
        rounds = diabetes_table(seed, n_reps * horizon, self.item.actions)
        return DrawnPeople(rounds, np.arange(n_reps * horizon).reshape(n_reps, horizon))

    def reference_gaps(self, stream: Any, n_reps: int) -> dict[str, FloatArray]:
        """Exact, from all rows."""
        if self.item.people == "drawn":
            return {UNIFORM: stream.gaps(n_reps).mean(axis=1)}
        rewards = self.table.rewards
        return {UNIFORM: np.full(n_reps, (rewards.max(axis=1) - rewards.mean(axis=1)).mean())}

    def audit_table(self) -> RewardTable:
        return diabetes_table(self._seed(Purpose.AUDIT_TABLE), self.setting.rounds, self.item.actions)

    def about(self) -> tuple[str, str, str]:
        text = (
            "Diabetes patients (Efron and others 2004, data of the package scikit-learn). Each round shows "
            f"{self.n_actions} of 442, with ten measurements; the reward of choosing one is how far the disease got in a "
            f"year, from 0 to 1. Kernel: {self.item.public_kernel()}."
        )
        return "diabetes", text, HINDSIGHT


CLASSES: Classes = {GapSpec: _Gap, RkhsSpec: _Rkhs, DiabetesSpec: _Diabetes}
