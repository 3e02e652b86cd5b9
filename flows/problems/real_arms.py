"""Arms with Gaussian, beta or Pareto rewards, and arms whose means drift."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.environments.real_arms import BetaArms, DriftingArms, GaussianArms, ParetoArms, path_of
from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import DriftingRegretCurve
from bandana.algorithms.protocol import EpisodicStream, FloatArray, IntArray, Stream
from bandana.flows.problems.environment import CONSTANT, PSEUDO, UNIFORM, Environment, EnvironmentFields, Item, Purpose
from bandana.flows.problems.finite_arms import ArmsSpec
from bandana.flows.texts.fields import NoTruth, Positive, ordered
from bandana.privacy_core import Interval

Chance = Annotated[float, Field(ge=0, le=1)]
Inside = Annotated[float, Field(gt=0, lt=1)]


class GaussianSpec(ArmsSpec):
    """Arms with Gaussian rewards, moved into a declared range: privacy needs one."""

    kind: Literal["gaussian"]
    means: list[float] = Field(min_length=2, description="Center of each arm's normal law.")
    deviation: Positive = Field(0.2, description="Standard deviation of a reward, before it is moved into the range.")
    low: float = Field(0.0, description="Lower end of the range that rewards are moved into.")
    high: float = Field(1.0, description="Upper end of the range that rewards are moved into.")

    _is_ordered = model_validator(mode="after")(ordered)


class BetaSpec(ArmsSpec):
    """Arms with rewards in [0, 1] from beta laws."""

    kind: Literal["beta"]
    means: list[Inside] = Field(min_length=2, description="Mean reward of each arm.")
    concentration: Positive = Field(
        4.0, description="How near rewards lie to their mean: their variance is mean (1 - mean) / (concentration + 1)."
    )


class ParetoSpec(ArmsSpec):
    """Arms with heavy-tailed rewards, moved into [0, 1]: most are small, a few very large."""

    kind: Literal["pareto"]
    means: list[Inside] = Field(min_length=2, description="Mean reward of each arm, after rewards were moved.")
    tail: Annotated[float, Field(gt=1), NoTruth] = Field(
        1.5, description="Tail index: before rewards are moved, moments of this order and above are infinite."
    )


class DriftingSpec(EnvironmentFields):
    """Arms that answer 1 with a probability that changes over the rounds; regret is against the best arm of each round."""

    kind: Literal["drifting"]
    means: list[Annotated[list[Chance], Field(min_length=2)]] = Field(
        min_length=2, description="Success probability of each arm at evenly spaced times, one list a time."
    )
    change: Literal["smooth", "abrupt"] = Field(
        "smooth", description="`smooth`: on straight lines from one time to the next; `abrupt`: in equally long stretches."
    )

    @property
    def n_arms(self) -> int:
        """Number of arms."""
        return len(self.means[0])

    @model_validator(mode="after")
    def _is_rectangular(self) -> DriftingSpec:
        for i, row in enumerate(self.means):
            if len(row) != self.n_arms:
                raise ValueError(f"means.{i}: has {len(row)} arms where the first time has {self.n_arms}")
        return self


_RealArms = GaussianArms | BetaArms | ParetoArms | DriftingArms


class _Arms(Environment[Item]):
    """Arms whose rewards are drawn one by one."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm {a}" for a in range(self.item.n_arms or 0))

    def stream(self, seed: np.random.SeedSequence) -> _RealArms:
        return self._arms(self.setting.horizon, seed)

    @abstractmethod
    def _arms(self, n_users: int, seed: np.random.SeedSequence) -> _RealArms:
        """Arms that answer in the first `n_users` rounds."""

    @cached_property
    def means(self) -> FloatArray:
        return self._arms(self.setting.horizon, np.random.SeedSequence(0)).means

    def audit_table(self) -> RewardTable:
        rounds = self.setting.rounds
        arms = self._arms(rounds, self._seed(Purpose.AUDIT_TABLE))
        users = np.repeat(np.arange(rounds), self.n_actions)
        rewards = arms.drawn(users, np.tile(np.arange(self.n_actions), rounds))
        return RewardTable(rewards.reshape(rounds, self.n_actions), self.reward_range)


