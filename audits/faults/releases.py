"""Faults of releases: what can go wrong between any algorithm and its ledger.

What an algorithm does is unknown here, but all its noise comes from `ledger.release`, so the faults are planted there: a
request is answered with less noise than is paid for, with the same noise twice, or with none. A fault is a small function
`(request, memory) -> answer`; the algorithm and its accounting stay as they are.

Where a mechanism knows its true law, the likelihood ratio of the transcript stays exact and the audit of a planted fault is
as sharp as that of the honest algorithm. Where it does not, it keeps the declared density, as an implementation that is
wrong without knowing it would: a replay's score believes the declaration, and only what is seen without that counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from operator import methodcaller

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray
from bandana.audits.faults.fault import ALL, BOTH, DRAWN, Control, Host, Plant, caught_as, fault_of
from bandana.audits.faults.wrapped import ReleaseRequest, WithLedgerWrapper, delegated
from bandana.audits.outcome import NOISE, SAMPLING
from bandana.privacy_core import (
    Exact,
    Interval,
    LaplaceEvent,
    Mechanism,
    NoiseSource,
    Participation,
    ReproducibleNoise,
    Span,
    is_selection,
    without_noise,
)

Drawing = Callable[[Mechanism, NoiseSource, FloatArray], FloatArray]
Law = Callable[[Mechanism, FloatArray, FloatArray, FloatArray], FloatArray]
_ROUNDING = 1e-9


@dataclass
class Memory:
    """Memory of a faulty ledger during a run."""

    n_releases: IntArray
    """(n_reps,) releases so far."""
    n_calls: int = 0
    """Calls of `release` so far."""
    noise: dict[Hashable, FloatArray] = field(default_factory=dict)
    """Name -> (n_reps, ...) noise of an earlier release, NaN where there was none."""

    def kept(self, name: Hashable, request: ReleaseRequest) -> FloatArray:
        """(n_reps, ...) noise of that name, NaN at first."""
        shape = (len(self.n_releases), *request.value.shape[1:])
        return self.noise.setdefault(name, np.full(shape, np.nan))


Fault = Callable[[ReleaseRequest, Memory], FloatArray]


@dataclass(frozen=True)
class Planted(WithLedgerWrapper):
    """An algorithm behind a faulty ledger; it claims what the honest one claims.

    Attributes:
      fault: how its ledger answers.
    """

    fault: Fault

    def empty_memory(self, n_reps: int) -> Memory:
        """A memory of no releases."""
        return Memory(np.zeros(n_reps, dtype=np.int64))

    def answer(self, request: ReleaseRequest, memory: Memory) -> FloatArray:
        """The fault's answer."""
        output = self.fault(request, memory)
        memory.n_releases[request.rows] += 1
        memory.n_calls += 1
        return output


def planted(fault: Fault) -> Plant:
    """Plants a fault: honest algorithm -> the same behind a ledger that answers in this way."""
    return lambda honest: Planted(honest, fault)


