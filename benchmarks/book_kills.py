"""Runs that spend from one book are killed at random moments: it must be whole, and never below what was drawn.

    python -m benchmarks.book_kills [KILLS]

An oracle in each run writes down what every release costs each record, before it is made; the lines survive the kill.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from bandana.flows.annexes.books.bookkeeping.book import BudgetBook
from bandana.flows.annexes.books.bookkeeping.spending import cost_of_all
from bandana.flows.cells.play import benchmark_block
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.own.data import pinned
from bandana.flows.plan.cells import Block
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec
from bandana.privacy_core import ApproxDP, GaussianDP, LiveLedger
from bandana.privacy_core.accounting.spending import cost_of

ROWS = 400
_BUDGET = ApproxDP(1000.0, 1e-6)
_CURRENCY = GaussianDP(1.0)
_LINE = np.dtype([("start", np.int64), ("stop", np.int64), ("cost", np.float64)])


class Outcome(NamedTuple):
    """What was seen after one kill."""

    n_runs: int
    """Processes that were killed."""
    drawn: float
    """Sum of mu^2 that the most costly record's releases add up to."""
    booked: float
    """The same by the book."""
    missing: float
    """How far the book is below the releases, on the record where it is worst; 0: nowhere."""


def blocks_of(folder: Path, seed: int) -> list[Block]:
    """Eight blocks of one replicate each, of two algorithms, on a private table with a book."""
    (folder / "people.csv").write_text("stay,go\n" + "0,1\n1,0\n" * (ROWS // 2))
    spec: dict[str, Any] = {
        "name": f"night-{seed}", "seed": seed, "horizon": ROWS, "replications": 4, "block_size": 1,
        "environment": {
            "kind": "table", "path": "people.csv",
            "data": {"book": "people", "budget": {"epsilon": _BUDGET.epsilon, "delta": _BUDGET.delta}},
        },
        "algorithms": [
            {"algorithm": "adar-ucb", "calibrations": "tight", "privacy": {"alpha": 2, "epsilon": 0.1}},
            {"algorithm": "dp-ucb", "privacy": {"epsilon": 0.5}},
        ],
    }  # fmt: skip
    text = yaml.safe_dump(spec)
    cells = cells_of(pinned(parse_spec(text, "night.yaml", folder), DataFolder.open(folder / "data").root))
    return [block for cell in cells for block in cell.blocks()]


def play(blocks: Sequence[Block], store: Store, oracle: Path, last: int | None = None) -> None:
    """Plays the blocks; each release is written into the oracle's file before it is made. The `last` one kills the run."""
    file = os.open(oracle, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    release, numbers = LiveLedger.release, iter(range(1, 10**9))

    def watched(self: LiveLedger, mechanism: Any, value: Any, *, records: Any, **more: Any) -> Any:
        cost = cost_of(self.noise.cost(mechanism.event), _CURRENCY)
        lines = [(a, b, cost) for a, b in zip(records.start.tolist(), records.stop.tolist(), strict=True)]
        os.write(file, np.array(lines, dtype=_LINE).tobytes())
        found = release(self, mechanism, value, records=records, **more)
        if next(numbers) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    LiveLedger.release = watched  # type: ignore[method-assign]
    for block in blocks:
        benchmark_block(block, store)


def kill_runs(folder: Path, seed: int, n_runs: int, seconds: float = 0.0, last: int | None = None) -> Outcome:
    """Starts runs of one suite at once, kills them, and compares the book with what they drew.

    Args:
      folder: of the data and the book.
      seed: of the suite.
      n_runs: how many there are.
      seconds: after which they are killed; not used with `last`.
      last: number of the release after which each run kills itself.
    """
    blocks, store, oracle = blocks_of(folder, seed), Store(DataFolder(folder / "data").results), folder / "oracle"
    children = []
    for place in range(n_runs):
        if (pid := os.fork()) == 0:
            try:
                play(blocks[place:] + blocks[:place], store, oracle, last)
            finally:
                os._exit(0)
        children.append(pid)
    if last is None:
        time.sleep(seconds)
        for pid in children:
            os.kill(pid, signal.SIGKILL)
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    return compared(folder, blocks[0], sum(map(os.WIFSIGNALED, statuses)))


def compared(folder: Path, block: Block, n_killed: int) -> Outcome:
    """The book against the oracle, record by record; the book's chain is checked too."""
    item = block.cell.environment.item
    book = BudgetBook(item.book.place(folder / "data"))  # type: ignore[union-attr]
    booked, drawn, oracle = np.zeros(ROWS), np.zeros(ROWS), folder / "oracle"
    if book.entries():
        for charge in book.state().charges:
            booked[charge.start : charge.stop] += cost_of_all(charge.events, _BUDGET)
    if oracle.exists():
        lines = oracle.read_bytes()
        for start, stop, cost in np.frombuffer(lines[: len(lines) // _LINE.itemsize * _LINE.itemsize], _LINE).tolist():
            drawn[start:stop] += cost
    return Outcome(n_killed, drawn.max(), booked.max(), max(0.0, (drawn - booked * (1 + 1e-9)).max()))


def main(n_kills: int, seed: int = 1) -> int:
    """Kills that many runs, two at once, and prints what was seen; the exit code is 1 if the book was ever too low."""
    generator, done, worst = np.random.Generator(np.random.SFC64(seed)), 0, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for block in blocks_of(folder, 10**6):  # compiles what the runs need, and tells how long they take
            begun = time.perf_counter()
            benchmark_block(block, Store(folder / "warm"))
        seconds = 8 * (time.perf_counter() - begun)
        (folder / "oracle").unlink(missing_ok=True)
        night = 0
        while done < n_kills:
            night += 1
            found = kill_runs(folder, night // 3, 2, float(generator.uniform(0.0, seconds)))
            done, worst = done + found.n_runs, max(worst, found.missing)
            print(
                f"{done:4} killed; drawn {found.drawn:.6g}, booked {found.booked:.6g}, missing {found.missing:.3g}",
                flush=True,
            )
    print(f"{done} runs killed; the book was {'never' if worst == 0 else 'once'} below what was drawn")
    return int(worst > 0)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
