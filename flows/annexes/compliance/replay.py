"""Runs parts of an audit again from their recorded seeds: rebuilds what was audited, draws units, compares."""

from __future__ import annotations

import json
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from bandana.audits.outcome import Effort, Outcome
from bandana.audits.subjects import subjects
from bandana.audits.trial import Audited
from bandana.flows.annexes.compliance.evidence.lines import OTHER_CODE, Line, differences
from bandana.flows.annexes.compliance.evidence.recompute import FAULTS, POWER, SEARCHES, SETTING
from bandana.flows.annexes.compliance.evidence.replayed import Replay, drawn, probability_caught, units_of
from bandana.flows.cells.audits import audit_facts
from bandana.flows.cells.own_replays import audited_own
from bandana.flows.cells.replays import audited_cell, audited_subject, effort_of
from bandana.flows.keys import identity, machine
from bandana.flows.keys.identity import MadeBy
from bandana.flows.keys.provenance import about_audits
from bandana.flows.keys.versions import versions
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import audit_code
from bandana.flows.plan.made_by import subject_roots
from bandana.flows.plan.plan import Plan
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError, shortened

_FRACTIONS = (0.01, 0.1, 0.5)
_DECIDE = ("numpy", "scipy", "numba")
"""Libraries whose versions decide the last bits of scores."""


@dataclass(frozen=True)
class Replayed:
    """Units that were run again.

    Attributes:
      lines: each unit, stated and recomputed.
      n_units: blocks of replays of all audits.
      n_drawn: how many of them were run again.
      entropy: from which they were drawn; the same one draws the same units.
    """

    lines: tuple[Line, ...]
    n_units: int = 0
    n_drawn: int = 0
    entropy: int = 0

    @property
    def words(self) -> str:
        """Number of blocks that were run again, and what that would have caught; empty if none was."""
        if not self.n_drawn:
            return ""
        if self.n_drawn == self.n_units:
            return f"replayed  all {self.n_units} blocks: no made-up scores are left"
        caught = ", ".join(f"{f:.0%} with {probability_caught(f, self.n_drawn):.3g}" for f in _FRACTIONS)
        return (
            f"replayed  {self.n_drawn} of {self.n_units} blocks, drawn at random (entropy {self.entropy}); a fraction f of "
            f"made-up blocks is caught with probability 1 - (1 - f)^{self.n_drawn} or more: {caught}"
        )


def replayed(
    outcomes: Sequence[Outcome],
    amount: str | None = None,
    plan: Plan | None = None,
    entropy: int | None = None,
    reason: str = "needs the experiment: --spec SPEC.yaml",
    advance: Callable[[str], None] = lambda label: None,
) -> Replayed:
    """Runs audits again: searches and planted faults, and blocks of replays drawn at random from all audits together.

    Args:
      outcomes: as their evidence has them.
      amount: how many blocks, such as `5` or `1%`; a share is rounded up; None: none.
      plan: of the experiment, where the evidence is of its cells.
      entropy: from which the blocks are drawn; None: of the operating system.
      reason: why there is no plan.
      advance: is told when an audit is done.

    Raises:
      SpecError: an amount that is none, or blocks are asked for and nothing can be rebuilt from here.
    """
    rebuilt: list[tuple[Outcome, _Rebuilt]] = []
    lines: list[Line] = []
    cells = {cell.name: cell for cell in plan.private} if plan is not None else {}
    for outcome in outcomes:
        again = _rebuilt(outcome, cells, reason)
        if isinstance(again, str):
            if amount is not None:
                raise SpecError(f"--replay: {again}")
            lines += [_named(line, outcome, outcomes) for line in not_run(again)]
        else:
            rebuilt.append((outcome, again))
    units = [(place, unit) for place, (outcome, _) in enumerate(rebuilt) for unit in units_of(outcome) if unit.is_drawn]
    n = 0 if amount is None else _amount(amount, len(units))
    seed = np.random.SeedSequence(entropy)
    chosen = drawn(units, n, seed)
    for place, (outcome, again) in enumerate(rebuilt):
        mine = [unit for unit in units_of(outcome) if not unit.is_drawn] + [unit for whose, unit in chosen if whose == place]
        new = [_code_line(outcome, again.code), _request_line(outcome, again), _machine_line(outcome)]
        if again.is_private:
            words = "private rows are known by the secret of their data folder alone"
            new.append(Line("replayed: rows", "as stated", words, None, "rows", is_claimed=True))
        new += Replay(outcome, again.audited, _is_same_machine(outcome)).lines(mine)
        lines += [_named(line, outcome, outcomes) for line in new]
        advance(outcome.subject.get("name", ""))
    return Replayed(tuple(lines), len(units), n, int(seed.entropy))  # type: ignore[arg-type]


