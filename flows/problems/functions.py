"""Known functions on a fixed public set of points."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.benchmark_functions import (
    Benchmark,
    camelback,
    decision_set,
    michalewicz,
    nearest_of_norm,
    styblinski_tang,
)
from bandana.algorithms.environments.kernel_functions import PooledFunction
from bandana.algorithms.environments.tables import RewardTable, sphere_table
from bandana.algorithms.problem import FINITE, POOLED, Problem
from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.pool import Pool
from bandana.flows.problems.environment import Classes, Purpose
from bandana.flows.problems.kernel import FEW_ACTIONS, MARGIN, KernelSpec, Pooled
from bandana.flows.texts.fields import Choices, Positive
from bandana.privacy_core import Interval


class FunctionSpec(KernelSpec):
    """A known function, with a fixed decision set of random points and the best one; see `benchmark_functions`."""

    problem_kind = POOLED
    kind: Literal["camelback", "styblinski-tang", "michalewicz"]
    actions: Choices = Field(400, description="Points that can be chosen, the same in all rounds.")
    points: Literal["uniform", "sobol"] = Field(
        "uniform", description="The best point and others: drawn uniformly, or the first ones of Sobol's sequence."
    )
    norm: Positive | None = Field(
        None,
        description="Norm in the kernel's space of what is played, measured from the middle of the range: the function's "
        "nearest neighbor of this norm. The function itself if left out, whose norm may be large.",
    )
    noise: Annotated[float, Field(ge=0)] = Field(0.1, description="Standard deviation of a reward.")

    def function(self) -> Benchmark:
        """The function to maximize."""
        return {"camelback": camelback, "styblinski-tang": styblinski_tang, "michalewicz": michalewicz}[self.kind]()

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.function().dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """The function's own lengthscale, and whether its kernel is additive."""
        function = self.function()
        return function.lengthscale, function.is_additive

    @property
    def played_as(self) -> tuple[str, ...]:
        """Pooled, and finitely many arms, as all users have the same points."""
        return POOLED, FINITE


class _Function(Pooled[FunctionSpec]):
    @cached_property
    def function(self) -> Benchmark:
        """Function that is maximized."""
        return self.item.function()

    @cached_property
    def pool(self) -> Pool:
        return decision_set(self.function, self.item.actions, self._seed(Purpose.POOL), self.item.points)

    @cached_property
    def values(self) -> FloatArray:
        """(1, n_actions) mean rewards."""
        values, norm = self.function(self.pool.points), self.item.norm
        if norm is None:
            return values
        middle = (self.reward_range.low + self.reward_range.high) / 2
        return middle + nearest_of_norm(self.item.public_kernel(), self.pool.points[0], values[0] - middle, norm)[None]

    @property
    def reward_range(self) -> Interval:
        margin = MARGIN * self.item.noise
        return Interval(self.function.lowest - margin, self.function.highest + margin)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        return PooledFunction(self.pool, self.values, self.setting.horizon, seed, self.reward_range, noise=self.item.noise)

    def audit_table(self) -> RewardTable:
        shape = (self.setting.rounds, FEW_ACTIONS, self.function.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(Purpose.AUDIT_TABLE))

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """Few of the points, the best one among them: a claim holds for all decision sets, and faults show on few."""
        points = self.pool.points[0]
        best = int(np.argmax(self.values[0]))
        few = points[[best, (best + 1) % len(points)]][None]
        return replace(super().audit_problem(problem, entry), n_actions=FEW_ACTIONS, pool=Pool(few, np.ones(1)))

    def about(self) -> tuple[str, str, str]:
        span, function = self.reward_range, self.function
        others = "drawn uniformly" if self.item.points == "uniform" else "of Sobol's sequence"
        bias = self.stream(np.random.SeedSequence(0)).clipping_bias
        moved = ""
        if self.item.norm is not None:
            off = float(np.abs(self.values - function(self.pool.points)).max())
            moved = (
                f" What is played is the nearest function of norm {self.item.norm:g} in the kernel's space, measured from "
                f"the middle of the range; it differs by at most {off:.2g}."
            )
        text = (
            f"The function {function.name} in {function.dimension} dimensions, scaled to [-1, 1]^d and a largest value of "
            f"{function.highest:.4g}. {self.n_actions} points can be chosen, the same in all rounds: the best one and "
            f"others {others}.{moved} Rewards are the value plus normal noise of deviation {self.item.noise:g}, clipped to "
            f"{span}, which moves means by at most {bias:.2g}. Kernel: {self.item.public_kernel()}. Audits replay two of "
            "the points, points of the unit sphere that users bring in their place, and rewards drawn at random."
        )
        return self.item.kind, text, "Regret is the sum of gaps to the largest value among the points (pseudo-regret)."


CLASSES: Classes = {FunctionSpec: _Function}
