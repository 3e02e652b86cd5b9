"""Matrices of a running sum: how each release holds each step, and how each answer holds each release's noise.

A running sum is linear in its steps and in its noise, alike in each coordinate of its whitened values. So both matrices are
read off by playing units: the sum's own code says what they are, whether it is a tree, a factorization or messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, Unpack

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.privacy_core import Laplace, Mechanism, PrivateSum
from bandana.privacy_core.ledger import Reads


class SumMap(NamedTuple):
    """A sum of n_steps steps that makes n_releases releases, each of n_free whitened numbers."""

    holds: FloatArray
    """(n_releases, n_steps) share of each step's contribution in the exact value of each release."""
    passes: FloatArray
    """(n_steps, n_releases) share of each release's noise in the answer after each step."""
    scales: FloatArray
    """(n_releases,) of the noise."""
    is_laplace: BoolArray
    """(n_releases,) True where the noise is Laplace, else it is Gaussian."""
    ready: IntArray
    """(n_steps,) number of releases up to each step."""
    first: IntArray
    """(n_releases,) first record that a release reads, carried ones too."""
    stop: IntArray
    """(n_releases,) one past the last one."""
    place: IntArray
    """(n_flat,) for each entry of a value, flattened, the whitened number that stands there."""
    weight: FloatArray
    """(n_flat,) its factor."""


class _Units:
    """A ledger that adds a unit of noise to the first number of one release in one replicate, and keeps exact values.

    The first `n_steps` replicates get none, replicate n_steps + r that of release r.
    """

    def __init__(self, n_reps: int, n_steps: int) -> None:
        self.n_reps, self._n_steps = n_reps, n_steps
        self.values: list[FloatArray] = []
        self.laws: list[tuple[float, bool]] = []
        self.spans: list[tuple[int, int]] = []

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """The value, with the unit where it belongs."""
        exact = mechanism.whiten(value)
        self.values.append(exact[:, 0].copy())
        self.laws.append((float(mechanism.scale), isinstance(mechanism, Laplace)))
        records, carried = reads["records"], reads.get("carried")
        start = records.start if carried is None else carried.start
        self.spans.append((int(start[0]), int(records.stop[0])))
        exact[self._n_steps + len(self.values) - 1 :][:1, 0] += 1.0
        return mechanism.color(exact, value.shape)


def read_map(sums: PrivateSum, shape: tuple[int, ...], ends: Sequence[int]) -> SumMap:
    """Plays a sum on units.

    Args:
      sums: with a `mechanism` that whitens values of the shape; Gaussian or Laplace.
      shape: of the statistic.
      ends: of each step the number of records up to it, increasing.
    """
    n_steps = len(ends)
    n_releases = len(_played(sums, shape, ends, _Units(1, n_steps))[1].values)
    answers, units = _played(sums, shape, ends, _Units(n_steps + n_releases, n_steps))
    mechanism: Mechanism = sums.mechanism  # type: ignore[attr-defined]
    ready = np.array([n for n, _ in answers])
    passes = np.array([answer[n_steps:] for _, answer in answers])
    n_free = mechanism.whiten(np.zeros((1, *shape))).shape[1]
    weight = mechanism.color(np.ones((1, n_free)), (1, *shape)).ravel()
    place = mechanism.color(np.arange(1.0, n_free + 1)[None], (1, *shape)).ravel() / weight - 1
    scales, is_laplace = map(np.array, zip(*units.laws, strict=True))
    first, stop = np.array(units.spans).T
    holds = np.array([values[:n_steps] for values in units.values])
    return SumMap(holds, passes, scales, is_laplace, ready, first, stop, np.rint(place).astype(np.int64), weight)


def _played(
    sums: PrivateSum, shape: tuple[int, ...], ends: Sequence[int], units: _Units
) -> tuple[list[tuple[int, FloatArray]], _Units]:
    """Number of releases up to each step, and first numbers of its answer; replicate k alone adds a unit, to step k."""
    mechanism: Mechanism = sums.mechanism  # type: ignore[attr-defined]
    n_free = mechanism.whiten(np.zeros((1, *shape))).shape[1]
    unit = mechanism.color(np.eye(1, n_free), (1, *shape))[0]
    state, answers = sums.init(units.n_reps, shape), []
    for step, (before, end) in enumerate(pairwise((0, *ends))):
        value = np.zeros((units.n_reps, *shape))
        value[step : step + 1] = unit
        state = sums.add(state, value, np.full(units.n_reps, end - before))
        state, noisy, _ = sums.close(state, units)
        answers.append((len(units.values), mechanism.whiten(noisy)[:, 0].copy()))
    return answers, units
