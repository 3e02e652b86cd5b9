"""Points with a kernel, in whose space the mean reward lies."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.benchmark_functions import Benchmark, decision_set
from bandana.algorithms.environments.contexts import sphere_table
from bandana.algorithms.environments.kernel_functions import (
    GapFunctions,
    PooledFunction,
    gap_points,
    product_pool,
    random_function,
)
from bandana.algorithms.environments.logged import diabetes_table
from bandana.algorithms.environments.tables import ContextTable, RewardTable, random_table
from bandana.algorithms.environments.worst_pools import extrapolating_pool, turned_pool
from bandana.algorithms.observers import ContextualRegretCurve
from bandana.algorithms.problem import KERNEL, POOLED, Problem
from bandana.algorithms.protocol import FloatArray, IntArray, Stream
from bandana.algorithms.rkhs.pool import Pool
from bandana.flows.spec.environment import CONTEXTUAL_PSEUDO, HINDSIGHT, Environment, Item, Purpose
from bandana.flows.spec.environment_specs import DiabetesSpec, FunctionSpec, GapSpec, RkhsSpec
from bandana.privacy_core import Interval

_MOST_LISTED, _FEW_ACTIONS = 32, 2
_MARGIN = 2.0
"""Deviations of normal noise by which a reward range is wider than the means."""


class _Kernel(Environment[Item]):
    """Users bring their actions as points of [-1, 1]^d, and a kernel is known."""

    kind = KERNEL

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"action {a}" for a in range(self.item.actions))  # type: ignore[attr-defined]

    @property
    def _known(self) -> dict[str, Any]:
        """The problem's kernel and the dimension of its points."""
        item: Any = self.item
        return {"dimension": item.points_dimension, "kernel": item.public_kernel()}

    def problem(self, horizon: int) -> Problem:
        return Problem(self.n_actions, self.reward_range, horizon, **self._known)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        return ContextualRegretCurve(stream, grid, n_reps)

    def describe(self) -> dict[str, Any]:
        """Description for the report, which does not list hundreds of points."""
        return super().describe() | ({"actions": []} if self.n_actions > _MOST_LISTED else {})

    def _at_the_ends(self, points: FloatArray) -> ContextTable:
        """Such points, with rewards at the ends of the range by fair coins: a claim holds for all data."""
        coins = random_table(len(points), points.shape[1], self.reward_range, self.spec.seed)
        return ContextTable(points, coins.rewards, self.reward_range)


class _Gap(_Kernel[GapSpec]):
    def stream(self, seed: np.random.SeedSequence) -> Stream:
        item = self.item
        return GapFunctions(item.public_kernel(), item.dimension, item.actions, self.spec.horizon, seed)

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.item.dimension)
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


class _Pooled(_Kernel[Item]):
    """All that users may bring is a finite public pool."""

    kind = POOLED

    @property
    @abstractmethod
    def pool(self) -> Pool:
        """Contexts, points and law; the same in all blocks."""

    @property
    def _known(self) -> dict[str, Any]:
        return super()._known | {"pool": self.pool}


