"""More replications for rows whose final regret is skewed, by one rule that no result but their own skewness decides.

A mean of few replications and its interval hide a bad run that comes once in fifty. So each row plays the problem's
replications first; if the sample skewness of its measure over these exceeds `SKEWED`, it plays on until it has `ENOUGH`.
Blocks go on with the seeds that they would have had anyway: the first replications stay as they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.stats import skew

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.leaderboard.benchmark_folder import every_of
from bandana.flows.annexes.leaderboard.scaled import only_cells
from bandana.flows.cells.play import is_played
from bandana.flows.folder.store import Store
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.plan.roles import Role
from bandana.flows.results.summaries import Summary, summarize_cell
from bandana.flows.spec.aims import Aim

SKEWED, ENOUGH = 2.0, 200
"""Sample skewness beyond which a row plays on, and its replications then."""
_ROUNDING = 1e-9  # range, over the largest value, below which values differ by rounding alone


def is_skewed(values: FloatArray) -> bool:
    """True if the sample skewness of (n_reps,) values exceeds `SKEWED`; values that are equal up to rounding have none."""
    return bool(np.ptp(values) > _ROUNDING * np.abs(values).max() and skew(values) > SKEWED)


def longer(cell: Cell, summary: Summary) -> Cell | None:
    """The cell with `ENOUGH` replications if it needs them by its first ones; None if it has enough as it is.

    Reference rows and tests for the best arm, which have many, play no further.

    Args:
      cell: of a problem.
      summary: of its first replications.
    """
    is_regret = every_of(cell.spec)[0].aim is Aim.REGRET
    if not is_regret or cell.role is not Role.ALGORITHM or cell.spec.replications >= ENOUGH:
        return None
    if not is_skewed(summary["finals"]):
        return None
    return replace(cell, spec=cell.spec.model_copy(update={"replications": ENOUGH}))


def longer_plan(plan: Plan, store: Store) -> Plan | None:
    """The plan of the cells that must play on, by what is in the store; None if there are none.

    Args:
      plan: whose first replications were played.
      store: results.
    """
    played = [cell for cell in plan.cells if all(is_played(block, store) for block in cell.blocks())]
    names = [cell.name for cell in played if longer(cell, summarize_cell(cell, store)) is not None]
    if not names:
        return None
    changed = {"name": f"{plan.spec.name}-longer", "replications": ENOUGH, "references": False}
    spec = plan.spec.model_copy(update=changed)
    return Plan.of(only_cells(spec, plan.cells, dict.fromkeys(names)))


def finished(cell: Cell, store: Store, *, is_quick: bool = False) -> tuple[Cell, Summary] | None:
    """The cell with all replications that it must have, and its numbers; None while some are missing.

    Args:
      cell: of a problem.
      store: results.
      is_quick: whether the form is the quick one, in which no row plays on.
    """
    if not all(is_played(block, store) for block in cell.blocks()):
        return None
    summary = summarize_cell(cell, store)
    more = None if is_quick else longer(cell, summary)
    if more is None:
        return cell, summary
    return (more, summarize_cell(more, store)) if all(is_played(block, store) for block in more.blocks()) else None
