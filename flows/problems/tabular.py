"""Episodes in finite Markov decision processes without structure."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bandana.algorithms.environments.mdp_instances import Instance
from bandana.algorithms.environments.tabular_instances import inventory, river_swim
from bandana.algorithms.problem import LINEAR_MDP
from bandana.flows.problems.environment import Classes
from bandana.flows.problems.episodes import Episodes, EpisodesSpec
from bandana.flows.texts.fields import NoTruth, Share, States, Steps


class RiverSwimSpec(EpisodesSpec):
    """A river: drifting back to a small reward is easy, the large one takes many strokes against the current."""

    problem_kind = LINEAR_MDP
    newer: ClassVar[tuple[str, ...]] = ("small_reward",)
    kind: Literal["river-swim"]
    states: States = Field(5, description="Number of states: the more, the harder.")
    steps: Steps = Field(10, description="Steps in each episode.")
    small_reward: Share = Field(0.005, description="Reward of drifting in the first state; the large one is 1.")


class _RiverSwim(Episodes[RiverSwimSpec]):
    @cached_property
    def instance(self) -> Instance:
        return river_swim(self.item.states, self.item.steps, self.item.small_reward)

    @property
    def _origin(self) -> str:
        return (
            f"River swim (Strehl and Littman 2008): a small reward of {self.item.small_reward:g} where the current carries "
            "everybody, and a large one of 1 many strokes against it."
        )


class InventorySpec(EpisodesSpec):
    """A shop that restocks one article every day of a week; made up: `bandana.algorithms.environments.tabular_instances`."""

    problem_kind = LINEAR_MDP
    kind: Literal["inventory"]
    capacity: Annotated[int, Field(ge=1, le=199), NoTruth] = Field(4, description="Largest stock; there is one more state.")
    steps: Steps = Field(5, description="Days in each episode.")


class _Inventory(Episodes[InventorySpec]):
    @cached_property
    def instance(self) -> Instance:
        return inventory(self.item.capacity, self.item.steps)

    @property
    def _origin(self) -> str:
        return (
            "Made up: a small shop restocks one article every day of a week, and demand grows from day to day. A day pays "
            "its profit, moved into [0, 1]; a shop's week is the record."
        )


CLASSES: Classes = {RiverSwimSpec: _RiverSwim, InventorySpec: _Inventory}
