"""Planted faults of the continual sums and matrix mechanisms: an audit that misses one of them has no power.

Each takes an honest bed of `bandana.audits.testbeds.blocks` apart where implementations go wrong, and keeps its claim. mu0
is the claim; a factor is what the fault makes of it, for the least favorable pair of the bed's table. Three audits look:
replays (`SAMPLING`), the deterministic audit (`DETERMINISTIC`), and the noise audit (`NOISE`). None of them alone
sees all faults: noise that is shared or too small leaves every exact value, span and charge as it should be, and a score
that believes the declared law does not see that two releases together are exact; a sum that a record enters twice has noise
as declared.

Faults that cost utility and no privacy stand apart (`UTILITY_FAULTS`): an audit of privacy must not take them for leaks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import toeplitz

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.tampering import (
    drawing_by,
    first_exact,
    length_of,
    made_positive,
    no_diagonal,
    one_for_all,
    own_seed,
    reusing,
    same_for_matrix_and_vector,
    scaled_by,
    square_root_of_the_scale,
    upper_only,
)
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.audits.testbeds.blocks import GramBed, Released, RepeatedSum
from bandana.privacy_core import (
    DoublingSum,
    Exact,
    FactorizedSum,
    Interval,
    Ledger,
    LocalSum,
    PhaseTotal,
    Span,
    SymmetricGaussian,
    TreeSum,
)
from bandana.privacy_core.factorization import DenseFactorization, square_root_coefficients
from bandana.privacy_core.sums import Counted

LITTLE, MUCH = 20_000, 100_000
"""Replays on each side: what most faults take, and what small factors take."""


@dataclass(frozen=True)
class SumControl(Control):
    """A planted fault with its size.

    Attributes:
      factor: true mu over the claimed one on the bed's pairs; infinite where no privacy is left.
      replays: on each side, with which the sampling audit catches it at mu0 = 1 and 95 %, if it must.
    """

    factor: float = math.inf
    replays: int = LITTLE


# ---- Faults of the sum: what is released is not what was declared --------------------------------------------------------


def _with_sum(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda honest: replace(honest, sums=change(honest.sums))


def _multiplied(factor: Callable[[Any], float]) -> Callable[[Any], Any]:
    """A sum whose noise was calibrated with another number: accountant and noise agree, the claim is not kept."""
    return _with_sum(lambda sums: replace(sums, mechanism=sums.mechanism.scaled(factor(sums))))


class _Redrawn(RepeatedSum):
    """A tree's prefixes, of which each read draws the noise of all its nodes anew."""

    def mechanism_at(self, step: int) -> Any:
        """The mechanism with the noise of as many nodes as the step has binary digits 1."""
        return self.mechanism.scaled(math.sqrt(step.bit_count()))


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


class _AtTheServer(LocalSum):
    """Messages arrive as they are; the server adds noise to the running sum."""

    def push(self, memory: Counted, value: FloatArray, records: Span, ledger: Ledger, reps: IntArray | None) -> FloatArray:
        """Every message is seen by the server."""
        rows = slice(None) if reps is None else reps
        memory.total[rows] += ledger.release(Exact(), value.copy(), records=records, reps=reps)
        return ledger.release(self.mechanism, memory.total[rows].copy(), records=records, reps=reps)


def _first_segment_for_all(sums: DoublingSum) -> DoublingSum:
    first = sums.mechanism
    return replace(sums, build=lambda n_steps: TreeSum(first, n_steps))


def _fresh_instead_of_accumulated(sums: PhaseTotal) -> RepeatedSum:
    return RepeatedSum(sums.mechanism, n_steps=2**31)


# ---- Faults of the bed: what is decided or contributed ------------------------------------------------------------------


def _not_clipped(honest: Any) -> Any:
    span = honest.reward_range
    return replace(honest, reward_range=Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width))


class _SquaresToo(GramBed):
    """Releases the outer product of (x, y) with itself, with the noise that (x x^T, y x) needs."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(d + 1, d + 1)"""
        return (self.dimension + 1, self.dimension + 1)

    def contribution(self, record: Record) -> FloatArray:
        """(n_reps, d + 1, d + 1)"""
        x, y = self.features(record)
        both = np.column_stack([x, y])
        return np.asarray(both[:, :, None] * both[:, None, :])

    def decide(self, released: Released) -> IntArray:
        """The next action, decided from the part of the statistic that the honest algorithm releases."""
        return self.prefer(released.statistic[:, : self.dimension])


