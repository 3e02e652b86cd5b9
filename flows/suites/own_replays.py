"""Audits a cell of a user's own algorithm: canaries stand where its ledger says that a record pays most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandana.audits.external import white_box
from bandana.audits.external.white_box import find_probes
from bandana.audits.outcome import Effort, Outcome
from bandana.audits.trial import Audited, Trial
from bandana.flows.suites.replays import About, data_of

if TYPE_CHECKING:
    from bandana.flows.spec.plan import Cell


def audit_of_own(cell: Cell, about: About) -> Outcome:
    """One audit with the planted faults of any algorithm; at a test budget, all noise is rescaled."""
    trial, effort = _trial(cell), _effort(cell)
    return white_box.examine(
        trial,
        effort,
        {"kind": "algorithm", "name": cell.name, "source": cell.entry.source},
        about(data_of(cell.environment, trial.table.n_actions), trial.probes, effort.seed),
    )


def subject_of_own(cell: Cell) -> Audited:
    """What `audit_of_own` audits."""
    return white_box.audited_as(_trial(cell), _effort(cell))


def _trial(cell: Cell) -> Trial:
    entry, table, played = cell.entry, cell.environment.audit_table(), cell.in_audit()
    assert entry.promise is not None
    algorithm = entry.build(played)
    return Trial(algorithm, entry.promise(played), table, find_probes(algorithm, table, cell.spec.seed))


def _effort(cell: Cell) -> Effort:
    asked = cell.audit
    return Effort(asked.replays, asked.confidence, asked.delta, asked.examples, cell.spec.seed)
