"""Description of an algorithm in the catalog: what it plays on, what it takes, how it is built, and what it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from inspect import signature
from typing import Any, NamedTuple

from bandana.algorithms.claim import Claim as Claim
from bandana.algorithms.claim import claim_of
from bandana.algorithms.parameters import FAILURE, Parameter, Value
from bandana.algorithms.problem import FINITE, LINEAR, Problem
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.privacy_core import (
    ZCDP,
    ApproxDP,
    ByUsers,
    GaussianDP,
    Guarantee,
    Participation,
    PureDP,
    Relation,
    RenyiDP,
    Structure,
    TrustModel,
    calibrate,
)
from bandana.privacy_core.checks import failure_of


@dataclass(frozen=True)
class Settings:
    """Choices of a user for one algorithm.

    Attributes:
      problem: what it plays on.
      parameters: the entry's own parameters, all of them.
      calibration: one of the entry's, or a mixture of their parts in words; None for a non-private algorithm.
      privacy: the promise to calibrate to, None for a non-private algorithm.
      parts: part of the calibration -> option; empty where the calibrations cannot be taken apart.
    """

    problem: Problem
    parameters: Mapping[str, Any]
    calibration: str | None = None
    privacy: Guarantee | None = None
    parts: Mapping[str, str] = field(default_factory=dict)

    def shown(self) -> dict[str, Any]:
        """The public parameters that have a value, and the privacy level, for keys, MLflow and the report."""
        return {**{name: value for name, value in self.parameters.items() if value is not None}, **self.level()}

    def level(self) -> dict[str, float]:
        """The privacy level by name; empty for a non-private algorithm."""
        match self.privacy:
            case RenyiDP(alpha=alpha, epsilon=epsilon):
                return {"alpha": alpha, "epsilon": epsilon}
            case PureDP(epsilon=epsilon):
                return {"epsilon": epsilon}
            case ApproxDP(epsilon=epsilon, delta=delta):
                return {"epsilon": epsilon, "privacy_delta": delta}
            case ZCDP(rho=rho):
                return {"rho": rho}
        return {}

    def with_parameters(self, **changed: Value) -> Settings:
        """The same with other parameters."""
        return replace(self, parameters={**self.parameters, **changed})


class RegretBound(NamedTuple):
    """Bound that a source proves on the regret at given settings.

    Attributes:
      values: (n_grid,), in units of reward, after so many rounds.
      text: the theorem and its constants, one line.
    """

    values: FloatArray
    text: str


Bound = Callable[[Settings, FloatArray | None, IntArray], RegretBound | None]
"""Settings, mean rewards (n_actions,) or None where they are unknown, grid of rounds -> the bound; None: none is proved."""


def _as_asked(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True)
class Entry:
    """One line of the catalog: an algorithm in a trust model with a guarantee, and how to build it.

    Attributes:
      name: the algorithm's name, shared by its entries in all trust models and guarantees.
      family: its folder.
      privacy_model: none, central, joint, shuffle or local.
      guarantee: approximate, pure, renyi or zcdp; None for a non-private algorithm.
      calibrations: names of the noise calibrations.
      claim: the promise in words.
      source: publication and theorem.
      build: settings -> algorithm; where calibrations have parts, it decides by `Settings.parts` alone.
      plays_on: kinds of problems.
      parameters: name -> declaration.
      promise: settings -> claim; None for a non-private algorithm.
      probes: n_actions -> the records at which a changed reward costs most; audits plant their canaries there.
      in_audit: settings -> the same with public parameters under which the few rounds of a replay hold several releases. The
        noise of a release depends on none of them, but for the number of batches of LSVI-UCB, which short runs cannot hold.
      audit_shape: (number of actions, d) of the problem that the catalog's own audit plays on.
      audit_pool: name of the pool that hides a record least, where it plays on one; see `worst_pools`.
      bound: the source's bound on the regret, where rewards are drawn as it assumes; None where it states none.
      parts: calibration -> part -> option, such as `printed` -> {noise: printed, sum: tree, width: printed}; every
        combination of the options keeps the claim. Empty where the calibrations cannot be taken apart.
      label: unique words, such as `ucrl-vtr local pure`; the catalog sets it.
      seed_name: the name that seeds are derived from, which never changes; the catalog sets it where it follows a rule.
      stated: the claim as a user wrote it, of an algorithm of their own; empty in the catalog, whose claims follow from
        calibration and privacy level.
      package: the installed package that adds it; empty for the product's own.
      structure: settings -> how its Gaussian releases touch a record, where each step holds one record. None, or an answer
        of None: not known, so that a user with m records pays m times what one does.
      knows_actions: whether it reads the features of linear arms although it also plays without any.
    """

    name: str
    family: str
    privacy_model: str
    guarantee: str | None
    calibrations: tuple[str, ...]
    claim: str
    source: str
    build: Callable[[Settings], Algorithm]
    plays_on: tuple[str, ...] = (FINITE, LINEAR)
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    promise: Callable[[Settings], Claim] | None = None
    probes: Callable[[int], tuple[int, ...]] | None = None
    in_audit: Callable[[Settings], Settings] = _as_asked
    audit_shape: tuple[int, int] = (2, 2)
    audit_pool: str = "extrapolating"
    bound: Bound | None = None
    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    label: str = ""
    seed_name: str = ""
    stated: str = ""
    structure: Callable[[Settings], Structure | None] | None = None
    knows_actions: bool = False
    package: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", self.label or self.name)
        object.__setattr__(self, "seed_name", self.seed_name or self.name)

    @property
    def is_private(self) -> bool:
        """True if it promises anything."""
        return self.promise is not None

    def summary(self) -> dict[str, object]:
        """The public facts, for `bandana list --json`."""
        shown = ("name", "family", "privacy_model", "guarantee", "calibrations", "claim", "source")
        facts = {field.name: getattr(self, field.name) for field in fields(self) if field.name in shown}
        facts |= {"package": self.package} if self.package else {}
        return facts | {"plays_on": self.plays_on, "parameters": tuple(self.parameters)}

    def seed_parameters(self, settings: Settings) -> dict[str, Any]:
        """The parameters and the privacy level as seeds count them."""
        counted = {
            name: self.parameters[name].in_seeds(value)
            for name, value in settings.parameters.items()
            if not (self.parameters[name].is_later and value == self.parameters[name].default)
        }
        return {**counted, **settings.level()}

    def settings(
        self,
        problem: Problem,
        calibration: str | Mapping[str, str] | None = None,
        privacy: Guarantee | None = None,
        **parameters: Value,
    ) -> Settings:
        """Checked settings; a parameter that is not given has the entry's default.

        Args:
          problem: what it plays on.
          calibration: one of the entry's, or an option for each of their parts.
          privacy: the promise to calibrate to.
          **parameters: the entry's own.

        Raises:
          ValueError: it does not play on such a problem; a parameter is unknown or out of its range; a calibration or
            privacy level is missing, unknown, of another kind, or given to a non-private algorithm.
        """
        if problem.kind not in self.plays_on:
            raise ValueError(f"{self.label} plays on {' and '.join(self.plays_on)} problems, not on a {problem.kind} one")
        for name in parameters:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise ValueError(f"{self.label} takes no parameter {name}; its parameters are: {known}")
        if self.promise is None or self.stated:
            if calibration is not None or privacy is not None:
                reason = "brings its own claim" if self.stated else "is not private"
                raise ValueError(f"{self.label} {reason}: it takes neither a calibration nor a privacy level")
        elif privacy is None:
            raise ValueError(f"{self.label} needs a privacy level")
        elif kind_of(privacy) != self.guarantee:
            raise ValueError(f"{self.label} promises {self.guarantee} privacy, got {privacy}")
        filled = {name: item.check(parameters.get(name, item.default)) for name, item in self.parameters.items()}
        if FAILURE.name in filled:
            filled[FAILURE.name] = failure_of(filled[FAILURE.name], problem.known_horizon)  # type: ignore[arg-type]
        if privacy is None:
            return Settings(problem, filled)
        name, parts = self.calibrated(calibration)
        return Settings(problem, filled, name, privacy, parts)

    def calibrated(self, calibration: str | Mapping[str, str] | None) -> tuple[str, Mapping[str, str]]:
        """Name and parts of a calibration; a mixture of parts that is one of the entry's calibrations has its name.

        Raises:
          ValueError: the calibration, a part or its option is unknown, or a part is missing; the message names it.
        """
        if calibration is None or isinstance(calibration, str):
            if calibration is None or calibration not in self.calibrations:
                raise ValueError(f"calibration of {self.label} {not_offered(self.calibrations, calibration)}")
            return calibration, self.parts.get(calibration, {})
        if not (options := self.part_options):
            raise ValueError(
                f"calibrations of {self.label} cannot be taken apart; name one or more of: {', '.join(self.calibrations)}"
            )
        if wrong := [part for part in calibration if part not in options]:
            raise ValueError(f"calibrations of {self.label} have no part {wrong[0]!r}; the parts are: {', '.join(options)}")
        if missing := [part for part in options if part not in calibration]:
            part, choice = missing[0], ", ".join(options[missing[0]])
            raise ValueError(f"a mixed calibration of {self.label} needs all parts; {part!r} is missing, one of: {choice}")
        parts = {part: calibration[part] for part in options}
        for part, option in parts.items():
            if option not in options[part]:
                raise ValueError(f"{part} of {self.label} must be one of {', '.join(options[part])}, got {option!r}")
        same = [name for name, own in self.parts.items() if own == parts]
        return (same or [" ".join(f"{part}={option}" for part, option in parts.items())])[0], parts

    @property
    def part_options(self) -> dict[str, tuple[str, ...]]:
        """Part of a calibration -> its options, in the order of the calibrations; empty where there are no parts."""
        names = dict.fromkeys(part for parts in self.parts.values() for part in parts)
        return {name: tuple(dict.fromkeys(parts[name] for parts in self.parts.values())) for name in names}

    def times_for(self, settings: Settings, users: Participation) -> float:
        """Times the mu, or the pure epsilon, of the worst record a user pays at most; m where no more is known."""
        structure = None if self.structure is None else self.structure(settings)
        if structure is None:
            return float(users.most)
        unit = GaussianDP(1.0)
        return min(float(users.most), calibrate(unit, ByUsers(structure, users, longest=1)) / calibrate(unit, structure))

    def at_test_budget(self, settings: Settings) -> Settings:
        """The same settings with a promise that is 1-GDP: a budget at which audits see small faults."""
        match settings.privacy:
            case RenyiDP(alpha=alpha):
                near: Guarantee = RenyiDP(alpha, alpha / 2)
            case ApproxDP(delta=asked):
                delta = min(asked, _MOST_DELTA)
                near = ApproxDP(GaussianDP(1.0).epsilon(delta), delta)
            case ZCDP():
                near = ZCDP(0.5)
            case _:
                near = PureDP(_PURE_OF_UNIT_MU)
        return replace(settings, privacy=near)


# At delta of 2 Phi(1/2) - 1 = 0.38 and above, 1-GDP is delta-DP with an epsilon of 0, and so is much that is less private.
_MOST_DELTA = 0.1
# epsilon-DP is mu-GDP with Phi(mu / 2) = 1 / (1 + e^-epsilon).
_PURE_OF_UNIT_MU = 0.8069  # just below log(Phi(1/2) / Phi(-1/2)) = 0.80697


_KINDS = {RenyiDP: "renyi", PureDP: "pure", ApproxDP: "approximate", ZCDP: "zcdp"}


def kind_of(privacy: Guarantee) -> str:
    """Kind of a guarantee: renyi, pure, approximate or zcdp."""
    if type(privacy) not in _KINDS:
        raise ValueError(f"privacy must be a RenyiDP, a PureDP, an ApproxDP or a ZCDP, got {privacy!r}")
    return _KINDS[type(privacy)]


PRINTED, AS_KNOWN = "printed", "as-known"
"""Calibrations with a paper's own constants: as its text prints them, or, where we could not read that, as code or other
papers have them."""


def not_offered(calibrations: Sequence[str], given: str | None) -> str:
    """Rest of an error on a calibration that is none of the offered ones, with its name if it has another one."""
    hint = ": we could not read what its paper prints, 'as-known' has what is known of it"
    is_unread = given == PRINTED and AS_KNOWN in calibrations
    return f"must be one of {', '.join(calibrations)}, got {given!r}{hint if is_unread else ''}"


AZIZE_BASU = "Azize and Basu, Renyi Differentially Private Bandits"
_ROOM = 16
"""Later releases are longer, and faults show where something is decided from one: several must fit."""
_LEAST_ROOM = 4
_MOST_HALVINGS = 40


@dataclass(frozen=True)
class BuiltBy:
    """Builder of an algorithm from settings, see `built_by`; a value, so that it can be sent to another process.

    Attributes:
      build: builder of the algorithm, or of the settings that all its forms share.
      fixed: names and values of further arguments.
    """

    build: Callable[..., Any]
    fixed: tuple[tuple[str, Any], ...] = ()

    def __call__(self, settings: Settings) -> Any:
        """The algorithm with these settings."""
        facts = {
            **vars(settings.problem), "n_arms": settings.problem.n_actions, "promise": settings.privacy, "epsilon": None,
            "parts": settings.parts, "calibration": settings.parts or settings.calibration,
            **settings.level(), **settings.parameters,
        }  # fmt: skip
        facts |= {name: value(settings) if callable(value) else value for name, value in self.fixed}
        result = _called(self.build, settings, facts)
        if not hasattr(result, "private"):
            return result
        return result.twin() if settings.privacy is None else _called(result.private, settings, facts)


def built_by(build: Callable[..., Any], **fixed: Any) -> BuiltBy:
    """Builds an algorithm with the arguments that its builder's signature names.

    Known are all facts of the problem, the privacy level by name, the `promise`, the calibration with its parts, and the
    entry's parameters. A builder with `**more` gets all parameters. Where forms of an algorithm share their settings, the
    builder makes these, and their `twin` or `private` builds the algorithm; the latter's arguments go by its signature too.

    Args:
      build: builder of the algorithm, or of the settings that all its forms share.
      **fixed: further arguments: functions of the settings that find them, whose code is in the keys of results, or facts
        that these keys hold anyway. A constant must be in a function, or an edit of it would recompute nothing.
    """
    return BuiltBy(build, tuple(fixed.items()))


def _called(build: Callable[..., Any], settings: Settings, facts: Mapping[str, Any]) -> Any:
    taken = signature(build).parameters
    is_open = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    if "horizon" in taken:
        facts = {**facts, "horizon": settings.problem.known_horizon}
    return build(**{name: v for name, v in facts.items() if name in taken or (is_open and name in settings.parameters)})


REWARD = "one reward (one round)"
"""The unit of privacy where contexts are public or there are none."""
_CLAIMS = {
    "pure": "epsilon-DP of {}, replace one reward",
    "renyi": "(alpha, epsilon)-RDP of {}, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
    "zcdp": "rho-zCDP of {}, replace one reward; as GDP, mu = sqrt(2 rho)",
}


class Form(NamedTuple):
    """One row of a family's table: an algorithm in a trust model with a guarantee.

    Attributes:
      source: publication and theorem.
      paper: the publication.
      trust: None for the non-private twin.
      guarantee: approximate, pure, renyi or zcdp; None for the twin.
      calibrations: names of the noise calibrations.
      claim: the promise in words.
      whose: what it covers, such as "a user's messages".
      theorem: where it is printed.
    """

    source: str
    paper: str = ""
    trust: TrustModel | None = None
    guarantee: str | None = None
    calibrations: tuple[str, ...] = ()
    claim: str = "none: the non-private twin"
    whose: str = ""
    theorem: str = ""

    def entry(self, name: str, family: str, build: Callable[[Settings], Any], unit: str = REWARD, **more: Any) -> Entry:
        """The catalog's line; `unit` is what one record is, and `more` are further fields of the entry."""
        if self.trust is None:
            return Entry(name, family, "none", None, (), self.claim, self.source, build, **more)
        return Entry(
            name, family, str(self.trust), self.guarantee, self.calibrations, self.claim, self.source, build,
            promise=partial(self._promise, unit), **{"probes": first_user, **more},
        )  # fmt: skip

    def _promise(self, unit: str, settings: Settings) -> Claim:
        assert settings.privacy is not None
        assert self.trust is not None
        relation = Relation.REPLACE_REWARD if unit == REWARD else Relation.REPLACE_RECORD
        stated = replace(settings.privacy, relation=relation, trust=self.trust)
        return claim_of(stated, self.whose, self.theorem, self.paper, unit)


