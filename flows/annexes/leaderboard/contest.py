"""A contest of algorithms on one problem within a level of privacy: the best of them, and whether any learned anything.

Three rules make a ranking of a table of means:

- **Who plays.** Each entry once in a trust model, with its weakest claim within the level: no row is chosen by its result.
- **The learning gate.** A contest has a winner only if its row of least mean is better than uniform play and than the best
  constant action, by one-sided paired t-tests. Both must be beaten, so that two tests err no more often than one; but
  the least of k means looks better than it is, so each test has a level of 5 % divided by k.
- **The confidence set.** All rows that are not shown to be worse than another one. All ordered pairs of rows are tested,
  one-sided and paired. Holm's method (1979) keeps the probability of any wrong rejection at 5 %, however rows depend on
  each other. So all equally good best rows are in the set with 95 % together, as in a model confidence set (Hansen, Lunde
  and Nason 2011), and not only each of them alone.

Differences are paired by replication: all rows play on common random numbers. `python -m benchmarks.contest_coverage`
simulates how often sets hold all that are best, on regrets of the catalog's own algorithms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray
from bandana.audits.documents.fields import present
from bandana.audits.reporting.intervals import holm, p_values
from bandana.flows.annexes.leaderboard.page import family_of
from bandana.flows.problems.environment import CONSTANT, UNIFORM

if TYPE_CHECKING:
    from bandana.flows.annexes.leaderboard.document import Row

WITHIN = 2e-3
"""Relative room in comparisons of mu: claims within a level are rounded down to four digits of their own parameter."""
UNLEARNED = (UNIFORM, CONSTANT)
"""Reference rows that need no learning, which a winner must beat."""
FAILURE = 0.05
"""Probability that a contest's gate, or its set, errs."""


class Contest(NamedTuple):
    """Outcome of a contest.

    Attributes:
      first: label of the row of least mean.
      best: labels of the confidence set, best mean first; the first row is one of them.
      not_beaten: reference rows that the first row is not shown to beat; with any, nobody has won.
    """

    first: str
    best: tuple[str, ...]
    not_beaten: tuple[str, ...]


def within(rows: Sequence[Row], level: float, trust: str) -> list[Row]:
    """Private rows of a trust model that play within a level: each entry with the weakest claim that it has there."""
    strongest: dict[str, float] = {}
    able = [
        row
        for row in rows
        if row["role"] == "private" and row["privacy_model"] == trust
        if row["mu_claimed"] is not None and row["mu_claimed"] <= level * (1 + WITHIN)
    ]
    for row in able:
        strongest[family_of(row)] = max(strongest.get(family_of(row), 0.0), present(row["mu_claimed"]))
    return [row for row in able if present(row["mu_claimed"]) == strongest[family_of(row)]]


def contest(values: Mapping[str, FloatArray], references: Mapping[str, FloatArray]) -> Contest:
    """Decides a contest.

    Args:
      values: label -> (n_reps,) losses, paired by replication; at least one row. Of two rows of different lengths the
        replications that both have are compared.
      references: the same of reference rows that need no learning.
    """
    order = sorted(values, key=lambda label: (float(values[label].mean()), label))
    losses = [np.asarray(values[label], dtype=float) for label in order]
    is_worse = _are_shown_to_be_worse(losses)
    gates = {name: float(p_values(paired(losses[0], others))) for name, others in references.items()}
    return Contest(
        order[0],
        tuple(label for label, is_out in zip(order, is_worse, strict=True) if not is_out),
        tuple(name for name, p in gates.items() if p > FAILURE / len(order)),
    )


def paired(ours: FloatArray, theirs: FloatArray) -> FloatArray:
    """Differences of the replications that both have."""
    both = min(len(ours), len(theirs))
    return np.asarray(ours[:both] - theirs[:both])


def _are_shown_to_be_worse(losses: Sequence[FloatArray]) -> BoolArray:
    """(k,) true for each of k rows of (n_reps,) that is worse than another one, by Holm's method over all ordered pairs."""
    pairs = np.array(list(permutations(range(len(losses)), 2)), dtype=int).reshape(-1, 2)
    chances = holm([float(p_values(paired(losses[better], losses[worse]))) for better, worse in pairs])
    is_worse = np.zeros(len(losses), dtype=bool)
    is_worse[pairs[chances <= FAILURE, 1]] = True
    return is_worse
