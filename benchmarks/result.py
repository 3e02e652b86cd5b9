"""One measured number beside its limit."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Result(NamedTuple):
    name: str
    measured: float
    limit: float
    unit: str
    relation: str = "<="

    @property
    def is_met(self) -> bool:
        return self.measured <= self.limit if self.relation == "<=" else self.measured >= self.limit

    def __str__(self) -> str:
        measured = f"{self.measured:,.2f}" if self.measured < 10 and self.measured % 1 else f"{self.measured:,.0f}"
        goal = f"goal {self.relation} {self.limit:,.0f} {self.unit}".rstrip()
        return f"{self.name:<66} {measured:>8}   {goal:<16} {'met' if self.is_met else 'MISSED'}"


def fastest(work: Callable[[], object], repeats: int = 5) -> float:
    """Seconds of the fastest of some repeats: the one that was disturbed least."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
