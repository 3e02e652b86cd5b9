"""Faults of building blocks: what can be done wrong in one continual sum or one matrix mechanism on its own test problem.

Each takes an honest problem of `bandana.audits.testbeds.blocks` apart where implementations go wrong, and keeps its claim.
mu0 is the claim; a factor is what the fault makes of it, for the least favorable pair of the problem's table. No audit alone
sees all faults: noise that is shared or too small leaves every exact value, span and charge as they should be, and a score
that believes the declared law does not see that two releases together are exact; a sum that a record enters twice has noise
as declared.

Faults that cost utility and no privacy stand apart (`UTILITY_FAULTS`): an audit of privacy must not take them for leaks.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import ALL, BOTH, DRAWN, MUCH, Control, State, extended, fault_of, planted_as, with_part
from bandana.audits.outcome import DETERMINISTIC, NOISE
from bandana.audits.testbeds.blocks import GramBed, Released
from bandana.privacy_core import (
    DoublingSum,
    Exact,
    Ledger,
    LocalSum,
    Mechanism,
    NoiseSource,
    Span,
    SymmetricGaussian,
    TreeSum,
)
from bandana.privacy_core.accounting.factorization import square_root_coefficients
from bandana.privacy_core.sums import Counted


def _sqrt_of_the_deviation(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """The square root of the deviation sqrt(5) mu0 is taken for it (5^(1/4) mu0)."""
    return releases.scaled(mechanism, mechanism.scale**-0.5).draw(noise, value)


def _upper_triangle_only(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """The lower triangle stays exact (no privacy)."""
    return np.asarray(value + np.triu(releases.noise_of(mechanism, noise, value)))


def _no_noise_on_the_diagonal(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """The diagonal stays exact (no privacy)."""
    added = releases.noise_of(mechanism, noise, value)
    diagonal = np.arange(added.shape[-2])
    added[..., diagonal, diagonal] = 0.0
    return np.asarray(value + added)


def _made_positive(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """The matrix is shifted by the least eigenvalue of its own noise, if that is below 0 (no privacy)."""
    added = releases.noise_of(mechanism, noise, value)
    square = added[..., : added.shape[-2]]
    shift = np.maximum(0.0, -np.linalg.eigvalsh(square)[..., 0])
    square += shift[..., None, None] * np.eye(added.shape[-2])
    return np.asarray(value + added)


def _one_noise_for_matrix_and_vector(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Matrix and vector are drawn from one seed: a combination of them is exact (no privacy)."""
    drawn = mechanism.whiten(releases.noise_of(mechanism, noise, value))
    drawn[:, -value.shape[-2] :] = drawn[:, : value.shape[-2]]
    return np.asarray(value + mechanism.color(drawn, value.shape))


class _NoiseAtTheServer(LocalSum):
    """Messages arrive without noise and the server adds it (no local privacy)."""

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        rows = slice(None) if reps is None else reps
        memory.total[rows] += ledger.release(Exact(), value.copy(), records=records, reps=reps)
        return ledger.release(self.mechanism, memory.total[rows].copy(), records=records, reps=reps)


def _first_segment_for_all(sums: DoublingSum) -> DoublingSum:
    return replace(sums, build=lambda n_steps: TreeSum(sums.mechanism, n_steps))


class _SquaresToo(GramBed):
    """Releases the outer product of (x, y) with itself, with the noise that (x x^T, y x) needs."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.dimension + 1, self.dimension + 1)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, d + 1, d + 1)"""
        x, y = self.features(record)
        both = np.column_stack([x, y])
        return np.asarray(both[:, :, None] * both[:, None, :])

    def decide(self, released: Released) -> IntArray:
        return self.prefer(released.statistic[:, : self.dimension])


def _squares_too(honest: GramBed) -> GramBed:
    """The fault on the pair that is least favorable to it: y = Y against the orthogonal (-x, 1/Y)."""
    with_noise = with_part(lambda own: SymmetricGaussian(own.sensitivity, own.noise_multiplier), "mechanism")
    on_pair = replace(honest, turn=math.pi, last_value=1 / honest.value_bound)
    faulty: GramBed = planted_as(_SquaresToo)(with_part(with_noise)(on_pair))
    return faulty


