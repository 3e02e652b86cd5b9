"""Where noise comes from."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Shape = int | tuple[int, ...]


class NoiseSource(Protocol):
    """Draws standard noise; `name` goes into the ledger's summary and the report."""

    name: str

    def normal(self, shape: Shape) -> NDArray[np.float64]:
        """Independent N(0, 1)."""
        ...

    def laplace(self, shape: Shape) -> NDArray[np.float64]:
        """Independent Laplace of scale 1."""
        ...


class ReproducibleNoise:
    """Noise for experiments and audits: the same seed gives the same run.

    It is not for deployment: its seed is known, and a floating-point Gaussian leaks through its low-order bits
    (Mironov 2012); `docs/pitfalls.md` says how far.
    """

    name = "reproducible (NumPy SFC64)"

    def __init__(self, seed: np.random.SeedSequence) -> None:
        self._generator = np.random.Generator(np.random.SFC64(seed))

    def normal(self, shape: Shape) -> NDArray[np.float64]:
        """Independent N(0, 1)."""
        return self._generator.standard_normal(shape)

    def laplace(self, shape: Shape) -> NDArray[np.float64]:
        """Independent Laplace of scale 1."""
        return self._generator.laplace(size=shape)