def _squares_too(honest: GramBed) -> GramBed:
    """The fault on the pair that is least favorable to it: y = Y against the orthogonal (-x, 1/Y)."""
    sums: Any = honest.sums
    noise = SymmetricGaussian(sums.mechanism.sensitivity, sums.mechanism.noise_multiplier)
    planted: GramBed = planted_as(_SquaresToo)(
        replace(honest, sums=replace(sums, mechanism=noise), turn=math.pi, last_value=1 / honest.value_bound)
    )
    return planted


class _Peeking(NamedTuple):
    """A sensitive state with the exact sum beside the released one."""

    sum: Any
    exact: FloatArray


class _DecidesFromExact(GramBed):
    """The next action is chosen from the un-noised Gram matrix."""

    def init(self, n_reps: int) -> tuple[Any, Released]:
        """The honest states, with exact sums kept as well."""
        sensitive, released = super().init(n_reps)
        return _Peeking(sensitive.sum, np.zeros((n_reps, *self.shape))), released

    def absorb(self, sensitive: Any, released: Released, record: Record, ledger: Ledger) -> tuple[Any, Released]:
        """Puts the exact sum where the noisy one belongs."""
        exact = sensitive.exact + self.contribution(record)
        inner, released = super().absorb(sensitive, released, record, ledger)
        return _Peeking(inner.sum, exact), released._replace(statistic=exact)


class _RefusesLargeNoise(_DecidesFromExact):
    """A release whose realized noise is large is not used: an early stop that looks at the noise itself."""

    def absorb(self, sensitive: Any, released: Released, record: Record, ledger: Ledger) -> tuple[Any, Released]:
        """Keeps the last statistic where the noise's norm is above twice its deviation."""
        exact = sensitive.exact + self.contribution(record)
        inner, after = GramBed.absorb(self, sensitive, released, record, ledger)
        norm = np.linalg.norm(after.statistic - exact, axis=(1, 2))
        is_large = norm > 2 * self.sums.noise_deviation(1)
        statistic = np.where(is_large[:, None, None], released.statistic, after.statistic)
        return _Peeking(inner.sum, exact), after._replace(statistic=statistic)


class _Doubled(GramBed):
    """Doubles the length of every x that it absorbs."""

    def features(self, record: Record) -> tuple[FloatArray, FloatArray]:
        """The honest features with x doubled, of norm up to 2 R."""
        x, y = super().features(record)
        return 2 * x, y


# ---- The lists ------------------------------------------------------------------------------------------------------------


def _control(
    name: str,
    fault: str,
    plant: Callable[[Any], Any],
    caught_by: tuple[str, ...],
    factor: float = math.inf,
    replays: int = LITTLE,
) -> SumControl:
    return SumControl(name, fault, plant, caught_by, factor, replays)


def _tree_nodes(sums: Any) -> int:
    return int(sums.structure.n_nodes)


BOTH = (SAMPLING, DETERMINISTIC)
DRAWN = (SAMPLING, NOISE)

_ONE_NODE = _control(
    "budget-on-one-node", "the noise is that of one release; a record lies in 5 nodes (sqrt(5) mu0)",
    _multiplied(lambda sums: _tree_nodes(sums) ** -0.5), BOTH, math.sqrt(5),
)  # fmt: skip
_SHARED_LEVEL = _control(
    "one-noise-a-level", "all nodes of a level add the same noise: their differences are exact (no privacy)",
    reusing(length_of), (NOISE,),
)  # fmt: skip
_SQUARE_ROOT = _control(
    "sqrt-of-the-deviation", "the square root of the deviation sqrt(5) mu0 is taken for it (5^(1/4) mu0)",
    drawing_by(square_root_of_the_scale), DRAWN, 5**0.25,
)  # fmt: skip
_UNCLIPPED = _control(
    "not-clipped", "a reward outside the declared range is not clipped (mu0 times its size, here 5)", _not_clipped, BOTH, 5.0
)

