"""Audits a cell of a user's own algorithm: canaries stand where its ledger says that a record pays most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandana.audits.external import white_box
from bandana.audits.external.white_box import find_probes
from bandana.audits.outcome import Effort, Outcome
from bandana.audits.trial import Trial
from bandana.flows.suites.replays import About, data_of

if TYPE_CHECKING:
    from bandana.flows.spec.plan import Cell


def audit_of_own(cell: Cell, about: About) -> Outcome:
    """One audit with the planted faults of any algorithm; at a test budget, all noise is rescaled."""
    asked, entry, seed = cell.audit, cell.entry, cell.spec.seed
    assert entry.promise is not None
    table, played = cell.environment.audit_table(), cell.in_audit()
    algorithm = entry.build(played)
    trial = Trial(algorithm, entry.promise(played), table, find_probes(algorithm, table, seed))
    return white_box.examine(
        trial,
        Effort(asked.replays, asked.confidence, asked.delta, asked.examples, seed),
        {"kind": "algorithm", "name": cell.name, "source": entry.source},
        about(data_of(cell.environment, table.n_actions), trial.probes, seed),
    )
