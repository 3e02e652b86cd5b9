"""Plays and audits every cell of a suite: what is finished is kept, and only what is missing is computed.

Where the work is done is the caller's choice: in this process and its workers (`side_by_side.Workers`), or as tasks of a
Prefect flow (`step_flows`). The blocks, their keys and their numbers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Protocol, TypeVar

from bandana.audits.documents.audit import AuditEntry
from bandana.audits.replays.replay import in_threads
from bandana.flows.cells.audits import (
    audit_cell,
    audit_entry,
    audit_key,
    check_audits,
    evidence_of,
    parts_first,
    stored_audit,
)
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import benchmark_block, is_played
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.progress import bar
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store, link
from bandana.flows.keys.identity import check_same
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.results.summaries import audit_record, benchmark_record, summarize_cell
from bandana.flows.spec.spec import Spec
from bandana.flows.tracking.record import CellRecord
from bandana.flows.tracking.tracker import Tracker, TrackingError

T = TypeVar("T")
R = TypeVar("R")


class Workers(Protocol):
    """Who does the work of a step, and where."""

    def completed(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R]]:
        """Yields each item with the result of its work, as soon as it is done; items are blocks or cells with their keys."""

    def cores_each(self, n_items: int) -> int:
        """Number of cores that each of so many items has to itself."""


def open_tracker(spec: Spec, folder: DataFolder) -> Tracker:
    """MLflow with the suite's experiment; runs that a dead process left are marked."""
    tracker = Tracker.open(folder.root)
    tracker.mark_dead_runs()
    tracker.experiment(spec.name, spec.description or spec.title)
    return tracker


def benchmark(plan: Plan, folder: DataFolder, workers: Workers, tracker: Tracker | None = None) -> None:
    """Plays every missing block of a plan whose data are bound; finished cells go to the tracker, if there is one.

    Raises:
      BookError: a budget does not cover all that is missing; nothing was played.
      TrackingError: MLflow took some cells neither when they were done nor at the end; their blocks are kept.
    """
    suite, cells, blocks = plan.spec.name, plan.played, plan.blocks()
    store, journal = Store(folder.results), Journal(folder.journal(suite))
    missing = [block for block in blocks if not is_played(block, store)]
    book_keeper().check_affords(missing)
    journal.begin("benchmark started", suite=suite, cells=len(cells), blocks=len(blocks), missing=len(missing))
    results = workers.completed(partial(play, store), [(block, block.key) for block in missing])
    waiting = Counter(block.cell.name for block in missing)
    later: list[Cell] = []
    total = len(blocks) + len(cells) * (tracker is not None)
    with bar(f"{suite}: benchmark", total, len(blocks) - len(missing)) as advance:

        def track(cell: Cell) -> None:
            _track(cell, lambda: benchmark_record(cell, summarize_cell(cell, store)), tracker, journal, advance)

        def try_to_track(cell: Cell) -> None:
            """Blocks still play, and are kept: what MLflow does not take now is written at the end."""
            if not later:
                try:
                    track(cell)
                    return
                except TrackingError:
                    pass
            later.append(cell)

        for cell in cells:
            if not waiting[cell.name]:
                try_to_track(cell)
        for (block, key), seconds in results:
            journal.write("block done", cell=block.cell.name, run_key=block.cell.key, block=block.index, result=key,
                          n_reps=block.n_reps, seconds=seconds)  # fmt: skip
            advance(block.cell.title)
            waiting[block.cell.name] -= 1
            if not waiting[block.cell.name]:
                try_to_track(block.cell)
        for cell in later:
            track(cell)
    _keep_only(cells, tracker)
    journal.write("benchmark done", suite=suite)


def audit(plan: Plan, folder: DataFolder, workers: Workers, tracker: Tracker | None = None) -> list[AuditEntry]:
    """Audits every private cell of a plan whose data are bound, and returns the report's entries in the spec's order.

    Raises:
      SpecError: the rounds of some audit are too few; nothing was audited.
    """
    suite, cells = plan.spec.name, plan.private
    store, journal = Store(folder.results), Journal(folder.journal(suite))
    check_audits(cells)
    entries = {
        cell.name: audit_entry(cell, outcome, is_anonymous=store.is_anonymous)
        for cell in cells
        if (outcome := stored_audit(cell, store)) is not None
    }
    missing = parts_first(cell for cell in cells if cell.name not in entries)
    journal.begin("audit started", suite=suite, cells=len(cells), missing=len(missing))
    work = partial(examine, store, workers.cores_each(len(missing)))
    total = len(cells) * (2 if tracker is not None else 1)
    with bar(f"{suite}: audit", total, len(entries)) as advance:
        for (cell, _), (entry, seconds) in workers.completed(work, [(cell, audit_key(cell)) for cell in missing]):
            entries[cell.name] = entry
            journal.write("audit done", cell=cell.name, run_key=cell.key, verdict=entry["verdict"], seconds=seconds,
                          replays=cell.audit.replays)  # fmt: skip
            advance(f"{cell.title}: {entry['verdict']}")
        for cell in cells:
            evidence = folder.evidence(suite, cell.slug)
            link(evidence_of(cell, store), evidence)
            _track(cell, partial(audit_record, cell, entries[cell.name], evidence), tracker, journal, advance)
    _keep_only(plan.played, tracker)
    return [entries[cell.name] for cell in cells]


def _track(
    cell: Cell, record: Callable[[], CellRecord], tracker: Tracker | None, journal: Journal, advance: Callable[[str], None]
) -> None:
    if tracker is not None:
        tracker.log_cell(cell.spec.name, record())
        journal.write("cell tracked", cell=cell.name, run_key=cell.key)
        advance(f"tracked {cell.title}")


def _keep_only(cells: Sequence[Cell], tracker: Tracker | None) -> None:
    """Takes cells that the spec no longer lists off the suite's comparison page."""
    if tracker is not None:
        tracker.keep_only(cells[0].spec.name, {cell.key for cell in cells})


def play(store: Store, item: tuple[Block, str]) -> float:
    """Plays one block, under the key that the caller knows it by, and returns the seconds that it took."""
    (block, key), start = item, perf_counter()
    check_same(key, block.key)
    benchmark_block(block, store)
    return round(perf_counter() - start, 3)


def examine(store: Store, n_cores: int, item: tuple[Cell, str]) -> tuple[AuditEntry, float]:
    """Audits one cell, under the key that the caller knows it by: its entry in the report, and the seconds that it took."""
    (cell, key), start = item, perf_counter()
    check_same(key, audit_key(cell))
    with in_threads(n_cores):
        outcome = audit_cell(cell, store)
    return audit_entry(cell, outcome, is_anonymous=store.is_anonymous), round(perf_counter() - start, 3)
