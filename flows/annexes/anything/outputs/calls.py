"""Calls of a user's function: where its seed goes, whether it takes many at once, and what counts as one run.

A function may take a seed under any usual name, positional or by keyword, a NumPy generator instead, or none of these, if it
draws its own randomness. Where it takes an array of seeds, or a number of runs, one call makes many runs.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import zip_longest
from typing import Any, TypeGuard

import numpy as np

from bandana.algorithms.protocol import IntArray
from bandana.audits.leaves import leaves

_SEEDS = ("seed", "random_state", "random_seed", "prng_seed", "rng_seed", "seeds")
_GENERATORS = ("rng", "generator", "gen", "random_generator", "bit_generator", "prng")
_SIZES = ("n", "n_runs", "n_reps", "n_samples", "n_replays", "size")
_TRIED = 5

Outputs = np.ndarray | Sequence[object]
"""One entry for each run: an array of numbers with the runs first, or a sequence of anything."""

Guard = Callable[[], AbstractContextManager[None]]
"""Context of every call of own code, such as a limit of time."""


class BrokenSubject(ValueError):  # noqa: N818  (it says what the function is)
    """A function that cannot be audited; the message says why, and what to change."""


@dataclass(frozen=True)
class Raised:
    """An exception in place of an output: the adversary sees that the run failed, and how.

    Attributes:
      kind: name of the exception's class.
      message: its text.
      error: all else that it holds.
    """

    kind: str
    message: str
    error: Exception | None = field(default=None, compare=False)


def is_numeric(outputs: Outputs) -> TypeGuard[np.ndarray]:
    """True if the outputs are one array of real numbers."""
    return isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf"


class Batch(StrEnum):
    """Ways in which one call makes many runs."""

    NONE = "one run a call"
    SEEDS = "an array of seeds a call"
    SIZE = "a number of runs a call"


@dataclass(frozen=True)
class Caller:
    """A function with what is known of how to call it; see `inspect_call`.

    Attributes:
      function: the function, or any callable object.
      seed: name of the parameter that takes the seed; None: it draws its own randomness.
      is_keyword: whether the seed is given by name.
      is_generator: whether it wants a `numpy.random.Generator` in place of the seed.
      size: name of the parameter that takes a number of runs.
      batch: how one call makes many runs.
      is_repeatable: whether the same seed gave the same output.
      as_array: whether a list of numbers is given as an array.
      guard: what calls are wrapped in.
    """

    function: Callable[..., Any]
    seed: str | None = None
    is_keyword: bool = False
    is_generator: bool = False
    size: str | None = None
    batch: Batch = Batch.NONE
    is_repeatable: bool = True
    as_array: bool = False
    guard: Guard = nullcontext

    def called(self, data: object, seed: int | IntArray, n_runs: int | None = None) -> object:
        """The answer to one call, on the data themselves."""
        named: dict[str, object] = {}
        places = [data]
        if self.seed is not None:
            coin = np.random.default_rng(seed) if self.is_generator else seed
            if self.is_keyword:
                named[self.seed] = coin
            else:
                places.append(coin)
        if n_runs is not None:
            assert self.size is not None
            named[self.size] = n_runs
        with self.guard():
            return self.function(*places, **named)

    def once(self, data: object, seed: int | IntArray, n_runs: int | None = None) -> Any:
        """The answer to one call, on a copy of the data, which the function may change."""
        return self.called(np.asarray(data) if self.as_array else copy.deepcopy(data), seed, n_runs)

    def runs(self, data: object, seeds: list[int]) -> Outputs:
        """One output for each seed.

        Raises:
          BrokenSubject: a call for many runs returned another number of them.
        """
        if self.batch is Batch.NONE:
            return [self.tried(data, seed) for seed in seeds]
        if self.batch is Batch.SEEDS:
            outputs = self.once(data, np.array(seeds, dtype=np.int64))
        else:
            outputs = self.once(data, seeds[0], n_runs=len(seeds))
        outputs = outputs if isinstance(outputs, list) else np.asarray(outputs)
        if np.ndim(outputs) == 0 or len(outputs) != len(seeds):
            got = "one output" if np.ndim(outputs) == 0 else f"{len(outputs)}"
            raise BrokenSubject(f"a call for {len(seeds)} runs must return as many outputs, the runs first, got {got}")
        return outputs

    def tried(self, data: object, seed: int, n_runs: int | None = None) -> object:
        """The output of one run, with an exception as an output."""
        try:
            return self.once(data, seed, n_runs)
        except Exception as error:  # the adversary sees that it failed
            return Raised(type(error).__name__, str(error), error.with_traceback(None))


class ManyRuns(ABC):
    """A release that is no function in a file, and knows how it is called."""

    @abstractmethod
    def caller(self, data: object, neighbor: object, seed: int) -> Caller:
        """Learns how to call it, by some runs on both data sets with seeds from `seed`.

        Raises:
          BrokenSubject: it does not run.
        """


def inspect_call(function: object, data: object, neighbor: object, seed: int, guard: Guard = nullcontext) -> Caller:
    """Finds out how a function wants to be called, by its signature and by a few runs on the data.

    Args:
      function: of (data, seed), of data alone, or with a seed or a generator of another name.
      data: what it is tried on.
      neighbor: the neighbor, on which it must run too.
      seed: of the seeds of these runs.
      guard: what calls are wrapped in.

    Raises:
      BrokenSubject: it takes neither of these, or fails on the data; what it raised is the cause.
    """
    if isinstance(function, ManyRuns):
        return function.caller(data, neighbor, seed)
    if not callable(function):
        raise BrokenSubject(f"it is no function of (data, seed), but {type(function).__name__}")
    caller = replace(by_signature(function), guard=guard)
    seeds = np.random.SeedSequence(seed, spawn_key=(7,)).generate_state(_TRIED, np.uint32).astype(np.int64).tolist()
    caller = _as_list_or_array(caller, data, seeds)
    one = 1 if caller.size is not None and _is_required(caller, caller.size) else None
    _some_output(caller, neighbor, seeds, one)
    singles = [caller.tried(data, other, one) for other in seeds]
    if caller.seed is not None:
        caller = replace(caller, is_repeatable=same(caller.tried(data, seeds[0], one), singles[0]))
    if caller.size is not None:
        return _tried_size(caller, data, seeds[0])
    if caller.seed is not None and caller.is_repeatable and not caller.is_generator:
        return _by_seeds(caller, data, seeds, singles)
    return caller


def by_signature(function: Callable[..., object]) -> Caller:
    """Reads the names of its parameters: where the seed goes, and whether it takes a number of runs.

    Raises:
      BrokenSubject: it takes no data, or needs more than data and a seed.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # compiled code without a signature
        return Caller(function)
    plain = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if not plain and not parameters:
        raise BrokenSubject("it takes no data: a release is a function of (data, seed), or of data alone")
    others = plain[1:]
    size = next((p.name for p in others if p.name in _SIZES), None)
    named = next((p for p in others if p.name.lower() in (*_SEEDS, *_GENERATORS)), None)
    if named is None:  # whatever the second required parameter is called
        named = next((p for p in others if p.default is p.empty and p.name != size), None)
    unknown = [p.name for p in others if p.default is p.empty and p is not named and p.name != size]
    if unknown:
        raise BrokenSubject(
            f"it needs {', '.join(unknown)} besides data and seed: give defaults, or bind them with functools.partial"
        )
    if named is None:
        return Caller(function, size=size)
    is_second = named is plain[1] and named.kind is not named.KEYWORD_ONLY
    return Caller(function, named.name, not is_second, named.name.lower() in _GENERATORS, size)


