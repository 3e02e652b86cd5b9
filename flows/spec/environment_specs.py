"""What a user writes of environments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    model_validator,
)

from bandana.algorithms.bandits.linear.phased_elimination import checked_features
from bandana.algorithms.environments.benchmark_functions import Benchmark, camelback, michalewicz, styblinski_tang
from bandana.algorithms.environments.logged import N_PATIENTS
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR, POOLED
from bandana.algorithms.rkhs import kernels
from bandana.flows.spec.episode_specs import EpisodesSpec, HypercubeSpec, KernelsSpec, ModesSpec, PatientsSpec
from bandana.flows.spec.fields import Count, Labelled, Positive, distinct

_ROUNDING = 1e-12


class BernoulliSpec(Labelled):
    """Arms that answer 1 with a given probability."""

    kind: Literal["bernoulli"]
    means: list[Annotated[float, Field(ge=0, le=1)]] = Field(min_length=2, description="Success probability of each arm.")


class ThorntonSpec(Labelled):
    """A randomized trial of cash incentives for learning one's HIV result; see `bandana.algorithms.environments.logged`."""

    kind: Literal["thornton_hiv"]


class Pin(NamedTuple):
    """The content that a user's file had when a run began; see `bandana.flows.spec.own_data`."""

    digest: str
    """A hash of a public file, an HMAC of a private one."""
    secret: Path
    """Where the secret of the HMAC lies."""


class TableSpec(Labelled):
    """A CSV file: a header of action names, then one user a row, one potential reward an action.

    The file is private: of what it holds, only what `public` names is ever logged, tracked or reported.
    """

    kind: Literal["table"]
    path: Path = Field(description="Path of the CSV file, relative to the spec.")
    low: float = Field(0.0, description="Lower end of the declared reward range.")
    high: float = Field(1.0, description="Upper end of the declared reward range.")
    public: Annotated[list[Literal["values", "means", "regret"]], AfterValidator(distinct)] = Field(
        [],
        description="What may be shown: `values` (the rows; audits replay them), `means` of the arms, `regret` curves. "
        "Nothing, if the file is about people who did not agree.",
    )
    _pin: Pin | None = PrivateAttr(None)

    @property
    def pin(self) -> Pin | None:
        """The content that this run plays on; None before it began."""
        return self._pin

    def with_pin(self, pin: Pin) -> TableSpec:
        """The same, bound to a content."""
        found = self.model_copy()
        found._pin = pin
        return found

    @model_validator(mode="after")
    def _ordered(self) -> TableSpec:
        if not self.low < self.high:
            raise ValueError(f"low must be below high, got low = {self.low}, high = {self.high}")
        return self


class _LinearSpec(Labelled):
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
    arms: Annotated[int, Field(ge=2)] | None = Field(None, description="Number of arms to draw.")
    dimension: Annotated[int, Field(ge=1)] | None = Field(None, description="Dimension of the arms that are drawn.")
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
    actions: Annotated[int, Field(ge=2)] = Field(description="Actions of each user.")
    dimension: Count = Field(description="Dimension of the action vectors.")
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


class RandhieSpec(Labelled):
    """People of the RAND health insurance experiment, who bring features; see `bandana.algorithms.environments.logged`."""

    kind: Literal["randhie"]


class DigitsSpec(Labelled):
    """Handwritten digits to be named, as a contextual bandit; see `bandana.algorithms.environments.logged`."""

    kind: Literal["digits"]
    projected: Annotated[int, Field(ge=1, le=64)] = Field(6, description="Dimensions that an image is projected to.")


Stationary = Literal[
    "squared-exponential", "matern-1/2", "matern-3/2", "matern-5/2", "product-matern-1/2", "product-matern-3/2",
    "product-matern-5/2",
]  # fmt: skip
KernelName = Stationary | Literal["linear"]
_OF_KERNEL = "Kernel whose space holds the mean reward; known to algorithms."


