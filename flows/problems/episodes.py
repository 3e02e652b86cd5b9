"""Episodes in Markov decision processes of linear structure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Annotated, Literal, TypeVar

import numpy as np
from pydantic import Field, model_validator

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.episodes import EpisodeTable, random_episodes
from bandana.algorithms.environments.mdp_instances import Instance, hypercube_chain, kernel_mixture, modes, one_hot, patients
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.environments.worst_mdps import bed_like
from bandana.algorithms.mdp.planning import plan
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.problem import LINEAR_MDP, MIXTURE, Problem
from bandana.algorithms.protocol import EpisodicStream, FloatArray, IntArray, Stream
from bandana.flows.problems.environment import CONSTANT, UNIFORM, Classes, Environment, EnvironmentFields, Item, Purpose
from bandana.flows.texts.fields import MOST_ENTRIES, Actions, Dimension, Positive, States, Steps

REGRET = (
    "Regret is the sum over all steps of what the action costs against the best policy, if all later actions are best "
    "(pseudo-regret): on average the values that episodes lose."
)


Chance = Annotated[float, Field(ge=0, le=1)]
Structure = Literal["linear-mixture", "linear-mdp"]
_STRUCTURE = (
    "What algorithms are told of it: `linear-mixture` its features, rewards and a bound on the parameters, or "
    "`linear-mdp`, with a feature for each state and action, so that rewards are learned too."
)


class EpisodesSpec(EnvironmentFields, ABC):
    """Users who each live through an episode."""

    rewards: Literal["bernoulli", "exact"] = Field(
        "bernoulli", description="Law of a reward: 0 or 1 with the mean as probability, or the mean itself."
    )


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
    def problem_kind(self) -> str:  # type: ignore[override]
        """Kind of problem: the structure that the spec names."""
        return self.structure

    @model_validator(mode="after")
    def _is_an_instance(self) -> _KnownSpec:
        self.instance()
        return self


Known = TypeVar("Known", bound=_KnownSpec)


class Episodes(Environment[Item]):
    """An environment whose users live through episodes."""

    unit = "episodes"
    references = (UNIFORM, CONSTANT)

    @property
    @abstractmethod
    def instance(self) -> Instance:
        """The process; the same in all blocks."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.instance.action_names

    def problem(self, horizon: int) -> Problem:
        """Public facts of it: all but the parameters of its model."""
        return Problem(self.n_actions, self.reward_range, horizon, model=self.instance.model)

    def stream(self, seed: np.random.SeedSequence) -> FiniteMDP:
        """Users who live through the process."""
        law: str = self.item.rewards  # type: ignore[attr-defined]
        return self.instance.stream(self.setting.horizon, seed, law)

    def regret(self, stream: Stream | EpisodicStream, grid: IntArray, n_reps: int) -> EpisodicRegretCurve:
        """Gaps along each trajectory."""
        return EpisodicRegretCurve(self.instance.best.gaps, grid, n_reps)

    def reference_gaps(self, stream: Stream | EpisodicStream, n_reps: int) -> dict[str, FloatArray]:
        """Exact, by evaluating both kinds of policies: an episode loses V* - V at its first state."""
        mdp = self.instance
        best, shape = float(mdp.start @ mdp.best.values[0]), mdp.rewards.shape
        uniform = plan(mdp.transitions, mdp.rewards, np.full(shape, 1 / shape[2]))
        constant = [plan(mdp.transitions, mdp.rewards, np.full(shape[:2], action)) for action in range(shape[2])]
        values = {UNIFORM: uniform.values[0] @ mdp.start, CONSTANT: max(each.values[0] @ mdp.start for each in constant)}
        return {name: np.full(n_reps, best - value) for name, value in values.items()}

    def audit_table(self) -> EpisodeTable:
        """Episodes that lead anywhere."""
        length, n_states, n_actions, _ = self.instance.transitions.shape
        return random_episodes(self.setting.rounds, length, n_states, n_actions, self.reward_range, self.setting.seed)

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """The problem with features that hide least: the claim holds for all, and few processes bring the loss near it."""
        model = bed_like(self.instance.model, entry.guarantee == "pure")
        return replace(super().audit_problem(problem, entry), model=model)

    def about(self) -> tuple[str, str, str]:
        """Kind, description, and what regret means here."""
        instance, item = self.instance, self.item
        n_states, best = instance.model.n_states, float(instance.start @ instance.best.values[0])
        law = "are the means" if item.rewards == "exact" else "are 0 or 1"  # type: ignore[attr-defined]
        public = "features, rewards and a bound on the parameters" if self.kind == MIXTURE else "features"
        text = (
            f"{self._origin} States: {', '.join(instance.state_names) if n_states <= 8 else n_states}. Episodes of "
            f"{len(instance.transitions)} steps, in which the best policy earns {best:.4g} on average; rewards {law}. "
            f"Algorithms are told {public}, of dimension {instance.model.dimension}; they learn where actions lead"
            f"{'' if self.kind == MIXTURE else ' and what they pay'}. Audits replay episodes that lead anywhere, with "
            "rewards drawn at random, under features of the same shape that hide an episode least."
        )
        return item.kind, text, REGRET

    @property
    @abstractmethod
    def _origin(self) -> str:
        """Where it is from, a sentence or two."""


