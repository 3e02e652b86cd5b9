"""What an audit found, as bounds with the scores behind them, and the one rule from that to a verdict.

The rule reads nothing but what an evidence file keeps, so that a verdict can be reached again by anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from algorithms.catalog import Claim
from algorithms.protocol import FloatArray
from audits.audit import AuditResult, Effort, Verdict, accounted_mu
from audits.bounds import Errors
from audits.claims import Quantity, as_gdp, assumes_gaussian_noise
from audits.controls import SAMPLING, STRUCTURAL
from audits.summary import epsilon_of
from privacy_core import ConcentratedEvent, Event, GaussianDP, Guarantee, LaplaceEvent, PureDP, account

EQUAL = 1 + 1e-9
MU = Quantity("mu")


def main_quantity(stated: Guarantee) -> Quantity:
    """What an audit of the releases holds a claim against: the pure epsilon of a pure claim, mu of every other."""
    return Quantity.of(stated) if isinstance(stated, PureDP) else MU


Scores = Mapping[str, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class StatedBound:
    """One lower confidence bound, with all that it was computed from.

    Attributes:
      view: what the adversary saw.
      attack: how it was scored.
      neighbor: the pair of data sets.
      quantity: what is bounded.
      level: probability with which it exceeds the truth, at most.
      errors: of the test, on replays that it was not chosen on; None where they were not kept.
      lower: the bound.
      scores: name of the scores that the errors were counted on; None where they were not kept.
    """

    view: str
    attack: str
    neighbor: str
    quantity: Quantity
    level: float
    errors: Errors | None
    lower: float
    scores: str | None


@dataclass(frozen=True)
class TriedControl:
    """One planted fault and what became of it.

    Attributes:
      name: short name.
      fault: what is wrong, in words.
      expected: the audits that must catch it.
      caught_by: those that did.
      measured: the largest bound on what the claim is held against.
      limit: what it must exceed to be caught by sampling: an inequality of the verdict then breaks.
    """

    name: str
    fault: str
    expected: tuple[str, ...]
    caught_by: tuple[str, ...]
    measured: float
    limit: float

    @property
    def is_caught(self) -> bool:
        """Caught by every audit that must catch it."""
        return set(self.expected) <= set(self.caught_by)

    @property
    def missed(self) -> str:
        """What was expected and not seen, in words."""
        told = []
        if SAMPLING in self.expected and SAMPLING not in self.caught_by:
            told.append(f"{self.measured:.4g} was measured, and more than {self.limit:.4g} must be; try more replays")
        if STRUCTURAL in self.expected and STRUCTURAL not in self.caught_by:
            told.append("no counterexample was found; try more examples")
        return f"the audit missed the planted fault {self.name}: {'; '.join(told)}"

    @property
    def is_consistent(self) -> bool:
        """Whether sampling is said to have caught it exactly where the number says so."""
        return (SAMPLING in self.caught_by) == (self.measured > self.limit)


@dataclass(frozen=True)
class Numbers:
    """The three numbers of one quantity; `accounted` is None where there is no ledger to account."""

    claimed: float
    accounted: float | None
    measured: float


def accounted_as(quantity: Quantity, events: tuple[tuple[Event, int], ...]) -> float:
    """What these events compose to: mu, a pure epsilon, or epsilon at a delta; 0 without events, infinite where none is."""
    derived = account(dict(events))
    if derived is None:
        return 0.0
    if quantity == MU:
        return accounted_mu(events)
    if not quantity.delta:
        return derived.epsilon if isinstance(derived, PureDP) else math.inf
    if isinstance(derived, PureDP):
        return derived.epsilon_at(quantity.delta)
    epsilon = epsilon_of(accounted_mu(events), quantity.delta)
    return math.inf if epsilon is None else epsilon


@dataclass(frozen=True)
class Outcome:
    """One audit's outcome.

    Attributes:
      subject: what was audited: kind, name, source.
      claim: what it promises.
      effort: how hard the audit looked.
      bounds: all that were taken; they hold together at the confidence.
      scores: name -> scores of the held-out replays, of the data set and of the neighbor.
      events: on the worst record, with counts; None where there is no ledger.
      counterexample: of the audit without statistics, in words.
      controls: the planted faults.
      doubts: why the audit can say nothing in favor of the claim, in words.
      about: table, seeds, noise source, versions: what a reader needs to repeat the audit.
    """

    subject: Mapping[str, str]
    claim: Claim
    effort: Effort
    bounds: tuple[StatedBound, ...]
    scores: Scores
    events: tuple[tuple[Event, int], ...] | None
    counterexample: str | None
    controls: tuple[TriedControl, ...]
    doubts: tuple[str, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def main(self) -> Quantity:
        """What the claim is held against in the first place."""
        return Quantity.of(self.claim.stated) if self.events is None else main_quantity(self.claim.stated)

    @cached_property
    def mu_accounted(self) -> float | None:
        """What the ledger composes to; None where there is none."""
        return None if self.events is None else accounted_mu(self.events)

    @property
    def is_tested_as_gdp(self) -> bool:
        """Whether the claim may be held against mu: it implies GDP, or the ledger's noise is Gaussian as assumed."""
        other = any(isinstance(event, LaplaceEvent | ConcentratedEvent) for event, _ in self.events or ())
        return not (assumes_gaussian_noise(self.claim.stated) and other)

    @cached_property
    def numbers(self) -> dict[Quantity, Numbers]:
        """Claimed, accounted and measured, for each quantity that was bounded."""
        found: dict[Quantity, Numbers] = {}
        for quantity in dict.fromkeys(bound.quantity for bound in self.bounds):
            measured = max(bound.lower for bound in self.bounds if bound.quantity == quantity)
            found[quantity] = Numbers(self._claimed(quantity), self._accounted(quantity), measured)
        return found

    def _claimed(self, quantity: Quantity) -> float:
        stated = self.claim.stated
        if self.events is None or isinstance(stated, PureDP):
            return quantity.limit(stated)
        gaussian = as_gdp(stated)[0]
        return gaussian.mu if quantity == MU else gaussian.epsilon(quantity.delta)

    def _accounted(self, quantity: Quantity) -> float | None:
        return None if self.events is None else accounted_as(quantity, self.events)

    @property
    def inequalities(self) -> dict[str, bool]:
        """Which of claimed >= accounted >= measured hold, one line each."""
        found = {}
        for quantity, three in self.numbers.items():
            if three.accounted is not None:
                found[f"{quantity}: claimed >= accounted"] = not three.accounted > three.claimed * EQUAL
                found[f"{quantity}: accounted >= measured"] = not three.measured > three.accounted * EQUAL
            found[f"{quantity}: claimed >= measured"] = not three.measured > three.claimed
        return found

    @property
    def broken(self) -> tuple[str, ...]:
        """What speaks against the claim or the code, in words with the numbers."""
        reasons = []
        confidence = f"at {self.effort.confidence:.6g} confidence"
        for quantity, three in self.numbers.items():
            measured, claimed, accounted = three.measured, three.claimed, three.accounted
            held = self.is_tested_as_gdp
            is_bare = accounted is not None and math.isinf(accounted)
            if accounted is not None and accounted > claimed * EQUAL and quantity == self.main and (held or is_bare):
                told = f"no finite {quantity}" if is_bare else f"{quantity} = {accounted:.6g}"
                reasons.append(f"accounted exceeds claimed: the ledger composes to {told}, the claim is {self._stated}")
            if measured > claimed and held:
                reasons.append(
                    f"measured exceeds claimed: {quantity} >= {measured:.6g} {confidence}, the claim allows {claimed:.6g}"
                )
            if accounted is not None and measured > accounted * EQUAL and quantity == self.main:
                reasons.append(
                    f"measured exceeds accounted: {quantity} >= {measured:.6g}, the ledger composes to {accounted:.6g}"
                )
        if self.counterexample is not None:
            reasons.append(f"counterexample: {self.counterexample}")
        return tuple(reasons)

    @property
    def _stated(self) -> str:
        gaussian: GaussianDP = as_gdp(self.claim.stated)[0]
        told = str(self.claim.stated)
        return f"{told}, as {gaussian}" if assumes_gaussian_noise(self.claim.stated) else told

    @property
    def all_doubts(self) -> tuple[str, ...]:
        """Why silence means nothing, in words."""
        doubts = list(self.doubts)
        sides = [side for pair in self.scores.values() for side in pair]
        if any(np.isnan(side).any() for side in sides):
            doubts.append("some scores are NaN: a bound from them means nothing")
        if not self.bounds:
            doubts.append("no bound was taken")
        elif (only := self._only_score()) is not None:
            doubts.append(
                f"every score is {only:g}: nothing that the adversary sees depends on what the canary answers; plant it "
                "elsewhere, or play more rounds"
            )
        if not self.is_tested_as_gdp:
            doubts.append(
                f"{self.claim.stated} is tested as GDP, which is the same for Gaussian noise only, and the ledger holds "
                "other noise: state the claim as gdp(...) or pure(...)"
            )
        doubts += [control.missed for control in self.controls if not control.is_caught]
        return tuple(doubts) if self.controls else (*doubts, "no planted fault proves the audit's power")

    def _only_score(self) -> float | None:
        """The one score that all replays have in the first view, if they do."""
        names = {bound.scores for bound in self.bounds if bound.view == self.bounds[0].view} - {None}
        sides = [side for name in sorted(map(str, names)) for side in self.scores[name]]
        if not sides or not all(len(side) and (side == sides[0][0]).all() for side in sides):
            return None
        return float(sides[0][0])

    @property
    def verdict(self) -> Verdict:
        """FAIL if anything is broken, else INCONCLUSIVE if anything is in doubt, else PASS."""
        if self.broken:
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.all_doubts else Verdict.PASS

    @property
    def reasons(self) -> tuple[str, ...]:
        """Of the verdict, in words."""
        if self.broken:
            return self.broken
        if self.all_doubts:
            return self.all_doubts
        if self.events is None:
            held: tuple[str, ...] = ("claimed >= measured, in the actions alone; a function shows no ledger to account",)
        else:
            held = (
                "claimed >= accounted >= measured",
                f"no counterexample among {self.effort.examples} searched cases",
            )
        return (*held, f"all {len(self.controls)} planted faults were caught at the same effort")


