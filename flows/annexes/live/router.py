"""Public settings of a live policy, and whether its algorithm can be deployed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, ValidationError, model_validator

from bandana.algorithms import catalog
from bandana.algorithms.claim import Claim
from bandana.algorithms.coins import coins_of
from bandana.algorithms.entry import Entry, Settings, kind_of
from bandana.algorithms.problem import ARMS, CONTEXTUAL, EPISODIC, FINITE, Problem
from bandana.algorithms.protocol import Algorithm, FloatArray, Record
from bandana.audits import claims
from bandana.flows.annexes.live.states import decode, encode
from bandana.flows.cells.replicates import with_coins
from bandana.flows.own.budgets import BudgetSpec
from bandana.flows.texts import yaml_text
from bandana.flows.texts.fields import Actions, Count, Dimension, NoTruth, Scalar, Strict
from bandana.flows.texts.mistakes import SpecError, explain_all
from bandana.privacy_core import Guarantee, Interval, LiveLedger, NoiseSource, SecureNoise, TrustModel

ARRIVAL = "arrival"
"""Value of `Router.enters`."""
_TRIAL = 96
"""Rounds that are played on invented rewards before a policy opens, so that noise which is refused is refused then."""
_PUBLIC_SEED = 0x6C697665
"""Seed of public coins such as random features, which protect nothing; no privacy noise is drawn from it."""


def _finite_range(ends: tuple[float, float]) -> tuple[float, float]:
    Interval(*ends)
    return ends


class Router(Strict):
    """Settings of a live policy: all of them are public, and fixed when it is opened."""

    store: str = Field(description="SQLite file, or postgresql://HOST/DATABASE#NAME.")
    algorithm: str = Field(description="Name of the catalog's algorithm; `bandana live list` shows which can be deployed.")
    claim: str = Field(description="What is promised to a record, such as `pure(epsilon=1, relation=reward)`.")
    n_actions: Actions = Field(description="Number of actions to choose from.")
    context_dimension: Dimension | None = Field(None, description="Length of the vector that describes each action.")
    features: tuple[tuple[float, ...], ...] | None = Field(None, description="Public features of arms, one row an arm.")
    n_asks: Count | None = Field(None, description="Most persons that are asked for; some algorithms need it.")
    reward_range: Annotated[tuple[float, float], AfterValidator(_finite_range)] = Field(
        (0.0, 1.0), description="Rewards are clipped to it."
    )
    calibration: str | None = Field(None, description="Calibration; the first that can be deployed if left out.")
    parameters: dict[str, Scalar] = Field({}, description="Parameters of the algorithm.")
    deadline: Annotated[float, Field(ge=0, allow_inf_nan=False), NoTruth] = Field(
        3600.0, description="Seconds after which a record enters, with its reward or with `missing`."
    )
    wait: Count = Field(1, description="Later persons who must have been asked for before a record enters.")
    enters: Literal["deadline", "arrival"] = Field(
        "deadline",
        description="`deadline`: a record enters at a time that its reward cannot change. `arrival`: as soon as its reward "
        "is there; the claim then holds for values of rewards and takes the times of answers for public.",
    )
    missing: float | None = Field(None, description="Reward of a person who did not answer; the low end if left out.")
    book: str | None = Field(None, description="Budget book that the claim is charged to, before anybody is asked for.")
    budget: BudgetSpec | None = Field(None, description="Budget of the book, needed by whoever opens it.")
    keeps_log: bool = Field(
        False, description="Rewards of arms stay in the store after they entered, for `write_log`; it needs a book."
    )

    @model_validator(mode="after")
    def _log_has_a_book(self) -> Self:
        if self.keeps_log and (self.book is None or self.is_contextual):
            raise ValueError("keeps_log needs arms and a book: a log is replayed under the book of its policy")
        return self

    @cached_property
    def problem(self) -> Problem:
        """Facts of the problem that the algorithm plays on."""
        return Problem(self.n_actions, Interval(*self.reward_range), self.n_asks, self.features, self.context_dimension)

    @property
    def is_contextual(self) -> bool:
        """True if each person brings a vector for each action."""
        return self.context_dimension is not None

    @property
    def missing_reward(self) -> float:
        """Reward of a person who did not answer, inside the range."""
        return self.reward_range[0] if self.missing is None else float(np.clip(self.missing, *self.reward_range))

    def public(self) -> dict[str, object]:
        """All but the place of the store, which may move."""
        return self.model_dump(mode="json", exclude={"store"})


@dataclass(frozen=True)
class Deployed:
    """An algorithm with its secure noise, ready to be asked.

    Attributes:
      router: its settings.
      entry: the catalog's line.
      settings: as the catalog builds from.
      claim: promise of the source at these settings.
      algorithm: pure state machine of public parameters.
    """

    router: Router
    entry: Entry
    settings: Settings
    claim: Claim
    algorithm: Algorithm

    def ledger(self, noise: NoiseSource | None = None) -> LiveLedger:
        """A ledger without charges, which refuses what exceeds the claim."""
        return LiveLedger(1, noise or SecureNoise(), self.claim.stated, trust=self.claim.trust)


def read_router(path: Path) -> Router:
    """Reads the settings from a YAML file; relative files are looked up beside it.

    Raises:
      SpecError: the file cannot be read, or a field is wrong; the message names file, line, field and value.
    """
    try:
        tree, data = yaml_text.read(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    if not isinstance(data, Mapping):
        raise SpecError(f"{path}: a router is a mapping with the fields store, algorithm, claim, n_actions, ...")
    try:
        router = Router.model_validate(data)
    except ValidationError as error:
        raise SpecError(explain_all(error.errors(), Router, tree, str(path))) from error
    return router if "://" in router.store else router.model_copy(update={"store": str(path.parent / router.store)})


def router_of(address: str | Path, given: Mapping[str, object]) -> Router:
    """Checked settings from keyword arguments.

    Raises:
      SpecError: a field is missing, unknown or wrong; the message names it.
    """
    try:
        return Router.model_validate({"store": str(address), **given})
    except ValidationError as error:
        raise SpecError(explain_all(error.errors(), Router, None, "open")) from error


def deploy(router: Router) -> Deployed:
    """Builds the algorithm, and plays it on invented rewards with secure noise.

    Raises:
      SpecError: there is no such entry, its claim is another one, or it cannot be deployed; the message has the reason.
    """
    try:
        stated = claims.parse(router.claim).stated
        entries = [one for one in catalog.of_name(router.algorithm) if one.is_private and one.guarantee == kind_of(stated)]
    except ValueError as error:
        raise SpecError(f"claim or algorithm: {error}") from error
    if "trust" in router.claim:
        entries = [one for one in entries if one.privacy_model == str(stated.trust)]
    entries = [one for one in entries if router.problem.kind in one.plays_on]
    if not entries:
        raise SpecError(
            f"algorithm: {router.algorithm} has no entry of this claim, {router.claim}, for {router.problem.kind} actions; "
            f"`bandana list {router.algorithm}` shows what it has"
        )
    reasons = []
    for entry in entries:
        tried = (router.calibration,) if router.calibration else sorted(entry.calibrations, key=lambda name: name != "tight")
        for calibration in tried:
            try:
                deployed = _built(router, entry, calibration, stated)
                check(deployed)
            except (ValueError, RuntimeError) as error:
                reasons.append(f"{entry.label} {calibration}: {error}")
            else:
                return deployed
    raise SpecError("\n".join(f"cannot be deployed: {reason}" for reason in reasons))


def _built(router: Router, entry: Entry, calibration: str, stated: Guarantee) -> Deployed:
    return of_settings(router, entry, entry.settings(router.problem, calibration, stated, **router.parameters))


def of_settings(router: Router, entry: Entry, settings: Settings) -> Deployed:
    """The algorithm of checked settings.

    Raises:
      ValueError: it promises to another relation than the router claims.
    """
    assert entry.promise is not None
    assert settings.privacy is not None
    claim, stated = entry.promise(settings), settings.privacy
    if claim.relation is not stated.relation:
        raise ValueError(f"it promises to {claim.relation.value}, and the claim says {stated.relation.value}")
    algorithm, _ = with_coins(entry, settings, np.random.SeedSequence(_PUBLIC_SEED), 1)
    return Deployed(router, entry, settings, claim, algorithm)


def why_not(entry: Entry) -> str:
    """Reason why no calibration of an entry can be deployed, by its kind alone; empty where there is none."""
    if entry.privacy_model == TrustModel.LOCAL.value:
        return "local: noise belongs on each person's device, and `tell` takes exact rewards"
    if entry.privacy_model == TrustModel.SHUFFLE.value:
        return "shuffle: there is no shuffler between persons and `tell`"
    if set(entry.plays_on) <= set(EPISODIC):
        return "episodes: `ask` takes one decision a person"
    if not set(entry.plays_on) & {*ARMS, CONTEXTUAL}:
        return "kernels: `ask` takes vectors without a kernel"
    return ""


def check(deployed: Deployed) -> None:
    """Refuses an algorithm whose noise or states cannot be kept.

    Raises:
      ValueError: the reason.
    """
    if reason := why_not(deployed.entry):
        raise ValueError(reason)
    algorithm, ledger = deployed.algorithm, deployed.ledger()
    sensitive, released = algorithm.init(1)
    for number in range(min(_TRIAL, deployed.router.n_asks or _TRIAL)):
        context = invented_context(deployed.router, number)
        coins = (np.full((1, coins_of(algorithm)), 0.5),) if coins_of(algorithm) else ()
        actions = algorithm.act(released, context, 0, *coins)
        reward = np.full((1, 1), deployed.router.reward_range[number % 2])
        record = Record(
            np.array([number]), np.ones(1, dtype=np.int64), context, actions[:, None], reward,
            coins=coins[0][:, None] if coins else None,
        )  # fmt: skip
        sensitive, released = algorithm.absorb(sensitive, released, record, ledger)
        sensitive, released = decode(encode((sensitive, released)))


def invented_context(router: Router, number: int) -> FloatArray | None:
    """(1, n_actions, d) vectors of nobody, of norm 1; None where there are no contexts."""
    if router.context_dimension is None:
        return None
    angles = np.arange(router.n_actions * router.context_dimension, dtype=float) + number
    vectors = np.sin(angles).reshape(1, router.n_actions, router.context_dimension)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=2, keepdims=True))


def deployable() -> list[tuple[Entry, str, str]]:
    """Every private entry of the catalog with each calibration, and why it cannot be deployed: empty where it can."""
    rows = []
    for entry in catalog.known():
        if not entry.is_private or entry.stated:
            continue
        for calibration in entry.calibrations:
            rows.append((entry, calibration, _reason(entry, calibration)))
    return rows


def example(entry: Entry, calibration: str) -> Router:
    """Settings on which an entry is tried: two actions, 256 persons, and a claim of its kind."""
    wanted = {FINITE: {}, CONTEXTUAL: {"context_dimension": 2}}
    kind = next((kind for kind in wanted if kind in entry.plays_on), None)
    shape: dict[str, object] = {"features": ((1.0, 0.0), (0.0, 1.0))} if kind is None else {**wanted[kind]}
    given = {"algorithm": entry.name, "claim": EXAMPLES[str(entry.guarantee)], "calibration": calibration, **shape}
    return router_of("", {"n_actions": 2, "n_asks": 256, **given})


def _reason(entry: Entry, calibration: str) -> str:
    if reason := why_not(entry):
        return reason
    router = example(entry, calibration)
    try:
        check(_built(router, entry, calibration, claims.parse(router.claim).stated))
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ""


EXAMPLES = {
    "pure": "pure(epsilon=1, relation=reward)",
    "renyi": "rdp(alpha=2, epsilon=1, relation=reward)",
    "zcdp": "zcdp(rho=0.5, relation=reward)",
    "approximate": "approx(epsilon=1, delta=1e-5, relation=record, trust=joint)",
}
"""Kind of a guarantee -> a claim of it."""
