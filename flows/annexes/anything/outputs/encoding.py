"""Outputs of a release as a table of numbers: one row for each run, whatever a run returns.

Numbers, labels, text, arrays, and lists, tuples and dictionaries of these are taken apart into columns. What a column holds
is decided on some outputs and applied to others, so a score that is learned on the first can be bounded on the others.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray

Outputs = np.ndarray | Sequence[Any]
"""One entry for each run: an array of numbers with the runs first, or a sequence of anything."""

_MOST_COLUMNS = 512
_MOST_LABELS = 64
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_MISSING, _OTHER = -1.0, -2.0


@dataclass(frozen=True)
class Raised:
    """An exception in place of an output: the adversary sees that the run failed, and how.

    Attributes:
      kind: name of the exception's class.
      message: its text.
    """

    kind: str
    message: str


class NotEncodable(ValueError):  # noqa: N818  (it says what the outputs are)
    """Outputs that cannot be taken apart into columns; the message says why."""


def is_numeric(outputs: Outputs) -> bool:
    """Whether the outputs are one array of real numbers."""
    return isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf"


def joined(parts: Sequence[Outputs]) -> Outputs:
    """Outputs of several calls, one after the other: one array of numbers where all have one shape, else a list."""
    if parts and all(is_numeric(part) and np.shape(part)[1:] == np.shape(parts[0])[1:] for part in parts):
        return np.concatenate([np.asarray(part) for part in parts])
    items = [item for part in parts for item in part]
    try:
        if all(isinstance(item, np.ndarray | Number) and not isinstance(item, complex) for item in items):
            found = np.array(items)
            return found if is_numeric(found) else items
    except ValueError:  # of several shapes
        pass
    return items


def leaves(output: object, path: str, depth: int = 0) -> Iterator[tuple[str, object]]:
    """The parts of one output that are not made of others, each with its place."""
    if depth > 16:
        raise NotEncodable("an output is nested more than 16 levels deep")
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, dict):
        for key in output:
            yield from leaves(output[key], f"{path}.{key}", depth + 1)
        yield f"{path}#keys", " ".join(map(str, output))
    elif isinstance(output, list | tuple | set | frozenset):
        items = sorted(output, key=repr) if isinstance(output, set | frozenset) else output
        yield f"{path}#length", len(items)
        for place, item in enumerate(items):
            yield from leaves(item, f"{path}[{place}]", depth + 1)
    elif isinstance(output, complex):
        yield f"{path}.real", output.real
        yield f"{path}.imag", output.imag
    elif isinstance(output, bytes | bytearray):
        yield from _text(bytes(output).decode("latin-1"), path)
    elif isinstance(output, str):
        yield from _text(output, path)
    elif isinstance(output, Raised):
        yield f"{path}!", output.kind
        yield from _text(output.message, f"{path}!")
    elif isinstance(output, bool) or not isinstance(output, Number):
        yield path, output if isinstance(output, bool) or output is None else _shown(output)
    else:
        yield path, output


def _shown(output: object) -> str:
    """A strange object as text, without the address at which it lies."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(output))


def _text(text: str, path: str) -> Iterator[tuple[str, object]]:
    """A text as a label, its length, the numbers that it mentions, and the text around them."""
    yield path, text
    yield f"{path}#length", len(text)
    numbers = _NUMBER.findall(text)
    if numbers:
        yield f"{path}#around", _NUMBER.sub("0", text)
        for place, number in enumerate(numbers[:64]):
            yield f"{path}#number{place}", float(number)


@dataclass(frozen=True)
class Encoder:
    """Takes outputs apart into columns; see `learn`.

    Attributes:
      columns: place -> labels that have a number of their own, in order; None for arrays of numbers.
    """

    columns: dict[str, tuple[str, ...]] | None

    @classmethod
    def learn(cls, outputs: Outputs) -> Encoder:
        """Decides on columns from some outputs; arrays of numbers need no decision.

        Raises:
          NotEncodable: an output is nested too deeply.
        """
        if is_numeric(outputs):
            return cls(None)
        seen: dict[str, Counter[str]] = {}
        for output in outputs:
            for path, leaf in leaves(output, ""):
                labels = seen.setdefault(path, Counter()) if len(seen) < _MOST_COLUMNS or path in seen else Counter()
                if not _is_number(leaf):
                    labels[_label(leaf)] += 1
        return cls({path: tuple(sorted(dict(labels.most_common(_MOST_LABELS)))) for path, labels in seen.items()})

    def table(self, outputs: Outputs) -> FloatArray:
        """(n, columns) of float64: numbers as they are, labels as whole numbers in a column beside.

        NaN stands for a number that is missing; infinite numbers stay.
        """
        if self.columns is None:
            return np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
        places = {path: 2 * place for place, path in enumerate(self.columns)}
        codes = {path: {label: float(code) for code, label in enumerate(labels)} for path, labels in self.columns.items()}
        found = np.full((len(outputs), 2 * len(places)), np.nan)
        found[:, 1::2] = _MISSING
        for row, output in enumerate(outputs):
            for path, leaf in leaves(output, ""):
                if path not in places:
                    continue
                if _is_number(leaf):
                    found[row, places[path]] = _float(leaf)
                    found[row, places[path] + 1] = _MISSING - 2
                else:
                    found[row, places[path] + 1] = codes[path].get(_label(leaf), _OTHER)
        return found


def _is_number(leaf: object) -> bool:
    return isinstance(leaf, Number) and not isinstance(leaf, bool)


def _label(leaf: object) -> str:
    return leaf if isinstance(leaf, str) else repr(leaf)


def _float(leaf: Any) -> float:
    try:
        return float(leaf)
    except OverflowError:
        return math.inf if leaf > 0 else -math.inf
