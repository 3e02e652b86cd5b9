"""What a user writes: an experiment as YAML, checked before anything starts, with the line of each mistake."""

from __future__ import annotations

import math
from itertools import product
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
from algorithms.bandits.linear import checked_features
from algorithms.entry import CONTEXTUAL, FINITE, KERNEL, LINEAR, POOLED
from algorithms.environments.kernel_functions import Benchmark, camelback, michalewicz, styblinski_tang
from algorithms.environments.logged import N_PATIENTS
from algorithms.numerics import kernels
from audits.limits import MIN_REPLAYS
from privacy_core import ApproxDP, Guarantee, PureDP, RenyiDP

T = TypeVar("T")
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]
Count = Annotated[int, Field(ge=1)]
_ROUNDING = 1e-12
_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
PARAMETERS = (
    "beta", "failure", "beta_scale", "ridge", "switch", "length_scale", "n_features", "norm_bound", "reading", "error_scale",
)  # fmt: skip
"""Parameters of algorithms: which of them one takes, `bandana list` shows."""
_GRIDS = ("environment", "alpha", "epsilon", "delta", *PARAMETERS, "calibrations", "formats")


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


class _LinearSpec(_EnvironmentSpec):
    """Mean rewards that are linear in a vector of each action, with a parameter theta that nobody knows."""

    theta: list[float] | None = Field(None, min_length=1, description="The parameter; drawn if left out.")
    signal: Annotated[float, Field(gt=0, le=1)] = Field(
        0.8, description="Norm of a drawn theta, in units of half the reward range: 1 is the easiest."
    )
    low: float = Field(description="Least reward.")
    high: float = Field(description="Largest reward.")

    @model_validator(mode="after")
    def _ordered(self) -> _LinearSpec:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low = {self.low}, high = {self.high}")
        return self


class LinearSpec(_LinearSpec):
    """Arms with known features: given, or drawn from the unit sphere."""

    kind: Literal["linear"]
    features: list[list[float]] | None = Field(None, description="One vector an arm, of norm at most 1; they must span.")
    arms: Annotated[int, Field(ge=2)] | None = Field(None, description="How many to draw.")
    dimension: Annotated[int, Field(ge=1)] | None = Field(None, description="Of arms that are drawn.")
    rewards: Literal["bernoulli", "uniform"] = Field("bernoulli", description="Law of a reward.")
    low: float = Field(0.0, description="Least reward.")
    high: float = Field(1.0, description="Largest reward.")

    @model_validator(mode="after")
    def _complete(self) -> LinearSpec:
        drawn = (self.arms, self.dimension)
        if (self.features is None) != all(given is not None for given in drawn):
            given = sorted({"features", "arms", "dimension"} & self.model_fields_set)
            told = ", ".join(given) or "neither"
            raise ValueError(f"features, or arms and dimension, must be given, and not both; got {told}")
        if self.features is not None:
            if any(given is not None for given in drawn):
                raise ValueError("arms and dimension are those of the features: leave them out")
            checked_features(self.features)
        elif (self.arms or 0) < (self.dimension or 0):
            raise ValueError(f"arms must be at least dimension = {self.dimension}, to span the space, got {self.arms}")
        d = self.dimension if self.features is None else len(self.features[0])
        if self.theta is not None and len(self.theta) != d:
            raise ValueError(f"theta must have {d} entries, one a dimension, got {len(self.theta)}")
        if self.theta is not None and self.features is None and math.hypot(*self.theta) > 1 + _ROUNDING:
            raise ValueError(f"theta must have norm at most 1 where arms are drawn, got {math.hypot(*self.theta):.6g}")
        for arm, row in enumerate(self.features or ()):
            value = math.fsum(x * t for x, t in zip(row, self.theta or (), strict=False))
            if abs(value) > 1 + _ROUNDING:
                raise ValueError(f"theta must have <theta, features> in [-1, 1]; arm {arm} has {value:.6g}: scale it down")
        return self


