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
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome

_MOST_SHOWN = 40
__all__ = ["SuiteBudget", "assert_private", "private"]


@dataclass
class SuiteBudget:
    """The failure probability of all assertions of a process together.

    Attributes:
      level: probability that any honest one fails, at most.
      n_asked: how many levels were handed out.
      passed: what each assertion that passed has covered, in lines.
    """

    level: float = 0.05
    n_asked: int = 0
    passed: list[str] = field(default_factory=list)

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
) -> ReleaseOutcome:
    """Fails if runs on two data sets refute a claim of privacy, or can say nothing in its favor.

    First an output is searched for the seed of its noise, and 16 first calls of a process each on either side are compared
    with later ones. Then runs are watched block by block: a broken release fails after a few hundred runs, an honest one
    ends at its budget, and all its runs are bounded together; both share the level. It also fails where the verdict of an
    audit would be INCONCLUSIVE: where not all of an output can be read, or the data seed generators. No faults are planted.

    Args:
      function: of (data, seed), or any other form that `bandana audit-release` takes; or an algorithm that keeps the
        protocol, whose releases are seen.
      data: a data set; of a bandit a table of rewards, (n_rounds, n_arms).
      neighbor: its neighbor.
      claim: such as `approx(epsilon=1, delta=1e-5)`.
      runs: on each side, at most; at least 1024.
      seconds: for all of it.
      seed: root of all seeds.
      budget: of the suite; None: the one of this process.

    Returns:
      the outcome; as text the lines that `bandana audit` prints, which state what was covered.

    Raises:
      AssertionError: the claim is refuted, or nothing can be said of it.
      ClaimError: the claim cannot be read.
      BrokenSubject: the function cannot be called; of a bandit also ProtocolError.
    """
    from bandana.audits.claims import parse
    from bandana.flows.annexes.anything.pairs.stages import watch_subject
    from bandana.flows.annexes.anything.pairs.starts import set_aside
    from bandana.flows.annexes.anything.pairs.subject import prepared
    from bandana.privacy_core import Interval

    __tracebackhide__ = True
    stated = parse(claim, relation=None if "relation" in claim else "pair").stated
    starts = set_aside(function)
    try:
        ready, budget = prepared(function, data, neighbor, Interval(0.0, 1.0), seed), budget or _budget
        found = watch_subject(ready, stated, budget.next(), runs, seed, seconds, starts)
    finally:
        starts.end()
    label = str(getattr(function, "__name__", type(function).__name__))
    if found.verdict != "NOT REFUTED":
        raise AssertionError("\n".join(found.lines(label)))
    budget.passed += found.opening(label)[:2]
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
        for line in _budget.passed[:_MOST_SHOWN]:
            terminalreporter.write_line(line)
