"""Privacy as a test: `assert_private`, and the pytest fixture `private`, which is the same function without an import.

```python
from bandana.testing import assert_private

def test_count_is_private():
    assert_private(count, [1, 0, 1], [1, 0, 0], "pure(epsilon=1)")
```

The probability that any honest test of a whole suite fails is at most 0.05: the k-th assertion of a process has the level
0.05 / (k (k + 1)), and these add up to 0.05; workers of pytest-xdist share it evenly. Seeds are fixed, so a function that
draws all its randomness from its seed gives the same verdict each time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bandana.flows.annexes.anything.pairs.watch import WatchedRelease

__all__ = ["SuiteBudget", "assert_private", "private"]


@dataclass
class SuiteBudget:
    """The failure probability of all assertions of a process together.

    Attributes:
      level: probability that any honest one fails, at most.
      n_asked: how many levels were handed out.
    """

    level: float = 0.05
    n_asked: int = 0

    def next(self) -> float:
        """The level of the next assertion; all of them add up to `level`."""
        self.n_asked += 1
        return self.level / (self.n_asked * (self.n_asked + 1))


_budget = SuiteBudget(0.05 / max(1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))))


def assert_private(
    function: Callable[..., Any],
    data: Any,
    neighbor: Any,
    claim: str,
    *,
    runs: int = 20_000,
    seconds: float = 30.0,
    seed: int = 0,
    budget: SuiteBudget | None = None,
) -> WatchedRelease:
    """Fails if runs on two data sets refute a claim of privacy.

    Runs are watched block by block: a broken release fails after a few hundred runs, an honest one ends at its budget.
    It also fails where the data seed generators, since runs then show nothing in favor of the claim.

    Args:
      function: of (data, seed), or any other form that `bandana audit --mechanism` takes; or an algorithm that keeps the
        protocol, whose releases are seen.
      data: a data set; of a bandit a table of rewards, (n_rounds, n_arms).
      neighbor: its neighbor.
      claim: such as `approx(epsilon=1, delta=1e-5)`.
      runs: on each side, at most; at least 1024.
      seconds: after which no further block of runs begins.
      seed: root of all seeds.
      budget: of the suite; None: the one of this process.

    Returns:
      what was seen: runs and evidence.

    Raises:
      AssertionError: the claim is refuted, or the data seed generators.
      ClaimError: the claim cannot be read.
      BrokenSubject: the function cannot be called; of a bandit also ProtocolError.
    """
    from bandana.audits.claims import parse
    from bandana.flows.annexes.anything.pairs.subject import prepared
    from bandana.flows.annexes.anything.pairs.watch import watch
    from bandana.privacy_core import Interval

    __tracebackhide__ = True
    stated = parse(claim, relation=None if "relation" in claim else "pair").stated
    ready = prepared(function, data, neighbor, Interval(0.0, 1.0), seed)
    level = (budget or _budget).next()
    if finding := ready.compare(seed).finding:
        raise AssertionError(f"nothing can be said of {stated}: {finding}")
    found = watch(ready.caller, ready.data, ready.neighbor, stated, level=level, most_runs=runs, seed=seed, seconds=seconds)
    if found.is_refuted:
        raise AssertionError(str(found))
    return found


@pytest.fixture(scope="session")
def private() -> Callable[..., Any]:
    """`assert_private`, without an import."""
    return assert_private


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Says how many assertions of privacy ran, and the probability that an honest one of them failed."""
    if _budget.n_asked:
        terminalreporter.write_line(
            f"bandana: {_budget.n_asked} assertions of privacy; an honest suite fails with probability at most 0.05"
        )
