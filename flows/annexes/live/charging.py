"""The budget book of a live policy, as the core's keeper of books has it; no other annex is imported."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bandana.flows.cells.charging import book_keeper
from bandana.flows.folder.settings import data_root
from bandana.flows.own.budgets import BookSpec
from bandana.privacy_core import GaussianDP, Guarantee, PureDP

if TYPE_CHECKING:
    from bandana.flows.annexes.live.router import Deployed, Router

_GRID = 1 + 2.0**-10
"""Largest factor by which secure noise raises a claim."""


@dataclass(frozen=True)
class StreamBook:
    """A book that live feedback is charged to: all policies that name it ask the same persons, as far as it knows."""

    router: Router

    @property
    def _item(self) -> BookSpec:
        return BookSpec.model_validate({"book": self.router.book, "budget": self.router.budget})

    def charge(self, deployed: Deployed, identity: str) -> None:
        """Charges the whole claim, once for an identity; no release can exceed it, since the ledger's budget is the claim.

        Raises:
          BookError: the budget does not cover it, or the book cannot be used.
        """
        stated, claim = deployed.claim.stated, deployed.claim
        most: Guarantee = (
            PureDP(stated.epsilon * _GRID) if isinstance(stated, PureDP) else GaussianDP(claim.gaussian.mu * _GRID)
        )
        facts = {
            "suite": f"live {self.router.algorithm}", "cell": deployed.entry.label, "block": 0, "key": identity,
            "replications": 1, "noise": "secure", "seed": None, "relation": claim.relation.value, "trust": claim.trust.value,
        }  # fmt: skip
        item = self._item
        budget = None if item.budget is None else item.budget.guarantee
        book_keeper().charge_stream(item.place(data_root()), budget, most, facts)

    @property
    def left(self) -> float:
        """Epsilon of the largest run that still fits."""
        return book_keeper().charge_stream(self._item.place(data_root()), None, None, {})
