"""A proof that an exhibit leaks: one pair of data sets, one run, one event, and no statistics.

The bandit plays the data set, then its neighbor, and both runs are given the same noisy values. Whatever differs then, in
what is public, was decided from the exact record; and an exact value may move by no more than its release declares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bandana.algorithms.environments.tables import RewardTable
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.run import run
from bandana.privacy_core import ReproducibleNoise

N_RUNS = 512


@dataclass
class Tape:
    """A ledger that draws noise, or answers with what another one drew, request by request."""

    n_reps: int = N_RUNS
    answers: list[Any] | None = None
    noise: float = 1.0
    requests: list[tuple[Any, Any, Any, Any]] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)

    def release(self, mechanism, value, *, records, reps=None, carried=None):
        place = len(self.requests)
        self.requests.append((mechanism, value.copy(), records, reps))
        if self.answers is None:
            wide = mechanism.scaled(self.noise)
            self.outputs.append(wide.draw(ReproducibleNoise(np.random.SeedSequence(place)), value))
        elif place < len(self.answers) and self.answers[place].shape == value.shape:
            self.outputs.append(self.answers[place])
        else:
            self.outputs.append(value)
        return self.outputs[-1].copy()


class Noting:
    """The bandit, whose released states are noted."""

    def __init__(self, bandit):
        self.bandit, self.states = bandit, []

    def __getattr__(self, name):
        return getattr(self.bandit, name)

    def absorb(self, sensitive, released, record, ledger):
        sensitive, released = self.bandit.absorb(sensitive, released, record, ledger)
        self.states.append([np.array(part) for part in released])
        return sensitive, released


@dataclass(frozen=True)
class Witness:
    """A data set and its neighbor.

    Attributes:
      record: that changes.
      before: its reward in the data set.
      after: its reward in the neighbor.
      others: all other rewards, or some rounds' and 0 for the rest.
      noise: times that of the mechanisms, for events in its tails.
    """

    record: int = 5
    before: float = 0.0
    after: float = 1.0
    others: float | Mapping[int, float] = 0.0
    noise: float = 1.0

    def tables(self, reward_range):
        rows = np.full((32, 2), self.others if isinstance(self.others, float) else 0.0)
        for place, value in self.others.items() if isinstance(self.others, Mapping) else ():
            rows[place] = value
        for value in (self.before, self.after):
            rows[self.record] = value
            yield RewardTable(rows, reward_range)

    def event(self, bandit, mu: float) -> str:
        """What shows the record, in words; empty if nothing does."""
        mine, theirs = Tape(noise=self.noise), Tape()
        states, logs = [], []
        for table, tape in zip(self.tables(bandit.reward_range), (mine, theirs), strict=True):
            tape.answers = mine.outputs if tape is theirs else None
            noting, log = Noting(bandit), ActionLog()
            run(noting, table, tape, observers=[log])
            states.append(noting.states)
            logs.append(log.actions)
        paid = np.zeros(N_RUNS)
        for one, other in zip(mine.requests, theirs.requests, strict=False):
            (mechanism, value, records, reps), rows = one, slice(None) if one[3] is None else one[3]
            if one[0] != other[0] or value.shape != other[1].shape or not np.array_equal(reps, other[3]):
                return "another release is requested"
            reads = (records.start <= self.record) & (self.record < records.stop)
            moved = np.abs(other[1] - value).reshape(len(value), -1).sum(axis=1)
            if (moved > reads * mechanism.sensitivity + 1e-9).any():
                return "an exact value moves further than is declared"
            paid[rows] += reads * mechanism.event.rho
        if len(mine.requests) != len(theirs.requests):
            return "the number of releases differs"
        if math.sqrt(2 * paid.max()) > mu * (1 + 1e-9):
            return "the record pays more than is claimed"
        if any((one != other).any() for one, other in zip(*logs, strict=True)):
            return "another action is played"
        differs = any((a != b).any() for one, other in zip(*states, strict=True) for a, b in zip(one, other, strict=True))
        return "the released state differs" if differs else ""


ONES = 1.0
WITNESSES = {
    "echo-5": Witness(5),
    "echo-13": Witness(13),
    "echo-21": Witness(21),
    "echo-29": Witness(29),
    "echo-20-rounds-later": Witness(7),
    "echo-25-rounds-later": Witness(3),
    "echo-of-high-rewards": Witness(17),
    "echo-at-the-end": Witness(30),
    "periodic": Witness(13),
    "lagged": Witness(20),
    "reset-at-20": Witness(3, others=ONES),
    "reset-at-7.5": Witness(3, others=ONES),
    "exact-below": Witness(5),
    "exact-far-below": Witness(5, noise=3.0),
    "impossible-replaced": Witness(5),
    "one-value": Witness(9, after=0.37),
    "hidden-value": Witness(9, after=0.83),
    "middle-shown": Witness(9, after=0.5),
    "tinged": Witness(9),
    "quota": Witness(5, others=ONES),
    "streak-2": Witness(9, others=ONES),
    "streak-3-late": Witness(25, others=ONES),
    "both": Witness(5, others={9: 1.0}),
    "parity": Witness(11),
    "sum-of-two": Witness(5, others={6: 1.0}),
    "close-decided-exactly": Witness(5),
    "snap": Witness(5),
    "noise-bounded": Witness(5),
    "last-bits": Witness(5),
    "seldom-exact": Witness(5),
    "noise-shared": Witness(5),
    "never-forgets": Witness(5),
    "carried-over": Witness(19),
    "counted-twice": Witness(22),
    "not-clipped": Witness(5, after=5.0),
    "first-record-undeclared": Witness(8),
    "released-twice": Witness(5),
    "again-undeclared": Witness(5),
    "noise-by-data": Witness(5, others=ONES),
    "silent-when-empty": Witness(5),
    "best-exposed": Witness(5),
    "multiplier-halved": Witness(5),
    "sensitivity-halved": Witness(5),
    "laplace-halved": Witness(5),
}
