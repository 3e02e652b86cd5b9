"""Actions of the users after the canary as a row of numbers, gathered while a run goes on.

The claim of joint privacy protects a user from all others together, so the canary's own action never counts. A row depends
on the sequence of actions alone, not on how the loop jumped over it, and no array of all rounds exists.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bandana.algorithms.protocol import IntArray, Record
from bandana.privacy_core.checks import at_least

Features = NDArray[np.float32]

RUNS = 6
_MOST_WINDOWS, _MOST_EARLY = 4, 12


@dataclass(frozen=True)
class Layout:
    """Meaning of each column; public, as it depends on no data.

    A run is a longest stretch of rounds with one action; the first run begins with the first user after the canary. Columns:

      counts    n_actions: how often each action was played after the canary
      early     the same of all actions but the last, within the first 4, 16, 64, 256 rounds after it (fewer windows where
                there are many actions, so that there are at most 12 columns)
      arms      the actions of the first six runs, -1 where there are fewer
      starts    how many rounds after the first one the second to sixth run begin, n_later where there are fewer
      switches  how often the action changed

    Attributes:
      n_actions: at least 2.
      n_later: users after the canary, at least 0.
    """

    n_actions: int
    n_later: int

    def __post_init__(self) -> None:
        at_least("n_actions", self.n_actions, 2)
        at_least("n_later", self.n_later, 0)

    @property
    def windows(self) -> IntArray:
        """(n_windows,) rounds after the canary within which early actions are counted."""
        n_windows = min(_MOST_WINDOWS, _MOST_EARLY // (self.n_actions - 1))
        return 4 ** np.arange(1, n_windows + 1, dtype=np.int64)

    @property
    def counts(self) -> slice:
        """Columns of the counts of all actions."""
        return slice(0, self.n_actions)

    @property
    def early(self) -> slice:
        """Columns of the counts of all actions but the last, window after window."""
        start = self.n_actions
        return slice(start, start + len(self.windows) * (self.n_actions - 1))

    @property
    def arms(self) -> slice:
        """Columns of the actions of the first runs."""
        return slice(self.early.stop, self.early.stop + RUNS)

    @property
    def starts(self) -> slice:
        """Columns of the rounds at which the second and later runs begin."""
        return slice(self.arms.stop, self.arms.stop + RUNS - 1)

    @property
    def switches(self) -> slice:
        """The last column, the number of switches."""
        return slice(self.starts.stop, self.starts.stop + 1)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.switches.stop)

    def empty(self, n_reps: int) -> Features:
        """(n_reps, n_features) before anything was played."""
        rows = np.zeros((n_reps, self.n_features), dtype=np.float32)
        rows[:, self.arms] = -1
        rows[:, self.starts] = self.n_later
        return rows


class LaterActions:
    """An observer that fills one row a replicate.

    Numbers are float32: exact up to 2^24 rounds, rounded beyond.

    Args:
      record: the canary's position.
      n_users: length of the stream.
      n_actions: number of actions.
      n_reps: number of replicates.
      rows: (n_reps, n_features) memory to fill; None takes new memory.
      episode_length: steps of a record, each of which is a round.
    """

    def __init__(
        self, record: int, n_users: int, n_actions: int, n_reps: int, rows: Features | None = None, episode_length: int = 1
    ) -> None:
        if not 0 <= record < n_users:
            raise ValueError(f"record must lie in [0, {n_users}), got {record!r}")
        self.layout = Layout(n_actions, (n_users - record - 1) * episode_length)
        shape = (n_reps, self.layout.n_features)
        self.rows: Features = np.empty(shape, dtype=np.float32) if rows is None else rows
        if self.rows.shape != shape:
            raise ValueError(f"rows must be of shape {shape}, got {self.rows.shape}")
        self.rows[:] = self.layout.empty(1)
        self._first, self._length = (record + 1) * episode_length, episode_length
        self._windows = self.layout.windows
        self._columns = (self.layout.early.start, self.layout.arms.start, self.layout.starts.start)
        self._arm = np.full(n_reps, -1, dtype=np.int64)
        self._n_runs = np.zeros(n_reps, dtype=np.int64)

    def observe(self, record: Record) -> None:
        """Takes in the part of the record's public data that lies after the canary."""
        for step in range(self._length):
            _extend(
                record.user * self._length + step, record.n_records, record.actions[:, step], self._first, self._windows,
                *self._columns, self._arm, self._n_runs, self.rows,
            )  # fmt: skip


@njit(cache=True, nogil=True)
def _extend(user, n_records, actions, first, windows, early, arms, starts, arm, n_runs, rows):  # type: ignore[no-untyped-def]
    n_early = early - 1
    for r in range(len(user)):
        stop = user[r] + n_records[r] - first
        start = max(user[r] - first, 0)
        if stop <= start:
            continue
        a = actions[r]
        rows[r, a] += stop - start
        if a < n_early:
            for w in range(len(windows)):
                if start < windows[w]:
                    rows[r, early + w * n_early + a] += min(stop, windows[w]) - start
        if a != arm[r]:
            arm[r] = a
            j = n_runs[r]
            n_runs[r] = j + 1
            if j < RUNS:
                rows[r, arms + j] = a
                if j > 0:
                    rows[r, starts + j - 1] = start
            if j > 0:
                rows[r, -1] += 1


def first_divergence(rows: Features, layout: Layout, reference: Features) -> IntArray:
    """(n_reps,) how many rounds after the canary the actions first leave a reference.

    The two sequences are compared run by run, up to the first difference in their first six runs; n_later where these agree.

    Args:
      rows: (n_reps, n_features)
      layout: of the rows and of the reference.
      reference: (n_features,), one row: a public sequence.
    """
    starts = np.concatenate([np.zeros((len(rows), 1), dtype=np.float32), rows[:, layout.starts]], axis=1)
    other = np.concatenate([np.zeros(1, dtype=np.float32), reference[layout.starts]])
    differs = (starts != other) | (rows[:, layout.arms] != reference[layout.arms])
    first = np.argmax(differs, axis=1)
    earlier = np.minimum(starts[np.arange(len(rows)), first], other[first])
    return np.where(differs.any(axis=1), earlier, layout.n_later).astype(np.int64)


def most_common(rows: Features, layout: Layout) -> Features:
    """(n_features,) the row whose first six runs occur most often; of several the first in lexical order.

    Raises:
      ValueError: there are no rows.
    """
    if not len(rows):
        raise ValueError("rows must hold at least one replay, got none")
    runs = np.ascontiguousarray(rows[:, layout.arms.start : layout.starts.stop])
    _, first, counts = np.unique(runs, axis=0, return_index=True, return_counts=True)
    return np.array(rows[first[int(np.argmax(counts))]])
