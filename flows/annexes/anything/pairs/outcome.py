"""Outcome of the audit of a release: one bound, its verdict, what it covers, and the same as evidence files keep it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from bandana.algorithms.claim import THE_OUTPUT
from bandana.algorithms.entry import Claim
from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds import methods, power
from bandana.audits.claims import Quantity
from bandana.audits.coverage import Coverage
from bandana.audits.opening import opening, shown
from bandana.audits.outcome import EQUAL, MIN_REPLAYS, SAMPLING, Effort, Outcome, Setup, StatedBound, TriedControl, Verdict
from bandana.audits.summary import finite
from bandana.flows.annexes.anything.foreign.frozen import Frozen
from bandana.flows.annexes.anything.outputs.bounds import rarest_event, reach_of
from bandana.flows.annexes.anything.pairs.coupling import Coupling
from bandana.privacy_core import Guarantee

_DEFAULT_DELTA = 1e-5
_MOST_SHOWN = 3
_NARROW = 0.02
"""Share of a bound's failure probability at which a refutation holds too that is not narrow."""
_SIMULATED, _TRIALS = 2048, 20
"""Runs and audits of the simulated power: few, which overstates the smallest fault, as a release is audited in seconds."""


@dataclass(frozen=True)
class ReleaseOutcome:
    """One audit of a release on one pair.

    Attributes:
      stated: the claim.
      bounds: lower confidence bounds, first on the claim's own quantity, and how they were taken.
      scores: name -> scores of the runs that a bound was taken from, the data set's and the neighbor's.
      n_runs: on each side, those that taught and chose included.
      confidence: of the bound.
      seed: root of all seeds.
      how: how the runs were made.
      is_cut: whether the time ended before all runs were made.
      n_values: labels and numbers in an output, at most.
      unread: what was not read of the outputs, in words.
      proofs: what a few runs showed against the claim, without statistics, in words.
      tried: faults planted in its outputs.
      unsettled: a narrow refutation that could not be asked again, in words; empty if there is none.
      differs: how first calls differ from later ones, in words; empty if they do not.
      notes: what a reader should know of the runs.
      left_out: what the time did not suffice for, in words.
      frozen: what runs with frozen primitives showed; None where no primitive is priced.
      search: how the neighbor was found, in words; empty where it was given.
      coupling: whether one seed makes the same randomness on both sides; None where that is not known.
    """

    stated: Guarantee
    bounds: tuple[StatedBound, ...]
    scores: Mapping[str, tuple[FloatArray, FloatArray]]
    n_runs: int
    confidence: float
    seed: int
    how: str
    is_cut: bool
    n_values: int
    unread: tuple[str, ...] = ()
    proofs: tuple[str, ...] = ()
    unsettled: str = ""
    differs: str = ""
    tried: tuple[TriedControl, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    frozen: Frozen | None = None
    search: str = ""
    coupling: Coupling | None = None

    @property
    def bound(self) -> StatedBound:
        """The bound on the claim's own quantity or, where that alone refutes the claim, on its delta."""
        return next((bound for bound in self.bounds if bound.lower > bound.quantity.limit(self.stated)), self.bounds[0])

    @property
    def quantity(self) -> Quantity:
        """Quantity of that bound."""
        return self.bound.quantity

    @property
    def limit(self) -> float:
        """Largest value of it that the claim allows."""
        return self.quantity.limit(self.stated)

    @property
    def measured(self) -> float:
        """The lower bound on it."""
        return self.bound.lower

    @property
    def is_refuted(self) -> bool:
        """True if a bound exceeds the claim."""
        return self.measured > self.limit

    @cached_property
    def stricter(self) -> ReleaseOutcome:
        """The same outcome with a fiftieth of each bound's failure probability."""
        levels = [_NARROW * each.level for each in self.bounds]
        bounds = tuple(
            replace(each, level=level, lower=methods.bound(each.method, *self.scores[each.scores], level, **each.parameters))
            for each, level in zip(self.bounds, levels, strict=True)
        )
        return replace(self, bounds=bounds)

    @property
    def is_narrow(self) -> bool:
        """True if bounds refute the claim, and stricter ones would not."""
        return self.is_refuted and not self.stricter.is_refuted

    @cached_property
    def reach(self) -> float:
        """The bound on the claim's own quantity that a release without noise would have given."""
        own = self.bounds[0]
        return reach_of(own.quantity, self.seed, own.level, len(self.scores[own.scores][0]))

    @cached_property
    def rarest(self) -> float | None:
        """Probability of the rarest output that, coming from one side alone, would have refuted the claim; None: of none."""
        events = [
            rarest_event(each.quantity, each.quantity.limit(self.stated), self.seed, each.level, self.n_runs,
                         len(self.scores[each.scores][0]))
            for each in self.bounds
        ]  # fmt: skip
        return min((one for one in events if one is not None), default=None)

    @property
    def verdict(self) -> Verdict:
        """FAIL: the bound exceeds the claim, or frozen primitives break it. INCONCLUSIVE: no bound could have exceeded it.

        Else NOT REFUTED; never PASS.
        """
        if self.is_refuted or self._broken:
            return Verdict.FAIL
        return Verdict.NOT_REFUTED if self.reach > self.limit and not self.caveats else Verdict.INCONCLUSIVE

    @property
    def caveats(self) -> tuple[str, ...]:
        """Why bounds from fresh seeds say nothing in favor of the claim."""
        seeds = () if self.coupling is None or not self.coupling.finding else (self.coupling.finding,)
        unread = (f"not all of an output was read: {words}" for words in _some(self.unread))
        missed = (control.missed(self.measured) for control in self.tried if not control.is_caught)
        untried = ("no planted fault was tried: allow more --seconds",) if self.left_out and not self.tried else ()
        words = tuple(words for words in (self.unsettled, self.differs) if words)
        return (*words, *unread, *seeds, *missed, *untried)

    @property
    def _broken(self) -> tuple[str, ...]:
        """Findings against the claim that need no statistics."""
        return (*self.proofs, *(() if self.frozen is None else self.frozen.findings))

    @property
    def accounted(self) -> float | None:
        """Composition of the prices of primitives, in the claim's quantity; None where nothing is accounted."""
        return None if self.frozen is None else self.frozen.accounted

    @property
    def coverage(self) -> tuple[str, ...]:
        """Coverage of the verdict, in words."""
        where = f"covers {self.search}" if self.search else "covers this pair of data sets alone"
        other = "other data sets, records of other values" if self.search else "other pairs"
        if self.coupling is None or not self.coupling.n_seen:
            other += ", generators that the data seed"
        if self.tried:
            where += f"; {sum(control.is_caught for control in self.tried)} of {len(self.tried)} planted faults caught"
        lines = [where, f"does not cover: {other}, rarer events, the last bits of floating-point numbers, time"]
        if self.is_cut:
            lines.append("the time ended before all runs were made: more --seconds give more power")
        if self.left_out:
            lines.append(f"left out for lack of time: {', '.join(self.left_out)}")
        if self.frozen is not None:
            lines.append(self.frozen.line)
        return (*lines, *self.notes)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for the verdict, in words."""
        confidence = f"at {self.confidence:.6g} confidence"
        allowed = f"the claim allows {self.limit:.6g}"
        if self.verdict is Verdict.FAIL:
            exceeds = f"measured exceeds claimed: {self.quantity} >= {self.measured:.6g} {confidence}, {allowed}"
            return ((exceeds,) if self.measured > self.limit else ()) + self._broken
        shown = f"without any noise, so many runs would measure {self.quantity} >= {self.reach:.6g}"
        if self.caveats:
            return self.caveats
        if self.verdict is Verdict.INCONCLUSIVE:
            return (f"{self.n_runs} runs a side cannot refute the claim: {shown}, {allowed}; try more --replays",)
        return (f"claimed >= measured on this pair; {shown}",)

    def opening(self, label: str) -> list[str]:
        """The three lines that every verdict opens with."""
        where = f"({self.stated.relation.value})" if self.search else "on the given pair"
        claim = f"{self.stated} {where}"
        return opening(label, self.verdict, self.stated, claim, (self.quantity, self.limit, self.measured), self.read)

    @property
    def read(self) -> str:
        """Contents and number of the runs that were read, and the rarest event that could have been seen, in words."""
        rarest = "no event" if self.rarest is None else f"events of one side with probability {self.rarest:.2g} or more"
        values = f"{self.n_values} number{'s' * (self.n_values != 1)} an output"
        unread = f", but not {'; '.join(_some(self.unread))}" if self.unread else ", all of them"
        return f"{values}{unread}, in {self.n_runs:,} runs a side, {self.how}; {rarest} could be seen"

    def lines(self, label: str) -> list[str]:
        """The verdict, its coverage, the two numbers and the reasons, line by line."""
        sign = "<" if self.measured > self.limit else ">="
        accounted = ""
        if self.accounted is not None:
            accounted = f"  {'<' if self.accounted > self.limit * EQUAL else '>='}  accounted {shown(self.accounted)}"
            sign = "<" if self.measured > self.accounted * EQUAL else ">="
        return [
            *self.opening(label),
            *(f"  {line}" for line in self.coverage),
            f"  {self.quantity}: claimed {shown(self.limit)}{accounted}  {sign}  measured {shown(self.measured)}  "
            f"({self.bound.attack}, {self.bound.method})",
            *(f"  {line}" for line in self.reasons),
        ]

    def __str__(self) -> str:
        return "\n".join(self.lines("release"))

    def entry(self, label: str) -> dict[str, object]:
        """The outcome for machines, in JSON's own types."""
        return {
            "label": label,
            "verdict": self.verdict.value,
            "opening": self.opening(label),
            "claim": str(self.stated),
            "quantity": str(self.quantity),
            "claimed": finite(self.limit),
            "accounted": None if self.accounted is None else finite(self.accounted),
            "measured": finite(self.measured),
            "confidence": self.confidence,
            "runs_per_side": self.n_runs,
            "rarest_event": self.rarest,
            "reach": finite(self.reach),
            "score": self.bound.attack,
            "method": self.bound.method,
            "seed": self.seed,
            "coverage": list(self.coverage),
            "reasons": list(self.reasons),
        }

    def recorded(self, claim: Claim, subject: Mapping[str, str], about: Setup) -> Outcome:
        """The same verdict in the form that evidence files and reports keep.

        Two planted faults stand for all: a release that always tells its side, and one that tells it as seldom as the
        coverage says could be seen. Their bounds follow from the number of runs alone.

        Args:
          claim: what was claimed, with its neighbors.
          subject: kind, name and source of the release.
          about: what a reader needs to repeat the audit.
        """
        bound = self.bounds[0]
        n, limits = len(self.scores[bound.scores][0]), [each.quantity.limit(self.stated) for each in self.bounds]
        planted = [("revealed-always", "the output always reveals its data set", self.reach, limits[0])]
        if (rarest := self.rarest) is not None and rarest < 1:
            words = f"the output reveals it with probability {rarest:.2g}"
            seen = [reach_of(each.quantity, self.seed, each.level, n, rarest) for each in self.bounds]
            planted.append(max((("revealed-seldom", words, *both) for both in zip(seen, limits, strict=True)),
                               key=lambda one: one[2] > one[3]))  # fmt: skip
        controls = [
            TriedControl(name, fault, (SAMPLING,), (SAMPLING,) if reach > limit else (), reach, limit)
            for name, fault, reach, limit in planted
        ]
        simulated = min(n, _SIMULATED)
        smallest = power.smallest_factor_caught(
            bound.method, bound.parameters, bound.level, limits[0], simulated, n_trials=_TRIALS
        )
        return Outcome(
            subject=subject,
            claim=replace(claim, covers=THE_OUTPUT, assumption=""),
            effort=Effort(
                max(self.n_runs, MIN_REPLAYS), self.confidence, bound.quantity.delta or _DEFAULT_DELTA, 1, self.seed
            ),
            failure=1 - self.confidence,
            bounds=self.bounds,
            scores=self.scores,
            events=None,
            counterexample=None,
            noise_finding="; ".join(self._broken) or None,
            controls=(*controls, *self.tried),
            power=smallest,
            caveats=self.caveats,
            about=about,
            coverage=Coverage.in_words((self.read, *self.coverage)),
        )


def _some(words: tuple[str, ...]) -> tuple[str, ...]:
    """The first of many, and how many more there are."""
    return words if len(words) <= _MOST_SHOWN else (*words[:_MOST_SHOWN], f"and {len(words) - _MOST_SHOWN} more")