def _as_list_or_array(caller: Caller, data: object, seeds: list[int]) -> Caller:
    """The caller that gives a list of numbers as a list or, if that fails, as an array."""
    n_runs = 1 if caller.size is not None and _is_required(caller, caller.size) else None
    try:
        _some_output(caller, data, seeds, n_runs)
        return caller
    except Exception as error:
        if not _is_numbers(data):
            raise
        as_list = error
    as_array = replace(caller, as_array=True)
    try:
        _some_output(as_array, data, seeds, n_runs)
    except Exception:
        raise as_list from None
    return as_array


def _some_output(caller: Caller, data: object, seeds: list[int], n_runs: int | None) -> None:
    """Runs until one run does not fail, which adversaries see too; if all fail, the error of the last."""
    for seed in seeds[:-1]:
        try:
            caller.once(data, seed, n_runs)
            return
        except Exception:
            continue
    caller.once(data, seeds[-1], n_runs)


def _is_required(caller: Caller, name: str) -> bool:
    parameter = inspect.signature(caller.function).parameters[name]
    return parameter.default is parameter.empty


def _is_numbers(data: object) -> bool:
    try:
        return isinstance(data, list) and is_numeric(np.array(data))
    except ValueError:
        return False


def _by_seeds(caller: Caller, data: object, seeds: list[int], singles: list[object]) -> Caller:
    """With an array of seeds, if that gives the very outputs that the seeds give one by one."""
    try:
        many = caller.once(data, np.array(seeds, dtype=np.int64))
        is_same = len(many) == len(seeds) and all(same(a, b) for a, b in zip(many, singles, strict=True))
    except Exception:  # it takes one seed at a time
        return caller
    differ = not all(same(single, singles[0]) for single in singles)
    return replace(caller, batch=Batch.SEEDS) if is_same and differ else caller


def _tried_size(caller: Caller, data: object, seed: int) -> Caller:
    """With a number of runs, if the outputs have the runs first."""
    outputs = caller.once(data, seed, n_runs=_TRIED)
    has_length = isinstance(outputs, list) or np.ndim(outputs) > 0
    if has_length and len(outputs) == _TRIED:
        return replace(caller, batch=Batch.SIZE)
    if _is_required(caller, str(caller.size)):
        raise BrokenSubject(f"called with {caller.size}={_TRIED} it must return as many outputs, the runs first")
    return replace(caller, size=None)


def same(one: object, other: object) -> bool:
    """True if two outputs agree, but for the last digits of their numbers: sums may be added in another order."""
    try:
        first, second = np.asarray(one), np.asarray(other)
        if first.dtype.kind in "biufc" and second.dtype.kind in "biufc":
            first, second = first.squeeze(), second.squeeze()  # one seed may give a row of its own
            return first.shape == second.shape and _close(first, second)
    except (TypeError, ValueError):
        pass
    return all(
        a is not None and b is not None and a.label == b.label
        and (a.numbers is b.numbers or _close(np.array(a.numbers), np.array(b.numbers)))
        for a, b in zip_longest(leaves(one), leaves(other))
    )  # fmt: skip


def _close(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-9, atol=0, equal_nan=True))
