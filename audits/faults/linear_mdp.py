"""Planted faults of batched LSVI-UCB: where its paper, its public code and private value iteration in general go wrong.

Beside those of any ledger (`faulty_ledgers.GENERIC`): vectors that are released at every update and paid for once, values
that are backed up before they are noised, noise that is kept from batch to batch, matrices that are exact where decisions
are made from them, batches that end as the data say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI, Released, Sensitive
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.regression import NoisedAnew
from bandana.audits.faults.releases import GENERIC, Memory, Pretending, Weakened, planted
from bandana.audits.faults.tampering import noise_of
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.privacy_core import Carried, Ledger, Mechanism, NoiseSource, PrivateSum, Span

BOTH, DRAWN = (SAMPLING, DETERMINISTIC), (SAMPLING, NOISE)
_NAMES = (
    "noise-halved", "noise-sqrt2", "noise-reused", "first-release-exact", "released-again", "decides-from-exact"
)  # fmt: skip


# --- noise that is wrong ---------------------------------------------------------------------------------------------


def _is_vector(value: FloatArray) -> bool:
    """Matrices are released as (n_rows, H, n_free), or whitened as (n_rows, H n_free) with what they carry."""
    return value.ndim == 2


def _on(is_meant: Callable[[FloatArray, Carried | None], bool], share: float) -> Callable[[Any], Any]:
    """Less noise than is paid for, on some releases."""

    def fault(
        ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
        reps: IntArray | None, carried: Carried | None,
    ) -> FloatArray:  # fmt: skip
        used = Weakened(mechanism, share) if is_meant(value, carried) else mechanism
        return ledger.release(used, value, records=records, reps=reps, carried=carried)

    return planted(fault)


def _matrices(value: FloatArray, carried: Carried | None) -> bool:
    return carried is not None or not _is_vector(value)


def _vectors(value: FloatArray, carried: Carried | None) -> bool:
    return not _matrices(value, carried)


def _unused_on_vectors(
    ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
    reps: IntArray | None, carried: Carried | None,
) -> FloatArray:  # fmt: skip
    """Releases u with its noise, and answers with u."""
    exact = value.copy()
    output = ledger.release(mechanism, value, records=records, reps=reps, carried=carried)
    return exact if _vectors(value, carried) else output


def _paid_once(honest: Any) -> Any:
    """Noise for one release of each vector, which is said to read the users since the last update."""
    updates, length = honest.schedule.most_updates, honest.episode_length

    def fault(
        ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
        reps: IntArray | None, carried: Carried | None,
    ) -> FloatArray:  # fmt: skip
        if _matrices(value, carried):
            return ledger.release(mechanism, value, records=records, reps=reps, carried=carried)
        before = memory.n_releases[slice(None) if reps is None else reps] // (length + 1)
        start = np.array((0, *honest.schedule.looks))[before]
        return ledger.release(mechanism, value, records=Span(start, records.stop), reps=reps)

    scaled: Any = tuple(mechanism.scaled(_for_one(mechanism, updates)) for mechanism in honest.vectors)
    return planted(fault)(replace(honest, vectors=scaled))


def _for_one(mechanism: Any, updates: int) -> float:
    """The factor on noise for one release in place of several: prices add up, of Gaussian noise their squares do."""
    return 1 / updates if mechanism.norm == "L1" else 1 / math.sqrt(updates)


@dataclass(frozen=True, eq=False)
class _Uneven(Pretending):
    """Noise as declared on some coordinates, and none on the others.

    Attributes:
      is_exact: (n_free,) of a row of the value, flattened: which have none.
    """

    is_exact: FloatArray = field(kw_only=True)

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """`value`, with noise where there is some."""
        drawn = noise_of(self.declared, noise, value)
        drawn[:, self.is_exact.reshape(value.shape[1:]).astype(bool)] = 0.0
        return np.asarray(value + drawn)

    def log_density_ratio(self, output: FloatArray, value: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_rows,) of the true law: minus infinity where a coordinate without noise differs."""
        exact = self.is_exact.reshape(value.shape[1:]).astype(bool)
        differs = (np.abs(value - neighbor) > 0)[:, exact].any(axis=1)
        same = np.where(exact, value, neighbor)
        return np.where(differs, -np.inf, self.declared.log_density_ratio(output, value, same))


