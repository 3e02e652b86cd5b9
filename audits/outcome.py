"""Outcome of an audit: bounds with the scores behind them, and the one rule from that to a verdict.

The rule reads nothing but what an evidence file keeps, so that a verdict can be reached again by anybody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np

from bandana.algorithms.claim import Claim
from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds.bound import Parameters
from bandana.audits.claims import Quantity, as_gdp, assumes_gaussian_noise
from bandana.audits.contents import Description
from bandana.audits.coverage import Coverage
from bandana.audits.neighbors.neighbor import Neighbor
from bandana.privacy_core import (
    BoundedEvent,
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianDP,
    GaussianEvent,
    Guarantee,
    NonPrivateEvent,
    NoSuchConversion,
    PureDP,
    PureEvent,
    account,
)
from bandana.privacy_core.accounting.accountant import accounted_mu
from bandana.privacy_core.checks import probability

MIN_REPLAYS = 1000
"""Replays on each side: with fewer, no fault is seen at the usual confidence."""
EQUAL = 1 + 1e-9
MU = Quantity("mu")

View = StrEnum("View", "TRANSCRIPT REPORT ACTIONS ONE_RUN OUTPUT")
"""Views of adversaries, who see every release and every action, the messages of one user, the later actions, many canaries
in one run, whose coins they guess, or what a release returns."""
TRANSCRIPT, REPORT, ACTIONS, ONE_RUN, OUTPUT = View
GUESSED_COINS = "guessed coins"
"""Attack in the view of one run."""
INDEPENDENT = "with equal seeds all actions are equal, whatever a reward is"
"""View of a function that ignores its rewards, as far as runs with equal seeds show."""
DRAWN = "drawn"
"""Beginning of the name of scores from runs on drawn rewards: coins decide how many there are of each side."""
SAMPLING, DETERMINISTIC, NOISE = "sampling", "deterministic", "noise"
"""The three searches: replays, the search for a counterexample, the noise audit."""


class Verdict(StrEnum):
    """Verdict of an audit on a claim.

    PASS: nothing found by any search, and the audit proved its power. NOT REFUTED: the same, where no release was seen: of a
    function, and of an algorithm that releases nothing in the audited rounds, whatever it does after them.
    FAIL: the claim is refuted. INCONCLUSIVE: no power.
    """

    PASS = "PASS"
    NOT_REFUTED = "NOT REFUTED"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"


@dataclass(frozen=True)
class Effort:
    """Audit effort, the same for the honest algorithm and its planted faults.

    Attributes:
      replays: on each side of each pair, but for those that get `fewer`; at least 1000.
      confidence: of all bounds of one audited algorithm together.
      delta: at which epsilons are stated.
      examples: cases that the deterministic audit tries.
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

    @property
    def fewer(self) -> int:
        """Replays a side of a pair that does not give away clearly more than the least favorable one."""
        return min(self.replays, max(self.replays // 8, 2 * MIN_REPLAYS))


Events = tuple[tuple[Event, int], ...]


def all_gaussian(events: Events) -> bool:
    """True if all noise is Gaussian: then mu alone decides the whole privacy curve, and every claim is one on mu."""
    return all(isinstance(event, GaussianEvent | NonPrivateEvent) for event, _ in events)


def main_quantity(stated: Guarantee, events: Events = ()) -> Quantity:
    """Quantity that an audit of the releases holds a claim against.

    Pure and GDP claims are held against their own number. So is every other one, unless all noise is Gaussian: then mu is
    the same claim, and the number that replays bound best.
    """
    return MU if not isinstance(stated, PureDP) and all_gaussian(events) else Quantity.of(stated)


def claimed_as(quantity: Quantity, stated: Guarantee, events: Events | None) -> float:
    """Largest value of a quantity that a claim allows; infinite where it promises nothing of the kind.

    Args:
      quantity: what is bounded.
      stated: the claim.
      events: of the ledger's worst record; None where there is no ledger.
    """
    if events is not None and assumes_gaussian_noise(stated) and all_gaussian(events) and quantity != Quantity.of(stated):
        stated = as_gdp(stated)[0]
    try:
        return quantity.limit(stated)
    except NoSuchConversion:
        return math.inf


def is_exactly_accounted(quantity: Quantity, events: Events) -> bool:
    """True if the accountant's number is the privacy of these events, and no upper bound on it.

    Renyi divergences of Laplace noise are exact at each order, the rho that follows from its epsilon is not; only Gaussian
    noise has a mu that is exact; of a discrete Gaussian only rho and divergences are; of selections that are known
    by their worst case, only the pure epsilon.
    """
    if all_gaussian(events) or quantity == Quantity("epsilon"):
        return True
    concentrated = any(isinstance(event, ConcentratedEvent) for event, _ in events)
    bounded = any(isinstance(event, BoundedEvent) for event, _ in events)
    worst_case = any(isinstance(event, PureEvent | BoundedRangeEvent) for event, _ in events)
    is_exact = {
        "mu": False, "epsilon": not (concentrated or worst_case), "divergence": not worst_case, "rho": not bounded
    }  # fmt: skip
    return is_exact[quantity.name]


def overspends(quantity: Quantity, stated: Guarantee, events: Events) -> bool:
    """True if the noise breaks the claim for certain: its accounted number is exact, or something left without noise."""
    is_certain = is_exactly_accounted(quantity, events) or any(isinstance(event, NonPrivateEvent) for event, _ in events)
    return is_certain and accounted_as(quantity, events) > claimed_as(quantity, stated, events) * EQUAL


def composed(quantity: Quantity, events: Events) -> str:
    """The accounted number in words."""
    accounted = accounted_as(quantity, events)
    return f"no finite {quantity}" if math.isinf(accounted) else f"{quantity} = {accounted:.6g}"


Scores = Mapping[str, tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class StatedBound:
    """One lower confidence bound, with all that it was computed from.

    Attributes:
      view: what the adversary saw.
      attack: how it was scored.
      neighbor: how the pair of data sets differs.
      quantity: what is bounded.
      method: name of the bound, see `bandana.audits.bounds.bound.Bound`.
      parameters: of the method.
      level: probability with which it exceeds the truth, at most.
      lower: the bound.
      scores: name of the scores that it was computed from.
    """

    view: View
    attack: str
    neighbor: Neighbor
    quantity: Quantity
    method: str
    parameters: Parameters
    level: float
    lower: float
    scores: str


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

    def missed(self, honest: float) -> str:
        """Searches that should have seen it and did not, in words.

        Args:
          honest: the largest bound on the same of the honest algorithm: a fault that measures no more is not seen yet.
        """
        missing = []
        if SAMPLING in self.expected and SAMPLING not in self.caught_by:
            shows = self.measured > honest
            advice = "try more replays" if shows else "replays show no more than of the honest algorithm; try more rounds"
            missing.append(f"{self.measured:.4g} was measured, and more than {self.limit:.4g} must be; {advice}")
        if DETERMINISTIC in self.expected and DETERMINISTIC not in self.caught_by:
            missing.append("no counterexample was found; try more replays, which also change every record more often")
        if NOISE in self.expected and NOISE not in self.caught_by:
            missing.append("its noise looked as declared")
        return f"the audit missed the planted fault {self.name}: {'; '.join(missing)}"

    @property
    def is_consistent(self) -> bool:
        """True if sampling is said to have caught it exactly where the number says so."""
        return (SAMPLING in self.caught_by) == (self.measured > self.limit)


@dataclass(frozen=True)
class Numbers:
    """The three numbers of one quantity; `accounted` is None where there is no ledger to account."""

    claimed: float
    accounted: float | None
    measured: float


@dataclass(frozen=True)
class Setup:
    """Facts that a reader needs to repeat an audit.

    Attributes:
      table: what is replayed, in words.
      probes: records that canaries are planted at.
      not_planted: name of a fault that is none of this algorithm -> the searches that it is not planted for; empty: for any.
    """

    table: str = ""
    probes: tuple[int, ...] = ()
    seed: int = -1
    noise_source: str = ""
    code_sha256: str = ""
    not_planted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def accounted_as(quantity: Quantity, events: tuple[tuple[Event, int], ...]) -> float:
    """Sum of these events in the given quantity; 0 without events, infinite where nothing follows."""
    match quantity.name:
        case "mu":
            return accounted_mu(events)
        case "divergence":
            return math.fsum(count * event.rdp(quantity.alpha) for event, count in events)
        case "rho":
            return math.fsum(count * event.rho for event, count in events)
    derived = account(dict(events))
    if derived is None:
        return 0.0
    if quantity.delta:
        return derived.epsilon_at(quantity.delta)
    return derived.epsilon if isinstance(derived, PureDP) else math.inf


@dataclass(frozen=True)
class Outcome:
    """Result of one audit, and its verdict.

    Attributes:
      subject: what was audited: kind, name, source.
      claim: what it promises.
      effort: how hard the audit looked; its confidence is that of all bounds, those at the test budget included.
      failure: probability with which some bound of this part exceeds the truth, at most.
      bounds: all that were taken; they hold together with probability at least 1 - `failure`.
      scores: name -> scores of the data set and of the neighbor.
      events: on the worst record, with counts; None where there is no ledger.
      counterexample: of the deterministic audit, see `sensitivity.Counterexample.describe`.
      noise_finding: the noise audit's finding, in words.
      controls: the planted faults.
      power: the smallest factor in the main quantity that this audit would have caught with 95 % probability.
      caveats: why the audit can say nothing in favor of the claim, in words.
      no_number: view of which some scores are NaN, so that no bound was taken; None where all were numbers.
      about: what a reader needs to repeat the audit.
      provenance: how this outcome came to be, in JSON's own types; None where that was not recorded.
      coverage: what the searches without replays tried; None where a violation was found first.
      at_test_budget: the same algorithm at a budget at which faults show, with planted faults; None: the claimed one does.
    """

    subject: Mapping[str, str]
    claim: Claim
    effort: Effort
    failure: float
    bounds: tuple[StatedBound, ...]
    scores: Scores
    events: tuple[tuple[Event, int], ...] | None
    counterexample: Description | None
    noise_finding: str | None
    controls: tuple[TriedControl, ...]
    power: float
    caveats: tuple[str, ...] = ()
    no_number: View | None = None
    about: Setup = field(default_factory=Setup)
    provenance: Description | None = None
    coverage: Coverage | None = None
    at_test_budget: Outcome | None = None

    @property
    def replays(self) -> tuple[int, ...]:
        """Replays a side of each pair."""
        return tuple(len(pair[0]) for name, pair in self.scores.items() if name.startswith(TRANSCRIPT))

    @property
    def main(self) -> Quantity:
        """Main quantity of the claim."""
        return Quantity.of(self.claim.stated) if self.events is None else main_quantity(self.claim.stated, self.events)

    @property
    def is_release(self) -> bool:
        """True if the outputs of a release on one pair of data sets were seen."""
        return any(bound.view == OUTPUT for bound in self.bounds)

    @property
    def ignores_data(self) -> bool:
        """True if a function played the same on both sides whenever its seed was the same."""
        return self.coverage is not None and INDEPENDENT in self.coverage.views

    @property
    def all_controls(self) -> tuple[TriedControl, ...]:
        """The planted faults, at whichever budget they were tried."""
        return self.controls + (self.at_test_budget.controls if self.at_test_budget else ())

    @property
    def is_gaussian(self) -> bool:
        """True if there is a ledger, and all its noise is Gaussian."""
        return self.events is not None and all_gaussian(self.events)

    @property
    def strongest(self) -> StatedBound | None:
        """The bound on the main quantity that certified the most."""
        return max((b for b in self.bounds if b.quantity == self.main), key=lambda bound: bound.lower, default=None)

    @cached_property
    def numbers(self) -> dict[Quantity, Numbers]:
        """Claimed, accounted and measured, for each quantity that was bounded."""
        numbers: dict[Quantity, Numbers] = {}
        for quantity in dict.fromkeys(bound.quantity for bound in self.bounds):
            measured = max(bound.lower for bound in self.bounds if bound.quantity == quantity)
            accounted = None if self.events is None else accounted_as(quantity, self.events)
            numbers[quantity] = Numbers(claimed_as(quantity, self.claim.stated, self.events), accounted, measured)
        return numbers

    @property
    def broken(self) -> tuple[str, ...]:
        """Everything that speaks against the claim or the code, in words with the numbers."""
        reasons = []
        confidence = f"at {self.effort.confidence:.6g} confidence"
        for quantity, three in self.numbers.items():
            measured, claimed, accounted = three.measured, three.claimed, three.accounted
            if quantity == self.main and self.events and overspends(quantity, self.claim.stated, self.events):
                derived = composed(quantity, self.events)
                reasons.append(f"accounted exceeds claimed: the ledger composes to {derived}, the claim is {self._stated}")
            if measured > claimed:
                reasons.append(
                    f"measured exceeds claimed: {quantity} >= {measured:.6g} {confidence}, the claim allows {claimed:.6g}"
                )
            if accounted is not None and measured > accounted * EQUAL:
                reasons.append(
                    f"measured exceeds accounted: {quantity} >= {measured:.6g}, the ledger composes to {accounted:.6g}"
                )
        if self.counterexample is not None:
            reasons.append(f"counterexample: {self.counterexample['summary']}")
        if self.noise_finding is not None:
            reasons.append(("" if self.is_release else "the noise is not what is declared: ") + self.noise_finding)
        if self.at_test_budget is not None:
            reasons += [f"at the test budget, {self.at_test_budget.claim.stated}: {r}" for r in self.at_test_budget.broken]
        return tuple(reasons)

    @property
    def _stated(self) -> str:
        gaussian: GaussianDP = as_gdp(self.claim.stated)[0]
        stated = str(self.claim.stated)
        return f"{stated}, as {gaussian}" if self.is_gaussian and assumes_gaussian_noise(self.claim.stated) else stated

    @property
    def all_caveats(self) -> tuple[str, ...]:
        """Why silence means nothing, in words."""
        caveats = [*self._own_caveats, *(self.at_test_budget._own_caveats if self.at_test_budget else ())]
        planted = self.at_test_budget or self
        measured = planted.numbers[planted.main].measured if planted.main in planted.numbers else 0.0
        caveats += [control.missed(measured) for control in self.all_controls if not control.is_caught]
        if not self.all_controls:
            caveats.append("no planted fault proves the audit's power")
        seen = self.coverage
        if seen is not None and seen.walked < seen.horizon and self.subject.get("kind") == "algorithm":
            caveats.append(
                f"of {seen.horizon:,} {seen.unit}s {seen.walked:,} were walked: later ones of a file of one's own are unseen"
            )
        return tuple(dict.fromkeys(caveats))

    @property
    def _own_caveats(self) -> list[str]:
        caveats = list(self.caveats)
        if self.no_number is not None:
            words = "a log density ratio, or a released value, is no number"
            caveats.append(f"some scores of the {self.no_number} are NaN: {words}")
        sides = [side for pair in self.scores.values() for side in pair]
        if any(np.isnan(side).any() for side in sides):
            caveats.append("some scores are NaN: a bound from them means nothing")
        if not self.bounds:
            caveats.append("no bound was taken")
        elif self.events != () and not self.ignores_data and (only := self._only_score()) is not None:
            caveats.append(
                f"every score is {only:g}: nothing that the adversary sees depends on what the canary answers; plant it "
                "elsewhere, or play more rounds"
            )
        three = self.numbers.get(self.main)
        if three is not None and three.accounted is not None and three.accounted > three.claimed * EQUAL:
            derived = "none" if math.isinf(three.accounted) else f"{three.accounted:.6g} at most"
            caveats.append(
                f"the accountant cannot derive the claim: {self.main} <= {three.claimed:.6g} is claimed, and it derives "
                f"{derived} from this noise: claim what it derives, or in another definition"
            )
        return caveats

    def _only_score(self) -> float | None:
        """The one score that all replays have in the first view, if they do."""
        names = {bound.scores for bound in self.bounds if bound.view == self.bounds[0].view}
        sides = [side for name in sorted(names) for side in self.scores[name]]
        if not sides or not all(len(side) and (side == sides[0][0]).all() for side in sides):
            return None
        return float(sides[0][0])

    @property
    def verdict(self) -> Verdict:
        """FAIL if anything is broken, INCONCLUSIVE if there is a caveat, NOT REFUTED if no release was seen, else PASS."""
        if self.broken:
            return Verdict.FAIL
        if self.all_caveats:
            return Verdict.INCONCLUSIVE
        return Verdict.PASS if self.events else Verdict.NOT_REFUTED

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for the verdict, in words."""
        if self.broken:
            return self.broken
        if self.all_caveats:
            return self.all_caveats
        if self.is_release:
            return ("claimed >= measured on the audited pair of data sets; a release shows no ledger to account",)
        if self.events is None:
            held: tuple[str, ...] = ("claimed >= measured, in the actions alone; a function shows no ledger to account",)
            if self.ignores_data:
                held += ("both sides are equal bit for bit under equal seeds in every run: it ignores its rewards there",)
        else:
            held = (
                "claimed >= accounted >= measured" if self.events else "nothing was released in the audited rounds",
                f"no counterexample among {self.effort.examples} searched cases, and all noise matches its declaration",
            )
        where = "" if self.at_test_budget is None else f", at the test budget {self.at_test_budget.claim.stated}"
        return (*held, f"all {len(self.all_controls)} planted faults were caught at the same effort{where}")
