"""A block of replicates, from the store or played: no orchestration, no tracking, and nothing of audits is imported."""

from __future__ import annotations

import numpy as np

from bandana.audits.contents import PROVENANCE
from bandana.flows.cells import replicates
from bandana.flows.cells.charging import Charged, book_keeper
from bandana.flows.folder.store import BENCHMARK as BENCHMARK
from bandana.flows.folder.store import Store
from bandana.flows.keys.provenance import Making
from bandana.flows.plan.cells import Block
from bandana.flows.plan.keys import block_code, block_facts
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError
from bandana.privacy_core import BudgetExceeded

BOOK = "book"
"""Field of a result's description: the last entry of the data set's book when the result was stored."""


def benchmark_block(block: Block, store: Store) -> tuple[dict[str, np.ndarray], JsonObject]:
    """Regret curves and the privacy spent, of one block of replicates; from the store if they are there.

    Returns:
      arrays and description, see `replicates.play`; the description also holds the provenance: how the block came to be.
    """
    if (stored := store.load(BENCHMARK, block.key)) is not None:
        return stored
    making, charged = Making(), book_keeper().charge(block)
    if charged is None:
        arrays, description = replicates.play(block)
    else:
        arrays, description = _play_charged(block, charged)
    block.cell.environment.check_unchanged()
    made_of = {"of": block_facts(block), "made": block_code(block.cell)}
    description[PROVENANCE] = making.record(is_anonymous=store.is_anonymous) | made_of
    store.save(BENCHMARK, block.key, arrays, description)
    return arrays, description


def _play_charged(block: Block, charged: Charged) -> tuple[dict[str, np.ndarray], JsonObject]:
    """A block whose noise is paid for; what it drew replaces what was reserved for it."""
    try:
        arrays, description = replicates.play(block, charged.reserved)
    except BudgetExceeded as error:
        raise BookError(
            f"{charged.place}: {block.cell.name} would spend more than its claim, for which it was charged, and was "
            f"stopped before it drew more noise: {error}"
        ) from error
    description[BOOK] = charged.settle(description.pop("events"))
    return arrays, description


def is_played(block: Block, store: Store) -> bool:
    """True if the block's result lies in the store; a damaged one is found, and computed again, when it is read."""
    return store.has(BENCHMARK, block.key)
