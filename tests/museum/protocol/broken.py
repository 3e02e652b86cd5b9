"""Broken bandits, each as a researcher might write it: one leak, which is named by the class.

`WITNESSES` proves that each one leaks, without statistics: a data set, a record and its value in the neighbor, and an event
that happens on the one and, with the same noise, not on the other although both promise the same released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bandana.privacy_core import Gaussian, Interval, Laplace, PhaseSum, Relation, Span
from tests.museum.protocol.bandit import ONE, Bandit, force

WIDE = Interval(0.0, 5.0)
SOFT, NARROW, NARROW_LAPLACE = (
    PhaseSum(mechanism)
    for mechanism in (
        Gaussian(1.0, 0.5, Relation.REPLACE_REWARD),
        Gaussian(0.5, 1.0, Relation.REPLACE_REWARD),
        Laplace(0.5, 1.0, Relation.REPLACE_REWARD),
    )
)


@dataclass(frozen=True)
class Echo(Bandit):
    """The raw reward of one round decides the action of a later one."""

    record: int = 5
    lag: int = 1
    least: float = 0.5

    def show(self, released, history, round_):
        seen = history[:, self.record] > self.least
        return force(released, round_ == self.record + self.lag - 1, seen)


@dataclass(frozen=True)
class EchoWindow(Bandit):
    """All raw rewards of a stretch of rounds decide the next action."""

    first: int = 28
    last: int = 31

    def show(self, released, history, round_):
        now = history[np.arange(len(round_)), round_] > 0.5
        return force(released, (round_ >= self.first) & (round_ <= self.last), now)


@dataclass(frozen=True)
class Periodic(Bandit):
    """Every seventh raw reward decides the next action."""

    def show(self, released, history, round_):
        return force(released, round_ % 7 == 6, history[np.arange(len(round_)), round_] > 0.5)


@dataclass(frozen=True)
class Lagged(Bandit):
    """From round 16 on, the action is the raw reward of three rounds before."""

    def show(self, released, history, round_):
        return force(released, round_ >= 16, history[np.arange(len(round_)), np.maximum(round_ - 2, 0)] > 0.5)


@dataclass(frozen=True)
class ResetAtTotal(Bandit):
    """Learning starts anew as soon as the exact total passes 20."""

    limit: float = 20.0

    def show(self, released, history, round_):
        before = (np.arange(64) < round_[:, None]) * history
        crossed = (history.sum(axis=1) > self.limit) & (before.sum(axis=1) <= self.limit)
        return released._replace(total=np.where(crossed[:, None], 0.0, released.total))


@dataclass(frozen=True)
class ExactBelow(Bandit):
    """A noisy sum that is improbably small is replaced by the exact one."""

    limit: float = -3.09

    def answer(self, noisy, exact):
        return np.where(noisy - exact < self.limit, exact, noisy)


@dataclass(frozen=True)
class ImpossibleReplaced(Bandit):
    """Noisy sums outside what an episode can earn are replaced by the exact ones."""

    def answer(self, noisy, exact):
        return np.where((noisy < -2) | (noisy > self.length + 2), exact, noisy)


@dataclass(frozen=True)
class OneValue(Bandit):
    """A reward of exactly 0.37 is followed by arm 1."""

    value: float = 0.37

    def show(self, released, history, round_):
        now = history[np.arange(len(round_)), round_]
        return force(released, np.abs(now - self.value) < 1e-6, np.ones(len(round_)))


@dataclass(frozen=True)
class HiddenValue(Bandit):
    """A reward near a number that only the code names is followed by arm 1."""

    def show(self, released, history, round_):
        now = history[np.arange(len(round_)), round_]
        return force(released, np.abs(now - 0.83) < 1e-3, np.ones(len(round_)))


@dataclass(frozen=True)
class MiddleShown(Bandit):
    """Rewards in the middle of the range are shown raw."""

    def show(self, released, history, round_):
        now = history[np.arange(len(round_)), round_]
        return force(released, (now > 0.4) & (now < 0.6), np.ones(len(round_)))


@dataclass(frozen=True)
class Tinged(Bandit):
    """A small share of every exact reward is added to what is released."""

    share: float = 0.001

    def show(self, released, history, round_):
        now = history[np.arange(len(round_)), round_]
        return released._replace(total=released.total + self.share * now[:, None])


@dataclass(frozen=True)
class Quota(Bandit):
    """After twelve exact successes arm 0 is played for good."""

    quota: int = 12

    def show(self, released, history, round_):
        return force(released, (history > 0.5).sum(axis=1) >= self.quota, np.zeros(len(round_)))


@dataclass(frozen=True)
class Streak(Bandit):
    """So many high rewards in a row change the arm."""

    length_of_streak: int = 2
    since: int = 0

    def show(self, released, history, round_):
        at = np.arange(len(round_))
        run = [history[at, np.maximum(round_ - back, 0)] > 0.75 for back in range(self.length_of_streak)]
        streak = np.logical_and.reduce(run) & (round_ >= max(self.since, self.length_of_streak - 1))
        return force(released, streak, self.act(released, None, 0) ^ 1)


@dataclass(frozen=True)
class Both(Bandit):
    """Two records together decide a later action."""

    pair: tuple[int, int] = (5, 9)

    def show(self, released, history, round_):
        both = (history[:, self.pair[0]] > 0.5) & (history[:, self.pair[1]] > 0.5)
        return force(released, round_ == 19, both)


@dataclass(frozen=True)
class Parity(Bandit):
    """The parity of all high rewards decides the last action."""

    def show(self, released, history, round_):
        return force(released, round_ == 30, (history > 0.5).sum(axis=1) % 2)


@dataclass(frozen=True)
class SumOfTwo(Bandit):
    """An episode whose exact sum is 2 is followed by arm 1."""

    def show(self, released, history, round_):
        at = np.arange(len(round_))[:, None]
        last = history[at, np.maximum(round_[:, None] - np.arange(4), 0)].sum(axis=1)
        return force(released, (round_ % 4 == 3) & (last == 2), np.ones(len(round_)))


@dataclass(frozen=True)
class CloseDecidedExactly(Bandit):
    """Where noisy means are close, the exact history decides."""

    def show(self, released, history, round_):
        mean = released.total / np.maximum(released.pulls, 1)
        close = (np.abs(mean[:, 0] - mean[:, 1]) < 0.05) & (round_ >= 7)
        return force(released, close, history[:, :4].sum(axis=1) < history[:, 4:8].sum(axis=1))


@dataclass(frozen=True)
class Snap(Bandit):
    """A noisy sum that is close to the exact one is replaced by it."""

    def answer(self, noisy, exact):
        return np.where(np.abs(noisy - exact) < 0.01, exact, noisy)


@dataclass(frozen=True)
class NoiseBounded(Bandit):
    """Noise is cut at twice its deviation, so that what is released bounds the exact sum."""

    def answer(self, noisy, exact):
        return exact + np.clip(noisy - exact, -2, 2)


@dataclass(frozen=True)
class LastBits(Bandit):
    """The exact sum is added to the last digits of the noisy one."""

    def answer(self, noisy, exact):
        return np.round(noisy, 6) + 1e-9 * exact


@dataclass(frozen=True)
class SeldomExact(Bandit):
    """Once in a hundred releases, as told by their digits, the exact sum is learned."""

    share: float = 0.01

    def answer(self, noisy, exact):
        return np.where(noisy * 2**20 % 1 < self.share, exact, noisy)


@dataclass(frozen=True)
class NoiseShared(Bandit):
    """The noise of a release is taken off again and replaced by a quarter of it."""

    def answer(self, noisy, exact):
        return exact + (noisy - exact) / 4


@dataclass(frozen=True)
class NeverForgets(Bandit):
    """An episode's sum keeps the one before, which its release does not declare."""

    def contribution(self, reward, history, round_):
        before = history[np.arange(len(round_))[:, None], np.maximum(round_[:, None] - 1 - np.arange(4), 0)].sum(axis=1)
        return reward + np.where((round_ % 4 == 0) & (round_ >= 4), before, 0.0)


