"""Summary in a report of the budget books that its spec names: what all runs have spent, beside those of the suite."""

from __future__ import annotations

from bandana.audits.summary import finite
from bandana.flows.annexes.books.bookkeeping import spending
from bandana.flows.annexes.books.bookkeeping.book import BudgetBook, State, budget_fields
from bandana.flows.spec.spec import Spec
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError


def books_of(spec: Spec, *, is_played: bool) -> list[JsonObject]:
    """One entry of the report's `books` for each environment with a book, as it is now.

    A book that cannot be read is named with the reason: results remain, but nobody knows what was spent.

    Args:
      spec: bound to a data folder, see `bandana.flows.own.data.pinned`; without one it has no books.
      is_played: whether runs of the suite are stored; if not, a book that nobody opened yet is no problem.
    """
    books = []
    for item in spec.environment:
        pin = getattr(item, "pin", None)
        if item.book is None or pin is None:
            continue
        book = BudgetBook(item.book.place(pin.secret.parent))
        if not is_played and not book.entries():
            continue
        about = {"environment": item.shown_label, "name": book.name.removeprefix("book ")}
        try:
            books.append({**about, **_of(book.state(), spec.name), "problem": None})
        except BookError as error:
            books.append({**about, **dict.fromkeys(_NUMBERS), "problem": str(error)})
    return books


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


def _of(state: State, suite: str) -> JsonObject:
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
