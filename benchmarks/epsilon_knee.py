r"""Where pure privacy begins to cost on two arms: python -m benchmarks.epsilon_knee.

Theory: regret over log T tends to D / d_epsilon(p, q), D = q - p the gap and d_epsilon = min over p <= r <= q of
epsilon (r - p) + kl(r, q) (Azize and others (2025), DP-IMED and DP-KLUCB; `private_kl` of the lower bounds). From epsilon =
logit q - logit p on, the minimum is at r = p: d_epsilon = kl(p, q), and more epsilon gains nothing. As epsilon falls to 0 it
is epsilon D, so that regret is log T / epsilon whatever the gap is. The asymptotes, D / kl(p, q) and 1 / epsilon, cross at

    epsilon = kl(p, q) / D, which is about 2 D for means around 1/2: epsilon of the order of the gap.

Measured is the same crossing: the level of the regret at the largest epsilons, and the factor of 1 / epsilon at the
smallest. Both asymptotes have the same unknown factor, such as log T and that of batches, which the crossing does not know.
It prints a Markdown table and writes benchmarks/data/epsilon_knee.json, of which `python docs/rate_figures.py` draws
docs/rates.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logit

from bandana.algorithms.protocol import FloatArray
from bandana.audits.reporting.intervals import mean_interval
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import cells_of
from bandana.flows.spec.spec import parse_spec
from benchmarks.rates import finals_of

DATA = Path(__file__).parent / "data" / "epsilon_knee.json"
GAPS = (0.05, 0.1, 0.2, 0.4)
HORIZON = 10_000_000
REPLICATIONS = 400
ENTRIES = ("dp-imed", "dp-klucb")
LEVELS = tuple(2.0**step for step in range(-9, 6))
_SHARE = 8
"""An epsilon this many times below the crossing, or above it, counts for an asymptote."""
_RESAMPLES = 2000


class Knee(NamedTuple):
    """Epsilon at which the asymptotes of small and large epsilon cross, with a 95 % bootstrap interval."""

    epsilon: float
    low: float
    high: float


def means_of(gap: float) -> tuple[float, float]:
    """Means of the two arms, around 1/2."""
    return (1 + gap) / 2, (1 - gap) / 2


def crossing(gap: float) -> float:
    """Epsilon at which 1 / epsilon is D / kl: below it theory has regret grow as 1 / epsilon."""
    best, other = means_of(gap)
    kl = other * math.log(other / best) + (1 - other) * math.log((1 - other) / (1 - best))
    return kl / gap


def flat_from(gap: float) -> float:
    """The least epsilon from which on d_epsilon is kl, and regret that without privacy."""
    best, other = means_of(gap)
    return float(logit(best) - logit(other))


def asymptotes(gap: float, levels: Sequence[float]) -> tuple[list[int], list[int]]:
    """Places of the epsilons far below the predicted crossing, and of those far above it."""
    at = crossing(gap)
    return [i for i, e in enumerate(levels) if e <= at / _SHARE], [i for i, e in enumerate(levels) if e >= at * _SHARE]


def knee_of(levels: Sequence[float], finals: Sequence[FloatArray], gap: float) -> Knee:
    """The measured crossing.

    Args:
      levels: epsilons.
      finals: (n,) regrets at each of them; replications are independent, also between epsilons.
      gap: of the arms; it says which epsilons are far from the predicted crossing, and nothing else.

    Raises:
      ValueError: no epsilon is far enough below, or above.
    """
    below, above = asymptotes(gap, levels)
    if not below or not above:
        at = crossing(gap)
        raise ValueError(f"levels must reach from {at / _SHARE:.3g} to {at * _SHARE:.3g}, got {levels}")
    generator, rows = np.random.Generator(np.random.SFC64(0)), [np.asarray(each) for each in finals]
    drawn = [row[generator.integers(0, len(row), (_RESAMPLES, len(row)))].mean(axis=1) for row in rows]

    def crossed(means: Sequence[FloatArray]) -> FloatArray:
        slope = np.mean([np.log(means[i] * levels[i]) for i in below], axis=0)
        return np.asarray(np.exp(slope - np.mean([np.log(means[i]) for i in above], axis=0)))

    low, high = np.quantile(crossed(drawn), [0.025, 0.975])
    return Knee(float(crossed([row.mean() for row in rows])), float(low), float(high))


def cells_at(gap: float) -> list[Cell]:
    """Every entry at every epsilon, on two arms with this gap."""
    environment = {"kind": "bernoulli", "means": list(means_of(gap))}
    algorithms = [{"algorithm": name, "privacy": {"epsilon": list(LEVELS)}} for name in ENTRIES]
    fields = {
        "name": "epsilon-knee", "seed": 1, "environment": environment, "horizon": HORIZON, "replications": REPLICATIONS,
        "block_size": REPLICATIONS, "twins": False, "references": False, "algorithms": algorithms,
    }  # fmt: skip
    cells = cells_of(parse_spec(json.dumps(fields), "epsilon-knee", Path()))
    return [cell for cell in cells if cell.settings.calibration == cell.entry.calibrations[-1]]


def measured() -> Iterator[Mapping[str, Any]]:
    """Regret at each epsilon and the crossing, of each entry at each gap, as JSON has them."""
    for gap in GAPS:
        finals: dict[str, list[FloatArray]] = {}
        for cell in cells_at(gap):
            finals.setdefault(cell.entry.label, []).append(finals_of(cell))
        for label, regrets in finals.items():
            intervals = [[float(end) for end in mean_interval(row)] for row in regrets]
            yield {
                "entry": label, "gap": gap, "epsilons": list(LEVELS), "regret": intervals,
                **knee_of(LEVELS, regrets, gap)._asdict(), "predicted": crossing(gap), "flat_from": flat_from(gap),
            }  # fmt: skip


def table_of(rows: Sequence[Mapping[str, Any]]) -> str:
    """The crossings as Markdown."""
    lines = ["| algorithm | gap | predicted | measured, 95 % interval | measured / predicted |", "|---|--:|--:|--:|--:|"]
    for row in rows:
        predicted, epsilon, low, high = (row[name] for name in ("predicted", "epsilon", "low", "high"))
        measured = f"{epsilon:.3g} ({low:.3g} to {high:.3g})"
        lines.append(f"| {row['entry']} | {row['gap']:g} | {predicted:.3g} | {measured} | {epsilon / predicted:.2f} |")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints the table and writes the data."""
    rows = list(measured())
    DATA.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    print(table_of(rows))


if __name__ == "__main__":
    main()
