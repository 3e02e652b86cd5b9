r"""Faults that only CAPRI can have: where its paper is ambiguous, and where an implementation goes wrong.

A sensitivity that misses a root or a context, noise on other coordinates than those whose sensitivity is known, and an
operator that is made of the users themselves.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from bandana.algorithms.bandits.capri.capri import Plan, ProjectedElimination, Sensitive
from bandana.algorithms.bandits.capri.projection import Projection
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, State, extended, fault_of, planted_as, without
from bandana.audits.faults.releases import GENERIC, RELEASED_AGAIN, half_the_sensitivity
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Ledger

_SHOWS = 1.2
"""A factor on mu that a few thousand replays tell."""


class _SquareForRoot(ProjectedElimination):
    """The noise is in proportion to sigma_max^2, as Lemma 6.6 prints it, without the root of eq. (6) (mu0 / sigma_max)."""

    def _unit(self, projection: Projection, is_active: np.ndarray) -> float:
        return super()._unit(projection, is_active) ** 2


class _GeneratedContextsOnly(ProjectedElimination):
    """The sensitivity is the maximum over contexts that the generator draws, eq. (6) (up to 1.8 mu0).

    A neighbor may bring another one.
    """

    def _unit(self, projection: Projection, is_active: np.ndarray) -> float:
        return super()._unit(projection, is_active & np.repeat(self.pool.law > 0, self.n_actions))


def _draws_too_little(honest: ProjectedElimination) -> bool:
    """True if releases tell so much more of contexts that are never drawn than of others that it shows."""
    everything = np.ones((honest.n_contexts, honest.n_actions), dtype=bool)
    faulty = planted_as(_GeneratedContextsOnly)(honest)
    return bool(faulty.plan(0, everything).unit * _SHOWS < honest.plan(0, everything).unit)


def _moves(algorithm: ProjectedElimination) -> float:
    """Distance that a record moves a release of the first epoch, over the sensitivity that the release declares."""
    everything = np.ones((algorithm.n_contexts, algorithm.n_actions), dtype=bool)
    return float(np.linalg.norm(algorithm.plan(0, everything).codes, axis=-1).max())


def _sqrt_2_shows(honest: ProjectedElimination) -> bool:
    """True if noise that is too small by sqrt 2 exceeds what is paid for so far that it shows.

    The printed bound on the sensitivity may be 1.4 times the sensitivity: then such noise still keeps the promise.
    """
    return math.sqrt(2) * _moves(honest) >= _SHOWS


def _root_shows(honest: ProjectedElimination) -> bool:
    """The same of noise in proportion to sigma_max^2."""
    return _moves(planted_as(_SquareForRoot)(honest)) >= _SHOWS


class _OtherCoordinates(ProjectedElimination):
    """Other numbers than h leave with the noise of h; as many as there are points, of which some may be 0."""

    @property
    def n_outputs(self) -> int:
        return len(self.features)


class _NoiseOnCoefficients(_OtherCoordinates):
    """M^-1 K_SW y, the coefficients, leave with the noise that M^-1/2 K_SW y needs."""

    def _coded(self, projection: Projection, basis: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
        spanning, vectors = self.features[np.unique(basis)], projection.vectors
        coefficients = vectors @ (np.linalg.pinv(spanning.T) @ np.linalg.pinv(self.features) @ vectors).T
        return _padded(coefficients / unit, self.n_outputs), _padded(self.features @ spanning.T / unit, self.n_outputs)


class _NoiseAtEachPoint(_OtherCoordinates):
    """Each point's estimate leaves with a draw of its own, of the size of its honest noise."""

    def _coded(self, projection: Projection, basis: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
        weights = projection.vectors @ projection.vectors.T
        at_points = np.where(projection.norm > 0, weights / np.where(projection.norm > 0, projection.norm, 1.0), 0.0)
        return at_points / unit, np.diag(projection.norm) / unit


def _padded(array: FloatArray, n_columns: int) -> FloatArray:
    wide = np.zeros((len(array), n_columns))
    wide[:, : array.shape[1]] = array
    return wide


class _WatchesUsers(ProjectedElimination):
    """Keeps how many users of this epoch were at each point, and the sums of their centered rewards; (n_reps, n_points)."""

    def init(self, n_reps: int) -> tuple[Sensitive, State]:
        sensitive, released = super().init(n_reps)
        nobody = np.zeros((n_reps, len(self.features)))
        return sensitive, extended(released, users=nobody.astype(np.int64), sums=nobody)

    def watch(self, released: State, record: Record) -> None:
        """Counts one more user and adds the reward."""
        at = np.arange(len(released.users)), self._place(record.contexts) * self.n_actions + record.actions[:, 0]
        released.users[at] += 1
        released.sums[at] += record.rewards[:, 0] - self._middle

    def imitate(self, released: State, epoch: int) -> State:
        """Plans of the epoch whose S and R are the users that were counted."""
        plans: list[Plan] = []
        numbers: dict[bytes, int] = {}
        for rep, (active, users) in enumerate(zip(released.active, released.users, strict=True)):
            key = active.tobytes() + users.tobytes()
            if key not in numbers:
                numbers[key] = len(plans)
                plans.append(self._made(epoch, active, np.flatnonzero(users), users))
            released.which[rep] = numbers[key]
        return released._replace(plans=tuple(plans), codes=np.stack([plan.codes for plan in plans]))


class _OwnCovariance(_WatchesUsers):
    """S and R are the users of the epoch, not copies of them: each changes what all others weigh.

    It is kernel ridge regression as everybody knows it. The noise is for s_max in all calibrations: it covers one user's own
    message exactly, so that what moves the others shows.
    """

    def _unit(self, projection: Projection, is_active: np.ndarray) -> float:
        return float(projection.norm[is_active].max())

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        epoch, before = int(released.epoch[0]), released.sums.copy()
        self.watch(released, record)
        if int(released.clock[0]) + 1 == self._ends[epoch]:
            released = self.imitate(released, epoch)
            sensitive.sum.total[:] = np.einsum("rwm,rw->rm", released.codes[released.which], before)
            released.users[:], released.sums[:] = 0, 0.0
        return super().absorb(sensitive, released, record, ledger)


class _LastUsers(_WatchesUsers):
    """S and R are the users of the last epoch: all later messages depend on their points."""

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        epoch = int(released.epoch[0])
        self.watch(released, record)
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        if int(released.epoch[0]) > epoch:
            released = self.imitate(released, epoch + 1)
            released.users[:] = 0
        return sensitive, released


_SQRT_2 = ("noise-sqrt2", RELEASED_AGAIN.name)
_SHARED: tuple[Control, ...] = (
    *without(GENERIC, "decides-from-exact", *_SQRT_2),
    *(replace(control, is_fault=_sqrt_2_shows) for control in GENERIC if control.name in _SQRT_2),
    replace(
        RELEASED_AGAIN.caught(DETERMINISTIC), fault=f"{RELEASED_AGAIN.fault}; the declared bound hides it from replays",
        is_fault=lambda honest: not _sqrt_2_shows(honest),
    ),
    fault_of(_SquareForRoot, is_fault=_root_shows), half_the_sensitivity("gathering"),
    fault_of(_GeneratedContextsOnly, is_fault=_draws_too_little), fault_of(_NoiseOnCoefficients),
    fault_of(_NoiseAtEachPoint),
)  # fmt: skip


CAPRI_CONTROLS: dict[str, tuple[Control, ...]] = {
    "capri joint": (*_SHARED, fault_of(_OwnCovariance, (DETERMINISTIC,), name="real-contexts")),
    "capri local": (*_SHARED, fault_of(_LastUsers, (DETERMINISTIC,), name="real-contexts")),
}
"""Label of an entry -> its planted faults."""