def outcome_of(result: AuditResult, subject: Mapping[str, str], about: Mapping[str, str] | None = None) -> Outcome:
    """A catalog audit as an outcome; it keeps the scores of its strongest bound, and no errors of the epsilons.

    Args:
      result: what `audits.audit.audit` found.
      subject: kind, name and source of the algorithm.
      about: see `Outcome`.
    """
    measurement, effort = result.measurement, result.effort
    levels = split_levels(effort.confidence, len(measurement.bounds) // 2)
    strongest, stated = measurement.strongest, []
    for bound in measurement.bounds:
        name = "best" if bound is strongest else None
        main = levels[0] if bound.view == "transcript" else levels[1]
        parts = (bound.view, bound.attack, bound.neighbor)
        stated.append(StatedBound(*parts, MU, main, bound.errors, bound.mu_lower, name))
        epsilon = Quantity("epsilon", effort.delta)
        stated.append(StatedBound(*parts, epsilon, levels[1], None, bound.epsilon_lower, name))
    controls = tuple(
        TriedControl(
            r.control.name, r.control.fault, r.control.caught_by, r.caught_by, r.mu_measured, result.claim.gaussian.mu
        )
        for r in result.controls
    )
    found = None if result.counterexample is None else str(result.counterexample)
    scores = {"best": measurement.best}
    return Outcome(
        subject, result.claim, effort, tuple(stated), scores, result.events, found, controls, (), about or {}
    )  # fmt: skip


def split_levels(confidence: float, n_pairs: int) -> tuple[float, float]:
    """How the failure probability is split: for mu from the transcript of each pair 80 % in all, the rest for three more."""
    failure = 1 - confidence
    return failure * 0.8 / n_pairs, failure * 0.2 / (3 * n_pairs)
