"""Keeper of budget books, as runs ask for it; see `bandana.flows.cells.charging.BookKeeper`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bandana.flows.annexes.books import charges, private_choice, summary
from bandana.flows.cells.charging import BookKeeper
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.problems.environment import Environment, EnvironmentFields
from bandana.flows.texts.json_text import JsonObject
from bandana.privacy_core import Guarantee


class Keeper(BookKeeper):
    """Keeps the books of the data folder, of files, and of databases."""

    def charge(self, block: Block) -> charges.Charged | None:
        """Charges a block before it draws noise; see `charges.charge`."""
        return charges.charge(block)

    def check_affords(self, blocks: Iterable[Block], choices: Iterable[Cell] = ()) -> None:
        """Refuses what does not fit into the budget together; see `charges.check_affords`."""
        charges.check_affords(blocks, [private_choice.charge_of_choice(cell) for cell in choices])

    def check_has_no_book(self, environment: Environment[EnvironmentFields]) -> None:
        """Refuses a file without a book whose rows have one."""
        charges.check_has_no_book(environment)

    def choose(self, cell: Cell, regrets: Sequence[float]) -> int:
        """Number of the chosen value; see `private_choice.choose_privately`."""
        return private_choice.choose_privately(cell, regrets)

    def charge_stream(self, place: str, budget: Guarantee | None, most: Guarantee | None, facts: JsonObject) -> float:
        """Charges live feedback once for its `key`, nothing where `most` is None; see `charges.charge_stream`."""
        return charges.charge_stream(place, budget, most, facts)

    def forecast(self, plan: Plan, waiting: Iterable[Block], root: Path | None) -> list[str]:
        """Lines on private files without a book, then on each book."""
        return [*charges.without_book(plan.environments), *charges.forecast(waiting, root)]

    def summaries(self, plan: Plan, *, is_played: bool) -> list[Any]:
        """The report's `books`; see `summary.books_of`."""
        return summary.books_of(plan.spec, is_played=is_played)
