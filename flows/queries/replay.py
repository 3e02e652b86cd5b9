"""Runs parts of an audit again from their recorded seeds: rebuilds what was audited, draws units, compares."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bandana.audits.evidence import Line
from bandana.audits.evidence.replayed import Replay, drawn, probability_caught, units_of
from bandana.audits.external.white_box import with_places
from bandana.audits.outcome import Outcome
from bandana.audits.subjects import subjects
from bandana.audits.trial import Audited
from bandana.flows.keys import identity, machine
from bandana.flows.keys.versions import versions
from bandana.flows.spec.made_by import subject_roots
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.spec.plan import Cell, cells_of
from bandana.flows.spec.spec import Spec
from bandana.flows.suites.own_replays import subject_of_own
from bandana.flows.suites.replays import subject_of_cell

_FRACTIONS = (0.01, 0.1, 0.5)
_DECIDE = ("numpy", "scipy", "numba")
"""Libraries whose versions decide the last bits of scores."""


@dataclass(frozen=True)
class Replayed:
    """What was run again.

    Attributes:
      lines: each unit, stated and found.
      n_units: of the audit.
      n_drawn: how many of them were run again.
      entropy: from which they were drawn; the same one draws the same units.
      is_same_code: whether the code that computed the evidence is the one here.
    """

    lines: tuple[Line, ...]
    n_units: int
    n_drawn: int
    entropy: int
    is_same_code: bool

    @property
    def words(self) -> str:
        """How many units were run again, and what that would have caught."""
        advice = (
            ""
            if self.is_same_code
            else "; other code computed the evidence: where lines differ, replay it with that version"
        )
        if self.n_drawn == self.n_units:
            return f"replayed  all {self.n_units} units: none that was made up is left{advice}"
        caught = ", ".join(f"{f:.0%} with {probability_caught(f, self.n_drawn):.3g}" for f in _FRACTIONS)
        return (
            f"replayed  {self.n_drawn} of {self.n_units} units, drawn at random (entropy {self.entropy}); a fraction f of "
            f"made-up units is caught with probability 1 - (1 - f)^{self.n_drawn} or more: {caught}{advice}"
        )


def replayed(outcomes: Sequence[Outcome], amount: str, spec: Spec | None = None, entropy: int | None = None) -> Replayed:
    """Runs units of one or several audits again, drawn at random from all of them together.

    Args:
      outcomes: as their evidence has them.
      amount: how many units, such as `5` or `1%`; a share is rounded up.
      spec: the experiment, where the evidence is of its cells.
      entropy: from which the units are drawn; None: of the operating system.

    Raises:
      SpecError: an amount that is none, or nothing that can be rebuilt from here.
    """
    known = [outcome for outcome in outcomes if outcome.events is not None]
    if not known:
        raise SpecError("--replay: a function or a release has no blocks to draw from; audit it again with the same seed")
    rebuilt = [_rebuilt(outcome, spec) for outcome in known]
    units = [(place, unit) for place, outcome in enumerate(known) for unit in units_of(outcome)]
    n = _amount(amount, len(units))
    seed = np.random.SeedSequence(entropy)
    chosen = drawn(units, n, seed)
    lines: list[Line] = []
    for place, (outcome, (subject, code)) in enumerate(zip(known, rebuilt, strict=True)):
        mine = [unit for whose, unit in chosen if whose == place]
        found = [_code_line(outcome, code), _machine_line(outcome)]
        found += Replay(outcome, subject, _is_same_machine(outcome)).lines(mine)
        name = f"{outcome.subject.get('name', '')}: " if len(known) > 1 else ""
        lines += [replace(line, what=f"{name}{line.what}") for line in found]
    is_same_code = all(
        outcome.about.get("code sha256") == code["code"] for outcome, (_, code) in zip(known, rebuilt, strict=True)
    )
    return Replayed(tuple(lines), len(units), n, int(seed.entropy), is_same_code)  # type: ignore[arg-type]


def _rebuilt(outcome: Outcome, spec: Spec | None) -> tuple[Audited, Mapping[str, Any]]:
    """What was audited, and the code that computes it here."""
    name = outcome.subject.get("name", "")
    if name in subjects():
        return with_places(_catalog_subject(name), outcome.effort), identity.made_by(subject_roots(name))
    if spec is None:
        raise SpecError(
            f"--replay: {name!r} is of no `bandana audit --all`: name its experiment with --spec SPEC.yaml; what was "
            "audited without one is repeated whole, by the same command and seed"
        )
    cell = _cell(name, spec)
    if cell.entry.stated:
        return subject_of_own(cell), cell.audit_code
    return with_places(subject_of_cell(cell), outcome.effort), cell.audit_code


def _catalog_subject(name: str) -> Audited:
    found = subjects()[name]()
    return Audited(found.trial, found.at_test_budget, found.controls)


def _cell(name: str, spec: Spec) -> Cell:
    """The cell of the experiment that the evidence is of."""
    cells = [cell for cell in cells_of(spec) if cell.is_private]
    found = next((cell for cell in cells if cell.name == name), None)
    if found is None:
        listed = ", ".join(cell.name for cell in cells)
        raise SpecError(f"--spec: {spec.name} has no private cell {name!r}; it has {listed}")
    return found


def _amount(text: str, n_units: int) -> int:
    """How many units are meant."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    number = float(found[1]) if found else 0.0
    if found is None or number <= 0 or (found[2] and number > 100) or not (found[2] or number.is_integer()):
        raise SpecError(f"--replay: must be a whole number of units or a percentage such as 1%, got {text!r}")
    return min(n_units, math.ceil(number / 100 * n_units) if found[2] else int(number))


def _code_line(outcome: Outcome, code: Mapping[str, Any]) -> Line:
    stated = outcome.about.get("code sha256", "none")
    is_same = stated == code["code"]
    words = "the same code" if is_same else f"{code['code'][:16]}...: other code may find other scores"
    return Line("replayed: code", f"{stated[:16]}...", words, is_same or None)


def _machine_line(outcome: Outcome) -> Line:
    is_same = _is_same_machine(outcome)
    words = "the same: scores must be equal" if is_same else "another: few scores may differ"
    return Line("replayed: processor and libraries", "as recorded", words, is_same or None)


def _is_same_machine(outcome: Outcome) -> bool:
    """Whether the versions and the processor that decide last bits are those of the record."""
    made = outcome.provenance or {}
    here = versions(*_DECIDE) | {"python": platform.python_version()}
    stated = made.get("versions", {})
    blas = [each.model_dump() for each in machine.blas()]
    return (
        all(stated.get(name) == version for name, version in here.items())
        and made.get("target") == machine.target()
        and list(made.get("features", [])) == list(machine.features())
        and [dict(each) for each in made.get("blas", [])] == blas
    )
