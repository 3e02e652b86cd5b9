"""Specs, data files and evidence, changed at random places: each must end in a result or in one line, within a second.

    python -m benchmarks.input_mutations 20000

prints, for each kind of file, how many were read, how many were refused in one line, and every other end. A spec is read,
its environments are made and its cells are listed with their claims; a data file is read as an environment does; evidence
is verified. Nothing is run. Children of this process do the work, so that a crash or a hang is an end like others.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from benchmarks import mutated_files as files

SECONDS, HANGS, GIGABYTE = 1.0, 30, 1 << 30
_CHUNK = 250
_MOST_LINES, _LONGEST_LINE = 21, 2000
KINDS = ("spec", "data", "evidence")


class Ending(NamedTuple):
    """How reading one file ended: `result`, `refused`, or what must not be."""

    kind: str
    number: int
    what: str
    seconds: float
    told: str


def check_spec(text: str, folder: Path) -> None:
    """Reads a spec as `bandana check` does before it measures times.

    Raises:
      SpecError: in one line for each mistake.
    """
    from bandana.flows.spec.plan import cells_of, check_cells, played_cells
    from bandana.flows.spec.spec import parse_spec
    from bandana.flows.suites.work import check_audits

    spec = parse_spec(text, "spec.yaml", folder)
    cells = cells_of(spec)
    check_audits(cells)
    check_cells(cells)
    played_cells(spec)


def read_data(case: files.DataFile, content: bytes, folder: Path) -> None:
    """Reads a data file as the environment or the suite that it belongs to.

    Raises:
      SpecError: in one line.
    """
    (folder / case.name).write_bytes(content)
    case.read(folder)


def verify_evidence(content: bytes, folder: Path) -> None:
    """Verifies evidence as `bandana verify` does.

    Raises:
      SpecError: in one line.
    """
    from bandana.flows.queries.verify import Request, check, render

    path = folder / "evidence.npz"
    path.write_bytes(content)
    render(check(Request(path)).found)


def ending(kind: str, number: int, do: Callable[[], None]) -> Ending:
    """How one call ended, by its own processor time."""
    from bandana.flows.spec.mistakes import SpecError

    what, told = "result", ""
    start = time.process_time()
    signal.alarm(HANGS)
    try:
        do()
    except SpecError as error:
        what, told = "refused", str(error)
        lines = told.split("\n")
        if len(lines) > _MOST_LINES or max(map(len, lines)) > _LONGEST_LINE or re.search(r"[\x00-\x09\x0b-\x1f]", told):
            what = "refused in no readable line"
    except BaseException as error:
        what, told = f"escaped: {type(error).__name__}", str(error)
    finally:
        signal.alarm(0)
    seconds = time.process_time() - start
    return Ending(kind, number, f"slow {what}" if seconds > SECONDS else what, seconds, told)


def one(kind: str, number: int, folder: Path) -> Ending:
    """Changes one file, in a way that its number determines, and reads it."""
    random = Random(f"{kind} {number}")
    if kind == "spec":
        text = files.mutated_spec(random)
        return ending(kind, number, lambda: check_spec(text, files.EXPERIMENTS))
    if kind == "data":
        case, content = files.mutated_data(random, folder)
        return ending(kind, number, lambda: read_data(case, content, folder))
    content = files.mutated_evidence(random)
    return ending(kind, number, lambda: verify_evidence(content, folder))


def _chunk(kind: str, numbers: range, answers: Any) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    files.load(kind)
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(None):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        one(kind, -1, Path(name))  # imports and compiles what others find
        for number in numbers:
            answers.send(one(kind, number, Path(name)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers.send(max(peak, before) * 1024)


def endings(kind: str, n_files: int, seed: int = 0) -> tuple[list[Ending], int]:
    """How every file of a kind ended, and the most memory that a process took for a chunk of them, in bytes."""
    found: list[Ending] = []
    most, context = 0, multiprocessing.get_context("fork")
    files.load(kind)  # once, for all children
    start, end = seed, seed + n_files
    while start < end:
        numbers = range(start, min(start + _CHUNK, end))
        here, there = context.Pipe(duplex=False)
        child = context.Process(target=_chunk, args=(kind, numbers, there))
        child.start()
        there.close()
        n_before = len(found)
        with contextlib.suppress(EOFError):
            while isinstance(answer := here.recv(), Ending):
                found.append(answer)
            most = max(most, answer)
        child.join()
        start += len(found) - n_before
        if len(found) - n_before < len(numbers):
            found.append(Ending(kind, start, f"ended its process: {child.exitcode}", 0.0, ""))
            start += 1
    return found, most


def main(n_files: int, seed: int = 0) -> int:
    """Changes a third of the files of each kind, prints what became of them, and returns an exit code."""
    is_wrong = False
    for kind in KINDS:
        found, most = endings(kind, -(-n_files // len(KINDS)), seed)
        counts = Counter(each.what for each in found)
        slowest = max(each.seconds for each in found)
        print(f"{kind:<9} {len(found)} files: {dict(counts)}; slowest {slowest:.2f} s, most memory {most / 2**20:.0f} MiB")
        bad = [each for each in found if each.what not in ("result", "refused")]
        for each in bad[:40]:
            print(f"  {kind} {each.number}: {each.what} in {each.seconds:.2f} s: {each.told[:300]!r}")
        is_wrong |= bool(bad) or most > GIGABYTE
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main(*(map(int, sys.argv[1:]) if len(sys.argv) > 1 else (20_000,))))
