"""Whether the same seed makes the same randomness on neighboring data sets: generators that the data seed are told.

Every proof of privacy draws noise that is independent of the data. Replays with fresh seeds cannot see a generator that is
seeded by the run's seed and the data together, since such noise looks fresh on both sides. So the function runs on both data
sets with one seed, and the seeds that it hands to generators of NumPy, Python and torch are compared.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from bandana.audits.external.releases.calls import Batch, Caller

_TRIED = 4
_MAKERS = ((np.random, ("default_rng", "seed", "RandomState", "SeedSequence")), (random, ("seed", "Random")))


@dataclass(frozen=True)
class Coupling:
    """What runs with one seed on both data sets showed.

    Attributes:
      n_seen: generators that were seeded on the data set, over all of these runs.
      finding: what differs, in words; empty if nothing does.
    """

    n_seen: int
    finding: str = ""


def compare(caller: Caller, data: Any, neighbor: Any, seed: int) -> Coupling:
    """Runs the function on both data sets with a few seeds, and compares the seeds that it hands to generators.

    A function may make more generators on one data set, say one a record. What no honest one does is to make some on either
    side that the other never makes. Generators of other libraries are not seen.

    Args:
      caller: the function.
      data: a data set.
      neighbor: the other.
      seed: root of the seeds of these runs.
    """
    if caller.seed is None:
        return Coupling(0)
    n_seen, n_runs = 0, 1 if caller.batch is Batch.SIZE else None
    for number in np.random.SeedSequence(seed, spawn_key=(13,)).generate_state(_TRIED).tolist():
        sides = []
        for side in (data, neighbor):
            with _noted(caller.function) as seeds:
                caller.tried(side, number, n_runs)
            sides.append(seeds)
        n_seen += len(sides[0])
        if set(sides[0]) - set(sides[1]) and set(sides[1]) - set(sides[0]):
            return Coupling(
                n_seen,
                f"with the seed {number} it seeds another generator on the neighbor than on the data set: its noise depends "
                "on the data; derive all seeds from the seed that it is given, and from nothing else",
            )
    return Coupling(n_seen)


@contextmanager
def _noted(function: Any) -> Iterator[list[Any]]:
    """The seeds that are handed to generators meanwhile."""
    seeds: list[Any] = []
    scope = _globals(function)
    with ExitStack() as stack:
        torch = sys.modules.get("torch")
        for module, names in (*_MAKERS, *(((torch, ("manual_seed",)),) if torch is not None else ())):
            for name in names:
                maker = getattr(module, name)
                noting = _noting(maker, seeds)
                stack.enter_context(patch.object(module, name, noting))
                for own in [key for key, value in scope.items() if value is maker]:  # from numpy.random import default_rng
                    stack.enter_context(patch.dict(scope, {own: noting}))
        yield seeds


def _globals(function: Any) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__globals__", None) or getattr(type(function).__call__, "__globals__", {})


def _noting(maker: Any, seeds: list[Any]) -> Any:
    """What makes generators, and notes the seed."""
    if isinstance(maker, type):

        def make(self: Any, *given: Any, **named: Any) -> None:
            _note(seeds, given, named)
            maker.__init__(self, *given, **named)  # type: ignore[misc]

        return type(maker.__name__, (maker,), {"__init__": make})

    @functools.wraps(maker)
    def call(*given: Any, **named: Any) -> Any:
        _note(seeds, given, named)
        return maker(*given, **named)

    return call


def _note(seeds: list[Any], given: tuple[Any, ...], named: dict[str, Any]) -> None:
    for value in (*given, *named.values()):
        found = _plain(value)
        if found is not None:
            seeds.append(found)


def _plain(value: Any) -> Any:
    """A seed as something that can be compared; None for none, and for a generator that was made elsewhere."""
    if isinstance(value, np.random.bit_generator.SeedSequence):
        return ("sequence", _plain(value.entropy), tuple(value.spawn_key))
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value if isinstance(value, int | float | str | bytes) else None
