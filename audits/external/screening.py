"""Which record leaks: the dependence of every later action on every record, from one batch of runs on drawn rewards.

A reward of its own coin can be related to a later action only through the function. Correlations of all records with all
later actions, switches and repetitions, one by one and in pairs of records, are a few products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray
from bandana.audits.external.drawn import Drawn

_MOST_ARMS = 4
_LAGS = (1, 2)
_LONGEST_LAG = 32
_PLAIN = 8.0
"""Standard deviations above which one correlation needs no support by those of other records."""
_FLAT = 1e-12
"""A variance below this is the rounding of a constant."""


@dataclass(frozen=True)
class Suspect:
    """A record, two of its values, and how strongly later play depends on which it is.

    Attributes:
      record: the record.
      first: place in the menu of its value in the data set.
      second: and in the neighbor.
      strength: standard deviations of the strongest correlation.
      correlation: that correlation.
    """

    record: int
    first: int
    second: int
    strength: float
    correlation: float


def screen(drawn: Drawn, n_suspects: int = 2) -> tuple[Suspect, ...]:
    """The records that later play depends on most, each with the two values that show it.

    Args:
      drawn: runs that are used for nothing else but to choose and to learn.
      n_suspects: how many to return of those that all runs show; one more is what unusual runs show.
    """
    ends = drawn[~drawn.is_wide]
    signs, later = 1.0 - 2.0 * ends.codes, _events(ends)
    found = _ranked(later, signs, 0, 1)
    for lag in range(1, min(signs.shape[1], _LONGEST_LAG + 1)):  # what two records say together, and neither alone
        products = np.zeros_like(signs)
        products[:, lag:] = signs[:, lag:] * signs[:, :-lag]
        found += _ranked(later, products, 0, 1)
    wide = drawn[drawn.is_wide]
    later = _events(wide)
    for code in range(2, len(drawn.menu)):
        is_value = (wide.codes == code).astype(np.float64)
        far = 0 if drawn.menu.values[code] > (drawn.menu.low + drawn.menu.high) / 2 else 1
        found += _ranked(later, is_value - is_value.mean(), far, code)
    unusual = [one for rows in _unusual(ends) for one in _ranked(_events(ends[rows]), signs[rows], 0, 1)]
    common = _strongest(found, n_suspects)
    known = {(one.record, one.first, one.second) for one in common}
    return (*common, *(one for one in _strongest(unusual, 1) if (one.record, one.first, one.second) not in known))


def _strongest(found: list[Suspect], n: int) -> list[Suspect]:
    """The strongest, of which no two have one record and the same values."""
    chosen: dict[tuple[int, int, int], Suspect] = {}
    for suspect in sorted(found, key=lambda one: (-round(one.strength, 6), one.record)):
        chosen.setdefault((suspect.record, suspect.first, suspect.second), suspect)
    return list(chosen.values())[:n]


def _unusual(drawn: Drawn) -> list[np.ndarray]:
    """Rows of a twentieth of the runs: those that switch most or least, and those that repeat earlier rewards most.

    A leak in few runs hardly moves a correlation over all, but these runs often look like no other.
    """
    actions, n = drawn.actions, len(drawn)
    few = max(16, n // 20)
    switches = (actions[:, 1:] != actions[:, :-1]).sum(axis=1).astype(np.float64)
    oddities = [switches, -switches]
    for lag in _LAGS:
        oddities.append((actions[:, lag:] == 1 - drawn.codes[:, :-lag]).mean(axis=1))
        oddities.append((actions[:, lag:] == drawn.codes[:, :-lag]).mean(axis=1))
    return [np.argsort(-oddity, kind="stable")[:few] for oddity in oddities]


def _ranked(events: list[_Event], x: FloatArray, first: int, second: int) -> list[Suspect]:
    """A suspect for each record but the last, for one function x of the rewards, (n, n_rounds) with mean near 0."""
    n, n_rounds = x.shape
    if n < 16:
        return []
    later = np.triu(np.ones((n_rounds, n_rounds), dtype=bool), 1)
    best = np.zeros(n_rounds)
    pooled = np.zeros(n_rounds)
    for event in events:
        for weights in (x,) if event.is_played is None else (x, x * event.is_played):
            correlation = event.correlations(weights)
            best = np.maximum(best, (np.abs(correlation) * later).max(axis=1))
            for lag in range(1, min(n_rounds, _LONGEST_LAG + 1)):  # a small leak at every record adds up over records
                along = np.diagonal(correlation, lag)
                z = abs(float(along.sum())) * np.sqrt(n / len(along))
                pooled[: n_rounds - lag] = np.maximum(pooled[: n_rounds - lag], z)
    strength = np.maximum(best * np.sqrt(n), np.minimum(pooled, _PLAIN))  # what stands out by itself comes first
    return [Suspect(r, first, second, float(strength[r]), float(best[r])) for r in range(n_rounds - 1)]


@dataclass(frozen=True)
class _Event:
    """What may happen in each round, to be held against functions of the record.

    Attributes:
      centered: (n, n_rounds) 1 where it happens and 0 where not, less the mean of each round.
      spread: (n_rounds,) lengths of its columns.
      is_played: (n, n_rounds) whether the arm is played, if the event is that it is; functions of the record count there.
    """

    centered: FloatArray
    spread: FloatArray
    is_played: BoolArray | None

    @classmethod
    def of(cls, happens: BoolArray, is_arm: bool) -> _Event:
        """Centered once, for all functions of the record."""
        centered = happens - happens.mean(axis=0)
        return cls(centered, np.sqrt(_lengths(centered)), happens if is_arm else None)

    def correlations(self, x: FloatArray) -> FloatArray:
        """(rounds, rounds) correlations of the columns of x with the event; 0 where a column is constant.

        The event is centered, so that the products need no centered x.
        """
        around = np.maximum(_lengths(x) - len(x) * x.mean(axis=0) ** 2, 0.0)
        spread = np.sqrt(np.where(around > _FLAT * len(x), around, 0.0))[:, None] * self.spread[None]
        return np.where(spread > 0, x.T @ self.centered / np.where(spread > 0, spread, 1.0), 0.0)


def _lengths(x: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->j", x, x))


def _events(drawn: Drawn) -> list[_Event]:
    """Switches, and each arm as it is played."""
    actions = drawn.actions
    switch = np.zeros(actions.shape, dtype=bool)
    switch[:, 1:] = actions[:, 1:] != actions[:, :-1]
    arms = range(min(drawn.n_arms, _MOST_ARMS))
    return [_Event.of(switch, is_arm=False), *(_Event.of(actions == arm, is_arm=True) for arm in arms)]
