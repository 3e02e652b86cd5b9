"""Episodes in Markov decision processes of linear structure."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from bandana.algorithms.entry import Entry
from bandana.algorithms.environments.episodes import EpisodeTable, random_episodes
from bandana.algorithms.environments.mdp_instances import Instance, modes
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.environments.worst_mdps import bed_like
from bandana.algorithms.observers import EpisodicRegretCurve
from bandana.algorithms.problem import MIXTURE, Problem
from bandana.algorithms.protocol import IntArray
from bandana.flows.spec.environment import Environment, Item, Purpose
from bandana.flows.spec.episode_specs import HypercubeSpec, KernelsSpec, ModesSpec, PatientsSpec

REGRET = (
    "Regret is the sum over all steps of what the action costs against the best policy, if all later actions are best "
    "(pseudo-regret): on average the values that episodes lose."
)


class _Episodes(Environment[Item]):
    """An environment whose users live through episodes."""

    unit = "episodes"

    @cached_property
    def instance(self) -> Instance:
        """The process; the same in all blocks."""
        return self._instance()

    @abstractmethod
    def _instance(self) -> Instance:
        """The instance, built anew."""

    @property
    def kind(self) -> str:  # type: ignore[override]
        """Kind of problem: linear-mixture or linear-mdp."""
        found: str = self.item.problem_kind  # type: ignore[attr-defined]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return self.instance.action_names

    def problem(self, horizon: int) -> Problem:
        return Problem(self.n_actions, self.reward_range, horizon, model=self.instance.model)

    def stream(self, seed: np.random.SeedSequence) -> FiniteMDP:
        law: str = self.item.rewards  # type: ignore[attr-defined]
        return self.instance.stream(self.spec.horizon, seed, law)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> EpisodicRegretCurve:
        return EpisodicRegretCurve(self.instance.best.gaps, grid, n_reps)

    def audit_table(self) -> EpisodeTable:
        length, n_states, n_actions, _ = self.instance.transitions.shape
        return random_episodes(self.spec.audit.rounds, length, n_states, n_actions, self.reward_range, self.spec.seed)

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """The problem with features that hide least: the claim holds for all, and few processes bring the loss near it."""
        model = bed_like(self.instance.model, entry.guarantee == "pure")
        return replace(super().audit_problem(problem, entry), model=model)

    def about(self) -> tuple[str, str, str]:
        found, item = self.instance, self.item
        n_states, best = found.model.n_states, float(found.start @ found.best.values[0])
        law = "are the means" if item.rewards == "exact" else "are 0 or 1"  # type: ignore[attr-defined]
        public = "features, rewards and a bound on the parameters" if self.kind == MIXTURE else "features"
        text = (
            f"{self._told} States: {', '.join(found.state_names) if n_states <= 8 else n_states}. Episodes of "
            f"{len(found.transitions)} steps, in which the best policy earns {best:.4g} on average; rewards {law}. "
            f"Algorithms are told {public}, of dimension {found.model.dimension}; they learn where actions lead"
            f"{'' if self.kind == MIXTURE else ' and what they pay'}. Audits replay episodes that lead anywhere, with "
            "rewards drawn at random, under features of the same shape that hide an episode least."
        )
        return item.kind, text, REGRET  # type: ignore[attr-defined]

    @property
    @abstractmethod
    def _told(self) -> str:
        """Where it is from, a sentence or two."""


class _Hypercube(_Episodes[HypercubeSpec]):
    def _instance(self) -> Instance:
        return self.item.instance()

    @property
    def _told(self) -> str:
        return (
            "The hard instance for linear mixtures (Zhou, Gu and Szepesvari 2021): along a chain each step's action changes "
            f"the chance to reach the good state, which alone pays; {self.instance.told}."
        )


class _Patients(_Episodes[PatientsSpec]):
    def _instance(self) -> Instance:
        return self.item.instance()

    @property
    def _told(self) -> str:
        shares = ", ".join(f"{share:g}" for share in self.item.shares)
        return (
            "Made up: arriving patients are treated over a few visits, and states are the severities of their disease, "
            "which passes by itself, responds to drug A, or responds to drug B. How each kind takes its course is known, "
            f"and the shares of the kinds ({shares}) are not. A visit pays the patient's comfort less a treatment's burden."
        )


class _Kernels(_Episodes[KernelsSpec]):
    def _instance(self) -> Instance:
        return self.item.instance()

    @property
    def _told(self) -> str:
        return f"A mixture of {len(self.item.kernels)} given kernels, of unknown shares."


class _Modes(_Episodes[ModesSpec]):
    def _instance(self) -> Instance:
        item = self.item
        shape = item.states, item.actions, item.dimension, item.steps
        return modes(*shape, self._seed(Purpose.FEATURES), item.sharpness)

    @property
    def _told(self) -> str:
        return f"Actions mix {self.item.dimension} modes, which have laws of the next state; features are drawn."


CLASSES: dict[type, type[Environment[Any]]] = {
    HypercubeSpec: _Hypercube, PatientsSpec: _Patients, KernelsSpec: _Kernels, ModesSpec: _Modes,
}  # fmt: skip
