"""The process that makes first calls: it forks once for each, and imports little, since a fork copies what is there."""

from __future__ import annotations

import gc
import os
import pickle
import signal
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import NoReturn

import numpy.random  # noqa: F401  (NumPy imports it late: each fork would do so)

from bandana.audits.leaves import Walked, leaves
from bandana.flows.annexes.anything.outputs.calls import Caller

_PATIENCE, AT_ONCE = 20.0, 4
"""Seconds that a call may take, and calls at a time."""


def serve(function: Callable[..., object], requests: Connection) -> NoReturn:
    """Answers requests for calls of a function, each with the leaves of its outputs, until nobody asks."""
    gc.freeze()  # a fork then shares what it does not change
    gc.disable()
    try:
        while True:
            caller, data, neighbor, sides, numbers, deadline = requests.recv()
            caller = replace(caller, function=function)
            outputs: list[Walked | None] = []
            jobs = list(zip(sides, numbers, strict=True))
            while len(outputs) < len(jobs) and deadline.left:
                some = jobs[len(outputs) : len(outputs) + AT_ONCE]
                outputs += [
                    _answer(*child)
                    for child in [_forked(caller, (data, neighbor)[side], number, deadline.left) for side, number in some]
                ]
            requests.send(outputs)
    except EOFError:
        os._exit(0)
    except BaseException:
        os._exit(70)


def _forked(caller: Caller, data: object, seed: int, seconds: float) -> tuple[int, int]:
    """A process that makes one call, within these seconds, and where it writes the leaves of its output."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(read)
        signal.setitimer(signal.ITIMER_REAL, min(_PATIENCE, seconds + 0.1))
        try:
            output = Walked(list(leaves(caller.runs(data, [seed])[0])))
            with os.fdopen(write, "wb") as sink:
                pickle.dump(output, sink)
        finally:
            os._exit(0)
    os.close(write)
    return process, read


def _answer(process: int, read: int) -> Walked | None:
    """The output of a process; None if it crashed or took too long."""
    with os.fdopen(read, "rb") as source:
        text = source.read()
    os.waitpid(process, 0)
    return pickle.loads(text) if text else None
