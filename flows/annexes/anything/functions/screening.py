"""Search for the record that leaks, and a score that shows it: later actions against records, in runs on drawn rewards.

A reward of its own coin can be related to a later action only through the function. Correlations of all records with all
later actions, switches and repetitions, one by one and in pairs of records, are a few products of matrices. Boosted trees
on all actions and all other rewards then split on several columns in turn, which shows a leak that depends on other rewards.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray
from bandana.flows.annexes.anything.functions.drawn import Drawn
from bandana.flows.annexes.anything.functions.joint import Joint, find_joint
from bandana.flows.annexes.anything.outputs.trees import learn_trees

_MOST_ARMS = 4
_LAGS = (1, 2)
_LONGEST_LAG = 32
_PLAIN = 8.0
"""Standard deviations above which one correlation needs no support by those of other records."""
_FLAT = 1e-12
"""A variance below this is the rounding of a constant."""
_MOST_LEARNED, _NEAR = 20_000, 24


@dataclass(frozen=True)
class Suspect:
    """A record, two of its values, and how strongly later play depends on which it is.

    Attributes:
      record: the record.
      first: place in the menu of its value in the data set.
      second: and in the neighbor.
      strength: standard deviations of the strongest correlation.
      correlation: that correlation.
      joint: the score, where no action alone shows the record; None: it is learned.
    """

    record: int
    first: int
    second: int
    strength: float
    correlation: float
    joint: Joint | None = None

    @property
    def attack(self) -> str:
        """Name of the score of its runs, for a report."""
        return "boosted trees on all actions and all other rewards" if self.joint is None else self.joint.words


def screen(drawn: Drawn, n_suspects: int = 2) -> tuple[Suspect, ...]:
    """The records that later play depends on most, each with the two values that show it.

    Args:
      drawn: runs that are used for nothing else but to choose and to learn.
      n_suspects: how many to return of those that all runs show; one more is what unusual runs show, and up to two are what
        several actions show together.
    """
    ends = drawn[~drawn.is_wide]
    signs, later = 1.0 - 2.0 * ends.codes, _events(ends)
    ranked = _ranked(later, signs, 0, 1)
    for lag in range(1, min(signs.shape[1], _LONGEST_LAG + 1)):  # what two records say together, and neither alone
        products = np.zeros_like(signs)
        products[:, lag:] = signs[:, lag:] * signs[:, :-lag]
        ranked += _ranked(later, products, 0, 1)
    wide = drawn[drawn.is_wide]
    later = _events(wide)
    for code in range(2, len(drawn.menu)):
        is_value = (wide.codes == code).astype(np.float64)
        far = 0 if drawn.menu.values[code] > (drawn.menu.low + drawn.menu.high) / 2 else 1
        ranked += _ranked(later, is_value - is_value.mean(), far, code)
    unusual = [one for rows in _unusual(ends) for one in _ranked(_events(ends[rows]), signs[rows], 0, 1)]
    common = _strongest(ranked, n_suspects)
    known = {(one.record, one.first, one.second) for one in common}
    unusual = [one for one in _strongest(unusual, 1) if (one.record, one.first, one.second) not in known]
    return (*common, *unusual, *(Suspect(one.record, 0, 1, one.strength, 1.0, one) for one in find_joint(ends)))


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
    """Event that may happen in each round, to be held against functions of the record.

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


def features(drawn: Drawn, record: int) -> FloatArray:
    """(n, columns) what an adversary sees who knows all rewards but the record's.

    Rounds within 24 of the record have columns of their own: action, switch, whether the record's arm is played, and reward.
    Sums of the other rewards stand beside them: before the record, until each of these rounds after it, in all, and until
    the first and the last switch after it; and products of the neighboring rewards with the next actions, which no single
    split of a tree can see.
    """
    n, n_rounds = drawn.actions.shape
    near = np.arange(max(0, record - _NEAR), min(n_rounds, record + _NEAR + 1))
    actions, others = drawn.actions, drawn.rewards.copy()
    middle = (drawn.menu.low + drawn.menu.high) / 2
    others[:, record] = 0.0
    sums = np.cumsum(others, axis=1)
    switch = np.zeros((n, n_rounds), dtype=bool)
    switch[:, 1:] = actions[:, 1:] != actions[:, :-1]
    after = switch.copy()
    after[:, : record + 1] = False
    first = np.where(after.any(axis=1), after.argmax(axis=1), n_rounds - 1)
    last = np.where(after.any(axis=1), n_rounds - 1 - after[:, ::-1].argmax(axis=1), record)
    rows = np.arange(n)
    columns = [
        actions[:, near], switch[:, near], actions[:, near] == actions[:, [record]], others[:, near],
        sums[:, [max(0, record - 1), n_rounds - 1]], sums[:, near[near > record]], first[:, None], last[:, None],
        sums[rows, first][:, None], sums[rows, last][:, None], (sums[rows, last] - others[rows, last])[:, None],
        actions[:, record + 1 :].mean(axis=1)[:, None], after.sum(axis=1)[:, None],
    ]  # fmt: skip
    for place in (record - 2, record - 1, record + 1, record + 2):
        if 0 <= place < n_rounds:
            side = np.sign(others[:, [place]] - middle)
            soon = slice(record + 1, min(n_rounds, record + 4))
            columns += [side * (2 * actions[:, soon] - drawn.n_arms + 1), side * (2.0 * switch[:, soon] - 1)]
    for lag in (1, 2, 3):
        if record + lag < n_rounds:  # whether later play repeats rewards, and what it would say of the record's
            repeats = actions[:, lag:] == (others[:, : n_rounds - lag] > middle)
            repeats[:, record] = False
            columns.append((repeats.mean(axis=1) * (2 * actions[:, record + lag] - 1))[:, None])
    return np.concatenate([np.asarray(column, dtype=np.float32) for column in columns], axis=1)


def learn(drawn: Drawn, suspect: Suspect, seed: int) -> Callable[[Drawn], FloatArray]:
    """Log odds of the record's second value, taught on runs in which it has one of the two."""
    if suspect.joint is not None:
        return suspect.joint.score.of
    taught = drawn.sides(suspect.record, suspect.first, suspect.second)[:_MOST_LEARNED]
    is_second = taught.codes[:, suspect.record] == suspect.second
    if is_second.all() or not is_second.any():
        return lambda runs: np.zeros(len(runs))
    known = features(taught, suspect.record)
    trees = learn_trees(known[~is_second], known[is_second], rounds=50, least_in_leaf=16, shrinkage=0.5, seed=seed)
    return lambda runs: trees(features(runs, suspect.record))
