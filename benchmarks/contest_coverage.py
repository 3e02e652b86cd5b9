"""How often a contest's confidence set holds all rows that are equally good: `python -m benchmarks.contest_coverage`.

Each cell of `benchmarks.interval_coverage` is played in many replications, whose final regrets are taken as the law of
regret. A contest draws two, four or eight rows of it, which are all equally good, and beside them a row that loses half as
much again: is a good one ever left out, and how often is the bad one? The level of both is 5 %, of the first at most.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy.stats import skew

from bandana.flows.annexes.leaderboard.contest import contest
from benchmarks.interval_coverage import PROBLEMS, populations

SIZES = (10, 20, 200)
ROWS = (2, 4, 8)
CONTESTS = 1000
_WORSE = 1.5
_BAD = "bad"


def contests(law: np.ndarray, n_rows: int, n: int, n_contests: int = CONTESTS) -> tuple[float, float]:
    """Share of contests that leave out a best row, and share that leave out the worse one.

    Args:
      law: (n_population,) regrets, drawn with replacement.
      n_rows: equally good rows of a contest, on independent noise.
      n: replications.
      n_contests: simulated.
    """
    generator = np.random.default_rng((n_rows, n))
    wrong, right = 0, 0
    for _ in range(n_contests):
        values = {f"row {i}": generator.choice(law, n) for i in range(n_rows)}
        best = contest(values | {_BAD: _WORSE * generator.choice(law, n)}, {}).best
        wrong += len(set(best) & set(values)) < n_rows
        right += _BAD not in best
    return wrong / n_contests, right / n_contests


def main() -> None:
    """Prints in what percent of contests a good row, and the bad one, is left out, for each cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.contest_coverage", description=__doc__)
    parser.add_argument("families", nargs="*", default=list(PROBLEMS), help="families; all if left out")
    parser.add_argument("--contests", type=int, default=CONTESTS, help="contests of each kind")
    asked = parser.parse_args()
    heads = [f"{k} rows, n = {n}" for k in ROWS for n in SIZES]
    print("\n".join([f"| cell | skewness | {' | '.join(heads)} |", f"|---|{'--:|' * (len(heads) + 1)}"]))
    most = 0.0
    for name, law in populations(asked.families):
        shares = [contests(law, k, n, asked.contests) for k in ROWS for n in SIZES]
        most = max(most, *(wrong for wrong, _ in shares))
        cells = " | ".join(f"{100 * wrong:.1f} / {100 * right:.0f}" for wrong, right in shares)
        print(f"| {name} | {skew(law):.2f} | {cells} |", flush=True)
    print(f"\nA best row was left out in at most {100 * most:.1f} % of {asked.contests} contests of one kind.")


if __name__ == "__main__":
    main()
