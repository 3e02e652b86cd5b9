"""AdaP-TT by its authors' public code, as a row of the leaderboard.

Sampling rule, episodes, noise scale, thresholds and recommendation are theirs. The loop is ours, in another order: all pulls
of the episode that ends next are played together. Which arm a round pulls depends on released values, counts and coins only,
and rewards are independent, so neither the law of what is released nor that of the stop changes. Pulls of episodes that are
open at the stop are not played. Their code does not count them either: the stopping time that it returns is the number of
pulls in ended episodes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from outside_code import Handed, Outside

from bandana.algorithms.bandits.best_arm.rules import DifferenceRules
from bandana.algorithms.decision import Decision
from bandana.algorithms.public_coins import uniform
from bandana.privacy_core import Interval, Laplace, OpenPhase, PhaseSum, Relation

AUTHORS = Outside(
    "https://github.com/achraf-azize/DP-BAI",
    "c8d8be282e19e4d74dc9c5f670c68ec3ae7e4f97",
    "algorithms/adapTT.py",
    "6f792f1b52ad3af75b82f80fac063812320e0016240aded9c37f9b84a7f07a9c",
)
UNIT = Interval(0.0, 1.0)
FOREVER = np.iinfo(np.int64).max // 4
THRESHOLDS = ("used", "written", "proved")
"""What the test stops by: `emp_c`, as in their code; `dp_c`, which stands beside it; or the threshold of our `as-known`."""


class Sensitive(NamedTuple):
    """Exact statistics: the sum of the episode under way."""

    phase: OpenPhase


class Released(NamedTuple):
    """The authors' own variables, a row each replicate, and where the run stands; no rewards but noisy ones."""

    counts: np.ndarray
    """(n_reps, n_arms) pulls in ended episodes."""
    values: np.ndarray
    """(n_reps, n_arms) noisy means of last episodes."""
    phase: np.ndarray
    """(n_reps, n_arms) ended episodes."""
    ph_counts: np.ndarray
    """(n_reps, n_arms) pulls of the open episode that are decided."""
    last_ph_counts: np.ndarray
    """(n_reps, n_arms) pulls of the last ended episode."""
    best: np.ndarray
    """(n_reps,) their leader, whom they compare with the others."""
    tosses: np.ndarray
    """(n_reps,) coins used."""
    arm: np.ndarray
    """(n_reps,) the arm of the episode that is played; the recommended one after the stop."""
    left: np.ndarray
    """(n_reps,) rounds left of it."""
    clock: np.ndarray
    """(n_reps,) rounds played."""
    stopped: np.ndarray
    """(n_reps,) rounds after which the test stopped; 0 where it has not."""


