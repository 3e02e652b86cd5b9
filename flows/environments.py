"""Data of a spec: what benchmarks play on, what audits replay, how both are described, and what may be shown."""

from __future__ import annotations

import csv
import math
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from pydantic import BaseModel

from algorithms.entry import CONTEXTUAL, FINITE, FROM_USERS, KERNEL, LINEAR, POOLED, Problem
from algorithms.environments.bandits import BernoulliArms
from algorithms.environments.contexts import ContextLaw, SphereContexts, check_assumption_2, sphere_table
from algorithms.environments.kernel_functions import (
    Benchmark,
    GapFunctions,
    PooledFunction,
    decision_set,
    gap_points,
    product_pool,
    random_function,
)
from algorithms.environments.linear import LinearArms, random_arms
from algorithms.environments.logged import (
    ARM_NAMES,
    DIGIT_NAMES,
    N_IMAGES,
    RANDHIE_ARMS,
    diabetes_table,
    digits_table,
    people_table,
    randhie,
    randhie_table,
    resampled_arms,
    thornton_hiv,
)
from algorithms.environments.tables import ContextTable, RewardTable, random_table
from algorithms.numerics.pool import Pool
from algorithms.observers import ContextualRegretCurve, RegretCurve
from algorithms.protocol import FloatArray, IntArray, Stream
from flows.specs import (
    BernoulliSpec,
    DiabetesSpec,
    DigitsSpec,
    EnvironmentSpec,
    FunctionSpec,
    GapSpec,
    LinearSpec,
    RandhieSpec,
    RkhsSpec,
    Spec,
    SpecError,
    SphereSpec,
    TableSpec,
    ThorntonSpec,
    label_of,
)
from privacy_core import Interval

Item = TypeVar("Item", bound=BaseModel)
_AUDIT_TABLE, _FEATURES, _THETA, _ROWS, _POOL, _FUNCTION = 1, 4, 5, 6, 7, 8
_MOST_LISTED = 32
_LAWS: dict[tuple[Any, ...], ContextLaw] = {}
_PSEUDO = "Regret is the sum of mean-reward gaps of the arms played (pseudo-regret)."
_CONTEXTUAL_PSEUDO = "Regret is the sum of mean-reward gaps to each user's best action (pseudo-regret)."
_MARGIN = 2.0
"""Deviations of normal noise by which a reward range is wider than the means."""
_HINDSIGHT = "Regret is against the best action of each user, in hindsight."


class Environment(ABC, Generic[Item]):
    """One environment of a spec.

    Attributes:
      spec: the experiment.
      item: the environment in it.
      kind: finite, linear, contextual, kernel or pooled.
      is_drawn: whether rewards are drawn by the model of its kind: independent with fixed means, linear in known features
        where there are any. Of fixed rows no regret bound holds.
    """

    kind = FINITE
    is_drawn = True

    def __init__(self, spec: Spec, item: Item) -> None:
        self.spec, self.item = spec, item

    def __getstate__(self) -> dict[str, Any]:
        # Data that were read stay where they were read: a worker reads its own.
        return {"spec": self.spec, "item": self.item}

    @property
    def label(self) -> str:
        """What cells and reports call it; unique in a spec."""
        return label_of(self.item)  # type: ignore[arg-type]

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """What the actions are called."""

    @property
    def n_actions(self) -> int:
        """Number of arms, or of actions that each user brings."""
        return len(self.names)

    @property
    def reward_range(self) -> Interval:
        """The declared range of a reward."""
        return Interval(0.0, 1.0)

    @property
    def means(self) -> FloatArray:
        """(n_actions,) the mean rewards that regret is counted with; none where users bring the actions."""
        return np.empty(0)

    @abstractmethod
    def stream(self, seed: np.random.SeedSequence) -> Stream:
        """What one block of replicates plays on."""

    @abstractmethod
    def audit_table(self) -> RewardTable:
        """What audits replay: as many users as the spec asks for."""

    @abstractmethod
    def about(self) -> tuple[str, str, str]:
        """For the report: name, description, and what regret is."""

    def problem(self, horizon: int) -> Problem:
        """What an algorithm is told of it."""
        return Problem(self.n_actions, self.reward_range, horizon)

    def regret(self, stream: Stream, grid: IntArray, n_reps: int) -> RegretCurve | ContextualRegretCurve:
        """What observes a run's regret."""
        return RegretCurve(self.means, grid, n_reps)

    def shows(self, what: str) -> bool:
        """Whether `values`, `means` or `regret` may be logged, tracked and reported: of public or made-up data all may."""
        return True

    @property
    def most_users(self) -> dict[str, int]:
        """Users that there are, for `horizon` and `audit.rounds`, where they are limited."""
        return {}

    def check(self) -> None:
        """Reads the data and refuses what does not fit, before any work starts.

        Raises:
          SpecError: the data are missing or malformed, or too few for the horizon or the audit.
        """
        for name, value, least in (
            ("horizon", self.spec.horizon, self.n_actions),
            ("audit.rounds", self.spec.audit.rounds, self.n_actions + 1),
        ):
            if self.kind not in FROM_USERS and value < least:
                raise SpecError(f"{name}: must be at least {least} for {self.n_actions} arms, got {value}")
            if (most := self.most_users.get(name)) is not None and value > most:
                raise SpecError(f"{name}: {self._whose(name)} has {most} users, got {value}")

    def _whose(self, name: str) -> str:
        return self.label

    def describe(self) -> dict[str, Any]:
        """For the report."""
        name, text, estimator = self.about()
        return {
            "label": self.label,
            "name": name,
            "description": text,
            "estimator": estimator,
            "horizon": self.spec.horizon,
            "actions": list(self.names),
            "means": [float(m) for m in self.means] if self.shows("means") else [],
        }

    def _seed(self, purpose: int) -> np.random.SeedSequence:
        return np.random.SeedSequence(self.spec.seed, spawn_key=(purpose,))


