"""Plays and audits every cell of suites: what is finished is kept, and only what is missing is computed.

The caller chooses who works, `side_by_side.Workers` or tasks of `step_flows`: the numbers are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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


def open_tracker(plans: Sequence[Plan], folder: DataFolder) -> Tracker:
    """MLflow with the suites' experiments; runs that a dead process left are marked."""
    tracker = Tracker.open(folder.root)
    tracker.mark_dead_runs()
    for plan in plans:
        tracker.experiment(plan.spec.name, plan.spec.description or plan.spec.title)
    return tracker


def benchmark(plans: Sequence[Plan], folder: DataFolder, workers: Workers, tracker: Tracker | None = None) -> None:
    """Plays every missing block of plans whose data are bound; finished cells go to the tracker, if there is one.

    Raises:
      BookError: a budget does not cover all that is missing; nothing was played.
      TrackingError: MLflow took some cells neither when they were done nor at the end; their blocks are kept.
    """
    store, cells = Store(folder.results), [cell for plan in plans for cell in plan.played]
    blocks = [block for cell in cells for block in cell.blocks()]
    missing = [block for block in blocks if not is_played(block, store)]
    book_keeper().check_affords({block.key: block for block in missing}.values())  # two suites may have one in common
    step = _Step("benchmark", plans, folder, tracker, lambda cell: benchmark_record(cell, summarize_cell(cell, store)))
    waiting = Counter(block.cell.key for block in missing)
    with step.begun(len(cells), len(blocks), len(missing)):
        results = workers.completed(partial(play, store), [(block, block.key) for block in missing])
        for cell in cells:
            if not waiting[cell.key]:
                step.track(cell)
        for (block, key), seconds in results:
            facts = {"block": block.index, "result": key, "n_reps": block.n_reps, "seconds": seconds}
            step.note("block done", block.cell, block.cell.title, **facts)
            waiting[block.cell.key] -= 1
            if not waiting[block.cell.key]:
                step.track(block.cell)
    for plan in plans:
        Journal(folder.journal(plan.spec.name)).write("benchmark done", suite=plan.spec.name)


def audit(plans: Sequence[Plan], folder: DataFolder, workers: Workers, tracker: Tracker | None = None) -> list[AuditEntry]:
    """Audits every private cell of plans whose data are bound, and returns the report's entries in the order of the plans.

    Raises:
      SpecError: the rounds of some audit are too few; nothing was audited.
      TrackingError: MLflow took some cells neither when they were done nor at the end; their audits are kept.
    """
    store, cells, entries = Store(folder.results), [cell for plan in plans for cell in plan.private], dict[str, AuditEntry]()
    check_audits(cells)
    place = {cell.key: folder.evidence(cell.spec.name, cell.slug) for cell in cells}
    step = _Step("audit", plans, folder, tracker, lambda cell: audit_record(cell, entries[cell.key], place[cell.key]))
    outcomes = {cell.key: stored_audit(cell, store) for cell in cells}
    missing = [cell for plan in plans for cell in parts_first(cell for cell in plan.private if outcomes[cell.key] is None)]
    work = partial(examine, store, workers.cores_each(len(missing)))

    def keep(cell: Cell, entry: AuditEntry) -> None:
        entries[cell.key] = entry
        link(evidence_of(cell, store), place[cell.key])
        step.track(cell)

    with step.begun(len(cells), len(cells), len(missing)):
        for cell in cells:
            if (outcome := outcomes[cell.key]) is not None:
                keep(cell, audit_entry(cell, outcome, is_anonymous=store.is_anonymous))
        for (cell, _), (entry, seconds) in workers.completed(work, [(cell, audit_key(cell)) for cell in missing]):
            facts = {"verdict": entry["verdict"], "seconds": seconds, "replays": cell.audit.replays}
            step.note("audit done", cell, f"{cell.title}: {entry['verdict']}", **facts)
            keep(cell, entry)
    return [entries[cell.key] for cell in cells]


@dataclass
class _Step:
    """A step on suites: each has its journal, and MLflow, if cells are tracked, gets each one as soon as it is done.

    Once MLflow refuses one, work goes on and is kept; what it did not get is written at the end.
    """

    name: str
    plans: Sequence[Plan]
    folder: DataFolder
    tracker: Tracker | None
    record: Callable[[Cell], CellRecord]
    waiting: list[Cell] = field(default_factory=list)
    advance: Callable[[str], None] = field(init=False)

    @contextmanager
    def begun(self, n_cells: int, n_pieces: int, n_left: int) -> Iterator[None]:
        for plan in self.plans:
            Journal(self.folder.journal(plan.spec.name)).begin(f"{self.name} started", suite=plan.spec.name)
        total = n_pieces + n_cells * (self.tracker is not None)
        with bar(title_of(self.name, self.plans), total, n_pieces - n_left) as self.advance:
            yield
            self._write()
        if self.tracker is not None:
            for plan in self.plans:  # cells that a spec no longer lists leave its comparison page
                self.tracker.keep_only(plan.spec.name, {cell.key for cell in plan.played})

    def note(self, event: str, cell: Cell, title: str, **facts: object) -> None:
        Journal(self.folder.journal(cell.spec.name)).write(event, cell=cell.name, run_key=cell.key, **facts)
        self.advance(title)

    def track(self, cell: Cell) -> None:
        self.waiting.append(cell)
        if len(self.waiting) == 1:
            with suppress(TrackingError):
                self._write()

    def _write(self) -> None:
        while self.waiting and self.tracker is not None:
            cell = self.waiting[0]
            self.tracker.log_cell(cell.spec.name, self.record(cell))
            self.note("cell tracked", cell, f"tracked {cell.title}")
            del self.waiting[0]


def title_of(step: str, plans: Sequence[Plan]) -> str:
    """Title of a step on some plans, such as `smoke: audit`, or `47 suites: benchmark`."""
    return f"{plans[0].spec.name if len(plans) == 1 else f'{len(plans)} suites'}: {step}"


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