def of_rewards(
    source: str,
    guarantee: str,
    theorem: str,
    paper: str,
    calibrations: tuple[str, ...] = ("tight",),
    whose: str = "all actions",
    claim: str = "",
) -> Form:
    """A form with a trusted curator that protects one reward; without a claim in words, its guarantee's usual one."""
    claim = claim or _CLAIMS[guarantee].format(whose)
    return Form(source, paper, TrustModel.CENTRAL, guarantee, calibrations, claim, whose, theorem)


def first_user(n_actions: int) -> tuple[int, ...]:
    """The record at which a change costs most, where every release reads all records so far: the first."""
    return (0,)


def first_user_and_first_choice(n_actions: int) -> tuple[int, ...]:
    """Also the first round whose arm was chosen by what was released, where each arm is first played once."""
    return (0, n_actions)


def fitting(settings: Settings, name: str, first_rounds: Callable[[Settings], int]) -> Settings:
    """The parameter halved until the first release comes within a sixteenth of the rounds, or as early as it can.

    Args:
      settings: at the audit's horizon.
      name: of the parameter, which shortens what comes before a release as it falls.
      first_rounds: rounds before the first release.

    Raises:
      ValueError: the first release takes more than a quarter of the rounds at any value.
    """
    rounds = settings.problem.known_horizon
    earliest, needed = settings, first_rounds(settings)
    for _ in range(_MOST_HALVINGS):
        if _ROOM * needed <= rounds:
            return earliest
        settings = settings.with_parameters(**{name: settings.parameters[name] / 2})
        if (shorter := first_rounds(settings)) < needed:
            earliest, needed = settings, shorter
    if _LEAST_ROOM * needed <= rounds:
        return earliest
    raise ValueError(
        f"{rounds} rounds are too few for an audit of it: the first release takes {needed}, ask for {_LEAST_ROOM * needed}"
    )
