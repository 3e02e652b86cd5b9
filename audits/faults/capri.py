r"""Planted faults of CAPRI: where its paper is ambiguous, and where an implementation goes wrong.

Beside the faults of any ledger (`faulty_ledgers.GENERIC`): a sensitivity that misses a root, a factor or a context, noise on
other coordinates than those whose sensitivity is known, and an operator that is made of the users themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.bandits.capri.capri import Plan, ProjectedElimination, Sensitive
from bandana.algorithms.bandits.capri.projection import Projection
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, planted_as
from bandana.audits.faults.releases import GENERIC
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Gaussian, Ledger

_NAMES = ("noise-halved", "noise-sqrt2", "noise-reused", "first-release-exact", "released-again", "not-clipped")
_SHOWS = 1.2
"""A factor on mu that a few thousand replays tell."""


# --- the sensitivity -------------------------------------------------------------------------------------------------


class _SquareForRoot(ProjectedElimination):
    """The noise is in proportion to s_max^2: Lemma 6.6 defines sigma_max without the root of eq. (6)."""

    def _unit(self, found: Projection, is_active: np.ndarray) -> float:
        return super()._unit(found, is_active) ** 2


class _GeneratedContextsOnly(ProjectedElimination):
    """The maximum over the contexts that the generator can draw, eq. (6): a neighbor may bring another one."""

    def _unit(self, found: Projection, is_active: np.ndarray) -> float:
        return super()._unit(found, is_active & np.repeat(self.pool.law > 0, self.n_actions))


def _draws_too_little(honest: ProjectedElimination) -> bool:
    """Whether contexts that are never drawn are told so much more of than others that it shows."""
    everything = np.ones((honest.n_contexts, honest.n_actions), dtype=bool)
    faulty = planted_as(_GeneratedContextsOnly)(honest)
    return bool(faulty.plan(0, everything).unit * _SHOWS < honest.plan(0, everything).unit)


def _half_the_sensitivity(honest: Any) -> Any:
    mechanism = honest.gathering.mechanism
    assert isinstance(mechanism, Gaussian)
    halved = replace(mechanism, sensitivity_l2=mechanism.sensitivity_l2 / 2)
    return replace(honest, gathering=replace(honest.gathering, mechanism=halved))


# --- the coordinates -------------------------------------------------------------------------------------------------


class _OtherCoordinates(ProjectedElimination):
    """Other numbers than h leave with the noise of h; as many as there are points, of which some may be 0."""

    @property
    def n_outputs(self) -> int:
        """Number of released values: one for each point."""
        return len(self.features)


class _NoiseOnCoefficients(_OtherCoordinates):
    """The coefficients M^-1 K_SW y leave with the noise of M^-1/2 K_SW y."""

    def _coded(self, found: Projection, basis: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
        spanning = self.features[np.unique(basis)]
        coefficients = found.vectors @ (np.linalg.pinv(spanning.T) @ np.linalg.pinv(self.features) @ found.vectors).T
        return _padded(coefficients / unit, self.n_outputs), _padded(self.features @ spanning.T / unit, self.n_outputs)


class _NoiseAtEachPoint(_OtherCoordinates):
    """The estimate at each point leaves with a draw of its own, as large as that of the honest one there."""

    def _coded(self, found: Projection, basis: IntArray, unit: float) -> tuple[FloatArray, FloatArray]:
        weights = found.vectors @ found.vectors.T
        at_points = np.where(found.norm > 0, weights / np.where(found.norm > 0, found.norm, 1.0), 0.0)
        return at_points / unit, np.diag(found.norm) / unit


def _padded(array: FloatArray, n_columns: int) -> FloatArray:
    wide = np.zeros((len(array), n_columns))
    wide[:, : array.shape[1]] = array
    return wide


# --- the operator ----------------------------------------------------------------------------------------------------


class Watching(NamedTuple):
    """The released state of a faulty algorithm, with what it must not hold."""

    active: np.ndarray
    estimate: FloatArray
    order: IntArray
    n_active: IntArray
    which: IntArray
    plans: tuple[Plan, ...]
    codes: FloatArray
    clock: IntArray
    epoch: IntArray
    shift: FloatArray
    users: IntArray
    """(n_reps, n_points) how many users of this epoch were at each point."""
    sums: FloatArray
    """(n_reps, n_points) of their centered rewards."""


class _WatchesUsers(ProjectedElimination):
    """Counts where its users are."""

    def init(self, n_reps: int) -> tuple[Sensitive, Any]:
        sensitive, released = super().init(n_reps)
        nobody = np.zeros((n_reps, len(self.features)))
        return sensitive, Watching(*released, users=nobody.astype(np.int64), sums=nobody)

    def watch(self, released: Watching, record: Record) -> None:
        """Counts one more user and adds the reward."""
        at = np.arange(len(released.users)), self._place(record.contexts) * self.n_actions + record.actions[:, 0]
        released.users[at] += 1
        released.sums[at] += record.rewards[:, 0] - self._middle

    def imitate(self, released: Watching, epoch: int) -> Watching:
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
    """S and R are the epoch's users, not independent copies of them: kernel ridge regression as everybody knows it."""

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Watching, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        epoch, before = int(released.epoch[0]), released.sums.copy()
        self.watch(released, record)
        if int(released.clock[0]) + 1 == self._ends[epoch]:
            released = self.imitate(released, epoch)
            sensitive.sum.total[:] = np.einsum("rwm,rw->rm", released.codes[released.which], before)
            released.users[:], released.sums[:] = 0, 0.0
        return super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]


