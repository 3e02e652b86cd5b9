"""Which code makes a block or an audit: the roots from which `bandana.flows.keys.closure` follows everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bandana.flows.keys import identity
from bandana.flows.keys.closure import Name, roots_of

if TYPE_CHECKING:
    from bandana.flows.spec.plan import Cell


def block_code(cell: Cell) -> dict[str, Any]:
    """What computes the cell's blocks, see `identity.made_by`."""
    return identity.made_by(block_roots(cell))


def audit_code(cell: Cell) -> dict[str, Any]:
    """What computes the cell's audit, see `identity.made_by`."""
    return identity.made_by(audit_roots(cell))


def block_roots(cell: Cell) -> frozenset[Name]:
    """The loop, the environment, and the builder of the algorithm."""
    return _problem_roots(cell) | {
        Name("bandana.flows.suites.replicates"),
        Name("bandana.flows.spec.problems"),
        Name("bandana.flows.spec.seeds"),
        *roots_of(cell.entry.build),
    }


def audit_roots(cell: Cell) -> frozenset[Name]:
    """The audit, what it replays, the algorithm with its promise, and the planted faults."""
    from bandana.audits.faults.catalog import CONTROLS

    entry = cell.entry
    made = (entry.build, entry.promise, entry.probes, entry.in_audit, CONTROLS.get(entry.label, ()))
    return _problem_roots(cell) | {Name("bandana.flows.suites.replays"), *roots_of(made)}


def subject_roots(label: str) -> frozenset[Name]:
    """The audit of one subject of the audit of everything."""
    from bandana.audits.faults.catalog import CONTROLS
    from bandana.audits.subjects import subjects

    build = subjects()[label]
    found = {Name("bandana.flows.suites.replays"), *roots_of(build.func)}
    entry = build.args[0]
    if isinstance(entry, str):
        return frozenset(found)  # a building block: its bed and its faults are imported
    made = (entry.build, entry.promise, entry.probes, entry.in_audit, CONTROLS.get(entry.label, ()))
    return frozenset(found | set(roots_of(made)))


def _problem_roots(cell: Cell) -> frozenset[Name]:
    environment = cell.environment
    given = (type(environment), type(environment.item), type(cell.settings), type(cell.settings.privacy))
    return frozenset(roots_of(given))
