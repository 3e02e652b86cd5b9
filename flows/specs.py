"""What a user writes: an experiment as YAML, checked before anything starts, with the line of each mistake."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from algorithms import catalog
from audits.outcome import MIN_REPLAYS

T = TypeVar("T")
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
_GRIDS = ("environment", "alpha", "epsilon", "beta", "calibrations", "formats")


class SpecError(ValueError):
    """A mistake in a spec; the message names file, line, field, value, and what is allowed."""


def _several(value: Any) -> Any:
    """One value where a list is also allowed."""
    return value if isinstance(value, list) else [value]


def _distinct(values: list[T]) -> list[T]:
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} stands twice")
    return values


OneOrSeveral = Annotated[list[T], BeforeValidator(_several), Field(min_length=1), AfterValidator(_distinct)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class _EnvironmentSpec(_Strict):
    label: Annotated[str | None, Field(pattern=_NAME, max_length=40)] = Field(
        None, description="What cells and reports call it; needed only to tell two of one kind apart."
    )


class BernoulliSpec(_EnvironmentSpec):
    """Arms that answer 1 with a given probability."""

    kind: Literal["bernoulli"]
    means: list[Annotated[float, Field(ge=0, le=1)]] = Field(min_length=2, description="One probability an arm.")


class ThorntonSpec(_EnvironmentSpec):
    """A randomized trial of cash incentives for learning one's HIV result; see `algorithms.environments.logged`."""

    kind: Literal["thornton_hiv"]


class TableSpec(_EnvironmentSpec):
    """A CSV file: a header of action names, then one user a row, one potential reward an action.

    The file is private: of what it holds, only what `public` names is ever logged, tracked or reported.
    """

    kind: Literal["table"]
    path: Path = Field(description="Relative to the spec.")
    low: float = Field(0.0, description="Least reward that the range declares.")
    high: float = Field(1.0, description="Largest one.")
    public: Annotated[list[Literal["values", "means", "regret"]], AfterValidator(_distinct)] = Field(
        [],
        description="What may be shown: `values` (the rows; audits replay them), `means` of the arms, `regret` curves. "
        "Nothing, if the file is about people who did not agree.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> TableSpec:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low = {self.low}, high = {self.high}")
        return self


EnvironmentSpec = Annotated[BernoulliSpec | ThorntonSpec | TableSpec, Field(discriminator="kind")]


class PrivacySpec(_Strict):
    """Levels of Renyi DP: every order with every epsilon."""

    alpha: OneOrSeveral[Annotated[float, Field(gt=1)]] = Field(description="Renyi order, one or several.")
    epsilon: OneOrSeveral[Positive] = Field(description="Renyi divergence promised, one or several.")


class AlgorithmSpec(_Strict):
    """One algorithm of the catalog: every parameter with every calibration and privacy level."""

    name: str = Field(description="As `bandana list` shows it.")
    beta: OneOrSeveral[Positive] = Field([3.1], description="Exploration, one or several.")
    calibrations: OneOrSeveral[str] | None = Field(None, description="One or several; all of the algorithm's if left out.")
    privacy: PrivacySpec | None = Field(None, description="Of a private algorithm.")

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

    rounds: Count = Field(64, description="Users of a replay.")
    replays: Annotated[int, Field(ge=MIN_REPLAYS)] = Field(100_000, description="On each side of each neighboring pair.")
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(0.95, description="Of all bounds of one audit together.")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(1e-5, description="At which epsilons are stated.")
    examples: Count = Field(200, description="Cases of the audit without statistics.")


class ReportSpec(_Strict):
    """Which files a report is written as."""

    formats: OneOrSeveral[Literal["html", "pdf", "json"]] = Field(["html", "pdf", "json"], description="One or several.")


class ExecutionSpec(_Strict):
    """How patient an experiment is; no number depends on it."""

    block_timeout: Positive = Field(3600.0, description="Seconds for one block of replicates; longer ones fail.")
    audit_timeout: Positive = Field(3600.0, description="Seconds for one audit.")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(
        2, description="After a fault of the infrastructure; a mistake in the spec or the code is never tried again."
    )


class Spec(_Strict):
    """One experiment: every environment with every algorithm, calibration and privacy level."""

    name: Annotated[str, Field(pattern=_NAME, max_length=80)] = Field(
        description="Of the suite: folder and MLflow experiment."
    )
    title: str = Field("", description="Of the report.")
    description: str = Field("", description="What it shows, in one line.")
    seed: Annotated[int, Field(ge=0)] = Field(description="Root of all seeds.")
    environment: OneOrSeveral[EnvironmentSpec] = Field(description="What is played on, one or several.")
    horizon: Count = Field(description="Rounds, one user each.")
    replications: Count = Field(description="Of each cell.")
    block_size: Count = Field(100, description="Replicates that are computed and kept together.")
    algorithms: list[AlgorithmSpec] = Field(min_length=1, description="What plays.")
    audit: AuditSpec = Field(AuditSpec(), description="How hard audits look.")
    report: ReportSpec = Field(ReportSpec(), description="Which files are written.")
    execution: ExecutionSpec = Field(ExecutionSpec(), description="Timeouts and retries.")
    baseline: Path | None = Field(None, description="Results that later ones are held against; relative to the spec.")

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        for environment in self.environment:
            if not isinstance(environment, BernoulliSpec):
                continue
            n_actions = len(environment.means)
            for name, value in (("horizon", self.horizon), ("audit.rounds", self.audit.rounds)):
                least = n_actions + (name == "audit.rounds")
                if value < least:
                    raise ValueError(f"{name} must be at least {least} for {n_actions} arms, got {value}")
        labels = [label_of(environment) for environment in self.environment]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"environment: {twice[0]!r} stands twice; give each a label of its own")
        return self


def label_of(environment: EnvironmentSpec) -> str:
    """What cells and reports call an environment."""
    if environment.label is not None:
        return environment.label
    return environment.path.name if isinstance(environment, TableSpec) else environment.kind


def json_schema() -> dict[str, Any]:
    """The JSON schema of a spec, for editors that complete and check YAML."""
    schema = Spec.model_json_schema()
    known = [entry.name for entry in catalog.CATALOG]
    schema["$defs"]["AlgorithmSpec"]["properties"]["name"]["enum"] = known
    # One value stands for a list of one wherever several are allowed.
    for definition in (schema, *schema["$defs"].values()):
        for name, field in definition.get("properties", {}).items():
            if name in _GRIDS and field.get("type") == "array":
                about = {key: field.pop(key) for key in ("description", "title", "default") if key in field}
                definition["properties"][name] = {"anyOf": [field["items"], dict(field)], **about}
            elif name in _GRIDS:
                field["anyOf"] = [part for option in field["anyOf"] for part in (option, option.get("items")) if part]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Bandana experiment", **schema}


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
    places = [
        item.model_copy(update={"path": folder / item.path}) if isinstance(item, TableSpec) else item
        for item in spec.environment
    ]
    baseline = None if spec.baseline is None else folder / spec.baseline
    return spec.model_copy(update={"environment": places, "baseline": baseline})


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
        is_only = isinstance(node, yaml.ScalarNode)
        node, line = child
        if not is_only:
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
