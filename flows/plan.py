"""From a spec to work: cells (algorithm x calibration x privacy level), and blocks of replicates of each."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from algorithms import catalog
from algorithms.catalog import Claim, Entry, Settings
from algorithms.environments.bandits import BernoulliArms
from algorithms.environments.logged import ARM_NAMES, people_table, resampled_arms, thornton_hiv
from algorithms.environments.tables import RewardTable
from algorithms.protocol import Algorithm, Stream
from flows.specs import BernoulliSpec, Spec, SpecError, TableSpec, ThorntonSpec
from flows.store import code_version, content_key
from privacy_core import Interval, RenyiDP


@dataclass(frozen=True)
class Environment:
    """The data of a spec: what benchmarks play on, what audits replay, and how both are described."""

    spec: Spec

    @cached_property
    def table(self) -> RewardTable | None:
        """The user's table, if the spec names one."""
        match self.spec.environment:
            case TableSpec() as table:
                return read_table(table)
        return None

    @cached_property
    def means(self) -> np.ndarray:
        """(n_actions,) the mean rewards that regret is counted with."""
        match self.spec.environment:
            case BernoulliSpec(means=means):
                return np.asarray(means)
            case ThorntonSpec():
                return np.array([group.mean() for group in thornton_hiv()])
        assert self.table is not None
        return np.asarray(self.table.rewards[: self.spec.horizon].mean(axis=0))

    @property
    def n_actions(self) -> int:
        """Number of arms."""
        return len(self.means)

    @property
    def names(self) -> tuple[str, ...]:
        """What the arms are called."""
        if isinstance(self.spec.environment, ThorntonSpec):
            return ARM_NAMES
        return self.table.names if self.table is not None else tuple(f"arm {a}" for a in range(self.n_actions))

    @property
    def reward_range(self) -> Interval:
        """The declared range of a reward."""
        return self.table.reward_range if self.table is not None else Interval(0.0, 1.0)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        """What one block of replicates plays on."""
        match self.spec.environment:
            case BernoulliSpec(means=means):
                return BernoulliArms(means, self.spec.horizon, seed)
            case ThorntonSpec():
                return resampled_arms(self.spec.horizon, seed)
        assert self.table is not None
        return self.table

    def audit_table(self) -> RewardTable:
        """What audits replay: as many users as the spec asks for."""
        seed = np.random.SeedSequence(self.spec.seed, spawn_key=(_AUDIT_TABLE,))
        rounds = self.spec.audit.rounds
        match self.spec.environment:
            case BernoulliSpec(means=means):
                drawn = np.random.Generator(np.random.SFC64(seed)).random((rounds, len(means))) < np.asarray(means)
                return RewardTable(drawn.astype(float), self.reward_range)
            case ThorntonSpec():
                return people_table(seed, rounds)
        assert self.table is not None
        return RewardTable(self.table.rewards[:rounds], self.reward_range, self.names)

    def check(self) -> None:
        """Reads the data and refuses what does not fit, before any work starts.

        Raises:
          SpecError: the data file is missing or malformed, or too short for the horizon or the audit.
        """
        available = self.table.n_users if self.table is not None else None
        if isinstance(self.spec.environment, ThorntonSpec):
            available_people = min(len(group) for group in thornton_hiv())
            if self.spec.audit.rounds > available_people:
                raise SpecError(
                    f"audit.rounds: at most {available_people}, the people of the smallest arm of thornton_hiv, "
                    f"got {self.spec.audit.rounds}"
                )
        for name, value, least in (
            ("horizon", self.spec.horizon, self.n_actions),
            ("audit.rounds", self.spec.audit.rounds, self.n_actions + 1),
        ):
            if value < least:
                raise SpecError(f"{name}: must be at least {least} for {self.n_actions} arms, got {value}")
            if available is not None and value > available:
                raise SpecError(f"{name}: the table has {available} users, got {value}")

    def describe(self) -> dict[str, Any]:
        """For the report."""
        match self.spec.environment:
            case BernoulliSpec():
                name, text = "bernoulli", "Arms that answer 1 with a fixed probability, else 0."
                estimator = "Regret is the sum of mean-reward gaps of the arms played (pseudo-regret)."
            case ThorntonSpec():
                n = sum(len(group) for group in thornton_hiv())
                name = "thornton_hiv"
                text = (
                    f"A randomized trial in rural Malawi (Thornton 2008, data of the package causaldata): {n} people were "
                    "offered a random cash incentive to come and learn the result of their HIV test. The five arms are "
                    "amounts, the reward is 1 if the person came."
                )
                estimator = (
                    "Regret: each pull of an arm draws one of its people uniformly with replacement, so the mean reward of "
                    "an arm is unbiased for its empirical mean and any horizon can be played; a round is a simulated "
                    "participant. Audit: the people themselves, without replacement, one person a cell of the table, so "
                    "that replacing a record is replacing a person."
                )
            case TableSpec(path=path):
                name, text = path.name, "A table of potential rewards, one user a row."
                estimator = "Regret is against the best single arm in hindsight, on the mean rewards of the rows played."
        return {
            "name": name,
            "description": text,
            "estimator": estimator,
            "horizon": self.spec.horizon,
            "actions": list(self.names),
            "means": [float(m) for m in self.means],
        }


_AUDIT_TABLE, _NOISE, _REWARDS = 1, 2, 3