class SphereSpec(_LinearSpec):
    """Users who bring actions drawn from the uniform unit sphere."""

    kind: Literal["sphere"]
    actions: Annotated[int, Field(ge=2)] = Field(description="Of each user.")
    dimension: Count = Field(description="Of the vectors.")
    rewards: Literal["two-point", "uniform"] = Field("two-point", description="Law of a reward.")
    low: float = Field(-1.0, description="Least reward.")
    high: float = Field(1.0, description="Largest reward.")

    @model_validator(mode="after")
    def _complete(self) -> SphereSpec:
        if self.theta is not None and len(self.theta) != self.dimension:
            raise ValueError(f"theta must have {self.dimension} entries, one a dimension, got {len(self.theta)}")
        half = (self.high - self.low) / 2
        if self.theta is not None and math.hypot(*self.theta) > half * (1 + _ROUNDING):
            norm = math.hypot(*self.theta)
            raise ValueError(f"theta must have norm at most {half:g}, half the width of the range, got {norm:.6g}")
        return self


class RandhieSpec(_EnvironmentSpec):
    """People of the RAND health insurance experiment, who bring features; see `algorithms.environments.logged`."""

    kind: Literal["randhie"]


class DigitsSpec(_EnvironmentSpec):
    """Handwritten digits to be named, as a contextual bandit; see `algorithms.environments.logged`."""

    kind: Literal["digits"]
    projected: Annotated[int, Field(ge=1, le=64)] = Field(6, description="Dimensions that an image is projected to.")


Stationary = Literal[
    "squared-exponential", "matern-1/2", "matern-3/2", "matern-5/2", "product-matern-1/2", "product-matern-3/2",
    "product-matern-5/2",
]  # fmt: skip
KernelName = Stationary | Literal["linear"]
_OF_KERNEL = "Of the space of the mean reward; known to algorithms."


class _KernelSpec(_EnvironmentSpec):
    """Points of [-1, 1]^d, and a kernel that says how alike two of them are."""

    kernel: KernelName = Field("squared-exponential", description=_OF_KERNEL)
    lengthscale: Positive | None = Field(None, description="Of the kernel, where points lie in [-1, 1]^d.")
    additive: bool | None = Field(None, description="Whether it is the mean over coordinates of the kernel on each.")

    @property
    def points_dimension(self) -> int:
        """D of the points."""
        raise NotImplementedError

    @property
    def usual(self) -> tuple[float, bool]:
        """The lengthscale that is taken if none is given, and whether the kernel is additive."""
        raise NotImplementedError

    def public_kernel(self) -> kernels.Kernel:
        """The kernel."""
        usual, is_additive = self.usual
        scale = usual if self.lengthscale is None else self.lengthscale
        family, _, halves = self.kernel.rpartition("-") if "/" in self.kernel else (self.kernel, "", "")
        smoothness = {"1/2": 0.5, "3/2": 1.5, "5/2": 2.5}.get(halves, 0.0)
        part: kernels.Kernel
        match family:
            case "matern":
                part = kernels.Matern(smoothness, scale)
            case "product-matern":
                part = kernels.ProductMatern(smoothness, scale)
            case "linear":
                part = kernels.Linear(scale)
            case _:
                part = kernels.SquaredExponential(scale)
        if is_additive if self.additive is None else self.additive:
            return kernels.Additive.of_coordinates(part, self.points_dimension)
        return part

    @model_validator(mode="after")
    def _of_norm_1(self) -> _KernelSpec:
        if self.kernel != "linear":
            return self
        usual, is_additive = self.usual
        scale = usual if self.lengthscale is None else self.lengthscale
        is_sum = is_additive if self.additive is None else self.additive
        least = 1.0 if is_sum else math.sqrt(self.points_dimension)
        if scale < least * (1 - _ROUNDING):
            raise ValueError(
                f"{'lengthscale' if self.lengthscale is not None else 'kernel'}: a linear kernel needs a lengthscale of at "
                f"least {least:.6g}, so that points of [-1, 1]^{self.points_dimension} have features of norm at most 1, "
                f"got {scale:g}"
            )
        return self


class GapSpec(_KernelSpec):
    """Random functions of a kernel's space, one a replicate: one action of each user is good, the others are not.

    See `algorithms.environments.kernel_functions`.
    """

    kind: Literal["rkhs-gap"]
    kernel: Stationary = Field("squared-exponential", description=_OF_KERNEL)
    actions: Annotated[int, Field(ge=2)] = Field(25, description="Of each user.")
    dimension: Count = Field(2, description="Of the points, which lie in the unit ball.")

    @property
    def points_dimension(self) -> int:
        """D of the points."""
        return self.dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """See `_KernelSpec`."""
        return 0.5, False


