"""Planted faults for anybody's algorithm: the same algorithm, whose releases pass through a ledger that cheats.

What an algorithm does is unknown here, but all its noise comes from `ledger.release`; so the faults sit there. A faulty
ledger books the price that the mechanism asks for and adds less noise, or the same noise twice, or none. Each mechanism that
it releases through knows its true law, so that the likelihood ratio of the transcript stays exact and the audit of a
planted fault is as sharp as that of the honest algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control
from bandana.audits.faults.tampering import noise_of
from bandana.audits.faults.wrapped import Behind, Wrapped
from bandana.audits.outcome import SAMPLING
from bandana.privacy_core import Carried, Event, Exact, Interval, Ledger, Mechanism, NoiseSource, Relation, Span

BoolArray = NDArray[np.bool_]
_ROUNDING = 1e-9


# --- mechanisms that cheat -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Pretending:
    """A mechanism that declares the sensitivity and the price of another one."""

    declared: Any
    """The mechanism that the algorithm asked for."""

    def __eq__(self, other: object) -> bool:
        """Whether both pretend to be the same in the same way; hidden state does not count, as schedules are compared."""
        return type(self) is type(other) and self.declared == other.declared

    def __hash__(self) -> int:
        return hash((type(self), self.declared))

    @property
    def relation(self) -> Relation | None:
        """The declared mechanism's neighboring relation."""
        return self.declared.relation  # type: ignore[no-any-return]

    @property
    def norm(self) -> str:
        """The declared mechanism's norm."""
        return str(self.declared.norm)

    @property
    def sensitivity(self) -> float:
        """The declared mechanism's sensitivity."""
        return float(self.declared.sensitivity)

    @property
    def scale(self) -> float:
        """The declared mechanism's noise scale."""
        return self.declared.scale  # type: ignore[no-any-return]

    @property
    def deviation(self) -> float:
        """The declared mechanism's noise deviation."""
        return float(self.declared.deviation)

    @property
    def event(self) -> Event:
        """The price of the declared mechanism."""
        return self.declared.event  # type: ignore[no-any-return]

    def whiten(self, value: FloatArray) -> FloatArray:
        """Whitens a value as the declared mechanism does."""
        return np.asarray(self.declared.whiten(value))

    def color(self, whitened: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        """Colors a whitened value as the declared mechanism does."""
        return np.asarray(self.declared.color(whitened, shape))

    def change(self, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) size of a change, as the declared mechanism measures it."""
        return np.asarray(self.declared.change(value, neighbor))


@dataclass(frozen=True, eq=False)
class Weakened(Pretending):
    """Less noise than is paid for.

    Attributes:
      share: of the declared noise that is drawn.
    """

    share: float = 1.0

    @property
    def true(self) -> Mechanism:
        """The mechanism that draws."""
        return self.declared.scaled(self.share)  # type: ignore[no-any-return]

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus too little noise."""
        return self.true.draw(noise, value)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) of the true law."""
        return self.true.log_density_ratio(output, value, neighbor)


@dataclass(frozen=True, eq=False)
class ExactInSome(Pretending):
    """A mechanism that adds no noise to some rows.

    Attributes:
      is_exact: (n_rows,) where the value leaves as it is.
    """

    is_exact: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value`, with noise in the other rows only."""
        return np.where(_rows(self.is_exact, value), value, self.declared.draw(noise, value))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): minus infinity where an exact row differs."""
        honest = self.declared.log_density_ratio(output, value, neighbor)
        if len(self.is_exact) != len(output):  # rows of schedules that part: any score is valid, this one tells less
            return np.asarray(honest)
        return np.where(self.is_exact, Exact().log_density_ratio(output, value, neighbor), honest)


@dataclass(frozen=True, eq=False)
class Reusing(Pretending):
    """The noise of the release before, where there was one.

    Attributes:
      kept: (n_rows, ...) that noise.
      has_kept: (n_rows,) whether there was one.
    """

    kept: FloatArray = field(default_factory=lambda: np.zeros(0))
    has_kept: BoolArray = field(default_factory=lambda: np.zeros(0, dtype=bool))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus the old noise, fresh noise where there is none yet."""
        return np.where(_rows(self.has_kept, value), value + self.kept, self.declared.draw(noise, value))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,): given what was released before, the output is known: 0 if the neighbor gives it too, else -infinity.

        This instance stands on the neighbor's side: `kept` is the noise that the neighbor's earlier value leaves.
        """
        honest = self.declared.log_density_ratio(output, value, neighbor)
        if len(self.has_kept) != len(output):
            return np.asarray(honest)
        missed = np.abs(output - (neighbor + self.kept)) > _ROUNDING * (1 + np.abs(output))
        known = np.where(missed.reshape(len(output), -1).any(axis=1), -np.inf, 0.0)
        return np.where(self.has_kept, known, honest)


def _rows(mask: BoolArray, value: FloatArray) -> BoolArray:
    return mask.reshape(len(mask), *[1] * (value.ndim - 1))


# --- ledgers that cheat --------------------------------------------------------------------------------------------


class Memory(NamedTuple):
    """What a faulty ledger remembers of a run, kept in the sensitive state: nothing outlives the run."""

    n_releases: IntArray
    """(n_reps,) releases so far."""
    noise: dict[tuple[int, ...], tuple[FloatArray, BoolArray]]
    """Shape of a value -> (n_reps, ...) noise of the last release of that shape, and (n_reps,) whether there was one."""


class Fault(Protocol):
    """One way to cheat at a release."""

    def __call__(
        self,
        ledger: Ledger,
        memory: Memory,
        mechanism: Mechanism,
        value: FloatArray,
        records: Span,
        reps: IntArray | None,
        carried: Carried | None,
    ) -> FloatArray:
        """Releases as the fault does."""
        ...


@dataclass
class FaultyView:
    """The ledger as a planted algorithm sees it."""

    ledger: Ledger
    memory: Memory
    fault: Fault

    def __post_init__(self) -> None:
        self.n_reps = self.ledger.n_reps

    def release(
        self,
        mechanism: Mechanism,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        """Releases through the ledger in the way that the fault decides."""
        output = self.fault(self.ledger, self.memory, mechanism, value, records, reps, carried)
        self.memory.n_releases[slice(None) if reps is None else reps] += 1
        return output


@dataclass(frozen=True)
class Planted(Behind):
    """An algorithm behind a faulty ledger; it claims what the honest one claims.

    Attributes:
      fault: how its ledger cheats.
    """

    fault: Fault

    def remember_nothing(self, n_reps: int) -> Memory:
        """An empty memory: no releases, no noise."""
        return Memory(np.zeros(n_reps, dtype=np.int64), {})

    def hands(self, ledger: Ledger, memory: Memory) -> FaultyView:
        """The ledger that cheats."""
        return FaultyView(ledger, memory, self.fault)


@dataclass(frozen=True)
class Unclipped(Wrapped):
    """An algorithm that tells the loop a range so wide that nothing is clipped, and itself counts on the declared one."""

    @property
    def reward_range(self) -> Interval:
        """2001 times as wide as the honest algorithm's."""
        span = self.honest.reward_range
        return Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width)

    def absorb(self, sensitive: Any, released: Any, record: Record, ledger: Ledger) -> tuple[Any, Any]:
        """Absorbs a record as the honest algorithm does."""
        inner, outer = self.honest.absorb(sensitive, released, record, ledger)
        return inner, outer