def _named(line: Line, outcome: Outcome, outcomes: Sequence[Outcome]) -> Line:
    """The line with its audit's name, where there are several."""
    return line if len(outcomes) == 1 else replace(line, what=f"{outcome.subject.get('name', '')}: {line.what}")


def not_run(reason: str) -> list[Line]:
    """Lines on the parts of evidence that take the algorithm, where it is not run."""
    return [Line(part, "as stated", reason, None, part) for part in (SEARCHES, FAULTS, POWER, SETTING)]


@dataclass(frozen=True)
class _Rebuilt:
    """Subject of the audit, built again from the code here; private where evidence may not tell the content of its file."""

    audited: Audited
    facts: JsonObject
    code: MadeBy
    effort: Effort
    is_private: bool = False


def _rebuilt(outcome: Outcome, cells: Mapping[str, Cell], reason: str) -> _Rebuilt | str:
    """The audit, built again; or why it cannot be."""
    name, kind = outcome.subject.get("name", ""), outcome.subject.get("kind")
    if outcome.events is None or (kind != "catalog" and name not in cells):
        return "own code: repeat the audit"
    if name in subjects():
        code = identity.made_by(subject_roots(name))
        about = partial(about_audits, made=code)
        facts = {"whole catalog": name, "effort": asdict(outcome.effort)}
        return _Rebuilt(audited_subject(subjects()[name](), outcome.effort, about), facts, code, outcome.effort)
    if not cells:
        return reason
    if name not in cells:
        raise SpecError(f"--spec: has no private cell {name!r}; it has {shortened(', '.join(cells)) or 'none'}")
    cell = cells[name]
    rebuild, made = audited_own if cell.entry.stated else audited_cell, audit_code(cell)
    is_private = cell.environment.item.data_file is not None and not cell.environment.shows("values")
    audited = rebuild(cell, partial(about_audits, made=made))
    return _Rebuilt(audited, audit_facts(cell), made, effort_of(cell), is_private)


def _amount(text: str, n_units: int) -> int:
    """Number of units that are meant."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    number = float(match[1]) if match else 0.0
    if match is None or number <= 0 or (match[2] and number > 100) or not (match[2] or number.is_integer()):
        raise SpecError(f"--replay: must be a whole number of units or a percentage such as 1%, got {text!r}")
    return min(n_units, math.ceil(number / 100 * n_units) if match[2] else int(number))


def _code_line(outcome: Outcome, code: MadeBy) -> Line:
    stated = outcome.about.code_sha256 or "none"
    is_same = stated == code["code"]
    return Line("replayed: code", f"{stated[:16]}...", "the same code" if is_same else OTHER_CODE, is_same, SETTING)


def _request_line(outcome: Outcome, again: _Rebuilt) -> Line:
    """Request as the evidence keeps it, beside that of the code here."""
    made = outcome.provenance or {}
    stated, facts = json.loads(json.dumps([made.get("of"), again.facts]))
    if again.is_private and stated is not None and isinstance(environment := stated.get("environment"), dict):
        environment["content"] = facts["environment"]["content"]  # under a secret that only the sender's data folder has
    wrong = [place for place, *_ in differences(stated, facts)]
    if stated is not None and asdict(outcome.effort) != asdict(again.effort):
        wrong.append("effort")
    versions_of = made.get("versions") or {}
    libraries = {name: ".".join(str(versions_of.get(name)).split(".")[:2]) for name in identity.libraries()}
    if made.get("made") != {"code": outcome.about.code_sha256, "libraries": libraries}:
        wrong.append("code and libraries")
    if stated is None:
        return Line("replayed: request", "not recorded", "the request is not recorded", None, SETTING)
    return Line("replayed: request", "as recorded", ", ".join(wrong[:5]) or "the same", not wrong, SETTING)


def _machine_line(outcome: Outcome) -> Line:
    is_same = _is_same_machine(outcome)
    words = "the same: scores must be equal" if is_same else "another: few scores may differ"
    return Line("replayed: processor and libraries", "as recorded", words, is_same or None, "machine", is_claimed=True)


def _is_same_machine(outcome: Outcome) -> bool:
    """True if the versions and the processor that decide last bits are those of the record."""
    made = outcome.provenance or {}
    here = versions(*_DECIDE) | {"python": platform.python_version()}
    stated = made.get("versions", {})
    is_here = "torch" not in stated  # what a device replayed is replayed here by the algorithm itself
    blas = [each.model_dump() for each in machine.blas()]
    return (
        is_here
        and all(stated.get(name) == version for name, version in here.items())
        and made.get("target") == machine.target()
        and list(made.get("features", [])) == list(machine.features())
        and [dict(each) for each in made.get("blas", [])] == blas
    )
