"""Noise that a test can foresee: constant, counted, or each replicate's own sequence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bandana.privacy_core import ContinuousNoise, LiveLedger, SecureNoise, Span

Shape = int | tuple[int, ...]


class ConstantNoise(ContinuousNoise):
    """Every standard draw is the same number; `calls` counts how often noise was drawn."""

    name = "constant"

    def __init__(self, value: float = 1.0) -> None:
        self.value = value
        self.calls = 0

    def normal(self, shape: Shape) -> NDArray[np.float64]:
        self.calls += 1
        return np.full(shape, self.value)

    def laplace(self, shape: Shape) -> NDArray[np.float64]:
        self.calls += 1
        return np.full(shape, self.value)

    def discrete_gaussian(self, scale: float, shape: Shape) -> NDArray[np.int64]:
        self.calls += 1
        return np.full(shape, int(self.value))


class OwnNoise(ContinuousNoise):
    """Each replicate draws from its own generator; `rows` says whose turn it is."""

    name = "own"

    def __init__(self, seeds: list[int]) -> None:
        self._generators = [np.random.default_rng(seed) for seed in seeds]
        self.rows = np.arange(len(seeds))

    def normal(self, shape: Shape) -> NDArray[np.float64]:
        assert isinstance(shape, tuple)
        return np.stack([self._generators[row].standard_normal(shape[1:]) for row in self.rows])

    def laplace(self, shape: Shape) -> NDArray[np.float64]:
        assert isinstance(shape, tuple)
        return np.stack([self._generators[row].laplace(size=shape[1:]) for row in self.rows])

    def discrete_gaussian(self, scale: float, shape: Shape) -> NDArray[np.int64]:
        return np.rint(scale * self.normal(shape)).astype(np.int64)


class GridOnly(SecureNoise):
    """Adds nothing; keeps the whole numbers, the unit they count, and the scale of the noise that would have met them."""

    def __init__(self) -> None:
        self.whole: list[NDArray[np.int64]] = []
        self.scales: list[float] = []
        self.units: list[float] = []

    def discrete_gaussian(self, scale: float, shape: Shape) -> NDArray[np.int64]:
        self.scales.append(scale)
        return np.zeros(shape, dtype=np.int64)

    def _on_grid(self, value, scale, step):  # type: ignore[no-untyped-def]
        self.units.append(scale * step)
        self.whole.append(super()._on_grid(value, scale, step).copy())
        return self.whole[-1].copy()


class OwnNoiseLedger(LiveLedger):
    """A live ledger in which replicate r sees the noise of seeds[r], however the replicates are batched."""

    def __init__(self, seeds: list[int], keeps_transcript: bool = False) -> None:
        self._own = OwnNoise(seeds)
        super().__init__(len(seeds), self._own, keeps_transcript=keeps_transcript)

    def release(self, mechanism, value, *, records, reps=None, carried=None):  # type: ignore[no-untyped-def]
        self._own.rows = np.arange(self.n_reps) if reps is None else reps
        return super().release(mechanism, value, records=records, reps=reps, carried=carried)


def span(start: int | list[int], stop: int | list[int], n_rows: int = 1) -> Span:
    """A span of records: one for all rows, or one a row."""
    return Span(*(np.broadcast_to(np.asarray(end, dtype=np.int64), n_rows).copy() if np.ndim(end) == 0
                  else np.asarray(end, dtype=np.int64) for end in (start, stop)))  # fmt: skip