class _DecidesFromExact(GramBed):
    """The next action is chosen from the un-noised Gram matrix (no privacy)."""

    def init(self, n_reps: int) -> tuple[State, Released]:
        """The honest states, with exact sums, (n_reps, ...), kept as well."""
        sensitive, released = super().init(n_reps)
        return extended(sensitive, exact=np.zeros((n_reps, *self.shape))), released

    def absorb(self, sensitive: State, released: Released, record: Record, ledger: Ledger) -> tuple[State, Released]:
        exact = sensitive.exact + self.contribution(record)
        inner, released = super().absorb(sensitive, released, record, ledger)
        return extended(inner, exact=exact), released._replace(statistic=exact)


class _RefusesLargeNoise(_DecidesFromExact):
    """A release is used only if the norm of its noise is small (no privacy)."""

    def absorb(self, sensitive: State, released: Released, record: Record, ledger: Ledger) -> tuple[State, Released]:
        exact = sensitive.exact + self.contribution(record)
        inner, after = GramBed.absorb(self, sensitive, released, record, ledger)
        norm = np.linalg.norm(after.statistic - exact, axis=(1, 2))
        is_large = norm > 2 * self.sums.noise_deviation(1)
        statistic = np.where(is_large[:, None, None], released.statistic, after.statistic)
        return extended(inner, exact=exact), after._replace(statistic=statistic)


class _FeaturesNotClipped(GramBed):
    """Features are twice as long as the noise is made for (2 mu0)."""

    def features(self, record: Record) -> tuple[FloatArray, FloatArray]:
        x, y = super().features(record)
        return 2 * x, y


_NODE = replace(regression.ONE_NODE, factor=math.sqrt(5))
_SQUARE_ROOT = fault_of(_sqrt_of_the_deviation, DRAWN, how=releases.misdrawn, factor=5**0.25)
_UNCLIPPED = replace(releases.WIDE_RANGE, factor=5.0)

