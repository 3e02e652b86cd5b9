"""Faults that only batched LSVI-UCB can have: where its paper, its public code and private value iteration go wrong.

Vectors that are released at every update and paid for once, values that are backed up before they are noised, matrices that
are exact where decisions are made from them, batches that end as the data say.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.rl.linear_mdp.batched_lsvi import BatchedLSVI, Released, Sensitive
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import DRAWN, Control, State, caught_as, extended, fault_of, with_part, without
from bandana.audits.faults.wrapped import ReleaseRequest
from bandana.audits.outcome import DETERMINISTIC, NOISE, SAMPLING
from bandana.privacy_core import Ledger, Span


def _is_matrix(request: ReleaseRequest) -> bool:
    """True if matrices are released, as (n_rows, H, n_free), or whitened as (n_rows, H n_free) with what they carry."""
    return request.carried is not None or request.value.ndim > 2


def _is_vector(request: ReleaseRequest) -> bool:
    return not _is_matrix(request)


def _in(is_meant: Callable[[ReleaseRequest], bool], fault: releases.Fault) -> Callable[[BatchedLSVI], releases.Planted]:
    """Plants a fault in some of the releases."""
    return releases.planted(releases.only(is_meant, fault))


_halved = releases.through(partial(releases.weakened, share=0.5))


def _paid_for_once(honest: BatchedLSVI) -> releases.Planted:
    """U is released at each of R updates, with noise for one (sqrt(R) mu0); it declares the users since the last update."""
    updates, length = honest.schedule.most_updates, honest.episode_length

    def fault(request: ReleaseRequest, memory: releases.Memory) -> FloatArray:
        before = memory.n_releases[request.rows] // (length + 1)
        start = np.array((0, *honest.schedule.looks))[before]
        return request.release(records=Span(start, request.records.stop))

    scaled = tuple(releases.scaled(mechanism, regression.for_one(mechanism, updates)) for mechanism in honest.vectors)
    return _in(_is_vector, fault)(replace(honest, vectors=scaled))


def _no_diagonal(honest: BatchedLSVI) -> releases.Planted:
    """Releases the diagonals of the matrices, which have no vectors here, without noise."""
    rows, columns = np.triu_indices(honest.model.dimension)
    shares = np.tile((rows != columns).astype(float), honest.episode_length)
    uneven = releases.through(partial(releases.uneven, shares=lambda n_free: shares))
    return _in(_is_matrix, uneven)(honest)


class _BacksUpExactValues(BatchedLSVI):
    """Values are backed up before they are noised: targets hold the exact returns of the first user."""

    def init(self, n_reps: int) -> tuple[State, Released]:
        """The honest states, with (n_reps, H + 1, S) returns of the first user from each step on, where that user was."""
        sensitive, released = super().init(n_reps)
        return extended(sensitive, pilot=np.zeros_like(released.values)), released

    def absorb(self, sensitive: State, released: Released, record: Record, ledger: Ledger) -> tuple[State, Released]:
        assert record.states is not None
        first = np.flatnonzero(released.clock == 0)
        returns = np.cumsum(np.clip(record.rewards, 0, 1)[:, ::-1], axis=1)[:, ::-1]
        for h in range(self.episode_length):
            sensitive.pilot[first, h, record.states[first, h]] = returns[first, h]
        return super().absorb(sensitive, released, record, ledger)

    def targets(self, sensitive: State, released: Released, due: IntArray, step: int) -> FloatArray:
        """(n_rows, S) the values that follow the step, never released."""
        return np.asarray(sensitive.pilot[due, step + 1])


class _RewardsNotClipped(BatchedLSVI):
    """Rewards are ten times too large, and are not clipped."""

    def absorb(self, sensitive: Sensitive, released: Released, record: Record, ledger: Ledger) -> tuple[Sensitive, Released]:
        assert record.states is not None
        r, h = np.indices(record.actions.shape)
        sensitive.rewards[r, h, record.states[:, :-1], record.actions] += 9 * np.clip(record.rewards, 0, 1)
        return super().absorb(sensitive, released, record, ledger)


class _UpdatesByRewards(BatchedLSVI):
    """Updates are decided from exact rewards, above one half on average (no privacy)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        """The honest states, with (n_reps,) a sum of exact rewards kept in the released one."""
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, exact=np.zeros(n_reps))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        released.exact[:] += np.clip(record.rewards, 0, 1).sum(axis=1)
        return super().absorb(sensitive, released, record, ledger)

    def is_due(self, released: State, log_det: FloatArray) -> np.ndarray:
        """(n_reps,) True where a replicate updates, decided from exact rewards: the fault."""
        due = released.exact > 0.5 * self.episode_length * released.clock
        return np.asarray(due & (released.n_updates < self.schedule.most_updates))


def _never_updates(honest: BatchedLSVI) -> BatchedLSVI:
    """The condition of a second update never holds: one policy for ever."""
    return replace(honest, schedule=replace(honest.schedule, log_growth=math.inf))


LSVI_JOINT: tuple[Control, ...] = (
    *caught_as({"noise-sqrt2": (NOISE,), "released-again": (DETERMINISTIC,)}, without(releases.GENERIC, "not-clipped")),
    fault_of(_paid_for_once),
    Control(
        "matrices-noised-anew", "the whole Gram matrix is released with fresh noise at each look, one batch is declared",
        with_part(regression.sum_noised_anew, "matrices"), (DETERMINISTIC,),
    ),
    Control("half-on-matrices", "matrices have half of their noise", _in(_is_matrix, _halved), (NOISE,)),
    Control("half-on-vectors", "vectors have half of their noise", _in(_is_vector, _halved), DRAWN),
    replace(regression.NO_DIAGONAL, plant=_no_diagonal),
    Control(
        "vector-noise-unused", "u is released with noise, and the policy comes from u without (no privacy)",
        _in(_is_vector, releases.decides_from_exact), (SAMPLING,),
    ),
    Control(
        "matrix-noise-unused", "the Gram matrix is released with noise, and used without (no privacy)",
        _in(_is_matrix, releases.decides_from_exact), (SAMPLING,),
    ),
    fault_of(_BacksUpExactValues, (DETERMINISTIC,)), fault_of(_RewardsNotClipped), fault_of(_UpdatesByRewards),
)  # fmt: skip
"""The noise on the matrices hides what it is made for: printed replays reach 0.7 of the cost. Faults of a factor are left to
the noise audit and to the deterministic one where that is so."""

_PURE: dict[str, tuple[str, ...]] = {
    "noise-halved": (NOISE,), "half-on-vectors": (NOISE,), "paid-for-once": (DETERMINISTIC,),
    "rewards-not-clipped": (DETERMINISTIC,),
}  # fmt: skip
"""Pure costs of a dozen releases add up; what replays show of them grows with the root of their number."""

LSVI_UTILITY: tuple[Control, ...] = (fault_of(_never_updates, ()),)
"""Faults that cost utility and no privacy: an audit measures less than the claim, and must not find a leak."""

LINEAR_MDP_CONTROLS: dict[str, tuple[Control, ...]] = {
    "lsvi-ucb joint": LSVI_JOINT, "lsvi-ucb joint pure": caught_as(_PURE, LSVI_JOINT),
}  # fmt: skip
"""Name of the algorithm -> its releases.planted faults."""
