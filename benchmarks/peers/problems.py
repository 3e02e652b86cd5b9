"""The problems that every library plays: both interpreters read this file, which needs NumPy alone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MEANS = np.linspace(0.75, 0.25, 10)
ROUNDS = 1000

N_ARMS, DIMENSION, USERS, RIDGE, WIDTH = 5, 5, 500, 1.0, 0.5
"""Linear arms, each with a parameter of its own (disjoint LinUCB): width 0.5 on every deviation, no intercept."""

N_STATES, N_ACTIONS, LENGTH, EPISODES = 5, 3, 5, 400

RELEASES, MULTIPLIER = 1000, 30.0
MIXED, LAPLACE, GAUSSIAN = 100, 20.0, 40.0
DELTAS = np.geomspace(1e-8, 1e-2, 20)

AUDITED, DELTA, LEVEL = 100_000, 1e-5, 0.05
"""Samples a side of a Gaussian release at mu = 1."""


class Contexts(NamedTuple):
    """Users of one replication."""

    vectors: NDArray[np.float64]
    """(users, d), of norm 1."""
    means: NDArray[np.float64]
    """(users, arms)"""
    rewards: NDArray[np.float64]
    """(users, arms), each 0 or 1."""


def pulls(seed: int) -> NDArray[np.float64]:
    """(arms, rounds) rewards of an arm's first pull, its second, and so on: without ties, so that a rule decides alone."""
    generator = np.random.default_rng([1, seed])
    return MEANS[:, None] + generator.uniform(-0.25, 0.25, (len(MEANS), ROUNDS))


def contexts(seed: int) -> Contexts:
    """Users whose arms have linear means in [0.1, 0.9]."""
    generator = np.random.default_rng([2, seed])
    parameters = np.random.default_rng(3).normal(size=(N_ARMS, DIMENSION))
    parameters *= 0.4 / np.linalg.norm(parameters, axis=1, keepdims=True)
    vectors = generator.normal(size=(USERS, DIMENSION))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    means = 0.5 + vectors @ parameters.T
    return Contexts(vectors, means, (generator.random(means.shape) < means).astype(float))


def process() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Transitions (H, S, A, S), and rewards (H, S, A) that are paid as they are."""
    generator = np.random.default_rng(4)
    transitions = generator.dirichlet(np.ones(N_STATES), (LENGTH, N_STATES, N_ACTIONS))
    return transitions, generator.random((LENGTH, N_STATES, N_ACTIONS))


def samples(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Outputs of a Gaussian release at mu = 1 on both neighbors."""
    generator = np.random.default_rng([5, seed])
    return generator.standard_normal(AUDITED), generator.standard_normal(AUDITED) + 1.0


def values_of(transitions: Any, rewards: Any) -> float:
    """The best expected sum of rewards of an episode that begins in state 0."""
    values = np.zeros(N_STATES)
    for step in reversed(range(LENGTH)):
        values = (rewards[step] + transitions[step] @ values).max(axis=1)
    return float(values[0])