@dataclass(frozen=True)
class CarriedOver(Bandit):
    """The last reward of an episode also enters the next one."""

    def contribution(self, reward, history, round_):
        before = history[np.arange(len(round_)), np.maximum(round_ - 1, 0)]
        return reward + np.where((round_ % 4 == 0) & (round_ > 16), before, 0.0)


@dataclass(frozen=True)
class CountedTwice(Bandit):
    """Rewards after round 20 count twice, with noise for once."""

    def contribution(self, reward, history, round_):
        return reward * np.where(round_ >= 20, 2.0, 1.0)


@dataclass(frozen=True)
class NotClipped(Bandit):
    """The declared range is five times as wide as what the noise hides."""

    reward_range: Interval = WIDE


@dataclass(frozen=True)
class FirstRecordUndeclared(Bandit):
    """A release declares all records of its episode but the first."""

    def close(self, sums, ledger, ended, history):
        phase, span = sums, Span(sums.start[ended] + 1, sums.stop[ended])
        noisy = ledger.release(self.sums.mechanism, phase.total[ended], records=span, reps=ended)
        n_rewards = phase.stop[ended] - phase.start[ended]
        phase.total[ended], phase.start[ended] = 0.0, phase.stop[ended]
        return phase, noisy, n_rewards


@dataclass(frozen=True)
class ReleasedTwice(Bandit):
    """Each episode is released twice, and the mean is learned."""

    def close(self, sums, ledger, ended, history):
        value, span = sums.total[ended].copy(), Span(sums.start[ended].copy(), sums.stop[ended].copy())
        sums, noisy, n_rewards = self.sums.close(sums, ledger, ended)
        again = ledger.release(self.sums.mechanism, value, records=span, reps=ended)
        return sums, (noisy + again) / 2, n_rewards