class _Bernoulli(Environment[BernoulliSpec]):
    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"arm {a}" for a in range(len(self.item.means)))

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.item.means)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return BernoulliArms(self.item.means, self.spec.horizon, seed)

    def audit_table(self) -> RewardTable:
        generator = np.random.Generator(np.random.SFC64(self._seed(_AUDIT_TABLE)))
        drawn = generator.random((self.spec.audit.rounds, self.n_actions)) < self.means
        return RewardTable(drawn.astype(float), self.reward_range)

    def about(self) -> tuple[str, str, str]:
        return "bernoulli", "Arms that answer 1 with a fixed probability, else 0.", _PSEUDO


class _Thornton(Environment[ThorntonSpec]):
    names = ARM_NAMES

    @property
    def means(self) -> FloatArray:
        return np.array([group.mean() for group in thornton_hiv()])

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return resampled_arms(self.spec.horizon, seed)

    def audit_table(self) -> RewardTable:
        return people_table(self._seed(_AUDIT_TABLE), self.spec.audit.rounds)

    @property
    def most_users(self) -> dict[str, int]:
        return {"audit.rounds": min(len(group) for group in thornton_hiv())}

    def _whose(self, name: str) -> str:
        return "the smallest arm of thornton_hiv"

    def about(self) -> tuple[str, str, str]:
        n = sum(len(group) for group in thornton_hiv())
        return (
            "thornton_hiv",
            f"A randomized trial in rural Malawi (Thornton 2008, data of the package causaldata): {n} people were "
            "offered a random cash incentive to come and learn the result of their HIV test. The five arms are "
            "amounts, the reward is 1 if the person came.",
            "Regret: each pull of an arm draws one of its people uniformly with replacement, so the mean reward of "
            "an arm is unbiased for its empirical mean and any horizon can be played; a round is a simulated "
            "participant. Audit: the people themselves, without replacement, one person a cell of the table, so "
            "that replacing a record is replacing a person.",
        )


