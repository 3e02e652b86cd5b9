"""Scores of outputs whose parts say nothing alone: sums in which noise cancels, parities of bits, noise of few seeds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray

Scorer = Callable[[FloatArray], FloatArray]

_MOST_SUMMED, _MOST_LINEAR, _MOST_BITS, _MOST_TRIPLES = 28, 128, 512, 160
_ROWS, _TAUGHT = 192, 2000
_FEW = 0.15
"""Share of distinct values among some runs below which a sum is no noise."""
_MANY = 0.5
_RIDGE, _SMALLEST = 1e-12, 1e-100
_MOST_COMPARED, _FLAT, _LOADS = 1500, 1e-8, 0.1
_SURE = 40
"""Equations more than unknowns: a parity that fits by chance has probability 2^-40."""
_WHOLE = 2.0**53


def learn_linear(data: FloatArray, neighbor: FloatArray) -> Scorer:
    """The best score of Gaussian noise that the numbers share: what cancels in some sum of them decides."""
    data, neighbor = data[:, :_MOST_LINEAR], neighbor[:, :_MOST_LINEAR]
    spread = np.concatenate([data, neighbor]).std(axis=0)
    scale = np.where(spread > _SMALLEST, spread, np.inf)
    centered = np.concatenate([side - side.mean(axis=0) for side in (data, neighbor)]) / scale
    covariance = centered.T @ centered / len(centered)
    gap = (neighbor.mean(axis=0) - data.mean(axis=0)) / scale
    weights = np.linalg.solve(covariance + _RIDGE * np.eye(len(gap)), gap) / scale
    return lambda x: x[:, :_MOST_LINEAR] @ weights


def depend(data: FloatArray, neighbor: FloatArray) -> np.ndarray:
    """(k,) columns of which some sum is the same in all runs of a side, up to rounding."""
    n = data.shape[1]
    if n > _MOST_COMPARED or len(data) + len(neighbor) < n + _SURE:
        return np.zeros(0, dtype=np.int64)
    centered = np.concatenate([side - side.mean(axis=0) for side in (data, neighbor)])
    spread = centered.std(axis=0)
    usable = np.flatnonzero(spread > _SMALLEST)
    centered = centered[:, usable] / spread[usable]
    sizes, directions = np.linalg.eigh(centered.T @ centered / len(centered))
    return np.asarray(usable[(np.abs(directions[:, sizes < _FLAT]) > _LOADS).any(axis=1)])


def find_sum(data: FloatArray, neighbor: FloatArray) -> FloatArray | None:
    """Weights of the sum or difference of two or three numbers that takes few values and tells most; None if none does.

    Shares of a secret are of this kind, also those modulo something: their sum is the secret, or one modulus more.
    """
    both = np.concatenate([data[:_TAUGHT], neighbor[:_TAUGHT]])
    numbers = [column for column in range(data.shape[1]) if _has_many(both[:, column])][:_MOST_SUMMED]
    best, result = 0.1, None
    sides = [side[:_ROWS] for side in (data, neighbor)]
    for size in (2, 3):
        for columns in combinations(numbers, size):
            for signs in product((1.0, -1.0), repeat=size - 1):
                weights = np.array([1.0, *signs])
                summed = [_grid(side[:, columns], weights) for side in sides]
                if min(len(np.unique(values)) / len(values) for values in summed) > _FEW:
                    continue
                distance = _distance(*(_grid(side[:_TAUGHT, columns], weights) for side in (data, neighbor)))
                if distance > best:
                    best, result = distance, np.zeros(data.shape[1])
                    result[list(columns)] = weights
    return result


def apply_sum(x: FloatArray, weights: FloatArray) -> FloatArray:
    """(n,) the weighted sum of each row, without its rounding errors."""
    columns = np.flatnonzero(weights)
    return _grid(x[:, columns], weights[columns])


def _grid(numbers: FloatArray, weights: FloatArray) -> FloatArray:
    """Sums, rounded to what the larger summands can carry."""
    size = 10.0 ** np.ceil(np.log10(max(1.0, float(np.abs(numbers).max(initial=0.0)))))
    return np.asarray(np.round(numbers @ weights / size, 11) * size)


def _has_many(numbers: FloatArray) -> bool:
    some = numbers[: 2 * _ROWS]
    return bool(np.isfinite(numbers).all()) and len(np.unique(some)) > min(8, _FEW * len(some))


def _distance(one: FloatArray, other: FloatArray) -> float:
    """Total variation between two samples of few values."""
    values, where = np.unique(np.concatenate([one, other]), return_inverse=True)
    shares = [np.bincount(part, minlength=len(values)) / len(part) for part in (where[: len(one)], where[len(one) :])]
    return float(np.abs(shares[0] - shares[1]).sum() / 2) if len(values) < len(one) else 0.0


# --- parities ------------------------------------------------------------------------------------------------------


def learn_parity(data: FloatArray, neighbor: FloatArray) -> Scorer | None:
    """The parity of bits of whole numbers that tells most: of any bits if it is exact, else of up to three."""
    both = np.concatenate([data[:_TAUGHT], neighbor[:_TAUGHT]])
    places = _bit_places(both)
    if not len(places):
        return None
    bits, side = _bits(both, places), np.repeat([False, True], [len(data[:_TAUGHT]), len(neighbor[:_TAUGHT])])
    order = np.random.default_rng(0).permutation(len(bits))
    chosen = _solved(bits[order], side[order])
    if chosen is None:
        chosen = _best_of_three(bits[:, :_MOST_TRIPLES], side)
    used = places[np.flatnonzero(chosen)]
    sign = 1.0 if np.mean(_parity(both, used)[side]) >= np.mean(_parity(both, used)[~side]) else -1.0
    return lambda x: sign * _parity(x, used)


def _parity(x: FloatArray, places: np.ndarray) -> FloatArray:
    return np.asarray(_bits(x, places).sum(axis=1) % 2, dtype=float)


def _bit_places(x: FloatArray) -> np.ndarray:
    """(bits, 2) columns of whole numbers, and which of their bits vary; low bits of each first."""
    result = []
    for column in range(x.shape[1]):
        numbers = x[:, column]
        if not np.isfinite(numbers).all() or (numbers != np.floor(numbers)).any() or np.abs(numbers).max() > _WHOLE:
            continue
        whole = numbers.astype(np.int64)
        result += [(column, bit) for bit in range(53) if 0 < ((whole >> bit) & 1).mean() < 1]
    return np.array(sorted(result, key=lambda place: place[1])[:_MOST_BITS], dtype=np.int64).reshape(-1, 2)


def _bits(x: FloatArray, places: np.ndarray) -> BoolArray:
    """(n, bits); a number that is missing or too large has no bits."""
    numbers = x[:, places[:, 0]]
    whole = np.where(np.isfinite(numbers) & (np.abs(numbers) <= _WHOLE), numbers, 0.0).astype(np.int64)
    return np.asarray((whole >> places[:, 1]) & 1, dtype=bool)


def _solved(bits: BoolArray, side: BoolArray) -> BoolArray | None:
    """(bits,) those whose parity, or its contrary, is the side in every run, by elimination over GF(2); None if none are."""
    n_bits = bits.shape[1]
    n = min(len(bits), n_bits + 1 + _SURE)
    if n < n_bits + 1 + _SURE:
        return None
    system, pivots = eliminated(np.column_stack([bits[:n], np.ones(n, dtype=bool), side[:n]]), n_bits + 1)
    if system[len(pivots) :, -1].any():
        return None
    result = np.zeros(n_bits + 1, dtype=bool)
    result[pivots] = system[: len(pivots), -1]
    return result[:-1] if result[:-1].any() else None


def eliminated(system: BoolArray, n_columns: int | None = None) -> tuple[BoolArray, list[int]]:
    """The reduced system over GF(2), and the columns of its pivots, row by row.

    Args:
      system: (rows, columns), which is used up.
      n_columns: how many of the first columns may hold a pivot; None: all.
    """
    row, pivots = 0, []
    for column in range(system.shape[1] if n_columns is None else n_columns):
        below = np.flatnonzero(system[row:, column])
        if not len(below):
            continue
        system[[row, row + below[0]]] = system[[row + below[0], row]]
        others = np.flatnonzero(system[:, column])
        system[others[others != row]] ^= system[row]
        pivots.append(column)
        row += 1
    return system, pivots


def _best_of_three(bits: BoolArray, side: BoolArray) -> BoolArray:
    """(bits,) the one, two or three whose parity correlates most with the side."""
    x, y = 2.0 * bits - 1, 2.0 * side - 1
    best, chosen = -1.0, [0]
    for first in (None, *range(x.shape[1])):
        weighted = x if first is None else x * x[:, [first]]
        pairs = np.abs((weighted * y[:, None]).T @ x)
        np.fill_diagonal(pairs, np.abs(weighted.T @ y))  # a bit with itself cancels
        place = np.unravel_index(int(np.argmax(pairs)), pairs.shape)
        if pairs[place] > best + 1e-9:
            one, other = int(place[0]), int(place[1])
            odd = {one} ^ ({other} - {one}) ^ ({first} - {None})
            if odd:
                best, chosen = float(pairs[place]), sorted(odd)
    result = np.zeros(x.shape[1], dtype=bool)
    result[chosen] = True
    return result


# --- runs seen before ----------------------------------------------------------------------------------------------


def learn_seen(data: FloatArray, neighbor: FloatArray) -> Scorer | None:
    """Learns the numbers of one side alone: noise of few seeds comes back, and noise of many never does.

    Returns:
      None where no column has many values; columns of few values are left to others.
    """
    known: list[tuple[int, FloatArray, FloatArray]] = []
    for column in range(data.shape[1]):
        one, other = np.unique(data[:, column]), np.unique(neighbor[:, column])
        if min(len(one), len(other)) > _MANY * min(len(data), len(neighbor)):
            known.append((column, np.setdiff1d(one, other), np.setdiff1d(other, one)))
    if not known:
        return None

    def score(x: FloatArray) -> FloatArray:
        result = np.zeros(len(x))
        for column, on_data, on_neighbor in known:
            result += np.isin(x[:, column], on_neighbor).astype(float) - np.isin(x[:, column], on_data)
        return result

    return score
