"""From a spec to work: cells (algorithm x calibration x privacy level), and blocks of replicates of each."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from algorithms import catalog
from algorithms.catalog import Claim, Entry, Settings
from algorithms.environments.bandits import BernoulliArms
from algorithms.environments.logged import ARM_NAMES, people_table, resampled_arms, thornton_hiv
from algorithms.environments.tables import RewardTable
from algorithms.protocol import Algorithm, Stream
from audits.white_box import random_table
from flows.specs import BernoulliSpec, EnvironmentSpec, Spec, SpecError, TableSpec, ThorntonSpec, label_of
from flows.store import code_version, content_key
from privacy_core import Interval, RenyiDP


@dataclass(frozen=True)
class Environment:
    """Data of a spec: what benchmarks play on, what audits replay, how both are described, and what may be shown."""

    spec: Spec
    item: EnvironmentSpec

    def __getstate__(self) -> dict[str, Any]:
        # Data that were read stay where they were read: a worker reads its own.
        return {"spec": self.spec, "item": self.item}

    @property
    def label(self) -> str:
        """What cells and reports call it; unique in a spec."""
        return label_of(self.item)

    @cached_property
    def table(self) -> RewardTable | None:
        """The user's table, if the spec names one."""
        match self.item:
            case TableSpec() as table:
                return read_table(table)
        return None

    @cached_property
    def means(self) -> np.ndarray:
        """(n_actions,) the mean rewards that regret is counted with."""
        match self.item:
            case BernoulliSpec(means=means):
                return np.asarray(means)
            case ThorntonSpec():
                return np.array([group.mean() for group in thornton_hiv()])
        assert self.table is not None
        return np.asarray(self.table.rewards[: self.spec.horizon].mean(axis=0))

    @property
    def n_actions(self) -> int:
        """Number of arms."""
        match self.item:
            case BernoulliSpec(means=means):
                return len(means)
            case ThorntonSpec():
                return len(ARM_NAMES)
        assert self.table is not None
        return len(self.table.names)

    @property
    def names(self) -> tuple[str, ...]:
        """What the arms are called."""
        if isinstance(self.item, ThorntonSpec):
            return ARM_NAMES
        return self.table.names if self.table is not None else tuple(f"arm {a}" for a in range(self.n_actions))

    @property
    def reward_range(self) -> Interval:
        """The declared range of a reward."""
        return self.table.reward_range if self.table is not None else Interval(0.0, 1.0)

    def shows(self, what: str) -> bool:
        """Whether `values`, `means` or `regret` may be logged, tracked and reported.

        Everything may of data that are public or made up. Of a user's file only what its field `public` names: regret and
        means are computed from the rows, and no claim covers them; whoever shows the rows shows the rest too.
        """
        if not isinstance(self.item, TableSpec):
            return True
        return what in self.item.public or "values" in self.item.public

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        """What one block of replicates plays on."""
        match self.item:
            case BernoulliSpec(means=means):
                return BernoulliArms(means, self.spec.horizon, seed)
            case ThorntonSpec():
                return resampled_arms(self.spec.horizon, seed)
        assert self.table is not None
        return self.table

    def audit_table(self) -> RewardTable:
        """What audits replay: as many users as the spec asks for.

        Private rows are not replayed: scores of thousands of replays tell more of them than the claim covers. A claim holds
        for all data, so that rewards drawn at the ends of the declared range test it as well.
        """
        seed = np.random.SeedSequence(self.spec.seed, spawn_key=(_AUDIT_TABLE,))
        rounds = self.spec.audit.rounds
        match self.item:
            case BernoulliSpec(means=means):
                drawn = np.random.Generator(np.random.SFC64(seed)).random((rounds, len(means))) < np.asarray(means)
                return RewardTable(drawn.astype(float), self.reward_range)
            case ThorntonSpec():
                return people_table(seed, rounds)
        if not self.shows("values"):
            return random_table(rounds, self.n_actions, self.reward_range, self.spec.seed)
        assert self.table is not None
        return RewardTable(self.table.rewards[:rounds], self.reward_range, self.names)

    def check(self) -> None:
        """Reads the data and refuses what does not fit, before any work starts.

        Raises:
          SpecError: the data file is missing or malformed, or too short for the horizon or the audit.
        """
        available = self.table.n_users if self.table is not None else None
        if isinstance(self.item, ThorntonSpec):
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
            if available is not None and value > available and (name == "horizon" or self.shows("values")):
                raise SpecError(f"{name}: the table has {available} users, got {value}")

    def describe(self) -> dict[str, Any]:
        """For the report."""
        match self.item:
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
                if not self.shows("values"):
                    text += " The file is private: its rows are not shown, and audits replay rewards drawn at random."
                if not self.shows("regret"):
                    estimator = "Regret is withheld: the spec does not declare it public, and no privacy claim covers it."
        return {
            "label": self.label,
            "name": name,
            "description": text,
            "estimator": estimator,
            "horizon": self.spec.horizon,
            "actions": list(self.names),
            "means": [float(m) for m in self.means] if self.shows("means") else [],
        }


