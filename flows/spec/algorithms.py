"""Algorithms as a spec names them: one of the catalog, in one or several trust models, with its own parameters."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from bandana.algorithms import catalog
from bandana.algorithms.entry import AS_KNOWN, PRINTED, Entry, not_offered
from bandana.algorithms.parameters import Kind, Parameter
from bandana.flows.spec.every import KINDS, level_within
from bandana.flows.texts.effort import Replays
from bandana.flows.texts.fields import MOST_FEATURES, Count, Level, NoTruth, OneOrSeveral, Order, Positive, Share, Strict
from bandana.flows.texts.mistakes import plain, shown
from bandana.privacy_core import ZCDP, ApproxDP, Guarantee, PureDP, RenyiDP
from bandana.privacy_core.checks import suggestion

_MOST_OF = {"n_features": MOST_FEATURES}
"""Counts of which a table is made, and beyond which none could be."""


class PrivacySpec(Strict):
    """Levels of privacy: every combination of what is given. The fields decide the guarantee."""

    epsilon: OneOrSeveral[Level] | None = Field(None, description="Epsilon that the algorithm promises, one or several.")
    rho: OneOrSeveral[Level] | None = Field(
        None, description="Rho of a zero-concentrated guarantee, one or several, in place of epsilon."
    )
    mu: OneOrSeveral[Level] | None = Field(
        None,
        description="Levels as the mu of Gaussian DP, in place of epsilon: the weakest claim of the algorithm's kind within "
        "each, with alpha (2 if left out) or delta (1e-5) where the kind has one.",
    )
    alpha: OneOrSeveral[Order] | None = Field(None, description="Order of a Renyi guarantee.")
    delta: OneOrSeveral[Share] | None = Field(
        None, description="Delta of an approximate guarantee; at most 0.1 on a file of data, and below 1 elsewhere."
    )
    level: Literal["record", "user"] = Field(
        "record",
        description="Whom the promise is to: one record, or a user with up to the environment's visits_per_user records.",
    )

    @model_validator(mode="after")
    def _is_one_guarantee(self) -> PrivacySpec:
        if self.mu is not None and {"epsilon", "rho"} & self.model_fields_set:
            raise ValueError("mu is a level for every kind of guarantee: leave epsilon and rho out")
        if self.mu is None and self.alpha is not None and self.delta is not None:
            raise ValueError("alpha asks for a Renyi guarantee and delta for an approximate one: give one of them")
        if self.rho is not None and {"epsilon", "alpha", "delta"} & self.model_fields_set:
            raise ValueError("rho alone asks for a zero-concentrated guarantee: leave epsilon, alpha and delta out")
        if self.rho is None and self.epsilon is None and self.mu is None:
            raise ValueError("epsilon is missing; give it, or rho for a zero-concentrated guarantee, or mu for any")
        return self

    def fits(self, guarantee: str | None) -> bool:
        """True for a kind that it asks for: mu any, rho zero-concentrated, alpha Renyi, delta approximate, else pure."""
        if self.mu is not None:
            return guarantee in KINDS
        kinds = {"zcdp": self.rho, "renyi": self.alpha, "approximate": self.delta}
        return guarantee == next((kind for kind, given in kinds.items() if given is not None), "pure")

    def levels(self, guarantee: str) -> list[Guarantee]:
        """Each combination, as a guarantee of the kind."""
        if self.mu is not None:
            alphas = self.alpha if self.alpha and guarantee == "renyi" else [2.0]
            deltas = self.delta if self.delta and guarantee == "approximate" else [1e-5]
            return [level_within(guarantee, *level) for level in product(self.mu, alphas, deltas)]
        if self.rho is not None:
            return [ZCDP(rho) for rho in self.rho]
        assert self.epsilon is not None
        if self.alpha is not None:
            return [RenyiDP(alpha, epsilon) for alpha in self.alpha for epsilon in self.epsilon]
        if self.delta is not None:
            return [ApproxDP(epsilon, delta) for delta in self.delta for epsilon in self.epsilon]
        return [PureDP(epsilon) for epsilon in self.epsilon]


class AlgorithmSpec(Strict):
    """One algorithm of the catalog: every trust model with every parameter, calibration and privacy level.

    Parameters are fields too: which an algorithm takes, its entries in the catalog declare.
    """

    model_config = ConfigDict(extra="allow")

    algorithm: str = Field(description="Algorithm, as `bandana list` names it.")
    model: OneOrSeveral[Literal["none", "central", "joint", "shuffle", "local"]] | None = Field(
        None, description="Trust model, one or several; `none`: the non-private twin. Needed where there are several."
    )
    calibrations: OneOrSeveral[str | dict[str, str]] | None = Field(
        None,
        description="Noise calibrations, one or several; all of the algorithm's if left out. A mapping mixes their parts, "
        "such as {noise: printed, sum: factorized, width: exact}, to see which of them matters.",
    )
    privacy: PrivacySpec | None = Field(None, description="Guarantee of a private algorithm.")
    replays: Replays | None = Field(
        None, description="Replays of its audits, where they take more or fewer than `audit.replays`."
    )

    @model_validator(mode="before")
    @classmethod
    def _parameters(cls, given: object) -> object:
        """Checks what are parameters; one value stands for a list of one."""
        if not isinstance(given, Mapping) or not {"algorithm", "name"} & set(given):
            return given  # pydantic reports what is missing
        entries = _entries_of(given)
        declared = {name: parameter for entry in entries for name, parameter in entry.parameters.items()}
        checked = dict(given)
        for name in given:
            if name not in cls.model_fields:
                checked[name] = _values(name, given[name], declared, str(given["algorithm"]))
        return checked

    @model_validator(mode="after")
    def _is_consistent(self) -> AlgorithmSpec:
        entries = self.entries()
        for name in self._given:
            if not any(name in entry.parameters for entry in entries):
                takers = " and ".join(entry.label for entry in catalog.of_name(self.algorithm) if name in entry.parameters)
                raise ValueError(f"{name}: a parameter of {takers} only")
        if self.calibrations and not any(entry.calibrations for entry in entries):
            raise ValueError(f"calibrations: {self.algorithm} without privacy has none")
        offered = list(dict.fromkeys(name for entry in entries for name in entry.calibrations))
        for calibration in self.calibrations or ():
            if isinstance(calibration, str) and calibration not in offered:
                raise ValueError(f"calibrations of {self.algorithm} {not_offered(offered, calibration)}")
        for entry in entries:
            for wanted in self.calibrations_of(entry) or self.calibrations or ():
                if wanted is not None:
                    entry.calibrated(wanted)
        return self

    @property
    def _given(self) -> dict[str, list[object]]:
        return self.__pydantic_extra__ or {}

    def entries(self) -> list[Entry]:
        """The entries of the catalog that it names, one for each trust model.

        Raises:
          ValueError: there is none in a trust model with this guarantee, or it is open which is meant.
        """
        every = catalog.of_name(self.algorithm)
        private = [e for e in every if e.is_private and not e.stated]
        twins = [e for e in every if e not in private]
        if self.privacy is None:
            return self._without_privacy(private, twins)
        if not private:
            raise ValueError(f"privacy: {self.algorithm} is not private and takes no field privacy")
        wanted = [entry for entry in private if self.privacy.fits(entry.guarantee)]
        if not wanted:
            kinds = list(dict.fromkeys(str(entry.guarantee) for entry in private))
            given = ", ".join(sorted(self.privacy.model_fields_set))
            raise ValueError(
                f"privacy of {self.algorithm} is of the kind {' or '.join(kinds)}, got the fields {given}; for example: "
                f"{_examples(private)}"
            )
        if self.model == [catalog.NONE]:
            raise ValueError("privacy: the model none is the non-private twin; leave one of the two fields out")
        models = ", ".join(dict.fromkeys(entry.privacy_model for entry in wanted))
        if self.model is None and "," in models:
            raise ValueError(f"model: {self.algorithm} is private in several trust models; name one or more of: {models}")
        if self.model is None:
            return wanted
        return [entry for model in self.model for entry in _in_model(model, twins if model == catalog.NONE else wanted)]

    def _without_privacy(self, private: list[Entry], twins: list[Entry]) -> list[Entry]:
        if self.model in (None, [catalog.NONE]) and twins:
            return twins
        if self.model == [catalog.NONE]:
            raise ValueError(f"model: {self.algorithm} has no non-private form")
        if not private:
            raise ValueError(f"model: {self.algorithm} is not private: leave the field out")
        raise ValueError(f"{self.algorithm} needs the field privacy, for example: {_examples(private)}")

    def levels(self, entry: Entry) -> list[Guarantee | None]:
        """Privacy levels of one of its entries; None alone for a non-private one."""
        return [*self.privacy.levels(str(entry.guarantee))] if self.privacy is not None and entry.is_private else [None]

    def calibrations_of(self, entry: Entry) -> list[str | dict[str, str] | None]:
        """Calibrations of one of its entries, by name or as a mixture of parts; None alone for a non-private one."""
        if not entry.is_private or entry.stated:
            return [None]
        wanted = self.calibrations or list(entry.calibrations)
        unread = {PRINTED} if AS_KNOWN in entry.calibrations and AS_KNOWN not in wanted else set()  # refused, not left out
        return [each for each in wanted if isinstance(each, dict) or each in {*entry.calibrations, *unread}]

    def parameter_grid(self, entry: Entry) -> list[dict[str, object]]:
        """Every combination of the parameters that are given and that the entry takes."""
        given = {name: values for name in entry.parameters if (values := self._given.get(name)) is not None}
        return [dict(zip(given, values, strict=True)) for values in product(*given.values())]

    def given_parameters(self) -> tuple[str, ...]:
        """Names of the parameters that the spec gives."""
        return tuple(self._given)

    def varied_parameters(self) -> tuple[str, ...]:
        """Parameters with several values, which a cell's label must show; delta as settings call it."""
        level = {} if self.privacy is None else {"alpha": self.privacy.alpha, "privacy_delta": self.privacy.delta}
        return tuple(name for name, values in {**self._given, **level}.items() if values is not None and len(values) > 1)


