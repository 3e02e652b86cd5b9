"""Finding rows of a fixed table among given ones, many at once."""

from __future__ import annotations

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray


class Rows:
    """The distinct rows of a table, found again by their values.

    Rows are sorted by their product with a fixed vector, which is only a hash: a row is found where all its numbers agree.

    Attributes:
      values: (n, width) the rows.
    """

    def __init__(self, values: FloatArray) -> None:
        self.values = np.ascontiguousarray(values, dtype=float)
        width = self.values.shape[1]
        self._vector = np.random.Generator(np.random.SFC64(width)).standard_normal(width)
        keys = self.values @ self._vector
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        spread = float(np.abs(self.values).max(initial=0.0)) * float(np.abs(self._vector).sum())
        self._slack = 1e-13 * spread  # the same row may get another last digit in a product of another shape

    def find(self, rows: FloatArray) -> IntArray:
        """(k,) the first row of the table that equals each of the given (k, width); -1 where there is none."""
        keys = rows @ self._vector
        first = np.searchsorted(self._keys, keys - self._slack, side="left")
        last = np.searchsorted(self._keys, keys + self._slack, side="right")
        positions = np.full(len(rows), -1, dtype=np.int64)
        for offset in range(int((last - first).max(initial=0))):
            place = np.minimum(first + offset, len(self._keys) - 1)
            index = self._order[place]
            fits = (first + offset < last) & (self.values[index] == rows).all(axis=1)
            positions[fits & ((positions < 0) | (index < positions))] = index[fits & ((positions < 0) | (index < positions))]
        return positions


@njit(cache=True, nogil=True)
def locate(known, contexts, out):  # type: ignore[no-untyped-def]
    """out[r] = the first c with known[c] == contexts[r], -1 where there is none; whether all were found.

    known: (n_contexts, n_actions, d), contexts: (n_reps, n_actions, d), out: (n_reps,).
    """
    n_contexts, n_actions, d = known.shape
    is_complete = True
    for r in range(len(contexts)):
        out[r] = -1
        for c in range(n_contexts):
            is_same = True
            for a in range(n_actions):
                for i in range(d):
                    if known[c, a, i] != contexts[r, a, i]:
                        is_same = False
                        break
                if not is_same:
                    break
            if is_same:
                out[r] = c
                break
        is_complete = is_complete and out[r] >= 0
    return is_complete
