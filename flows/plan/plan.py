"""The work that a spec means: cells (algorithm x calibration x privacy level), blocks of replicates, and the plan of all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, PrivateAttr

from bandana.algorithms.claim import for_users, per_record
from bandana.algorithms.entry import Claim, Entry, RegretBound, Settings
from bandana.algorithms.lower_bounds.selection import lower_bound
from bandana.algorithms.protocol import Algorithm, IntArray
from bandana.flows.keys import identity
from bandana.flows.keys.content import content_key
from bandana.flows.keys.identity import key_of
from bandana.flows.own.algorithms import OwnAlgorithmSpec
from bandana.flows.own.data import pinned
from bandana.flows.plan import made_by
from bandana.flows.plan.cell_checks import check_features, check_files, check_own
from bandana.flows.plan.references import references_of
from bandana.flows.plan.roles import Role
from bandana.flows.plan.seeds import COINS, NOISE, REWARDS, seed_of
from bandana.flows.problems.facts import problem_of
from bandana.flows.problems.kinds import Environment, environments_of
from bandana.flows.spec.algorithms import AlgorithmSpec
from bandana.flows.spec.every import EverySpec
from bandana.flows.spec.spec import AnyAlgorithm, AuditSpec, Spec
from bandana.flows.texts.file_names import file_name
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Guarantee, Participation

NONE, SECURE, REPRODUCIBLE = "none", "secure", "reproducible"
"""Sources of noise."""
_FEW_ROUNDS = 1_000_000
_LEVELS = {"epsilon": "eps", "rho": "rho"}
"""Level of privacy, as settings call it -> as a cell's name does."""


