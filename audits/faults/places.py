"""Faults at random places: a record, a lag, a value or a probability that no search knows.

A fault that shows in the very next action of the first record proves nothing of the others. These run the algorithm as it
is, keep beside it what they must not, and let it out somewhere: an audit that claims to cover every record, lag, value and
event down to some probability must find them. Each leaves some event possible on one data set and impossible on its
neighbor, so it exceeds every finite mu, and every (epsilon, delta) whose delta is below the event's probability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import BoolArray, FloatArray, IntArray, Record
from bandana.audits.faults.fault import Control, Plant, State
from bandana.audits.faults.wrapped import ReleaseRequest, WithLedgerWrapper
from bandana.audits.outcome import DETERMINISTIC
from bandana.privacy_core import Ledger, is_selection

_KEY = 0x706C_6163
_DIGITS, _CLOSE = 2.0**20, 1e-6
SELDOM = 0.01
ALWAYS = ("reward-shown-later", "value-shown", "two-rewards-shown")
SOMETIMES = ("reward-shown-seldom", "exact-in-the-tail")
"""Names of the faults that every algorithm can have, and of those that take noise on numbers."""
_DEVIATIONS, _TAIL = 4.0, 1e-5
"""Noise below minus four deviations has a probability of 3e-5 if it is Gaussian, and of 2e-3 if it is Laplace noise."""


class Kept(NamedTuple):
    """Memory of a fault during a run; sensitive, and changed in place."""

    rewards: FloatArray
    """(n_reps, 2) of the record and of the next one."""
    digits: FloatArray
    """(n_reps,) low-order digits of the last release, in [0, 1): a coin that both data sets share; 1 before it."""


class Shown(NamedTuple):
    """The released state of an algorithm beside which something is let out."""

    inner: State
    """The algorithm's own."""
    forced: IntArray
    """(n_reps,) the action that must come next, or -1."""
    shown: FloatArray
    """(n_reps,)"""


@dataclass(frozen=True)
class _Beside(WithLedgerWrapper, ABC):
    """An algorithm that plays round by round, and what a subclass lets out after each of them.

    Attributes:
      record: whose reward is kept.
      last: the round after which it is let out.
      value: that a reward is compared with.
      share: of the runs in which it is let out.
    """

    record: int
    last: int
    value: float
    share: float = 1.0

    def empty_memory(self, n_reps: int) -> Kept:
        """Nothing kept."""
        return Kept(np.full((n_reps, 2), np.nan), np.ones(n_reps))

    def answer(self, request: ReleaseRequest, memory: Kept) -> FloatArray:
        """The honest answer, whose digits are kept."""
        output = request.release()
        memory.digits[request.rows] = np.abs(output.reshape(len(output), -1).sum(axis=1)) * _DIGITS % 1
        return output

    def init(self, n_reps: int) -> tuple[State, State]:
        """The algorithm's states, and nothing let out."""
        sensitive, released = super().init(n_reps)
        return sensitive, Shown(released, np.full(n_reps, -1), np.zeros(n_reps))

    def act(self, released: Shown, context: FloatArray | None, step: int, *coins: FloatArray) -> IntArray:
        """The algorithm's actions, unless one is forced."""
        actions = self.honest.act(released.inner, context, step, *coins)
        return np.where(released.forced >= 0, released.forced, actions)

    def hold(self, released: Shown, actions: IntArray) -> IntArray:
        """One round."""
        return np.ones(len(actions), dtype=np.int64)

    def absorb(self, sensitive: State, released: Shown, record: Record, ledger: Ledger) -> tuple[State, State]:
        """Absorbs as the algorithm does, keeps rewards, and lets something out."""
        reward, kept = record.rewards.sum(axis=1), sensitive.memory
        for place in range(2):
            kept.rewards[:, place] = np.where(record.user == self.record + place, reward, kept.rewards[:, place])
        sensitive, inner = super().absorb(sensitive, released.inner, record, ledger)
        none = np.full(len(reward), -1)
        return sensitive, self.let_out(Shown(inner, none, released.shown), kept, reward, record.user == self.last)

    @abstractmethod
    def let_out(self, released: Shown, kept: Kept, reward: FloatArray, is_last: BoolArray) -> Shown:
        """The released state with what is let out after a round."""


