"""Faults of noisy sums: what can be done wrong by whatever keeps the sums of a regression, or any other running sums."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from scipy.linalg import toeplitz

from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.audits.faults.fault import DRAWN, Control, Host, Plant, State, fault_of, with_part
from bandana.audits.faults.releases import (
    Fault,
    Planted,
    half_taken_for_goe,
    last_record_alone,
    no_noise_on_the_diagonal,
    noise_one_late,
    planted,
    scaled,
    through,
    uneven,
)
from bandana.privacy_core import FactorizedSum, Ledger, Mechanism, PhaseSum, PhaseTotal, Span, TreeSum
from bandana.privacy_core.accounting.factorization import DenseFactorization, square_root_coefficients
from bandana.privacy_core.sums import Counted, RunningSum


@dataclass(frozen=True)
class NoisedAnew(RunningSum[Counted]):
    """The exact running sum, released at each step with fresh noise.

    Attributes:
      mechanism: with the noise of one release.
      honest: the sum whose answers are as noisy as each release; None: they have the noise of `mechanism`.
      declares_all: whether a release declares all records that it reads, or those of its step alone.
    """

    mechanism: Mechanism
    honest: RunningSum[State] | None = None
    declares_all: bool = False

    def remember_nothing(self, n_reps: int, shape: tuple[int, ...]) -> Counted:
        """An empty exact sum."""
        return Counted(np.zeros(n_reps, dtype=np.int64), np.zeros((n_reps, *shape)))

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Releases the whole sum."""
        rows, mechanism = slice(None) if reps is None else reps, self.mechanism
        memory.n_steps[rows] += 1
        memory.total[rows] += value
        if self.honest is not None:
            variance = self.honest.noise_variance(int(memory.n_steps[rows].max(initial=1)))
            mechanism = scaled(mechanism, math.sqrt(variance))
        declared = Span(np.zeros_like(records.start), records.stop) if self.declares_all else records
        return ledger.release(mechanism, memory.total[rows].copy(), records=declared, reps=reps)

    def noise_variance(self, step: int) -> float:
        """Variance of one release's noise, at every step."""
        return 1.0


@dataclass(frozen=True, eq=False)
class _NotNormalized(DenseFactorization):
    """The square root with columns of norm above 1, divided by one number only.

    Attributes:
      built_for: the number of steps for which the first column has norm 1; 1 divides by nothing.
    """

    built_for: int = 1

    @cached_property
    def encoder(self) -> FloatArray:
        """(n_steps, n_steps) C."""
        coefficients = square_root_coefficients(self.n_steps)
        norm = np.linalg.norm(coefficients[: self.built_for])
        return np.asarray(toeplitz(coefficients, np.zeros(self.n_steps)) / norm)


_not_normalized = lru_cache(maxsize=8)(_NotNormalized)


@dataclass(frozen=True)
class NotNormalizedSum(FactorizedSum):
    """A factorized sum whose columns are normalized for a stream of another length, or not at all."""

    built_for: int = 1

    @property
    def factorization(self) -> DenseFactorization:
        """B and C."""
        return _not_normalized(self.n_steps, self.built_for)


def sum_noised_anew(sums: RunningSum[State]) -> NoisedAnew:
    """All records enter each of n releases with fresh noise, one step is declared (sqrt(n) mu0)."""
    return NoisedAnew(sums.mechanism)


def _prefix_noise_redrawn(sums: RunningSum[State]) -> NoisedAnew:
    """Each read of the sums draws noise of their size anew."""
    return NoisedAnew(sums.mechanism, sums)


def redrawn_prefixes(sums: RunningSum[State]) -> NoisedAnew:
    """A tree each of whose prefixes has fresh noise, as much as its nodes have, and declares what it reads."""
    return NoisedAnew(sums.mechanism, sums, declares_all=True)


def _on_blocks(fault: Fault) -> Plant:
    """Plants a fault in the releases of blocks that are released one by one, and added up."""
    in_blocks = with_part(lambda sums: PhaseTotal(PhaseSum(sums.mechanism)))
    return lambda honest: planted(fault)(in_blocks(honest))


def recalibrated(factor: Callable[[Host], float]) -> Plant:
    """Plants noise that was calibrated with another number: accountant and noise agree, the claim is not kept."""
    return with_part(lambda sums: replace(sums, mechanism=sums.mechanism.scaled(factor(sums))))


def for_one(mechanism: Mechanism, n: int) -> float:
    """The factor on noise for one release in place of n: costs add up, for Gaussian noise their squares do."""
    return 1 / n if mechanism.norm == "L1" else 1 / math.sqrt(n)


def _counted_once(honest: Host) -> Host:
    """A record pays for one release, and is in several nodes of a tree, or rows of a factorization."""
    if isinstance(honest.sums, TreeSum):
        return planted(last_record_alone)(honest)
    return with_part(lambda sums: NotNormalizedSum(sums.mechanism, sums.n_steps))(honest)


def unevenly(shares: Callable[[int], FloatArray]) -> Plant:
    """Plants noise of which some entries have less than is declared, alike in each block of a release.

    Args:
      shares: number of free entries of a block -> (n_free,) share of the declared deviation in each.
    """

    def plant(honest: Algorithm) -> Planted:
        n = getattr(honest, "n_blocks", 1)
        return Planted(honest, through(lambda mechanism: uneven(mechanism, lambda n_free: np.tile(shares(n_free // n), n))))

    return plant


SUM_NOISED_ANEW = fault_of(sum_noised_anew, how=with_part)
NOISE_ONE_LATE = fault_of(noise_one_late, how=_on_blocks)
PREFIX_NOISE_REDRAWN = fault_of(_prefix_noise_redrawn, how=with_part)
COUNTED_ONCE = fault_of(_counted_once)
HALF_FOR_GOE = fault_of(half_taken_for_goe, DRAWN, how=unevenly)
NO_DIAGONAL = fault_of(no_noise_on_the_diagonal, DRAWN, how=unevenly)
ONE_NODE = Control(
    "budget-on-one-node", "The noise is that of one release; a record lies in several nodes (sqrt(5) mu0 where it is in 5)",
    recalibrated(lambda sums: for_one(sums.mechanism, sums.structure.n_nodes)),
)  # fmt: skip