class _Gaussian(_Arms[GaussianSpec]):
    @property
    def reward_range(self) -> Interval:
        return Interval(self.item.low, self.item.high)

    def _arms(self, n_users: int, seed: np.random.SeedSequence) -> GaussianArms:
        return GaussianArms(self.item.means, self.item.deviation, self.reward_range, n_users, seed)

    def about(self) -> tuple[str, str, str]:
        span = self.reward_range
        text = f"Arms with Gaussian rewards of deviation {self.item.deviation:g}, moved into [{span.low:g}, {span.high:g}]."
        return "gaussian", text, f"{PSEUDO} Means are those of the rewards after they were moved into the range."


class _Beta(_Arms[BetaSpec]):
    def _arms(self, n_users: int, seed: np.random.SeedSequence) -> BetaArms:
        return BetaArms(self.item.means, self.item.concentration, n_users, seed)

    def about(self) -> tuple[str, str, str]:
        return "beta", f"Arms with beta rewards of concentration {self.item.concentration:g}.", PSEUDO


class _Pareto(_Arms[ParetoSpec]):
    def _arms(self, n_users: int, seed: np.random.SeedSequence) -> ParetoArms:
        return ParetoArms(self.item.means, self.item.tail, n_users, seed)

    def about(self) -> tuple[str, str, str]:
        return "pareto", f"Arms with Pareto rewards of tail index {self.item.tail:g}, moved into [0, 1].", PSEUDO


class _Drifting(_Arms[DriftingSpec]):
    is_drawn = False  # no bound of the catalog holds where means change
    references = (UNIFORM, CONSTANT)

    def _path(self, n_users: int) -> FloatArray:
        return path_of(self.item.means, n_users, is_smooth=self.item.change == "smooth")

    def _arms(self, n_users: int, seed: np.random.SeedSequence) -> DriftingArms:
        return DriftingArms(self._path(n_users), seed)

    @cached_property
    def _lost(self) -> FloatArray:
        """(horizon + 1, n_actions) regret of playing one arm in all rounds before."""
        path = self._path(self.setting.horizon)
        gaps = path.max(axis=1, keepdims=True) - path
        return np.concatenate([np.zeros((1, self.n_actions)), np.cumsum(gaps, axis=0)])

    def regret(self, stream: Stream | EpisodicStream, grid: IntArray, n_reps: int) -> DriftingRegretCurve:
        return DriftingRegretCurve(self._lost, grid, n_reps)

    def reference_gaps(self, stream: Stream | EpisodicStream, n_reps: int) -> dict[str, FloatArray]:
        """Averages over the rounds."""
        total = self._lost[-1] / self.setting.horizon
        return {UNIFORM: np.full(n_reps, total.mean()), CONSTANT: np.full(n_reps, total.min())}

    def reference_curves(self, stream: Stream | EpisodicStream, grid: IntArray, n_reps: int) -> dict[str, FloatArray]:
        """Losses, which depend on the round: uniform play, and the arm that does best over all rounds."""
        best = int(np.argmin(self._lost[-1]))
        curves = {UNIFORM: self._lost[grid].mean(axis=1), CONSTANT: self._lost[grid, best]}
        return {name: np.tile(curve, (n_reps, 1)) for name, curve in curves.items()}

    def about(self) -> tuple[str, str, str]:
        how = "on straight lines" if self.item.change == "smooth" else "in steps"
        text = f"Arms that answer 1 with a probability that changes {how} through {len(self.item.means)} given points."
        return "drifting", text, (
            "Regret is the sum of gaps to the best arm of each round (dynamic pseudo-regret); means that are shown are "
            "averages over the rounds. Bounds on regret are for means that stay, and are not shown."
        )  # fmt: skip


CLASSES: dict[type, type[_Arms[EnvironmentFields]]] = {
    GaussianSpec: _Gaussian, BetaSpec: _Beta, ParetoSpec: _Pareto, DriftingSpec: _Drifting,
}  # fmt: skip
