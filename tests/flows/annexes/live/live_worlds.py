"""Worlds in which a live policy can be foreseen: a clock that is set, ids that count, noise from a seed."""

from __future__ import annotations

import itertools

import numpy as np

import bandana.live
from bandana.flows.annexes.live.api import open_router
from bandana.flows.annexes.live.policy import World
from bandana.flows.annexes.live.router import router_of
from bandana.flows.annexes.live.secrecy import Secrecy
from bandana.flows.annexes.live.store import Store
from bandana.privacy_core import ReproducibleNoise

ARMS = {"algorithm": "dp-imed", "claim": "pure(epsilon=1, relation=reward)", "n_actions": 3, "deadline": 10.0}
VECTORS = {
    "algorithm": "linucb", "claim": "approx(epsilon=1, delta=1e-5, relation=record, trust=joint)", "n_actions": 3,
    "context_dimension": 2, "n_asks": 64, "calibration": "tree", "deadline": 10.0,
}  # fmt: skip


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def world(clock, seed=0, **more):
    """A world without chance: ids count, coins and noise follow from the seed."""
    numbers, coins = itertools.count(), np.random.default_rng(seed)
    return World(
        clock=clock, token=lambda: f"id-{next(numbers)}", toss=lambda n: coins.random((1, n)),
        noise=ReproducibleNoise(np.random.SeedSequence(seed)), **more,
    )  # fmt: skip


def opened(place, own_world, settings=ARMS, key=None):
    """A policy in a file that does not wait for the disk."""
    store = Store(str(place), is_durable=False)
    return open_router(router_of(place, settings), store, Secrecy(key), own_world)


def told(policy, reward, clock, n, seconds=11.0, context=None):
    """Asks and tells n times, each answer before the next ask, which comes when the deadline has passed."""
    shown = []
    for number in range(n):
        choice = policy.ask(None if context is None else context(number))
        assert policy.tell(choice.id, reward(number, choice.action)) == "kept"
        shown.append(choice.action)
        clock.now += seconds
    return shown


__all__ = ["ARMS", "VECTORS", "Clock", "bandana", "opened", "told", "world"]