_TOO_SMALL = _control(
    "deviation-sqrt-2-too-small", "the noise is sqrt(2) below its own formula (sqrt(2) mu0)",
    scaled_by(2**-0.5), DRAWN, math.sqrt(2),
)  # fmt: skip

CONTROLS_OF_SUMS: dict[str, tuple[SumControl, ...]] = {
    "tree": (
        _control(
            "prefix-noise-redrawn",
            "a read of a prefix draws the noise of its nodes anew (sqrt(sum_t 1/popcount(t)) mu_node; 1.60 mu0 at T = 24)",
            _with_sum(lambda sums: _Redrawn(sums.mechanism, sums.n_steps)), BOTH,
            math.sqrt(sum(1 / t.bit_count() for t in range(1, 25)) / 5),
        ),
        _SHARED_LEVEL,
        _ONE_NODE,
        _control(
            "levels-off-by-one", "the noise counts one node too few (sqrt(5/4) mu0, 1.05 at T = 1024)",
            _multiplied(lambda sums: math.sqrt(1 - 1 / _tree_nodes(sums))), BOTH, math.sqrt(5 / 4), MUCH,
        ),
        _SQUARE_ROOT,
        _UNCLIPPED,
        _control("first-node-exact", "the first node leaves without noise (no privacy)", first_exact, (*BOTH, NOISE)),
        _control(
            "seed-of-its-own", "noise comes from a seed in the code: who reads the code subtracts it (no privacy)",
            own_seed, (NOISE,),
        ),
    ),
    "tree-uneven": (_ONE_NODE, _UNCLIPPED),
    "honaker": (_SHARED_LEVEL, _ONE_NODE, _SQUARE_ROOT),
    "factorized": (
        _control(
            "columns-not-normalized", "the square root's columns have norms above 1 (sqrt(sum_k c_k^2) mu0)",
            _with_sum(planted_as(NotNormalizedSum)), BOTH, float(np.linalg.norm(square_root_coefficients(24))),
        ),
        _control(
            "longer-than-built-for", "one norm for all columns, that of 6 steps, in 24 steps (sqrt(gamma(24)/gamma(6)) mu0)",
            _with_sum(planted_as(NotNormalizedSum, built_for=6)), BOTH,
            float(np.linalg.norm(square_root_coefficients(24)) / np.linalg.norm(square_root_coefficients(6))), MUCH,
        ),
        _control(
            "one-noise-for-all-rows", "all rows add the same noise: their differences are exact (no privacy)",
            reusing(lambda call, records: 0), (NOISE,),
        ),
    ),
    "buffered": (_UNCLIPPED, _TOO_SMALL),
    "doubling": (
        _control(
            "first-segment's-noise", "later segments have more nodes and the first one's noise (sqrt(4/3) mu0)",
            _with_sum(_first_segment_for_all), BOTH, math.sqrt(4 / 3),
        ),
    ),
    "repeated": (
        _control(
            "one-noise-for-all-prefixes", "every prefix adds the same noise: their differences are exact (no privacy)",
            reusing(lambda call, records: 0), (NOISE,),
        ),
        _control(
            "forgets-other-releases", "the noise is that of one release; a record lies in 24 (sqrt(24) mu0)",
            _multiplied(lambda sums: sums.n_steps**-0.5), BOTH, math.sqrt(24),
        ),
    ),
    "local": (
        _control(
            "noise-at-the-server", "messages arrive without noise and the server adds it (no local privacy)",
            _with_sum(planted_as(_AtTheServer)), (*BOTH, NOISE),
        ),
        _TOO_SMALL,
    ),
    "phases": (
        _control(
            "one-noise-for-two-phases", "the second phase adds the first's noise: their difference is exact (no privacy)",
            reusing(lambda call, records: max(call, 1)), (NOISE,),
        ),
        _control(
            "fresh-instead-of-accumulated",
            "the running sum is released anew after each of L phases, with the noise of one (sqrt(L) mu0, L = 24)",
            _with_sum(_fresh_instead_of_accumulated), BOTH, math.sqrt(24),
        ),
        _control(
            "noise-off-by-one", "the l-th total holds the noise of phases m <= l - 1: the first is exact (no privacy)",
            first_exact, (*BOTH, NOISE),
        ),
    ),
    "elimination": (
        _control(
            "one-noise-for-all-arms", "one scalar draw is added to all arms and cancels between them (no privacy)",
            drawing_by(one_for_all), DRAWN,
        ),
        _control("first-pulls-exact", "the first phase's sums have no noise (no privacy)", first_exact, (*BOTH, NOISE)),
    ),
    "gram-joint": (
        _control(
            "one-noise-for-matrix-and-vector", "both are drawn from one seed: a combination of them is exact (no privacy)",
            drawing_by(same_for_matrix_and_vector), (NOISE,),
        ),
        _control(
            "refuses-large-noise", "a release is used only if the norm of its noise is small (no privacy)",
            planted_as(_RefusesLargeNoise), BOTH,
        ),
        _control("feature-not-clipped", "|x| <= 1 is taken on trust, and is 2 (2 mu0)", planted_as(_Doubled), BOTH, 2.0),
    ),
    "gram-wide": (
        _control(
            "squares-too", "y^2 is released with the noise of (xx^T, yx), |y| <= 5 (1.84 mu0 and more)", _squares_too, BOTH,
            math.sqrt((26**2 + (1 + 1 / 25) ** 2) / 2) / 10,
        ),
    ),
    "gram-equal": (
        _control(
            "equal-taken-for-goe", "deviation derived for the GOE, noise of equal variances (sqrt(4.5)/2 = 1.06 mu0)",
            _multiplied(lambda sums: 2 / math.sqrt(4.5)), (DETERMINISTIC,), math.sqrt(4.5) / 2,
        ),
    ),
    "gram-only": (
        _control(
            "half-taken-for-goe", "(Z + Z^T)/2 is drawn where (Z + Z^T)/sqrt(2) was calibrated (sqrt(2) mu0)",
            scaled_by(2**-0.5), DRAWN, math.sqrt(2),
        ),
        _control(
            "upper-triangle-only", "the lower triangle stays exact (no privacy)", drawing_by(upper_only), (NOISE,),
        ),
        _control("no-noise-on-the-diagonal", "the diagonal stays exact (no privacy)", drawing_by(no_diagonal), DRAWN),
        _control(
            "made-positive", "the matrix is shifted by the least eigenvalue of its own noise (no privacy)",
            drawing_by(made_positive), (NOISE,),
        ),
        _control(
            "decides-from-exact", "the next action is chosen from the un-noised matrix (no privacy)",
            planted_as(_DecidesFromExact),
            BOTH,
        ),
    ),
    "gram-repeated": (
        _control(
            "same-noise-every-round", "consecutive rounds add the same noise: differences are x x^T exactly (no privacy)",
            reusing(lambda call, records: 0), (NOISE,),
        ),
    ),
    "gram-local": (_TOO_SMALL,),
}  # fmt: skip


