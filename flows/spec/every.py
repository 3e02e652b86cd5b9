"""An item of a spec that stands for many: every entry of the catalog that plays on the environment, at common levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator
from scipy.special import log_ndtr

from bandana.algorithms import catalog
from bandana.algorithms.entry import Entry
from bandana.algorithms.parameters import Value
from bandana.flows.problems.facts import problem_of
from bandana.flows.spec.aims import Aim, aim_of
from bandana.flows.texts.effort import Replays
from bandana.flows.texts.fields import Delta, Level, OneOrSeveral, Order, Scalar, Strict
from bandana.privacy_core import ZCDP, ApproxDP, GaussianDP, Guarantee, PureDP, RenyiDP

if TYPE_CHECKING:
    from bandana.flows.problems.environment import Environment, EnvironmentFields

PRIVATE, NON_PRIVATE = "private", "non-private"
KINDS = ("renyi", "pure", "approximate", "zcdp", "gaussian")
"""Kinds of guarantees that have a level for each mu."""
_DIGITS = 4
"""Significant digits of the epsilons of a level."""


class EverySpec(Strict):
    """Every private or non-private entry of the catalog that plays on the environment, at the same levels of privacy.

    An entry that cannot be built for the problem is left out, and so is every algorithm that the spec lists by name, which
    plays as listed. New entries of the catalog play without a change of the spec.
    """

    all: Literal["private", "non-private"] = Field(description="Which entries of the catalog play.")
    aim: Aim = Field(
        Aim.REGRET,
        description="What they are made for: little regret, or tests for the best arm, of fixed confidence or of a fixed "
        "budget.",
    )
    mu: OneOrSeveral[Level] | None = Field(
        None,
        description="Levels of privacy, as the mu of Gaussian DP: each entry gets the weakest claim of its kind within it.",
    )
    level: Literal["record", "user"] = Field(
        "record",
        description="Whose privacy: one record's, or a user's with all records, up to `visits_per_user` of the environment.",
    )
    alpha: Order = Field(2.0, description="Order of Renyi claims.")
    delta: Delta = Field(1e-5, description="Delta of approximate claims.")
    model: OneOrSeveral[str] | None = Field(None, description="Trust models, one or several; all if left out.")
    calibrations: OneOrSeveral[str] | None = Field(
        None, description="Noise calibrations, of an entry that has them; of all others, and if left out, all."
    )
    parameters: dict[str, Scalar | dict[str, Scalar]] = Field({}, description="Parameter -> value, or family -> value.")
    leave_out: list[str] = Field([], description="Algorithms, or labels of entries, that do not play.")
    only: list[str] | None = Field(None, description="Algorithms, or labels of entries, of which no others play.")
    replays: Replays | None = Field(
        None, description="Replays of their audits, where they take more or fewer than `audit.replays`."
    )

    @model_validator(mode="after")
    def _is_consistent(self) -> EverySpec:
        if (self.all == PRIVATE) != (self.mu is not None):
            raise ValueError(
                "levels of privacy are missing; give them as mu, such as mu: [0.5, 1]"
                if self.all == PRIVATE
                else "mu: entries that are not private have no level; leave it out"
            )
        entries = catalog.known()
        takers = {name for entry in entries for name in entry.parameters}
        if unknown := [name for name in self.parameters if name not in takers]:
            raise ValueError(f"parameters: no algorithm of the catalog takes {unknown[0]!r}")
        if lost := {f for p in self.parameters.values() if isinstance(p, dict) for f in p} - {e.family for e in entries}:
            raise ValueError(f"parameters: no family of the catalog is called {min(lost)!r}")
        names = {name for entry in entries for name in (entry.name, entry.label)}
        for field, given in (("leave_out", self.leave_out), ("only", self.only or ())):
            if unknown := [name for name in given if name not in names]:
                raise ValueError(f"{field}: {unknown[0]!r} is no algorithm and no label; `bandana list` prints them")
        models = dict.fromkeys(entry.privacy_model for entry in entries)
        if unknown := [name for name in self.model or () if name not in models]:
            raise ValueError(f"model: must be among {', '.join(models)}, got {unknown[0]!r}")
        return self

    def entries(self) -> list[Entry]:
        """All entries that it may mean, whatever they play on."""
        return [
            entry
            for entry in catalog.known()
            if entry.is_private == (self.all == PRIVATE)
            and aim_of(entry) is self.aim
            and (self.model is None or entry.privacy_model in self.model)
            and not {entry.name, entry.label} & set(self.leave_out)
            and (self.only is None or {entry.name, entry.label} & set(self.only))
            and (not entry.is_private or str(entry.guarantee) in KINDS)
        ]

    def entries_on(self, environment: Environment[EnvironmentFields], listed: Sequence[str]) -> list[Entry]:
        """The entries that play on an environment.

        Args:
          environment: what to play on.
          listed: algorithms that the spec lists by name.
        """
        entries: dict[tuple[object, ...], Entry] = {}
        for entry in self.entries():
            if entry.name not in listed and self._fits(entry, environment):
                entries.setdefault(self._played(entry, environment), entry)
        return [*entries.values()]

    def levels(self, entry: Entry) -> list[Guarantee | None]:
        """The claims of an entry within each mu; None alone for a non-private one."""
        return [level_within(str(entry.guarantee), mu, self.alpha, self.delta) for mu in self.mu] if self.mu else [None]

    def calibrations_of(self, entry: Entry) -> list[str | dict[str, str] | None]:
        """The calibrations that are asked for and that the entry has, or else all of its own."""
        if not entry.is_private:
            return [None]
        return [name for name in self.calibrations or () if name in entry.calibrations] or [*entry.calibrations]

    def parameter_grid(self, entry: Entry) -> list[dict[str, Value]]:
        """The one choice of the parameters that the entry takes."""
        own = {name: each.get(entry.family) if isinstance(each, dict) else each for name, each in self.parameters.items()}
        return [{name: value for name, value in own.items() if name in entry.parameters and value is not None}]

    def given_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the spec gives."""
        return tuple(self.parameters)

    def varied_parameters(self) -> tuple[str, ...]:
        """None: each parameter has one value."""
        return ()

    def _played(self, entry: Entry, environment: Environment[EnvironmentFields]) -> tuple[object, ...]:
        """Key of what is played: twins of different algorithms are one, such as AdaR-UCB's and AdaP-UCB's at one beta."""
        if entry.is_private:
            return (entry.label,)
        settings = entry.settings(problem_of(environment.seen_by(entry)), None, None, **self.parameter_grid(entry)[0])
        return entry.seed_name, tuple(sorted(entry.seed_parameters(settings).items()))

    def _fits(self, entry: Entry, environment: Environment[EnvironmentFields]) -> bool:
        if not set(environment.item.played_as) & set(entry.plays_on):
            return False
        seen = environment.seen_by(entry)
        try:
            settings = entry.settings(
                problem_of(seen), self.calibrations_of(entry)[0], self.levels(entry)[0], **self.parameter_grid(entry)[0]
            )
            entry.build(settings)
            entry.in_audit(seen.in_audit(entry, settings))
        except ValueError:
            return False
        return True


