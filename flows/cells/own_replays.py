"""Audits a cell of a user's own algorithm: canaries stand where its ledger says that a record pays most."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bandana.audits.outcome import Outcome, Setup
from bandana.audits.own import white_box
from bandana.audits.own.white_box import find_probes
from bandana.audits.trial import Audited, Trial
from bandana.flows.cells.replays import About, data_of, effort_of, whole_of

if TYPE_CHECKING:
    from bandana.flows.plan.cells import Cell


def audit_of_own(cell: Cell, about: About) -> Outcome:
    """One audit with the planted faults of any algorithm; at a test budget, all noise is rescaled."""
    trial = _trial(cell)
    return white_box.examine(trial, effort_of(cell), *_words(cell, trial, about))


def subject_of_own(cell: Cell) -> Audited:
    """Subject that `audit_of_own` audits."""
    return white_box.audited_as(_trial(cell), effort_of(cell))


def audited_own(cell: Cell, about: About) -> Audited:
    """The same, with the words that its evidence says of it."""
    audited = subject_of_own(cell)
    subject, notes = _words(cell, audited.trial, about)
    return replace(audited, subject=subject, about=notes)


def _words(cell: Cell, trial: Trial, about: About) -> tuple[dict[str, str], Setup]:
    """Who is audited, and what a reader needs to repeat it."""
    words = about(data_of(cell.environment, trial.table.n_actions), trial.probes, cell.spec.seed)
    return {"kind": "algorithm", "name": cell.name, "source": cell.entry.source}, words


def _trial(cell: Cell) -> Trial:
    entry, table, played = cell.entry, cell.environment.audit_table(), cell.in_audit()
    assert entry.promise is not None
    algorithm = entry.build(played)
    probes = find_probes(algorithm, table, cell.spec.seed)
    return Trial(algorithm, entry.promise(played), table, probes, whole=whole_of(cell))