def _weaker(share: float) -> Fault:
    def fault(
        ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
        reps: IntArray | None, carried: Carried | None,
    ) -> FloatArray:  # fmt: skip
        return ledger.release(Weakened(mechanism, share), value, records=records, reps=reps, carried=carried)

    return fault


def _first_exact(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    is_first = memory.n_releases[slice(None) if reps is None else reps] == 0
    return ledger.release(ExactInSome(mechanism, is_first), value, records=records, reps=reps, carried=carried)


def _reused(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    shape, rows = value.shape[1:], slice(None) if reps is None else reps
    value = value.copy()  # algorithms may hand over the memory of their own sums
    kept, has_kept = memory.noise.setdefault(shape, (np.zeros((ledger.n_reps, *shape)), np.zeros(ledger.n_reps, dtype=bool)))
    output = ledger.release(
        Reusing(mechanism, kept[rows].copy(), has_kept[rows].copy()), value, records=records, reps=reps, carried=carried
    )
    kept[rows], has_kept[rows] = output - value, True
    return output


def _exact_answer(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    exact = value.copy()
    ledger.release(mechanism, value, records=records, reps=reps, carried=carried)
    return exact


def _released_again(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    output = ledger.release(mechanism, value, records=records, reps=reps, carried=carried)
    nobody = Span(records.stop.copy(), records.stop.copy())
    ledger.release(mechanism, value.copy(), records=nobody, reps=reps)
    return output


def planted(fault: Fault) -> Callable[[Any], Any]:
    """The honest algorithm behind a ledger that cheats in this way."""
    return lambda honest: Planted(honest, fault)


GENERIC: tuple[Control, ...] = (
    Control(
        "noise-halved", "half of the noise that is paid for is drawn (2 mu0)", planted(_weaker(0.5)), (SAMPLING,)
    ),
    Control(
        "noise-sqrt2", "the noise is too small by sqrt 2 (sqrt(2) mu0)", planted(_weaker(math.sqrt(0.5))), (SAMPLING,)
    ),
    Control(
        "noise-reused", "one draw serves all releases of one shape and cancels between them (no privacy)",
        planted(_reused), (SAMPLING,),
    ),
    Control(
        "first-release-exact", "the first release of a run has no noise (no privacy)", planted(_first_exact), (SAMPLING,)
    ),
    Control(
        "released-again", "each value is released a second time, which is declared to read no record (sqrt(2) mu0)",
        planted(_released_again),
    ),
    Control(
        "decides-from-exact", "the noisy value is released, and decisions are made from the exact one (no privacy)",
        planted(_exact_answer), (SAMPLING,),
    ),
    Control("not-clipped", "a reward outside the declared range is not clipped (mu0 x its size)", Unclipped),  # type: ignore[arg-type]
)  # fmt: skip
"""For any algorithm; mu0 is what the honest one has. Behind a ledger that cheats the book stays in order, so that sampling
must find the fault; where a span or a sensitivity is wrong too, so must the deterministic audit."""


def _n_rows(n_free: int) -> int:
    """The d of d (d + 1) / 2 + d free entries: a triangle and a vector."""
    return (math.isqrt(9 + 8 * n_free) - 3) // 2


@dataclass(frozen=True, eq=False)
class Uneven(Pretending):
    """Noise of which some coordinates have less than is declared, or none.

    Attributes:
      shares: number of rows d -> (n_free,) of the declared deviation, in each free entry of a triangle and a vector.
    """

    shares: Callable[[int], FloatArray] = field(kw_only=True)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` plus too little noise."""
        drawn = self.declared.whiten(noise_of(self.declared, noise, value))
        drawn *= self.shares(_n_rows(drawn.shape[1]))
        return np.asarray(value + self.declared.color(drawn, value.shape))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) of the true law: minus infinity where a coordinate without noise differs."""
        shift = self.declared.whiten(np.asarray(neighbor - value))
        middle = self.declared.whiten(np.asarray(2 * output - value - neighbor))
        shares = self.shares(_n_rows(shift.shape[1]))
        is_exact = shares == 0
        variance = 2 * (self.declared.scale * np.where(is_exact, 1.0, shares)) ** 2
        found = (np.where(is_exact, 0.0, shift * middle) / variance).sum(axis=1)
        return np.where((shift[:, is_exact] != 0).any(axis=1), -np.inf, found)


def half_the_matrix(d: int) -> FloatArray:
    """(Z + Z^T)/2, whose entries are sqrt 2 below those of (Z + Z^T)/sqrt 2; the vector's noise is right."""
    return np.repeat([math.sqrt(0.5), 1.0], [d * (d + 1) // 2, d])


def no_diagonal_variance(d: int) -> FloatArray:
    """Factors on the variance: 0 on the matrix's diagonal, 1 elsewhere."""
    rows, columns = np.triu_indices(d)
    return np.concatenate([(rows != columns).astype(float), np.ones(d)])


def unevenly(shares: Callable[[int], FloatArray]) -> Callable[[Any], Any]:
    """Plants noise whose variance is shared unevenly between the coordinates."""

    def fault(
        ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
        reps: IntArray | None, carried: Carried | None,
    ) -> FloatArray:  # fmt: skip
        return ledger.release(Uneven(mechanism, shares=shares), value, records=records, reps=reps, carried=carried)

    return planted(fault)