class _Table(Environment[TableSpec]):
    """A user's file. Of a private one only what its field `public` names may be shown.

    Regret and means are computed from the rows, and no claim covers them; whoever shows the rows shows the rest too.
    """

    is_drawn = False

    @cached_property
    def table(self) -> RewardTable:
        return read_table(self.item)

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names

    @property
    def reward_range(self) -> Interval:
        return self.table.reward_range

    @property
    def means(self) -> FloatArray:
        return np.asarray(self.table.rewards[: self.spec.horizon].mean(axis=0))

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self.table

    def audit_table(self) -> RewardTable:
        """Private rows are not replayed: scores of thousands of replays tell more of them than the claim covers.

        A claim holds for all data, so that rewards drawn at the ends of the declared range test it as well.
        """
        rounds = self.spec.audit.rounds
        if not self.shows("values"):
            return random_table(rounds, self.n_actions, self.reward_range, self.spec.seed)
        return RewardTable(self.table.rewards[:rounds], self.reward_range, self.names)

    def shows(self, what: str) -> bool:
        return what in self.item.public or "values" in self.item.public

    @property
    def most_users(self) -> dict[str, int]:
        n = self.table.n_users
        return {"horizon": n, **({"audit.rounds": n} if self.shows("values") else {})}

    def _whose(self, name: str) -> str:
        return "the table"

    def about(self) -> tuple[str, str, str]:
        text = "A table of potential rewards, one user a row."
        estimator = "Regret is against the best single arm in hindsight, on the mean rewards of the rows played."
        if not self.shows("values"):
            text += " The file is private: its rows are not shown, and audits replay rewards drawn at random."
        if not self.shows("regret"):
            estimator = "Regret is withheld: the spec does not declare it public, and no privacy claim covers it."
        return self.item.path.name, text, estimator


class _Linear(Environment[LinearSpec]):
    kind = LINEAR

    @cached_property
    def arms(self) -> LinearArms:
        """Its features and its parameter; what it answers is not used."""
        return self._drawn(np.random.SeedSequence(0))

    @property
    def names(self) -> tuple[str, ...]:
        return self.arms.names

    @property
    def reward_range(self) -> Interval:
        return Interval(self.item.low, self.item.high)

    @property
    def means(self) -> FloatArray:
        return self.arms.means

    def _drawn(self, seed: np.random.SeedSequence) -> LinearArms:
        """The features and the parameter are the same for every seed of the rewards."""
        item = self.item
        features = item.features
        if features is None:
            assert item.arms is not None
            assert item.dimension is not None
            features = random_arms(item.arms, item.dimension, self._seed(_FEATURES)).tolist()
        theta = _parameter(item, len(features[0]), 1.0, self._seed(_THETA))
        return LinearArms(features, theta, self.spec.horizon, seed, rewards=item.rewards, reward_range=self.reward_range)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self._drawn(seed)

    def audit_table(self) -> RewardTable:
        return random_table(self.spec.audit.rounds, self.n_actions, self.reward_range, self.spec.seed)

    def problem(self, horizon: int) -> Problem:
        features = tuple(tuple(row) for row in self.arms.features.tolist())
        return Problem(self.n_actions, self.reward_range, horizon, features)

    def about(self) -> tuple[str, str, str]:
        n, d = self.arms.features.shape
        whence = "drawn from the unit sphere" if self.item.features is None else "given"
        text = (
            f"{n} arms with known features in {d} dimensions, {whence}; the mean reward of an arm is the middle of the "
            "range plus half its width times <theta, features>. Audits replay rewards drawn at the ends of the range."
        )
        return "linear", text, _PSEUDO


class _Contextual(Environment[Item]):
    """Users bring their actions as vectors."""

    kind = CONTEXTUAL

    @property
    @abstractmethod
    def dimension(self) -> int:
        """D of the vectors."""

    @property
    @abstractmethod
    def law(self) -> ContextLaw:
        """What the contexts are like."""

    def problem(self, horizon: int) -> Problem:
        return Problem(self.n_actions, self.reward_range, horizon, dimension=self.dimension)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        return ContextualRegretCurve(stream, grid, n_reps)


class _Sphere(_Contextual[SphereSpec]):
    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"action {a}" for a in range(self.item.actions))

    @property
    def reward_range(self) -> Interval:
        return Interval(self.item.low, self.item.high)

    @property
    def dimension(self) -> int:
        return self.item.dimension

    @property
    def law(self) -> ContextLaw:
        return self._drawn(np.random.SeedSequence(0)).law

    def _drawn(self, seed: np.random.SeedSequence) -> SphereContexts:
        item = self.item
        theta = _parameter(item, item.dimension, self.reward_range.width / 2, self._seed(_THETA))
        return SphereContexts(theta, item.actions, self.spec.horizon, seed, self.reward_range, item.rewards)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self._drawn(seed)

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(_AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Each user brings {self.n_actions} vectors drawn from the uniform unit sphere in {self.dimension} dimensions; "
            f"the mean reward is the middle of the range plus <theta, vector>. {self.law}."
        )
        return "sphere", text, _CONTEXTUAL_PSEUDO


