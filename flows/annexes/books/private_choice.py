"""A tuned value that is chosen on private rows: by the exponential mechanism, charged in the data set's book like a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bandana.flows.annexes.books.charges import Extra, charge_extra
from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import Cell
from bandana.flows.spec.tuned import question
from bandana.privacy_core import BoundedRangeEvent, Exponential, LiveLedger, SecureNoise, Span


def mechanism_of(cell: Cell) -> Exponential:
    r"""Mechanism that selects among mean final regrets.

    Args:
      cell: of a tuning, on a table with a book.

    Returns:
      the mechanism, for scores -regret of one cell with each value, averaged over replications.

    Guarantee: it costs a record `tuning.epsilon`, beside the runs, which are charged by themselves. Let R be the length of
    the reward range, and let all actions of all runs be given: they depend on released values only. Replacing one of n rows
    moves the mean of arm a by d_a, |d_a| <= R / n. Regret over n rounds is n max_a mean_a minus the sum of the means of the
    arms that were played; the first term moves alike for every value, the second by at most R in either direction. So the
    changes of all scores lie in an interval of length 2 R, and averages over replications stay in it.
    """
    tuning, span = cell.spec.tuning, cell.environment.reward_range
    assert tuning is not None
    assert tuning.epsilon is not None
    return Exponential(2 * (span.high - span.low), 1 / tuning.epsilon, cell.claim().relation)


def charge_of_choice(cell: Cell) -> Extra:
    """Cost of the choice for a cell."""
    tuning = cell.spec.tuning
    assert tuning is not None
    event = SecureNoise().cost(mechanism_of(cell).event)
    assert isinstance(event, BoundedRangeEvent)
    key = content_key([question(cell.spec), cell.name, "choice"])
    return Extra(cell.blocks()[0], f"choice of {tuning.parameter} for {cell.name}", key, event)


def choose_privately(cell: Cell, regrets: Sequence[float]) -> int:
    """Number of the chosen value; the charge is on disk before anything is drawn.

    Args:
      cell: of a tuning, on a table with a book.
      regrets: mean final regret of the cell with each value.

    Raises:
      BookError: the budget does not cover the choice.
    """
    charge_extra(charge_of_choice(cell))
    first = cell.environment.first_row
    records = Span(np.array([first]), np.array([first + cell.spec.horizon]))
    mechanism: Any = mechanism_of(cell)  # selections release numbers of options
    selected = LiveLedger(1, SecureNoise()).release(mechanism, -np.array([regrets]), records=records)
    return int(selected[0])