class _ShownLater(_Beside):
    def let_out(self, released: Shown, kept: Kept, reward: FloatArray, is_last: BoolArray) -> Shown:
        return released._replace(forced=np.where(is_last, (kept.rewards[:, 0] > self.value).astype(np.int64), -1))


class _OneValue(_Beside):
    def let_out(self, released: Shown, kept: Kept, reward: FloatArray, is_last: BoolArray) -> Shown:
        return released._replace(forced=np.where(np.abs(reward - self.value) < _CLOSE, 1, -1))


class _BothHigh(_Beside):
    def let_out(self, released: Shown, kept: Kept, reward: FloatArray, is_last: BoolArray) -> Shown:
        both = (kept.rewards > self.value).all(axis=1)
        return released._replace(forced=np.where(is_last, both.astype(np.int64), -1))


@dataclass(frozen=True)
class _BelowExact(WithLedgerWrapper):
    """An algorithm that gets an exact value in place of one whose noise is so many `deviations` of its own below zero."""

    deviations: float

    def answer(self, request: ReleaseRequest, memory: None) -> FloatArray:
        """The honest answer, unless one of its numbers is too low."""
        output = request.release()
        if is_selection(request.mechanism):
            return output
        rows = (len(output), -1)
        lowest = (output - request.value).reshape(rows).min(axis=1)  # the first number may have little noise of its own
        is_low = lowest < -self.deviations * request.mechanism.deviation
        return np.where(is_low[:, np.newaxis], request.value.reshape(rows), output.reshape(rows)).reshape(output.shape)


class _Seldom(_Beside):
    def let_out(self, released: Shown, kept: Kept, reward: FloatArray, is_last: BoolArray) -> Shown:
        is_told = is_last & (kept.digits < self.share)
        return released._replace(shown=np.where(is_told, kept.rewards[:, 0], released.shown))


def planted_at_random(
    n_records: int, values: tuple[float, ...], rarest: float, seed: int, *, has_digits: bool, tail: float = 1.0
) -> tuple[Control, ...]:
    """Faults at places that are drawn anew for each seed.

    Args:
      n_records: of a replay, at least 3.
      values: that a record takes in the search; the first two are the ends of the range.
      rarest: the probability down to which the search claims to see events.
      seed: of the places.
      has_digits: whether the algorithm releases numbers with digits, from which a rare event can be told.
      tail: the probability down to which the search claims to see tails of one release's noise.
    """
    coin = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(_KEY,))))
    middle = (values[0] + values[1]) / 2

    def place() -> tuple[int, int]:
        record = int(coin.integers(0, n_records - 2))
        return record, int(coin.integers(record + 1, n_records - 1))

    share = max(SELDOM, 2 * rarest)
    (late, last), (pair, after), (seldom, _) = place(), place(), place()
    value = float(coin.choice(values[2:] or values))
    controls = [
        _control(
            "reward-shown-later", f"The raw reward of record {late} decides the action {last - late + 1} rounds later",
            _ShownLater, late, last, middle,
        ),
        _control("value-shown", f"A reward of {value:g} decides the next action", _OneValue, 0, 0, value),
        _control(
            "two-rewards-shown", f"Records {pair} and {pair + 1}, if both are high, decide the action of round {after + 1}",
            _BothHigh, pair, after, middle,
        ),
    ]  # fmt: skip
    if has_digits:
        words = f"With probability {share:.2g} the released state ends with the reward of record {seldom}"
        controls.append(_control("reward-shown-seldom", words, _Seldom, seldom, n_records - 1, middle, share))
    if has_digits and tail < _TAIL:
        words = f"A release shows its exact value where one of its numbers is {_DEVIATIONS:g} standard deviations too low"
        controls.append(_found_by_search("exact-in-the-tail", words, lambda honest: _BelowExact(honest, _DEVIATIONS)))
    return tuple(controls)


def _control(
    name: str, words: str, kind: type[_Beside], record: int, last: int, value: float, share: float = 1.0
) -> Control:
    return _found_by_search(name, words, lambda honest: kind(honest, record, last, value, share))


def _found_by_search(name: str, words: str, plant: Plant) -> Control:
    return Control(name, f"{words} (no privacy)", plant, (DETERMINISTIC,), is_sampled=False)
