"""First calls: each run is the only one of a process that has called the function never before.

A service that is asked once answers with its first call, and an audit that asks it many times sees later ones. A process is
set aside before anything is called, and forks once for each first call; a program is started once for each.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from typing import cast

import numpy as np

from bandana.audits.leaves import Walked, leaves
from bandana.flows.annexes.anything.outputs.calls import Batch, Caller, same
from bandana.flows.annexes.anything.outputs.deadline import Deadline
from bandana.flows.annexes.anything.pairs import first_calls
from bandana.flows.annexes.anything.pairs.release import Samples

MOST = 160
"""First calls of each side."""
_COMPARED = 16
_LATE = 1.0
"""Seconds after the deadline in which calls that began before it may end."""


class Starts(ABC):
    """Maker of first calls: of processes that never called the function, or of a program that is started anew."""

    @abstractmethod
    def asked(
        self, caller: Caller, data: tuple[object, object], sides: list[int], numbers: list[int], deadline: Deadline
    ) -> Callable[[], Sequence[Walked | None]]:
        """Begins a call each, and returns what waits for the outputs; None is a call that crashed or took too long."""

    def fits(self, caller: Caller) -> bool:
        """True if it calls the caller's own function."""
        return True

    def begin(
        self, caller: Caller, data: object, neighbor: object, seed: int, deadline: Deadline, most: int
    ) -> Callable[[], tuple[Samples, str]]:
        """Begins first calls, beside what this process does.

        Args: as in `bandana.flows.annexes.anything.pairs.coupling.compare`, and
          deadline: after which no further process begins.
          most: calls of each side.

        Returns:
          what waits for their outputs, and says how they differ from later ones with the same seeds; empty if they do not.
        """
        rng = np.random.default_rng([seed, 16])
        sides = rng.permuted(np.tile([0, 1], (most, 1)), axis=1).ravel().tolist()
        numbers = rng.integers(0, 2**32, 2 * most).tolist()
        answer = self.asked(caller, (data, neighbor), sides, numbers, deadline)

        def finish() -> tuple[Samples, str]:
            outputs = answer()
            made: tuple[list[object], list[object]] = ([], [])
            for side, output in zip(sides, outputs, strict=False):
                if output is not None:
                    made[side].append(output)
            n = min(map(len, made))
            samples = Samples(made[0][:n], made[1][:n], is_cut=n < len(sides) // 2, how="the first call of a process each")
            return samples, _difference(caller, (data, neighbor), sides, numbers, outputs)

        return finish


@dataclass(frozen=True)
class Aside(Starts):
    """A process that never called the function; see `set_aside` and `started`."""

    _function: object
    _requests: Connection
    _wait: Callable[[], object]

    def fits(self, caller: Caller) -> bool:
        """True if the caller calls the function itself, and nothing that was made of it."""
        return caller.function is self._function

    def asked(
        self, caller: Caller, data: tuple[object, object], sides: list[int], numbers: list[int], deadline: Deadline
    ) -> Callable[[], Sequence[Walked | None]]:
        """Sends all calls to the process, which forks once for each."""

        def answer() -> Sequence[Walked | None]:
            try:
                is_there = self._requests.poll(None if math.isinf(deadline.left) else deadline.left + _LATE)
                return cast("Sequence[Walked | None]", self._requests.recv()) if is_there else ()
            except (EOFError, ConnectionError):  # it could not load the function, or was ended
                return ()

        with suppress(ConnectionError):
            self._requests.send((replace(caller, function=len, guard=nullcontext), *data, sides, numbers, deadline))
        return answer

    def end(self) -> None:
        """Ends the process."""
        self._requests.close()
        with suppress(ChildProcessError):
            self._wait()


@dataclass(frozen=True)
class Anew(Starts):
    """A program: one process, or one connection, for each run; where it is asked for many, it may keep something between."""

    def asked(
        self, caller: Caller, data: tuple[object, object], sides: list[int], numbers: list[int], deadline: Deadline
    ) -> Callable[[], Sequence[Walked | None]]:
        """Starts a few at once."""

        def run(side: int, number: int) -> Walked | None:
            return Walked(list(leaves(caller.function(data[side], [number])[0]))) if deadline.left else None

        def answer() -> Sequence[Walked | None]:
            with ThreadPoolExecutor(first_calls.AT_ONCE) as pool:
                return list(pool.map(run, sides, numbers))

        return answer


def set_aside(function: Callable[..., object]) -> Aside:
    """Forks a process that waits, before anything is called."""
    ours, theirs = multiprocessing.Pipe()
    process = os.fork()
    if process == 0:
        ours.close()
        first_calls.serve(function, theirs)
    theirs.close()
    return Aside(function, ours, partial(os.waitpid, process, 0))


def started(function: object, command: list[str]) -> Aside:
    """Starts a small process, which loads the function once more: forks of a large one take long.

    Args:
      function: as it was loaded here.
      command: starts what serves it (`first_calls.serve`) on a connection, whose descriptor is its last argument.
    """
    ours, theirs = multiprocessing.Pipe()
    process = subprocess.Popen(
        [*command, str(theirs.fileno())],
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    theirs.close()

    def end() -> None:
        process.kill()  # it may still be loading
        process.wait()

    return Aside(function, ours, end)


def _difference(
    caller: Caller, data: tuple[object, object], sides: list[int], numbers: list[int], outputs: Sequence[Walked | None]
) -> str:
    """Difference of first calls from later ones with the same seeds, where a seed decides all."""
    if caller.seed is None or not caller.is_repeatable or caller.batch is Batch.SIZE:
        return ""
    for side in (0, 1):
        chosen = [place for place, output in enumerate(outputs) if sides[place] == side and output is not None][:_COMPARED]
        later = caller.runs(data[side], [numbers[place] for place in chosen]) if chosen else []
        for place, output in zip(chosen, later, strict=True):
            if not same(outputs[place], Walked(list(leaves(output)))):
                return (
                    f"the first call of a process returns something else than a later one with the same seed "
                    f"({numbers[place]}): it keeps something between calls, or looks at how many runs are asked for"
                )
    return ""
