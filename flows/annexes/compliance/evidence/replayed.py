"""Parts of an audit that are run again from their recorded seeds, drawn at random: made-up scores do not survive it.

An audit consists of units: blocks of replays, planted faults, searches without replays, and the run with many canaries. Each
can be repeated alone. If a fraction f of all units was made up, k units drawn at random miss all of them with probability at
most (1 - f)^k. Scores from actions alone are learned from all blocks of a pair, and compared where all of these were drawn.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.audit import try_control
from bandana.audits.coverage import Coverage
from bandana.audits.evidence.archive import parts
from bandana.audits.evidence.fields import plain
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import ACTIONS, GUESSED_COINS, ONE_RUN, REPORT, TRANSCRIPT, Outcome, TriedControl
from bandana.audits.plan import plan_bounds
from bandana.audits.replays import attacks
from bandana.audits.replays.measure import measure_one_run, rounded, scored
from bandana.audits.replays.replay import BLOCK, Replays, joined, n_blocks, replay_block
from bandana.audits.searches.deterministic import Deterministic
from bandana.audits.searches.noise import Noise
from bandana.audits.searches.request import Request
from bandana.audits.searches.sampling import foreseen, power_of
from bandana.audits.trial import Audited
from bandana.flows.annexes.compliance.evidence.lines import Line, agree, differences, in_part, shortly, shown
from bandana.flows.annexes.compliance.evidence.recompute import FAULTS, POWER, SEARCHES, SETTING
from bandana.privacy_core import PureDP

RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""Scores are single-precision sums of log density ratios: two processors' sums differ by less than this."""
TIPPED = 1e-3
"""Share of replays that may go another way on another processor, where the last bits of two sums decide between actions."""
BLOCK_UNIT, FAULT_UNIT, SEARCH_UNIT, ONE_RUN_UNIT = "block", "planted fault", "searches", "one run"


@dataclass(frozen=True)
class Unit:
    """A part of an audit that can be repeated alone.

    Attributes:
      kind: a block of replays, a planted fault, the searches without replays, or the run with many canaries.
      part: prefix of the names of its scores: of the claimed or of the test budget.
      pair: index of the pair; 0 for others than blocks.
      side: 0 for the data set, 1 for the neighbor.
      index: of the block, or of the planted fault.
    """

    kind: str
    part: str = ""
    pair: int = 0
    side: int = 0
    index: int = 0

    @property
    def is_drawn(self) -> bool:
        """True if a replay draws it at random: blocks are many, and searches and planted faults are always run again."""
        return self.kind in (BLOCK_UNIT, ONE_RUN_UNIT)

    def __str__(self) -> str:
        where = "test budget: " if self.part else ""
        if self.kind == BLOCK_UNIT:
            return f"{where}pair {self.pair}, {('data', 'neighbor')[self.side]}, block {self.index}"
        return f"{where}{self.kind}" + (f" {self.index}" if self.kind == FAULT_UNIT else "")


def units_of(outcome: Outcome) -> list[Unit]:
    """All units of an audit of an algorithm with a ledger, in a fixed order."""
    units = []
    for prefix, part in parts(outcome):
        for pair, n_replays in enumerate(part.replays):
            for side in (0, 1):
                units += [Unit(BLOCK_UNIT, prefix, pair, side, i) for i in range(n_blocks(n_replays))]
        units += [Unit(FAULT_UNIT, prefix, index=i) for i in range(len(part.controls))]
        units.append(Unit(SEARCH_UNIT, prefix))
        if ONE_RUN in part.scores or _plans_one_run(part):
            units.append(Unit(ONE_RUN_UNIT, prefix))
    return units


def _plans_one_run(part: Outcome) -> bool:
    plan = plan_bounds(part.claim.stated, part.effort.delta, part.events or ())
    return any(planned.view == ONE_RUN for planned in plan)


T = TypeVar("T")


def drawn(units: Sequence[T], n: int, seed: np.random.SeedSequence) -> list[T]:
    """So many units, all different, each set of them as likely as any other."""
    rng = np.random.Generator(np.random.SFC64(seed))
    return [units[place] for place in sorted(rng.permutation(len(units))[:n].tolist())]