class FunctionSpec(_KernelSpec):
    """A known function, with a fixed decision set of random points and the best one; see `kernel_functions`."""

    kind: Literal["camelback", "styblinski-tang", "michalewicz"]
    actions: Annotated[int, Field(ge=2)] = Field(400, description="Points that can be chosen, the same in all rounds.")
    noise: Annotated[float, Field(ge=0)] = Field(0.1, description="Standard deviation of a reward.")

    def function(self) -> Benchmark:
        """What is maximized."""
        return {"camelback": camelback, "styblinski-tang": styblinski_tang, "michalewicz": michalewicz}[self.kind]()

    @property
    def points_dimension(self) -> int:
        """D of the points."""
        return self.function().dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """See `_KernelSpec`."""
        function = self.function()
        return function.lengthscale, function.is_additive


class RkhsSpec(_KernelSpec):
    """A random function of a kernel's space on a finite pool: contexts are drawn, and each has the same actions."""

    kind: Literal["rkhs"]
    contexts: Count = Field(10, description="How many there are, drawn with the same probability.")
    unseen: Annotated[int, Field(ge=0)] = Field(0, description="Of them, never drawn: a record may hold them all the same.")
    actions: Annotated[int, Field(ge=2)] = Field(50, description="Of each context.")
    context_dimension: Count = Field(1, description="Coordinates of a context.")
    action_dimension: Count = Field(1, description="Coordinates of an action.")
    centers: Count | None = Field(None, description="Points of the pool whose kernels the function sums; 8 if left out.")
    norm: Positive = Field(1.0, description="Of the function in the kernel's space: a bound on mean rewards.")
    rewards: Literal["two-point", "gaussian"] = Field("two-point", description="Law of a reward.")
    noise: Annotated[float, Field(ge=0)] | None = Field(None, description="Standard deviation of Gaussian rewards.")

    @property
    def points_dimension(self) -> int:
        """D of the points."""
        return self.context_dimension + self.action_dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """See `_KernelSpec`."""
        return (math.sqrt(self.points_dimension) if self.kernel == "linear" else 0.3), False

    @property
    def n_centers(self) -> int:
        """How many kernels the function sums: at most one a point of the pool."""
        return min(8, self.contexts * self.actions) if self.centers is None else self.centers

    @model_validator(mode="after")
    def _consistent(self) -> RkhsSpec:
        if self.noise is not None and self.rewards != "gaussian":
            raise ValueError("noise is that of gaussian rewards: two-point ones have none to choose")
        if self.unseen >= self.contexts:
            raise ValueError(f"unseen must be below contexts = {self.contexts}, got {self.unseen}")
        if (self.centers or 1) > self.contexts * self.actions:
            raise ValueError(
                f"centers must be at most contexts times actions = {self.contexts * self.actions}, got {self.centers}"
            )
        return self


class DiabetesSpec(_KernelSpec):
    """Diabetes patients, of whom the one who gets worst is looked for; see `algorithms.environments.logged`."""

    kind: Literal["diabetes"]
    actions: Annotated[int, Field(ge=2, le=N_PATIENTS)] = Field(10, description="Patients that are shown in a round.")

    @property
    def points_dimension(self) -> int:
        """D of the points."""
        return 10

    @property
    def usual(self) -> tuple[float, bool]:
        """See `_KernelSpec`."""
        return (math.sqrt(10.0), False) if self.kernel == "linear" else (0.8, True)


_AnySpec = (
    BernoulliSpec | ThorntonSpec | TableSpec | LinearSpec | SphereSpec | RandhieSpec | DigitsSpec
    | GapSpec | FunctionSpec | RkhsSpec | DiabetesSpec
)  # fmt: skip
EnvironmentSpec = Annotated[_AnySpec, Field(discriminator="kind")]
_KINDS: dict[type, str] = {
    LinearSpec: LINEAR, SphereSpec: CONTEXTUAL, RandhieSpec: CONTEXTUAL, DigitsSpec: CONTEXTUAL, GapSpec: KERNEL,
    FunctionSpec: POOLED, RkhsSpec: POOLED, DiabetesSpec: KERNEL,
}  # fmt: skip


def kind_of(environment: EnvironmentSpec) -> str:
    """finite, linear, contextual, kernel or pooled."""
    return _KINDS.get(type(environment), FINITE)


