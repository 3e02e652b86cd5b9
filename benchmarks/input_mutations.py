"""Specs, data files and evidence, changed at random places: each must end in a result or in one line, within a second.

    python -m benchmarks.input_mutations 20000 --log mutations.jsonl

prints, for each kind of file, how many were read, how many were refused in one line, and every other end. A spec is read,
its environments are made and its cells are listed with their claims; a data file is read as an environment does; evidence
is verified. Nothing is run. What was taken for a result is read a second time by `taken_as_written`: a value that became
another one is an end of its own, and so is evidence that verifies although one of its numbers was changed. Children of this
process do the work, so that a crash or a hang is an end like others. With a log, what was seen by the same code is not seen
again, so that a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import connection
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from bandana.flows.annex import NAMES
from benchmarks import mutated_files as files
from benchmarks import taken_as_written as written

SECONDS, HANGS, GIGABYTE = 1.0, 30, 1 << 30
_CHUNK = 250
_MOST_LINES, _LONGEST_LINE = 21, 200
KINDS = ("spec", "data", *(["evidence"] if "compliance" in NAMES else []))
"""Evidence is verified, which takes the annex."""
RESULT, REFUSED, OTHER = "result", "refused", "taken for something else"


class Ending(NamedTuple):
    """How reading one file ended: `result`, `refused`, or what must not be."""

    kind: str
    number: int
    what: str
    seconds: float
    told: str


class Chunk(NamedTuple):
    """How some files ended, and the most memory that the process took that read them, in bytes."""

    endings: list[Ending]
    memory: int


def check_spec(text: str, folder: Path) -> Callable[[], str | None]:
    """Reads a spec as `bandana check` does before it measures times; returns what compares it with its text.

    Raises:
      SpecError: in one line for each mistake.
    """
    from bandana.flows.cells.audits import check_audits
    from bandana.flows.plan.cell_checks import check_cells
    from bandana.flows.plan.plan import Plan
    from bandana.flows.spec.spec import parse_spec

    spec = parse_spec(text, "spec.yaml", folder)
    plan = Plan.of(spec)
    check_audits(plan.cells)
    check_cells(plan.cells)
    return lambda: written.spec_differs(text, spec)


def read_data(case: files.DataFile, content: bytes, folder: Path) -> Callable[[], str | None]:
    """Reads a data file as the environment or the suite that it belongs to; returns what compares it with its bytes.

    Raises:
      SpecError: in one line.
    """
    (folder / case.name).write_bytes(content)
    found = case.read(folder)
    return lambda: case.differs(content, found)


def verify_evidence(content: bytes, folder: Path) -> Callable[[], str | None]:
    """Verifies evidence as `bandana verify` does; returns what compares it with the original, if it was verified.

    Raises:
      SpecError: in one line.
    """
    from bandana.flows.annexes.compliance.verify import Request, check, render

    path = folder / "evidence.npz"
    path.write_bytes(content)
    answer = check(Request(path))
    render(answer)
    return lambda: written.evidence_differs(content, files.evidence()) if answer.verification.is_verified else None


def ending(kind: str, number: int, do: Callable[[], Callable[[], str | None]]) -> Ending:
    """How one call ended, by its own processor time; what it returns says what was taken for something else."""
    from bandana.flows.texts.mistakes import SpecError

    what, told, differs = RESULT, "", None
    start = time.process_time()
    signal.alarm(10 * HANGS)
    signal.setitimer(signal.ITIMER_PROF, HANGS)  # of its own time: others may have the processor
    try:
        differs = do()
    except SpecError as error:
        what, told = REFUSED, str(error)
        lines = told.split("\n")
        if len(lines) > _MOST_LINES or max(map(len, lines)) > _LONGEST_LINE or re.search(r"[\x00-\x09\x0b-\x1f]", told):
            what = "refused in no readable line"
    except BaseException as error:
        what, told = f"escaped: {type(error).__name__}", str(error)
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    seconds = time.process_time() - start
    if differs is not None and (other := differs()) is not None:
        what, told = OTHER, other
    return Ending(kind, number, f"slow {what}" if seconds > SECONDS else what, seconds, told[:1000])


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


def _compile_kernels() -> None:
    """Reads the ready specs unchanged, so that kernels lie compiled on disk; a new checkout has none."""
    with contextlib.redirect_stdout(None):
        for text in files.specs():
            ending("spec", -1, partial(check_spec, text, files.EXPERIMENTS))


def _read_chunk(kind: str, numbers: Sequence[int], answers: Any) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    files.load(kind)
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(None):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        one(kind, -1, Path(name))  # imports and compiles what others find
        for number in numbers:
            answers.send(one(kind, number, Path(name)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answers.send(max(peak, before) * 1024)


def endings(kind: str, numbers: Sequence[int], processes: int = 1) -> Iterator[Chunk]:
    """How the files of a kind with the given numbers ended, chunk by chunk, in the order in which they were done."""
    context = multiprocessing.get_context("fork")
    files.load(kind)  # once, for all children
    if kind == "spec":
        first = context.Process(target=_compile_kernels)  # of its own: what it holds in memory makes no later reading faster
        first.start()
        first.join()
    waiting = [numbers[start : start + _CHUNK] for start in range(0, len(numbers), _CHUNK)]
    running: dict[Any, tuple[Any, Sequence[int], list[Ending]]] = {}
    while waiting or running:
        while waiting and len(running) < processes:
            here, there = context.Pipe(duplex=False)
            child = context.Process(target=_read_chunk, args=(kind, waiting[0], there))
            child.start()
            there.close()
            running[here] = child, waiting.pop(0), []
        ready: list[Any] = connection.wait(list(running))
        for here in ready:
            child, chosen, found = running[here]
            try:
                answer = here.recv()
            except EOFError:
                child.join()
                dead = Ending(kind, chosen[len(found)], f"ended its process: {child.exitcode}", 0.0, "")
                waiting += [rest] if (rest := chosen[len(found) + 1 :]) else []
                answer, found = 0, [*found, dead]
            if isinstance(answer, Ending):
                found.append(answer)
                continue
            child.join()
            del running[here]
            yield Chunk(found, answer)


class Log:
    """Chunks that were read, in a file; those of other code are not read again."""

    def __init__(self, path: Path | None) -> None:
        self._path, self._code = path, _code()
        self.chunks: list[Chunk] = []
        lines = path.read_text("utf-8").splitlines() if path is not None and path.exists() else []
        for line in map(json.loads, lines):
            if line["code"] == self._code:
                self.chunks.append(Chunk([Ending(*each) for each in line["endings"]], line["memory"]))

    def add(self, chunk: Chunk) -> None:
        """Keeps a chunk."""
        self.chunks.append(chunk)
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"code": self._code, "memory": chunk.memory, "endings": chunk.endings}) + "\n")

    def seen(self, kind: str) -> dict[int, Ending]:
        """Number -> how the file of that kind ended."""
        return {each.number: each for chunk in self.chunks for each in chunk.endings if each.kind == kind}

    def memory(self, kind: str) -> int:
        """The most that a process took that read files of a kind, in bytes."""
        return max((chunk.memory for chunk in self.chunks if chunk.endings[0].kind == kind), default=0)


def _code() -> str:
    """SHA-256 of the product's sources, the specs that are changed, and what changes and compares them."""
    from bandana.flows.keys.checkout import sources

    digest = hashlib.sha256(sources().encode())
    here = Path(__file__).parent
    for path in (Path(__file__), here / "mutated_files.py", here / "taken_as_written.py", *files.specs_read()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_wrong(found: Ending) -> bool:
    """Whether it ended neither in a result nor in one line, or not in time."""
    return found.what not in (RESULT, REFUSED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Changes a third of the files of each kind, prints what became of them, and returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.input_mutations", description=__doc__.split("\n")[0])
    parser.add_argument("files", type=int, nargs="?", default=20_000, help="changed files, a third of each kind")
    parser.add_argument("--seed", type=int, default=0, help="number of the first one of each kind")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind")
    parser.add_argument("--log", type=Path, help="what was seen, and is not seen again")
    parser.add_argument("--processes", type=int, default=1, help="side by side")
    asked = parser.parse_args(arguments)
    log, is_failure = Log(asked.log), False
    for kind in asked.kind or KINDS:
        wanted = range(asked.seed, asked.seed + -(-asked.files // len(KINDS)))
        missing = [number for number in wanted if number not in log.seen(kind)]
        for chunk in endings(kind, missing, asked.processes) if missing else ():
            log.add(chunk)
        seen = log.seen(kind)
        found, most = [seen[number] for number in wanted], log.memory(kind)
        slowest = max(each.seconds for each in found)
        counts = dict(Counter(each.what for each in found))
        print(f"{kind:<9} {len(found)} files: {counts}; slowest {slowest:.2f} s, most memory {most / 2**20:.0f} MiB")
        bad = [each for each in found if is_wrong(each)]
        for each in bad[:40]:
            print(f"  {kind} {each.number}: {each.what} in {each.seconds:.2f} s: {each.told[:300]!r}")
        is_failure |= bool(bad) or most > GIGABYTE
    return int(is_failure)


if __name__ == "__main__":
    sys.exit(main())