def probability_caught(fraction: float, n: int) -> float:
    """Probability, at least, with which n units drawn at random hold one of a fraction that was made up."""
    return -math.expm1(n * math.log1p(-fraction)) if fraction < 1 else 1.0


@dataclass(frozen=True)
class Replay:
    """An audit whose units are run again.

    Attributes:
      outcome: as the evidence has it.
      subject: rebuilt from the code.
      is_same_machine: whether versions and processor are those of the record: then each score must be the same.
    """

    outcome: Outcome
    subject: Audited
    is_same_machine: bool

    def lines(self, units: Sequence[Unit]) -> list[Line]:
        """The file's statements of each unit beside those of a new run; ledgers and words are always compared."""
        lines = [*self._of_words(), *(line for prefix in self._parts for line in self._of_subject(prefix))]
        whole: dict[tuple[str, int], dict[tuple[int, int], Replays]] = {}
        for unit in units:
            if unit.kind == BLOCK_UNIT and unit.part in self._requests:
                replays = self._replays(unit)
                whole.setdefault((unit.part, unit.pair), {})[unit.side, unit.index] = replays
                lines += self._block(unit, replays)
            else:
                lines += self._again(unit)
        return lines + [line for (part, pair), blocks in whole.items() for line in self._actions(part, pair, blocks)]

    @cached_property
    def _parts(self) -> dict[str, Outcome]:
        return dict(parts(self.outcome))

    @cached_property
    def _requests(self) -> dict[str, Request]:
        """The request of each budget, as the audit made it."""
        trials = {"": self.subject.trial}
        if self.subject.at_test_budget is not None:
            trials["test_"] = replace(self.subject.at_test_budget, is_test_budget=True)
        share = (1 - self.outcome.effort.confidence) / len(self._parts)
        return {prefix: Request(trial, self.outcome.effort, share) for prefix, trial in trials.items()}

    def _of_words(self) -> list[Line]:
        """Names, table, probes and seeds, and which faults were not planted."""
        pairs = [("subject", self.outcome.subject, self.subject.subject), ("about", self.outcome.about, self.subject.notes)]
        lines = []
        for name, stated, again in [(name, plain(first), plain(second)) for name, first, second in pairs]:
            lines.append(Line(f"replayed: {name}", f"{len(stated)} words", f"{len(again)} words", stated == again, SETTING))
            lines += [Line(f"replayed: {name}: {place}", shortly(mine), shortly(theirs), False, SETTING)
                      for place, mine, theirs in differences(stated, again)]  # fmt: skip
        return lines

    def _of_subject(self, prefix: str) -> list[Line]:
        """The claim, the pairs and the ledger of one budget."""
        part, words = self._parts[prefix], "replayed, test budget: " if prefix else "replayed: "
        request = self._requests.get(prefix)
        if request is None:
            return [Line(f"{words}trial", "present", "the algorithm has no test budget", False)]
        claim, mine = part.claim, request.trial.claim
        caveats = () if prefix else self.subject.caveats
        lines = [
            Line(words + name, shown(stated), shown(again), agree(stated, again))
            for name, stated, again in (
                ("claim", f"{claim.statement}; {claim.theorem}; {claim.unit}; {claim.source}",
                 f"{mine.statement}; {mine.theorem}; {mine.unit}; {mine.source}"),
                ("guarantee", str(claim.stated), str(mine.stated)),
                ("replays of pairs", str(part.replays), str(request.replays)),
                ("ledger", _events(part.events), _events(request.events)),
                ("pairs", _pairs(part), _pairs_of(request) if part.bounds else ""),
                ("attacks", *_attacks(part)),
                ("caveats", *("; ".join(each) or "none" for each in (part.caveats, (*caveats, *foreseen(request))))),
            )
        ]  # fmt: skip
        lines = in_part(SETTING, lines)
        power = power_of(request)
        lines.append(Line(f"{words}power", shown(part.power), shown(power), self._near(part.power, power), POWER))
        if (prefix == "") is (self.outcome.at_test_budget is None):
            stated, again = ([control.name for control in controls] for controls in (part.controls, self.subject.planted))
            lines.append(Line(words + "planted faults", ", ".join(stated), ", ".join(again), stated == again, FAULTS))
        return lines

    def _again(self, unit: Unit) -> list[Line]:
        request = self._requests.get(unit.part)
        if request is None:
            return []
        if unit.kind == FAULT_UNIT:
            return [self._fault(unit, request)]
        return self._searches(unit, request) if unit.kind == SEARCH_UNIT else self._one_run(unit, request)

    def _replays(self, unit: Unit) -> Replays:
        """The block, played again."""
        part, request = self._parts[unit.part], self._requests[unit.part]
        n_pairs = len(request.canaries) + 1
        seed = np.random.SeedSequence(part.effort.seed).spawn(2 * n_pairs)[2 * unit.pair + unit.side]
        pair = self._pair(unit)
        n_replays = part.replays[unit.pair]
        return replay_block(request.trial.algorithm, pair, bool(unit.side), n_replays, seed, unit.index)

    def _pair(self, unit: Unit) -> Pair:
        """The unit's pair; one that the algorithm does not have is compared with the least favorable one, and differs."""
        request = self._requests[unit.part]
        return request.canaries[unit.pair] if unit.pair < len(request.canaries) else request.least_favorable.pair

    def _block(self, unit: Unit, replays: Replays) -> list[Line]:
        part = self._parts[unit.part]
        rows = slice(unit.index * BLOCK, unit.index * BLOCK + len(replays))
        lines = []
        for view, scores in ((TRANSCRIPT, replays.log_ratio), (REPORT, replays.report_log_ratio)):
            name = f"{view}{unit.pair}"
            if name in part.scores:
                stated = part.scores[name][unit.side][rows]
                lines.append(self._compared(f"replayed: {unit}, {view}", stated, rounded(scores)))
        named = {bound.neighbor for bound in part.bounds if bound.scores == f"{TRANSCRIPT}{unit.pair}"}
        if named != {(pair := self._pair(unit)).difference}:
            lines.append(Line(f"replayed: {unit}", ", ".join(sorted(map(str, named))), pair.description, False))
        return lines

    def _actions(self, prefix: str, pair: int, blocks: Mapping[tuple[int, int], Replays]) -> list[Line]:
        """The scores that were learned from the actions of a pair, of which every block was played again."""
        part, request = self._parts[prefix], self._requests[prefix]
        n, name = n_blocks(part.replays[pair]), f"{ACTIONS}{pair}"
        if len(blocks) < 2 * n or name not in part.scores:
            return []
        sides = tuple(joined([blocks[side, index] for index in range(n)]) for side in (0, 1))
        plan = plan_bounds(request.trial.claim.stated, part.effort.delta, request.events)
        planned = next(each for each in plan if each.view == ACTIONS)
        level = request.failure * planned.share / (len(request.canaries) + 1)
        attack, again = scored(planned, (sides[0], sides[1]), level, part.effort)
        named = {bound.attack for bound in part.bounds if bound.scores == name}
        what = f"replayed: {'test budget: ' if prefix else ''}pair {pair}, actions"
        lines = [Line(f"{what}: attack", ", ".join(sorted(named)), attack, named == {attack} or not self.is_same_machine)]
        return [*lines, *(self._compared(f"{what}, {side}", *each) for side, each in
                zip(("data", "neighbor"), zip(part.scores[name], again, strict=True), strict=True))]  # fmt: skip

    def _compared(self, what: str, stated: FloatArray, again: FloatArray) -> Line:
        differing = n_differing(stated, again)
        allowed = 0 if self.is_same_machine else max(1, int(TIPPED * len(again)))
        words = f"{differing} differ" + (f", at most {allowed} may on another processor" if allowed else "")
        return Line(what, f"{len(stated)} scores", words, differing <= allowed)

    def _fault(self, unit: Unit, request: Request) -> Line:
        stated = self._parts[unit.part].controls[unit.index]
        control = next((control for control in self.subject.planted if control.name == stated.name), None)
        if control is None:
            return Line(f"replayed: {unit}", stated.name, "is no planted fault of this algorithm", False, FAULTS)
        again = try_control(request, control)
        is_same = replace(again, measured=stated.measured, limit=stated.limit) == stated
        is_near = all(self._near(getattr(stated, name), getattr(again, name)) for name in ("measured", "limit"))
        what = f"replayed: planted fault {stated.name}"
        return Line(what, _caught(stated), _caught(again), is_same and is_near, FAULTS)

    def _near(self, stated: float, again: float) -> bool:
        """True if two bounds agree; on another processor a few scores may differ, and bounds a little."""
        return agree(stated, again) or (not self.is_same_machine and math.isclose(stated, again, rel_tol=0.02, abs_tol=0.02))

    def _searches(self, unit: Unit, request: Request) -> list[Line]:
        part = self._parts[unit.part]
        search, noise = Deterministic().examine(request), Noise().examine(request)
        covered = _covered(part.coverage), _covered(search.coverage)
        return [
            self._finding(f"replayed: {unit}, counterexample", part.counterexample, search.counterexample),
            self._finding(f"replayed: {unit}, noise finding", part.noise_finding, noise.noise_finding),
            Line(f"replayed: {unit}, coverage", *covered, part.coverage == search.coverage, SEARCHES),
        ]

    def _finding(self, what: str, stated: Any, again: Any) -> Line:
        """Another processor may find the same with other last digits: there only whether something was found counts."""
        first, second = (json.dumps(each, sort_keys=True) for each in (stated, again))
        is_same = first == second if self.is_same_machine else (stated is None) is (again is None)
        return Line(what, shortly(stated), shortly(again), is_same, SEARCHES)

    def _one_run(self, unit: Unit, request: Request) -> list[Line]:
        part = self._parts[unit.part]
        stated = part.claim.stated
        claim = stated if isinstance(stated, PureDP) else part.claim.gaussian
        shares = [p.share for p in plan_bounds(stated, part.effort.delta, part.events or ()) if p.view == ONE_RUN]
        trial = request.trial
        measured = measure_one_run(trial.algorithm, trial.table, claim, part.effort, request.failure * sum(shares))
        names = [[b.method for b in bounds if b.view == ONE_RUN] for bounds in (part.bounds, measured.bounds)]
        stated_words, again_words = (", ".join(each) or "no bound" for each in names)
        lines = [Line(f"replayed: {unit}", stated_words, again_words, names[0] == names[1])]
        if ONE_RUN in part.scores and ONE_RUN in measured.scores:
            pairs = zip(("scores", "coins"), part.scores[ONE_RUN], measured.scores[ONE_RUN], strict=True)
            lines += [self._compared(f"replayed: {unit}, {name}", mine, again) for name, mine, again in pairs]
        return lines