class _KernelSpec(Labelled, ABC):
    """Points of [-1, 1]^d and a kernel that measures how alike two of them are."""

    kernel: KernelName = Field("squared-exponential", description=_OF_KERNEL)
    lengthscale: Positive | None = Field(None, description="Lengthscale of the kernel, for points in [-1, 1]^d.")
    additive: bool | None = Field(None, description="Whether the kernel is the mean, over coordinates, of a kernel on each.")

    @property
    @abstractmethod
    def points_dimension(self) -> int:
        """Dimension d of the points."""

    @property
    @abstractmethod
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale, and whether the kernel is additive by default."""

    @property
    def scale(self) -> float:
        """The lengthscale in use: the given one, or the default."""
        return self.usual[0] if self.lengthscale is None else self.lengthscale

    def public_kernel(self) -> kernels.Kernel:
        """The kernel that algorithms are told."""
        scale, is_additive = self.scale, self.usual[1]
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
        scale, is_additive = self.scale, self.usual[1]
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

    See `bandana.algorithms.environments.kernel_functions`.
    """

    kind: Literal["rkhs-gap"]
    kernel: Stationary = Field("squared-exponential", description=_OF_KERNEL)
    actions: Annotated[int, Field(ge=2)] = Field(25, description="Actions of each user.")
    dimension: Count = Field(2, description="Dimension of the points, which lie in the unit ball.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale 0.5, and a kernel that is not additive."""
        return 0.5, False


class FunctionSpec(_KernelSpec):
    """A known function, with a fixed decision set of random points and the best one; see `benchmark_functions`."""

    kind: Literal["camelback", "styblinski-tang", "michalewicz"]
    actions: Annotated[int, Field(ge=2)] = Field(400, description="Points that can be chosen, the same in all rounds.")
    noise: Annotated[float, Field(ge=0)] = Field(0.1, description="Standard deviation of a reward.")

    def function(self) -> Benchmark:
        """The function to maximize."""
        return {"camelback": camelback, "styblinski-tang": styblinski_tang, "michalewicz": michalewicz}[self.kind]()

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.function().dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """The function's own lengthscale, and whether its kernel is additive."""
        function = self.function()
        return function.lengthscale, function.is_additive


class RkhsSpec(_KernelSpec):
    """A random function of a kernel's space on a finite pool: contexts are drawn, and each has the same actions."""

    kind: Literal["rkhs"]
    contexts: Count = Field(10, description="Number of contexts, drawn with equal probability.")
    unseen: Annotated[int, Field(ge=0)] = Field(
        0, description="How many of the contexts are never drawn; a record may hold them all the same."
    )
    actions: Annotated[int, Field(ge=2)] = Field(50, description="Actions of each context.")
    context_dimension: Count = Field(1, description="Coordinates of a context.")
    action_dimension: Count = Field(1, description="Coordinates of an action.")
    centers: Count | None = Field(None, description="Points of the pool whose kernels the function sums; 8 if left out.")
    norm: Positive = Field(1.0, description="Norm of the function in the kernel's space, which bounds mean rewards.")
    rewards: Literal["two-point", "gaussian"] = Field("two-point", description="Law of a reward.")
    noise: Annotated[float, Field(ge=0)] | None = Field(None, description="Standard deviation of Gaussian rewards.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return self.context_dimension + self.action_dimension

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale, sqrt(d) for the linear kernel and 0.3 for others, and a kernel that is not additive."""
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
    """Diabetes patients, of whom the one who gets worst is looked for; see `bandana.algorithms.environments.logged`."""

    kind: Literal["diabetes"]
    actions: Annotated[int, Field(ge=2, le=N_PATIENTS)] = Field(10, description="Patients that are shown in a round.")

    @property
    def points_dimension(self) -> int:
        """Dimension d of the points."""
        return 10

    @property
    def usual(self) -> tuple[float, bool]:
        """Default lengthscale and whether the kernel is additive: sqrt(10) and no if it is linear, 0.8 and yes if not."""
        return (math.sqrt(10.0), False) if self.kernel == "linear" else (0.8, True)


_AnySpec = (
    BernoulliSpec | ThorntonSpec | TableSpec | LinearSpec | SphereSpec | RandhieSpec | DigitsSpec
    | GapSpec | FunctionSpec | RkhsSpec | DiabetesSpec
    | HypercubeSpec | PatientsSpec | KernelsSpec | ModesSpec
)  # fmt: skip
EnvironmentSpec = Annotated[_AnySpec, Field(discriminator="kind")]
_KINDS: dict[type, str] = {
    LinearSpec: LINEAR, SphereSpec: CONTEXTUAL, RandhieSpec: CONTEXTUAL, DigitsSpec: CONTEXTUAL, GapSpec: KERNEL,
    FunctionSpec: POOLED, RkhsSpec: POOLED, DiabetesSpec: KERNEL,
}  # fmt: skip


def kind_of(environment: EnvironmentSpec) -> str:
    """finite, linear, contextual, kernel, pooled, linear-mixture or linear-mdp."""
    if isinstance(environment, EpisodesSpec):
        return environment.problem_kind
    return _KINDS.get(type(environment), FINITE)


def arms_of(environment: EnvironmentSpec) -> int | None:
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
