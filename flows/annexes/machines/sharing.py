"""Work of one suite shared by many workers that only meet in its store: no coordinator, no locks, nothing to clean up.

Each worker begins with a part of its own, its shard, and then helps the others. Who begins a piece notes that in the store;
the others leave such a piece for the end, when they would be idle, and then do it unless it is finished by then. So a worker
that was killed holds nothing up, no clock matters, and the suite ends as long as one worker lives. Where two idle workers do
one piece, the store keeps the first one's result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from operator import itemgetter
from random import Random
from typing import NamedTuple, Self, TypeVar

from bandana.flows.cells.audits import AUDIT, audit_key, check_audits, parts_first
from bandana.flows.cells.charging import book_keeper
from bandana.flows.cells.play import BENCHMARK
from bandana.flows.folder.progress import bar
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import Store
from bandana.flows.plan.cells import Block, Cell
from bandana.flows.plan.plan import Plan
from bandana.flows.running.side_by_side import Workers
from bandana.flows.suites import steps
from bandana.flows.texts.mistakes import SpecError

T = TypeVar("T")
_BEGUN = "begun"
"""Kind of the empty notes, beside those of results, that somebody began a piece."""
_SHARD = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")


class Shard(NamedTuple):
    """One of the parts that work is divided into.

    Attributes:
      number: from 1.
      of: number of parts.
    """

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `2/4`, the second part of four; SpecError: it is none."""
        parts = _SHARD.fullmatch(text.strip())
        if parts is None or not 1 <= int(parts[1]) <= int(parts[2]):
            raise SpecError(f"--shard: must be I/N, such as 2/4 for the second of four parts, got {text[:100]!r}")
        return cls(int(parts[1]), int(parts[2]))

    def ordered(self, keys: Sequence[str]) -> list[str]:
        """The keys of this part, every `of`-th of all, and then those of the others, which their owners reach last first."""
        others = [(-(place // self.of), key) for place, key in enumerate(keys) if place % self.of != self.number - 1]
        Random(self.number).shuffle(others)  # no two helpers begin with the same piece
        return [*keys[self.number - 1 :: self.of], *(key for _, key in sorted(others, key=itemgetter(0)))]


class Shared(NamedTuple):
    """Pieces of work of one kind that a worker went through.

    Attributes:
      here: how many it finished itself.
      total: how many the suite has; all of them are finished now.
    """

    here: int
    total: int


def work(plan: Plan, folder: DataFolder, shard: Shard, n_workers: int, *, is_audited: bool) -> dict[str, Shared]:
    """Plays the blocks of a plan whose data are bound, and audits its private cells, until all of them are in the store.

    Nothing is tracked or reported: `bandana run` does that afterwards, on one machine, from what is in the store.

    Args:
      plan: what is to be done.
      folder: whose store the workers share.
      shard: where this one begins.
      n_workers: processes of this machine; 1 works in this one.
      is_audited: whether private cells are audited too.

    Returns:
      `blocks` and `audits`.

    Raises:
      BookError: a budget does not cover the blocks that are missing.
      SpecError: the rounds of some audit are too few.
      OSError: the store could not be reached; what was finished is kept.
    """
    store, done = Store(folder.results), {}
    blocks = {block.key: block for block in plan.blocks()}
    audits = {audit_key(cell): cell for cell in parts_first(plan.private if is_audited else ())}
    check_audits(audits.values())
    with Workers(n_workers) as workers:
        there = store.sizes(BENCHMARK)
        missing = [(blocks[key], key) for key in shard.ordered([*blocks]) if key not in there]
        book_keeper().check_affords(block for block, _ in missing)
        done["blocks"] = _share(f"{plan.spec.name}: blocks", len(blocks), workers, partial(_play, store), missing)
        there = store.sizes(AUDIT)
        left = [(audits[key], key) for key in shard.ordered([*audits]) if key not in there]
        examine = partial(_examine, store, workers.cores_each(len(left)))
        done["audits"] = _share(f"{plan.spec.name}: audits", len(audits), workers, examine, left)
    return done


def _share(title: str, total: int, workers: Workers, piece: Callable[..., State], items: Sequence[T]) -> Shared:
    here = 0
    with bar(title, total, total - len(items)) as advance:
        for is_idle in (False, True):
            later = []
            for item, state in workers.completed(partial(piece, is_idle=is_idle), items):
                here += state is State.HERE
                if state is State.BEGUN:
                    later.append(item)
                else:
                    advance(state)
            items = later
    return Shared(here, total)


class State(StrEnum):
    """State in which a worker leaves a piece."""

    HERE = "computed here"
    ELSEWHERE = "computed elsewhere"
    BEGUN = "begun elsewhere"


def _play(store: Store, item: tuple[Block, str], is_idle: bool = True) -> State:
    """Plays a block, unless another worker did or, before this one is idle, began to."""
    return _do(store, BENCHMARK, item[1], is_idle, partial(steps.play, store, item))


def _examine(store: Store, n_cores: int, item: tuple[Cell, str], is_idle: bool = True) -> State:
    """Audits a cell, unless another worker did or, before this one is idle, began to."""
    return _do(store, AUDIT, item[1], is_idle, partial(steps.examine, store, n_cores, item))


def _do(store: Store, kind: str, key: str, is_idle: bool, compute: Callable[[], object]) -> State:
    if store.has(kind, key):
        return State.ELSEWHERE
    if not is_idle and (store.has(_BEGUN, key) or not store.keep(_BEGUN, key, b"", lambda _: True)):
        return State.BEGUN
    if store.path(kind, key).exists():  # since the last listing
        return State.ELSEWHERE
    compute()
    return State.HERE