class _Logged(_Contextual[Item]):
    """Real users, each a row: features, and what the person would answer to each action."""

    is_drawn = False

    @abstractmethod
    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        """So many of them."""

    @cached_property
    def table(self) -> ContextTable:
        """The rows that benchmarks play on."""
        return self._rows(self._seed(_ROWS), self.spec.horizon)

    @property
    def dimension(self) -> int:
        return self.table.context_dimension

    @property
    def law(self) -> ContextLaw:
        key = (type(self), self.item.model_dump_json(), self.spec.seed, self.spec.horizon)
        if key not in _LAWS:
            _LAWS[key] = check_assumption_2(self.table.features)
        return _LAWS[key]

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self.table

    def audit_table(self) -> RewardTable:
        return self._rows(self._seed(_AUDIT_TABLE), self.spec.audit.rounds)


class _Randhie(_Logged[RandhieSpec]):
    names = RANDHIE_ARMS

    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        return randhie_table(seed, rounds)

    @property
    def most_users(self) -> dict[str, int]:
        n = len(randhie()[0])
        return {"horizon": n, "audit.rounds": n}

    def about(self) -> tuple[str, str, str]:
        text = (
            "The RAND health insurance experiment (Manning et al. 1987, data of the package statsmodels): people were "
            "randomized to plans that let them pay a share of their bills. The five arms are shares, the reward is 1 if the "
            "person saw a doctor in the year; what a person would have done under another plan is taken from the most "
            f"similar person of that plan. Features: plan, health and income, and their product with the share. {self.law}."
        )
        return "randhie", text, _HINDSIGHT


class _Digits(_Logged[DigitsSpec]):
    names = DIGIT_NAMES

    def _rows(self, seed: np.random.SeedSequence, rounds: int) -> ContextTable:
        return digits_table(seed, rounds, self.item.projected)

    @property
    def most_users(self) -> dict[str, int]:
        return {"horizon": N_IMAGES, "audit.rounds": N_IMAGES}

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Handwritten digits (data of the package scikit-learn), projected to {self.item.projected} dimensions; the ten "
            f"actions name a digit, the reward is 1 if it is the right one. {self.law}."
        )
        return "digits", text, _HINDSIGHT


class _Kernel(Environment[Item]):
    """Users bring their actions as points of [-1, 1]^d, and a kernel is known."""

    kind = KERNEL

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"action {a}" for a in range(self.item.actions))  # type: ignore[attr-defined]

    @property
    def _known(self) -> dict[str, Any]:
        """The problem's kernel and the dimension of its points."""
        item: Any = self.item
        return {"dimension": item.points_dimension, "kernel": item.public_kernel()}

    def problem(self, horizon: int) -> Problem:
        return Problem(self.n_actions, self.reward_range, horizon, **self._known)

    def regret(self, stream: Any, grid: IntArray, n_reps: int) -> ContextualRegretCurve:
        return ContextualRegretCurve(stream, grid, n_reps)

    def describe(self) -> dict[str, Any]:
        """For the report, which lists no hundreds of points."""
        return super().describe() | ({"actions": []} if self.n_actions > _MOST_LISTED else {})

    def _at_the_ends(self, points: FloatArray) -> ContextTable:
        """Such points, with rewards at the ends of the range by fair coins: a claim holds for all data."""
        coins = random_table(len(points), points.shape[1], self.reward_range, self.spec.seed)
        return ContextTable(points, coins.rewards, self.reward_range)


class _Gap(_Kernel[GapSpec]):
    def stream(self, seed: np.random.SeedSequence) -> Stream:
        item = self.item
        return GapFunctions(item.public_kernel(), item.dimension, item.actions, self.spec.horizon, seed)

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.item.dimension)
        return self._at_the_ends(gap_points(*shape, self._seed(_AUDIT_TABLE)))

    def about(self) -> tuple[str, str, str]:
        text = (
            f"Random functions with four centers in the unit ball of {self.item.dimension} dimensions and of norm at most "
            f"1 in the space of the kernel ({self.item.public_kernel()}), one a replicate. Each user brings "
            f"{self.n_actions} points: at one the function is at least 0.8, at the others at most 0.6. The reward is 1 "
            "with the function's value as probability, where that is negative 0. Audits replay points of the ball and "
            "rewards drawn at random."
        )
        return self.item.kind, text, _CONTEXTUAL_PSEUDO


