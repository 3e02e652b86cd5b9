"""Stored results of the same cells that other code, or other versions of libraries, computed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bandana.flows.cells.audits import AUDIT, audit_key
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.journal import Journal
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.keys.identity import asked_of, is_key
from bandana.flows.plan.cells import Cell


class Old(NamedTuple):
    """Results that cannot be used any more."""

    n: int
    """Blocks and audits that are computed again although the store answers their question."""
    n_bytes: int
    """Size of the old files."""

    def tell(self, folder: Path) -> None:
        """Writes a line to standard error where there is something to tell; the results lie in `folder`."""
        if not self.n:
            return
        are = "1 result was" if self.n == 1 else f"{self.n} results were"
        they = "it is" if self.n == 1 else "they are"
        head = f"{are} made by other code or other library versions; {they} computed again"
        print(f"{head} (old files stay in {folder}: {self.n_bytes / 1e6:.1f} MB)", file=sys.stderr, flush=True)


def find(wanted: Iterable[tuple[str, str]], store: Store, known: Mapping[str, int] | None = None) -> Old:
    """Counts the wanted results that are missing, but were computed once by other means.

    Args:
      wanted: kind and key of each result.
      store: where they would lie.
      known: wanted key -> bytes of an old file, which answers the same question and whose name does not say so.
    """
    kinds: dict[str, set[str]] = {}
    for kind, key in wanted:
        kinds.setdefault(kind, set()).add(key)
    n, n_bytes = 0, 0
    for kind, keys in kinds.items():
        there = store.sizes(kind)
        answered: dict[str, int] = {}
        for name, size in there.items():
            if is_key(name):
                answered[asked_of(name)] = answered.get(asked_of(name), 0) + size
        for key in keys - there.keys():
            if size := answered.get(asked_of(key), 0) + (known or {}).get(key, 0):
                n, n_bytes = n + 1, n_bytes + size
    return Old(n, n_bytes)


def find_in(cells: Sequence[Cell], steps: Sequence[str], folder: DataFolder) -> Old:
    """Counts those of a suite's cells and of the steps of a run, of which `benchmark` and `audit` compute.

    Keys used to have no halves: what such a file answers is known from the suite's journal alone.
    """
    if not cells:
        return Old(0, 0)
    suite, store = cells[0].spec.name, Store(folder.results)
    blocks: dict[tuple[str, int, int], str] = {}
    audits: set[str] = set()
    for event in Journal(folder.journal(suite)).read():
        if not is_key(event.get("run_key", "")):
            if event["event"] == "block done":
                blocks[event["cell"], event["block"], event["n_reps"]] = event["result"]
            elif event["event"] == "audit done":
                audits.add(event["cell"])
    wanted, known = [], {}
    played = store.sizes(BENCHMARK) if blocks else {}
    for cell in cells:
        for block in cell.blocks() if "benchmark" in steps else ():
            wanted.append((BENCHMARK, block.key))
            known[block.key] = played.get(blocks.get((cell.name, block.index, block.n_reps), ""), 0)
        if cell.is_private and "audit" in steps:
            wanted.append((AUDIT, audit_key(cell)))
            place = folder.evidence(suite, cell.slug)
            if cell.name in audits and place.exists():
                known[audit_key(cell)] = place.stat().st_size
    return find(wanted, store, known)
