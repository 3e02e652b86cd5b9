"""Faults planted in a plain function: leaks in what it returns, at random places, large enough to break the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from bandana.algorithms.entry import Claim
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.claims import Quantity, binary_divergence, binary_rho
from bandana.audits.outcome import Effort
from bandana.flows.annexes.anything.functions.plays import Play
from bandana.flows.annexes.anything.outputs.bounds import rarest_event
from bandana.privacy_core import ZCDP, GaussianDP, Guarantee, Interval, RenyiDP


def echo_error(stated: Guarantee, factor: float) -> float:
    """Probability that a randomized echo of one bit lies, at which it leaks `factor` times what the claim allows."""
    match stated:
        case GaussianDP(mu=mu):
            return float(ndtr(-factor * mu / 2))
        case RenyiDP(alpha=alpha, epsilon=epsilon):
            return _lie_of(lambda lie: binary_divergence(lie, lie, alpha), factor * epsilon)
        case ZCDP(rho=rho):
            return _lie_of(lambda lie: binary_rho(lie, lie), factor * rho)
    return float(1 / (1 + np.exp(factor * stated.epsilon)))  # type: ignore[union-attr]


def _lie_of(leak: Callable[[float], float], target: float) -> float:
    low, high = 1e-300, 0.5
    for _ in range(100):
        middle = np.sqrt(low * high) if low < 1e-3 else (low + high) / 2
        low, high = (middle, high) if leak(float(middle)) > target else (low, middle)
    return float(low)


_ROOM = 4
"""Times as many leaking runs as a score without errors would need."""


@dataclass(frozen=True)
class Place:
    """Where a leak is planted: an action that many rounds after a record."""

    record: int
    lag: int

    @classmethod
    def drawn(cls, n_rounds: int, seed: int, number: int) -> Place:
        """A random record but the last, and a random later round."""
        rng = np.random.default_rng([seed, 4, number])
        record = int(rng.integers(0, n_rounds - 1))
        return cls(record, int(rng.integers(1, n_rounds - record)))

    def __str__(self) -> str:
        return f"record {self.record}, {self.lag} round{'s' * (self.lag != 1)} later"


def echoing(play: Play, place: Place, lie: float, reward_range: Interval, share: float = 1.0) -> Play:
    """The function with a leak: one later action repeats the record's reward, but for a lie now and then.

    Args:
      play: the function.
      place: the record, and how much later.
      lie: probability of a lie.
      reward_range: declared range; rewards above its middle count as 1.
      share: of the runs that leak. If it is below 1, all actions from there on take turns, and the first one is the reward.
    """
    middle = (reward_range.low + reward_range.high) / 2
    later = place.record + place.lag

    def planted(rewards: FloatArray, seed: int) -> IntArray:
        actions = np.array(play(rewards, seed))
        rows = np.arange(len(actions))
        bit = rewards[rows, place.record, actions[:, place.record]] > middle
        coins = np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(4,)))).random((2, len(actions)))
        shown = np.where(coins[0] < lie, ~bit, bit).astype(np.int64)
        if share == 1.0:
            actions[:, later] = shown
            return actions
        turns = (shown[:, None] + np.arange(actions.shape[1] - place.record - 1)) % 2
        leaks = coins[1] < share
        actions[leaks, place.record + 1 :] = turns[leaks]
        return actions

    return planted


def planted_faults(
    play: Play, claim: Claim, n_rounds: int, span: Interval, effort: Effort, level: float
) -> tuple[tuple[str, str, Play], ...]:
    """Name, fault in words, and the faulty function; each keeps the claim's form, and stands at a place of its own."""
    quantity, doubled = Quantity.of(claim.stated), echo_error(claim.stated, 2.0)
    rarest = rarest_event(
        quantity, quantity.limit(claim.stated), effort.seed, level, effort.replays, max(100, effort.replays // 4)
    )
    share = min(1.0, max(0.01, _ROOM * (rarest or 1.0)))
    first, second, third = (Place.drawn(n_rounds, effort.seed, number) for number in range(3))
    return (
        ("reward-echoed", f"an action repeats an earlier reward ({first}; no privacy)", echoing(play, first, 0.0, span)),
        (
            "leak-doubled", f"the same, but it lies as often as leaks twice what is claimed ({second})",
            echoing(play, second, doubled, span),
        ),
        (
            "leak-now-and-then", f"in {share:.2g} of all runs the actions after record {third.record} show its reward",
            echoing(play, third, 0.0, span, min(share, 0.999)),
        ),
    )  # fmt: skip
