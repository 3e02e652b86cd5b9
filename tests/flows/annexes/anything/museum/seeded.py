"""Plain functions whose generators rewards seed, and honest twins: noise that looks fresh in every replay, and is not.

All play the arm with the larger noisy mean in episodes of four rounds, and add normal noise of scale 1 to the sum of an
episode. They differ in where their generators come from.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import default_rng

LENGTH = 4
Noise = Callable[[int, int, np.ndarray, int], float]
"""(episode, arm, (n_rounds,) rewards of the played arms, of which those before the episode's end are paid, rounds paid)."""


def one_run(rewards, noise: Noise):
    """(n_rounds,) actions of one run on (n_rounds, n_arms) rewards."""
    n_rounds, n_arms = rewards.shape
    total, pulls = np.zeros(n_arms), np.zeros(n_arms)
    actions, paid = np.zeros(n_rounds, dtype=int), np.zeros(n_rounds)
    for episode, start in enumerate(range(0, n_rounds, LENGTH)):
        arm = episode if episode < n_arms else int(np.argmax(total / np.maximum(pulls, 1)))
        stop = min(start + LENGTH, n_rounds)
        actions[start:stop] = arm
        paid[start:stop] = np.clip(rewards[start:stop, arm], 0, 1)
        total[arm] += paid[start:stop].sum() + noise(episode, arm, paid, stop)
        pulls[arm] += stop - start
    return actions


def each_run(made: Callable[[Any, Any], Noise]):
    """Many runs: made(rewards of a run, [seed, run]) is the noise of a run."""

    def play(rewards, seed):
        return np.array([one_run(row, made(row, [seed, run])) for run, row in enumerate(rewards)])

    return play


def digest(numbers):
    return zlib.crc32(np.ascontiguousarray(numbers).tobytes())


# --- broken -----------------------------------------------------------------------------------------------------------


def by_all_rewards(rewards, seed):
    rng = np.random.default_rng([*seed, digest(rewards)])
    return lambda episode, arm, paid, stop: rng.normal()


def by_what_was_paid(rewards, seed):
    return lambda episode, arm, paid, stop: default_rng([*seed, episode, digest(paid[:stop])]).normal()


def by_the_total(rewards, seed):
    return lambda episode, arm, paid, stop: np.random.default_rng([*seed, episode, int(100 * paid.sum())]).normal()


def by_old_state(rewards, seed):
    state = np.random.RandomState((digest(seed) + digest(rewards)) % 2**32)
    return lambda episode, arm, paid, stop: state.normal()


def by_bits(rewards, seed):
    rng = np.random.Generator(np.random.PCG64([*seed, digest(rewards)]))
    return lambda episode, arm, paid, stop: rng.normal()


def by_python(data, seed):
    """One run at a time, with Python's generator."""
    rng = random.Random(f"{seed} {data.sum():.3f}")
    return one_run(data, lambda episode, arm, paid, stop: rng.gauss(0, 1))


def by_the_stream(stream, seed):
    """Explores in turn; the sums' noise comes from a generator that the total seeds."""
    sums, total = np.zeros((stream.n_reps, 2)), np.zeros(stream.n_reps)
    for t in range(stream.n_rounds):
        if t == 16:
            sums += np.array([default_rng([seed, run, int(100 * paid)]).normal(size=2) for run, paid in enumerate(total)])
        arm = np.full(stream.n_reps, t % 2) if t < 16 else np.argmax(sums, axis=1)
        paid = np.clip(stream.pull(arm), 0, 1)
        total += paid
        if t < 16:
            sums[:, t % 2] += paid


BROKEN = {
    "all rewards": each_run(by_all_rewards),
    "what was paid": each_run(by_what_was_paid),
    "the total": each_run(by_the_total),
    "an old state": each_run(by_old_state),
    "a generator of bits": each_run(by_bits),
    "Python's generator, one run": by_python,
    "a stream": by_the_stream,
}


# --- honest -----------------------------------------------------------------------------------------------------------


def by_seed(rewards, seed):
    rng = default_rng(seed)
    return lambda episode, arm, paid, stop: rng.normal()


def by_arm(rewards, seed):
    """A generator for each arm and episode: a changed reward changes later arms, and so their seeds."""
    return lambda episode, arm, paid, stop: np.random.default_rng([*seed, episode, arm]).normal()


def by_old_seed(rewards, seed):
    state = np.random.RandomState(digest(seed) % 2**32)
    return lambda episode, arm, paid, stop: state.normal()


def by_children(rewards, seed):
    children = np.random.SeedSequence(seed).spawn(len(rewards))
    return lambda episode, arm, paid, stop: np.random.Generator(np.random.SFC64(children[episode])).normal()


def by_pythons_seed(data, seed):
    """One run at a time, with Python's generator."""
    rng = random.Random(seed)
    return one_run(data, lambda episode, arm, paid, stop: rng.gauss(0, 1))


def by_the_streams_seed(stream, seed):
    """Explores in turn; two noisy sums decide."""
    sums = default_rng(seed).normal(size=(stream.n_reps, 2))
    for t in range(stream.n_rounds):
        arm = np.full(stream.n_reps, t % 2) if t < 16 else np.argmax(sums, axis=1)
        paid = np.clip(stream.pull(arm), 0, 1)
        if t < 16:
            sums[:, t % 2] += paid


HONEST = {
    "the seed": each_run(by_seed),
    "the seed and the arm": each_run(by_arm),
    "an old state": each_run(by_old_seed),
    "spawned children": each_run(by_children),
    "Python's generator, one run": by_pythons_seed,
    "a stream": by_the_streams_seed,
}