@dataclass(frozen=True)
class AdaPTT:
    """Their test.

    Unit of privacy: one reward. Each lies in one episode's sum, which moves by at most 1 when it is replaced and is released
    once: the run costs what one release costs, at the scale that their code asks for (one-touch lemma, `docs/privacy.md`).

    Attributes:
      n_actions: number of arms.
      epsilon: their `eps`.
      error: their `delta`.
      share: their `beta`, probability of the leader.
      threshold: one of `THRESHOLDS`; `used` is their code as it is.
      reward_range: [0, 1], as in their code.
      horizon: rounds that there may be, for our threshold.
      coins: (n_reps,) a key of public coins for each replicate.
    """

    n_actions: int
    epsilon: float
    error: float = 0.05
    share: float = 0.5
    threshold: str = "used"
    reward_range: Interval = UNIT
    horizon: int = 100_000
    coins: np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.reward_range != UNIT:
            raise ValueError(f"reward_range must be [0, 1], which their code takes for granted, got {self.reward_range}")
        if self.threshold not in THRESHOLDS:
            raise ValueError(f"threshold must be {', '.join(THRESHOLDS)}, got {self.threshold!r}")

    @cached_property
    def theirs(self) -> tuple[Any, Handed]:
        """Their test without any reward, and what stands for its generator."""
        module, handed = AUTHORS.load()
        if self.threshold != "used":
            module.emp_c = self._written(module) if self.threshold == "written" else self._proved()
        config = {"K": self.n_actions, "eps": self.epsilon, "delta": self.error, "beta": self.share}
        return module.AdaPTopTwo(config), handed

    def _written(self, module: Any) -> Callable[..., float]:
        def threshold(n: float, m: float, delta: float, eps: float) -> float:
            return float(module.dp_c(n, m, self.n_actions, episode(max(n, m)), delta, eps))

        return threshold

    def _proved(self) -> Callable[..., float]:
        table = DifferenceRules(
            self.n_actions, self.sums.mechanism, 1.0, self.error, 2.0, max(self.horizon, 1024), pools=False
        ).tables.threshold

        def threshold(n: float, m: float, delta: float, eps: float) -> float:
            return float(table[episode(n) - 1, episode(m) - 1] ** 2 / (2 * (1 / n + 1 / m)))

        return threshold

    @cached_property
    def sums(self) -> PhaseSum:
        """The sum of an episode with the noise that their code asks for on the mean of one reward."""
        module, handed = AUTHORS.load()
        probe = module.AdaPTopTwo({"K": self.n_actions, "eps": self.epsilon, "delta": self.error, "beta": self.share})
        probe.ph_counts[0] = 1
        probe.update(0)
        return PhaseSum(Laplace(1.0, handed.request.scale * (1 + 1e-12), Relation.REPLACE_REWARD))

    def init(self, n_reps: int) -> tuple[Sensitive, Released]:
        """The first pull of the first arm."""
        table, each = np.zeros((n_reps, self.n_actions)), np.zeros(n_reps, dtype=np.int64)
        tables, numbers = [table.copy() for _ in range(5)], [each.copy() for _ in range(6)]
        released = Released(*tables, *numbers)
        released.ph_counts[:, 0], released.left[:] = 1, 1
        return Sensitive(self.sums.init(n_reps)), released

    def act(self, released: Released, context: object, step: int) -> np.ndarray:
        """(n_reps,) the arm whose episode is played, or the recommended one."""
        return released.arm.copy()

    def hold(self, released: Released, actions: np.ndarray) -> np.ndarray:
        """(n_reps,) rounds until that episode ends."""
        return released.left.copy()

    def absorb(self, sensitive: Sensitive, released: Released, record: Any, ledger: Any) -> tuple[Sensitive, Released]:
        """Adds to the episode's sum; where it is complete, releases it and goes on as their code does."""
        phase = self.sums.add(sensitive.phase, record.rewards[:, 0], record.n_records)
        np.add(released.clock, record.n_records, out=released.clock)
        np.subtract(released.left, record.n_records, out=released.left)
        ended = np.flatnonzero(released.left == 0)
        if len(ended):
            phase, noisy, n_rewards = self.sums.close(phase, ledger, ended)
            for row, total, n in zip(ended.tolist(), noisy, n_rewards, strict=True):
                self._go_on(released, row, float(total / n), int(n))
        return Sensitive(phase), released

    def decide(self, released: Released) -> Decision:
        """Their recommendation, and when they stopped."""
        return Decision(released.values.argmax(axis=1), released.stopped.copy())

    def _go_on(self, released: Released, row: int, mean: float, n: int) -> None:
        test, handed = self._at(released, row)
        handed.answer = mean  # their mean of rewards is 0 here, so that mean and noise are what the ledger released
        test.update(int(released.arm[row]))
        if not math.isclose(handed.request.scale * n, self.sums.mechanism.scale, rel_tol=1e-9):
            raise ValueError(f"their noise on a sum must not depend on the episode, got scale {handed.request.scale * n!r}")
        released.best[row] = test.ph_best
        n_ended = int(test.phase.sum())
        if n_ended < self.n_actions:
            released.arm[row], released.left[row], test.ph_counts[n_ended] = n_ended, 1, 1
        elif n_ended > self.n_actions and test.check_stopping():
            released.arm[row], released.left[row] = int(np.argmax(test.values)), FOREVER
            released.stopped[row] = released.clock[row]
        else:
            self._next_episode(test, handed, released, row)

    def _next_episode(self, test: Any, handed: Handed, released: Released, row: int) -> None:
        """Decides pull after pull as their loop does, until an episode is complete; until then their leader is the same."""
        leader = test.compute_priv_ucb_leader()
        test.compute_priv_ucb_leader = lambda: leader
        handed.coins = self._tossed(row, int(released.tosses[row]))
        while True:
            arm = int(test.select_arm())
            released.tosses[row] += 1
            test.ph_counts[arm] += 1
            if test.doubled_counts(arm):
                released.arm[row], released.left[row] = arm, int(test.ph_counts[arm])
                del test.compute_priv_ucb_leader
                return

    def _at(self, released: Released, row: int) -> tuple[Any, Handed]:
        """Their test, with the variables of one replicate."""
        test, handed = self.theirs
        test.counts, test.values, test.phase = released.counts[row], released.values[row], released.phase[row]
        test.ph_counts, test.last_ph_counts = released.ph_counts[row], released.last_ph_counts[row]
        test.ph_rewards, test.ph_best = np.zeros(self.n_actions), int(released.best[row])
        return test, handed

    def _tossed(self, row: int, first: int) -> Iterator[float]:
        key = 0 if self.coins is None else int(self.coins[row])
        while True:
            yield from uniform(key, np.arange(first, first + 256)).tolist()
            first += 256


def episode(n: float) -> int:
    """Number of an arm's episode of n pulls: 1, 1, 2, 4, ...; the later one of those of one pull."""
    return round(math.log2(n)) + 2


bandit = AdaPTT(2, 1.0)
"""Two arms, for `bandana audit-own`."""
