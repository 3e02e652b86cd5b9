"""A small private algorithm for episodes: a noisy sum of costs for each step, state and action; the cheapest is played."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bandana.algorithms.catalog import labelled
from bandana.algorithms.entry import Entry, claim_of
from bandana.algorithms.environments.episodes import EpisodeTable, random_episodes
from bandana.algorithms.problem import EPISODIC
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.privacy_core import (
    Exact,
    Gaussian,
    GaussianDP,
    Interval,
    LocalSum,
    Relation,
    Releases,
    Tree,
    TreeSum,
    TrustModel,
    calibrate,
)

UNIT = Interval(0.0, 1.0)
SHAPE = HORIZON, N_STATES, N_ACTIONS = 3, 3, 2
N_USERS = 8
SENSITIVITY = math.sqrt(2 * HORIZON)
"""A replaced trajectory leaves H places with a reward of at most 1, and enters H others."""


class Sensitive(NamedTuple):
    sum: Any


class Released(NamedTuple):
    policy: IntArray
    """(n_reps, horizon, n_states)"""


@dataclass(frozen=True)
class Cheapest:
    """Unit of privacy: an episode, whose rewards are taken for costs: each action gets its turn.

    `sums` takes contributions of (n_reps, horizon, n_states, n_actions).
    """

    sums: Any
    episode_length: int = HORIZON
    n_states: int = N_STATES
    n_actions: int = N_ACTIONS
    reward_range: Interval = UNIT

    def init(self, n_reps):
        shape = self.episode_length, self.n_states, self.n_actions
        return Sensitive(self.sums.init(n_reps, shape)), Released(np.zeros((n_reps, *shape[:2]), dtype=np.int64))

    def act(self, released, context, step):
        return released.policy[np.arange(len(context)), step, context]

    def hold(self, released, actions):
        return np.ones(len(actions), dtype=np.int64)

    def contribution(self, record: Record) -> FloatArray:
        rows, steps = np.arange(len(record.user))[:, None], np.arange(self.episode_length)
        value = np.zeros((len(record.user), self.episode_length, self.n_states, self.n_actions))
        value[rows, steps, record.states[:, :-1], record.actions] = record.rewards
        return value

    def policy(self, sensitive, noisy):
        return noisy.argmin(axis=3)

    def absorb(self, sensitive, released, record, ledger):
        state = self.sums.add(sensitive.sum, self.contribution(record), record.n_records)
        state, noisy, _ = self.sums.close(state, ledger, None)
        return Sensitive(state), Released(self.policy(Sensitive(state), noisy))


class Peeking(Cheapest):
    """Asks for another action in the state that it saw last, before any noise is added."""

    def absorb(self, sensitive, released, record, ledger):
        sensitive, released = super().absorb(sensitive, released, record, ledger)
        released.policy[np.arange(len(record.user)), 0, record.states[:, -1]] += record.rewards[:, -1] > 0.5
        return sensitive, Released(released.policy % self.n_actions)


class Doubling(Cheapest):
    """Counts the last step twice."""

    def contribution(self, record):
        value = super().contribution(record)
        value[:, -1] *= 2
        return value


def central(mu=1.0, sensitivity=SENSITIVITY, kind=Cheapest, n_users=N_USERS):
    noise = Gaussian(sensitivity, calibrate(GaussianDP(mu), Tree(n_users)))
    return kind(TreeSum(noise, n_users))


def local(mu=1.0, sensitivity=SENSITIVITY, kind=Cheapest):
    return kind(LocalSum(Gaussian(sensitivity, calibrate(GaussianDP(mu), Releases(1)))))


def table(n_users=N_USERS, seed=0) -> EpisodeTable:
    return random_episodes(n_users, *SHAPE, UNIT, seed)


def _shape(settings):
    model = settings.problem.model
    return {"episode_length": model.horizon, "n_states": model.n_states, "n_actions": model.n_actions}


def _joint(settings):
    shape, n = _shape(settings), settings.problem.known_horizon
    noise = Gaussian(math.sqrt(2 * shape["episode_length"]), calibrate(settings.privacy, Tree(n)))
    return Cheapest(TreeSum(noise, n), **shape)


def _promise(settings):
    stated = replace(settings.privacy, relation=Relation.REPLACE_RECORD, trust=TrustModel.JOINT)
    return claim_of(stated, "the actions of all other users", "Theorem 1", "a test", "one episode")


_ENTRIES = (
    Entry(
        name="cheapest", family="test", privacy_model="none", guarantee=None, calibrations=(), claim="none", source="a test",
        build=lambda settings: Cheapest(LocalSum(Exact()), **_shape(settings)), plays_on=EPISODIC,
    ),
    Entry(
        name="cheapest", family="test", privacy_model="joint", guarantee="approximate", calibrations=("tight",),
        claim="as stated", source="a test", build=_joint, plays_on=EPISODIC, promise=_promise, probes=lambda n_actions: (0,),
    ),
)  # fmt: skip
ENTRIES = labelled(_ENTRIES)
"""For specs."""