def read_table(table: TableSpec) -> RewardTable:
    """Reads a CSV of potential rewards.

    Raises:
      SpecError: missing, malformed, not numeric, NaN, or outside the declared range; the message names the line.
    """
    where = table.path
    try:
        with where.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"environment.path: {where} cannot be read: {error}") from error
    if len(rows) < 2 or len(rows[0]) < 2:
        raise SpecError(f"environment.path: {where} needs a header of at least 2 action names and one row a user")
    values = []
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise SpecError(f"{where}:{line}: {len(row)} values where the header names {len(rows[0])} actions")
        for name, text in zip(rows[0], row, strict=True):
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not table.low <= value <= table.high:
                raise SpecError(
                    f"{where}:{line}: the reward of action {name!r} is {text!r}; it must be a number in the declared range "
                    f"[{table.low:g}, {table.high:g}]"
                )
            values.append(value)
    return RewardTable(
        np.reshape(values, (-1, len(rows[0]))), Interval(table.low, table.high), tuple(name.strip() for name in rows[0])
    )


@dataclass(frozen=True)
class Cell:
    """One algorithm in one calibration at one privacy level, on the spec's environment."""

    spec: Spec
    entry: Entry
    settings: Settings

    @property
    def name(self) -> str:
        """Readable: `adar-ucb tight eps=1`."""
        parts = [self.entry.name, self.settings.calibration or ""]
        if self.settings.privacy is not None:
            parts.append(f"eps={self.settings.privacy.epsilon:g}")
        return " ".join(part for part in parts if part)

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return self.name.replace(" ", "-").replace("=", "-")

    @property
    def is_private(self) -> bool:
        """Whether there is anything to audit."""
        return self.entry.promise is not None

    def algorithm(self) -> Algorithm:
        """Built anew; it holds no state."""
        return self.entry.build(self.settings)

    def claim(self) -> Claim:
        """What the source promises. Only for private cells."""
        assert self.entry.promise is not None
        return self.entry.promise(self.settings)

    def parameters(self) -> dict[str, Any]:
        """The public parameters, for keys, MLflow and the report."""
        privacy = self.settings.privacy
        shown: dict[str, Any] = {"beta": self.settings.beta}
        if privacy is not None:
            shown |= {"alpha": privacy.alpha, "epsilon": privacy.epsilon}
        return shown

    def identity(self) -> dict[str, Any]:
        """All that this cell's algorithm and data depend on."""
        environment = self.spec.environment.model_dump(mode="json")
        if isinstance(self.spec.environment, TableSpec):
            # The data count, not where they lie.
            environment["path"] = content_key(self.spec.environment.path.read_bytes().hex())
        return {
            "algorithm": self.entry.name,
            "privacy_model": self.entry.privacy_model,
            "calibration": self.settings.calibration,
            "parameters": self.parameters(),
            "environment": environment,
            "seed": self.spec.seed,
        }

    @cached_property
    def key(self) -> str:
        """The cell's identity as an MLflow run."""
        return content_key({**self.identity(), "suite": self.spec.name, "horizon": self.spec.horizon,
                            "replications": self.spec.replications,
                            "audit": self.spec.audit.model_dump(mode="json"), "code": code_version()})  # fmt: skip

    def blocks(self) -> list[Block]:
        """Fixed-size blocks of replicates; more replications add blocks and change none."""
        size, total = self.spec.block_size, self.spec.replications
        return [Block(self, i, min(size, total - i * size)) for i in range(-(-total // size))]

    def seed(self, purpose: int, block: int = 0) -> np.random.SeedSequence:
        """A generator seed of its own for each purpose and block of this cell."""
        words = np.frombuffer(bytes.fromhex(content_key(self.identity()))[:16], dtype=np.uint32).tolist()
        return np.random.SeedSequence(self.spec.seed, spawn_key=(purpose, *words, block))


@dataclass(frozen=True)
class Block:
    """Some replicates of one cell: the unit of seeding, of parallel work, and of what a killed run keeps."""

    cell: Cell
    index: int
    n_reps: int

    @property
    def key(self) -> str:
        """Content key of the block's result."""
        return content_key({**self.cell.identity(), "horizon": self.cell.spec.horizon, "block": self.index,
                            "n_reps": self.n_reps, "code": code_version()})  # fmt: skip

    @property
    def noise_seed(self) -> np.random.SeedSequence:
        """Of the privacy noise."""
        return self.cell.seed(_NOISE, self.index)

    @property
    def reward_seed(self) -> np.random.SeedSequence:
        """Of the environment."""
        return self.cell.seed(_REWARDS, self.index)


def cells_of(spec: Spec) -> list[Cell]:
    """Every cell of a spec, the order of the file.

    Raises:
      SpecError: two cells are the same.
    """
    environment = Environment(spec)
    cells = []
    for item in spec.algorithms:
        entry = catalog.find(item.name)
        levels: list[RenyiDP | None] = [None]
        calibrations: tuple[str | None, ...] = (None,)
        if item.privacy is not None:
            levels = [RenyiDP(item.privacy.alpha, epsilon) for epsilon in item.privacy.epsilon]
            calibrations = tuple(item.calibrations or entry.calibrations)
        for calibration in calibrations:
            for level in levels:
                settings = entry.settings(environment.n_actions, environment.reward_range, item.beta, calibration, level)
                cells.append(Cell(spec, entry, settings))
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"algorithms: {name!r} is listed more than once")
    return cells
