"""Keeper of budget books, as runs ask for it: what a run is charged, what a choice costs, and what reports show of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bandana.audits.summary import finite
from bandana.flows.annexes.books import charges
from bandana.flows.annexes.books.bookkeeping import spending
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, State, budget_fields
from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.environment import Environment
from bandana.flows.spec.spec import Spec
from bandana.flows.spec.tuned import question
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import BoundedRangeEvent, Exponential, LiveLedger, SecureNoise, Span


class Keeper:
    """Keeps the books of the data folder, of files, and of databases."""

    def charge(self, block: Block) -> charges.Charged | None:
        """Charges a block before it draws noise; see `charges.charge`."""
        return charges.charge(block)

    def check_affords(self, blocks: Iterable[Block], choices: Iterable[Cell] = ()) -> None:
        """Refuses what does not fit into the budget together; see `charges.check_affords`."""
        charges.check_affords(blocks, [charge_of_choice(cell) for cell in choices])

    def check_has_no_book(self, environment: Environment[Any]) -> None:
        """Refuses a file without a book whose rows have one."""
        charges.check_has_no_book(environment)

    def choose(self, cell: Cell, regrets: Sequence[float]) -> int:
        """Number of the chosen value; see `choose_privately`."""
        return choose_privately(cell, regrets)

    def forecast(self, plan: Plan, waiting: Iterable[Block], root: Path | None) -> list[str]:
        """Lines on private files without a book, then on each book."""
        return [*charges.without_book(plan.environments), *charges.forecast(waiting, root)]

    def summaries(self, plan: Plan, *, is_played: bool) -> list[dict[str, Any]]:
        """The report's `books`; see `books_of`."""
        return books_of(plan.spec, is_played=is_played)


def mechanism_of(cell: Cell) -> Exponential:
    r"""What selects among mean final regrets.

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


def charge_of_choice(cell: Cell) -> charges.Extra:
    """What the choice for a cell costs."""
    tuning = cell.spec.tuning
    assert tuning is not None
    event = SecureNoise().cost(mechanism_of(cell).event)
    assert isinstance(event, BoundedRangeEvent)
    key = content_key([question(cell.spec), cell.name, "choice"])
    return charges.Extra(cell.blocks()[0], f"choice of {tuning.parameter} for {cell.name}", key, event)


def choose_privately(cell: Cell, regrets: Sequence[float]) -> int:
    """Number of the chosen value; the charge is on disk before anything is drawn.

    Args:
      cell: of a tuning, on a table with a book.
      regrets: mean final regret of the cell with each value.

    Raises:
      BookError: the budget does not cover the choice.
    """
    charges.charge_extra(charge_of_choice(cell))
    first = cell.environment.first_row
    records = Span(np.array([first]), np.array([first + cell.spec.horizon]))
    mechanism: Any = mechanism_of(cell)  # selections release numbers of options
    selected = LiveLedger(1, SecureNoise()).release(mechanism, -np.array([regrets]), records=records)
    return int(selected[0])


def books_of(spec: Spec, *, is_played: bool) -> list[dict[str, Any]]:
    """One entry of the report's `books` for each environment with a book, as it is now.

    A book that cannot be read is named with the reason: results remain, but nobody knows what was spent.

    Args:
      spec: bound to a data folder, see `bandana.flows.own.data.pinned`; without one it has no books.
      is_played: whether runs of the suite are stored; if not, a book that nobody opened yet is no problem.
    """
    found = []
    for item in spec.environment:
        pin = getattr(item, "pin", None)
        if item.book is None or pin is None:
            continue
        book = BudgetBook(item.book.place(pin.secret.parent))
        if not is_played and not book.entries():
            continue
        about = {"environment": item.shown_label, "name": book.name.removeprefix("book ")}
        try:
            found.append({**about, **_of(book.state(), spec.name), "problem": None})
        except BookError as error:
            found.append({**about, **dict.fromkeys(_NUMBERS), "problem": str(error)})
    return found


_NUMBERS = (
    "head",
    "entries",
    "earlier",
    "unprotected",
    "delta",
    "budget",
    "spent",
    "left",
    "suite_spent",
    "most_costly_cell",
)


def _of(state: State, suite: str) -> dict[str, Any]:
    own = [charge for charge in state.charges if charge.facts["suite"] == suite]
    cells = {charge.facts["cell"]: None for charge in own}
    each = [spending.epsilon_of([c for c in own if c.facts["cell"] == cell], state.budget) for cell in cells]
    budget = budget_fields(state.budget)
    return {
        "head": state.entries[-1].hash,
        "entries": len(state.entries),
        "earlier": state.earlier,
        "unprotected": state.unprotected,
        "delta": budget.get("delta"),
        "budget": budget["epsilon"],
        "spent": finite(state.spent),
        "left": finite(state.left),
        "suite_spent": finite(spending.epsilon_of(own, state.budget)) if own else 0.0,
        "most_costly_cell": finite(max(each)) if each else 0.0,
    }
