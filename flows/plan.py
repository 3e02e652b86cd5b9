"""From a spec to work: cells (algorithm x calibration x privacy level), and blocks of replicates of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from algorithms import catalog
from algorithms.entry import ARMS, Claim, Entry, RegretBound, Settings
from algorithms.protocol import Algorithm, IntArray
from flows.environment_specs import TableSpec
from flows.environments import Environment, environments_of
from flows.specs import Spec, SpecError
from flows.store import code_version, content_key

_NOISE, _REWARDS = 2, 3
_FEW_ROUNDS = 1_000_000


@lru_cache(maxsize=64)
def _content_of(path: Path, _written_ns: int) -> str:
    """Content key of a file; read anew when it was written anew."""
    return content_key(path.read_bytes().hex())


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
    environment: Environment[Any]
    entry: Entry
    settings: Settings
    told: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Readable: `adar-ucb tight eps=1`; with what else differs in the spec."""
        shown = self.settings.shown()
        parts = [self.entry.name, self.settings.calibration or ""]
        parts.append(f"eps={shown['epsilon']:g}" if "epsilon" in shown else "")
        parts += [f"{name.removeprefix('privacy_')}={value:g}" for name, value in shown.items() if name in self.told]
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

    def regret_bound(self, grid: IntArray) -> RegretBound | None:
        """What the source proves of the regret after so many rounds; None where nothing is proved or regret is not shown.

        A bound may depend on the mean rewards: it says no more than the environment shows.
        """
        if self.entry.bound is None or not self.environment.is_drawn or not self.environment.shows("regret"):
            return None
        is_known = self.environment.kind in ARMS and self.environment.shows("means")
        return self.entry.bound(self.settings, self.environment.means if is_known else None, grid)

    def parameters(self) -> dict[str, Any]:
        """The public parameters, for keys, MLflow and the report."""
        return dict(self.settings.shown())

    def in_audit(self) -> Settings:
        """The settings at which replays play: at the audit's rounds, of which some hold a release."""
        problem = self.environment.audit_problem(self.settings.problem, self.entry)
        return self.entry.in_audit(replace(self.settings, problem=problem))

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
      SpecError: two cells are the same, the data do not fit, or an algorithm finds no features for a kernel.
    """
    cells = []
    for environment in environments_of(spec):
        environment.check()
        problem = environment.problem(spec.horizon)
        for place, item in enumerate(spec.algorithms):
            entry = catalog.find(item.name)
            told = tuple("privacy_delta" if name == "delta" else name for name in item.told())
            levels = [None] if item.privacy is None else item.privacy.levels()
            calibrations = [None] if entry.promise is None else item.calibrations or list(entry.calibrations)
            for parameters in item.parameters():
                if problem.kernel is not None:
                    _check_features(
                        place, environment, entry, entry.settings(problem, calibrations[0], levels[0], **parameters)
                    )
                for calibration in calibrations:
                    for level in levels:
                        settings = entry.settings(problem, calibration, level, **parameters)
                        cells.append(Cell(spec, environment, entry, settings, told))
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"algorithms: {name!r} is listed more than once")
    return cells


def is_small(cells: Sequence[Cell]) -> bool:
    """Whether they are played sooner than processes for them start."""
    return sum(cell.spec.replications * cell.spec.horizon for cell in cells) <= _FEW_ROUNDS


def _check_features(place: int, environment: Environment[Any], entry: Entry, settings: Settings) -> None:
    """Whether the algorithm can be built: whether there are features depends on the kernel and on its parameters."""
    try:
        entry.build(settings)
    except ValueError as error:
        raise SpecError(f"algorithms.{place}: {entry.name} on {environment.label}: {error}") from error
