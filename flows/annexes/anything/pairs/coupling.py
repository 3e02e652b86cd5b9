"""Checks that a seed makes the same randomness on neighboring data sets: finds generators that the data seed.

Every proof of privacy draws noise that is independent of the data. Replays with fresh seeds cannot see a generator that is
seeded by the run's seed and the data together, since such noise looks fresh on both sides. So the function runs on both data
sets with one seed, and the seeds that it hands to generators of NumPy, Python and torch are compared.

A bandit may well seed generators by what it played, say one for each arm: where a reward changes its later play, later seeds
differ too, and nothing is wrong. So its seeds are compared only where a reward cannot have changed them by way of an action:
where all actions agree, or where some differ that were played before the reward was paid.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from types import ModuleType
from typing import TypeVar

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.flows.annexes.anything.functions.drawn import Menu
from bandana.flows.annexes.anything.functions.plays import Play, Shape, play_rewards
from bandana.flows.annexes.anything.outputs.calls import Batch, Caller

T = TypeVar("T")
_TRIED, _TABLES = 4, 4
_MOST_RECORDS = 64
_NUMPY = ("default_rng", "seed", "RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "SFC64", "Philox", "MT19937")
_PYTHON = ("seed", "Random")
Call = tuple[tuple[object, ...], dict[str, object]]
"""Arguments of a call that makes a generator."""


@dataclass(frozen=True)
class Coupling:
    """Findings of runs with one seed on neighboring data sets.

    Attributes:
      n_seen: generators that were seeded on the data set, over all runs that could be compared.
      finding: what differs, in words; empty if nothing does.
      is_same: whether all plays with one seed took the same actions, whatever a record's reward was.
    """

    n_seen: int
    finding: str = ""
    is_same: bool = False

    @classmethod
    def found(cls, n_seen: int, seed: int, where: str = "the neighbor") -> Coupling:
        """A generator that the data seed, shown by this seed."""
        return cls(
            n_seen,
            f"with the seed {seed} it seeds another generator on {where} than on the data set: its noise depends on the "
            "data; derive all seeds from the seed that it is given, and from nothing else",
        )


def compare(
    caller: Caller,
    data: object,
    neighbor: object,
    seed: int,
    *,
    n_tried: int = _TRIED,
    counts: Callable[[object, object], bool] = lambda data, neighbor: True,
) -> Coupling:
    """Runs the function on both data sets with a few seeds, and compares the seeds that it hands to generators.

    Generators of other libraries are not seen.

    Args:
      caller: the function.
      data: a data set.
      neighbor: the other.
      seed: root of the seeds of these runs.
      n_tried: how many seeds.
      counts: whether two outputs leave an honest function no reason to seed differently.
    """
    if caller.seed is None:
        return Coupling(0)
    n_seen, n_runs = 0, 1 if caller.batch is Batch.SIZE else None
    with Seeds.watched() as seeds:
        for number in np.random.SeedSequence(seed, spawn_key=(13,)).generate_state(n_tried).tolist():
            output, handed = seeds.of(partial(caller.tried, data, number, n_runs))
            other, handed_there = seeds.of(partial(caller.tried, neighbor, number, n_runs))
            if not counts(output, other):
                continue
            n_seen += sum(map(len, handed))
            if differ(handed, handed_there):
                return Coupling.found(n_seen, number)
    return Coupling(n_seen)


def compare_plays(play: Play, menu: Menu, shape: Shape, seed: int) -> Coupling:
    """Plays drawn tables and, with the same seed, each again with the reward of one record replaced.

    Every record is replaced in each of four tables, or 64 that are drawn and the last one, if there are more; on half of the
    tables rewards are from the ends of the range, on the others from the whole menu.

    Args:
      play: (rewards, seed) -> actions, see `bandana.flows.annexes.anything.functions.plays.adapted`.
      menu: values of rewards.
      shape: rounds and arms.
      seed: of tables, records and runs.
    """
    rng, n_seen, last, is_same = np.random.default_rng([seed, 14]), 0, shape[0] - 1, True
    numbers = rng.integers(0, 2**32, _TABLES).tolist()
    with Seeds.watched() as seeds:

        def run(codes: IntArray, number: int) -> tuple[IntArray | None, list[list[Hashable]]]:
            rewards = np.broadcast_to(menu.values[codes][None, :, None], (1, *shape))
            return seeds.of(partial(_played, play, rewards, number))

        for table, number in enumerate(numbers):
            n_values = len(menu) if table % 2 else 2
            codes = rng.integers(0, n_values, shape[0])
            actions, handed = run(codes, number)
            is_same &= actions is not None
            chosen = rng.permutation(last)[:_MOST_RECORDS].tolist()
            for record in (last, *sorted(chosen)) if actions is not None else ():
                changed = codes.copy()
                changed[record] = (codes[record] + rng.integers(1, n_values)) % n_values
                others, handed_there = run(changed, number)
                is_same &= actions is not None and others is not None and np.array_equal(actions, others)
                if actions is None or others is None or not is_telling(actions, others, record):
                    continue
                n_seen += sum(map(len, handed))
                if differ(handed, handed_there):
                    return Coupling.found(n_seen, number, f"a neighbor that differs in record {record}")
    return Coupling(n_seen, is_same=is_same)


def is_telling(data: IntArray, neighbor: IntArray, record: int) -> bool:
    """True if seeds cannot differ by way of an action: all agree, or some differ up to the record's own.

    Args:
      data: (..., n_rounds) actions on a data set.
      neighbor: the same on its neighbor.
      record: the first one in which they differ.
    """
    if np.ndim(data) == 0 or np.shape(data) != np.shape(neighbor):
        return False  # a run that failed has no actions
    differs = np.asarray(data) != np.asarray(neighbor)
    return not differs.any() or bool(differs[..., : record + 1].any())


def _played(play: Play, rewards: FloatArray, seed: int) -> IntArray | None:
    """The actions; None where it fails, which other runs will tell."""
    try:
        return play_rewards(play, rewards, seed)
    except Exception:
        return None


def differ(data: list[list[Hashable]], neighbor: list[list[Hashable]]) -> bool:
    """True if seeds on both sides are missing on the other.

    A function may make more generators on one data set, say one a record. What no honest one does is to make some on either
    side that the other never makes.
    """
    one, other = ({seed for call in side for seed in call} for side in (data, neighbor))
    return bool(one - other and other - one)


class Seeds:
    """Notes the seeds that own code hands to generators, wherever it imported what makes them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._script: Mapping[int, Call] = {}

    def of(self, run: Callable[[], T], script: Mapping[int, Call] | None = None) -> tuple[T, list[list[Hashable]]]:
        """Result of a run, and the seeds that it handed over, call by call; calls that the script names get its seeds."""
        self.calls, self._script = [], script or {}
        output = run()
        return output, [_plain_all(call) for call in self.calls]

    def note(self, call: Call) -> Call:
        """Notes a call, and returns what it is given."""
        self.calls.append(call)
        return self._script.get(len(self.calls) - 1, call)

    @classmethod
    @contextmanager
    def watched(cls) -> Iterator[Seeds]:
        """Puts noting ones in place of all makers of generators, in every module but Bandana's own."""
        seeds, torch = cls(), sys.modules.get("torch")
        makers = [getattr(np.random, name) for name in _NUMPY] + [getattr(random, name) for name in _PYTHON]
        makers += [torch.manual_seed] if torch is not None else []
        noting = {id(maker): _noting(maker, seeds) for maker in makers}
        places = [(scope, name, value) for scope in _scopes(makers) for name, value in scope.items() if id(value) in noting]
        try:
            for scope, name, maker in places:
                scope[name] = noting[id(maker)]
            yield seeds
        finally:
            for scope, name, maker in places:
                scope[name] = maker


