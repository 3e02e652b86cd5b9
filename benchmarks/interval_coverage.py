"""How often intervals cover the mean regret of the catalog's own algorithms: `python -m benchmarks.interval_coverage`.

Each family plays a small problem in many replications. Their final regrets are taken as the population, whose mean is known;
intervals are made from samples of 5, 10, 20 and 200 of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console
from rich.table import Table
from scipy.stats import skew

from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.cells.replicates import play
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec

SIZES = (5, 10, 20, 200)
SAMPLES = 4000
RENYI = {"alpha": 2, "epsilon": 1}
JOINT = {"epsilon": 10, "delta": 1e-5}
ARMS = {"kind": "bernoulli", "means": [0.75, 0.625, 0.5, 0.375, 0.25]}
PROBLEMS: dict[str, tuple[Mapping[str, object], int, int, list[dict[str, object]]]] = {
    "finite arms": (ARMS, 100_000, 4000, [
        {"algorithm": "adap-ucb", "model": "none"}, {"algorithm": "adar-ucb", "privacy": RENYI},
        {"algorithm": "dp-se", "privacy": {"epsilon": 1}}]),
    "linear arms": ({"kind": "linear", "arms": 20, "dimension": 3}, 50_000, 4000, [
        {"algorithm": "gope"}, {"algorithm": "adar-gope", "privacy": RENYI}]),
    "contextual": ({"kind": "sphere", "actions": 5, "dimension": 3}, 1000, 2000, [
        {"algorithm": "oful"}, {"algorithm": "adar-oful", "privacy": RENYI},
        {"algorithm": "linucb", "model": "joint", "privacy": JOINT, "calibrations": "tight"}]),
    "kernel": ({"kind": "rkhs-gap", "actions": 5, "dimension": 1}, 200, 400, [
        {"algorithm": "gp-ucb", "beta_scale": 0.1, "n_features": 16},
        {"algorithm": "gp-ucb", "model": "joint", "beta_scale": 0.1, "n_features": 16, "calibrations": "tight",
         "privacy": {"epsilon": 10, "delta": 0.1}}]),
    "linear mixture": ({"kind": "patients"}, 1000, 1000, [
        {"algorithm": "ucrl-vtr"}, {"algorithm": "ucrl-vtr", "model": "joint", "privacy": JOINT, "calibrations": "tight"}]),
    "linear process": ({"kind": "modes"}, 1000, 1000, [
        {"algorithm": "lsvi-ucb", "beta_scale": 0.1},
        {"algorithm": "lsvi-ucb", "model": "joint", "beta_scale": 0.1, "privacy": JOINT, "calibrations": "tight"}]),
}  # fmt: skip
"""Family -> environment, rounds, replications, algorithms."""


def populations(families: list[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Final regrets of each cell, by its name."""
    for family in families:
        environment, horizon, replications, algorithms = PROBLEMS[family]
        tree = {"name": "coverage", "seed": 1, "environment": [environment], "horizon": horizon, "block_size": 500,
                "replications": replications, "algorithms": algorithms, "audit": {"rounds": 32}}  # fmt: skip
        for cell in cells_of(parse_spec(yaml.safe_dump(tree), "coverage.yaml", Path())):
            found = np.concatenate([play(block)[0]["regret"][:, -1] for block in cell.blocks()])
            yield cell.name, found


def coverage(values: np.ndarray, n: int, seed: int = 0) -> float:
    """Share of intervals from samples of n, drawn with replacement, that hold the mean of all values."""
    generator, mean = np.random.default_rng((seed, n)), values.mean()
    samples = generator.choice(values, (n, SAMPLES))
    if n < 200:
        found = mean_interval(samples)
        return float(((found.low <= mean) & (mean <= found.high)).mean())
    ends = [mean_interval(samples[:, i]) for i in range(SAMPLES // 4)]
    return float(np.mean([end.low <= mean <= end.high for end in ends]))


def main() -> None:
    """Prints the coverage of each cell, in percent, beside its skewness."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.interval_coverage", description=__doc__)
    parser.add_argument("families", nargs="*", default=list(PROBLEMS), help="families; all if left out")
    table = Table("cell", "mean", "skewness", *(f"n = {n}" for n in SIZES))
    for name, values in populations(parser.parse_args().families):
        shares = (f"{100 * coverage(values, n):.1f}" for n in SIZES)
        table.add_row(name, f"{values.mean():.4g}", f"{skew(values):.2f}", *shares)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
