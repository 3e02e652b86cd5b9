"""Planted faults of the noise: what is released is right, what is added to it is not.

The algorithm and its accounting stay honest: the fault sits between the algorithm and the ledger. A mechanism that draws
otherwise than it declares keeps its declared density too, as an implementation that is wrong without knowing it would: the
score of a replay believes the declaration, and only what can be seen without that belief counts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.faults.wrapped import Behind
from bandana.privacy_core import Carried, Exact, Ledger, NoiseSource, ReproducibleNoise, Span


@dataclass(frozen=True)
class Misdrawn:
    """A mechanism that declares what the honest one declares, and draws otherwise.

    Attributes:
      honest: the mechanism that it pretends to be.
      drawing: (honest, noise, value) -> what it really releases.
    """

    honest: Any
    drawing: Callable[[Any, NoiseSource, FloatArray], FloatArray] = field(compare=False)

    def __getattr__(self, name: str) -> Any:
        """All else as the honest mechanism has it, its density too: the score of a replay believes the declaration."""
        if name.startswith("__") or name == "honest":
            raise AttributeError(name)
        return getattr(self.honest, name)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """The value with noise that is not the declared one."""
        return self.drawing(self.honest, noise, value)


@dataclass(frozen=True)
class Tampered(Behind):
    """A test problem whose releases pass through a wrapper.

    Attributes:
      tamper: (memory, call, mechanism, records) -> (the mechanism that is really used, what to do with the noise that it
        added, or None).
    """

    tamper: Callable[[dict[Hashable, Any], int, Any, Span], tuple[Any, Callable[[FloatArray], None] | None]]

    def remember_nothing(self, n_reps: int) -> dict[Hashable, Any]:
        """An empty memory."""
        return {}

    def hands(self, ledger: Ledger, memory: dict[Hashable, Any]) -> _Hands:
        """The ledger that is not what it seems."""
        return _Hands(ledger, self.tamper, memory)


class _Hands:
    """The ledger that a tampered bed gets."""

    def __init__(self, ledger: Ledger, tamper: Callable[..., Any], memory: dict[Hashable, Any]) -> None:
        self.n_reps = ledger.n_reps
        self._ledger, self._tamper, self._memory = ledger, tamper, memory

    def release(
        self,
        mechanism: Any,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        """Releases through the ledger with the mechanism that the tampering chooses."""
        call = self._memory["calls"] = self._memory.get("calls", -1) + 1
        used, keep = self._tamper(self._memory, call, mechanism, records)
        output = self._ledger.release(used, value, records=records, reps=reps, carried=carried)
        if keep is not None:
            keep(output - value)
        return output


def drawing_by(drawing: Callable[[Any, NoiseSource, FloatArray], FloatArray]) -> Callable[[Any], Any]:
    """Plants noise that is not the declared one into every release."""
    return lambda honest: Tampered(honest, lambda memory, call, mechanism, records: (Misdrawn(mechanism, drawing), None))


def reusing(key: Callable[[int, Span], Hashable]) -> Callable[[Any], Any]:
    """Plants noise that is drawn once for all releases of a key, and added again.

    It holds where all replicates keep step.
    """

    def tamper(memory: dict[Hashable, Any], call: int, mechanism: Any, records: Span) -> Any:
        name = ("noise", key(call, records))
        if name in memory:
            return Misdrawn(mechanism, lambda honest, noise, value: value + memory[name]), None
        return Misdrawn(mechanism, lambda honest, noise, value: honest.draw(noise, value)), partial(memory.__setitem__, name)

    return lambda honest: Tampered(honest, tamper)


def length_of(call: int, records: Span) -> Hashable:
    """How many records a node holds: its level."""
    return int(records.stop[0] - records.start[0])


def first_exact(honest: Any) -> Any:
    """Plants a first release without noise."""
    return Tampered(honest, lambda memory, call, mechanism, records: (Exact() if call == 0 else mechanism, None))


def own_seed(honest: Any) -> Any:
    """Plants noise from a generator that the code seeds by itself, each release differently."""

    def tamper(memory: dict[Hashable, Any], call: int, mechanism: Any, records: Span) -> Any:
        own = ReproducibleNoise(np.random.SeedSequence(call))
        return Misdrawn(mechanism, lambda honest, noise, value: honest.draw(own, value)), None

    return Tampered(honest, tamper)


def scaled_by(factor: float) -> Callable[[Any], Any]:
    """Plants noise of `factor` times the declared size."""
    return drawing_by(lambda mechanism, noise, value: mechanism.scaled(factor).draw(noise, value))


def square_root_of_the_scale(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Noise whose deviation is the square root of the declared one."""
    return np.asarray(mechanism.scaled(mechanism.scale**-0.5).draw(noise, value))


def one_for_all(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """One scalar draw, added to all coordinates."""
    return np.asarray(value + mechanism.draw(noise, np.zeros((len(value), 1))))


def noise_of(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """What the mechanism adds, in the shape of the value."""
    return np.asarray(mechanism.draw(noise, np.zeros_like(value)))


def upper_only(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Noise on and above the diagonal, none below it."""
    return np.asarray(value + np.triu(noise_of(mechanism, noise, value)))


def no_diagonal(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Noise off the diagonal, none on it."""
    added = noise_of(mechanism, noise, value)
    diagonal = np.arange(added.shape[-2])
    added[..., diagonal, diagonal] = 0.0
    return np.asarray(value + added)


def made_positive(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Shifted by as much as this noise needs to be positive semidefinite."""
    added = noise_of(mechanism, noise, value)
    square = added[..., : added.shape[-2]]
    shift = np.maximum(0.0, -np.linalg.eigvalsh(square)[..., 0])
    square += shift[..., None, None] * np.eye(added.shape[-2])
    return np.asarray(value + added)


def same_for_matrix_and_vector(mechanism: Any, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Noise of both parts from one seed: the vector's draws are the matrix's first ones."""
    drawn = mechanism.whiten(noise_of(mechanism, noise, value))
    drawn[:, -value.shape[-2] :] = drawn[:, : value.shape[-2]]
    return np.asarray(value + mechanism.color(drawn, value.shape))
