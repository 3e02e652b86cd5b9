"""A finite public pool of what users may bring: contexts, the points of the actions in each, and the law of the contexts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rkhs.kernels import checked_points, moved_inside
from bandana.algorithms.rkhs.lookup import Rows, locate
from bandana.algorithms.ties import TIE


@dataclass(frozen=True, eq=False)
class Pool:
    """The set W = C x X of contextual kernel bandits, as points of [-1, 1]^d: the pair of context c and action x is a point.

    Attributes:
      points: (n_contexts, n_actions, d), read-only; no two contexts have the same points.
      law: (n_contexts,) probabilities of the contexts, which are drawn independently; public.
    """

    points: FloatArray
    law: FloatArray
    _table: Rows = field(init=False, repr=False)
    _edges: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        points = np.array(self.points, dtype=float)
        if points.ndim != 3 or points.shape[0] < 1 or points.shape[1] < 2 or points.shape[2] < 1:
            raise ValueError(
                f"points must be of shape (n_contexts, n_actions, d), n_actions >= 2: a context without actions cannot be "
                f"played; got {points.shape}"
            )
        checked_points(points, points.shape[2], -1.0, 1.0)
        law = np.array(self.law, dtype=float)
        if law.shape != points.shape[:1] or not np.isfinite(law).all() or law.min() < 0 or abs(law.sum() - 1) > 1e-9:
            raise ValueError(f"law must be {points.shape[0]} probabilities, one a context, of sum 1; got {law!r}")
        rows = Rows(points.reshape(len(points), -1))
        first = rows.find(rows.values)
        if (first != np.arange(len(points))).any():
            second = int(np.argmax(first != np.arange(len(points))))
            raise ValueError(
                f"contexts {first[second]} and {second} have the same points: name each context once, with its law"
            )
        for name, array in (("points", points), ("law", law / law.sum())):
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        object.__setattr__(self, "_table", rows)
        object.__setattr__(self, "_edges", np.cumsum(self.law)[:-1])

    @property
    def n_contexts(self) -> int:
        """Number of contexts."""
        return len(self.points)

    @property
    def n_actions(self) -> int:
        """Number of actions of each context."""
        return int(self.points.shape[1])

    @property
    def dimension(self) -> int:
        """Dimension d of the points."""
        return int(self.points.shape[2])

    def index_of(self, contexts: FloatArray) -> IntArray:
        """(n_reps,) index of each user's context in the pool.

        Args:
          contexts: (n_reps, n_actions, d), equal to the pool's to the last digit.

        Raises:
          ValueError: another shape, or a context that is none of the pool's.
        """
        indices = self._table.find(self._flat(contexts))
        if (indices < 0).any():
            row = int(np.argmax(indices < 0))
            raise ValueError(
                f"the context of replicate {row} is none of the {self.n_contexts} of the pool; its first action is "
                f"the point {np.asarray(contexts)[row, 0].tolist()}: add it to the pool, or bring the nearest one of it"
            )
        return indices

    def placed(self, contexts: FloatArray | None, is_strict: bool = True) -> IntArray:
        """(n_reps,) index of each user's context in the pool; fast where there are few.

        Args:
          contexts: (n_reps, n_actions, d)
          is_strict: refuse a context that is none of the pool's, instead of taking it, moved into [-1, 1]^d, for the
            nearest one.

        Raises:
          ValueError: there are no contexts, or they have another shape, or one is refused.
        """
        if contexts is None:
            raise ValueError("this algorithm decides from contexts, and the stream offers none")
        if contexts.shape[1:] != self.points.shape[1:]:
            return self.index_of(contexts)  # says what is wrong
        indices = np.zeros(len(contexts), dtype=np.int64)
        if self.n_contexts == 1 and not is_strict:
            return indices
        if not locate(self.points, contexts, indices):
            if is_strict:
                return self.index_of(contexts)  # the same
            lost = np.flatnonzero(indices < 0)
            indices[lost] = self.nearest(moved_inside(contexts[lost], self.dimension, -1.0, 1.0))
        return indices

    def nearest(self, contexts: FloatArray) -> IntArray:
        """(n_reps,) the context of the pool with the least sum of squared distances; of equal ones the first."""
        rows, known = self._flat(contexts), self._table.values
        squares, own = (known**2).sum(axis=1), (rows**2).sum(axis=1, keepdims=True)
        distance = squares - 2 * rows @ known.T
        return np.asarray(np.argmax(distance <= distance.min(axis=1, keepdims=True) + TIE * (own + squares.max()), axis=1))

    def drawn(self, n: int, generator: np.random.Generator) -> IntArray:
        """(n,) independent contexts by their law."""
        return self.at(generator.random(n))

    def at(self, coins: FloatArray) -> IntArray:
        """(n,) the contexts that coins in [0, 1) choose; independent uniform coins choose them independently by the law."""
        return np.asarray(np.searchsorted(self._edges, coins, side="right"), dtype=np.int64)

    def _flat(self, contexts: FloatArray) -> FloatArray:
        array = np.asarray(contexts, dtype=float)
        if array.ndim != 3 or array.shape[1:] != self.points.shape[1:]:
            raise ValueError(f"contexts must be of shape (n_reps, {self.n_actions}, {self.dimension}), got {array.shape}")
        return array.reshape(len(array), -1)