def _no_diagonal(honest: Any) -> Any:
    """A fault that releases the diagonals of the matrices without noise."""
    d, length = honest.model.dimension, honest.episode_length
    rows, columns = np.triu_indices(d)
    mask = np.tile((rows == columns).astype(float), length)

    def fault(
        ledger: Ledger, memory: Memory, mechanism: Mechanism, value: FloatArray, records: Span,
        reps: IntArray | None, carried: Carried | None,
    ) -> FloatArray:  # fmt: skip
        used = _Uneven(mechanism, is_exact=mask) if _matrices(value, carried) else mechanism
        return ledger.release(used, value, records=records, reps=reps, carried=carried)

    return planted(fault)(honest)


# --- decisions that are wrong ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _AnswersExactly:
    """Releases an honest running sum, and answers with the exact one.

    Attributes:
      honest: that sum.
    """

    honest: Any

    @property
    def mechanism(self) -> Mechanism:
        """The honest sum's mechanism."""
        return self.honest.mechanism  # type: ignore[no-any-return]

    def init(self, n_reps: int, shape: tuple[int, ...] = ()) -> tuple[Any, FloatArray]:
        """Empty states of both sums."""
        return self.honest.init(n_reps, shape), np.zeros((n_reps, *shape))

    def add(self, state: tuple[Any, FloatArray], value: FloatArray, n_records: IntArray) -> tuple[Any, FloatArray]:
        """Adds records to both sums."""
        return self.honest.add(state[0], value, n_records), state[1] + value

    def close(
        self, state: tuple[Any, FloatArray], ledger: Ledger, reps: IntArray | None = None
    ) -> tuple[tuple[Any, FloatArray], FloatArray, IntArray]:
        """Releases the noisy sum and answers with the exact one."""
        inner, _, n_records = self.honest.close(state[0], ledger, reps)
        return (inner, state[1]), state[1].copy(), n_records

    def noise_deviation(self, step: int) -> float:
        """The honest sum's noise deviation."""
        return float(self.honest.noise_deviation(step))


def _with_matrices(of: Callable[[Any], PrivateSum]) -> Callable[[Any], Any]:
    return lambda honest: replace(honest, matrices=of(honest.matrices))


class Keeping(NamedTuple):
    """The sensitive state of a faulty algorithm, with what it backs up."""

    counts: IntArray
    rewards: FloatArray
    triangles: FloatArray
    matrices: Any
    pilot: FloatArray
    """(n_reps, H + 1, S) exact returns of the first user from each step on, where he was; else 0."""


class _BacksUpExactly(BatchedLSVI):
    """Values that are backed up come from exact data, of as few users as can be: the first one's returns, without noise."""

    def init(self, n_reps: int) -> tuple[Any, Released]:
        """The honest states, with no exact returns kept yet."""
        sensitive, released = super().init(n_reps)
        return Keeping(*sensitive, pilot=np.zeros_like(released.values)), released

    def absorb(  # type: ignore[override]
        self, sensitive: Keeping, released: Released, record: Record, ledger: Ledger
    ) -> tuple[Any, Released]:
        """Keeps the first episode."""
        assert record.states is not None
        first = np.flatnonzero(released.clock == 0)
        returns = np.cumsum(np.clip(record.rewards, 0, 1)[:, ::-1], axis=1)[:, ::-1]
        for h in range(self.episode_length):
            sensitive.pilot[first, h, record.states[first, h]] = returns[first, h]
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]

    def targets(  # type: ignore[override]
        self, sensitive: Keeping, released: Released, due: IntArray, step: int
    ) -> FloatArray:
        """(n_rows, S) the values that follow the step, never released."""
        return np.asarray(sensitive.pilot[due, step + 1])


class _NotClipped(BatchedLSVI):
    """Adds rewards as they come, in a unit a tenth of the declared one: ten times as large."""

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        """Ten times the reward."""
        assert record.states is not None
        r, h = np.indices(record.actions.shape)
        sensitive.rewards[r, h, record.states[:, :-1], record.actions] += 9 * np.clip(record.rewards, 0, 1)
        return super().absorb(sensitive, released, record, ledger)


class Telling(NamedTuple):
    """The released state of a faulty algorithm, with what it must not hold."""

    policy: IntArray
    values: FloatArray
    weights: FloatArray
    inverse: FloatArray
    log_det: FloatArray
    n_looks: IntArray
    n_updates: IntArray
    clock: IntArray
    exact: FloatArray
    """(n_reps,) sum of exact rewards since the last update."""


