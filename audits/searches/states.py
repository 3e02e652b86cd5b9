"""Contents of an algorithm's released state, as one number a field, so that two runs can be compared bit by bit.

The released state holds what decisions are made from. Two runs that saw the same released values must have equal released
states after every phase: what differs was put there by another way than through the ledger, however small it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bandana.algorithms.protocol import Algorithm, IntArray, Record
from bandana.audits import leaves as objects
from bandana.privacy_core import Ledger

_DEEPEST, _MOST_PARTS = 6, 64
_KEY = 0x7374_6174
Marks = Mapping[str, NDArray[np.uint64]]


class StateLog:
    """An algorithm whose released state is noted after every phase; it plays as the algorithm does.

    Attributes:
      marks: of each phase, field -> (n_reps,) a number that equal contents share.
      last: of each phase, (n_reps,) its last record.
    """

    def __init__(self, algorithm: Algorithm, n_reps: int) -> None:
        self.marks: list[Marks] = []
        self.last: list[IntArray] = []
        self._algorithm, self._n_reps = algorithm, n_reps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._algorithm, name)

    def absorb(self, sensitive: object, released: object, record: Record, ledger: Ledger) -> tuple[object, object]:
        """Absorbs as the algorithm does, and notes the released state."""
        sensitive, released = self._algorithm.absorb(sensitive, released, record, ledger)
        self.last.append(record.user + record.n_records - 1)
        self.marks.append({name: _mark(leaf, self._n_reps) for name, leaf in leaves(released)})
        return sensitive, released


def leaves(state: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, NDArray[Any]]]:
    """Field -> array of real numbers, for all that a state holds, however it is nested; what is no number is digested."""
    if type(state) is np.ndarray and state.dtype.kind != "O":
        yield name or "state", _as_real(state)
        return
    kinds = set(map(type, state)) if isinstance(state, list | tuple) else set()
    is_numbers = len(kinds) == 1 and kinds <= {bool, int, float}
    is_numbers |= isinstance(state, np.ndarray | np.generic | int | float | complex)
    if is_numbers and np.asarray(state).dtype.kind != "O":
        yield name or "state", _as_real(np.asarray(state))
        if isinstance(state, np.ndarray) and type(state) is not np.ndarray:
            yield f"{name}#attributes", np.array(_digest(objects.attributes(state)), dtype=np.uint64)
        return
    parts = _parts(state) if depth < _DEEPEST else []
    if parts:
        kind = type(state)  # one that its name tells is not taken apart each time
        digest = _digest_once(objects.name_of(kind)) if objects.is_importable(kind) else _digest(kind)
        yield f"{name}#type", np.array(digest, dtype=np.uint64)
    if not parts:
        yield name or "state", np.array(_digest(state), dtype=np.uint64)
    elif isinstance(state, list | np.ndarray) and len(parts) > _MOST_PARTS:  # one item a replicate
        yield name or "state", np.array([_digest(inner) for _, inner in parts], dtype=np.uint64)
    else:
        for part, inner in parts:
            yield from leaves(inner, f"{name}.{part}" if name else part, depth + 1)


def unread(state: object) -> str:
    """A field of a state that nobody can compare, in words; empty where there is none."""
    unseen = (f"{leaf.path.lstrip('.') or 'state'}: {leaf.label}" for leaf in objects.leaves(state) if not leaf.is_read)
    return next(unseen, "")


def _as_real(array: NDArray[Any]) -> NDArray[Any]:
    """An array of any type as one of real numbers that are equal where it is; its first axis stays."""
    match array.dtype.kind:
        case "b" | "i" | "u" | "f":
            return array
        case "c":
            return np.stack([array.real, array.imag], axis=-1)
        case "m" | "M":
            return array.view(np.int64)
    letters = np.frombuffer(np.ascontiguousarray(array).tobytes(), dtype=np.uint8)
    return letters.reshape(len(array), -1) if array.ndim and array.size else letters


def _digest(value: object) -> int:
    """A number that equal objects share; others share it with probability 2^-64."""
    result = hashlib.blake2b(digest_size=8)
    for path, label, numbers, _ in objects.leaves(value):
        result.update(f"{path} {label}\n".encode("utf-8", "surrogatepass"))
        result.update(b"" if numbers is None else numbers.tobytes())
    return int.from_bytes(result.digest(), "little")


_digest_once: Callable[[object], int] = lru_cache(maxsize=512)(_digest)  # of names and shapes, which stay as they are


def _parts(state: Any) -> list[tuple[str, Any]]:
    if isinstance(state, tuple) and hasattr(state, "_fields"):
        return list(zip(state._fields, state, strict=True))
    if isinstance(state, list | tuple | np.ndarray):
        return [(str(place), inner) for place, inner in enumerate(state)]
    if isinstance(state, Mapping):
        return [(str(key), inner) for key, inner in state.items()]
    if isinstance(state, str | bytes | type) or state is None:
        return []
    return list(objects.attributes(state).items())


def _mark(array: NDArray[np.generic], n_reps: int) -> NDArray[np.uint64]:
    """(n_reps,) a number that equal rows share; others share it with probability 2^-32 or so."""
    is_own = array.ndim > 0 and len(array) == n_reps
    rows = array.reshape(len(array), -1) if is_own else array.reshape(1, -1)
    # A Boolean and a whole number are what they are as floats, and what these leave out.
    rest = objects.remainder(rows)
    bits = np.array(np.hstack([rows, *rest]) if rest else rows, dtype=np.float64, order="C").view(np.uint64)
    result = np.empty(len(bits), dtype=np.uint64)
    form = np.uint64(_digest_once((array.dtype.str, array.shape[1:] if is_own else array.shape)))
    _mix(bits, _weights(bits.shape[1]), form, result)
    return result if is_own else np.broadcast_to(result, n_reps)


@njit(cache=True)
def _mix(bits, weights, form, result):  # type: ignore[no-untyped-def]
    """result[r] = form ^ the sum over i of mixed bits[r, i]; bits: (n, m), weights: (m,), all uint64."""
    for r in range(bits.shape[0]):
        total = np.uint64(0)
        for i in range(bits.shape[1]):
            mixed = (bits[r, i] ^ (bits[r, i] >> np.uint64(32))) * weights[i]
            total += mixed ^ (mixed >> np.uint64(29))
        result[r] = total ^ form


@lru_cache(maxsize=256)
def _weights(n: int) -> NDArray[np.uint64]:
    """(n,) odd numbers, the same each time."""
    return np.random.Generator(np.random.SFC64(_KEY)).integers(0, 1 << 63, n, dtype=np.uint64) * np.uint64(2) + np.uint64(1)


class Parting(NamedTuple):
    """Where the released states of two runs differ first."""

    record: IntArray
    """(n_reps,) the record after which they do; -1 where they never do."""
    field: list[str]
    """One name a replicate, empty where they never differ."""


def first_parting(mine: StateLog, theirs: StateLog, hidden: IntArray) -> Parting:
    """Compares the released states of two runs phase by phase.

    Args:
      mine: one run.
      theirs: the other.
      hidden: (n_reps,) a record whose own actions may differ, -1 for none: until the next record's phase ends, the state may
        hold what was shown to that user.
    """
    result, names = np.full(len(hidden), -1, dtype=np.int64), [""] * len(hidden)
    for one, other, last in zip(mine.marks, theirs.marks, mine.last, strict=False):
        counts = (hidden < 0) | (last > hidden)
        open_ = (result < 0) & counts
        # The fields of a batch are one for all replicates, of which those that count must not pay for those that do not.
        lacks = np.full(len(hidden), bool(counts.all()))
        for name in {**one, **other}:
            differs = one[name] != other[name] if name in one and name in other else lacks
            for rep in np.flatnonzero(differs & open_ & (result < 0)):
                result[rep], names[rep] = last[rep], name
    return Parting(result, names)
