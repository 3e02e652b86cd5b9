"""An audit of a cell as a plain function: no orchestration, no tracking."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from bandana.audits import evidence
from bandana.audits.documents.audit import AuditEntry
from bandana.audits.evidence import UnusableEvidence
from bandana.audits.outcome import Outcome
from bandana.audits.summary import summarize
from bandana.flows.cells.charging import book_keeper
from bandana.flows.folder.store import Store
from bandana.flows.keys import provenance
from bandana.flows.keys.identity import key_of
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.plan.cell_checks import is_built_at_once
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import audit_code, identity_of, stated
from bandana.flows.texts.mistakes import SpecError

AUDIT, AUDIT_PART = "audit", "audit-part"


def audit_facts(cell: Cell) -> dict[str, object]:
    """All that was asked for of a cell's audit."""
    audit = cell.audit.model_dump(mode="json")
    facts = {**identity_of(cell), "audit": audit, "horizon": cell.spec.horizon, **stated(cell)}
    return facts if cell.environment.shows("values") else {**facts, "table": "drawn"}


def audit_key(cell: Cell) -> str:
    """Content key of a cell's audit."""
    return key_of(audit_facts(cell), audit_code(cell))


def evidence_of(cell: Cell, store: Store) -> Path:
    """Where a cell's audit lies, or will: an evidence file, from which everything that is shown is read."""
    return store.path(AUDIT, audit_key(cell))


def stored_audit(cell: Cell, store: Store) -> Outcome | None:
    """A finished audit of the cell; None where there is none, or its file is damaged."""
    return stored_outcome(evidence_of(cell, store)) if cell.is_private else None


def stored_outcome(path: Path) -> Outcome | None:
    """Outcome that an evidence file holds; None where there is no whole one."""
    try:
        document = evidence.read(path)
    except UnusableEvidence:
        return None
    return document.outcome if document.sha256 == document.sha256_found else None


def audit_cell(cell: Cell, store: Store) -> Outcome:
    """One audit with its controls; from the store if it is there."""
    if (stored := stored_audit(cell, store)) is not None:
        return stored
    if cell.environment.shows("values"):  # else no audit meets the rows of a file
        book_keeper().check_has_no_book(cell.environment)
    from bandana.flows.cells import own_replays, replays  # with all that searches and replays

    making = Making()
    about = partial(about_audits, made=audit_code(cell))
    if cell.entry.stated:
        outcome = own_replays.audit_of_own(cell, about)
    else:
        outcome = replays.audit_of(cell, about, partial(_kept_part, cell, store))
    cell.environment.check_unchanged()
    made_of = {"of": audit_facts(cell), "made": audit_code(cell)}
    outcome = replace(outcome, provenance=making.record(is_anonymous=store.is_anonymous) | made_of)
    return kept(store, AUDIT, audit_key(cell), outcome)


def _kept_part(cell: Cell, store: Store, facts: Mapping[str, object], make: Callable[[], Outcome]) -> Outcome:
    """The part of a cell's audit with these facts in place of the cell's own, from the store if it is there."""
    key = key_of({**audit_facts(cell), **facts}, audit_code(cell))
    return stored_outcome(store.path(AUDIT_PART, key)) or kept(store, AUDIT_PART, key, make())


def parts_first(cells: Iterable[Cell]) -> list[Cell]:
    """The cells in another order: first one of each kind, whose part of the audit the rest then share.

    A kind is an algorithm in one calibration on one environment.
    """
    turns: dict[tuple[str, str | None, str], int] = {}
    placed = []
    for cell in cells:
        shares = (cell.entry.label, cell.settings.calibration, cell.environment.label)
        placed.append((turns.get(shares, 0), cell))
        turns[shares] = turns.get(shares, 0) + 1
    return [cell for _, cell in sorted(placed, key=lambda pair: pair[0])]


def kept(store: Store, kind: str, key: str, outcome: Outcome) -> Outcome:
    """Stores an audit; what is returned is what is stored: another process may have been sooner."""
    if store.keep(kind, key, evidence.to_bytes(outcome), lambda path: stored_outcome(path) is not None):
        return outcome
    return stored_outcome(store.path(kind, key)) or outcome


def check_audits(cells: Iterable[Cell]) -> None:
    """Refuses audits whose rounds are too few, before any work starts.

    Raises:
      SpecError: replays of a private cell would end before anything is released.
    """
    for cell in cells:
        if cell.is_private and not cell.entry.stated:
            try:
                if is_built_at_once((settings := cell.in_audit()).problem):
                    cell.entry.in_audit(cell.entry.at_test_budget(settings))
            except ValueError as error:
                raise SpecError(f"audit.rounds: {cell.name}: {error}") from error


def audit_entry(cell: Cell, outcome: Outcome, *, is_anonymous: bool) -> AuditEntry:
    """The audit's entry in the report, which names user and host unless it is anonymous."""
    about = {
        "label": cell.name,
        "algorithm": cell.entry.name,
        "calibration": cell.settings.calibration,
        "privacy_model": cell.entry.privacy_model,
        "parameters": cell.parameters(),
        "provenance": provenance.shown(outcome.provenance, is_anonymous=is_anonymous),
    }
    entry: AuditEntry = summarize(outcome, about)
    return entry
