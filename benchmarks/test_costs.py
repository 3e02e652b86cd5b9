"""Processor seconds of each test: what `make test` is spent on, and what `make quick` leaves out.

    python -m benchmarks.test_costs [PYTEST ARGUMENT ...]           # the most costly files and tests
    python -m benchmarks.test_costs --write [PYTEST ARGUMENT ...]   # also brings tests/data/slow_tests.txt up to date

Processes that a test started and waited for are included; wall time is not, so that a busy machine shows much the same.
"""

from __future__ import annotations

import heapq
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from tests import quick

ROOT = Path(__file__).resolve().parents[1]
SLOW, SHOWN = 0.05, 100
"""Processor seconds of a test that `make quick` leaves out; how many files and tests are shown."""
_FOLDER = "BANDANA_TEST_COSTS"


def _spent() -> tuple[float, float]:
    """Processor seconds of this process, and of the children that it waited for."""
    times = os.times()
    return times.user + times.system, times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[Any]:
    """Notes the cost of each test, with the fixtures that it sets up and tears down."""
    before = _spent()
    result = yield
    costs = [round(now - then, 3) for now, then in zip(_spent(), before, strict=True)]
    with (Path(os.environ[_FOLDER]) / f"{os.getpid()}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps([item.nodeid, *costs]) + "\n")
    return result


def read(folder: Path) -> dict[str, tuple[float, float]]:
    """Test -> processor seconds of its process and of children."""
    lines = (json.loads(line) for path in folder.glob("*.jsonl") for line in path.read_text().splitlines())
    return {name: (own, children) for name, own, children in lines}


def slow_tests(costs: dict[str, tuple[float, float]], known: Iterable[str]) -> list[str]:
    """Functions with a case that costs too much for `make quick`: what was measured, and what is known of all others."""
    measured = {name.partition("[")[0] for name in costs}
    slow = {name.partition("[")[0] for name, seconds in costs.items() if sum(seconds) >= SLOW}
    return sorted(slow | (set(known) - measured))


def table(costs: dict[str, tuple[float, float]]) -> Iterator[str]:
    """Lines of text: the sum, the most costly files, and the most costly tests."""
    files: defaultdict[str, float] = defaultdict(float)
    tests = Counter[str]()
    for name, seconds in costs.items():
        files[name.partition("::")[0]] += sum(seconds)
        tests[name.partition("::")[0]] += 1
    dearest = heapq.nlargest(SHOWN, files.items(), key=itemgetter(1))
    yield f"{sum(files.values()):.0f} processor seconds in {len(costs)} tests of {len(files)} files"
    yield from (f"{seconds:8.1f}  {name} ({tests[name]} tests)" for name, seconds in dearest)
    yield "in all, in children"
    for name, (own, children) in sorted(costs.items(), key=lambda item: -sum(item[1]))[:SHOWN]:
        yield f"{own + children:8.1f} {children:6.1f}  {name}"


def main(arguments: list[str]) -> int:
    """The command."""
    chosen = [each for each in arguments if each != "--write"]
    with tempfile.TemporaryDirectory(prefix="bandana-test-costs-") as folder:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.test_costs", *(chosen or ["-m", "not nightly"])]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, _FOLDER: folder}, check=False)
        costs = read(Path(folder))
    print(*table(costs), sep="\n")
    if "--write" in arguments:
        text = "\n".join(slow_tests(costs, quick.listed())) + "\n"
        quick.SLOW_TESTS.write_text(text, encoding="utf-8")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