@dataclass(frozen=True)
class Cell:
    """One algorithm in one calibration at one privacy level, on one of the spec's environments.

    Attributes:
      spec: the experiment.
      environment: what it plays on.
      entry: the algorithm.
      settings: its parameters.
      varied: names of the parameters that its name must show, because the spec has several values of them.
      role: why it is played.
      replays: of its audit; None: as the spec's field `audit` has it.
      promised: what is promised to a user with all records; None: the settings' promise, to one record.
      place: its algorithm's place in the spec, which mistakes name; None for what no spec lists.
    """

    spec: Spec
    environment: Environment[Any]
    entry: Entry
    settings: Settings
    varied: tuple[str, ...] = ()
    role: Role = Role.ALGORITHM
    replays: int | None = None
    promised: Guarantee | None = None
    place: int | None = None

    @property
    def name(self) -> str:
        """Readable: `linucb joint tight eps=1`; with what else differs in the spec."""
        shown = self.parameters()
        parts = [self.entry.label, self.settings.calibration or ""]
        parts += [f"{short}={shown[name]:g}" for name, short in _LEVELS.items() if name in self.settings.level()]
        parts.append("per user" if self.promised is not None else "")
        parts += [f"{name.removeprefix('privacy_')}={_text(shown[name])}" for name in shown if name in self.varied]
        parts.append("without noise" if self.role is Role.TWIN else "")
        parts.append(f"on {self.environment.label}" if len(self.spec.environment) > 1 else "")
        return " ".join(part for part in parts if part)

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return file_name(self.name)

    @property
    def is_private(self) -> bool:
        """Whether there is anything to audit."""
        return self.entry.promise is not None and self.role is Role.ALGORITHM

    @property
    def is_expected(self) -> bool:
        """Whether its expected regret is computed, and nothing is played."""
        return self.entry.name in self.environment.references

    @property
    def audit(self) -> AuditSpec:
        """The effort of its audit."""
        asked = self.spec.audit
        return asked if self.replays is None else asked.model_copy(update={"replays": self.replays})

    def algorithm(self) -> Algorithm:
        """The algorithm, built anew; it holds no state."""
        return self.entry.build(self.settings)

    def claim(self) -> Claim:
        """What the source promises. Only for private cells."""
        return self.claim_at(self.settings, self.promised)

    def claim_at(self, settings: Settings, promised: Guarantee | None) -> Claim:
        """The claim at other settings, made to a user where `promised` says what."""
        assert self.entry.promise is not None
        claim = self.entry.promise(settings)
        return claim if promised is None else for_users(claim, promised, self.users)

    @property
    def users(self) -> Participation:
        """Which records may be one user's; one each where the environment declares nothing."""
        return self.environment.item.users or Participation(1)

    def regret_bound(self, grid: IntArray) -> RegretBound | None:
        """What the source proves of the regret after so many rounds; None where nothing is proved or regret is not shown.

        A bound may depend on the mean rewards: it says no more than the environment shows.
        """
        if self.role is not Role.ALGORITHM or self.entry.bound is None:
            return None
        if not self.environment.is_drawn or not self.environment.shows("regret"):
            return None
        is_known = self.environment.has_arms and self.environment.shows("means")
        return self.entry.bound(self.settings, self.environment.means if is_known else None, grid)

    def lower_bound(self, grid: IntArray) -> RegretBound | None:
        """What any algorithm with this cell's claim must lose; None where nothing is known, or regret is not shown."""
        if self.role is not Role.ALGORITHM or not self.environment.bounds_everyone or not self.environment.shows("regret"):
            return None
        means = self.environment.means if self.environment.has_arms and self.environment.shows("means") else None
        claim = self.claim() if self.is_private else None
        found = lower_bound(self.settings, claim, means, grid, is_bernoulli=self.environment.is_bernoulli)
        return None if found is None else RegretBound(found.values, f"{found.text}; {found.reach}")

    def parameters(self) -> dict[str, Any]:
        """The public parameters, for keys, MLflow and the report."""
        if self.promised is None:
            return dict(self.settings.shown())
        return {**self.settings.shown(), **replace(self.settings, privacy=self.promised).level(), "level": "user"}

    def in_audit(self) -> Settings:
        """The settings at which replays play: at the audit's rounds, of which some hold a release."""
        return self.environment.in_audit(self.entry, self.settings)

    def identity(self) -> dict[str, Any]:
        """All that this cell's algorithm and data depend on, named so that new words for it change no seed."""
        noise = {} if self.noise == REPRODUCIBLE else {"noise": self.noise}
        return {
            "algorithm": self.entry.seed_name,
            "privacy_model": self.entry.privacy_model,
            "calibration": self.settings.calibration,
            "parameters": self.entry.seed_parameters(self.settings),
            "environment": self.environment.facts(),
            "seed": self.spec.seed,
            **noise,
        }

    @property
    def noise(self) -> str:
        """Source of the noise: `none`, `secure` or `reproducible`."""
        if self.role is Role.TWIN:
            return NONE
        return self.spec.noise or (SECURE if self.environment.plays_private_rows else REPRODUCIBLE)

    def stated(self) -> dict[str, Any]:
        """The claim of a user's own algorithm, for keys of audits: of the catalog's, it follows from settings and code.

        And whether it is made to a user: with the same noise, it is another claim.
        """
        own = {"claim": self.entry.stated, "named": self.entry.label} if self.entry.stated else {}
        return own if self.promised is None else {**own, "level": "user", "promised": str(self.promised)}

    @property
    def block_code(self) -> dict[str, Any]:
        """What computes the cell's blocks in this process, see `identity.made_by`; a worker finds out its own."""
        return identity.made_by(made_by.block_roots(self))

    @property
    def audit_code(self) -> dict[str, Any]:
        """What computes the cell's audit in this process. Only for private cells."""
        return identity.made_by(made_by.audit_roots(self))

    @cached_property
    def key(self) -> str:
        """The cell's identity as an MLflow run, which holds its benchmark and its audit."""
        facts = {**self.identity(), "suite": self.spec.name, "label": self.environment.label,
                 "horizon": self.spec.horizon, "replications": self.spec.replications,
                 "audit": self.audit.model_dump(mode="json"), **self.stated()}  # fmt: skip
        return key_of(facts, {"blocks": self.block_code, "audit": self.audit_code if self.is_private else None})

    def blocks(self) -> list[Block]:
        """Fixed-size blocks of replicates; more replications add blocks and change none."""
        size, total = self.spec.block_size, self.spec.replications
        return [Block(self, i, min(size, total - i * size)) for i in range(-(-total // size))]

    def seed(self, purpose: int, block: int = 0) -> np.random.SeedSequence:
        """A generator seed of its own for each purpose and block of this cell."""
        return seed_of(self.spec.seed, purpose, content_key(_without_content(self.identity())), block)

    def shared_seed(self, purpose: int, block: int = 0) -> np.random.SeedSequence:
        """A seed for each purpose and block, the same in all cells on this environment.

        They play on common random numbers, so that a comparison of two cells, replication by replication, is free of what
        was drawn for both.
        """
        facts = {"environment": self.environment.facts(), "seed": self.spec.seed}
        return seed_of(self.spec.seed, purpose, content_key(_without_content(facts)), block)


def _without_content(facts: dict[str, Any]) -> dict[str, Any]:
    """What seeds may depend on: no content of a private file.

    That is known by an HMAC with the data folder's secret, and the same file must give the same numbers everywhere.
    """
    facts["environment"].pop("content", None)
    facts["environment"].pop("visits", None)  # whose a record is changes no number that is drawn
    return facts


@dataclass(frozen=True)
class Block:
    """Some replicates of one cell: the unit of seeding, of parallel work, and of what a killed run keeps."""

    cell: Cell
    index: int
    n_reps: int

    @property
    def name(self) -> str:
        """The cell's name and the block's number."""
        return f"{self.cell.name} block {self.index}"

    @property
    def facts(self) -> dict[str, Any]:
        """All that was asked for."""
        horizon = self.cell.spec.horizon
        return {**self.cell.identity(), "horizon": horizon, "block": self.index, "n_reps": self.n_reps}

    @property
    def key(self) -> str:
        """Content key of the block's result."""
        return key_of(self.facts, self.cell.block_code)

    @property
    def noise_seed(self) -> np.random.SeedSequence:
        """Seed of the privacy noise, where it is reproducible."""
        facts = _without_content(self.cell.identity()) | self.cell.environment.noise_facts()
        return seed_of(self.cell.spec.seed, NOISE, content_key(facts), self.index)

    @property
    def reward_seed(self) -> np.random.SeedSequence:
        """Seed of the environment, the same for all cells on it."""
        return self.cell.shared_seed(REWARDS, self.index)

    @property
    def coin_seed(self) -> np.random.SeedSequence:
        """Seed of the public coins, the same for all cells on an environment: names of actions, and policies' own coins."""
        return self.cell.shared_seed(COINS, self.index)


class Plan(BaseModel):
    """The work that a spec means, derived once in a command and handed on: environments, cells, and what a benchmark plays.

    The spec is its only field: a plan passes through Prefect's flows as it is, and their pages show the spec.
    """

    model_config = ConfigDict(frozen=True)
    spec: Spec
    _environments: tuple[Environment[Any], ...] = PrivateAttr(())
    _cells: tuple[Cell, ...] = PrivateAttr(())
    _played: tuple[Cell, ...] = PrivateAttr(())

    @classmethod
    def of(cls, spec: Spec, root: Path | None = None) -> Plan:
        """Derives the plan of a spec, and checks its data; no data folder is made.

        Args:
          spec: the experiment.
          root: the data folder, if there will be one: files are bound to their present content, as far as that needs no
            new secret; `bound` does the rest.

        Raises:
          SpecError: two cells are the same, the data do not fit, or an algorithm finds no features for a kernel.
        """
        plan = cls(spec=spec if root is None else pinned(spec, root, makes_secret=False))
        plan._environments = tuple(environments_of(plan.spec))
        plan._cells = tuple(_listed(plan.spec, plan.environments))
        plan._played = (*plan.cells, *_twins(plan.spec, plan.cells), *_references(plan.spec, plan.environments))
        check_files(plan.played)
        return plan

    def bound(self, root: Path) -> Plan:
        """The plan with every file bound to its content: derived anew only where that made the data folder's secret."""
        spec = pinned(self.spec, root)
        return self if spec is self.spec else Plan.of(spec)

    @property
    def environments(self) -> tuple[Environment[Any], ...]:
        """Every environment, in the order of the file."""
        return self._environments

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells that the spec lists, in the order of the file."""
        return self._cells

    @property
    def played(self) -> tuple[Cell, ...]:
        """Every cell of a benchmark: those that the spec lists, each private one again without noise, and reference rows."""
        return self._played

    @property
    def private(self) -> list[Cell]:
        """The cells that an audit examines."""
        return [cell for cell in self.cells if cell.is_private]

    def blocks(self) -> list[Block]:
        """All blocks of a benchmark."""
        return [block for cell in self.played for block in cell.blocks()]


def cells_of(spec: Spec) -> list[Cell]:
    """The cells that a spec lists, for whoever needs nothing else of its plan."""
    return list(Plan.of(spec).cells)


def played_cells(spec: Spec) -> list[Cell]:
    """Every cell of a benchmark, for whoever needs nothing else of the spec's plan."""
    return list(Plan.of(spec).played)


def _listed(spec: Spec, environments: Sequence[Environment[Any]]) -> list[Cell]:
    """The cells that a spec lists; environments and what algorithms see of them are checked."""
    cells = []
    value_of = spec.tuned_values() if spec.tuning is not None else None
    listed = [item.algorithm for item in spec.algorithms if isinstance(item, AlgorithmSpec)]
    for environment in environments:
        environment.check()
        for place, item in enumerate(spec.algorithms):
            for entry in _entries_on(environment, item, listed):
                seen = environment.seen_by(entry)
                if seen is not environment:
                    seen.check()
                problem = problem_of(seen)
                users = _users_of(place, item, entry, seen)
                promised = [
                    _to_users(entry, entry.settings(problem, calibration, level, **parameters), users)
                    for parameters in item.parameter_grid(entry)
                    for calibration in item.calibrations_of(entry)
                    for level in item.levels(entry)
                ]
                found = [settings for settings, _ in promised]
                if problem.kernel is not None and not isinstance(item, OwnAlgorithmSpec):
                    check_features(place, seen, entry, found)
                varied = item.varied_parameters()
                own = [
                    Cell(spec, seen, entry, settings, varied, replays=item.replays, promised=level, place=place)
                    for settings, level in promised
                ]
                cells += [_with_tuned(cell, value_of) for cell in own]
                if isinstance(item, OwnAlgorithmSpec):
                    check_own(item, own)
    for cell in cells:
        if _is_booked(cell) and not cell.is_private:
            raise SpecError(
                f"algorithms: {cell.name} plays without noise, which exceeds every budget; {cell.environment.label} has a "
                "budget book: leave the algorithm out, or give it a privacy level"
            )
    names = [cell.name for cell in cells]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"algorithms: {name!r} is listed more than once")
    return cells


def _entries_on(environment: Environment[Any], item: AnyAlgorithm, listed: Sequence[str]) -> list[Entry]:
    """The entries that an item of `algorithms` plays on an environment; those that do not fit were refused with the spec."""
    return item.entries_on(environment, listed) if isinstance(item, EverySpec) else item.entries()


def _users_of(place: int, item: Any, entry: Entry, environment: Environment[Any]) -> Participation | None:
    """Which records may be one user's, where the promise is to all of them; None where it is to one record.

    Raises:
      SpecError: the environment does not say how many records a user may have, or has a budget book.
    """
    is_every = isinstance(item, EverySpec)
    asked = item if is_every else getattr(item, "privacy", None)
    if getattr(asked, "level", "record") == "record" or not entry.is_private:
        return None
    where = f"algorithms.{place}.level" if is_every else f"algorithms.{place}.privacy.level"
    users: Participation | None = environment.item.users
    if users is None:
        raise SpecError(
            f"{where}: a promise to users needs to know how many records one has; give {environment.label} the field "
            "visits_per_user, or write level: record"
        )
    if environment.item.book is not None:
        raise SpecError(
            f"{where}: the budget book of {environment.label} counts what each record pays; write level: record, or leave "
            "the book out"
        )
    return users


def _to_users(entry: Entry, settings: Settings, users: Participation | None) -> tuple[Settings, Guarantee | None]:
    """The settings at what must be promised to one record, and what is promised to users; None where it is to a record."""
    if users is None or settings.privacy is None:
        return settings, None
    to_one = per_record(settings.privacy, users, entry.times_for(settings, users))
    return replace(settings, privacy=to_one), settings.privacy


def _with_tuned(cell: Cell, value_of: Callable[[str], float] | None) -> Cell:
    """The cell with the value that was chosen for it, if the spec tunes a parameter that it takes."""
    tuning = cell.spec.tuning
    if value_of is None or tuning is None or tuning.parameter not in cell.entry.parameters:
        return cell
    return replace(cell, settings=cell.settings.with_parameters(**{tuning.parameter: value_of(cell.name)}))


def _twins(spec: Spec, cells: Sequence[Cell]) -> list[Cell]:
    """The private cells again, without noise."""
    return [replace(cell, role=Role.TWIN) for cell in cells if spec.twins and cell.is_private and not _is_booked(cell)]


def _is_booked(cell: Cell) -> bool:
    """Whether every run of the cell is charged, so that nothing may be played without noise."""
    return cell.environment.item.book is not None


def _references(spec: Spec, environments: Sequence[Environment[Any]]) -> list[Cell]:
    return [
        Cell(spec, environment, entry, settings, role=Role.REFERENCE)
        for environment in environments
        if spec.references and environment.item.book is None  # a reference row plays without noise
        for entry, settings in references_of(environment.references, problem_of(environment))
    ]


def is_small(cells: Sequence[Cell]) -> bool:
    """Whether they are played sooner than processes for them start."""
    return sum(cell.spec.replications * cell.spec.horizon for cell in cells) <= _FEW_ROUNDS


def _text(value: Any) -> str:
    return value if isinstance(value, str) else f"{value:g}"