# ---- Faults that cost utility only ----------------------------------------------------------------------------------------


def _leaf_noise(sums: TreeSum) -> LocalSum:
    """Every leaf carries a node's noise, and nodes are sums of noisy leaves."""
    return LocalSum(sums.mechanism)


class _NeverEnds:
    """Phases whose condition is never met."""

    def ends(self, left: IntArray, clock: IntArray) -> np.ndarray:
        """(n_reps,) whether a phase ends now: never."""
        return np.zeros(len(left), dtype=bool)


class _NeverUpdates(_NeverEnds, GramBed):
    """A Gram bed that plays one action for ever."""


UTILITY_FAULTS: dict[str, tuple[SumControl, ...]] = {
    "tree": (
        _control(
            "leaf-noise",
            "nodes are sums of noisy leaves, with a node's noise on each leaf: a record meets one noise instead of 5, and "
            "the sum's noise grows with sqrt(t). Accounted and measured are mu0/sqrt(5): private, and 2.2 times too noisy",
            _with_sum(_leaf_noise), (), 5**-0.5,
        ),
    ),
    "gram-joint": (
        _control(
            "never-updates",
            "the condition for an update is never met: nothing is released and one action is played for ever. Accounted and "
            "measured are 0",
            planted_as(_NeverUpdates), (), 0.0,
        ),
    ),
}  # fmt: skip