@dataclass(frozen=True)
class AgainUndeclared(ReleasedTwice):
    """Each episode is released twice, the second time as if it read nothing."""

    def close(self, sums, ledger, ended, history):
        value, stop = sums.total[ended].copy(), sums.stop[ended].copy()
        sums, noisy, n_rewards = self.sums.close(sums, ledger, ended)
        again = ledger.release(self.sums.mechanism, value, records=Span(stop, stop), reps=ended)
        return sums, (noisy + again) / 2, n_rewards


@dataclass(frozen=True)
class NoiseByData(Bandit):
    """Episodes with a large exact sum get more noise."""

    def close(self, sums, ledger, ended, history):
        value = sums.total[ended]
        louder = Gaussian(1.0, 2.0, Relation.REPLACE_REWARD)
        noisy, n_rewards = np.empty(len(ended)), np.zeros(len(ended), dtype=np.int64)
        for mechanism, rows in ((ONE, value < 3.5), (louder, value >= 3.5)):
            if rows.any():
                sums, noisy[rows], n_rewards[rows] = PhaseSum(mechanism).close(sums, ledger, ended[rows])
        return sums, noisy, n_rewards


@dataclass(frozen=True)
class SilentWhenEmpty(Bandit):
    """Episodes without any reward are not released."""

    def close(self, sums, ledger, ended, history):
        some = sums.total[ended] > 0
        noisy, n_rewards = np.zeros(len(ended)), np.full(len(ended), self.length)
        if some.any():
            sums, noisy[some], _ = self.sums.close(sums, ledger, ended[some])
        sums.start[ended] = sums.stop[ended]
        return sums, noisy, n_rewards


@dataclass(frozen=True)
class BestExposed(Bandit):
    """The largest reward so far is kept beside the released sums, for debugging."""

    def show(self, released, history, round_):
        return released._replace(total=released.total + 1e-12 * history.max(axis=1)[:, None])


@dataclass(frozen=True)
class MultiplierHalved(Bandit):
    """The noise is half of what the claim needs, and the ledger says so."""

    sums: PhaseSum = SOFT


@dataclass(frozen=True)
class SensitivityHalved(Bandit):
    """The mechanism is told half of the range."""

    sums: PhaseSum = NARROW


@dataclass(frozen=True)
class LaplaceInL1Halved(Bandit):
    """Laplace noise for half of the range, claimed as pure."""

    sums: PhaseSum = NARROW_LAPLACE


GDP, PURE = "gdp(mu=1, relation=reward)", "pure(epsilon=1, relation=reward)"
BROKEN = {
    "echo-5": (Echo(record=5), GDP),
    "echo-13": (Echo(record=13), GDP),
    "echo-21": (Echo(record=21), GDP),
    "echo-29": (Echo(record=29), GDP),
    "echo-20-rounds-later": (Echo(record=7, lag=20), GDP),
    "echo-25-rounds-later": (Echo(record=3, lag=25), GDP),
    "echo-of-high-rewards": (Echo(record=17, lag=6, least=0.9), GDP),
    "echo-at-the-end": (EchoWindow(), GDP),
    "periodic": (Periodic(), GDP),
    "lagged": (Lagged(), GDP),
    "reset-at-20": (ResetAtTotal(), GDP),
    "reset-at-7.5": (ResetAtTotal(limit=7.5), GDP),
    "exact-below": (ExactBelow(), GDP),
    "exact-far-below": (ExactBelow(limit=-6.0), GDP),
    "impossible-replaced": (ImpossibleReplaced(), GDP),
    "one-value": (OneValue(), GDP),
    "hidden-value": (HiddenValue(), GDP),
    "middle-shown": (MiddleShown(), GDP),
    "tinged": (Tinged(), GDP),
    "quota": (Quota(), GDP),
    "streak-2": (Streak(), GDP),
    "streak-3-late": (Streak(length_of_streak=3, since=22), GDP),
    "both": (Both(), GDP),
    "parity": (Parity(), GDP),
    "sum-of-two": (SumOfTwo(), GDP),
    "close-decided-exactly": (CloseDecidedExactly(), GDP),
    "snap": (Snap(), GDP),
    "noise-bounded": (NoiseBounded(), GDP),
    "last-bits": (LastBits(), GDP),
    "seldom-exact": (SeldomExact(), GDP),
    "noise-shared": (NoiseShared(), GDP),
    "never-forgets": (NeverForgets(), GDP),
    "carried-over": (CarriedOver(), GDP),
    "counted-twice": (CountedTwice(), GDP),
    "not-clipped": (NotClipped(), GDP),
    "first-record-undeclared": (FirstRecordUndeclared(), GDP),
    "released-twice": (ReleasedTwice(), GDP),
    "again-undeclared": (AgainUndeclared(), GDP),
    "noise-by-data": (NoiseByData(), GDP),
    "silent-when-empty": (SilentWhenEmpty(), GDP),
    "best-exposed": (BestExposed(), GDP),
    "multiplier-halved": (MultiplierHalved(), GDP),
    "sensitivity-halved": (SensitivityHalved(), GDP),
    "laplace-halved": (LaplaceInL1Halved(), PURE),
}