class _Known(Episodes[Known]):
    """Episodes whose numbers are all given in the spec."""

    @cached_property
    def instance(self) -> Instance:
        return self.item.instance()


class HypercubeSpec(_KnownSpec):
    """A chain on which each step's action matters a little: the hard instance for linear mixtures, of tunable difficulty."""

    kind: Literal["hypercube"]
    dimension: Annotated[int, Field(ge=2, le=8)] = Field(2, description="d; there are 2^(d - 1) actions.")
    steps: Annotated[Steps, Field(ge=2)] = Field(2, description="Steps in each episode.")
    base: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="Chance to reach the good state at a step, on average over actions; 1 / steps if left out."
    )
    gap: Positive = Field(
        0.2, description="How much the best and the worst action change that chance: the larger, the easier."
    )

    def mixture(self) -> Instance:
        """The hypercube chain as a linear mixture."""
        return hypercube_chain(self.dimension, self.steps, self.gap, self.base)


class _Hypercube(_Known[HypercubeSpec]):
    @property
    def _origin(self) -> str:
        item = self.item
        base = 1 / item.steps if item.base is None else item.base
        features = "" if item.structure == MIXTURE else ", a feature for each entry"
        return (
            "The hard instance for linear mixtures (Zhou, Gu and Szepesvari 2021): along a chain each step's action changes "
            "the chance to reach the good state, which alone pays; hypercube chain: "
            f"d = {item.dimension}, {item.steps} steps, probabilities {base:g} +- {item.gap:g}{features}."
        )


class PatientsSpec(_KnownSpec):
    """Arriving patients are treated over a few visits; made up: `bandana.algorithms.environments.mdp_instances.patients`."""

    kind: Literal["patients"]
    steps: Steps = Field(4, description="Visits of a patient.")
    shares: Annotated[list[Chance], Field(min_length=3, max_length=3)] = Field(
        [0.2, 0.2, 0.6],
        description="Shares of patients whose disease passes by itself, responds to drug A, or responds to drug B.",
    )

    def mixture(self) -> Instance:
        """The patients as a linear mixture."""
        return patients(self.steps, (self.shares[0], self.shares[1], self.shares[2]))


class _Patients(_Known[PatientsSpec]):
    @property
    def _origin(self) -> str:
        shares = ", ".join(f"{share:g}" for share in self.item.shares)
        return (
            "Made up: arriving patients are treated over a few visits, and states are the severities of their disease, "
            "which passes by itself, responds to drug A, or responds to drug B. How each kind takes its course is known, "
            f"and the shares of the kinds ({shares}) are not. A visit pays the patient's comfort less a treatment's burden."
        )


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
        return kernel_mixture(self.kernels, self.weights, self.mean_rewards, self.start)


class _Kernels(_Known[KernelsSpec]):
    @property
    def _origin(self) -> str:
        return f"A mixture of {len(self.item.kernels)} given kernels, of unknown shares."


class ModesSpec(EpisodesSpec):
    """A linear process of low rank: each action mixes a few modes, which have laws of the next state; features are drawn."""

    problem_kind = LINEAR_MDP
    kind: Literal["modes"]
    states: States = Field(4, description="Number of states.")
    actions: Actions = Field(2, description="Number of actions.")
    dimension: Annotated[Dimension, Field(ge=2)] = Field(2, description="Number of modes.")
    steps: Steps = Field(2, description="Steps in each episode.")
    sharpness: Positive = Field(4.0, description="How near features are to single modes: the larger, the easier.")

    @model_validator(mode="after")
    def _fits(self) -> ModesSpec:
        if (entries := self.states * self.actions * self.dimension) > MOST_ENTRIES:
            raise ValueError(f"states times actions times dimension must be at most {MOST_ENTRIES:,}, got {entries:,}")
        return self


class _Modes(Episodes[ModesSpec]):
    @cached_property
    def instance(self) -> Instance:
        item = self.item
        shape = item.states, item.actions, item.dimension, item.steps
        return modes(*shape, self._seed(Purpose.FEATURES), item.sharpness)

    @property
    def _origin(self) -> str:
        return f"Actions mix {self.item.dimension} modes, which have laws of the next state; features are drawn."


CLASSES: Classes = {
    HypercubeSpec: _Hypercube, PatientsSpec: _Patients, KernelsSpec: _Kernels, ModesSpec: _Modes,
}  # fmt: skip
