"""What a user writes of environments whose users live through episodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Annotated, Literal

from pydantic import Field, model_validator

from bandana.algorithms.environments.mdp_instances import Instance, hypercube_chain, kernel_mixture, one_hot, patients
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE
from bandana.flows.spec.fields import Count, Labelled, Positive

Chance = Annotated[float, Field(ge=0, le=1)]
Structure = Literal["linear-mixture", "linear-mdp"]
_STRUCTURE = (
    "What algorithms are told of it: `linear-mixture` its features, rewards and a bound on the parameters, or "
    "`linear-mdp`, with a feature for each state and action, so that rewards are learned too."
)


class EpisodesSpec(Labelled, ABC):
    """Users who each live through an episode."""

    rewards: Literal["bernoulli", "exact"] = Field(
        "bernoulli", description="Law of a reward: 0 or 1 with the mean as probability, or the mean itself."
    )

    @property
    @abstractmethod
    def problem_kind(self) -> str:
        """Kind of problem: linear-mixture or linear-mdp."""


class _KnownSpec(EpisodesSpec):
    """Episodes whose numbers are all given in the spec; numbers that do not fit are refused when the spec is read."""

    structure: Structure = Field("linear-mixture", description=_STRUCTURE)

    @abstractmethod
    def mixture(self) -> Instance:
        """The model as a linear mixture."""

    def instance(self) -> Instance:
        """The model in the structure that the spec names."""
        mixture = self.mixture()
        return mixture if self.structure == MIXTURE else one_hot(mixture)

    @property
    def problem_kind(self) -> str:
        """Kind of problem: the structure that the spec names."""
        return self.structure

    @model_validator(mode="after")
    def _is_an_instance(self) -> _KnownSpec:
        self.instance()
        return self


class HypercubeSpec(_KnownSpec):
    """A chain on which each step's action matters a little: the hard instance for linear mixtures, of tunable difficulty."""

    kind: Literal["hypercube"]
    dimension: Annotated[int, Field(ge=2, le=8)] = Field(2, description="d; there are 2^(d - 1) actions.")
    steps: Annotated[int, Field(ge=2)] = Field(2, description="Steps in each episode.")
    base: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Chance to reach the good state at a step, on average over actions; 1 / steps if left out."
    )
    gap: Positive = Field(
        0.2, description="How much the best and the worst action change that chance: the larger, the easier."
    )

    def mixture(self) -> Instance:
        """The hypercube chain as a linear mixture."""
        return hypercube_chain(self.dimension, self.steps, self.gap, self.base)


class PatientsSpec(_KnownSpec):
    """Arriving patients are treated over a few visits; made up: `bandana.algorithms.environments.mdp_instances.patients`."""

    kind: Literal["patients"]
    steps: Count = Field(4, description="Visits of a patient.")
    shares: Annotated[list[Chance], Field(min_length=3, max_length=3)] = Field(
        [0.2, 0.2, 0.6],
        description="Shares of patients whose disease passes by itself, responds to drug A, or responds to drug B.",
    )

    def mixture(self) -> Instance:
        """The patients as a linear mixture."""
        return patients(self.steps, (self.shares[0], self.shares[1], self.shares[2]))


class KernelsSpec(_KnownSpec):
    """A mixture of your own: users are of unknown kinds, each with a known kernel."""

    kind: Literal["kernel-mixture"]
    kernels: list[list[list[list[float]]]] = Field(
        min_length=1, description="Transition probabilities to all next states, for each kind, state and action."
    )
    weights: list[Chance] | list[list[Chance]] = Field(
        description="Unknown shares of the kinds, the same at all steps or one list a step."
    )
    mean_rewards: list[list[list[Chance]]] = Field(
        min_length=1,
        description="Public mean rewards of each step, state and action; they fix the number of steps of an episode.",
    )
    start: list[Chance] | None = Field(None, description="Chances of the first state; the first one if left out.")

    def mixture(self) -> Instance:
        """The mixture of the given kernels."""
        return kernel_mixture(self.kernels, self.weights, self.mean_rewards, self.start, told="mixture of given kernels")


class ModesSpec(EpisodesSpec):
    """A linear process of low rank: each action mixes a few modes, which have laws of the next state; features are drawn."""

    kind: Literal["modes"]
    states: Annotated[int, Field(ge=2)] = Field(4, description="Number of states.")
    actions: Annotated[int, Field(ge=2)] = Field(2, description="Number of actions.")
    dimension: Annotated[int, Field(ge=2)] = Field(2, description="Number of modes.")
    steps: Count = Field(2, description="Steps in each episode.")
    sharpness: Positive = Field(4.0, description="How near features are to single modes: the larger, the easier.")

    @property
    def problem_kind(self) -> str:
        """Kind of problem: linear-mdp."""
        return LINEAR_MDP
