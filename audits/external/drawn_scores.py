"""Scores for the value of one record, from everything else: all actions, and the rewards of all other records.

Boosted histogram trees split on several columns in turn, so that a leak which depends on other rewards is seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandana.algorithms.protocol import FloatArray
from bandana.audits.external.drawn import Drawn
from bandana.audits.external.screening import Suspect
from bandana.audits.external.trees import learn_trees

_MOST_LEARNED = 20_000
_NEAR = 24


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
    taught = drawn.sides(suspect.record, suspect.first, suspect.second)[:_MOST_LEARNED]
    is_second = taught.codes[:, suspect.record] == suspect.second
    if is_second.all() or not is_second.any():
        return lambda runs: np.zeros(len(runs))
    known = features(taught, suspect.record)
    trees = learn_trees(known[~is_second], known[is_second], rounds=50, least_in_leaf=16, shrinkage=0.5, seed=seed)
    return lambda runs: trees(features(runs, suspect.record))
