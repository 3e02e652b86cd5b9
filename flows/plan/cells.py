"""Cells (algorithm x calibration x privacy level, on an environment), and blocks of their replicates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bandana.algorithms.claim import for_users
from bandana.algorithms.entry import Claim, Entry, RegretBound, Settings
from bandana.algorithms.lower_bounds.selection import lower_bound
from bandana.algorithms.protocol import Algorithm, IntArray
from bandana.audits.names import titled
from bandana.flows.keys.identity import key_of
from bandana.flows.plan import keys
from bandana.flows.plan.roles import Role
from bandana.flows.plan.seeds import COINS, REWARDS
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.spec.spec import AuditSpec, Spec
from bandana.flows.texts.file_names import file_name
from bandana.privacy_core import Guarantee, Participation

NONE, SECURE, REPRODUCIBLE = "none", "secure", "reproducible"
"""Sources of noise."""
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
    environment: Environment[EnvironmentFields]
    entry: Entry
    settings: Settings
    varied: tuple[str, ...] = ()
    role: Role = Role.ALGORITHM
    replays: int | None = None
    promised: Guarantee | None = None
    place: int | None = None

    @property
    def name(self) -> str:
        """Its name in keys, files and documents: `linucb joint tight eps=1`; with what else differs in the spec."""
        shown = self.parameters()
        parts = [self.entry.label, self.settings.calibration or ""]
        parts += [f"{short}={shown[name]:g}" for name, short in _LEVELS.items() if name in self.settings.level()]
        parts.append("per user" if self.promised is not None else "")
        varied = {name.removeprefix("privacy_"): value for name, value in shown.items() if name in self.varied}
        parts += [f"{name}={value if isinstance(value, str) else format(value, 'g')}" for name, value in varied.items()]
        parts.append("without noise" if self.role is Role.TWIN else "")
        parts.append(f"on {self.environment.label}" if len(self.spec.environment) > 1 else "")
        return " ".join(part for part in parts if part)

    @property
    def title(self) -> str:
        """The name with the guarantee in place of the level, as pages and the terminal show it."""
        return self.name if self.entry.promise is None else titled(self.name, self.claim().statement)

    @property
    def slug(self) -> str:
        """The name as a file name."""
        return file_name(self.name)

    @property
    def is_private(self) -> bool:
        """True if there is anything to audit."""
        return self.entry.promise is not None and self.role is Role.ALGORITHM

    @property
    def is_expected(self) -> bool:
        """True if its expected regret is computed, and nothing is played."""
        return self.entry.name in self.environment.references

    @property
    def audit(self) -> AuditSpec:
        """The effort of its audit."""
        audit = self.spec.audit
        return audit if self.replays is None else audit.model_copy(update={"replays": self.replays})

    def algorithm(self) -> Algorithm:
        """The algorithm, built anew; it holds no state."""
        return self.entry.build(self.settings)

    def claim(self) -> Claim:
        """Promise of the source. Only for private cells."""
        return self.claim_at(self.settings, self.promised)

    def claim_at(self, settings: Settings, promised: Guarantee | None) -> Claim:
        """The claim at other settings, made to a user where `promised` says what."""
        assert self.entry.promise is not None
        claim = self.entry.promise(settings)
        return claim if promised is None else for_users(claim, promised, self.users)

    @property
    def users(self) -> Participation:
        """Records that may be one user's; one each where the environment declares nothing."""
        return self.environment.item.users or Participation(1)

    def regret_bound(self, grid: IntArray) -> RegretBound | None:
        """Bound of the source on the regret after so many rounds; None where nothing is proved or regret is not shown.

        A bound may depend on the mean rewards: it says no more than the environment shows.
        """
        if self.role is not Role.ALGORITHM or self.entry.bound is None:
            return None
        if not self.environment.is_drawn or not self.environment.shows("regret"):
            return None
        is_known = self.environment.has_arms and self.environment.shows("means")
        return self.entry.bound(self.settings, self.environment.means if is_known else None, grid)

    def lower_bound(self, grid: IntArray) -> RegretBound | None:
        """Least regret of any algorithm with this cell's claim; None where nothing is known, or regret is not shown."""
        if self.role is not Role.ALGORITHM or not self.environment.bounds_everyone or not self.environment.shows("regret"):
            return None
        means = self.environment.means if self.environment.has_arms and self.environment.shows("means") else None
        claim = self.claim() if self.is_private else None
        bound = lower_bound(self.settings, claim, means, grid, is_bernoulli=self.environment.is_bernoulli)
        return None if bound is None else RegretBound(bound.values, f"{bound.text}; {bound.reach}")

    def parameters(self) -> dict[str, str | float]:
        """The public parameters, for keys, MLflow and the report."""
        if self.promised is None:
            return dict(self.settings.shown())
        return {**self.settings.shown(), **replace(self.settings, privacy=self.promised).level(), "level": "user"}

    def in_audit(self) -> Settings:
        """The settings at which replays play: at the audit's rounds, of which some hold a release."""
        return self.environment.in_audit(self.entry, self.settings)

    @property
    def noise(self) -> str:
        """Source of the noise: `none`, `secure` or `reproducible`."""
        if self.role is Role.TWIN:
            return NONE
        return self.spec.noise or (SECURE if self.environment.plays_private_rows else REPRODUCIBLE)

    @cached_property
    def key(self) -> str:
        """The cell's identity as an MLflow run, which holds its benchmark and its audit."""
        facts = {**keys.identity_of(self), "suite": self.spec.name, "label": self.environment.label,
                 "horizon": self.spec.horizon, "replications": self.spec.replications,
                 "audit": self.audit.model_dump(mode="json"), **keys.stated(self)}  # fmt: skip
        audit = keys.audit_code(self) if self.is_private else None
        return key_of(facts, {"blocks": keys.block_code(self), "audit": audit})

    def blocks(self) -> list[Block]:
        """Fixed-size blocks of replicates; more replications add blocks and change none."""
        size, total = self.spec.block_size, self.spec.replications
        return [Block(self, i, min(size, total - i * size)) for i in range(-(-total // size))]


@dataclass(frozen=True)
class Block:
    """Some replicates of one cell: the unit of seeding, of parallel work, and of what a killed run keeps."""

    cell: Cell
    index: int
    n_reps: int

    @property
    def title(self) -> str:
        """The cell's title and the block's number."""
        return f"{self.cell.title} block {self.index}"

    @property
    def key(self) -> str:
        """Content key of the block's result."""
        return key_of(keys.block_facts(self), keys.block_code(self.cell))

    @property
    def noise_seed(self) -> np.random.SeedSequence:
        """Seed of the privacy noise, where it is reproducible."""
        return keys.noise_seed(self)

    @property
    def reward_seed(self) -> np.random.SeedSequence:
        """Seed of the environment, the same for all cells on it."""
        return keys.shared_seed(self, REWARDS)

    @property
    def coin_seed(self) -> np.random.SeedSequence:
        """Seed of the public coins, the same for all cells on an environment: names of actions, and policies' own coins."""
        return keys.shared_seed(self, COINS)
