"""A program on one data set and on its neighbor, with everything that its priced primitives released held fixed.

What the primitives released is then the same in both runs, and so are the program's own coins, which come from its seed. If
the claim rests on the primitives, all else must agree too: which primitives are called, what they cost, and the output; and
no value may move by more than its price covers. Each of these is decided by one pair of runs, without statistics.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.claims import Quantity
from bandana.audits.leaves import Leaf, leaves
from bandana.audits.outcome import EQUAL, Events, accounted_as, is_exactly_accounted
from bandana.flows.annexes.anything.foreign.tape import Call, Diverged, Unpriced, played
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.privacy_core import Event, Guarantee

_PAIRS, _SECONDS = 16, 10.0
_NO_OUTPUT = "what the replay did not return"


@dataclass(frozen=True)
class Frozen:
    """Findings of runs with frozen primitives.

    Attributes:
      n_pairs: pairs of runs.
      n_calls: of priced primitives in a run, at most.
      accounted: what the calls that the change of data reaches compose to, in the claim's quantity, the largest of all
        pairs; None where a price is an upper bound only, or nothing could be frozen.
      findings: what breaks the claim, in words.
      is_same: whether all but the prices agreed on both data sets.
      note: why nothing could be seen, in words; empty where it could.
    """

    n_pairs: int
    n_calls: int
    accounted: float | None
    findings: tuple[str, ...] = ()
    is_same: bool = True
    note: str = ""

    @property
    def line(self) -> str:
        """The findings in one line."""
        if self.note:
            return self.note
        calls = f"{self.n_calls} call{'s' * (self.n_calls != 1)} of priced primitives"
        kept = "is the same on both data sets" if self.is_same else "differs"
        return f"with the outputs of {calls} held fixed, the rest {kept} in {self.n_pairs} pairs of runs"


def examine(
    run: Callable[[object, int], object],
    data: object,
    neighbor: object,
    stated: Guarantee,
    seed: int,
    *,
    seconds: float = _SECONDS,
) -> Frozen | None:
    """Runs a program on both data sets with frozen primitives.

    Args: as in `bandana.flows.annexes.anything.pairs.release.draw`, and
      run: the program, a function of (data, seed).
      stated: the claim.
      seconds: after which no further pair begins.

    Returns:
      what was seen; None where no priced primitive is called.

    Raises:
      BrokenSubject: a price or a value cannot be read.
    """
    try:
        return _examined(run, data, neighbor, stated, seed, seconds)
    except Unpriced as error:
        raise BrokenSubject(str(error)) from error


def _examined(
    run: Callable[[object, int], object], data: object, neighbor: object, stated: Guarantee, seed: int, seconds: float
) -> Frozen | None:
    quantity = Quantity.of(stated)
    limit = quantity.limit(stated)
    seeds = np.random.default_rng([seed, 12]).integers(0, 2**32, _PAIRS).tolist()
    begun, n_pairs, n_calls = time.monotonic(), 0, 0
    accounted: float | None = 0.0
    differing: dict[str, str] = {}
    overspent: tuple[str, ...] = ()
    for number in seeds:
        if n_pairs and time.monotonic() - begun > seconds:
            break
        sides = (data, neighbor) if n_pairs % 2 == 0 else (neighbor, data)
        with played() as first:
            live = run(sides[0], number)
        again, same = _replayed(run, sides[0], number, first.calls)
        other, output = _replayed(run, sides[1], number, first.calls)
        if not again and not other:
            return None
        n_pairs, n_calls = n_pairs + 1, max(n_calls, len(again), len(other))
        if not _is_repeated(first.calls, again) or _difference(live, same) is not None:
            note = "its primitives cannot be frozen: the same data and seed gave another run, so it draws more than its seed"
            return Frozen(n_pairs, n_calls, None, note=note)
        differing = _compared(again, other, same, output) | differing
        reached = [one for one, two in zip(again, other, strict=False) if not _same(one.value, two.value)]
        if not all(getattr(call.price, "is_exact", True) for call in reached):
            accounted = None
        if accounted is None:
            continue
        events = _events(reached)
        spent = accounted_as(quantity, events)
        if spent > max(accounted, limit * EQUAL) and is_exactly_accounted(quantity, events):
            derived = f"no finite {quantity}" if math.isinf(spent) else f"{quantity} = {spent:.6g}"
            overspent = (f"accounted exceeds claimed: the calls compose to {derived}, the claim allows {limit:.6g}",)
        accounted = max(accounted, spent)
    return Frozen(n_pairs, n_calls, accounted, (*differing.values(), *overspent), not differing)


def _replayed(
    run: Callable[[object, int], object], data: object, seed: int, script: list[Call]
) -> tuple[list[Call], object]:
    """The calls and the output of a run that is given recorded outputs."""
    with played(script) as tape:
        try:
            return tape.calls, run(data, seed)
        except Diverged:
            return tape.calls, _NO_OUTPUT


def _is_repeated(first: list[Call], again: list[Call]) -> bool:
    """True if two runs on the same data gave their primitives the same values."""
    return len(first) == len(again) and all(_same(one.value, other.value) for one, other in zip(first, again, strict=True))


def _compared(first: list[Call], other: list[Call], output: object, on_neighbor: object) -> dict[str, str]:
    """Forbidden differences between a data set and its neighbor: kind of finding -> words."""
    for place, (one, two) in enumerate(zip_longest(first, other), start=1):
        if one is None or two is None or one.name != two.name:
            names = " on one side, ".join("nothing" if call is None else call.name for call in (one, two))
            return {"calls": f"which primitives are called depends on the data: as number {place} {names} on the other"}
        what = f"of call {place}, {one.name},"
        if one.price != two.price:
            return {"price": f"the price {what} depends on the data: {one.price} and {two.price}"}
        if one.value.shape != two.value.shape:
            return {"shape": f"the shape of the value {what} depends on the data: {one.value.shape} and {two.value.shape}"}
        moved, covered = _moved(one, two), one.price.sensitivity
        if not moved <= covered * EQUAL:
            return {"moved": f"the value {what} moves by {moved:.6g} in {one.price.norm}, its price covers {covered:.6g}"}
    if (difference := _difference(output, on_neighbor)) is not None:
        return {"output": f"the primitives released the same, and the output differs: {difference}"}
    return {}


def _moved(one: Call, two: Call) -> float:
    return float(one.price.change(one.value[None], two.value[None])[0])


def _events(calls: list[Call]) -> Events:
    """Their prices, counted."""
    counted: Counter[Event] = Counter(call.price.event for call in calls)
    return tuple(sorted(counted.items(), key=lambda item: (type(item[0]).__name__, item[0])))


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and np.array_equal(one, other, equal_nan=True)


def _difference(output: object, on_neighbor: object) -> str | None:
    """The first part in which two outputs differ, in words; None where they agree to the last bit."""
    sides = [{leaf.path: leaf for leaf in leaves(value)} for value in (output, on_neighbor)]
    for path in dict.fromkeys([*sides[0], *sides[1]]):
        one, other = (side.get(path) for side in sides)
        if one is None or other is None or one.label != other.label or not _equal(one.numbers, other.numbers):
            return f"{path.replace('#', ' ').strip() or 'it'} is {_shown(one)} and {_shown(other)}"
    return None


def _equal(one: FloatArray | None, other: FloatArray | None) -> bool:
    return one is other or (one is not None and other is not None and _same(one, other))


def _shown(leaf: Leaf | None) -> str:
    if leaf is None:
        return "nothing"
    return leaf.label if leaf.numbers is None or len(leaf.numbers) != 1 else f"{leaf.numbers[0]:.17g}"
