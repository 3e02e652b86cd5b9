"""One audit: a claim, what the accountant derives, what replays measured, and whether the audit could have seen a fault."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

import numpy as np

from algorithms.catalog import Claim
from algorithms.environments.tables import RewardTable
from algorithms.protocol import Algorithm, FloatArray
from algorithms.run import run
from audits import attacks, bounds, sensitivity
from audits.controls import SAMPLING, STRUCTURAL, Control
from audits.neighbors import Pair, canary_pairs
from audits.replay import Replays, replay
from privacy_core import Event, GaussianDP, LiveLedger, PureDP, ReproducibleNoise, account
from privacy_core.checks import probability

_EQUAL = 1 + 1e-9
_MAIN_SHARE = 0.8
MIN_REPLAYS = 1000


class Verdict(StrEnum):
    """PASS: nothing found, and the audit proved its power. FAIL: the claim is refuted. INCONCLUSIVE: no power."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Effort:
    """How hard an audit looks; the honest algorithm and its planted faults are looked at equally hard.

    Attributes:
      replays: on each side of each pair, at least 1000.
      confidence: of all bounds of one audited algorithm together.
      delta: at which epsilons are stated.
      examples: cases that the audit without statistics tries.
      seed: root of all replay seeds.
    """

    replays: int
    confidence: float
    delta: float
    examples: int
    seed: int

    def __post_init__(self) -> None:
        if self.replays < MIN_REPLAYS:
            raise ValueError(f"replays must be at least {MIN_REPLAYS}, got {self.replays!r}: fewer certify nothing")
        if self.examples < 1:
            raise ValueError(f"examples must be at least 1, got {self.examples!r}")
        probability("confidence", self.confidence)
        probability("delta", self.delta)


@dataclass(frozen=True)
class Bound:
    """What one attack on one pair certified."""

    view: str
    attack: str
    neighbor: str
    mu_lower: float
    epsilon_lower: float
    errors: bounds.Errors


@dataclass(frozen=True)
class Measurement:
    """All bounds on one algorithm, valid together at the audit's confidence.

    Attributes:
      bounds: one for each pair and view.
      best: the pair index and the test half's scores (data, neighbor) of the largest bound on mu.
    """

    bounds: tuple[Bound, ...]
    best: tuple[FloatArray, FloatArray]

    @property
    def mu(self) -> float:
        """The largest lower bound on mu."""
        return max(bound.mu_lower for bound in self.bounds)

    @property
    def epsilon(self) -> float:
        """The largest lower bound on epsilon at the audit's delta that assumes nothing about the mechanism."""
        return max(bound.epsilon_lower for bound in self.bounds)

    @property
    def strongest(self) -> Bound:
        """The bound that certified the most."""
        return max(self.bounds, key=lambda bound: bound.mu_lower)


@dataclass(frozen=True)
class ControlResult:
    """Whether one planted fault was caught, and how; `mu_measured` is the first bound above the claim, or the largest."""

    control: Control
    mu_measured: float
    caught_by: tuple[str, ...]

    @property
    def is_caught(self) -> bool:
        """Caught by every audit that must catch it."""
        return set(self.control.caught_by) <= set(self.caught_by)


@dataclass(frozen=True)
class AuditResult:
    """One audit's outcome with its evidence."""

    claim: Claim
    effort: Effort
    events: tuple[tuple[Event, int], ...]
    mu_accounted: float
    measurement: Measurement
    counterexample: sensitivity.Counterexample | None
    controls: tuple[ControlResult, ...]
    verdict: Verdict
    reasons: tuple[str, ...]


def measure(algorithm: Algorithm, pairs: tuple[Pair, ...], effort: Effort, enough: float = math.inf) -> Measurement:
    """Replays each pair on both sides and bounds the privacy loss from below, in two views.

    One half of the replays chooses thresholds and teaches the attack that learns; the bounds come from the other half.
    The failure probability 1 - confidence is split between all bounds (Bonferroni): 80 % for mu from the transcript, the
    sharpest, over the pairs, and 20 % for the rest, so that all hold together.

    Args:
      algorithm: what to audit.
      pairs: neighbors to try.
      effort: how many replays, and the confidence.
      enough: pairs are tried in turn until a bound on mu exceeds this; the bounds that were taken stay valid.
    """
    seeds = np.random.SeedSequence(effort.seed).spawn(2 * len(pairs))
    failure = 1 - effort.confidence
    main, rest = failure * _MAIN_SHARE / len(pairs), failure * (1 - _MAIN_SHARE) / (3 * len(pairs))
    found: list[Bound] = []
    best: tuple[float, tuple[FloatArray, FloatArray]] = (-1.0, (np.empty(0), np.empty(0)))
    for index, pair in enumerate(pairs):
        (train, test), (train_n, test_n) = (
            _halves(replay(algorithm, pair, side, effort.replays, seeds[2 * index + side])) for side in (False, True)
        )
        views = (
            ("transcript", "exact likelihood ratio", attacks.likelihood_ratio, main),
            ("actions", "learned log odds", partial(attacks.learned_log_odds, train, train_n), rest),
        )
        for view, name, attack, level in views:
            learn, count = (attack(train), attack(train_n)), (attack(test), attack(test_n))
            errors = bounds.Errors.count(*count, bounds.choose_threshold(*learn, level))
            other = bounds.Errors.count(*count, bounds.choose_threshold(*learn, rest, effort.delta))
            mu = bounds.mu_lower(errors, level)
            found.append(Bound(view, name, pair.description, mu, bounds.epsilon_lower(other, effort.delta, rest), errors))
            if mu > best[0]:
                best = (mu, count)
        if best[0] > enough:
            break
    return Measurement(tuple(found), best[1])


