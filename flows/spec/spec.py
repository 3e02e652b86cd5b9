"""What a user writes: an experiment as YAML, checked before anything starts, with the line of each mistake."""

from __future__ import annotations

import math
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import (
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from bandana.algorithms import catalog
from bandana.audits.outcome import MIN_REPLAYS
from bandana.flows.spec.environment_kinds import EnvironmentSpec
from bandana.flows.spec.fields import NAME, Count, OneOrSeveral, Positive, Share, Strict
from bandana.flows.spec.mistakes import SpecError, explain
from bandana.privacy_core import ApproxDP, Guarantee, PureDP, RenyiDP

if TYPE_CHECKING:
    pass

PARAMETERS = (
    "beta", "failure", "beta_scale", "ridge", "switch", "length_scale", "n_features", "norm_bound", "reading", "error_scale",
    "batches", "n_batches",
)  # fmt: skip
"""Parameters of algorithms: which of them one takes, `bandana list` shows."""
_GRIDS = ("environment", "alpha", "epsilon", "delta", *PARAMETERS, "calibrations", "formats")


class PrivacySpec(Strict):
    """Levels of privacy: every combination of what is given. Which fields an algorithm takes, follows from its guarantee."""

    epsilon: OneOrSeveral[Positive] = Field(description="Epsilon that the algorithm promises, one or several.")
    alpha: OneOrSeveral[Annotated[float, Field(gt=1)]] | None = Field(None, description="Order of a Renyi guarantee.")
    delta: OneOrSeveral[Share] | None = Field(None, description="Delta of an approximate guarantee.")

    def levels(self) -> list[Guarantee]:
        """Each combination, as the guarantee that its fields make."""
        if self.alpha is not None:
            return [RenyiDP(alpha, epsilon) for alpha in self.alpha for epsilon in self.epsilon]
        if self.delta is not None:
            return [ApproxDP(epsilon, delta) for delta in self.delta for epsilon in self.epsilon]
        return [PureDP(epsilon) for epsilon in self.epsilon]


class AlgorithmSpec(Strict):
    """One algorithm of the catalog: every parameter with every calibration and privacy level."""

    name: str = Field(description="Algorithm name, as `bandana list` shows it.")
    beta: OneOrSeveral[Positive] | None = Field(None, description="Exploration of an index, one or several.")
    failure: OneOrSeveral[Share] | None = Field(
        None, description="Failure probability of confidence intervals; 1 / horizon if left out."
    )
    beta_scale: OneOrSeveral[Positive] | None = Field(None, description="Factor on confidence widths; theorems require 1.")
    ridge: OneOrSeveral[Positive] | None = Field(None, description="Regularizer lambda of a regression.")
    switch: OneOrSeveral[Positive] | None = Field(
        None, description="C: the policy is updated when the determinant has grown by a factor of 1 + C."
    )
    length_scale: OneOrSeveral[Positive] | None = Field(None, description="Factor on the length of epochs.")
    n_features: OneOrSeveral[Count] | None = Field(None, description="Largest number of features of a kernel.")
    norm_bound: OneOrSeveral[Positive] | None = Field(
        None, description="B: the norm of the mean reward in the kernel's space."
    )
    error_scale: OneOrSeveral[Positive] | None = Field(
        None, description="Factor on the parts of widths that are not privacy noise."
    )
    reading: OneOrSeveral[Annotated[int, Field(ge=1, le=5)]] | None = Field(
        None,
        description="Which of a paper's own formulas for the printed noise to use; the last one is what its proof requires.",
    )
    batches: OneOrSeveral[Annotated[int, Field(ge=0, le=3)]] | None = Field(
        None, description="When the policy is updated: 1 evenly, 2 ever more rarely, 3 as the determinant grows; 0: default."
    )
    n_batches: OneOrSeveral[Count] | None = Field(
        None, description="Number of batches; the algorithm's default if left out."
    )
    calibrations: OneOrSeveral[str] | None = Field(
        None, description="Noise calibrations, one or several; all of the algorithm's if left out."
    )
    privacy: PrivacySpec | None = Field(None, description="Guarantee of a private algorithm.")

    @field_validator("name")
    @classmethod
    def _known(cls, value: str) -> str:
        catalog.find(value)
        return value

    @model_validator(mode="after")
    def _consistent(self) -> AlgorithmSpec:
        entry = catalog.find(self.name)
        for parameter in PARAMETERS:
            if getattr(self, parameter) is not None and parameter not in entry.parameters:
                known = ", ".join(entry.parameters)
                raise ValueError(f"{parameter} is no parameter of {self.name}, which takes: {known}")
        if entry.promise is None:
            for field in ("calibrations", "privacy"):
                if getattr(self, field) is not None:
                    raise ValueError(f"{field}: {self.name} is not private and takes no field {field}")
            return self
        if self.privacy is None:
            raise ValueError(f"{self.name} needs the field privacy, for example: privacy: {_EXAMPLES[str(entry.guarantee)]}")
        for field, guarantee in (("alpha", "renyi"), ("delta", "approximate")):
            if (getattr(self.privacy, field) is not None) != (entry.guarantee == guarantee):
                example, given = _EXAMPLES[str(entry.guarantee)], ", ".join(sorted(self.privacy.model_fields_set))
                raise ValueError(
                    f"privacy of {self.name} is of the kind {entry.guarantee}, got the fields {given}; for example: "
                    f"privacy: {example}"
                )
        for calibration in self.calibrations or ():
            if calibration not in entry.calibrations:
                raise ValueError(
                    f"calibrations of {self.name} must be among {', '.join(entry.calibrations)}, got {calibration!r}"
                )
        return self

    def parameters(self) -> list[dict[str, float]]:
        """Every combination of the parameters that are given."""
        given = {name: values for name in PARAMETERS if (values := getattr(self, name)) is not None}
        return [dict(zip(given, values, strict=True)) for values in product(*given.values())]

    def told(self) -> tuple[str, ...]:
        """Parameters with several values, which the cell's label must show."""
        level = {} if self.privacy is None else {"alpha": self.privacy.alpha, "delta": self.privacy.delta}
        given = {name: getattr(self, name) for name in PARAMETERS} | level
        return tuple(name for name, values in given.items() if values is not None and len(values) > 1)


_EXAMPLES = {
    "renyi": "{alpha: 2, epsilon: [1]}",
    "pure": "{epsilon: [1]}",
    "approximate": "{epsilon: [1], delta: 1.0e-5}",
}


class AuditSpec(Strict):
    """Audit effort."""

    rounds: Count = Field(64, description="Users in each replay: rounds or episodes.")
    replays: Annotated[int, Field(ge=MIN_REPLAYS)] = Field(
        100_000, description="Replays on each side of each neighboring pair."
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = Field(
        0.95, description="Joint confidence level of all bounds of one audit."
    )
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(1e-5, description="Delta at which epsilons are stated.")
    examples: Count = Field(200, description="Cases tried by the deterministic audit.")


class ReportSpec(Strict):
    """Which files a report is written as."""

    formats: OneOrSeveral[Literal["html", "pdf", "json"]] = Field(
        ["html", "pdf", "json"], description="File formats, one or several."
    )


class ExecutionSpec(Strict):
    """How patient an experiment is; no number depends on it."""

    block_timeout: Positive = Field(3600.0, description="Time limit for one block of replicates, in seconds.")
    audit_timeout: Positive = Field(3600.0, description="Time limit for one audit, in seconds.")
    retries: Annotated[int, Field(ge=0, le=10)] = Field(
        2, description="Retries after an infrastructure fault; a mistake in the spec or the code is never retried."
    )


class Spec(Strict):
    """One experiment: every environment with every algorithm, calibration and privacy level."""

    name: Annotated[str, Field(pattern=NAME, max_length=80)] = Field(
        description="Suite name; also names its folder and MLflow experiment."
    )
    title: str = Field("", description="Title of the report.")
    description: str = Field("", description="What the experiment shows, in one line.")
    seed: Annotated[int, Field(ge=0)] = Field(description="Root of all seeds.")
    environment: OneOrSeveral[EnvironmentSpec] = Field(description="Environments to play on, one or several.")
    horizon: Count = Field(description="Rounds or episodes, one user each.")
    replications: Count = Field(description="Independent replications of each cell.")
    block_size: Count = Field(100, description="Replicates that are computed and stored together.")
    algorithms: list[AlgorithmSpec] = Field(min_length=1, description="Algorithms to compare.")
    audit: AuditSpec = Field(AuditSpec(), description="Audit effort.")
    report: ReportSpec = Field(ReportSpec(), description="Report files to write.")
    execution: ExecutionSpec = Field(ExecutionSpec(), description="Timeouts and retries.")
    baseline: Path | None = Field(None, description="File of results to compare with; path relative to the spec.")

    @model_validator(mode="after")
    def _fits(self) -> Spec:
        for environment in self.environment:
            if (n_actions := environment.n_arms) is None:
                continue
            for name, value in (("horizon", self.horizon), ("audit.rounds", self.audit.rounds)):
                least = n_actions + (name == "audit.rounds")
                if value < least:
                    raise ValueError(f"{name} must be at least {least} for {n_actions} arms, got {value}")
        for environment in self.environment:
            for i, algorithm in enumerate(self.algorithms):
                plays_on, kind = catalog.find(algorithm.name).plays_on, environment.problem_kind
                if kind not in plays_on:
                    raise ValueError(
                        f"algorithms.{i}.name: {algorithm.name} plays on {' and '.join(plays_on)} environments, and "
                        f"{environment.shown_label} is {kind}; `bandana list` shows what plays on it"
                    )
        labels = [environment.shown_label for environment in self.environment]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"environment: {twice[0]!r} stands twice; give each a label of its own")
        return self


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
            elif name in _GRIDS and "anyOf" in field:
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
        raise SpecError("\n".join(explain(item, tree, source) for item in error.errors())) from error
    places = [item if item.file is None else item.with_file(folder / item.file) for item in spec.environment]
    baseline = None if spec.baseline is None else folder / spec.baseline
    return spec.model_copy(update={"environment": places, "baseline": baseline})


def is_finite(value: float | None) -> bool:
    """Whether a number can be logged: MLflow stores an infinity silently as 1.8e308."""
    return value is not None and math.isfinite(value)


def standing_alone(spec: Spec, text: str) -> str:
    """The spec's text with the places of its files made absolute, so that it can be run from anywhere."""
    places = [item.file for item in spec.environment]
    if not any(places) and spec.baseline is None:
        return text
    import yaml

    tree = yaml.safe_load(text)
    listed = tree["environment"] if isinstance(tree["environment"], list) else [tree["environment"]]
    for item, place in zip(listed, places, strict=True):
        if place is not None:
            item["path"] = str(place.absolute())
    if spec.baseline is not None:
        tree["baseline"] = str(spec.baseline.absolute())
    # As it is and on one line: a report finds the places, and shows names alone.
    return str(yaml.safe_dump(tree, sort_keys=False, allow_unicode=True, width=sys.maxsize))
