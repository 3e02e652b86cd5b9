"""What ours plays and accounts of the same work, in a process of its own as the other libraries are."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import count
from typing import Any

import numpy as np

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, LinUCBSettings, Model
from bandana.algorithms.bandits.finite_arm.episodic_ucb import ucb
from bandana.algorithms.bandits.finite_arm.thompson import thompson
from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.bandits import BernoulliArms
from bandana.algorithms.environments.drawn import Drawn
from bandana.algorithms.environments.mdps import FiniteMDP
from bandana.algorithms.observers import RegretCurve
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.rl.tabular.forms import UCBVISettings
from bandana.algorithms.run import run
from bandana.audits.bounds.methods import bound
from bandana.privacy_core import (
    Event,
    GaussianDP,
    GaussianEvent,
    Interval,
    LaplaceEvent,
    LiveLedger,
    PrivacyCurve,
    ReproducibleNoise,
)
from benchmarks.peers import problems as p
from benchmarks.peers.answering import Task, answer_all

UNIT = Interval(0.0, 1.0)
_DRAWS = 2_000_000


def _ledger(n_reps: int) -> LiveLedger:
    return LiveLedger(n_reps, ReproducibleNoise(np.random.SeedSequence(2)))


# --- finitely many arms -----------------------------------------------------------------------------------------------


def _arms(algorithm: Any) -> Task:
    """Pseudo-regret of Bernoulli arms, all replications at once; rewards are drawn in the time."""

    def play(replications: int, seed: int) -> tuple[int, list[float]]:
        stream = BernoulliArms(p.MEANS, p.ROUNDS, np.random.SeedSequence(seed))
        curve = RegretCurve(stream.means, np.array([p.ROUNDS]), replications)
        coins = Coins(np.random.SeedSequence(seed), replications) if hasattr(algorithm, "n_coins") else None
        run(algorithm, stream, _ledger(replications), observers=[curve], coins=coins)
        return replications * p.ROUNDS, curve.curve[:, 0].tolist()

    return play


class Tape(Drawn):
    """Arms whose pulls pay what was written down, pull by pull; counts what was pulled."""

    reward_range = UNIT

    def __init__(self, rewards: FloatArray) -> None:
        self._paid = rewards
        self.n_actions, self.n_users = rewards.shape[1:]
        self.counts: IntArray = np.zeros(rewards.shape[:2], dtype=np.int64)

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) the reward of each arm's next pull."""
        rows = np.arange(len(actions))
        answers = self._paid[rows, actions, self.counts[rows, actions]]
        self.counts[rows, actions] += 1
        return np.asarray(answers)


def tape(replications: int, seed: int) -> tuple[int, list[list[int]]]:
    """Pulls of each arm by UCB1 on given rewards."""
    stream = Tape(np.stack([p.pulls(1000 * seed + replication) for replication in range(replications)]))
    run(ucb(len(p.MEANS), 4.0, UNIT), stream, _ledger(replications))
    return replications * p.ROUNDS, stream.counts.tolist()


# --- linear arms ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConstantWidth(LinUCB):
    """LinUCB as the other libraries have it: one width for all rounds."""

    def _learn(self, model: Model, statistic: FloatArray, step: int) -> None:
        super()._learn(model, statistic, step)
        model.width.fill(p.WIDTH)


class Users(Drawn):
    """Users with one vector each; arm a sees it in coordinates of its own, so that one regression fits all arms apart."""

    reward_range = Interval(-1.0, 1.0)  # centered on 0: nothing is subtracted from a reward of 0 or 1
    n_users, n_actions = p.USERS, p.N_ARMS
    context_dimension = p.N_ARMS * p.DIMENSION

    def __init__(self, replications: int, seed: int) -> None:
        users = [p.contexts(1000 * seed + replication) for replication in range(replications)]
        self._vectors = np.stack([one.vectors for one in users])
        self._paid = np.stack([one.rewards for one in users])
        self.actions = np.zeros((replications, p.USERS), dtype=np.int64)

    def contexts(self, user: IntArray) -> FloatArray:
        """(n_reps, arms, arms d)"""
        blocks = np.zeros((len(user), p.N_ARMS, p.N_ARMS, p.DIMENSION))
        blocks[:, np.arange(p.N_ARMS), np.arange(p.N_ARMS)] = self._vectors[:, int(user[0]), None]
        return blocks.reshape(len(user), p.N_ARMS, self.context_dimension)

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """(n_reps,) 0 or 1."""
        self.actions[:, int(user[0])] = actions
        return np.asarray(self._paid[np.arange(len(actions)), int(user[0]), actions])