def level_within(guarantee: str, mu: float, alpha: float, delta: float) -> Guarantee:
    """The weakest claim of a kind that is at most as weak as mu-GDP, to four digits; on common axes all are as private.

    (alpha, epsilon)-RDP of Gaussian noise: epsilon = alpha mu^2 / 2. rho-zCDP: rho = mu^2 / 2. epsilon-DP implies mu-GDP for
    epsilon = log(Phi(mu / 2) / Phi(-mu / 2)). (epsilon, delta)-DP: what mu-GDP has at this delta (Dong, Roth and Su 2022).

    Args:
      guarantee: kind, as entries name it.
      mu: of Gaussian DP.
      alpha: order of a Renyi claim.
      delta: of an approximate claim.
    """
    match guarantee:
        case "renyi":
            return RenyiDP(alpha, _down(alpha * mu**2 / 2))
        case "pure":
            return PureDP(_down(float(log_ndtr(mu / 2) - log_ndtr(-mu / 2))))
        case "approximate":
            return ApproxDP(_down(GaussianDP(mu).epsilon(delta)), delta)
        case "zcdp":
            return ZCDP(_down(mu**2 / 2))
        case "gaussian":
            return GaussianDP(mu)
    raise ValueError(f"guarantee must be one of {', '.join(KINDS)}, got {guarantee!r}")


def _down(value: float) -> float:
    """A positive number, rounded down to four significant digits; exact where those say all."""
    place = _DIGITS - 1 - math.floor(math.log10(value))
    near = round(value, place)
    return near if near <= value * (1 + 1e-12) else round(near - 10.0**-place, place)
