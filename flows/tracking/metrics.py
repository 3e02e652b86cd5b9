"""The final numbers of a cell: each is declared once, and MLflow, its comparison page, frames and the pages follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bandana.flows.plan.cells import Cell
from bandana.flows.spec.spec import is_finite
from bandana.privacy_core import GaussianDP, PureDP

Summary = Mapping[str, Any]
"""A cell's benchmark in numbers, see `bandana.flows.results.summaries.summarize_cell`."""
HALF_WIDTH = "_half_width"
"""Ending of a metric that holds half of the length of another one's 95 % interval."""


class Number(NamedTuple):
    """A value, and half of the length of its 95 % interval; None: it has none."""

    value: float
    half_width: float | None = None


class Metric(NamedTuple):
    """One number of a cell.

    Attributes:
      name: in MLflow.
      column: in `Result.frame`.
      about: what it is, and in which unit.
      of: finds it; None: the cell has none, or it may not be shown.
      has_interval: with the half width of an interval.
    """

    name: str
    column: str
    about: str
    of: Callable[[Cell, Summary], Number | None]
    has_interval: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all that MLflow keeps of it."""
        return (self.name, self.name + HALF_WIDTH) if self.has_interval else (self.name,)


def accounted_epsilon(mu: float, pure: float | None, delta: float) -> float:
    """Epsilon that a ledger derived: of pure DP where there is one, else of Gaussian DP, at a delta."""
    return (GaussianDP(mu) if pure is None else PureDP(pure)).epsilon_at(delta)


def numbers_of(cell: Cell, summary: Summary) -> dict[Metric, Number]:
    """All numbers of a cell's benchmark."""
    numbers = {metric: metric.of(cell, summary) for metric in METRICS}
    return {metric: number for metric, number in numbers.items() if number is not None}


def logged(numbers: Mapping[Metric, Number]) -> dict[str, float]:
    """The same as MLflow keeps them."""
    values = {metric.name: number.value for metric, number in numbers.items()}
    widths = {metric.name + HALF_WIDTH: width for metric, (_, width) in numbers.items() if width is not None}
    return values | widths


def _final_regret(cell: Cell, summary: Summary) -> Number | None:
    if not cell.environment.shows("regret"):
        return None
    mean, low, high = (float(summary[name][-1]) for name in ("mean", "low", "high"))
    return Number(mean, (high - low) / 2 if cell.spec.replications > 1 else None)  # one replication has no interval


def _value(estimate: str) -> Metric:
    def of(cell: Cell, summary: Summary) -> Number | None:
        value = summary["values"].get(estimate) if cell.environment.shows("regret") else None
        return None if value is None else Number(value["value"], (value["high"] - value["low"]) / 2)

    about = f"value of the last policy by logged data ({estimate}), in reward"
    return Metric(f"value/{estimate}", f"value_{estimate}", about, of, has_interval=True)


def _test(name: str, about: str) -> Metric:
    def of(cell: Cell, summary: Summary) -> Number | None:
        decision = summary["decision"] if cell.environment.shows("regret") else None
        return None if decision is None else Number(decision[name])

    return Metric(f"test/{name}", f"test_{name}", about, of)


def _claimed(quantity: str, about: str) -> Metric:
    def of(cell: Cell, summary: Summary) -> Number | None:
        if not cell.is_private:
            return None
        claim = cell.claim()
        return Number(claim.gaussian.mu if quantity == "mu" else claim.epsilon_at(cell.spec.audit.delta))

    return Metric(f"privacy/{quantity}_claimed", f"{quantity}_claimed", about, of)


def _accounted(quantity: str, about: str) -> Metric:
    def of(cell: Cell, summary: Summary) -> Number | None:
        mu = summary["mu"]
        if not cell.is_private or not is_finite(mu) or mu <= 0:
            return None
        return Number(mu if quantity == "mu" else accounted_epsilon(mu, summary["pure"], cell.spec.audit.delta))

    return Metric(f"privacy/{quantity}_accounted", f"{quantity}_accounted", about, of)


FINAL_REGRET = Metric(
    "regret/final", "regret", "mean regret after the last round, in reward", _final_regret, has_interval=True
)
PRIVACY = (
    _claimed("mu", "mu of Gaussian DP that the source claims"),
    _claimed("epsilon", "epsilon that the source claims, at the parameter `delta`"),
    _accounted("mu", "mu that the ledger derives over the whole horizon"),
    _accounted("epsilon", "epsilon that the ledger derives, at the parameter `delta`"),
)
METRICS = (
    FINAL_REGRET,
    *PRIVACY,
    *(_value(estimate) for estimate in ("ips", "snips", "dr")),
    _test("rounds", "mean rounds until a test stopped"),
    _test("undecided", "share of tests that did not stop"),
    _test("wrong", "share of tests that recommended an arm that is not a best one"),
)
"""Every number of a benchmark. A new one is a line here, and its function of the summary."""
AUDIT_METRICS = (
    *(f"audit/{quantity}_{role}" for quantity in ("mu", "epsilon") for role in ("measured", "accounted")),
    "audit/controls_caught", "audit/controls_planted", "audit/smallest_factor",
)  # fmt: skip
"""Names of what an audit adds, see `bandana.flows.tracking.record.audit_metrics`."""
