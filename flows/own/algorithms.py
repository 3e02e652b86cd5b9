"""A user's own algorithm in a spec: an entry that no catalog lists, made of `FILE.py:NAME`, a claim and parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import product

from pydantic import Field, PrivateAttr, ValidationInfo, field_validator, model_validator

from bandana.algorithms.entry import Claim, Entry, Settings
from bandana.algorithms.parameters import Kind, Parameter, Value
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR, LINEAR_MDP, MIXTURE, POOLED, Problem
from bandana.algorithms.protocol import Algorithm
from bandana.audits.claims import KINDS, ClaimError, parse, split_pair
from bandana.audits.own import conformance
from bandana.flows.own.code import OwnCodeError, OwnObject, is_factory
from bandana.flows.own.trial import load
from bandana.flows.texts.effort import Replays
from bandana.flows.texts.fields import Labelled, OneOrSeveral, Scalar
from bandana.privacy_core import Guarantee

FAMILY = "own"
_EVERY_KIND = (FINITE, LINEAR, CONTEXTUAL, KERNEL, POOLED, MIXTURE, LINEAR_MDP)
_HELD = re.compile(r"\{(\w+)\}")
_WORDS = {"approx": "approximate", "rdp": "renyi"}


class OwnAlgorithmSpec(Labelled):
    """An algorithm of your own in a Python file, with every combination of its parameters."""

    file: str = Field(description="FILE.py:NAME, relative to the spec: an algorithm, or a class or function that makes one.")
    claim: str | None = Field(
        None,
        description='What it promises, such as "gdp(mu=1, relation=reward)"; {NAME} stands for a parameter. Without a claim '
        "it counts as not private, and is not audited.",
    )
    parameters: dict[str, OneOrSeveral[Scalar]] = Field(
        {}, description="What the class or function is called with; one value or several of each parameter."
    )
    source: str | None = Field(None, description="Where it comes from, such as a repository; by default the file and NAME.")
    replays: Replays | None = Field(None, description="Replays of its audits, where it is not to be `audit.replays`.")

    _code: OwnObject = PrivateAttr()
    _tuned: dict[str, float] = PrivateAttr(default_factory=dict)

    @field_validator("file")
    @classmethod
    def _names_an_algorithm(cls, given: str, info: ValidationInfo) -> str:
        code = load(given, info.context)
        loaded = code.load()
        for path in code.files().modules.values():
            for draw in conformance.draws(path.read_text(encoding="utf-8")):
                raise OwnCodeError(
                    f"{path.name}:{draw.line}: {draw.what}: it draws its own randomness, which no ledger accounts for; let "
                    "all noise come from ledger.release"
                )
        if not is_factory(loaded) and (lacks := conformance.missing_members(loaded)):
            raise OwnCodeError(f"{code.label} is no algorithm, and no class or function that makes one; as an algorithm it "
                               f"lacks {'; '.join(lacks)}")  # fmt: skip
        return given

    @model_validator(mode="after")
    def _is_consistent(self, info: ValidationInfo) -> OwnAlgorithmSpec:
        self._code = OwnObject.parse(self.file, info.context)
        try:
            self._code.check_parameters(self.parameters)
        except OwnCodeError as error:
            raise ValueError(f"parameters.{error}") from None
        if self.claim is not None:
            if unknown := [name for name in held(self.claim) if name not in self.parameters]:
                raise ValueError(f"claim: {{{unknown[0]}}} is none of the parameters that are given, got {self.claim!r}")
            try:
                for parameters in self._grid():
                    claim_of(self.claim, self._code.label, parameters)
            except ClaimError as error:
                raise ValueError(f"claim: {error}") from None
        return self

    @property
    def code(self) -> OwnObject:
        """The object in its file, which every process loads for itself."""
        return self._code

    def tune(self, name: str, value: float) -> None:
        """Counts a parameter that is tuned among its own if the class or function takes it."""
        with suppress(OwnCodeError):
            self._code.check_parameters({name: value})
            self._tuned[name] = value

    def entries(self) -> list[Entry]:
        """The one line that a catalog would have of it."""
        name, text = self.label or self._code.label, self.claim
        stated = None if text is None else claim_of(text, self._code.label, self._grid()[0])
        kind = None if stated is None else next(kind for kind, (made, _) in KINDS.items() if type(stated.stated) is made)
        entry = Entry(
            name=name,
            family=FAMILY,
            privacy_model="none" if stated is None else str(stated.trust),
            guarantee=None if kind is None else _WORDS.get(kind, kind),
            calibrations=(),
            claim=text or "none",
            source=self.source or self._code.label,
            build=partial(build, self._code),
            plays_on=_EVERY_KIND,
            parameters={
                each: Parameter(each, "A parameter of the file's.", self._tuned.get(each), Kind.ANY)
                for each in (*self.parameters, *self._tuned)
            },
            promise=None if text is None else partial(promise, text, self._code.label),
            seed_name=f"own {self._code.label}",
            stated=text or "",
            knows_actions=knows_actions(self._code),
        )
        return [entry]

    def calibrations_of(self, entry: Entry) -> list[str | dict[str, str] | None]:
        """None alone: its noise is its own."""
        return [None]

    def levels(self, entry: Entry) -> list[Guarantee | None]:
        """None alone: its level stands in the claim."""
        return [None]

    def parameter_grid(self, entry: Entry) -> list[dict[str, Value]]:
        """Every combination of the parameters."""
        return self._grid()

    def varied_parameters(self) -> tuple[str, ...]:
        """Parameters with several values, which a cell's label must show."""
        return tuple(name for name, values in self.parameters.items() if len(values) > 1)

    def given_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the spec gives."""
        return tuple(self.parameters)

    def _grid(self) -> list[dict[str, Value]]:
        return [dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())]


def promise(text: str, source: str, settings: Settings) -> Claim:
    """The claim at given settings; see `claim_of`."""
    return claim_of(text, source, settings.parameters)


def claim_of(text: str, source: str, parameters: Mapping[str, object]) -> Claim:
    """The claim with each {NAME} replaced by that parameter.

    Raises:
      ClaimError: what results is no claim.
      KeyError: a name is no parameter; see `held`.
    """
    if split_pair(text)[1] is not None:
        raise ClaimError(
            f"claim {text!r}: a benchmark's audit plays data of its own; audit a given pair with bandana audit-own"
        )
    return parse(_HELD.sub(lambda name: str(parameters[name[1]]), text), source=source)


def held(text: str) -> list[str]:
    """The parameters that a claim names."""
    return _HELD.findall(text)


def build(code: OwnObject, settings: Settings) -> Algorithm:
    """The algorithm that the user's class or function makes of the problem and the parameters.

    An object that is an algorithm already gets the parameters as its fields.

    Raises:
      OwnCodeError: the file cannot be loaded, or does not take what it is given; see `OwnObject.made`.
    """
    algorithm: Algorithm = code.made(settings.parameters, offered(settings.problem))
    return algorithm


def offered(problem: Problem) -> dict[str, object]:
    """Public facts of a problem under every name that a class or function may ask for; None where there is no such thing."""
    facts = {
        name: getattr(problem, name)
        for name in ("n_actions", "reward_range", "horizon", "features", "dimension", "kernel", "pool", "model")
    }
    model = problem.model
    return {
        "problem": problem,
        **facts,
        "n_arms": problem.n_actions,
        "context_dimension": problem.dimension,
        "n_states": None if model is None else model.n_states,
        "episode_length": None if model is None else model.horizon,
    }


def knows_actions(code: OwnObject) -> bool:
    """True if it is shown the features of linear arms: then it must meet the actions in their own order."""
    thing = code.load()
    return is_factory(thing) and bool({"problem", "features"} & set(inspect.signature(thing).parameters))
