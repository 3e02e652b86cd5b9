"""What pytest is given in a forked process: which tests to run in which order, how long each may take, what each reached."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict

import pytest


class TestRecord(TypedDict):
    """One test of a recording: processor and wall seconds, outcome, numbers of the probes that it reached."""

    cpu: float
    wall: float
    outcome: str
    reached: list[int]


class FileRecord(TypedDict):
    """A file of tests.

    Attributes:
      tests: by node id.
      collected: probes that importing and collecting reached.
      shared: processor seconds of the setup of fixtures that tests share.
    """

    tests: dict[str, TestRecord]
    collected: list[int]
    shared: float


def processor_seconds() -> float:
    """Processor seconds of this process and its ended children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


class Chosen:
    """Runs the given tests alone, in the given order, each within its limits.

    A test that outlasts them ends the process by SIGPROF or SIGALRM, even inside a compiled loop; `progress` then names it.
    """

    def __init__(self, limits: dict[str, tuple[float, float]], progress: Path) -> None:
        self.limits = limits
        self.progress = progress
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keeps what is chosen; what has vanished is missing."""
        place = {name: i for i, name in enumerate(self.limits)}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Sets the limits; the default action of both signals ends the process."""
        self.progress.write_text(item.nodeid, encoding="utf-8")
        cpu, wall = self.limits[item.nodeid]
        signal.setitimer(signal.ITIMER_PROF, cpu)
        signal.setitimer(signal.ITIMER_REAL, wall)
        yield
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The first failure, in setup, call or teardown."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported."""
        if report.failed and not self.failed:
            self.failed = report.nodeid or "collection"


class Recorder:
    """Runs one file of tests and writes what each reached, and what it cost."""

    def __init__(self, probes: ModuleType | None) -> None:
        self.probes = probes
        self.found: FileRecord = {"tests": {}, "collected": [], "shared": 0.0}
        self._fixtures: dict[str, set[int]] = {}
        self._outcomes: dict[str, str] = {}

    def _take(self) -> set[int]:
        taken = set(self.probes.seen) if self.probes else set()
        if self.probes:
            self.probes.seen.clear()
        return taken

    def _label(self, name: str) -> None:
        if self.probes:
            os.environ[self.probes.LABEL] = name

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """What importing the file reached counts for each of its tests."""
        self.found["collected"] = sorted(self._take())

    @pytest.hookimpl(hookwrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, None]:
        """What a shared fixture reached counts for each test that uses it; its processes outlive the first of them."""
        if fixturedef.scope == "function":
            yield
            return
        start, before = processor_seconds(), os.environ.get(self.probes.LABEL, "") if self.probes else ""
        self._label(before.partition("::")[0])
        outside = self._take()
        yield
        self._fixtures.setdefault(fixturedef.argname, set()).update(self._take())
        if self.probes:
            self.probes.seen.update(outside)
            if os.environ.get(self.probes.LABEL) is not None:
                self._label(before)
        self.found["shared"] += processor_seconds() - start

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measures one test, with its setup and teardown."""
        self._take()
        self._label(item.nodeid)
        cpu, wall = processor_seconds(), time.monotonic()
        yield
        reached = self._take()
        for name in getattr(item, "fixturenames", ()):
            reached |= self._fixtures.get(name, set())
        self.found["tests"][item.nodeid] = {
            "cpu": round(processor_seconds() - cpu, 3),
            "wall": round(time.monotonic() - wall, 3),
            "outcome": self._outcomes.get(item.nodeid, "passed"),
            "reached": sorted(reached),
        }

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Failed wins over skipped, skipped over passed."""
        if report.failed or (report.skipped and report.nodeid not in self._outcomes):
            self._outcomes[report.nodeid] = "failed" if report.failed else "skipped"


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(value), encoding="utf-8")
    partial.replace(path)


def arguments(files: Sequence[str], marker: str, folder: Path) -> list[str]:
    """How pytest is called."""
    words = [
        "-q",
        "-x",
        "--no-header",
        "--tb=short",
        f"--basetemp={folder / 'tmp'}",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--timeout=0",  # the limits are those of `Chosen`, by the same timer
    ]
    return [*files, *words, *(["-m", marker] if marker else [])]