class _Pooled(_Kernel[Item]):
    """All that users may bring is a finite public pool."""

    kind = POOLED

    @property
    @abstractmethod
    def pool(self) -> Pool:
        """Contexts, points and law; the same in all blocks."""

    @property
    def _known(self) -> dict[str, Any]:
        return super()._known | {"pool": self.pool}


class _Function(_Pooled[FunctionSpec]):
    @cached_property
    def function(self) -> Benchmark:
        """What is maximized."""
        return self.item.function()

    @cached_property
    def pool(self) -> Pool:
        return decision_set(self.function, self.item.actions, self._seed(_POOL))

    @property
    def reward_range(self) -> Interval:
        margin = _MARGIN * self.item.noise
        return Interval(self.function.lowest - margin, self.function.highest + margin)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        values = self.function(self.pool.points)
        return PooledFunction(self.pool, values, self.spec.horizon, seed, self.reward_range, noise=self.item.noise)

    def audit_table(self) -> RewardTable:
        shape = (self.spec.audit.rounds, self.n_actions, self.function.dimension)
        return sphere_table(*shape, self.reward_range, self._seed(_AUDIT_TABLE))

    def about(self) -> tuple[str, str, str]:
        span, function = self.reward_range, self.function
        text = (
            f"The function {function.name} in {function.dimension} dimensions, scaled to [-1, 1]^d and a largest value of "
            f"{function.highest:.4g}. {self.n_actions} points can be chosen, the same in all rounds: the best one and "
            f"others drawn uniformly. Rewards are the value plus normal noise of deviation {self.item.noise:g}, clipped to "
            f"{span}, which moves means by at most {self.stream(np.random.SeedSequence(0)).clipping_bias:.2g}. Kernel: "
            f"{self.item.public_kernel()}. Audits replay points of the unit sphere and rewards drawn at random."
        )
        return self.item.kind, text, "Regret is the sum of gaps to the function's largest value (pseudo-regret)."


class _Rkhs(_Pooled[RkhsSpec]):
    @cached_property
    def pool(self) -> Pool:
        item = self.item
        dimensions = item.context_dimension, item.action_dimension
        return product_pool(item.contexts, item.actions, dimensions, self._seed(_POOL), item.unseen)

    @property
    def _noise(self) -> float:
        return 0.1 * self.item.norm if self.item.noise is None else self.item.noise

    @property
    def reward_range(self) -> Interval:
        most = self.item.norm + (_MARGIN * self._noise if self.item.rewards == "gaussian" else 0.0)
        return Interval(-most, most)

    @cached_property
    def values(self) -> FloatArray:
        """(contexts, actions) of the function; the same in all blocks."""
        points = self.pool.points.reshape(-1, self.pool.dimension)
        kernel, generator = self.item.public_kernel(), np.random.Generator(np.random.SFC64(self._seed(_THETA)))
        centers = points[generator.choice(len(points), self.item.n_centers, replace=False)]
        return random_function(kernel, centers, self._seed(_FUNCTION), self.item.norm)(self.pool.points)

    def stream(self, seed: np.random.SeedSequence) -> PooledFunction:
        return PooledFunction(
            self.pool, self.values, self.spec.horizon, seed, self.reward_range, law=self.item.rewards, noise=self._noise
        )

    def audit_table(self) -> RewardTable:
        generator = np.random.Generator(np.random.SFC64(self._seed(_AUDIT_TABLE)))
        return self._at_the_ends(self.pool.points[self.pool.drawn(self.spec.audit.rounds, generator)])

    def about(self) -> tuple[str, str, str]:
        item = self.item
        drawn = "drawn with the same probability"
        if item.unseen:
            drawn += f" but for {item.unseen} that {'is' if item.unseen == 1 else 'are'} never drawn"
        law = "are at the ends of the range"
        if item.rewards == "gaussian":
            bias = self.stream(np.random.SeedSequence(0)).clipping_bias
            law = (
                f"have normal noise of deviation {self._noise:g} and are clipped to the range, which moves means by at most "
                f"{bias:.2g}"
            )
        text = (
            f"A random function of norm {item.norm:g} in the space of the kernel ({item.public_kernel()}), with "
            f"{item.n_centers} centers. Each user brings one of {item.contexts} contexts, {drawn}, "
            f"and {item.actions} actions: points of the unit ball in {self.pool.dimension} dimensions. Rewards {law}. "
            "Audits replay contexts of the pool and rewards drawn at random."
        )
        return item.kind, text, _CONTEXTUAL_PSEUDO