def _scopes(makers: list[object]) -> list[dict[str, object]]:
    """The names of all modules that may hold one of these: those that are loaded, and own files that nobody lists."""
    listed = [
        object.__getattribute__(module, "__dict__") for module in list(sys.modules.values()) if type(module) is ModuleType
    ]
    return [
        scope
        for scope in {id(scope): scope for scope in (*listed, *gc.get_referrers(*makers))}.values()
        if _is_module(scope)
    ]


def _is_module(scope: object) -> bool:
    """True if these are the names of a module whose calls of generators count: none of ours, none inside of NumPy."""
    if not isinstance(scope, dict) or "__builtins__" not in scope:
        return False
    return not str(scope.get("__name__")).startswith(("bandana.", "numpy.random."))


class _Same(type):
    """The type of a class that stands for another: instances of either are instances of both."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])


def _noting(maker: Callable[..., object], seeds: Seeds) -> Callable[..., object]:
    """Wraps what makes generators, so that it notes the seed."""
    if isinstance(maker, type):

        def make(self: object, *given: object, **named: object) -> None:
            given, named = seeds.note((given, named))
            maker.__init__(self, *given, **named)  # type: ignore[misc]

        return _Same(maker.__name__, (maker,), {"__init__": make})

    @wraps(maker)
    def call(*given: object, **named: object) -> object:
        given, named = seeds.note((given, named))
        return maker(*given, **named)

    return call


def _plain_all(call: Call) -> list[Hashable]:
    return [plain for value in (*call[0], *call[1].values()) if (plain := _plain(value)) is not None]


def _plain(value: object) -> Hashable:
    """A seed as something that can be compared; None for none, and for a generator that was made elsewhere."""
    if isinstance(value, np.random.bit_generator.SeedSequence):
        return ("sequence", _plain(value.entropy), tuple(value.spawn_key))
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(_plain(item) for item in value)
    return value if isinstance(value, int | float | str | bytes) else None
