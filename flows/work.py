"""An audit of a cell as a plain function: no orchestration, no tracking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from algorithms.entry import ARMS, Settings
from algorithms.environments.episodes import Table
from audits import evidence
from audits.audit import Trial, audit
from audits.catalog_beds import at_test_budget, is_near_test_budget
from audits.catalog_controls import CONTROLS
from audits.evidence import UnusableEvidence
from audits.faulty_ledgers import GENERIC
from audits.outcome import Effort, Outcome
from audits.summary import summarize
from flows import provenance
from flows.plan import Cell
from flows.provenance import Making
from flows.specs import SpecError
from flows.store import Store, code_version, content_key, write_first
from privacy_core import ReproducibleNoise

AUDIT = "audit"


def audit_key(cell: Cell) -> str:
    """Content key of a cell's audit."""
    replays_rows = cell.environment.shows("values")
    return content_key({**cell.identity(), "audit": cell.spec.audit.model_dump(mode="json"), "code": code_version(),
                        **({} if replays_rows else {"table": "drawn"})})  # fmt: skip


def evidence_of(cell: Cell, store: Store) -> Path:
    """Where a cell's audit lies, or will: an evidence file, from which everything that is shown is read."""
    return store.path(AUDIT, audit_key(cell))


def stored_audit(cell: Cell, store: Store) -> Outcome | None:
    """A finished audit of the cell; None where there is none, or its file is damaged."""
    return stored_outcome(evidence_of(cell, store)) if cell.is_private else None


def stored_outcome(path: Path) -> Outcome | None:
    """What an evidence file holds; None where there is no whole one."""
    try:
        found = evidence.read(path)
    except UnusableEvidence:
        return None
    return found.outcome if found.sha256 == found.sha256_found else None


def audit_cell(cell: Cell, store: Store) -> Outcome:
    """One audit with its controls; from the store if it is there."""
    if (found := stored_audit(cell, store)) is not None:
        return found
    making = Making()
    asked, entry, environment = cell.spec.audit, cell.entry, cell.environment
    table, main, near = environment.audit_table(), cell.in_audit(), None
    if not is_near_test_budget(entry, main, table):
        near = at_test_budget(entry, main, table)
    data = (
        f" of {environment.describe()['name']}" if environment.shows("values") else ", drawn at random: the data are private"
    )
    what = "arms" if environment.kind in ARMS else "actions"
    rounds = f"{asked.rounds} {environment.unit} x {table.n_actions} {what}{data}{_played_with(cell, main, near)}"
    trial = _trial(cell, main, table)
    outcome = audit(
        trial,
        CONTROLS.get(entry.name, GENERIC),
        Effort(asked.replays, asked.confidence, asked.delta, asked.examples, cell.spec.seed),
        at_test_budget=None if near is None else _trial(cell, near, table),
        subject={"kind": "catalog", "name": cell.name, "source": entry.source},
        about=about_audits(rounds, trial.probes, cell.spec.seed),
    )
    outcome = replace(outcome, provenance=making.record(is_anonymous=store.is_anonymous))
    return kept(evidence_of(cell, store), outcome)


def kept(place: Path, outcome: Outcome) -> Outcome:
    """Stores an audit; what is returned is what is stored: another process may have been sooner."""
    if write_first(place, evidence.to_bytes(outcome), lambda path: stored_outcome(path) is not None):
        return outcome
    return stored_outcome(place) or outcome


def check_audits(cells: Iterable[Cell]) -> None:
    """Refuses audits whose rounds are too few, before any work starts.

    Raises:
      SpecError: replays of a private cell would end before anything is released.
    """
    for cell in cells:
        if cell.is_private:
            try:
                cell.entry.in_audit(cell.entry.at_test_budget(cell.in_audit()))
            except ValueError as error:
                raise SpecError(f"audit.rounds: {cell.name}: {error}") from error


def _played_with(cell: Cell, main: Settings, near: Settings | None) -> str:
    """The parameters that replays change, at the claimed and at the test budget, and the claim at which that one is."""
    told = [_changed(cell, main), "" if near is None else _changed(cell, near)]
    found = f"; replays play with {told[0]}" if told[0] else ""
    if near is not None:
        also = f", with {told[1]}" if told[1] and told[1] != told[0] else ""
        found += f"; at the test budget as {near.privacy}{also}"
    return found


def _changed(cell: Cell, played: Settings) -> str:
    asked = cell.settings.parameters
    return ", ".join(f"{name} = {value:.4g}" for name, value in played.parameters.items() if value != asked[name])


def _trial(cell: Cell, played: Settings, table: Table) -> Trial:
    entry = cell.entry
    assert entry.promise is not None
    assert entry.probes is not None
    return Trial(entry.build(played), entry.promise(played), table, entry.probes(table.n_actions))


def audit_entry(cell: Cell, outcome: Outcome, *, is_anonymous: bool) -> dict[str, Any]:
    """The audit's entry in the report, which names user and host unless it is anonymous."""
    about = {
        "label": cell.name,
        "algorithm": cell.entry.name,
        "calibration": cell.settings.calibration,
        "privacy_model": cell.entry.privacy_model,
        "parameters": cell.parameters(),
        "provenance": provenance.shown(outcome.provenance, is_anonymous=is_anonymous),
    }
    return summarize(outcome, about)


def about_audits(table: str, probes: tuple[int, ...], seed: int) -> dict[str, str]:
    """What a reader needs to repeat an audit."""
    return {
        "table": table,
        "probes": ", ".join(map(str, probes)),
        "seeds": f"SeedSequence({seed}), one child a pair and side, one grandchild a block of replays",
        "noise source": ReproducibleNoise.name,
        "code sha256": code_version(),
    }
