"""Two plain functions, (rewards, seed) -> actions, of which an audit sees the actions only.

`play` adds noise to what it decides from; `leaky` explores at random and decides from exact rewards, which hides nothing.
"""

import numpy as np

LENGTH = 4


def play(rewards, seed):
    """Private epsilon-greedy in episodes of four rounds: an episode's sum of rewards is seen with noise N(0, 1) only.

    A reward in [0, 1] lies in one sum, so that all actions are 1-GDP.

    Args:
      rewards: (n_reps, n_rounds, n_arms), what each arm would pay; only the rewards of played arms are read.
      seed: of all randomness.

    Returns:
      (n_reps, n_rounds) arms.
    """
    return _greedy(rewards, seed, noise=1.0)


def leaky(rewards, seed):
    """The same, and somebody left out the noise."""
    return _greedy(rewards, seed, noise=0.0)


def _greedy(rewards, seed, noise, exploration=0.1):
    rng = np.random.default_rng(seed)
    rewards = np.clip(rewards, 0.0, 1.0)
    n_reps, n_rounds, n_arms = rewards.shape
    rows = np.arange(n_reps)
    total, pulls = np.zeros((n_reps, n_arms)), np.zeros((n_reps, n_arms))
    actions = np.zeros((n_reps, n_rounds), dtype=int)
    for start in range(0, n_rounds, LENGTH):
        episode = start // LENGTH
        arm = np.argmax(total / np.maximum(pulls, 1), axis=1)
        explores = rng.random(n_reps) < exploration
        arm = np.where(explores, rng.integers(0, n_arms, n_reps), arm)
        if episode < n_arms:
            arm = np.full(n_reps, episode)
        stop = min(start + LENGTH, n_rounds)
        actions[:, start:stop] = arm[:, None]
        total[rows, arm] += rewards[rows, start:stop, arm].sum(axis=1) + noise * rng.standard_normal(n_reps)
        pulls[rows, arm] += stop - start
    return actions