class _LastUsers(_WatchesUsers):
    """S and R are the users of the epoch before, whose points their messages were to hide."""

    def absorb(  # type: ignore[override]
        self, sensitive: Sensitive, released: Watching, record: Record, ledger: Ledger
    ) -> tuple[Sensitive, Any]:
        epoch = int(released.epoch[0])
        self.watch(released, record)
        found: Any
        sensitive, found = super().absorb(sensitive, released, record, ledger)  # type: ignore[arg-type]
        if int(found.epoch[0]) > epoch:
            found = self.imitate(found, epoch + 1)
            found.users[:] = 0
        return sensitive, found


# --- the lists -------------------------------------------------------------------------------------------------------


_SHARED: tuple[Control, ...] = (
    *(control for control in GENERIC if control.name in _NAMES),
    Control(
        "square-for-root", "the noise is in proportion to sigma_max^2, as Lemma 6.6 prints it (mu0 / sigma_max)",
        planted_as(_SquareForRoot),
    ),
    Control("half-the-sensitivity", "noise is scaled for B where a record moves by 2 B (2 mu0)", _half_the_sensitivity),
    Control(
        "generated-contexts-only", "the sensitivity is the maximum over contexts that the generator draws (up to 1.8 mu0)",
        planted_as(_GeneratedContextsOnly), is_fault=_draws_too_little,
    ),
    Control(
        "noise-on-coefficients", "M^-1 k_S y leaves with the noise that M^-1/2 k_S y needs", planted_as(_NoiseOnCoefficients)
    ),
    Control(
        "noise-at-each-point", "each point's estimate leaves with a draw of its own, of the size of its honest noise",
        planted_as(_NoiseAtEachPoint),
    ),
)  # fmt: skip

CAPRI_JOINT: tuple[Control, ...] = (
    *_SHARED,
    Control(
        "real-contexts", "S and R are the epoch's users themselves: each changes what all others weigh",
        planted_as(_OwnCovariance),
        (DETERMINISTIC,),
    ),
)  # fmt: skip

CAPRI_LOCAL: tuple[Control, ...] = (
    *_SHARED,
    Control(
        "real-contexts", "S and R are the users of the last epoch: all later messages tell of their points",
        planted_as(_LastUsers),
        (DETERMINISTIC,),
    ),
)  # fmt: skip

PROJECTED_KERNEL_CONTROLS: dict[str, tuple[Control, ...]] = {"capri-joint": CAPRI_JOINT, "capri-local": CAPRI_LOCAL}
"""Name of the algorithm -> its planted faults."""
