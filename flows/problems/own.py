"""Environments that a user wrote in a file, or that an installed package adds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from bandana.algorithms.environments.mdp_instances import Instance, tabular
from bandana.algorithms.environments.own_streams import BrokenStream, OwnArms, OwnContexts, check_repeatable
from bandana.algorithms.environments.tables import RewardTable, random_table, sphere_table
from bandana.algorithms.problem import CONTEXTUAL, FINITE, LINEAR_MDP
from bandana.algorithms.protocol import EpisodicStream, FloatArray, Stream
from bandana.flows.keys.content import content_key
from bandana.flows.own.code import Loadable, OwnCodeError, OwnObject, Registered
from bandana.flows.own.trial import load, try_out
from bandana.flows.problems.environment import CONTEXTUAL_PSEUDO, PSEUDO, UNIFORM, Classes, Environment, Purpose, Setting
from bandana.flows.problems.episodes import Episodes, EpisodesSpec
from bandana.flows.problems.linear import Contextual
from bandana.flows.texts.fields import Scalar
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval

Made = TypeVar("Made", OwnArms, OwnContexts)
_FEW = 16
_CHECKED: set[str] = set()
"""Keys of environments that were seen to answer well in this process."""
_TYPICAL_USERS = 4096
"""Users of whom uniform play's expected regret is the average, where they bring their actions."""


class _MadeSpec(EpisodesSpec):
    """An environment that a class or function makes, from a seed, a number of users and parameters of its own."""

    whose_data: ClassVar[str] = "own"
    is_shipped: ClassVar[bool] = False
    parameters: dict[str, Scalar] = Field({}, description="What the class or function is called with.")
    rewards: Literal["bernoulli", "exact"] = Field(
        "bernoulli", description="In episodes, law of a reward: 0 or 1 with the mean as probability, or the mean itself."
    )

    _code: Loadable = PrivateAttr()
    _kind: str = PrivateAttr(FINITE)

    @abstractmethod
    def _loadable(self, info: ValidationInfo) -> Loadable:
        """Code that makes it."""

    @model_validator(mode="after")
    def _can_be_made(self, info: ValidationInfo) -> _MadeSpec:
        self._code = self._loadable(info)
        try:
            self._code.check_parameters(self.parameters)
            made = self.made(np.random.SeedSequence(0), _FEW)
        except OwnCodeError as error:
            raise ValueError(f"parameters: {error}") from None
        self._kind = (
            LINEAR_MDP if hasattr(made, "transitions") else CONTEXTUAL if hasattr(made, "context_dimension") else FINITE
        )
        return self

    def made(self, seed: np.random.SeedSequence, n_users: int) -> Any:
        """Object that the class or function makes for one block of replicates."""
        return self._code.made(self.parameters, {"seed": seed, "n_users": n_users})

    @property
    def code(self) -> Loadable:
        """Code that makes it, which every process loads for itself."""
        return self._code

    @property
    def problem_kind(self) -> str:  # type: ignore[override]
        """Kind of problem, as what is made shows."""
        return self._kind

    @property
    def shown_label(self) -> str:
        """The given label, or the name of what makes it."""
        return self.label or self._code.label


class PythonSpec(_MadeSpec):
    """An environment in a Python file of your own: arms, users who bring their actions, or episodes."""

    kind: Literal["python"]
    file: str = Field(description="FILE.py:NAME, relative to the spec: a class or function that makes the environment.")

    def _loadable(self, info: ValidationInfo) -> OwnObject:
        return OwnObject.parse(self.file, info.context)

    @field_validator("file")
    @classmethod
    def _can_be_loaded(cls, given: str, info: ValidationInfo) -> str:
        load(given, info.context)
        return given

    @property
    def made_by(self) -> tuple[object, ...]:
        """The file."""
        return (self.code,)

    @property
    def code_reference(self) -> str:
        """File and name."""
        assert isinstance(self.code, OwnObject)
        return f"{self.code.path}:{self.code.name}"


class PluginSpec(_MadeSpec):
    """An environment that an installed package adds through the entry-point group `bandana.environments`."""

    kind: Literal["plugin"]
    name: str = Field(description="Name of the entry point.")

    def _loadable(self, info: ValidationInfo) -> Registered:
        return Registered(self.name)

    @property
    def made_by(self) -> tuple[object, ...]:
        """The function."""
        return (self.code.load(),)


class _OfCode(Environment[_MadeSpec]):
    """An environment that a user's code makes."""

    def facts(self) -> dict[str, object]:
        """Where its file lies changes nothing; its code stands in the other half of a key."""
        return super().facts() | ({"file": self.item.code.label} if "file" in type(self.item).model_fields else {})