def linear(replications: int, seed: int) -> tuple[int, list[list[int]]]:
    """Actions of all users."""
    stream = Users(replications, seed)
    settings = LinUCBSettings(p.N_ARMS, stream.context_dimension, p.USERS, stream.reward_range, ridge=p.RIDGE)
    twin = settings.twin()
    algorithm = ConstantWidth(**{field.name: getattr(twin, field.name) for field in fields(twin)})
    run(algorithm, stream, _ledger(replications))
    return replications * p.USERS, stream.actions.tolist()


# --- episodes ---------------------------------------------------------------------------------------------------------


class _LastRewards:
    """Sums of the rewards of the last fifth of the episodes."""

    def __init__(self, replications: int) -> None:
        self.total = np.zeros(replications)

    def observe(self, record: Record) -> None:
        if int(record.user[0]) >= p.EPISODES - p.EPISODES // 5:
            self.total += record.rewards.sum(axis=1)


def tabular(replications: int, seed: int) -> tuple[int, list[float]]:
    """Mean reward of the last fifth of the episodes, of UCB-VI that plans after every episode."""
    stream = FiniteMDP(*p.process(), p.EPISODES, np.random.SeedSequence(seed))
    settings = UCBVISettings(p.N_STATES, p.N_ACTIONS, p.LENGTH, p.EPISODES, looks=p.EPISODES, beta_scale=0.05)
    rewards = _LastRewards(replications)
    run(settings.twin(), stream, _ledger(replications), observers=[rewards])
    return replications * p.EPISODES, (rewards.total / (p.EPISODES // 5)).tolist()


# --- accounting and audits --------------------------------------------------------------------------------------------


_fresh = count(1)


def _curve(events_of: Callable[[float], dict[Event, int]]) -> Task:
    """Epsilons at all deltas, of noise that differs by 1e-12 each time, so that nothing is remembered."""

    def account(replications: int, seed: int) -> tuple[int, list[float]]:
        measured: list[float] = []
        for _ in range(replications):
            curve = PrivacyCurve.of(events_of(1 + next(_fresh) * 1e-12))
            measured = [curve.epsilon(float(delta)) for delta in p.DELTAS]
        return replications, measured

    return account


def _audit(method: str) -> Task:
    def audit(replications: int, seed: int) -> tuple[int, list[float]]:
        measured = []
        for replication in range(replications):
            data, neighbor = p.samples(1000 * seed + replication)
            if method == "mu-curve":
                measured.append(GaussianDP(bound(method, data, neighbor, p.LEVEL)).epsilon(p.DELTA))
            else:
                measured.append(bound(method, data, neighbor, p.LEVEL, delta=p.DELTA, is_learned=True))
        return replications, measured

    return audit


def limits(replications: int, seed: int) -> tuple[int, list[float]]:
    """Nanoseconds of one uniform number, and of a byte that is read and written where it fits no cache."""
    generator = np.random.Generator(np.random.SFC64(seed))
    out, source = np.empty(_DRAWS), np.zeros(8 * _DRAWS)
    target = np.ones(8 * _DRAWS)
    times = []
    for work, units in ((lambda: generator.random(out=out), _DRAWS), (lambda: np.copyto(target, source), 128 * _DRAWS)):
        begun = time.process_time()
        work()
        times.append((time.process_time() - begun) / units * 1e9)
    return 1, times


TASKS: dict[str, Task] = {
    "ours-ucb": _arms(ucb(len(p.MEANS), 4.0, UNIT)),
    "ours-thompson": _arms(thompson(len(p.MEANS), UNIT)),
    "ours-tape": tape,
    "ours-linear": linear,
    "ours-tabular": tabular,
    "ours-gaussian": _curve(lambda factor: {GaussianEvent(factor * p.MULTIPLIER): p.RELEASES}),
    "ours-mixed": _curve(lambda factor: {LaplaceEvent(factor * p.LAPLACE): p.MIXED, GaussianEvent(p.GAUSSIAN): p.MIXED}),
    "ours-coins": _audit("epsilon-coins"),
    "ours-mu": _audit("mu-curve"),
    "limits": limits,
}

if __name__ == "__main__":
    answer_all(TASKS)