class PrivacySpec(_Strict):
    """Levels of privacy: every combination of what is given. Which fields an algorithm takes, follows from its guarantee."""

    epsilon: OneOrSeveral[Positive] = Field(description="What is promised, one or several.")
    alpha: OneOrSeveral[Annotated[float, Field(gt=1)]] | None = Field(None, description="Renyi order, of a renyi guarantee.")
    delta: OneOrSeveral[Share] | None = Field(None, description="Of an approximate guarantee.")

    def levels(self) -> list[Guarantee]:
        """Each combination, as the guarantee that its fields make."""
        if self.alpha is not None:
            return [RenyiDP(alpha, epsilon) for alpha in self.alpha for epsilon in self.epsilon]
        if self.delta is not None:
            return [ApproxDP(epsilon, delta) for delta in self.delta for epsilon in self.epsilon]
        return [PureDP(epsilon) for epsilon in self.epsilon]


class AlgorithmSpec(_Strict):
    """One algorithm of the catalog: every parameter with every calibration and privacy level."""

    name: str = Field(description="As `bandana list` shows it.")
    beta: OneOrSeveral[Positive] | None = Field(None, description="Exploration of an index, one or several.")
    failure: OneOrSeveral[Share] | None = Field(None, description="Of confidence intervals; 1 / horizon if left out.")
    beta_scale: OneOrSeveral[Positive] | None = Field(None, description="Factor on widths; 1 is what theorems ask for.")
    ridge: OneOrSeveral[Positive] | None = Field(None, description="Lambda of a regression.")
    switch: OneOrSeveral[Positive] | None = Field(None, description="C: updates when the determinant grew by 1 + C.")
    length_scale: OneOrSeveral[Positive] | None = Field(None, description="Factor on the length of epochs.")
    n_features: OneOrSeveral[Count] | None = Field(None, description="Of a kernel, at most so many.")
    norm_bound: OneOrSeveral[Positive] | None = Field(
        None, description="B: the norm of the mean reward in the kernel's space."
    )
    error_scale: OneOrSeveral[Positive] | None = Field(
        None, description="Factor on the parts of widths that are not privacy noise."
    )
    reading: OneOrSeveral[Annotated[int, Field(ge=1, le=5)]] | None = Field(
        None, description="Which of a paper's own formulas for the printed noise; the last is what its proof asks for."
    )
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
        """What the name of a cell must tell, because there are several of it."""
        level = {} if self.privacy is None else {"alpha": self.privacy.alpha, "delta": self.privacy.delta}
        given = {name: getattr(self, name) for name in PARAMETERS} | level
        return tuple(name for name, values in given.items() if values is not None and len(values) > 1)


_EXAMPLES = {
    "renyi": "{alpha: 2, epsilon: [1]}",
    "pure": "{epsilon: [1]}",
    "approximate": "{epsilon: [1], delta: 1.0e-5}",
}


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
            if (n_actions := _arms_of(environment)) is None:
                continue
            for name, value in (("horizon", self.horizon), ("audit.rounds", self.audit.rounds)):
                least = n_actions + (name == "audit.rounds")
                if value < least:
                    raise ValueError(f"{name} must be at least {least} for {n_actions} arms, got {value}")
        for environment in self.environment:
            for i, algorithm in enumerate(self.algorithms):
                plays_on, kind = catalog.find(algorithm.name).plays_on, kind_of(environment)
                if kind not in plays_on:
                    raise ValueError(
                        f"algorithms.{i}.name: {algorithm.name} plays on {' and '.join(plays_on)} environments, and "
                        f"{label_of(environment)} is {kind}; `bandana list` shows what plays on it"
                    )
        labels = [label_of(environment) for environment in self.environment]
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"environment: {twice[0]!r} stands twice; give each a label of its own")
        return self


def _arms_of(environment: EnvironmentSpec) -> int | None:
    """How many arms it has, where the spec says it."""
    match environment:
        case BernoulliSpec():
            return len(environment.means)
        case LinearSpec():
            return environment.arms if environment.features is None else len(environment.features)
    return None


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
    first = message.split(" ", 1)[0] if item["type"] == "value_error" else ""
    named = [int(part) if part.isdigit() else part for part in first.rstrip(":,").split(".")]
    if first.endswith(":"):
        message = message.removeprefix(first).lstrip()
    parts = (*item["loc"], *named)
    for place, part in enumerate(parts, start=1):
        child = _child(node, part)
        if child is None:
            if node is not None and item["type"] in ("missing", "extra_forbidden") and place == len(item["loc"]):
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
    is_told = item["type"] == "value_error" and repr(value) in message
    told = "" if is_told or isinstance(value, dict | list | BaseModel) else f", got {value!r}"
    return f"{source}:{line}: {field}: {message}{told}"


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