def _entries_of(given: Mapping[str, object]) -> list[Entry]:
    """The entries of the algorithm that is named; a spec written before is answered with what to write."""
    field = "algorithm" if "algorithm" in given else "name"
    try:
        entries = catalog.of_name(str(given[field]))
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from None
    if field == "name":
        raise ValueError(f"name: write `algorithm: {given['name']}`")
    return entries


def _values(name: str, value: object, declared: Mapping[str, Parameter], algorithm: str) -> list[object]:
    if name not in declared:
        takes = f"its parameters are: {', '.join(declared)}" if declared else "it has none"
        near = suggestion(name, (*AlgorithmSpec.model_fields, *declared)) or ";"
        raise ValueError(f"{name}: unknown field{near} {name} is no parameter of {algorithm}; {takes}")
    try:
        several: Any = OneOrSeveral[type_of(declared[name])]  # type: ignore[misc]
        return list(TypeAdapter(several).validate_python(value))
    except ValidationError as error:
        item = error.errors()[0]
        place = ".".join(str(part) for part in (name, *item["loc"]))
        raise ValueError(f"{place}: {plain(item)}, got {shown(item['input'])}") from None


def type_of(parameter: Parameter) -> Any:
    """Type by which pydantic knows the values that a parameter takes."""
    if parameter.kind is Kind.CHOICE:
        return Literal[parameter.options]
    if parameter.name in _MOST_OF:
        return Annotated[int, Field(ge=1, le=_MOST_OF[parameter.name]), NoTruth]
    return {Kind.POSITIVE: Positive, Kind.SHARE: Share, Kind.COUNT: Count}[parameter.kind]


def _examples(entries: list[Entry]) -> str:
    kinds = dict.fromkeys(str(entry.guarantee) for entry in entries)
    return " or ".join(f"privacy: {catalog.EXAMPLES[kind]}" for kind in kinds)


def _in_model(model: str, entries: list[Entry]) -> list[Entry]:
    if own := [entry for entry in entries if entry.privacy_model == model]:
        return own
    models = ", ".join(dict.fromkeys(entry.privacy_model for entry in entries)) or "no other"
    raise ValueError(f"model: there is no {model} form with this guarantee; there is: {models}")
