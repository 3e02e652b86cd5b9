"""Learned scores of a mechanism's raw outputs, their sizes and their lowest bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bandana.algorithms.protocol import FloatArray
from bandana.audits.replays.classifiers import FINE, Scorer, learn_stumps

_SIGNIFICAND = 53


def score_outputs(
    train_data: ArrayLike, train_neighbor: ArrayLike, values: Sequence[ArrayLike] | None = None, n_rounds: int = 40
) -> Scorer:
    """A score for raw outputs, larger where the neighbor is likelier, learned from others.

    Boosted stumps on each coordinate, their sum and extremes, which coordinates are no numbers, and, where `values` are
    given, what the lowest bits tell. `divergence_bounds.pure_epsilon_lower` finds the event among its values.

    Args:
      train_data: (n, k) or (n,) outputs on the data set, to learn from.
      train_neighbor: (m, k) or (m,) the same on the neighbor.
      values: the two exact values, (k,) or a number each, to look at low-order bits (see `low_order_bits`); None looks at
        the outputs' sizes alone.
      n_rounds: number of stumps.

    Returns:
      a function from (n, k) or (n,) outputs to (n,) scores.

    Source: Bichsel, Steffen, Bogunovic, Vechev (2021), "DP-Sniper", which learns by logistic regression or a small network.
    """

    def columns(outputs: ArrayLike) -> FloatArray:
        found = _output_columns(np.asarray(outputs))
        return found if values is None else np.column_stack([found, low_order_bits(outputs, values)])

    sides = [columns(outputs) for outputs in (train_data, train_neighbor)]
    side = np.repeat([0.0, 1.0], [len(part) for part in sides])
    learned = learn_stumps(np.concatenate(sides), side, n_rounds, quantiles=FINE)
    return lambda outputs: learned(columns(outputs))


def _output_columns(outputs: NDArray[Any]) -> FloatArray:
    flat = outputs.reshape(len(outputs), -1).astype(float)
    is_lost = ~np.isfinite(flat)
    flat = np.nan_to_num(flat)
    if flat.shape[1] == 1:
        return np.column_stack([flat, is_lost])
    return np.column_stack([flat, is_lost, flat.sum(axis=1), flat.max(axis=1), flat.min(axis=1)])


def low_order_bits(outputs: ArrayLike, values: Sequence[ArrayLike]) -> FloatArray:
    """What the last bits of each output tell of the value that noise was added to.

    Real noise would hide the value; its floating-point numbers lie on a lattice, and so do their sums with the value.
    Columns, each for all coordinates x, named by `low_order_names`: the exponent of its lowest bit, e if x is a whole
    multiple of 2^e and of no larger power; how many bits of the significand are trailing zeros; and for each value v the
    exponent of the lowest bit of x - v, and whether (x - v) + v gives x again. Where it does not, no floating-point noise y
    gives v + y = x (but near powers of two, where rounding is lopsided): x cannot come from v.

    Args:
      outputs: (n, k) or (n,), as released.
      values: each (k,) or a number.

    Returns:
      (n, n_columns), no NaN.

    Source: Mironov (2012); Haney, Desfontaines, Hartman, Shrestha, Hay (2022) for other libraries.
    """
    given = np.asarray(outputs)
    flat = np.nan_to_num(given.reshape(len(given), -1).astype(float), posinf=0.0, neginf=0.0)
    found = [*_lowest_bit(flat)]
    for value in values:
        exact = np.broadcast_to(np.asarray(value, dtype=float), flat.shape[1:])
        difference = flat - exact
        found += [_lowest_bit(difference)[0], (difference + exact == flat).astype(float)]
    return np.concatenate(found, axis=1)


def low_order_names(n_coordinates: int, n_values: int) -> tuple[str, ...]:
    """What each column of `low_order_bits` holds, in words; x is an output and v, w, ... are the values."""
    names = ["the lowest bit of x", "the trailing zeros of x"]
    for value in "vw"[:n_values] if n_values < 3 else [f"v{i}" for i in range(n_values)]:
        names += [f"the lowest bit of x - {value}", f"whether (x - {value}) + {value} = x"]
    if n_coordinates == 1:
        return tuple(names)
    return tuple(f"{name}, coordinate {i}" for name in names for i in range(n_coordinates))


def _lowest_bit(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The exponent of the lowest bit that is set, 1024 of 0, and how many bits of the significand below it are 0."""
    significand, exponent = np.frexp(x)
    whole = np.abs(significand * 2.0**_SIGNIFICAND).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    zeros = np.log2(lowest.astype(float))
    return np.where(whole == 0, 1024.0, exponent - _SIGNIFICAND + zeros), np.where(whole == 0, float(_SIGNIFICAND), zeros)
