"""Plays and audits a suite without Prefect: the same blocks under the same keys as the flows, called from Python."""

from __future__ import annotations

from collections import Counter
from functools import partial
from time import perf_counter

from bandana.flows.keys.identity import check_same
from bandana.flows.running.journal import Journal
from bandana.flows.running.progress import bar
from bandana.flows.running.settings import DataFolder
from bandana.flows.running.side_by_side import Workers
from bandana.flows.running.store import Store, link
from bandana.flows.spec.plan import Block, Cell, cells_of, played_cells
from bandana.flows.spec.spec import Spec
from bandana.flows.suites.charges import check_affords
from bandana.flows.suites.play import benchmark_block, is_played
from bandana.flows.suites.summaries import audit_record, benchmark_record, summarize_cell
from bandana.flows.suites.work import audit_cell, audit_entry, audit_key, evidence_of, parts_first, stored_audit
from bandana.flows.tracking.tracker import Tracker

_PAUSE = 30.0
"""Seconds between two lines on progress."""


def benchmark(
    spec: Spec, folder: DataFolder, workers: Workers, tracker: Tracker | None = None, *, here: bool = False
) -> None:
    """Plays every missing block of a spec whose data are pinned; finished cells go to the tracker, if there is one.

    With `here`, this process plays alone.
    """
    store, journal, cells = Store(folder.results), Journal(folder.journal(spec.name)), played_cells(spec)
    blocks = [block for cell in cells for block in cell.blocks()]
    missing = [block for block in blocks if not is_played(block, store)]
    check_affords(missing)
    journal.begin("benchmark started", suite=spec.name, cells=len(cells), blocks=len(blocks), missing=len(missing))
    waiting = Counter(block.cell.name for block in missing)

    def track(cell: Cell) -> None:
        if tracker is not None:
            tracker.log_cell(spec.name, benchmark_record(cell, summarize_cell(cell, store)))
            journal.write("cell tracked", cell=cell.name, run_key=cell.key)

    with bar("benchmark", len(blocks), len(blocks) - len(missing), seconds_between_lines=_PAUSE) as advance:
        for cell in cells:
            if not waiting[cell.name]:
                track(cell)
        asked = [(block, block.key) for block in missing]
        for (block, key), seconds in workers.completed(partial(_play, store=store), asked, here=here):
            journal.write("block done", cell=block.cell.name, run_key=block.cell.key, block=block.index,
                          result=key, n_reps=block.n_reps, seconds=seconds)  # fmt: skip
            advance(block.cell.name)
            waiting[block.cell.name] -= 1
            if not waiting[block.cell.name]:
                track(block.cell)
    if tracker is not None:
        tracker.keep_only(spec.name, {cell.key for cell in cells})
    journal.write("benchmark done", suite=spec.name)


def audit(spec: Spec, folder: DataFolder, workers: Workers, tracker: Tracker | None = None) -> None:
    """Audits every private cell of a spec whose data are pinned; finished audits are kept."""
    store, journal = Store(folder.results), Journal(folder.journal(spec.name))
    cells = [cell for cell in cells_of(spec) if cell.is_private]
    missing = [cell for cell in cells if stored_audit(cell, store) is None]
    journal.begin("audit started", suite=spec.name, cells=len(cells), missing=len(missing))
    with bar("audit", len(cells), len(cells) - len(missing), seconds_between_lines=_PAUSE) as advance:
        asked = [(cell, audit_key(cell)) for cell in parts_first(missing)]
        for (cell, _), (verdict, seconds) in workers.completed(partial(_audit, store=store), asked):
            journal.write("audit done", cell=cell.name, run_key=cell.key, verdict=verdict, seconds=seconds,
                          replays=cell.audit.replays)  # fmt: skip
            advance(f"{cell.name}: {verdict}")
    for cell in cells:
        evidence = folder.evidence(spec.name, cell.slug)
        link(evidence_of(cell, store), evidence)
        if tracker is not None:
            entry = audit_entry(cell, audit_cell(cell, store), is_anonymous=store.is_anonymous)
            tracker.log_cell(spec.name, audit_record(cell, entry, evidence))
            journal.write("cell tracked", cell=cell.name, run_key=cell.key)


def _play(asked: tuple[Block, str], store: Store) -> float:
    """Plays one block, under the key that the caller knows it by; the seconds that it took."""
    (block, key), start = asked, perf_counter()
    check_same(key, block.key)
    benchmark_block(block, store)
    return round(perf_counter() - start, 3)


def _audit(asked: tuple[Cell, str], store: Store) -> tuple[str, float]:
    """Audits one cell, under the key that the caller knows it by; the verdict and the seconds that it took."""
    (cell, key), start = asked, perf_counter()
    check_same(key, audit_key(cell))
    return audit_cell(cell, store).verdict.value, round(perf_counter() - start, 3)