class _Diabetes(_Kernel[DiabetesSpec]):
    is_drawn = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"patient {a}" for a in range(self.item.actions))

    @cached_property
    def table(self) -> ContextTable:
        """The rounds that benchmarks play on."""
        return diabetes_table(self._seed(_ROWS), self.spec.horizon, self.item.actions)

    def stream(self, seed: np.random.SeedSequence) -> Stream:
        return self.table

    def audit_table(self) -> RewardTable:
        return diabetes_table(self._seed(_AUDIT_TABLE), self.spec.audit.rounds, self.item.actions)

    def about(self) -> tuple[str, str, str]:
        text = (
            "Diabetes patients (Efron and others 2004, data of the package scikit-learn). Each round shows "
            f"{self.n_actions} of 442, with ten measurements; the reward of choosing one is how far the disease got in a "
            f"year, from 0 to 1. Kernel: {self.item.public_kernel()}."
        )
        return "diabetes", text, _HINDSIGHT


_CLASSES: dict[type, type[Environment[Any]]] = {
    BernoulliSpec: _Bernoulli,
    ThorntonSpec: _Thornton,
    TableSpec: _Table,
    LinearSpec: _Linear,
    SphereSpec: _Sphere,
    RandhieSpec: _Randhie,
    DigitsSpec: _Digits,
    GapSpec: _Gap,
    FunctionSpec: _Function,
    RkhsSpec: _Rkhs,
    DiabetesSpec: _Diabetes,
}


def environment_of(spec: Spec, item: EnvironmentSpec) -> Environment[Any]:
    """An environment of a spec."""
    return _CLASSES[type(item)](spec, item)


def environments_of(spec: Spec) -> list[Environment[Any]]:
    """Every environment of a spec, in the order of the file."""
    return [environment_of(spec, item) for item in spec.environment]


def _parameter(item: LinearSpec | SphereSpec, dimension: int, unit: float, seed: np.random.SeedSequence) -> FloatArray:
    """(dimension,) theta: the given one, or one that is drawn with the norm `signal` times the unit."""
    if item.theta is not None:
        return np.asarray(item.theta)
    drawn = np.random.Generator(np.random.SFC64(seed)).standard_normal(dimension)
    return np.asarray(item.signal * unit * drawn / np.linalg.norm(drawn))


def read_table(table: TableSpec) -> RewardTable:
    """Reads a CSV of potential rewards.

    Raises:
      SpecError: missing, malformed, not numeric, NaN, or outside the declared range; the message names the line and
        the action, and the value only where the spec declares the values public.
    """
    where = table.path
    try:
        with where.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise SpecError(f"environment.path: {where} cannot be read: {error}") from error
    if len(rows) < 2 or len(rows[0]) < 2:
        raise SpecError(f"environment.path: {where} needs a header of at least 2 action names and one row a user")
    values = []
    for line, row in enumerate(rows[1:], start=2):
        if len(row) != len(rows[0]):
            raise SpecError(f"{where}:{line}: {len(row)} values where the header names {len(rows[0])} actions")
        for name, text in zip(rows[0], row, strict=True):
            try:
                value = float(text)
            except ValueError:
                value = math.nan
            if not table.low <= value <= table.high:
                shown = f" is {text!r}; it" if "values" in table.public else ""
                raise SpecError(
                    f"{where}:{line}: the reward of action {name!r}{shown} must be a number in the declared range "
                    f"[{table.low:g}, {table.high:g}]"
                )
            values.append(value)
    return RewardTable(
        np.reshape(values, (-1, len(rows[0]))), Interval(table.low, table.high), tuple(name.strip() for name in rows[0])
    )
