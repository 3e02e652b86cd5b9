"""Measures how regret grows with the horizon: python -m benchmarks.rates [SPEC --horizons 1000 10000] [--replications N].

A rate such as sqrt K compares algorithms that are built for different horizons K: noise, batches, failure probability and
width depend on K. The slope of one run's curve is something else, as that run was built for its last round. So every cell of
the spec is played at each horizon, built anew for it, and a parameter that the spec tunes is chosen anew, by the spec's rule
and on its tuning seeds. The slope is that of log mean final regret on log K, by least squares, with a bootstrap interval
over replications. It prints a Markdown table, with the proved rate beside each slope. Without a spec it plays every family
of the catalog at mu = 1 over two decades (`rate_families`), and writes the slopes to benchmarks/data/rates.json, of which
`python docs/rate_figures.py` draws docs/rates.md.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI
from bandana.audits.reporting.intervals import LEVEL, Mean, mean_interval, student_quantile
from bandana.flows.cells import replicates
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import Spec, load_spec
from bandana.flows.spec.tuned import Tried, choose
from benchmarks.rate_families import FAMILIES, cells, slope_of_log

_RESAMPLES = 10_000
_RATES = {
    "oful": 1 / 2, "adar-oful": 1 / 2, "linucb": 1 / 2, "linucb joint": 1 / 2, "linucb local": 3 / 4,
    "ucrl-vtr": 1 / 2, "ucrl-vtr joint": 1 / 2, "ucrl-vtr local": 3 / 4, "ucrl-vtr joint pure": 1 / 2,
    "ucrl-vtr local pure": 3 / 4, "ucrl-vtr-plus": 1 / 2, "ucrl-vtr-plus joint": 1 / 2, "ucrl-vtr-plus local": 3 / 4,
    "ucrl-vtr-plus joint pure": 1 / 2, "ucrl-vtr-plus local pure": 3 / 4, "greedy-ridge local": 1 / 2,
    "gp-ucb joint": 1 / 2, "gp-ucb local": 3 / 4, "capri joint": 1 / 2, "capri local": 1 / 2,
    "ucb-vi joint": 1 / 2, "ucb-vi local": 1 / 2,
}  # fmt: skip
"""Exponents of the horizon in bounds for the worst problem. Azize and Basu, Theorem 10; Shariff and Sheffet (2018); Zheng
and others (2020); Luyo and others, Table 1 and Remark 1; Han and others (2021), for diverse contexts; Dubey (2021), at
a fixed number of features; Pavlovic and others, on a finite set of points; `bandana.algorithms.rl.tabular.regret_bound`."""
DATA = Path(__file__).parent / "data" / "rates.json"


class Slope(NamedTuple):
    """Slope of log regret on log horizon, NaN where the regret of a horizon is not positive, with its interval."""

    slope: float
    low: float
    high: float


def slope_of(horizons: Sequence[int], finals: Sequence[FloatArray]) -> Slope:
    """Least-squares slope of log mean regret on log horizon, with a 95 % bootstrap interval over replications.

    Replication i is resampled at all horizons at once, as its environment may share random numbers between them. The
    interval is the expanded percentile interval: at a level whose normal quantile is sqrt(n / (n - 1)) times Student's, as
    plain percentiles of few replications are too short. Simulated with log-normal regrets of a deviation of 0.4 in the
    logarithm it covers 92.5 % at n = 5, 94 % at 10 and 95 % from 20 on; with one of 1, a heavy tail, 91 to 93.5 %.

    Args:
      horizons: at least two different ones.
      finals: (n,) regrets of each horizon, n the same for all.

    Source: Hesterberg (2015), What teachers should know about the bootstrap, section 5.
    """
    rows = np.stack(finals, axis=1)
    n = len(rows)
    means = rows.mean(axis=0)
    if not (means > 0).all():
        return Slope(math.nan, math.nan, math.nan)
    x = np.log(np.asarray(horizons, dtype=float))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    found = float(weights @ np.log(means))
    if n == 1:
        return Slope(found, math.nan, math.nan)
    drawn = np.random.Generator(np.random.SFC64(0)).integers(0, n, (_RESAMPLES, n))
    resampled = rows[drawn].mean(axis=1)
    positive = resampled[(resampled > 0).all(axis=1)]
    tail = float(norm.sf(math.sqrt(n / (n - 1)) * student_quantile(n - 1)))
    low, high = np.quantile(np.log(positive) @ weights, [tail, 1 - tail])
    return Slope(found, min(float(low), found), max(float(high), found))


def proved_rate(cell: Cell) -> float | None:
    """Exponent of the horizon in the algorithm's bound for the worst problem, at a width that is not scaled down.

    Batched LSVI-UCB has that of its schedule: static batches, of K^(2/5) (or K^(1/3), for pure privacy), have it with and
    without noise, determinants sqrt K; for geometric batches there is none.
    """
    algorithm = cell.algorithm()
    if not isinstance(algorithm, BatchedLSVI):
        return _RATES.get(cell.entry.label)
    if algorithm.schedule.log_growth is not None:
        return 1 / 2
    if len(set(algorithm.schedule.batches)) > 1:
        return None
    return 2 / 3 if cell.entry.guarantee == "pure" else 3 / 5


def finals_of(cell: Cell) -> FloatArray:
    """(n_reps,) regret at the end of each replication of a cell."""
    return np.concatenate([replicates.play(block)[0]["regret"][:, -1] for block in cell.blocks()])


def cells_at(spec: Spec, horizon: int) -> list[Cell]:
    """The cells of a spec at another horizon, with what it tunes chosen for that horizon."""
    at = spec.model_copy(update={"horizon": horizon})
    cells = cells_of(at.model_copy(update={"tuning": None}))
    if (tuning := spec.tuning) is None:
        return cells
    tried: dict[str, list[Tried]] = {}
    for value in tuning.values:
        for cell in cells_of(at.with_trial(value)):
            if tuning.parameter in cell.entry.parameters:
                ends = {name: float(end) for name, end in mean_interval(finals_of(cell))._asdict().items()}
                tried.setdefault(cell.name, []).append(Tried(value=value, **ends))
    chosen = {name: choose(each) for name, each in tried.items()}
    return [
        replace(cell, settings=cell.settings.with_parameters(**{tuning.parameter: chosen[cell.name]}))
        if cell.name in chosen else cell
        for cell in cells
    ]  # fmt: skip


def table_of(names: Sequence[str], finals: Mapping[str, Mapping[int, FloatArray]], rates: Mapping[str, float | None]) -> str:
    """Mean final regret at each horizon, slope and proved rate of each cell, as Markdown.

    Args:
      names: of the cells, in their order.
      finals: cell -> horizon -> (n_reps,) regrets.
      rates: cell -> proved exponent, None where there is none.
    """
    horizons = sorted(next(iter(finals.values())))
    lines = [f"| algorithm | {' | '.join(f'{k:,}' for k in horizons)} | slope | proved rate |"]
    lines.append("|---|" + "--:|" * (len(horizons) + 2))
    for name in names:
        found = slope_of(horizons, [finals[name][k] for k in horizons])
        rate = "none" if rates[name] is None else f"{rates[name]:.2g}"
        means = " | ".join(_shown(mean_interval(finals[name][k])) for k in horizons)
        told = "–" if math.isnan(found.slope) else f"{found.slope:.2f} [{found.low:.2f}, {found.high:.2f}]"
        lines.append(f"| {name} | {means} | {told} | {rate} |")
    return "\n".join(lines)


def theoretical(cell: Cell, horizons: Sequence[int]) -> float | None:
    """The slope that theory has for a cell at these horizons.

    On fixed arms, finite or linear, regret grows as log T: its slope on these horizons falls to 0 as they grow. Elsewhere it
    is the proved exponent, for the worst problem of each horizon: a fixed problem may have less.
    """
    return slope_of_log(horizons) if cell.environment.has_arms else proved_rate(cell)


def measured() -> Iterator[dict[str, object]]:
    """The slope of each entry of each family at mu = 1, with what it comes from, as JSON has it."""
    for family in FAMILIES:
        horizons, finals = family.horizons, dict[str, list[FloatArray]]()
        for horizon in horizons:
            for cell in cells(family, horizon):
                finals.setdefault(cell.entry.label, []).append(finals_of(cell))
        for cell in cells(family, horizons[-1]):
            regrets = finals[cell.entry.label]
            yield {
                "family": family.name, "entry": cell.entry.label, "horizons": horizons, "replications": family.replications,
                "means": [float(regret.mean()) for regret in regrets], **slope_of(horizons, regrets)._asdict(),
                "theory": theoretical(cell, horizons),
            }  # fmt: skip


def _shown(mean: Mean) -> str:
    return f"{mean.mean:.4g} ± {(mean.high - mean.low) / 2:.2g}"


def measure(spec: Spec, horizons: Sequence[int], replications: int | None = None) -> str:
    """The table of a spec, see `table_of`."""
    spec = spec.model_copy(update={"replications": replications or spec.replications})
    finals: dict[str, dict[int, FloatArray]] = {}
    rates: dict[str, float | None] = {}
    for horizon in sorted(set(horizons)):
        for cell in cells_at(spec, horizon):
            finals.setdefault(cell.name, {})[horizon] = finals_of(cell)
            rates[cell.name] = proved_rate(cell)
    return table_of(list(finals), finals, rates)


def main() -> None:
    """Prints the table, and how to read it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rates", description=__doc__)
    parser.add_argument("spec", type=Path, nargs="?", help="by default every family at mu = 1")
    parser.add_argument("--horizons", type=int, nargs="+", default=(), help="of the spec: at least two")
    parser.add_argument("--replications", type=int, help="of each cell; by default the spec's")
    chosen = parser.parse_args()
    if chosen.spec is None:
        rows = []
        for row in measured():
            rows.append(row)
            print(f"{row['entry']}: {row['slope']:.2f} [{row['low']:.2f}, {row['high']:.2f}], {row['means']}", flush=True)
        DATA.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        return
    if len(set(chosen.horizons)) < 2:
        parser.error("--horizons must name at least two different horizons")
    spec = load_spec(chosen.spec)
    print(measure(spec, chosen.horizons, chosen.replications))
    print(
        f"\nMean final regret ± half of its {LEVEL:.0%} interval, each cell built for the horizon; slope of log regret on "
        f"log horizon with its {LEVEL:.0%} interval: bootstrap over {chosen.replications or spec.replications} replications."
    )


if __name__ == "__main__":
    main()
