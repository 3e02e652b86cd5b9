"""Honest bandits and claims that they keep; whatever an audit says of them, it must not be FAIL."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandana.privacy_core import (
    DiscreteGaussian,
    FactorizedSum,
    Gaussian,
    Interval,
    Laplace,
    LocalSum,
    PhaseSum,
    Relation,
    TreeSum,
)
from tests.museum.protocol.bandit import ONE, Bandit

REWARD = Relation.REPLACE_REWARD
LAPLACE = PhaseSum(Laplace(1.0, 1.0, REWARD))
DISCRETE = PhaseSum(DiscreteGaussian(1.0, 1.0, 2.0**-30, REWARD))


@dataclass(frozen=True)
class RoundRobin(Bandit):
    """Plays the arms in turn, whatever it learns."""

    def act(self, released, context, step):
        return released.clock % self.n_actions


@dataclass(frozen=True)
class ExploresThenCommits(Bandit):
    """Plays the arms in turn for half of the rounds, then the best one."""

    def act(self, released, context, step):
        best = np.argmax(released.total / np.maximum(released.pulls, 1), axis=1)
        return np.where(released.clock < 16, released.clock // self.length % self.n_actions, best)


@dataclass(frozen=True)
class LearnsNothing(Bandit):
    """Never looks at a reward."""

    def act(self, released, context, step):
        return released.clock % self.n_actions

    def absorb(self, sensitive, released, record, ledger):
        return sensitive, released._replace(clock=released.clock + record.n_records)


@dataclass(frozen=True)
class Dithers(Bandit):
    """Explores by the last digits of what was released, which is post-processing."""

    def act(self, released, context, step):
        digits = np.abs(released.total).sum(axis=1) * 2**20 % 1
        return np.where(digits > 0.7, released.clock % self.n_actions, super().act(released, context, step))


@dataclass(frozen=True)
class EveryRound(Bandit):
    """Releases a running sum after every round, and plays arm 1 while it lies above half of the rounds."""

    def act(self, released, context, step):
        return (released.total[:, 0] > released.clock / 2).astype(np.int64)

    def absorb(self, sensitive, released, record, ledger):
        sums = self.sums.add(sensitive.sums, record.rewards[:, 0], record.n_records)
        sums, noisy, _ = self.sums.close(sums, ledger)
        total = np.stack([noisy] * self.n_actions, axis=1)
        return sensitive._replace(sums=sums), released._replace(total=total, clock=released.clock + record.n_records)


def _gaussian(mu: float, width: float = 1.0) -> PhaseSum:
    return PhaseSum(Gaussian(width, 1 / mu, REWARD))


GDP, PURE = "gdp(mu=1, relation=reward)", "pure(epsilon=1, relation=reward)"
HONEST = {
    "gaussian": (Bandit(), GDP),
    "gaussian-zcdp": (Bandit(), "zcdp(rho=0.5, relation=reward)"),
    "gaussian-rdp": (Bandit(), "rdp(alpha=2, epsilon=1, relation=reward)"),
    "gaussian-approx": (Bandit(), "approx(epsilon=4.3772, delta=1e-5, relation=reward)"),
    "gaussian-small": (Bandit(sums=_gaussian(0.05)), "gdp(mu=0.05, relation=reward)"),
    "gaussian-five-arms": (Bandit(n_actions=5), GDP),
    "gaussian-wide-range": (Bandit(sums=_gaussian(1.0, 8.0), reward_range=Interval(-3.0, 5.0)), GDP),
    "gaussian-long-episodes": (Bandit(length=8), GDP),
    "laplace": (Bandit(sums=LAPLACE), PURE),
    "laplace-approx": (Bandit(sums=LAPLACE), "approx(epsilon=1, delta=1e-5, relation=reward)"),
    "laplace-gdp": (Bandit(sums=LAPLACE), "gdp(mu=1.24, relation=reward)"),
    "laplace-zcdp": (Bandit(sums=LAPLACE), "zcdp(rho=0.5, relation=reward)"),
    "laplace-small": (Bandit(sums=PhaseSum(Laplace(1.0, 10.0, REWARD))), "pure(epsilon=0.1, relation=reward)"),
    "discrete-zcdp": (Bandit(sums=DISCRETE), "zcdp(rho=0.5, relation=reward)"),
    "discrete-approx": (Bandit(sums=DISCRETE), "approx(epsilon=4.73, delta=1e-5, relation=reward)"),
    "tree": (EveryRound(sums=TreeSum(Gaussian(1.0, 6**0.5, REWARD), 32)), GDP),
    "factorized": (EveryRound(sums=FactorizedSum(ONE, 32)), GDP),
    "local": (EveryRound(sums=LocalSum(ONE)), GDP),
    "local-trust": (EveryRound(sums=LocalSum(ONE)), "gdp(mu=1, relation=reward, trust=local)"),
    "round-robin": (RoundRobin(), GDP),
    "explores-then-commits": (ExploresThenCommits(), GDP),
    "learns-nothing": (LearnsNothing(), GDP),
    "dithers": (Dithers(), GDP),
}
