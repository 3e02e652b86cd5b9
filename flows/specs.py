"""What a user writes: an experiment as YAML, checked before anything starts, with the line of each mistake."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from algorithms import catalog
from audits.outcome import MIN_REPLAYS

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]


class SpecError(ValueError):
    """A mistake in a spec; the message names file, line, field, value, and what is allowed."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BernoulliSpec(_Strict):
    """Arms that answer 1 with a given probability."""

    kind: Literal["bernoulli"]
    means: list[Annotated[float, Field(ge=0, le=1)]] = Field(min_length=2)


class ThorntonSpec(_Strict):
    """A randomized trial of cash incentives for learning one's HIV result; see `algorithms.environments.logged`."""

    kind: Literal["thornton_hiv"]


class TableSpec(_Strict):
    """A CSV file: a header of action names, then one user a row, one potential reward an action."""

    kind: Literal["table"]
    path: Path
    low: float = 0.0
    high: float = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> TableSpec:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low = {self.low}, high = {self.high}")
        return self


EnvironmentSpec = Annotated[BernoulliSpec | ThorntonSpec | TableSpec, Field(discriminator="kind")]


class PrivacySpec(_Strict):
    """Levels of Renyi DP: one order, one or several epsilons."""

    alpha: Annotated[float, Field(gt=1)]
    epsilon: list[Positive] = Field(min_length=1)

    @field_validator("epsilon", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return value if isinstance(value, list) else [value]


class AlgorithmSpec(_Strict):
    """One algorithm of the catalog, in one or several calibrations and privacy levels."""

    name: str
    beta: Positive = 3.1
    calibrations: list[str] | None = None
    privacy: PrivacySpec | None = None

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        catalog.find(value)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> AlgorithmSpec:
        entry = catalog.find(self.name)
        if entry.promise is None:
            for field in ("calibrations", "privacy"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{self.name} is not private and takes no field {field}")
            return self
        if self.privacy is None:
            raise ValueError(f"{self.name} needs the field privacy, for example: privacy: {{alpha: 2, epsilon: [1]}}")
        for calibration in self.calibrations or ():
            if calibration not in entry.calibrations:
                raise ValueError(
                    f"calibrations of {self.name} must be among {', '.join(entry.calibrations)}, got {calibration!r}"
                )
        return self


class AuditSpec(_Strict):
    """How hard the audits look."""

    rounds: Count = 64
    replays: Annotated[int, Field(ge=MIN_REPLAYS)] = 100_000
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    delta: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    examples: Count = 200


class Spec(_Strict):
    """One experiment."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
    title: str = ""
    description: str = ""
    seed: Annotated[int, Field(ge=0)]
    environment: EnvironmentSpec
    horizon: Count
    replications: Count
    block_size: Count = 100
    algorithms: list[AlgorithmSpec] = Field(min_length=1)
    audit: AuditSpec = AuditSpec()

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        if isinstance(self.environment, BernoulliSpec):
            n_actions = len(self.environment.means)
            for name, value in (("horizon", self.horizon), ("audit.rounds", self.audit.rounds)):
                least = n_actions + (name == "audit.rounds")
                if value < least:
                    raise ValueError(f"{name} must be at least {least} for {n_actions} arms, got {value}")
        return self


def load_spec(path: Path) -> Spec:
    """Reads and checks a spec; a relative data file is looked up beside it.

    Raises:
      SpecError: the file cannot be read, is no YAML, or a field is wrong; every mistake is listed with its line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    return parse_spec(text, str(path), path.parent)


def parse_spec(text: str, source: str, folder: Path) -> Spec:
    """Checks a spec's text; `source` is what its mistakes are reported under."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise SpecError(f"{source}{line}: not valid YAML: {getattr(error, 'problem', error)}") from error
    if not isinstance(data, dict):
        raise SpecError(f"{source}: a spec is a mapping with the fields name, seed, environment, horizon, ...")
    try:
        spec = Spec.model_validate(data)
    except ValidationError as error:
        raise SpecError("\n".join(_explain(item, tree, source) for item in error.errors())) from error
    if isinstance(spec.environment, TableSpec) and not spec.environment.path.is_absolute():
        where = spec.environment.model_copy(update={"path": folder / spec.environment.path})
        spec = spec.model_copy(update={"environment": where})
    return spec


def _explain(item: Any, tree: yaml.Node | None, source: str) -> str:
    """One mistake: file, line, field, what is wrong, and the value."""
    node, line, shown = tree, 1, ""
    message = item["msg"].removeprefix("Value error, ")
    # A rule between fields names the one to change first: look its line up.
    named = message.split(" ", 1)[0].split(".") if not item["loc"] else []
    for part in (*item["loc"], *named):
        child = _child(node, part)
        if child is None:
            if node is not None and isinstance(part, str) and item["type"] in ("missing", "extra_forbidden"):
                shown += f".{part}"
            continue  # a union's tag is part of the location, but of no line
        node, line = child
        shown += f"[{part}]" if isinstance(part, int) else f".{part}"
    field = shown.lstrip(".") or "spec"
    value = item.get("input")
    if item["type"] == "missing":
        return f"{source}:{line}: {field}: this field is required"
    if item["type"] == "extra_forbidden":
        return f"{source}:{line}: {field}: unknown field (value {value!r})"
    told = "" if isinstance(value, dict | list | BaseModel) else f", got {value!r}"
    return f"{source}:{line}: {field}: {message}{told if repr(value) not in message else ''}"


def _child(node: yaml.Node | None, part: Any) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line + 1
    if isinstance(node, yaml.ScalarNode) and part == 0:
        return node, node.start_mark.line + 1  # one value where a list is also allowed
    return None


def is_finite(value: float | None) -> bool:
    """Whether a number can be logged: MLflow stores an infinity silently as 1.8e308."""
    return value is not None and math.isfinite(value)