class _Function(_Pooled[FunctionSpec]):
    @cached_property
    def function(self) -> Benchmark:
        """What is maximized."""
        return self.item.function()

    @cached_property
    def pool(self) -> Pool:
        return decision_set(self.function, self.item.actions, self._seed(Purpose.POOL))

    @property
    def reward_range(self) -> Interval:
        margin = _MARGIN * self.item.noise
        return Interval(self.function.lowest - margin, self.function.highest + margin)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        values = self.function(self.pool.points)
        return PooledFunction(self.pool, values, self.spec.horizon, seed, self.reward_range, noise=self.item.noise)

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.function.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(Purpose.AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        span, function = self.reward_range, self.function
        text = (
            f"The function {function.name} in {function.dimension} dimensions, scaled to [-1, 1]^d and a largest value of "
            f"{function.highest:.4g}. {self.n_actions} points can be chosen, the same in all rounds: the best one and "
            f"others drawn uniformly. Rewards are the value plus normal noise of deviation {self.item.noise:g}, clipped to "
            f"{span}, which moves means by at most {self.stream(np.random.SeedSequence(0)).clipping_bias:.2g}. Kernel: "
            f"{self.item.public_kernel()}. Audits replay points of the unit sphere and rewards drawn at random."
        )
        return self.item.kind, text, "Regret is the sum of gaps to the function's largest value (pseudo-regret)."


class _Rkhs(_Pooled[RkhsSpec]):
    @cached_property
    def pool(self) -> Pool:
        item = self.item
        dimensions = item.context_dimension, item.action_dimension
        return product_pool(item.contexts, item.actions, dimensions, self._seed(Purpose.POOL), item.unseen)

    @property
    def _noise(self) -> float:
        return 0.1 * self.item.norm if self.item.noise is None else self.item.noise

    @property
    def reward_range(self) -> Interval:
        most = self.item.norm + (_MARGIN * self._noise if self.item.rewards == "gaussian" else 0.0)
        return Interval(-most, most)

    @cached_property
    def values(self) -> FloatArray:
        """(contexts, actions) of the function; the same in all blocks."""
        points = self.pool.points.reshape(-1, self.pool.dimension)
        kernel, generator = self.item.public_kernel(), np.random.Generator(np.random.SFC64(self._seed(Purpose.THETA)))
        centers = points[generator.choice(len(points), self.item.n_centers, replace=False)]
        return random_function(kernel, centers, self._seed(Purpose.FUNCTION), self.item.norm)(self.pool.points)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        return PooledFunction(
            self.pool, self.values, self.spec.horizon, seed, self.reward_range, law=self.item.rewards, noise=self._noise
        )

    @cached_property
    def audit_pool(self) -> Pool:
        """The smallest pool at the kernel's lengthscale: a claim holds for all pools, and faults show on this one."""
        return extrapolating_pool(_FEW_ACTIONS, self.pool.dimension, self.item.scale)

    def audit_table(self) -> RewardTable:
        generator = np.random.Generator(np.random.SFC64(self._seed(Purpose.AUDIT_TABLE)))
        return self._at_the_ends(self.audit_pool.points[self.audit_pool.drawn(self.spec.audit.rounds, generator)])

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """The problem on the pool of audits; who regresses features of any points gets the points that canaries bring."""
        pool = turned_pool(_FEW_ACTIONS, self.pool.dimension) if KERNEL in entry.plays_on else self.audit_pool
        return replace(super().audit_problem(problem, entry), n_actions=_FEW_ACTIONS, pool=pool)

    def about(self) -> tuple[str, str, str]:
        item = self.item
        drawn = "drawn with the same probability"
        if item.unseen:
            drawn += f" but for {item.unseen} that {'is' if item.unseen == 1 else 'are'} never drawn"
        law = "are at the ends of the range"
        if item.rewards == "gaussian":
            bias = self.stream(np.random.SeedSequence(0)).clipping_bias
            law = (
                f"have normal noise of deviation {self._noise:g} and are clipped to the range, which moves means by at most "
                f"{bias:.2g}"
            )
        text = (
            f"A random function of norm {item.norm:g} in the space of the kernel ({item.public_kernel()}), with "
            f"{item.n_centers} centers. Each user brings one of {item.contexts} contexts, {drawn}, "
            f"and {item.actions} actions: points of the unit ball in {self.pool.dimension} dimensions. Rewards {law}. "
            f"Audits replay {self.audit_pool.n_contexts} contexts of {_FEW_ACTIONS} actions, one of which is never drawn "
            "and hides a record least, and rewards drawn at random."
        )
        return item.kind, text, CONTEXTUAL_PSEUDO


class _Diabetes(_Kernel[DiabetesSpec]):
    is_drawn = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"patient {a}" for a in range(self.item.actions))

    @cached_property
    def table(self) -> ContextTable:
        """The rounds that benchmarks play on."""
        return diabetes_table(self._seed(Purpose.ROWS), self.spec.horizon, self.item.actions)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self.table

    def audit_table(self) -> RewardTable:
        return diabetes_table(self._seed(Purpose.AUDIT_TABLE), self.spec.audit.rounds, self.item.actions)

    def about(self) -> tuple[str, str, str]:
        text = (
            "Diabetes patients (Efron and others 2004, data of the package scikit-learn). Each round shows "
            f"{self.n_actions} of 442, with ten measurements; the reward of choosing one is how far the disease got in a "
            f"year, from 0 to 1. Kernel: {self.item.public_kernel()}."
        )
        return "diabetes", text, HINDSIGHT


CLASSES: dict[type, type[Environment[Any]]] = {
    GapSpec: _Gap, FunctionSpec: _Function, RkhsSpec: _Rkhs, DiabetesSpec: _Diabetes,
}  # fmt: skip