def n_differing(stated: FloatArray, again: FloatArray) -> int:
    """Number of scores that differ by more than rounding, or that one side has more of."""
    n = min(len(stated), len(again))
    same = np.isclose(stated[:n], again[:n], rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    return int((~same).sum()) + abs(len(stated) - len(again))


def _pairs(part: Outcome) -> str:
    """The pair of every bound on pairs, in words."""
    views = {bound.view for bound in part.bounds} - {ONE_RUN}
    named = {(int(b.scores.removeprefix(view)), str(b.neighbor)) for view in views for b in part.bounds if b.view == view}
    return "; ".join(f"{place}: {neighbor}" for place, neighbor in sorted(named))


def _pairs_of(request: Request) -> str:
    pairs = (*request.canaries, request.least_favorable.pair)
    return "; ".join(f"{place}: {pair.description}" for place, pair in enumerate(pairs))


def _attacks(part: Outcome) -> tuple[str, str]:
    """Names of attacks that the file states and nobody knows, and that there must be none."""
    known = {view: {attack.name for attack in attacks.of_view(view)} for view in (TRANSCRIPT, REPORT, ACTIONS)}
    known[ONE_RUN] = {GUESSED_COINS}
    unknown = {bound.attack for bound in part.bounds if bound.attack not in known.get(bound.view, {bound.attack})}
    return ", ".join(sorted(unknown)) or "known", "known"


def _caught(control: TriedControl) -> str:
    return f"{control.measured:.6g} of {control.limit:.6g}, caught by {', '.join(control.caught_by) or 'nothing'}"


def _events(events: Any) -> str:
    return "none" if events is None else ", ".join(f"{count} x {event}" for event, count in events) or "no release"


def _covered(coverage: Coverage | None) -> str:
    return "none" if coverage is None else " ".join(coverage.lines())