def _halves(replays: Replays) -> tuple[Replays, Replays]:
    middle = len(replays.log_ratio) // 2
    return (
        Replays(replays.log_ratio[:middle], replays.action_code[:middle]),
        Replays(replays.log_ratio[middle:], replays.action_code[middle:]),
    )


def derive(algorithm: Algorithm, table: RewardTable, seed: int, n_reps: int = 1024) -> tuple[tuple[Event, int], ...]:
    """The events on the worst record over `n_reps` live runs."""
    ledger = LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(seed)), n_records=table.n_users)
    run(algorithm, table, ledger)
    return tuple(sorted(ledger.worst_record().items(), key=repr))


def accounted_mu(events: tuple[tuple[Event, int], ...]) -> float:
    """The mu-GDP that these events compose to: 0 if there are none, infinite if no GDP guarantee follows.

    Pure events compose to a pure guarantee, which implies a GDP one; it is not the smallest.
    """
    derived = account(dict(events))
    if derived is None:
        return 0.0
    return derived.gdp().mu if isinstance(derived, GaussianDP | PureDP) else math.inf


def audit(
    algorithm: Algorithm,
    claim: Claim,
    controls: tuple[Control, ...],
    table: RewardTable,
    probes: tuple[int, ...],
    effort: Effort,
    on_progress: Callable[[str], None] = lambda what: None,
) -> AuditResult:
    """Audits one algorithm and its planted faults, and reaches a verdict.

    FAIL if a bound exceeds the claim, the accountant derives more than the claim, or the audit without statistics finds
    a counterexample. Otherwise INCONCLUSIVE if some planted fault was not caught by the audits that must catch it, with
    the same effort. Otherwise PASS.

    Args:
      algorithm: what to audit.
      claim: what it promises.
      controls: its planted faults.
      table: the data set, as long as each replay.
      probes: records to plant canaries at.
      effort: how hard to look.
      on_progress: called with a name as each part is done.
    """
    pairs = canary_pairs(table, probes)
    events = derive(algorithm, table, effort.seed)
    mu_accounted = accounted_mu(events)
    measurement = measure(algorithm, pairs, effort)
    on_progress("replays")
    counterexample = sensitivity.search(algorithm, table.reward_range, claim.gaussian, effort.examples)
    on_progress("audit without statistics")
    results = []
    for control in controls:
        results.append(_examine_control(control, algorithm, claim, table, pairs, effort))
        on_progress(control.name)
    broken = _broken(claim, effort, mu_accounted, measurement, counterexample)
    missed = [r.control.name for r in results if not r.is_caught]
    if broken:
        verdict, reasons = Verdict.FAIL, broken
    elif missed or not results:
        verdict = Verdict.INCONCLUSIVE
        reasons = [f"the audit missed the planted fault {name}" for name in missed] or ["no planted fault proves its power"]
    else:
        verdict = Verdict.PASS
        reasons = [
            "claimed >= accounted >= measured",
            f"no counterexample among {effort.examples} searched cases",
            f"all {len(results)} planted faults were caught at the same effort",
        ]
    return AuditResult(
        claim, effort, events, mu_accounted, measurement, counterexample, tuple(results), verdict, tuple(reasons)
    )


def _broken(
    claim: Claim,
    effort: Effort,
    mu_accounted: float,
    measurement: Measurement,
    counterexample: sensitivity.Counterexample | None,
) -> list[str]:
    """Which of the inequalities claimed >= accounted >= measured do not hold, in words."""
    reasons = []
    claimed = claim.gaussian
    if mu_accounted > claimed.mu * _EQUAL:
        reasons.append(f"accounted exceeds claimed: the ledger composes to mu = {mu_accounted:.6g}, the claim is {claimed}")
    if measurement.mu > claimed.mu:
        reasons.append(
            f"measured exceeds claimed: mu >= {measurement.mu:.6g} at {effort.confidence:.0%}, the claim is {claimed}"
        )
    if measurement.epsilon > claimed.epsilon(effort.delta):
        reasons.append(
            f"measured exceeds claimed: epsilon >= {measurement.epsilon:.6g} at delta = {effort.delta:g}, "
            f"the claim allows {claimed.epsilon(effort.delta):.6g}"
        )
    if measurement.mu > mu_accounted * _EQUAL:
        reasons.append(f"measured exceeds accounted: mu >= {measurement.mu:.6g}, the ledger composes to {mu_accounted:.6g}")
    if counterexample is not None:
        reasons.append(f"counterexample: {counterexample}")
    return reasons


def _examine_control(
    control: Control,
    algorithm: Algorithm,
    claim: Claim,
    table: RewardTable,
    pairs: tuple[Pair, ...],
    effort: Effort,
) -> ControlResult:
    faulty = control.plant(algorithm)  # type: ignore[arg-type]
    mu = measure(faulty, pairs, effort, enough=claim.gaussian.mu).mu
    caught = [SAMPLING] if mu > claim.gaussian.mu else []
    if sensitivity.search(faulty, table.reward_range, claim.gaussian, effort.examples, shrinks=False) is not None:
        caught.append(STRUCTURAL)
    return ControlResult(control, mu, tuple(caught))