class _Made(_OfCode, Generic[Made]):
    """Arms, and users who bring their actions."""

    @cached_property
    def shown(self) -> Made:
        """One that is looked at, and not played on."""
        return self.stream(np.random.SeedSequence(0))

    @abstractmethod
    def stream(self, seed: np.random.SeedSequence) -> Made:
        """Stream that one block of replicates plays on."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.shown.names)

    @property
    def reward_range(self) -> Interval:
        return self.shown.reward_range

    def check(self) -> None:
        def watch() -> None:
            with self.item.code.blamed(BrokenStream):
                check_repeatable(self.stream(np.random.SeedSequence(1)), self.stream(np.random.SeedSequence(1)))
                self._check_fixed(self.stream(np.random.SeedSequence(2)))

        key = content_key([self.facts(), self.item.code.digest(), self.setting.horizon])
        try:
            if key not in _CHECKED:
                try_out(watch, f"{self.item.code.label}, while it was checked,")
                _CHECKED.add(key)
        except (BrokenStream, OwnCodeError) as error:
            raise SpecError(f"{self.item.where}environment: {self.label}: {error}") from error
        super().check()

    def _check_fixed(self, other: Made) -> None:
        """Checks that what is public is the same for another seed."""
        if (other.names, other.reward_range) != (self.names, self.reward_range):
            raise BrokenStream("names and reward_range must not depend on the seed")


class _MadeArms(_Made[OwnArms]):
    def stream(self, seed: np.random.SeedSequence) -> OwnArms:
        return OwnArms(self.item.made(seed, self.setting.horizon), self.setting.horizon)

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.shown.means)

    def _check_fixed(self, other: OwnArms) -> None:
        super()._check_fixed(other)
        if not np.array_equal(other.means, self.means):
            raise BrokenStream("means must not depend on the seed: it is that of the rewards")

    def audit_table(self) -> RewardTable:
        return random_table(self.setting.rounds, self.n_actions, self.reward_range, self.setting.seed)

    def about(self) -> tuple[str, str, str]:
        text = f"Arms of {self.item.code.label}. Audits replay rewards drawn at the ends of the range."
        return self.label, text, PSEUDO


class _MadeContexts(_Made[OwnContexts], Contextual[_MadeSpec]):
    is_drawn = False  # no bound of the catalog is known to hold

    def stream(self, seed: np.random.SeedSequence) -> OwnContexts:
        return OwnContexts(self.item.made(seed, self.setting.horizon), self.setting.horizon)

    @property
    def dimension(self) -> int:
        return self.shown.context_dimension

    def reference_gaps(self, stream: Stream | EpisodicStream, n_reps: int) -> dict[str, FloatArray]:
        """The average over the users of another stream, the same in all blocks."""
        n = min(_TYPICAL_USERS, self.setting.horizon)
        other, total = self.stream(self._seed(Purpose.ROWS)), 0.0
        for user in range(n):
            means = other.mean_rewards(np.array([user]), other.contexts(np.array([user])))
            total += float(means.max() - means.mean())
        return {UNIFORM: np.full(n_reps, total / n)}

    def audit_table(self) -> RewardTable:
        shape = self.setting.rounds, self.n_actions, self.dimension
        return sphere_table(*shape, self.reward_range, self._seed(Purpose.AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Users of {self.item.code.label}, who bring their actions as vectors. Audits replay vectors from the unit "
            "sphere, and rewards at the ends of the range. The row of uniform play is the average over at most "
            f"{_TYPICAL_USERS} users."
        )
        return self.label, text, CONTEXTUAL_PSEUDO


class _MadeEpisodes(_OfCode, Episodes[_MadeSpec]):
    @cached_property
    def instance(self) -> Instance:
        """The process; made once with a fixed seed, since its numbers are what regret is counted with."""
        process = self.item.made(np.random.SeedSequence(0), self.setting.horizon)
        try:
            names = tuple(getattr(process, "state_names", ())), tuple(getattr(process, "action_names", ()))
            return tabular(process.transitions, process.mean_rewards, getattr(process, "start", None), *names)
        except (AttributeError, ValueError) as error:
            raise SpecError(f"{self.item.where}environment: {self.label}: {error}") from error

    @property
    def _origin(self) -> str:
        return f"A process of {self.item.code.label}, with a feature for each state and action."


def _environment(setting: Setting, item: _MadeSpec) -> Environment[_MadeSpec]:
    kinds: dict[str, Callable[[Setting, _MadeSpec], Environment[_MadeSpec]]] = {
        FINITE: _MadeArms, CONTEXTUAL: _MadeContexts, LINEAR_MDP: _MadeEpisodes,
    }  # fmt: skip
    return kinds[item.problem_kind](setting, item)


CLASSES: Classes = {PythonSpec: _environment, PluginSpec: _environment}