@dataclass(frozen=True, eq=False)
class Pretending:
    """A mechanism that declares the sensitivity and the cost of another one, and adds other noise.

    Attributes:
      declared: the mechanism that the algorithm asked for.
      drawing: (declared, noise, value) -> what is released.
      law: (declared, output, value, neighbor) -> (n_rows,) true log density ratio; None: the declared mechanism's.
    """

    declared: Mechanism
    drawing: Drawing
    law: Law | None = None

    relation, norm, sensitivity, scale, deviation, event, whiten, color, change, grid = (
        delegated("declared", name)
        for name in (
            "relation", "norm", "sensitivity", "scale", "deviation", "event", "whiten", "color", "change", "grid",
        )
    )  # fmt: skip
    without_noise, log_probabilities = (delegated("declared", name) for name in ("without_noise", "log_probabilities"))

    def __eq__(self, other: object) -> bool:
        """True if both declare the same; what they hide does not count, as schedules are compared."""
        return type(self) is type(other) and self.declared == other.declared

    def __hash__(self) -> int:
        return hash((type(self), self.declared))

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value` with noise that is not the declared one."""
        return np.asarray(self.drawing(self.declared, noise, value))

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,), of the true law where it is known, else of the declared one."""
        if self.law is None:
            return np.asarray(self.declared.log_density_ratio(output, value, neighbor))
        return np.asarray(self.law(self.declared, output, value, neighbor))


def through(mechanism: Callable[[Mechanism], Mechanism]) -> Fault:
    """Every release goes through a mechanism made of the one that was asked for."""
    return lambda request, memory: request.release(mechanism=mechanism(request.mechanism))


def scaled(mechanism: Mechanism, factor: float) -> Mechanism:
    """The same mechanism with `factor` times the noise, where it can be scaled; the protocol does not ask for that."""
    faulty: Mechanism = methodcaller("scaled", factor)(mechanism)
    return faulty


def misdrawn(drawing: Drawing) -> Plant:
    """Plants noise that is not the declared one, under the declared density."""
    return planted(through(lambda mechanism: Pretending(mechanism, drawing)))


def only(is_meant: Callable[[ReleaseRequest], bool], fault: Fault) -> Fault:
    """The fault in some releases; all others are as requested."""
    return lambda request, memory: fault(request, memory) if is_meant(request) else request.release()


def weakened(declared: Mechanism, share: float) -> Pretending:
    """A mechanism that draws this share of the declared noise, and knows it."""
    true = scaled(declared, share)
    return Pretending(
        declared,
        lambda _, noise, value: true.draw(noise, value),
        lambda _, output, value, neighbor: true.log_density_ratio(output, value, neighbor),
    )


def exact_in_some(declared: Mechanism, is_exact: BoolArray) -> Pretending:
    """A mechanism that adds no noise to some rows: log ratio minus infinity where such a row differs.

    Args:
      declared: the mechanism that the algorithm asked for.
      is_exact: (n_rows,) which rows.
    """

    def law(declared: Mechanism, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        honest = declared.log_density_ratio(output, value, neighbor)
        if len(is_exact) != len(output):  # rows of schedules that part: any score is valid, this one shows less
            return np.asarray(honest)
        if is_selection(declared):
            exact = np.where(without_noise(declared, neighbor) == output, 0.0, -np.inf)
        else:
            exact = Exact().log_density_ratio(output, value, neighbor)
        return np.where(is_exact, exact, honest)

    def drawing(declared: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
        exact, drawn = without_noise(declared, value), declared.draw(noise, value)
        return np.where(is_exact.reshape(len(is_exact), *[1] * (exact.ndim - 1)), exact, drawn)

    return Pretending(declared, drawing, law)


def repeating(declared: Mechanism, kept: FloatArray, knows_law: bool = True) -> Pretending:
    """A mechanism that adds the noise of an earlier release, fresh noise where there was none.

    Given the earlier release the output is known: the log ratio is 0 where the neighbor gives it too, else minus infinity.
    `kept` is then the noise that the neighbor's earlier value leaves.

    Args:
      declared: the mechanism that the algorithm asked for.
      kept: (n_rows, ...) that noise, NaN where there was none.
      knows_law: whether log ratios are so; else they are the declared mechanism's.
    """
    is_new = np.asarray(np.isnan(kept))

    def drawing(declared: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
        return np.where(is_new, declared.draw(noise, value), value + kept) if is_new.any() else value + kept

    def law(declared: Mechanism, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        honest = declared.log_density_ratio(output, value, neighbor)
        if len(kept) != len(output):
            return np.asarray(honest)
        missed = np.abs(output - (neighbor + kept)) > _ROUNDING * (1 + np.abs(output))
        known = np.where(missed.reshape(len(output), -1).any(axis=1), -np.inf, 0.0)
        return np.where(is_new.reshape(len(output), -1).any(axis=1), honest, known)

    return Pretending(declared, drawing, law if knows_law else None)


def shared(declared: Mechanism) -> Pretending:
    """A mechanism with one draw for all coordinates: log ratio minus infinity where they do not move by a common shift."""

    def law(declared: Mechanism, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        shift = neighbor - value
        is_common = (shift == shift[:, :1]).all(axis=1)
        return np.where(is_common, declared.log_density_ratio(output[:, :1], value[:, :1], neighbor[:, :1]), -np.inf)

    return Pretending(declared, one_noise_for_all, law)


def uneven(declared: Mechanism, shares: Callable[[int], FloatArray]) -> Pretending:
    """A mechanism of which some coordinates have less noise than is declared, or none.

    Args:
      declared: the mechanism that the algorithm asked for, Gaussian or Laplace.
      shares: number of free entries of a value -> (n_free,) share of the declared deviation in each.
    """

    def drawing(declared: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
        drawn = declared.whiten(noise_of(declared, noise, value))
        drawn *= shares(drawn.shape[1])
        return np.asarray(value + declared.color(drawn, value.shape))

    def law(declared: Mechanism, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        shift, one, other = (declared.whiten(np.asarray(v)) for v in (neighbor - value, output - value, output - neighbor))
        share = shares(one.shape[1])
        is_exact = share == 0
        terms = np.where(is_exact, 0.0, whitened_terms(declared, one, other, np.where(is_exact, 1.0, share)))
        return np.where((shift[:, is_exact] != 0).any(axis=1), -np.inf, terms.sum(axis=1))

    return Pretending(declared, drawing, law)


def whitened_terms(declared: Mechanism, one: FloatArray, other: FloatArray, share: FloatArray | float = 1.0) -> FloatArray:
    """(n_rows, n_free) terms of a log density ratio.

    Args:
      declared: a Gaussian or a Laplace mechanism.
      one: (n_rows, n_free) the noise on this side, whitened.
      other: the same on the neighbor's side.
      share: of the declared scale that is drawn, in each entry or in all.
    """
    scale = declared.scale * share
    if isinstance(declared.event, LaplaceEvent):
        return np.asarray((np.abs(one) - np.abs(other)) / scale)
    return np.asarray((one**2 - other**2) / (2 * scale**2))


def half_taken_for_goe(n_free: int) -> FloatArray:
    """(Z + Z^T)/2 is drawn where (Z + Z^T)/sqrt(2) was calibrated (up to sqrt(2) mu0); the vector's noise is right.

    Args:
      n_free: d (d + 1) / 2 + d, entries of a triangle and a vector.

    Returns:
      (n_free,) share of the declared deviation in each.
    """
    d = _n_rows(n_free)
    return np.repeat([math.sqrt(0.5), 1.0], [d * (d + 1) // 2, d])


def no_noise_on_the_diagonal(n_free: int) -> FloatArray:
    """The diagonals of the matrices stay exact (no privacy); arguments and answer are those of `half_taken_for_goe`."""
    rows, columns = np.triu_indices(d := _n_rows(n_free))
    return np.concatenate([(rows != columns).astype(float), np.ones(d)])


def _n_rows(n_free: int) -> int:
    return (math.isqrt(9 + 8 * n_free) - 3) // 2


def noise_of(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """Noise that the mechanism adds, in the shape of the value."""
    return np.asarray(mechanism.draw(noise, np.zeros_like(value)))


def one_noise_for_all(mechanism: Mechanism, noise: NoiseSource, value: FloatArray) -> FloatArray:
    """One scalar draw is added to all coordinates and cancels between them (no privacy)."""
    return np.asarray(value + mechanism.draw(noise, np.zeros((len(value), 1))))


def scaled_by(factor: float) -> Plant:
    """Plants noise of `factor` times the declared size."""
    return misdrawn(lambda mechanism, noise, value: scaled(mechanism, factor).draw(noise, value))


def reusing(key: Callable[[ReleaseRequest, Memory], Hashable], knows_law: bool = False) -> Plant:
    """Plants noise that is drawn once for all releases of a key, and added again; `knows_law` as in `repeating`.

    A selection shows no noise that could be added again: it stays as it is.
    """

    def fault(request: ReleaseRequest, memory: Memory) -> FloatArray:
        if is_selection(request.mechanism):
            return request.release()
        kept, value = memory.kept(key(request, memory), request), request.value.copy()  # it may be an algorithm's own memory
        known = kept[request.rows]
        output = request.release(mechanism=repeating(request.mechanism, known.copy(), knows_law), value=value)
        kept[request.rows] = np.where(np.isnan(known) | knows_law, output - value, known)
        return output

    return planted(fault)


def _one_noise_a_level(request: ReleaseRequest, memory: Memory) -> Hashable:
    """All nodes of a level add the same noise: their differences are exact (no privacy)."""
    return int(request.records.stop[0] - request.records.start[0])


def seed_of_its_own(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """Noise comes from a seed in the code: who reads the code subtracts it (no privacy)."""
    own = ReproducibleNoise(np.random.SeedSequence(memory.n_calls))
    return request.release(mechanism=Pretending(request.mechanism, lambda mechanism, _, value: mechanism.draw(own, value)))


def _first_release_exact(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """The first release of a run has no noise (no privacy)."""
    is_first = memory.n_releases[request.rows] == 0
    return request.release(mechanism=exact_in_some(request.mechanism, is_first))


def noise_one_late(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """Decisions use the exact value of the last release; its noise enters the next answer (no privacy)."""
    kept = memory.kept(request.value.shape[1:], request)
    exact, late = request.value.copy(), np.nan_to_num(kept[request.rows])
    kept[request.rows] = request.release() - exact
    return np.asarray(exact + late)


def decides_from_exact(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """The noisy value is released, and decisions are made from the exact one (no privacy)."""
    exact = without_noise(request.mechanism, request.value)
    request.release()
    return exact


def _released_again(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """Each value is released a second time, which is declared to read no record (sqrt(2) mu0)."""
    output = request.release()
    nobody = Span(request.records.stop.copy(), request.records.stop.copy())
    request.release(value=request.value.copy(), records=nobody, carried=None)
    return output


def last_record_alone(request: ReleaseRequest, memory: Memory) -> FloatArray:
    """Declares the last record of each span, whatever the value reads."""
    return request.release(records=Span(request.records.stop - 1, request.records.stop))


def _unpaid_first(request: ReleaseRequest, memory: Memory) -> FloatArray:
    return request.release(mechanism=Exact() if memory.n_calls == 0 else request.mechanism)


class NotClipped(WithLedgerWrapper):
    """A reward outside the declared range is not clipped (mu0 x its size).

    The algorithm tells the loop a range so wide that nothing is clipped, and itself counts on the declared one.
    """

    @property
    def reward_range(self) -> Interval:
        """2001 times as wide as the honest algorithm's."""
        return widened(self.honest.reward_range)


def widened(span: Interval) -> Interval:
    """A range 2001 times as wide, with the same middle."""
    return Interval(span.low - 1e3 * span.width, span.high + 1e3 * span.width)


def with_wide_range(honest: Host) -> Host:
    """The algorithm with a reward range so wide that nothing is clipped, and the noise of the honest one."""
    return replace(honest, reward_range=widened(honest.reward_range))


def _weaker(share: float) -> Plant:
    return planted(through(lambda mechanism: weakened(mechanism, share)))


_SEEN = (SAMPLING,)
GENERIC: tuple[Control, ...] = (
    Control("noise-halved", "Half of the noise that is paid for is drawn (2 mu0)", _weaker(0.5), _SEEN),
    Control("noise-sqrt2", "The noise is too small by sqrt 2 (sqrt(2) mu0)", _weaker(math.sqrt(0.5)), _SEEN),
    Control(
        "noise-reused", "One draw serves all releases of one shape and cancels between them (no privacy)",
        reusing(lambda request, memory: request.value.shape[1:], knows_law=True), _SEEN,
    ),
    fault_of(_first_release_exact, _SEEN, how=planted),
    fault_of(_released_again, how=planted),
    fault_of(decides_from_exact, _SEEN, how=planted),
    fault_of(NotClipped, how=lambda wrapped: wrapped),
)  # fmt: skip
"""For any algorithm. Behind a ledger that cheats the book stays in order, so that sampling must find the fault; where a span
or a sensitivity is wrong too, so must the deterministic audit."""

HALVED, SQRT2, REUSED, FIRST_EXACT, RELEASED_AGAIN, DECIDES_FROM_EXACT, NOT_CLIPPED = GENERIC

# The same faults in code that is wrong without knowing it.
HALVED_UNAWARE = replace(HALVED, plant=scaled_by(0.5), caught_by=DRAWN)
SQRT2_UNAWARE = replace(SQRT2, plant=scaled_by(2**-0.5), caught_by=DRAWN, factor=math.sqrt(2))
REUSED_UNAWARE = replace(REUSED, plant=reusing(lambda request, memory: 0), caught_by=(NOISE,))
FIRST_UNPAID = replace(FIRST_EXACT, plant=planted(_unpaid_first), caught_by=ALL)
WIDE_RANGE = replace(NOT_CLIPPED, plant=with_wide_range)
ONE_FOR_ALL = fault_of(one_noise_for_all, DRAWN, how=misdrawn)
ONE_A_LEVEL = fault_of(_one_noise_a_level, (NOISE,), how=reusing)


def half_the_sensitivity(*parts: str) -> Control:
    """Noise for half of the sensitivity, in those parts of an algorithm that there are; each has a `mechanism`."""

    def halved(part: Host) -> Host:
        name = "sensitivity_l1" if part.mechanism.norm == "L1" else "sensitivity_l2"
        return replace(part, mechanism=replace(part.mechanism, **{name: getattr(part.mechanism, name) / 2}))

    return Control(
        "half-the-sensitivity", "Noise is scaled for half of what a record can change (2 mu0)",
        lambda honest: replace(honest, **{p: halved(getattr(honest, p)) for p in parts if hasattr(honest, p)}),
    )  # fmt: skip


_SMALL_FOR_USERS = {"dp-ucb": {"noise-halved": (NOISE,)}}
"""Label of an entry -> fault -> the audits that must catch it. A user of four rounds is in n = 32 nodes of DP-UCB's tree
of 128 rounds, with epsilon/n in each. With half the noise, 2 epsilon/n in each is like mu = 2 epsilon/sqrt n, 0.29 for
epsilon = 0.81, and exceeds epsilon only in outcomes so rare that replays do not see them."""


def of_users(label: str, controls: Iterable[Control], users: Participation, *, is_gaussian: bool) -> tuple[Control, ...]:
    """The faults of an entry where users have several records: those that it has with single ones, and one more.

    Args:
      label: of the entry.
      controls: its faults with single records.
      users: see `counted_as_one_record`.
      is_gaussian: see there.
    """
    return (*caught_as(_SMALL_FOR_USERS.get(label, {}), controls), counted_as_one_record(users, is_gaussian=is_gaussian))


def counted_as_one_record(users: Participation, *, is_gaussian: bool) -> Control:
    """Noise as for one record of a user, m times too little where all of them lie in one release.

    The ledger's own charges show it where all noise is Gaussian; of other noise no mu is exact, and replays must find it.

    Args:
      users: which records may be one user's, at least 2.
      is_gaussian: whether all noise of the algorithm is Gaussian.
    """
    return Control(
        "user-counted-as-one-record",
        f"The noise protects one record, though a user has {users.most} ({users.most} mu0)",
        planted(through(lambda mechanism: scaled(mechanism, 1 / users.most))),
        BOTH if is_gaussian else (SAMPLING,),
    )
