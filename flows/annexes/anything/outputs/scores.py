"""Scores for "this output is of the neighbor": learned on some runs, larger where the neighbor is likelier.

Learners look for different leaks. Whatever they learn, a bound from other runs is valid; they decide power alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.replays.classifiers import learn_logistic
from bandana.flows.annexes.anything.outputs import shares
from bandana.flows.annexes.anything.outputs.deadline import NEVER, Deadline, TimeIsUpError
from bandana.flows.annexes.anything.outputs.trees import learn_trees

Scorer = Callable[[FloatArray], FloatArray]
"""A table of encoded outputs, (n, columns), to (n,) scores."""

RARE = "rare values"
SLOWEST = ("boosted trees", "logistic regression")
"""Learners that take longest."""
SLOW = (*SLOWEST, "parity of bits", "sum of numbers", "Gaussian densities")
"""Those that take long."""
_MOST_LEARNED = 40_000
_MOST_TREE_COLUMNS, _MOST_LOGISTIC_COLUMNS = 64, 128
_FEWEST_OF_AN_ATOM = 5
_DIGITS = 12
_MOST_RANKED, _FEWEST_RANKED = 4_000_000, 512
"""Numbers of each side that are ranked to find out which columns tell most, and rows, at least."""
_FEW_VALUES = 128
_LARGEST, _ROUNDING = 1e100, 1e-9


@dataclass(frozen=True)
class Atoms:
    """Values that runs repeat exactly, and how much likelier the neighbor makes each.

    A binned learner mixes a rare value with those around it: an exact number among noisy ones stays unseen.

    Attributes:
      values: for each column, the repeated values in order.
      odds: for each column, their log odds.
    """

    values: tuple[FloatArray, ...]
    odds: tuple[FloatArray, ...]

    @classmethod
    def learn(cls, data: FloatArray, neighbor: FloatArray) -> Atoms:
        """Counts the values of each column on both sides."""
        values, odds = [], []
        for column in range(data.shape[1]):
            sides = [_rounded(side[:, column]) for side in (data, neighbor)]
            distinct, where, counts = np.unique(np.concatenate(sides), return_inverse=True, return_counts=True)
            kept = counts >= _FEWEST_OF_AN_ATOM
            on = np.bincount(where[len(data) :], minlength=len(distinct))
            values.append(distinct[kept])
            odds.append(_odds(counts[kept] - on[kept], on[kept], len(data), len(neighbor)))
        return cls(tuple(values), tuple(odds))

    def table(self, x: FloatArray) -> FloatArray:
        """(n, columns) log odds of each number, 0 where it is no atom."""
        log_odds = np.zeros(x.shape)
        for column, (values, odds) in enumerate(zip(self.values, self.odds, strict=True)):
            if not len(values):
                continue
            rounded = _rounded(x[:, column])
            place = np.minimum(np.searchsorted(values, rounded), len(values) - 1)
            same = (values[place] == rounded) | (np.isnan(values[place]) & np.isnan(rounded))
            log_odds[:, column] = np.where(same, odds[place], 0.0)
        return log_odds


def _rounded(x: FloatArray) -> FloatArray:
    """To 12 significant digits: what the last bits of floating-point noise reveal is not looked for."""
    finite = np.isfinite(x) & (x != 0)
    with np.errstate(over="ignore", invalid="ignore"):
        scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.abs(np.where(finite, x, 1.0)))))
        return np.where(finite & np.isfinite(scale), np.round(np.where(finite, x, 1.0) * scale) / scale, x)


def _odds(data: np.ndarray, neighbor: np.ndarray, n_data: int, n_neighbor: int) -> FloatArray:
    return np.asarray(np.log((neighbor + 0.5) / (data + 0.5)) - np.log((n_neighbor + 1) / (n_data + 1)))


def learn(
    data: FloatArray,
    neighbor: FloatArray,
    seed: int,
    *,
    without: Collection[str] = (),
    deadline: Deadline = NEVER,
    left_out: list[str] | None = None,
) -> dict[str, Scorer]:
    """Teaches all learners.

    Args:
      data: (n, columns) encoded outputs of the data set.
      neighbor: (m, columns) the same of the neighbor.
      seed: of the trees' bins.
      without: names of learners to leave out, such as `SLOW`.
      deadline: after which no learner goes on; the first one, which is quick, learns in any case.
      left_out: gets the names of those that the time did not suffice for.

    Returns:
      name -> score; none where every output is the same.
    """
    data, neighbor = data[:_MOST_LEARNED], neighbor[:_MOST_LEARNED]
    columns = telling(data, neighbor)
    if not len(columns):
        return {"nothing": lambda x: np.zeros(len(x))}
    wide, narrow = columns[:_MOST_LOGISTIC_COLUMNS], columns[:_MOST_TREE_COLUMNS]
    scorers: dict[str, Scorer] = {"most telling number": _single(data, neighbor, int(columns[0]))}
    for name, teach, least in _LEARNERS:
        if data.shape[1] < least or name in without:
            continue
        used = narrow if teach in (_trees, _rare) else wide
        part = [side if teach in (_linear, _gaussian) else side[:, used] for side in (data, neighbor)]
        try:
            with deadline.enforced():
                score = teach(part[0], part[1], used, seed)
        except TimeIsUpError:
            if left_out is not None:
                left_out.append(name)
            continue
        if score is not None:
            scorers[name] = score
    if (densities := scorers.get("Gaussian densities")) is not None:  # two values are bounded best where they tell all
        scorers["likelier Gaussian"] = lambda x: np.sign(densities(x))
    return scorers


def _seen(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer | None:
    seen = shares.learn_seen(_rounded(_filled(data)), _rounded(_filled(neighbor)))
    return None if seen is None else lambda x: seen(_rounded(_filled(x[:, columns])))


def _parity(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer | None:
    parity = shares.learn_parity(_filled(data), _filled(neighbor))
    return None if parity is None else lambda x: parity(_filled(x[:, columns]))


def _discriminant(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    linear = shares.learn_linear(_filled(data), _filled(neighbor))
    return lambda x: linear(_filled(x[:, columns]))


def _sum(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer | None:
    weights = shares.find_sum(_filled(data), _filled(neighbor))
    if weights is None:
        return None
    atoms = Atoms.learn(*(shares.apply_sum(_filled(side), weights)[:, None] for side in (data, neighbor)))
    return lambda x: atoms.table(shares.apply_sum(_filled(x[:, columns]), weights)[:, None])[:, 0]


def _rare(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    """The log odds of the most telling number of a run: one that comes back, or beyond all that the other side has shown."""
    atoms, ends = Atoms.learn(data, neighbor), []
    for column in range(data.shape[1]):
        one, other = (_filled(side[:, column]) for side in (data, neighbor))
        for sign in (-1.0, 1.0):
            beyond = [int((sign * x > (sign * y).max()).sum()) for x, y in ((one, other), (other, one))]
            side = int(beyond[1] > beyond[0])
            if beyond[side] >= _FEWEST_OF_AN_ATOM:
                edge = float((sign * (one, other)[1 - side]).max())
                ends.append((column, sign, edge, (2 * side - 1) * math.log(2 * beyond[side] + 1)))

    def score(x: FloatArray) -> FloatArray:
        x = x[:, columns]
        beyond = [np.where(sign * _filled(x[:, column]) > edge, odds, 0.0) for column, sign, edge, odds in ends]
        odds_of = np.column_stack([atoms.table(x), *beyond])
        return np.asarray(odds_of[np.arange(len(x)), np.abs(odds_of).argmax(axis=1)])

    return score


def _filled(x: FloatArray) -> FloatArray:
    """Missing numbers as 0, infinite ones as large, and none so large that its square is infinite."""
    return np.clip(np.nan_to_num(x, nan=0.0, posinf=1e12, neginf=-1e12), -_LARGEST, _LARGEST)


def telling(data: FloatArray, neighbor: FloatArray) -> np.ndarray:
    """Columns that vary, those first whose means or spreads differ most between the sides, in ranks: tails do not decide.

    After the first one stand columns that some sum of others fixes: shares of a secret say nothing alone.
    """
    n = max(_FEWEST_RANKED, _MOST_RANKED // max(1, data.shape[1]))
    data, neighbor = data[:n], neighbor[:n]
    gaps, varying = [], []
    for column in range(data.shape[1]):
        both = np.concatenate([data[:, column], neighbor[:, column]])
        if not _varies(both):
            continue
        varying.append(column)
        pooled = _filled(both)
        order = np.sort(pooled)
        rank = (np.searchsorted(order, pooled, "left") + np.searchsorted(order, pooled, "right")) / (2 * len(pooled)) - 0.5
        gaps.append(max(abs(_gap(rank, len(data))), abs(_gap(np.abs(rank), len(data)))))
    ranked = np.array(varying, dtype=np.int64)[np.argsort(-np.round(np.array(gaps), 9), kind="stable")]
    if len(ranked) <= _MOST_TREE_COLUMNS:
        return ranked
    bound = ranked[shares.depend(_filled(data[:, ranked]), _filled(neighbor[:, ranked]))]
    return np.array([*dict.fromkeys([*ranked[:1].tolist(), *bound.tolist(), *ranked.tolist()])], dtype=np.int64)


def _varies(x: FloatArray) -> bool:
    present = x[~np.isnan(x)]
    return len(present) > 0 and (len(present) < len(x) or bool((present != present[0]).any()))


def _gap(x: FloatArray, n_data: int) -> float:
    spread = float(x.std())
    return float(x[n_data:].mean() - x[:n_data].mean()) / spread if spread > 0 else 0.0


def _single(data: FloatArray, neighbor: FloatArray, column: int) -> Scorer:
    """The column itself, in the direction in which the neighbor is likelier."""
    pooled = _filled(np.concatenate([data[:, column], neighbor[:, column]]))
    rank = np.searchsorted(np.sort(pooled), pooled).astype(float)
    sign = 1.0 if _gap(rank, len(data)) >= 0 else -1.0
    return lambda x: sign * _filled(x[:, column])


def _linear(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    """The best score where columns have independent Gaussian noise, however many they are."""
    data, neighbor = _filled(data), _filled(neighbor)
    variance = (data.var(axis=0) + neighbor.var(axis=0)) / 2
    weights = np.where(variance > 0, (neighbor.mean(axis=0) - data.mean(axis=0)) / np.where(variance > 0, variance, 1), 0.0)
    return lambda x: _filled(x) @ weights


def _gaussian(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    """The best score where columns are independent and Gaussian, with means and spreads of their own on either side."""
    data, neighbor = _filled(data), _filled(neighbor)
    # What varies by rounding alone has no density; other learners count it.
    varying = np.all([side.std(axis=0) > _ROUNDING * np.abs(side).max(axis=0) for side in (data, neighbor)], axis=0)
    means, spreads = ([f(side[:, varying], axis=0) for side in (data, neighbor)] for f in (np.mean, np.std))

    def log_density(rows: FloatArray, side: int) -> FloatArray:
        z = np.clip((rows - means[side]) / spreads[side], -_LARGEST, _LARGEST)
        return np.asarray((-0.5 * z**2 - np.log(spreads[side])).sum(axis=1))

    return lambda x: log_density(_filled(x[:, varying]), 1) - log_density(_filled(x[:, varying]), 0)


def _logistic(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    x = _filled(np.concatenate([data, neighbor]))
    scorer = learn_logistic(x, np.repeat([0.0, 1.0], [len(data), len(neighbor)]))
    return lambda rows: scorer(_filled(rows[:, columns]))


def _trees(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer:
    """Boosted histogram trees on the columns and on their atoms, so that interactions of several columns count."""
    half = len(data) // 2
    atoms = Atoms.learn(data[:half], neighbor[:half])
    is_listed = [len(np.unique(data[:, column])) > _FEW_VALUES for column in range(data.shape[1])]
    # Few values have a bin each; atoms are learned on other runs than the trees, so that these see how much they say.
    extra = np.flatnonzero(is_listed)
    is_empty = np.isnan(data[half:]).all(axis=0) & np.isnan(neighbor[half:]).all(axis=0)

    def features(x: FloatArray) -> FloatArray:
        clipped = np.where(np.isnan(x), np.where(is_empty, 0.0, np.nan), np.clip(x, -_LARGEST, _LARGEST))
        return np.column_stack([clipped, atoms.table(x)[:, extra]])

    trees = learn_trees(
        features(data[half:]), features(neighbor[half:]), rounds=60, least_in_leaf=8, shrinkage=0.2, seed=seed
    )
    return lambda rows: trees(features(rows[:, columns]))


def _whole_outputs(data: FloatArray, neighbor: FloatArray, columns: IntArray, seed: int) -> Scorer | None:
    """Log odds of an output as a whole, where outputs repeat; None where hardly any does."""
    sides = [_rounded(side) for side in (data, neighbor)]
    keys, where, counts = np.unique(_keys(np.concatenate(sides)), return_inverse=True, return_counts=True)
    on = np.bincount(where[len(data) :], minlength=len(keys))
    kept = counts >= _FEWEST_OF_AN_ATOM
    if not kept.any():
        return None
    odds = _odds(counts[kept] - on[kept], on[kept], len(data), len(neighbor))
    known = dict(zip(keys[kept].tolist(), odds.tolist(), strict=True))
    return lambda rows: np.array([known.get(key, 0.0) for key in _keys(_rounded(rows[:, columns])).tolist()])


def _keys(rows: FloatArray) -> np.ndarray:
    """(n,) one value for each distinct row."""
    plain = np.ascontiguousarray(np.where(np.isnan(rows), np.nan, rows + 0.0))
    return plain.view(np.dtype((np.void, plain.dtype.itemsize * plain.shape[1]))).ravel()


Teacher = Callable[[FloatArray, FloatArray, IntArray, int], Scorer | None]
_LEARNERS: tuple[tuple[str, Teacher, int], ...] = (
    (RARE, _rare, 1),
    ("numbers seen before", _seen, 1),
    ("counted outputs", _whole_outputs, 1),
    ("difference of means", _linear, 2),
    ("linear discriminant", _discriminant, 2),
    ("Gaussian densities", _gaussian, 2),
    ("boosted trees", _trees, 1),
    ("logistic regression", _logistic, 2),
    ("parity of bits", _parity, 1),
    ("sum of numbers", _sum, 2),
)
"""Name, what teaches it, and columns that it needs."""
