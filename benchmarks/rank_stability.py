"""How far a ranking holds on other instances: python -m benchmarks.rank_stability.

A hundred instances of each class are drawn, and every private entry of the catalog that plays on the class plays on each of
them at mu = 1. It shows on how many an entry has the least mean regret, and how alike the rankings of two instances are:
Kendall's tau over the entries, 1 for equal rankings, 0 for unrelated ones, its mean over all pairs of instances. A ranking
from few replications is noisy too: beside it stands the tau between two halves of the replications on the same instance,
below 1 by chance alone. It prints a Markdown table and writes benchmarks/data/rank_stability.json,
of which `python docs/rate_figures.py` makes docs/rates.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import binomtest, kendalltau

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.flows.plan.plan import cells_of
from benchmarks.rate_families import spec_at_mu
from benchmarks.rates import finals_of

DATA = Path(__file__).parent / "data" / "rank_stability.json"
INSTANCES = 100
REPLICATIONS = 10
_RESAMPLES = 2000


class Class(NamedTuple):
    """A class of instances.

    Attributes:
      name: of the class.
      instance: generator -> the fields of one instance.
      horizon: rounds.
      more: of the item that stands for the entries, see `spec_at_mu`.
    """

    name: str
    instance: Callable[[np.random.Generator], Mapping[str, Any]]
    horizon: int
    more: Mapping[str, Any]


def _arms(generator: np.random.Generator) -> Mapping[str, Any]:
    return {"kind": "bernoulli", "means": generator.uniform(size=5).tolist()}


def _direction(generator: np.random.Generator, dimension: int) -> FloatArray:
    vector = generator.standard_normal(dimension)
    return np.asarray(vector / np.linalg.norm(vector))


def _vectors(generator: np.random.Generator) -> Mapping[str, Any]:
    features = [_direction(generator, 3).tolist() for _ in range(10)]
    return {"kind": "linear", "features": features, "theta": (0.8 * _direction(generator, 3)).tolist()}


def _contexts(generator: np.random.Generator) -> Mapping[str, Any]:
    theta = generator.uniform(0.2, 1.0) * _direction(generator, 3)
    return {"kind": "sphere", "actions": 5, "dimension": 3, "theta": theta.tolist()}


_SAME = ("adac-ucb",)
"""What is another entry at mu = 1: here AdaR-UCB."""
_SLOW = ("dp-ucb", "dp-thompson", "dp-exp3")
"""Entries that decide, or draw, in every round: a hundred instances of them take longer than all others together."""
CLASSES = (
    Class("finite arms", _arms, 10_000, {"leave_out": [*_SAME, *_SLOW]}),
    Class("linear arms", _vectors, 100_000, {"leave_out": [*_SAME, *_SLOW]}),
    Class("contextual, joint", _contexts, 500, {
        "model": ["joint"], "calibrations": ["printed", "tree", "tight"], "parameters": {"beta_scale": 0.1},
    }),
)  # fmt: skip


def finals(group: Class, seed: int) -> dict[str, FloatArray]:
    """Cell -> (n_reps,) final regret of each entry on one instance, which the seed draws."""
    environment = group.instance(np.random.Generator(np.random.SFC64(seed)))
    spec = spec_at_mu(environment, group.horizon, REPLICATIONS, seed, **group.more)
    return {f"{cell.entry.label} {cell.settings.calibration}": finals_of(cell) for cell in cells_of(spec)}


def tau_between(first: FloatArray, second: FloatArray) -> float:
    """Kendall's tau-b of two rankings by (n_entries,) mean regrets; 0 where one of them is all ties."""
    return float(np.nan_to_num(kendalltau(first, second).statistic))


def mean_tau(means: FloatArray) -> tuple[float, float, float]:
    """Mean tau over all pairs of instances, with a 95 % interval by the bootstrap over instances.

    A resampled instance is no pair with itself: such a tau of 1 says nothing.

    Args:
      means: (n_instances, n_entries).
    """
    n = len(means)
    taus = np.array([[1.0 if i == j else tau_between(means[i], means[j]) for j in range(n)] for i in range(n)])

    def mean_over(chosen: IntArray) -> float:
        is_pair = chosen[:, None] != chosen[None, :]
        return float(taus[np.ix_(chosen, chosen)][is_pair].mean())

    resampled = np.random.Generator(np.random.SFC64(0)).integers(0, n, (_RESAMPLES, n))
    has_pairs = (resampled != resampled[:, :1]).any(axis=1)
    low, high = np.quantile([mean_over(chosen) for chosen in resampled[has_pairs]], [0.025, 0.975])
    return mean_over(np.arange(n)), float(low), float(high)


def summary(name: str, regrets: FloatArray, entries: Sequence[str]) -> dict[str, Any]:
    """Shares of instances on which each entry is best, and mean taus, as JSON has them.

    Args:
      name: of the class.
      regrets: (n_instances, n_entries, n_reps).
      entries: (n_entries,) their names.
    """
    means, half = regrets.mean(axis=2), regrets.shape[2] // 2
    best = np.bincount(means.argmin(axis=1), minlength=len(entries))
    halves = np.array([tau_between(one[:, :half].mean(axis=1), one[:, half:].mean(axis=1)) for one in regrets])
    shares = {}
    for entry, count in zip(entries, best.tolist(), strict=True):
        ends = binomtest(count, len(means)).proportion_ci()
        shares[entry] = [count / len(means), float(ends.low), float(ends.high)]
    return {
        "class": name, "instances": len(means), "replications": regrets.shape[2], "best": shares, "tau": [*mean_tau(means)],
        "tau_of_halves": float(halves.mean()),
    }  # fmt: skip


def measured(n_instances: int = INSTANCES) -> Iterator[dict[str, Any]]:
    """The summary of each class."""
    for group in CLASSES:
        played = [finals(group, seed) for seed in range(n_instances)]
        entries = list(played[0])
        yield summary(group.name, np.array([[one[entry] for entry in entries] for one in played]), entries)


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The summaries as Markdown: entries that are best on some instance, the most frequent first."""
    lines = ["| class | tau between instances | tau of two halves | best on |", "|---|--:|--:|---|"]
    for row in rows:
        tau, low, high = row["tau"]
        ranked = sorted(row["best"].items(), key=lambda item: -item[1][0])
        best = "; ".join(f"{name}: {s:.0%} ({a:.0%} to {b:.0%})" for name, (s, a, b) in ranked if s > 0)
        lines.append(f"| {row['class']} | {tau:.2f} ({low:.2f} to {high:.2f}) | {row['tau_of_halves']:.2f} | {best} |")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints the table and writes the data."""
    rows = []
    for row in measured():
        rows.append(row)
        print(row, flush=True)
    DATA.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table_of(rows))


if __name__ == "__main__":
    main()
