"""Faults that only value iteration on counts can have: counters that are forgotten, doubled or exact, and PUCB's proof.

Its sensitivity counts what an episode enters and forgets what the one that it replaces leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from bandana.algorithms.protocol import FloatArray, Record
from bandana.algorithms.rl.tabular.ucb_vi import UCBVI, Sensitive
from bandana.audits.faults import regression, releases
from bandana.audits.faults.fault import DRAWN, Control, Host, Plant, State, caught_as, extended, fault_of, without
from bandana.audits.outcome import DETERMINISTIC, NOISE
from bandana.privacy_core import Ledger


def _made_for(change: Callable[[Host, float], float]) -> Plant:
    """Plants noise that is made for another sensitivity, (algorithm, its own) -> another, at the declared cost."""

    def plant(honest: Host) -> Host:
        mechanism = honest.sums.mechanism
        name = "sensitivity_l1" if mechanism.norm == "L1" else "sensitivity_l2"
        faulty = replace(mechanism, **{name: change(honest, getattr(mechanism, name))})
        return replace(honest, sums=replace(honest.sums, mechanism=faulty))

    return plant


def _entered_alone(honest: Host, own: float) -> float:
    """Noise counts the counters that an episode enters, not those that it leaves: as PUCB has (2 epsilon, sqrt(2) mu0)."""
    return own / (2 if honest.sums.mechanism.norm == "L1" else math.sqrt(2))


def _one_step_paid(honest: Host, own: float) -> float:
    """Noise is made for one step of an episode, and a user enters all (H epsilon, sqrt(H) mu0)."""
    n_steps = honest.episode_length
    return float(own / (n_steps if honest.sums.mechanism.norm == "L1" else math.sqrt(n_steps)))


def _no_noise_on_rewards(honest: UCBVI) -> releases.Planted:
    """Counts have noise, and sums of rewards have none (no privacy)."""
    layout, rows = honest.layout, honest.episode_length * honest.n_states * honest.n_actions
    share = np.ones((rows, layout.width))
    share[:, honest.n_states] = 0.0
    return releases.Planted(honest, releases.through(lambda noise: releases.uneven(noise, lambda n_free: share.ravel())))


class _CountedTwice(UCBVI):
    """Every transition is counted twice (up to 2 mu0)."""

    def count(self, record: Record, out: FloatArray) -> None:
        super().count(record, out)
        super().count(record, out)


class _RewardsNotClipped(UCBVI):
    """Rewards are ten times too large, and are not clipped."""

    def count(self, record: Record, out: FloatArray) -> None:
        super().count(record, out)
        assert record.states is not None
        r, h = np.indices(record.actions.shape)
        out[r, h, record.states[:, :-1], record.actions, self.n_states] += 9 * np.clip(record.rewards, 0, 1)


class _KnownPairs(UCBVI):
    """Pairs that nobody has visited are known exactly: their bonus is infinite (no privacy)."""

    def init(self, n_reps: int) -> tuple[State, State]:
        """The honest states, with (n_reps, H, S, A) exact visits kept in the released one."""
        sensitive, released = super().init(n_reps)
        return sensitive, extended(released, visits=np.zeros((n_reps, *self.shape[:3])))

    def absorb(self, sensitive: Sensitive, released: State, record: Record, ledger: Ledger) -> tuple[Sensitive, State]:
        assert record.states is not None
        r, h = np.indices(record.actions.shape)
        released.visits[r, h, record.states[:, :-1], record.actions] += 1
        return super().absorb(sensitive, released, record, ledger)

    def plan(self, noisy: FloatArray, released: State) -> None:
        """Plans from statistics to which the exact list of unvisited pairs is added."""
        known = noisy.copy()
        unseen = released.visits == 0
        known[..., self.n_states] = np.where(unseen, 1e6, known[..., self.n_states])
        super().plan(known, released)


def _is_learning(honest: UCBVI) -> bool:
    """True if decisions depend on what is released: PUCB's bonus hides all of it in few episodes."""
    return honest.published is None


_SHARED: tuple[Control, ...] = (
    *without(releases.GENERIC, "not-clipped", "decides-from-exact"),
    replace(releases.DECIDES_FROM_EXACT, is_fault=_is_learning),
    regression.SUM_NOISED_ANEW,
    fault_of(_entered_alone, how=_made_for), fault_of(_one_step_paid, how=_made_for),
    fault_of(_no_noise_on_rewards, DRAWN), fault_of(_CountedTwice), fault_of(_RewardsNotClipped),
    fault_of(_KnownPairs, is_fault=_is_learning),
)  # fmt: skip
_SUMS = (regression.PREFIX_NOISE_REDRAWN, regression.COUNTED_ONCE)

_IN_L1: dict[str, tuple[str, ...]] = {
    "noise-halved": (NOISE,), "noise-sqrt2": (NOISE,), "released-again": (DETERMINISTIC,),
    "sum-noised-anew": (DETERMINISTIC,),
    "entered-alone": (DETERMINISTIC,), "one-step-paid": (DETERMINISTIC,), "counted-twice": (DETERMINISTIC,),
    "rewards-not-clipped": (DETERMINISTIC,), "prefix-noise-redrawn": (DETERMINISTIC,), "counted-once": (DETERMINISTIC,),
}  # fmt: skip
"""A loss in L1 over a dozen counters is large only in outcomes that replays do not see: they find what has no privacy."""

TABULAR_CONTROLS: dict[str, tuple[Control, ...]] = {
    f"{name} {trust}{pure}": caught_as(_IN_L1, controls) if pure else controls
    for name in ("ucb-vi", "dp-ucbvi") for pure in ("", " pure")
    for trust, controls in (("joint", (*_SHARED, *_SUMS)), ("local", _SHARED))
}  # fmt: skip
"""Label of an entry -> its planted faults."""
