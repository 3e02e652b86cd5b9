"""Quantities watched during a run: regret over rounds, and the actions themselves."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numba import njit

from bandana.algorithms.protocol import FloatArray, IntArray, Record


def log_grid(horizon: int, n_points: int = 200) -> IntArray:
    """At most `n_points` distinct rounds from 1 to `horizon`, evenly spaced in the logarithm."""
    if horizon < 1:
        raise ValueError(f"horizon must be at least 1, got {horizon!r}")
    return np.unique(np.rint(np.geomspace(1, horizon, n_points)).astype(np.int64))


class RegretCurve:
    """Cumulative pseudo-regret on a grid of rounds: the sum of mean-reward gaps of the arms played.

    Attributes:
      curve: (n_reps, n_grid), in units of reward, regret after `grid` rounds.
    """

    def __init__(self, means: FloatArray, grid: IntArray, n_reps: int) -> None:
        self._gaps = np.max(means) - means
        self._grid = grid
        self._total = np.zeros(n_reps)
        self._next = np.zeros(n_reps, dtype=np.int64)
        self.curve = np.zeros((n_reps, len(grid)))

    def observe(self, record: Record) -> None:
        """Extends each replicate's curve by the record's rounds."""
        actions = record.actions[:, 0]
        _extend_regret(
            record.user, record.n_records, actions, self._gaps, self._grid, self._total, self._next, self.curve
        )  # fmt: skip


class DriftingRegretCurve:
    """Cumulative pseudo-regret on a grid of rounds where means change: against the best arm of each round.

    Args:
      lost: (n_users + 1, n_actions) regret of playing one arm in all rounds before; the first row is 0.
      grid: rounds after which the curve is read.
      n_reps: number of replicates.

    Attributes:
      curve: (n_reps, n_grid), in units of reward, regret after `grid` rounds.
    """

    def __init__(self, lost: FloatArray, grid: IntArray, n_reps: int) -> None:
        self._lost, self._grid = lost, grid
        self._total = np.zeros(n_reps)
        self.curve = np.zeros((n_reps, len(grid)))

    def observe(self, record: Record) -> None:
        """Extends each replicate's curve by the record's rounds."""
        start, stop, actions = record.user, record.user + record.n_records, record.actions[:, 0]
        before = self._lost[start, actions]
        for place in range(*np.searchsorted(self._grid, [int(start.min()) + 1, int(stop.max()) + 1])):
            now = self._grid[place]
            rows = np.flatnonzero((start < now) & (now <= stop))
            self.curve[rows, place] = self._total[rows] + self._lost[now, actions[rows]] - before[rows]
        self._total += self._lost[stop, actions] - before


class HasMeanRewards(Protocol):
    """A stream that knows what its actions are worth."""

    def mean_rewards(self, user: IntArray, contexts: FloatArray) -> FloatArray:
        """(n_reps, n_actions) mean rewards of the actions that user[r] was offered."""
        ...


class _RoundByRound:
    """A curve to which all replicates add at once, one record after the other."""

    def __init__(self, grid: IntArray, n_reps: int) -> None:
        self._grid = grid
        self._total = np.zeros(n_reps)
        self._next = 0
        self.curve = np.zeros((n_reps, len(grid)))

    def _extend(self, record: Record, gaps: FloatArray) -> None:
        self._total += gaps
        if self._next < len(self._grid) and self._grid[self._next] == int(record.user[0]) + 1:
            self.curve[:, self._next] = self._total
            self._next += 1


class ContextualRegretCurve(_RoundByRound):
    """Cumulative pseudo-regret on a grid of rounds: against the best action of each user's own contexts.

    Attributes:
      curve: (n_reps, n_grid), in units of reward, regret after `grid` rounds.
    """

    def __init__(self, stream: HasMeanRewards, grid: IntArray, n_reps: int) -> None:
        super().__init__(grid, n_reps)
        self._stream = stream

    def observe(self, record: Record) -> None:
        """Adds the round's gap; where users have contexts, all replicates play round by round.

        Raises:
          ValueError: the record has no contexts.
        """
        if record.contexts is None:
            raise ValueError("this regret compares actions of one user's contexts; the stream offers none: use RegretCurve")
        means = self._stream.mean_rewards(record.user, record.contexts)
        played = means[np.arange(len(means)), record.actions[:, 0]]
        self._extend(record, np.where(record.n_records > 0, means.max(axis=1) - played, 0.0))


class EpisodicRegretCurve(_RoundByRound):
    """Cumulative pseudo-regret on a grid of episodes: the sum of the gaps V*_h(s) - Q*_h(s, a) along each trajectory.

    By the performance difference lemma a trajectory's gaps have the mean V*_1(s_1) - V^pi_1(s_1) for the policy pi that was
    played, so the curve is an unbiased estimate of the regret, and grows in every replicate.

    Args:
      gaps: (horizon, n_states, n_actions), V*_h(s) - Q*_h(s, a) >= 0.
      grid: episodes after which the curve is read.
      n_reps: number of replicates.

    Attributes:
      curve: (n_reps, n_grid), in units of reward, regret after `grid` episodes.
    """

    def __init__(self, gaps: FloatArray, grid: IntArray, n_reps: int) -> None:
        super().__init__(grid, n_reps)
        self._gaps = gaps
        self._steps = np.arange(len(gaps))

    def observe(self, record: Record) -> None:
        """Adds the episode's gaps.

        Raises:
          ValueError: the record is no episode.
        """
        if record.states is None:
            raise ValueError("this regret is that of episodes; the stream has none: use RegretCurve")
        self._extend(record, self._gaps[self._steps, record.states[:, :-1], record.actions].sum(axis=1))


@njit(cache=True, nogil=True)
def _extend_regret(user, n_records, actions, gaps, grid, total, upcoming, curve):  # type: ignore[no-untyped-def]
    for r in range(len(user)):
        gap, start, stop = gaps[actions[r]], user[r], user[r] + n_records[r]
        i = upcoming[r]
        while i < len(grid) and grid[i] <= stop:
            curve[r, i] = total[r] + gap * (grid[i] - start)
            i += 1
        upcoming[r] = i
        total[r] += gap * n_records[r]


class ActionLog:
    """The actions, phase by phase, with the rounds that each phase began at and lasted.

    Attributes:
      user: of each entry (n_reps,) the first record.
      n_records: of each entry (n_reps,) how many records.
      actions: of each entry (n_reps,)
      step: of each entry, in the episode; 0 in a bandit.
      states: in episodes, of each record (n_reps, horizon + 1).
    """

    def __init__(self) -> None:
        self.user: list[IntArray] = []
        self.n_records: list[IntArray] = []
        self.actions: list[IntArray] = []
        self.step: list[int] = []
        self.states: list[IntArray] = []

    def observe(self, record: Record) -> None:
        """Keeps the record, but for its rewards; each step of an episode is an entry of its own, with the same user."""
        if record.states is not None:
            self.states.append(record.states)
        for step in range(record.actions.shape[1]):
            self.user.append(record.user)
            self.n_records.append(record.n_records)
            self.actions.append(record.actions[:, step])
            self.step.append(step)