class _UpdatesByRewards(BatchedLSVI):
    """Updates where exact rewards are above one half on average, not where what was released says so."""

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        """The honest states, with a sum of rewards kept in the released one."""
        sensitive, released = super().init(n_reps)
        return sensitive, Telling(*released, exact=np.zeros(n_reps))

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Telling, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        """Adds the rewards up."""
        released.exact[:] += np.clip(record.rewards, 0, 1).sum(axis=1)
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]

    def is_due(self, released: Any, log_det: FloatArray) -> np.ndarray:
        """Whether each replicate updates, (n_reps,), decided from exact rewards: the fault."""
        due = released.exact > 0.5 * self.episode_length * released.clock
        return np.asarray(due & (released.n_updates < self.schedule.most_updates))


def _never_updates(honest: Any) -> Any:
    """An update waits for a growth that no determinant has."""
    return replace(honest, schedule=replace(honest.schedule, log_growth=math.inf))


# --- the lists -------------------------------------------------------------------------------------------------------


_DRAWN_WRONG, _DECIDED_WRONG = (NOISE,), (DETERMINISTIC,)
_CAUGHT_BY = {"noise-sqrt2": _DRAWN_WRONG, "released-again": _DECIDED_WRONG}
_GENERIC = tuple(
    replace(control, caught_by=_CAUGHT_BY.get(control.name, control.caught_by))
    for control in GENERIC
    if control.name in _NAMES
)

LSVI_JOINT: tuple[Control, ...] = (
    *_GENERIC,
    Control("paid-for-once", "u is released at each of R updates, with noise for one (sqrt(R) mu0)", _paid_once, BOTH),
    Control(
        "matrices-noised-anew", "the whole Gram matrix is released with fresh noise at each look, one batch is declared",
        _with_matrices(lambda sums: NoisedAnew(sums.mechanism)), _DECIDED_WRONG,
    ),
    Control("half-on-matrices", "matrices have half of their noise", _on(_matrices, 0.5), _DRAWN_WRONG),
    Control("half-on-vectors", "vectors have half of their noise", _on(_vectors, 0.5), DRAWN),
    Control("no-noise-on-the-diagonal", "the diagonal of the matrices stays exact (no privacy)", _no_diagonal, DRAWN),
    Control(
        "vector-noise-unused", "u is released with noise, and the policy comes from u without (no privacy)",
        planted(_unused_on_vectors), (SAMPLING,),
    ),
    Control(
        "matrix-noise-unused", "the Gram matrix is released with noise, and used without (no privacy)",
        _with_matrices(_AnswersExactly), (SAMPLING,),
    ),
    Control(
        "backs-up-exact-values", "values are backed up before they are noised: targets hold the first user's returns",
        planted_as(_BacksUpExactly), _DECIDED_WRONG,
    ),
    Control(
        "rewards-not-clipped", "rewards are ten times too large, and are not clipped", planted_as(_NotClipped), BOTH
    ),
    Control(
        "updates-by-rewards", "whether to update is decided from exact rewards (no privacy)", planted_as(_UpdatesByRewards),
        BOTH,
    ),
)  # fmt: skip
"""What the matrices are noised for hides them well: printed replays reach 0.7 of the price. Faults of a factor are left to
the noise audit and to the deterministic one where that is so."""

_PURE = {
    "noise-halved": _DRAWN_WRONG, "half-on-vectors": _DRAWN_WRONG, "paid-for-once": _DECIDED_WRONG,
    "rewards-not-clipped": _DECIDED_WRONG,
}  # fmt: skip
LSVI_PURE: tuple[Control, ...] = tuple(
    replace(control, caught_by=_PURE.get(control.name, control.caught_by)) for control in LSVI_JOINT
)
"""The same: pure prices of a dozen releases add up, what replays tell of them grows with the root of their number."""

LSVI_UTILITY: tuple[Control, ...] = (
    Control("never-updates", "the condition of an update never holds: one policy for ever", _never_updates, ()),
)
"""What costs utility and no privacy: an audit measures less than the claim, and must not find a leak."""

LINEAR_MDP_CONTROLS: dict[str, tuple[Control, ...]] = {"lsvi-ucb-joint": LSVI_JOINT, "lsvi-ucb-pure-joint": LSVI_PURE}
"""Name of the algorithm -> its planted faults."""
