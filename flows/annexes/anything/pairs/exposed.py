"""Outputs that hold the seed of their own noise, or a generator's state: whoever reads them draws the noise again.

The seeds that a run hands to generators are looked for in its output: in numbers, text and states. What is found may be
public, such as the seed of a random projection. So the run is repeated with another seed, in which only those generators
get their old seeds whose seeds were found: if the output is the same, all of its noise comes from them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.leaves import Leaf, Walked, leaves
from bandana.flows.annexes.anything.outputs.calls import Batch, Caller, same
from bandana.flows.annexes.anything.pairs.coupling import Seeds

_TRIED, _WORDS, _SHORTEST = 4, 8, 4


def exposed(caller: Caller, data: object, neighbor: object, seed: int) -> str:
    """Where an output shows what its noise comes from, in words; empty if it does not.

    Args: as in `bandana.flows.annexes.anything.pairs.coupling.compare`.
    """
    numbers = np.random.SeedSequence(seed, spawn_key=(15,)).generate_state(_TRIED + 1).tolist()
    n_runs = 1 if caller.batch is Batch.SIZE else None
    where: set[str] | None = None
    with Seeds.watched() as seeds:
        for number, another in pairwise(numbers):
            paths = _shown_by(seeds, partial(caller.tried, n_runs=n_runs), data, neighbor, number, another, caller)
            where = paths if where is None else where & paths
            if not where:
                return ""
    place = min(where or {""}, key=len).replace("#", " ").strip() or "as a whole"
    return (
        f"the output holds the seed of its noise, or its generator ({place}): whoever reads it draws the noise again; with "
        f"{_TRIED} seeds that were tried the data sets then differ"
    )


def _shown_by(
    seeds: Seeds,
    run: Callable[[object, int], object],
    data: object,
    neighbor: object,
    number: int,
    another: int,
    caller: Caller,
) -> set[str]:
    """The places of one output from which its noise can be drawn again; empty if there are none, or the noise is not all."""
    output, handed = seeds.of(partial(run, data, number))
    calls = seeds.calls
    parts = list(leaves(output))
    own = {leaf.path for leaf in parts if caller.seed is not None and any(_holds(leaf, sign) for sign in _signs(number))}
    if own and caller.is_repeatable:
        return own if not same(output, run(neighbor, number)) else set()
    places = {
        call: {leaf.path for leaf in parts if any(_holds(leaf, sign) for value in values for sign in _signs(value))}
        for call, values in enumerate(handed)
    }
    script = {call: calls[call] for call, paths in places.items() if paths}
    if not script:
        return set()
    again, _ = seeds.of(partial(run, data, another), script)
    other, _ = seeds.of(partial(run, neighbor, number), script)
    shown: set[str] = set().union(*places.values())
    rest, rest_again, rest_there = (
        Walked([leaf for leaf in leaves(one) if leaf.path not in shown]) for one in (output, again, other)
    )
    return shown if same(rest, rest_again) and not same(rest, rest_there) else set()


def _holds(leaf: Leaf, sign: str | FloatArray) -> bool:
    if isinstance(sign, str):
        return leaf.label.startswith("str ") and sign in leaf.label
    return leaf.numbers is not None and len(leaf.numbers) > 0 and bool(np.isin(sign, leaf.numbers).all())


def _signs(seed: Any) -> Iterator[str | FloatArray]:
    """Signs of a seed: its number, its digits, and the state of a generator that it makes."""
    if isinstance(seed, int) and not isinstance(seed, bool):
        for text in (str(seed), f"{seed:x}"):
            if len(text) >= _SHORTEST:
                yield text
        yield next(leaves(seed)).numbers  # type: ignore[misc]
        if 2**53 < seed < 2**64:
            yield np.array([float(seed), float(seed % 2**32)])
        python = random.Random(seed)
        for _ in range(2):  # the first draw changes the state as a whole
            yield np.array(python.getstate()[1][1 : 1 + _WORDS], dtype=float)
            python.random()
    try:
        entropy = np.random.SeedSequence(seed[1], spawn_key=seed[2]) if _is_sequence(seed) else seed
        increment = np.random.PCG64(entropy).state["state"]["inc"]
        yield next(leaves(increment)).numbers  # type: ignore[misc]
        old = np.random.RandomState(seed)
        for _ in range(2):
            yield np.asarray(old.get_state(legacy=False)["state"]["key"][1 : 1 + _WORDS], dtype=float)
            old.random_sample()
    except (TypeError, ValueError):  # no seed of NumPy's
        return


def _is_sequence(seed: object) -> bool:
    return isinstance(seed, tuple) and len(seed) == 3 and seed[0] == "sequence"
