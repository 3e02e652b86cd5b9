"""Records the calls of priced primitives, and plays their outputs again.

Outside an audit a priced primitive does what it always did. While a program is recorded, each call's price, value and output
are written down. While it is replayed, each call returns what was recorded, so that what a primitive released is the same
whatever the data are. The primitive is called in replays too, and its output dropped: generators advance as before.

Source: dp-recorder (arXiv 2602.17454) replays recorded primitives; the prices and their composition are ours.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.anything.foreign.prices import Priced

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Call:
    """One call of a priced primitive.

    Attributes:
      name: of the primitive.
      price: what the call costs.
      value: the exact value that it was given, of any shape.
      output: what it returned.
    """

    name: str
    price: Priced
    value: FloatArray
    output: Any


class Diverged(BaseException):
    """A replayed program calls a primitive once more than the recorded one; no program should catch it."""


class Unpriced(BaseException):
    """A price or a value that cannot be read; no program should take it for an output of its own."""


@dataclass
class Tape:
    """The calls of one run, and the recorded ones whose outputs it is given; None while recording."""

    script: Sequence[Call] | None = None
    calls: list[Call] = field(default_factory=list)

    def call(self, name: str, price: Priced, value: object, draw: Callable[[], T]) -> T:
        """Writes the call down, and returns a recorded output in a replay.

        Raises:
          Diverged: the recorded run has no further call.
          Unpriced: the value is no array of numbers.
        """
        try:
            exact = np.array(value, dtype=float)
        except (TypeError, ValueError) as error:
            raise Unpriced(f"the value of a priced primitive must be numbers; that of {name} is none: {error}") from error
        drawn = draw()
        if self.script is None:
            self.calls.append(Call(name, price, exact, copy.deepcopy(drawn)))
            return drawn
        place = len(self.calls)
        if place >= len(self.script):
            self.calls.append(Call(name, price, exact, None))
            raise Diverged
        output: T = copy.deepcopy(self.script[place].output)
        self.calls.append(Call(name, price, exact, output))
        return output


_tape: Tape | None = None


@contextmanager
def played(script: Sequence[Call] | None = None) -> Iterator[Tape]:
    """Records all priced calls within; with a script, plays its outputs."""
    global _tape
    before, tape = _tape, Tape(script)
    _tape = tape
    try:
        yield tape
    finally:
        _tape = before


def release(name: str, price: Priced, value: object, draw: Callable[[], T]) -> T:
    """One release of a foreign primitive that is no plain function, such as a method that changes its object.

    Args:
      name: of the primitive, for messages.
      price: what the call costs.
      value: the exact value that noise is added to: numbers of any shape.
      draw: calls the primitive, and returns its output.

    Returns:
      the output; in a replay the recorded one, which the caller must use in place of what the primitive left behind.
    """
    return draw() if _tape is None else _tape.call(name, price, value, draw)


def priced(price: Priced | Callable[..., Priced]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Prices each call of a foreign primitive, a function whose first argument is the exact value.

    Args:
      price: a mechanism of `bandana.privacy_core`, a `Price`, or a function that takes the arguments of the call and returns
        one of these: what a call costs is fixed where it is called.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        name = getattr(function, "__name__", type(function).__name__)

        @wraps(function)
        def call(*args: P.args, **named: P.kwargs) -> T:
            if _tape is None:
                return function(*args, **named)
            try:
                cost: Any = price if hasattr(price, "event") else price(*args, **named)
            except Exception as error:
                raise Unpriced(f"the price of {name} cannot be told: {error}") from error
            value = args[0] if args else next(iter(named.values()))
            return _tape.call(name, cost, value, lambda: function(*args, **named))

        return call

    return decorate