def environments_of(spec: Spec) -> list[Environment]:
    """Every environment of a spec, in the order of the file."""
    return [Environment(spec, item) for item in spec.environment]


_AUDIT_TABLE, _NOISE, _REWARDS = 1, 2, 3


@lru_cache(maxsize=64)
def _content_of(path: Path, _written_ns: int) -> str:
    """Content key of a file; read anew when it was written anew."""
    return content_key(path.read_bytes().hex())


def read_table(table: TableSpec) -> RewardTable:
    """Reads a CSV of potential rewards.

    Raises:
      SpecError: missing, malformed, not numeric, NaN, or outside the declared range; the message names the line and
        the action, and the value only where the spec declares the values public.
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
                shown = f" is {text!r}; it" if "values" in table.public else ""
                raise SpecError(
                    f"{where}:{line}: the reward of action {name!r}{shown} must be a number in the declared range "
                    f"[{table.low:g}, {table.high:g}]"
                )
            values.append(value)
    return RewardTable(
        np.reshape(values, (-1, len(rows[0]))), Interval(table.low, table.high), tuple(name.strip() for name in rows[0])
    )


@dataclass(frozen=True)
class Cell:
    """One algorithm in one calibration at one privacy level, on one of the spec's environments.

    Attributes:
      spec: the experiment.
      environment: what it plays on.
      entry: the algorithm.
      settings: its parameters.
      told: names of the parameters that its name must tell, because the spec has several of them.
    """

    spec: Spec
    environment: Environment
    entry: Entry
    settings: Settings
    told: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Readable: `adar-ucb tight eps=1`; with what else differs in the spec."""
        parts = [self.entry.name, self.settings.calibration or ""]
        if self.settings.privacy is not None:
            parts.append(f"eps={self.settings.privacy.epsilon:g}")
            parts.append(f"alpha={self.settings.privacy.alpha:g}" if "alpha" in self.told else "")
        parts.append(f"beta={self.settings.beta:g}" if "beta" in self.told else "")
        parts.append(f"on {self.environment.label}" if len(self.spec.environment) > 1 else "")
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
        """All that this cell's algorithm and data depend on.

        A file whose rows are public is known by its content. Keys are shown in MLflow and in reports, and whoever knows all
        rows but one could try out that one on a hash: a private file is known by its size and the time of its last change.
        """
        item = self.environment.item
        # What it is called and what may be shown of it change no number.
        environment = item.model_dump(mode="json", exclude={"label", "public"})
        if isinstance(item, TableSpec):
            about = item.path.stat()
            is_public = self.environment.shows("values")
            environment["path"] = _content_of(item.path, about.st_mtime_ns) if is_public else "private"
            environment |= {} if is_public else {"size": about.st_size, "changed_ns": about.st_mtime_ns}
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
        return content_key({**self.identity(), "suite": self.spec.name, "label": self.environment.label,
                            "horizon": self.spec.horizon,
                            "replications": self.spec.replications,
                            "audit": self.spec.audit.model_dump(mode="json"), "code": code_version()})  # fmt: skip

    def blocks(self) -> list[Block]:
        """Fixed-size blocks of replicates; more replications add blocks and change none."""
        size, total = self.spec.block_size, self.spec.replications
        return [Block(self, i, min(size, total - i * size)) for i in range(-(-total // size))]

    def seed(self, purpose: int, block: int = 0) -> np.random.SeedSequence:
        """A generator seed of its own for each purpose and block of this cell."""
        identity = self.identity()
        for fact in ("size", "changed_ns"):  # of a private file: a copy of it gets the same seeds
            identity["environment"].pop(fact, None)
        words = np.frombuffer(bytes.fromhex(content_key(identity))[:16], dtype=np.uint32).tolist()
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
    cells = []
    for environment in environments_of(spec):
        for item in spec.algorithms:
            entry = catalog.find(item.name)
            levels: list[RenyiDP | None] = [None]
            calibrations: list[str] | tuple[None] = (None,)
            told = ["beta"] if len(item.beta) > 1 else []
            if item.privacy is not None:
                levels = [RenyiDP(alpha, epsilon) for alpha in item.privacy.alpha for epsilon in item.privacy.epsilon]
                calibrations = item.calibrations or list(entry.calibrations)
                told += ["alpha"] if len(item.privacy.alpha) > 1 else []
            for beta in item.beta:
                for calibration in calibrations:
                    for level in levels:
                        settings = entry.settings(environment.n_actions, environment.reward_range, beta, calibration, level)
                        cells.append(Cell(spec, environment, entry, settings, tuple(told)))
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"algorithms: {name!r} is listed more than once")
    return cells
