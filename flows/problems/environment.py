"""Environments: what benchmarks play on, what audits replay, how both are described, and what may be shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from bandana.algorithms.coins import Coins
from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.observers import ContextualRegretCurve, DriftingRegretCurve, EpisodicRegretCurve, RegretCurve
from bandana.algorithms.problem import ARMS, FINITE, Problem
from bandana.algorithms.protocol import Algorithm, EpisodicStream, FloatArray, IntArray, Stream
from bandana.flows.texts.fields import Count, Labelled
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Interval, Participation

if TYPE_CHECKING:
    from bandana.flows.own.budgets import BookSpec


class EnvironmentFields(Labelled):
    """Fields of one environment of a spec; each kind adds its own."""

    problem_kind: ClassVar[str] = FINITE
    """Kind of problem, of `bandana.algorithms.problem`."""
    whose_data: ClassVar[str] = "simulated"
    """Where the data come from: simulated, public (research data on real people), private, or own (the user's code)."""
    is_shipped: ClassVar[bool] = True
    """True if this product brings all that it plays on: no code and no data of a user's, or of another package."""
    newer: ClassVar[tuple[str, ...]] = ()
    """Fields that are younger than some stored results, whose keys and seeds do not know them: left out at their default."""
    visits_per_user: Count | None = Field(
        None,
        description="Most records that one user has in a run, a public number; without it, nothing is declared of users "
        "who return.",
    )
    visits_apart: Count = Field(
        1, description="Any two records of one user are at least so many rounds apart; 1: they may follow each other."
    )
    if TYPE_CHECKING:
        kind: str

    @model_validator(mode="after")
    def _visits(self) -> Self:
        if self.visits_apart > 1 and (self.visits_per_user or 1) < 2:
            raise ValueError(
                "visits_apart: is for users who return; give visits_per_user, the most records that one user has"
            )
        return self

    @model_serializer(mode="wrap")
    def _as_before(self, dump: SerializerFunctionWrapHandler) -> dict[str, object]:
        """The fields, without those of `newer` at their default."""
        fields: dict[str, object] = dump(self)
        for name in self.newer:
            if name in fields and fields[name] == type(self).model_fields[name].default:
                del fields[name]
        return fields

    @property
    def users(self) -> Participation | None:
        """Records that may be one user's; None where nothing is declared."""
        return None if self.visits_per_user is None else Participation(self.visits_per_user, self.visits_apart)

    @property
    def code_reference(self) -> str | None:
        """`FILE.py:NAME` of the user's code that makes it, with the file's absolute path; None for most kinds."""
        return None

    @property
    def shown_label(self) -> str:
        """Label in cells and reports: the given one, or else the kind, or the name of a file."""
        if self.label is not None:
            return self.label
        return self.kind if self.data_file is None else self.data_file.name

    @property
    def played_as(self) -> tuple[str, ...]:
        """Kinds of problems that algorithms may take it for."""
        return (self.problem_kind,)

    @property
    def n_arms(self) -> int | None:
        """Number of arms, where the spec gives it."""
        return None

    @property
    def data_file(self) -> Path | None:
        """The user's file that holds the data; None for most kinds."""
        return None

    def with_file(self, path: Path) -> Self:
        """The same with its file at another place. Only for kinds that have one."""
        return self.model_copy(update={"path": path})

    @property
    def book(self) -> BookSpec | None:
        """The budget book that charges every run; None for most kinds."""
        return None

    def within(self, folder: Path) -> Self:
        """The same, with its other files than `data_file` looked up in the spec's folder."""
        return self

    @property
    def made_by(self) -> tuple[object, ...]:
        """Code of the user's that makes it, on which keys depend; empty for most kinds."""
        return ()

    def pinned(self, secret: Path, *, makes_secret: bool) -> EnvironmentFields:
        """The same, bound to the present content of its file; see `own_data.pinned`."""
        return self


Item = TypeVar("Item", bound=EnvironmentFields, covariant=True)
_VISITS = ("visits_per_user", "visits_apart")
UNIFORM, CONSTANT = "uniform play", "best constant action"
"""Reference policies: every action with the same probability; the one action that does best if it is always played."""
PSEUDO = "Regret is the sum of mean-reward gaps of the arms played (pseudo-regret)."
CONTEXTUAL_PSEUDO = "Regret is the sum of mean-reward gaps to each user's best action (pseudo-regret)."
HINDSIGHT = "Regret is against the best action of each user, in hindsight."


class Purpose(IntEnum):
    """Purpose of a seed: two purposes never share one."""

    AUDIT_TABLE = 1
    FEATURES = 4
    THETA = 5
    ROWS = 6
    POOL = 7
    FUNCTION = 8


class Setting(NamedTuple):
    """Everything that environments know of the experiment."""

    horizon: int
    """Users of a run."""
    rounds: int
    """Users of a replay."""
    seed: int
    """Root of all seeds."""
    block_size: int
    """Replicates of the largest block."""


class Environment(ABC, Generic[Item]):
    """One environment of a spec.

    Attributes:
      setting: of the experiment.
      item: the environment in it.
      unit: what a user is, in the plural.
      is_drawn: whether rewards are drawn by the model of its kind: independent with fixed means, linear in known features
        where there are any. Of fixed rows no regret bound holds. False too for algorithms that assume another model.
      is_bernoulli: whether every reward is drawn at one of the two ends of its range.
    """

    unit = "rounds"
    is_drawn = True
    is_bernoulli = False
    references: tuple[str, ...] = (UNIFORM,)
    """Names of what `reference_gaps` finds."""
    limited_by = ""
    """Words for the part of it that limits `most_users`; empty: its label."""
    plays_private_rows = False
    """True if algorithms meet rows that the spec does not declare public, so that nobody may repeat the noise."""
    first_row = 0
    """Number of the first record in the data set, of which an environment may play a part."""

    def __init__(self, setting: Setting, item: Item) -> None:
        self.setting, self.item = setting, item

    def __getstate__(self) -> dict[str, object]:
        # Data are not sent to workers: each worker reads the file itself.
        return {"setting": self.setting, "item": self.item}

    @property
    def bounds_everyone(self) -> bool:
        """True if the lower bound of its kind holds here, which is one for all algorithms, whatever they assume."""
        return self.is_drawn

    @property
    def label(self) -> str:
        """Name of it in cells and reports; unique in a spec."""
        return self.item.shown_label

    @property
    def kind(self) -> str:
        """Kind of problem: finite, linear, contextual, kernel, pooled, linear-mixture or linear-mdp."""
        return self.item.problem_kind

    @property
    def has_arms(self) -> bool:
        """True if actions are arms, the same for all users."""
        return self.kind in ARMS

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Names of the actions."""

    @property
    def n_actions(self) -> int:
        """Number of arms, or of actions that each user brings."""
        return len(self.names)

    @property
    def reward_range(self) -> Interval:
        """The declared range of a reward."""
        return Interval(0.0, 1.0)

    @property
    def n_people(self) -> int | None:
        """People in the data, from whom records are drawn with replacement; None: each record is a person's own."""
        return None

    @property
    def means(self) -> FloatArray:
        """(n_actions,) the mean rewards that regret is counted with; none where they depend on more than the action."""
        return np.empty(0)

    @abstractmethod
    def stream(self, seed: np.random.SeedSequence) -> Stream | EpisodicStream:
        """Stream that one block of replicates plays on."""

    @abstractmethod
    def audit_table(self) -> Table:
        """Table that audits replay: as many users as the spec asks for."""

    @abstractmethod
    def about(self) -> tuple[str, str, str]:
        """Name and description for the report, and what regret means here."""

    def problem(self, horizon: int) -> Problem:
        """Public facts of it, for algorithms."""
        return Problem(self.n_actions, self.reward_range, horizon)

    def seen_by(self, entry: Entry) -> Environment[EnvironmentFields]:
        """The environment as one kind of algorithm sees it; for all kinds that play on it the same, if nothing is said."""
        return self

    def audit_problem(self, problem: Problem, entry: Entry) -> Problem:
        """The problem that an algorithm's replays play, from that of the benchmark."""
        return replace(problem, horizon=self.setting.rounds)

    def whole(self) -> Self:
        """The same with replays as long as the benchmark."""
        longer = object.__new__(type(self))
        longer.__dict__.update(self.__dict__)
        longer.setting = self.setting._replace(rounds=self.setting.horizon)
        return longer

    def facts(self) -> dict[str, object]:
        """Facts for keys and seeds: all that its data depend on, so neither its label nor what may be shown of it."""
        facts: dict[str, object] = self.item.model_dump(mode="json", exclude={"label", "public", *_VISITS})
        users = self.item.users
        return facts if users is None else {**facts, "visits": [users.most, users.separation]}

    def check_unchanged(self) -> None:
        """Checks that the data are what keys know, when a result is stored.

        Raises:
          SpecError: a file was replaced while the run played it.
        """

    def in_audit(self, entry: Entry, settings: Settings) -> Settings:
        """The settings at which replays play: at the audit's rounds, of which some hold a release."""
        return entry.in_audit(replace(settings, problem=self.audit_problem(settings.problem, entry)))

    def regret(
        self, stream: Stream | EpisodicStream, grid: IntArray, n_reps: int
    ) -> RegretCurve | ContextualRegretCurve | EpisodicRegretCurve | DriftingRegretCurve:
        """Observer of a run's regret."""
        return RegretCurve(self.means, grid, n_reps)

    def reference_gaps(self, stream: Stream | EpisodicStream, n_reps: int) -> dict[str, FloatArray]:
        """(n_reps,) expected regret of one user under each reference policy that needs no learning, by its name.

        Uniform play everywhere; the best constant action where it is not what regret is counted against.

        Args:
          stream: of one block, on which nothing was played.
          n_reps: replicates of the block.
        """
        return {UNIFORM: np.full(n_reps, (self.means.max() - self.means).mean())}

    def reference_curves(self, stream: Stream | EpisodicStream, grid: IntArray, n_reps: int) -> dict[str, FloatArray]:
        """(n_reps, n_grid) expected regret of each reference policy on a grid of rounds; see `reference_gaps`."""
        return {name: gaps[:, None] * grid for name, gaps in self.reference_gaps(stream, n_reps).items()}

    def final_policy(
        self, algorithm: Algorithm, released: object, labels: IntArray | None, coins: Coins
    ) -> dict[str, FloatArray]:
        """Arrays of a block that say what its replicates would do next, where that can be judged by logged data.

        Args:
          algorithm: that played the block.
          released: its last state.
          labels: as for `bandana.algorithms.run.run`.
          coins: of the block.
        """
        return {}

    def reference_policy(self, name: str, n_reps: int) -> dict[str, FloatArray]:
        """The same of a reference policy."""
        return {}

    def policy_values(self, blocks: Sequence[FloatArray]) -> dict[str, object]:
        """Values of the policies of all blocks by logged data."""
        return {}

    def noise_facts(self) -> dict[str, object]:
        """Facts behind reproducible noise besides the cell; of private rows their content, so that no two share noise."""
        return {}

    def shows(self, what: str) -> bool:
        """True if `values`, `means` or `regret` may be logged, tracked and reported: of public or made-up data all may."""
        return True

    @property
    def most_users(self) -> dict[str, int]:
        """Users that there are, for `horizon` and `audit.rounds`, where they are limited."""
        return {}

    def check(self) -> None:
        """Reads the data and refuses what does not fit, before any work starts.

        Raises:
          SpecError: the data are missing or malformed, or too few for the horizon or the audit.
        """
        for name, value, least in (
            ("horizon", self.setting.horizon, self.n_actions),
            ("audit.rounds", self.setting.rounds, self.n_actions + 1),
        ):
            if self.has_arms and value < least:
                raise SpecError(f"{name}: must be at least {least} for {self.n_actions} arms, got {value}")
            if (most := self.most_users.get(name)) is not None and value > most:
                raise SpecError(f"{name}: {self.limited_by or self.label} has {most} users, got {value}")

    def describe(self) -> Any:
        """Description of the environment for the report."""
        name, text, estimator = self.about()
        users = self.item.users
        return {
            "label": self.label,
            "name": name,
            "description": text,
            "estimator": estimator,
            "data": "public" if self.item.whose_data == "private" and self.shows("values") else self.item.whose_data,
            "horizon": self.setting.horizon,
            "unit": self.unit,
            "actions": list(self.names),
            "means": [float(m) for m in self.means] if self.shows("means") else [],
            "visits": None if users is None else {"most": users.most, "apart": users.separation},
            "not_the_data_of": [],
        }

    def _seed(self, purpose: Purpose) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.setting.seed, spawn_key=(purpose,))


Classes = dict[type, Callable[[Setting, Any], Environment[EnvironmentFields]]]
"""Fields of a kind in a spec -> what makes an environment of the experiment's setting and of them."""
