"""Which tests can see a mutation, in the order in which they are tried."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.mutations.imports import import_graph, importing_tests, python_files
from benchmarks.mutations.operators import Mutation
from benchmarks.mutations.plugins import FileRecord
from benchmarks.mutations.probes import Site, functions_naming, users_of
from benchmarks.mutations.recording import FOLDERS, Recording
from benchmarks.mutations.workshop import PRODUCT

_CHEAP = 2.0
"""Processor seconds of a test that is tried early."""
LEAST_CPU, LEAST_WALL = 20.0, 60.0
"""Seconds that every test may take; eight times its recorded processor time and twenty times its wall time come on top."""
_ROUNDS = (3, 12)
"""How many files of tests are collected in the first rounds; all others in the last."""


class Round(NamedTuple):
    """Tests that are run together.

    Attributes:
      files: of the tests.
      limits: processor and wall seconds of each test, in the order in which they run.
      wall: seconds that all may take.
    """

    files: list[str]
    limits: dict[str, tuple[float, float]]
    wall: float


class Selection:
    """Chooses tests by what they reached in a recording.

    A constant of the module, or a compiled function, is seen by tests that reach a function that names it. Where it is named
    outside functions, and for other statements that run at import, all tests that import the file count.
    """

    def __init__(self, root: Path, recording: Recording) -> None:
        self._root = root
        self._recording = recording
        self._probes = {site: i for i, site in enumerate(recording.sites)}
        self._graph = import_graph(root, FOLDERS)
        self._sources = python_files(root, PRODUCT)
        self._red = set(recording.red)
        self._unseen = set(recording.unseen)

    def tests(self, mutation: Mutation) -> list[str]:
        """Node ids of all tests that can see the mutation, in no order."""
        importing = set(importing_tests(self._graph, mutation.path))
        probes, whole_files = self._wanted(mutation, importing)
        found = []
        for path, content in self._recording.files.items():
            is_whole = path in whole_files or (probes is not None and not probes.isdisjoint(content["collected"]))
            for name, test in content["tests"].items():
                if name in self._red or test["outcome"] == "skipped":
                    continue
                is_unknown = name in self._unseen and path in importing
                if is_whole or is_unknown or (probes is not None and not probes.isdisjoint(test["reached"])):
                    found.append(name)
        return found

    def _wanted(self, mutation: Mutation, importing: set[str]) -> tuple[set[int] | None, set[str]]:
        """The probes of which a test must reach one, and files of which every test counts."""
        if name := mutation.kernel or mutation.constant:
            sites, is_named_elsewhere = users_of(self._root, self._sources, name)
            if is_named_elsewhere:
                return None, importing
            naming = {path for path in importing if self._names(path, name)}
            return {self._probes[site] for site in sites if site in self._probes}, naming
        if mutation.runs_at_import:
            return None, importing
        return {self._probes[Site(mutation.path, mutation.statement)]}, set()

    def _names(self, path: str, name: str) -> bool:
        return bool(functions_naming(ast.parse((self._root / path).read_text(encoding="utf-8")), name))

    def rounds(self, mutation: Mutation, first: str = "") -> Iterator[Round]:
        """The tests in rounds: nearest files first, what is cheap before what is long.

        Args:
          mutation: what they are to catch.
          first: a test that caught it before; it has a round of its own.
        """
        wanted = self.tests(mutation)
        if first in wanted:
            yield self._round([first])
        files: dict[str, list[str]] = {}
        for name in wanted:
            files.setdefault(name.partition("::")[0], []).append(name)
        near = self._near(mutation.path)
        cost = {path: min(self._cpu(name) for name in names) for path, names in files.items()}

        def order(path: str) -> tuple[bool, bool, float, float]:
            return cost[path] > _CHEAP, path not in near, self._content(path)["shared"], cost[path]

        ordered, start = sorted(files, key=order), 0
        for stop in (*_ROUNDS, len(ordered)):
            chosen = ordered[start : max(stop, start)]
            start = max(stop, start)
            names = [name for path in chosen for name in self._in_file(path, files[path])]
            if names:
                cheap = [name for name in names if self._cpu(name) <= _CHEAP]
                yield self._round(cheap + [name for name in names if self._cpu(name) > _CHEAP])

    def _near(self, path: str) -> set[str]:
        return {test for test, imported in self._graph.items() if path in imported}

    def _content(self, path: str) -> FileRecord:
        return self._recording.files[path]

    def _cpu(self, name: str) -> float:
        return self._content(name.partition("::")[0])["tests"][name]["cpu"]

    def _in_file(self, path: str, names: list[str]) -> list[str]:
        """By whole seconds of cost, then as the file has them; by that alone where they share a fixture: it is made once."""
        if self._content(path)["shared"] > 0.5:
            place = {name: i for i, name in enumerate(self._content(path)["tests"])}
            return sorted(names, key=place.__getitem__)
        return sorted(names, key=lambda name: round(self._cpu(name)))

    def _round(self, names: list[str]) -> Round:
        limits = {}
        for name in names:
            content = self._content(name.partition("::")[0])
            test = content["tests"][name]
            limits[name] = (
                LEAST_CPU + 8 * (test["cpu"] + content["shared"]),
                LEAST_WALL + 20 * (test["wall"] + content["shared"]),
            )
        files = list(dict.fromkeys(name.partition("::")[0] for name in names))
        return Round(files, limits, sum(wall for _, wall in limits.values()) / 4)
