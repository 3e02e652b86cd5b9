"""The code that `dp_se.py` adapts, with its own generator and its own loop, as a function that an audit can play."""

from types import SimpleNamespace

import numpy as np
from dp_se import AUTHORS

EPSILON = 1.0
PARAMETERS = {"crs": 1, "delta": 0.9, "dc": 2}
"""Theirs, but for a larger failure probability, with which the first epoch of two arms has 369 pulls of each."""
MODULE = AUTHORS.unchanged()


def play(rewards, seed):
    """Their DPSE on one table.

    Args:
      rewards: (n_rounds, n_arms), in [0, 1].
      seed: of their generator.

    Returns:
      (n_rounds,) arms.
    """
    MODULE.rng = np.random.default_rng(seed)
    code = MODULE.DPSE(SimpleNamespace(K=rewards.shape[1], epsilon=EPSILON), len(rewards), PARAMETERS)
    arms = np.zeros(len(rewards), dtype=int)
    for t, answers in enumerate(rewards):
        arms[t] = code.get_arm(t)
        code.update(t, arms[t], answers[arms[t]])
    return arms


def edge(n_zeros):
    """(739, 2) rewards of the first epoch and one round: arm 1 always pays, arm 0 fails in `n_zeros` of its rounds.

    Arm 0 goes if the means differ by more than twice the width of their intervals: with 51 zeros, and not with 50.
    """
    rewards = np.ones((2 * 369 + 1, 2))
    rewards[:n_zeros, 0] = 0
    return rewards


if __name__ == "__main__":
    for n_zeros in (50, 51):
        np.save(f"edge-{n_zeros}.npy", edge(n_zeros))
