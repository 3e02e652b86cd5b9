"""Runs the tests on each mutation, and keeps what came out: a stopped run goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from benchmarks.mutations.imports import closure, import_graph, python_files
from benchmarks.mutations.operators import Mutation
from benchmarks.mutations.recording import FOLDERS, Recording, Versions
from benchmarks.mutations.selection import Selection
from benchmarks.mutations.workshop import PRODUCT, Result, Workshop, third_party

CAUGHT, SURVIVED = "caught", "survived"


class Finding(NamedTuple):
    """What the tests of one suite said about one mutation.

    Attributes:
      mutation: its name.
      suite: whose tests ran.
      version: fingerprint of the test that caught it and of all that it imports; of all tests that ran, if none did.
      outcome: caught or survived.
      by: the test that failed; empty if none did.
      how: "failed", "endless" for a test that outlasted its limits, or why nothing ran.
      n_tests: how many can see the mutation.
      cpu: processor seconds.
    """

    mutation: str
    suite: str
    version: str
    outcome: str
    by: str
    how: str
    n_tests: int
    cpu: float


class Book:
    """The findings, one JSON line each, appended at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self.findings: list[Finding] = []
        if path.exists():
            self.findings = [Finding(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]

    def add(self, finding: Finding) -> None:
        """Writes one down."""
        with self._lock:
            self.findings.append(finding)
            with self._path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(finding._asdict()) + "\n")

    def latest(self, mutation: str, suite: str) -> Finding | None:
        """The newest finding about a mutation."""
        return next((f for f in reversed(self.findings) if f.mutation == mutation and f.suite == suite), None)


def judge(result: Result) -> tuple[str, str]:
    """The test that caught a mutation, and how; both empty if none did.

    Raises:
      RuntimeError: pytest did not run as asked, so that nothing can be said.
    """
    if result.ended_by:
        return result.last_test or "collection", "endless" if result.ended_by in (
            "SIGPROF",
            "SIGALRM",
            "late",
        ) else result.ended_by
    if result.code in (1, 2) and result.written.get("failed"):
        return result.written["failed"], "failed"
    if result.code == 0 or (result.code == 5 and result.written):
        return "", ""
    if not result.written:  # the process ended itself
        return result.last_test or "collection", f"exit {result.code}"
    raise RuntimeError(f"pytest ended with {result.code} and no failed test:\n{result.log}")


class Campaign:
    """A run over mutations.

    Attributes:
      book: where findings go.

    Args:
      root: the checkout.
      folder: of the copies.
      recording: of the suite.
      suite: whose tests run.
      book: where findings go.
      equivalent: mutations that change no behavior: once they have survived, they are not tried again.
    """

    def __init__(
        self, root: Path, folder: Path, recording: Recording, suite: str, book: Book, equivalent: Container[str] = ()
    ) -> None:
        self._root = root
        self._folder = folder
        self._recording = recording
        self._suite = suite
        self._equivalent = equivalent
        self._versions = Versions(root)
        self._selection = Selection(root, recording)
        self._graph = import_graph(root, FOLDERS)
        self._preloaded = third_party(root, python_files(root, FOLDERS))
        self.book = book

    def run(self, mutations: Iterable[Mutation], n_processes: int, say: Callable[[str], None]) -> None:
        """Runs what has no finding for this version yet."""
        todo = [m for m in mutations if not self._is_known(m)]
        shops: SimpleQueue[Workshop] = SimpleQueue()
        opened = [Workshop(self._root, self._folder / str(i), self._preloaded).__enter__() for i in range(n_processes)]
        for shop in opened:
            shops.put(shop)

        def work(mutation: Mutation) -> None:
            shop = shops.get()
            try:
                finding = self.examine(mutation, shop)
                self.book.add(finding)
                cost = f"{finding.cpu:.0f} s, {finding.n_tests} tests"
                say(f"{finding.outcome}: {mutation.name}\n    {finding.how} {finding.by} ({cost})")
            finally:
                shops.put(shop)

        try:
            with ThreadPoolExecutor(n_processes) as pool:
                list(pool.map(work, todo))
        finally:
            for shop in opened:
                shop.__exit__()

    def _is_known(self, mutation: Mutation) -> bool:
        """What a test caught stays caught while that test and its imports are the same; survivors meet each new test."""
        found = self.book.latest(mutation.name, self._suite)
        if found is None or (found.outcome == SURVIVED and mutation.name in self._equivalent):
            return found is not None  # no test will ever catch it
        return found.version == self._version(found.by, self._selection.tests(mutation))

    def _version(self, by: str, wanted: list[str]) -> str:
        file = by.partition("::")[0]
        is_file = (self._root / file).is_file()
        return self._versions.of_tests({file} if is_file else {name.partition("::")[0] for name in wanted})

    def examine(self, mutation: Mutation, shop: Workshop) -> Finding:
        """Plants one mutation and runs its tests until one fails."""
        known = self.book.latest(mutation.name, self._suite)
        wanted = self._selection.tests(mutation)
        spent, by, how = 0.0, "", "" if wanted else "no test reaches it"
        source = (self._root / mutation.path).read_text(encoding="utf-8")
        shop.replace(mutation.path, mutation.apply(source))
        try:
            with self._kernels(mutation, shop) as environment:
                for found in self._selection.rounds(mutation, known.by if known else ""):
                    job = {"kind": "mutant", "files": found.files, "limits": found.limits, "wall": found.wall}
                    result = shop.run({**job, "environment": environment})
                    spent += result.cpu
                    by, how = judge(result)
                    if by:
                        break
        finally:
            shop.restore(mutation.path)
        outcome, version = CAUGHT if by else SURVIVED, self._version(by, wanted)
        return Finding(mutation.name, self._suite, version, outcome, by, how, len(wanted), round(spent, 1))

    def _kernels(self, mutation: Mutation, shop: Workshop) -> OwnKernels:
        stale = set()
        if mutation.kernel:
            stale = {path for path in python_files(self._root, PRODUCT) if mutation.path in closure(self._graph, path)}
        return OwnKernels(shop.kernels, stale)


class OwnKernels:
    """A folder of compiled functions for one mutation of a compiled function.

    Numba knows a compiled function by its own file alone, not by those of the functions inlined into it. So the functions
    of all files that import the mutated one are compiled anew; the others are taken over.
    """

    def __init__(self, kernels: Path, stale: set[str]) -> None:
        self._kernels = kernels
        self._stale = stale
        self._folder = kernels.with_name("kernels-of-mutant")

    def __enter__(self) -> dict[str, str]:
        if not self._stale:
            return {}
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        if self._kernels.exists():
            shutil.copytree(self._kernels, self._folder, copy_function=os.link, dirs_exist_ok=True)
        for path in self._stale:
            stem = Path(path).stem
            for compiled in self._folder.rglob(f"{stem}.*.nb?"):
                compiled.unlink()
        return {"NUMBA_CACHE_DIR": str(self._folder)}

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