CONTROLS_OF_SUMS: dict[str, tuple[Control, ...]] = {
    "tree": (
        replace(
            regression.PREFIX_NOISE_REDRAWN, plant=with_part(regression.redrawn_prefixes),
            factor=math.sqrt(sum(1 / t.bit_count() for t in range(1, 25)) / 5),
        ),
        releases.ONE_A_LEVEL,
        _NODE,
        Control(
            "levels-off-by-one", "the noise counts one node too few (sqrt(5/4) mu0, 1.05 at T = 1024)",
            regression.recalibrated(lambda sums: math.sqrt(1 - 1 / sums.structure.n_nodes)), BOTH, math.sqrt(5 / 4), MUCH,
        ),
        _SQUARE_ROOT,
        _UNCLIPPED,
        releases.FIRST_UNPAID,
        fault_of(releases.seed_of_its_own, (NOISE,), how=releases.planted),
    ),
    "tree-uneven": (_NODE, _UNCLIPPED),
    "honaker": (releases.ONE_A_LEVEL, _NODE, _SQUARE_ROOT),
    "factorized": (
        Control(
            "columns-not-normalized", "the square root's columns have norms above 1 (sqrt(sum_k c_k^2) mu0)",
            with_part(planted_as(regression.NotNormalizedSum)), BOTH, float(np.linalg.norm(square_root_coefficients(24))),
        ),
        Control(
            "longer-than-built-for", "one norm for all columns, that of 6 steps, in 24 steps (sqrt(gamma(24)/gamma(6)) mu0)",
            with_part(planted_as(regression.NotNormalizedSum, built_for=6)), BOTH,
            float(np.linalg.norm(square_root_coefficients(24)) / np.linalg.norm(square_root_coefficients(6))), MUCH,
        ),
        releases.REUSED_UNAWARE,
    ),
    "buffered": (_UNCLIPPED, releases.SQRT2_UNAWARE),
    "doubling": (
        Control(
            "first-segment's-noise", "later segments have more nodes and the first one's noise (sqrt(4/3) mu0)",
            with_part(_first_segment_for_all), BOTH, math.sqrt(4 / 3),
        ),
    ),
    "repeated": (
        releases.REUSED_UNAWARE,
        Control(
            "forgets-other-releases", "the noise is that of one release; a record lies in 24 (sqrt(24) mu0)",
            regression.recalibrated(lambda sums: sums.n_steps**-0.5), BOTH, math.sqrt(24),
        ),
    ),
    "local": (
        fault_of(_NoiseAtTheServer, ALL, how=lambda faulty: with_part(planted_as(faulty))),
        releases.SQRT2_UNAWARE,
    ),
    "phases": (
        Control(
            "one-noise-for-two-phases", "the second phase adds the first's noise: their difference is exact (no privacy)",
            releases.reusing(lambda request, memory: max(memory.n_calls, 1)), (NOISE,),
        ),
        Control(
            "fresh-instead-of-accumulated",
            "the running sum is released anew after each of L phases, with the noise of one (sqrt(L) mu0, L = 24)",
            with_part(lambda sums: regression.NoisedAnew(sums.mechanism, declares_all=True)), BOTH, math.sqrt(24),
        ),
        releases.FIRST_UNPAID,
    ),
    "elimination": (releases.ONE_FOR_ALL, releases.FIRST_UNPAID),
    "gram-joint": (
        fault_of(_one_noise_for_matrix_and_vector, (NOISE,), how=releases.misdrawn),
        fault_of(_RefusesLargeNoise),
        fault_of(_FeaturesNotClipped, factor=2.0),
    ),
    "gram-wide": (
        Control(
            "squares-too", "y^2 is released with the noise of (xx^T, yx), |y| <= 5 (1.84 mu0 and more)", _squares_too, BOTH,
            math.sqrt((26**2 + (1 + 1 / 25) ** 2) / 2) / 10,
        ),
    ),
    "gram-equal": (
        Control(
            "equal-taken-for-goe", "deviation derived for the GOE, noise of equal variances (sqrt(4.5)/2 = 1.06 mu0)",
            regression.recalibrated(lambda sums: 2 / math.sqrt(4.5)), (DETERMINISTIC,), math.sqrt(4.5) / 2,
        ),
    ),
    "gram-only": (
        replace(regression.HALF_FOR_GOE, plant=releases.scaled_by(2**-0.5), factor=math.sqrt(2)),
        fault_of(_upper_triangle_only, (NOISE,), how=releases.misdrawn),
        fault_of(_no_noise_on_the_diagonal, DRAWN, how=releases.misdrawn),
        fault_of(_made_positive, (NOISE,), how=releases.misdrawn),
        fault_of(_DecidesFromExact),
    ),
    "gram-repeated": (releases.REUSED_UNAWARE,),
    "gram-local": (releases.SQRT2_UNAWARE,),
}  # fmt: skip


class _NeverUpdates(GramBed):
    """The condition for an update never holds: nothing is released, and one action is played for ever (accounted: 0)."""

    def ends(self, left: IntArray, clock: IntArray) -> np.ndarray:
        """(n_reps,) whether a phase ends now: never."""
        return np.zeros(len(left), dtype=bool)


UTILITY_FAULTS: dict[str, tuple[Control, ...]] = {
    "tree": (
        Control(
            "leaf-noise",
            "nodes are sums of noisy leaves, with a node's noise on each leaf: a record meets one noise instead of 5, and "
            "the sum's noise grows with sqrt(t). Accounted and measured are mu0/sqrt(5): private, and 2.2 times too noisy",
            with_part(lambda sums: LocalSum(sums.mechanism)), (), 5**-0.5,
        ),
    ),
    "gram-joint": (
        fault_of(_NeverUpdates, (), factor=0.0),
    ),
}  # fmt: skip
