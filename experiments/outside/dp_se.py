"""DP-SE by public code of "Shuffle Private Linear Contextual Bandits", as a row of the leaderboard.

Lengths of epochs, noise and eliminations are theirs, and the loop is ours. Their code adds noise to all sums of an epoch at
once and asks for a single number: all arms get the same noise, which cancels in every comparison. One noisy sum is released,
and the exact differences of the others from it; the ledger is given just that. So the row of their code makes no claim, and
another one has the noise that the algorithm means: a number for each arm.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from outside_code import Handed, Outside

from bandana.privacy_core import Exact, Interval, Laplace, OpenPhase, PhaseSum, Relation

AUTHORS = Outside(
    "https://github.com/sayakrc/Differentially-Private-Bandits",
    "ea7503bcaddd7491a187252d5bbd6608414cb96f",
    "MABPrivate.py",
    "7ca331d5029c35ab49fde00c9b012026de4aab62ba1d29477cdc7750b35f78ef",
)
UNIT = Interval(0.0, 1.0)
NOISES = ("used", "separate")
"""One number for all arms, as their code asks for; or one for each arm, as the algorithm has it."""


class Sensitive(NamedTuple):
    """Exact statistics of the epoch under way."""

    noisy: OpenPhase
    """Sums that get noise of their own: all, or that of the first active arm."""
    rest: OpenPhase
    """Differences from that of the first active arm, which get none."""


class Released(NamedTuple):
    """The code's own variables, a row each replicate, and where the run stands."""

    epoch: np.ndarray
    """(n_reps,) their `BatchNo`."""
    length: np.ndarray
    """(n_reps,) their `BatchSize`, pulls of each arm in the epoch."""
    active: np.ndarray
    """(n_reps, n_arms) True for arms in their `ActiveSet`."""
    clock: np.ndarray
    """(n_reps,) rounds of the epoch that were played."""


@dataclass(frozen=True)
class DPSE:
    """Their algorithm.

    Unit of privacy: one reward. It lies in one arm's sum of one epoch, and moves the vector of sums by at most 1 in the L1
    norm. With noise of its own for each arm an epoch costs epsilon, and a reward is in one epoch.

    Attributes:
      n_actions: number of arms.
      epsilon: their `eps`.
      failure: their `delta`, 0.1 in their experiments.
      noise: one of `NOISES`; `used` is their code as it is.
      reward_range: [0, 1], as in their code.
      horizon: rounds that there may be. A run too short for an epoch, as an audit's, gets a short first one: no promise
        depends on lengths.
    """

    n_actions: int
    epsilon: float
    failure: float = 0.1
    noise: str = "used"
    reward_range: Interval = UNIT
    horizon: int = 100_000

    def __post_init__(self) -> None:
        if self.reward_range != UNIT:
            raise ValueError(f"reward_range must be [0, 1], which their code takes for granted, got {self.reward_range}")
        if self.noise not in NOISES:
            raise ValueError(f"noise must be {' or '.join(NOISES)}, got {self.noise!r}")

    @cached_property
    def theirs(self) -> tuple[Any, Handed]:
        """Their algorithm before the first round, and what stands for its generator."""
        module, handed = AUTHORS.load()
        env = SimpleNamespace(K=self.n_actions, epsilon=self.epsilon)
        return module.DPSE(env, self.horizon, {"crs": 1, "delta": self.failure, "dc": 2}), handed

    @cached_property
    def mechanism(self) -> Laplace:
        """The noise that they ask for; L1 sensitivity 1 of the sums of all arms."""
        self._request_noise()
        return Laplace(1.0, self.theirs[1].request.scale * (1 + 1e-12), Relation.REPLACE_REWARD)

    @cached_property
    def is_shared(self) -> bool:
        """True if all arms get the same noise."""
        self._request_noise()
        return self.noise == "used" and self.theirs[1].request.is_one_number

    def _request_noise(self) -> None:
        code, _ = self.theirs
        code.rewards = np.zeros(self.n_actions)
        code.central_rand()

    @property
    def sums(self) -> tuple[PhaseSum, PhaseSum]:
        """How an epoch's sums are released: with noise, and without."""
        return PhaseSum(self.mechanism), PhaseSum(Exact())

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first epoch, at its first arm."""
        code, _ = self.theirs
        length = code.BatchSize
        if length * self.n_actions > self.horizon:
            length = max(1, self.horizon // (4 * self.n_actions))
        noisy, rest = self.sums
        phases = noisy.init(n_reps, (1,) if self.is_shared else (self.n_actions,)), rest.init(n_reps, (self.n_actions,))
        ones = np.ones(n_reps, dtype=np.int64)
        return Sensitive(*phases), Released(ones, ones * length, np.ones((n_reps, self.n_actions), dtype=bool), ones * 0)

    def act(self, released: Released, context: object, step: int) -> np.ndarray:
        """(n_reps,) the active arm whose turn it is."""
        order = np.argsort(~released.active, axis=1, kind="stable")
        return order[np.arange(len(order)), released.clock // released.length]

    def hold(self, released: Released, actions: np.ndarray) -> np.ndarray:
        """(n_reps,) its pulls left in this epoch."""
        return released.length - released.clock % released.length

    def absorb(self, sensitive: Sensitive, released: Released, record: Any, ledger: Any) -> tuple[Sensitive, Released]:
        """Adds to the epoch's sums; at its end releases them, and eliminates as their code does."""
        rows, arm, first = np.arange(len(released.epoch)), record.actions[:, 0], released.active.argmax(axis=1)
        of_arm = np.zeros(released.active.shape)
        of_arm[rows, arm] = record.rewards[:, 0]
        of_first = of_arm[rows, first][:, None]
        sums = self.sums
        noisy = sums[0].add(sensitive.noisy, of_first if self.is_shared else of_arm, record.n_records)
        rest = sums[1].add(sensitive.rest, of_arm - of_first, record.n_records)
        np.add(released.clock, record.n_records, out=released.clock)
        ended = np.flatnonzero(released.clock == released.length * released.active.sum(axis=1))
        if len(ended):
            noisy, totals, _ = sums[0].close(noisy, ledger, ended)
            if self.is_shared:
                rest, differences, _ = sums[1].close(rest, ledger, ended)
                totals = totals + differences
            for row, total in zip(ended.tolist(), totals, strict=True):
                self._eliminate(released, row, total)
        return Sensitive(noisy, rest), released

    def _eliminate(self, released: Released, row: int, totals: np.ndarray) -> None:
        """Ends the epoch by their code: sums of 0, to which the ledger's noisy ones are handed as noise."""
        code, handed = self.theirs
        arms = np.flatnonzero(released.active[row])
        code.BatchNo, code.BatchSize, code.ActiveSet = int(released.epoch[row]), int(released.length[row]), arms
        code.rewards, code.RoundCount = np.zeros(len(arms)), code.BatchSize * len(arms) - 1
        handed.answer = totals[arms]
        code.update(0, arms[-1], 0.0)
        released.epoch[row], released.length[row], released.clock[row] = code.BatchNo, code.BatchSize, 0
        released.active[row] = np.isin(np.arange(self.n_actions), code.ActiveSet)
