"""Code that makes a block or an audit: the roots from which `bandana.flows.keys.closure` follows everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bandana.flows.keys.closure import Name, roots_of

if TYPE_CHECKING:
    from bandana.algorithms.entry import Entry
    from bandana.flows.plan.cells import Cell


def block_roots(cell: Cell) -> frozenset[Name]:
    """The loop, the environment, and the builder of the algorithm."""
    return _problem_roots(cell) | {
        Name("bandana.flows.cells.replicates"),
        Name("bandana.flows.problems.facts"),
        Name("bandana.flows.plan.seeds"),
        *roots_of(cell.entry.build),
    }


def audit_roots(cell: Cell) -> frozenset[Name]:
    """The audit, what it replays, the algorithm with its promise, and the planted faults."""
    made = "own_replays" if cell.entry.stated else "replays"
    return _problem_roots(cell) | {Name(f"bandana.flows.cells.{made}"), *_audited(cell.entry)}


def subject_roots(label: str) -> frozenset[Name]:
    """The audit of one subject of the audit of everything."""
    from bandana.audits.subjects import subjects

    build = subjects()[label]
    roots = frozenset({Name("bandana.flows.cells.replays"), *roots_of(build.func)})
    entry = build.args[0]
    return roots if isinstance(entry, str) else roots | _audited(entry)  # of a building block bed and faults are imported


def _audited(entry: Entry) -> frozenset[Name]:
    """The algorithm with its promise, and the planted faults."""
    from bandana.audits.faults.catalog import CONTROLS

    return frozenset(roots_of((entry.build, entry.promise, entry.probes, entry.in_audit, CONTROLS.get(entry.label, ()))))


def _problem_roots(cell: Cell) -> frozenset[Name]:
    environment = cell.environment
    given = (type(environment), type(environment.item), type(cell.settings), type(cell.settings.privacy),
             *environment.item.made_by)  # fmt: skip
    return frozenset(roots_of(given))
