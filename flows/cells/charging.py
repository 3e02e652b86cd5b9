"""Budget books, as the core asks for them: the annex that keeps them, or nobody, who refuses a spec that names one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from bandana.flows.annex import plugged
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import Guarantee


class Charged(Protocol):
    """A block that was charged, and may draw noise."""

    @property
    def place(self) -> str:
        """Name of the book."""

    @property
    def reserved(self) -> Guarantee:
        """The most that each replicate may spend."""

    def settle(self, events: list[JsonObject]) -> JsonObject:
        """Puts what was drawn in place of what was reserved; what the stored result keeps: the book's last entry."""


class BookKeeper:
    """Keeper of none, in a product without the annex: data without a book pass, a book is refused with BookError."""

    def charge(self, block: Block) -> Charged | None:
        """Charges a block before it draws noise; None where its rows have no book."""
        self.check_has_no_book(block.cell.environment)
        return None

    def check_affords(self, blocks: Iterable[Block], choices: Iterable[Cell] = ()) -> None:
        """Refuses blocks, and private choices of tuned values for cells, that do not fit into the budget together."""
        for block in blocks:
            self.check_has_no_book(block.cell.environment)

    def check_has_no_book(self, environment: Environment[EnvironmentFields]) -> None:
        """Refuses a file without a book whose rows have one."""
        if environment.item.book is not None:
            raise BookError(f"{environment.label} has a budget book, and no annex here keeps books")

    def choose(self, cell: Cell, regrets: Sequence[float]) -> int:
        """Number of the value that is chosen by a charged release, of which the cell has these mean final regrets."""
        raise BookError(f"{cell.name}: a private choice is charged to a budget book, and no annex here keeps books")

    def charge_stream(self, place: str, budget: Guarantee | None, most: Guarantee | None, facts: JsonObject) -> float:
        """Charges live feedback once for its `key`, nothing where `most` is None; epsilon that is left."""
        raise BookError(f"{place}: no annex here keeps books")

    def forecast(self, plan: Plan, waiting: Iterable[Block], root: Path | None) -> list[str]:
        """Lines on what books have spent and will be charged for waiting blocks, and on private files without a book."""
        return []

    def summaries(self, plan: Plan, *, is_played: bool) -> list[Any]:
        """The report's `books`, one for each environment with a book."""
        return []


@cache
def book_keeper() -> BookKeeper:
    """The annex's, or one that keeps no book."""
    return next((keeper() for keeper in plugged("books").values()), BookKeeper())
