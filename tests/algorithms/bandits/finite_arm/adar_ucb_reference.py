"""Algorithm 2 of Azize and Basu, "Renyi Differentially Private Bandits", in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence


def play(
    table: Sequence[Sequence[float]],
    noise: Sequence[float],
    alpha: float,
    epsilon: float,
    beta: float,
    first_pull_samples: float = 0.5,
) -> list[int]:
    """The actions on rewards table[t][a]; noise holds one standard normal a release.

    The printed formulas divide by N/2, the length of the arm's last episode, which for its first pull is
    1/2. In the noise that is kept; `first_pull_samples` is what stands in the sampling term 1 / (2 n) of the
    bonus: 0.5 is what is printed, 1 what was sampled.
    """
    horizon, n_arms = len(table), len(table[0])
    draws = iter(noise)
    pulls, mean = [0] * n_arms, [0.0] * n_arms
    actions: list[int] = []
    for a in range(n_arms):
        half = 0.5
        mean[a] = table[a][a] + math.sqrt(alpha / (2 * epsilon * half**2)) * next(draws)
        pulls[a] = 1
        actions.append(a)
    while len(actions) < horizon:
        t = len(actions) + 1

        def index(a: int, t: int = t) -> float:
            half = pulls[a] / 2
            samples = half if pulls[a] > 1 else first_pull_samples
            bonus = math.sqrt((1 / (2 * samples) + alpha / (epsilon * half**2)) * beta * math.log(t))
            return mean[a] + bonus

        chosen = max(range(n_arms), key=lambda a: (index(a), -a))
        length, rewards = pulls[chosen], []
        while len(rewards) < length and len(actions) < horizon:
            rewards.append(table[len(actions)][chosen])
            actions.append(chosen)
        if len(rewards) < length:
            break
        pulls[chosen] *= 2
        half = pulls[chosen] / 2
        mean[chosen] = sum(rewards) / half + math.sqrt(alpha / (2 * epsilon * half**2)) * next(draws)
    return actions
