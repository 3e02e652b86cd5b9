"""AdaP-UCB, AdaP-KLUCB, DP-SE and DP-UCB in plain Python, round by round, from the papers' pseudocode.

`noise` holds standard Laplace draws, one a release (DP-UCB: one list of them, one an arm, a release).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import bisect

Table = Sequence[Sequence[float]]


def kl(p: float, q: float) -> float:
    """Divergence of two Bernoulli laws."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_index(p: float, budget: float) -> float:
    """The largest q with kl(p, q) at most the budget."""
    highest = 1 - 1e-16
    if p >= 1 or kl(p, highest) <= budget:
        return 1.0
    return float(bisect(lambda q: kl(p, q) - budget, max(p, 1e-300), highest, xtol=1e-15, rtol=1e-15))


def adap(table: Table, noise: Sequence[float], epsilon: float, alpha: float, is_kl: bool) -> list[int]:
    """Algorithm 1 of Azize and Basu (2022); every first pull counts one sample and has its noise."""
    horizon, n_arms = len(table), len(table[0])
    draws = iter(noise)
    pulls, samples, mean = [1] * n_arms, [1] * n_arms, [0.0] * n_arms
    actions: list[int] = []
    for a in range(n_arms):
        mean[a] = table[a][a] + next(draws) / epsilon
        actions.append(a)
    while len(actions) < horizon:
        t = len(actions) + 1
        index = []
        for a in range(n_arms):
            width = alpha * math.log(t) / (epsilon * samples[a])
            if is_kl:  # ties, which the paper leaves open, go by the mean before it is moved
                p = min(max(mean[a] + width, 0.0), 1.0)
                index.append((kl_index(p, alpha * math.log(t) / samples[a]), mean[a] + width))
            else:
                index.append((mean[a] + math.sqrt(alpha * math.log(2 * t) / (2 * samples[a])) + width, 0.0))
        chosen = index.index(max(index))
        rewards = []
        while len(rewards) < pulls[chosen] and len(actions) < horizon:
            rewards.append(table[len(actions)][chosen])
            actions.append(chosen)
        if len(rewards) < pulls[chosen]:
            break
        samples[chosen] = pulls[chosen]
        pulls[chosen] *= 2
        mean[chosen] = (sum(rewards) + next(draws) / epsilon) / samples[chosen]
    return actions


def dp_se(table: Table, noise: Sequence[float], epsilon: float, failure: float, scale: float) -> list[int]:
    """Algorithm 2 of Sajed and Sheffet (2019), arm by arm, with epochs `scale` times as long."""
    horizon = len(table)
    draws, active = iter(noise), list(range(len(table[0])))
    actions: list[int] = []
    epoch = 0
    while len(active) > 1:
        epoch += 1
        gap, arms = 2.0**-epoch, len(active) * epoch**2 / failure
        longest = max(32 * math.log(8 * arms) / gap**2, 8 * math.log(4 * arms) / (epsilon * gap))
        pulls, mean = math.floor(scale * longest) + 1, {}
        for a in active:
            if len(actions) + pulls > horizon:
                return actions + [a] * (horizon - len(actions))
            total = sum(table[len(actions) + i][a] for i in range(pulls))
            actions += [a] * pulls
            mean[a] = (total + next(draws) / epsilon) / pulls
        h = math.sqrt(math.log(8 * arms) / (2 * pulls))
        c = math.log(4 * arms) / (epsilon * pulls)
        best = max(mean.values())
        active = [a for a in active if not best - mean[a] > 2 * h + 2 * c]
    return actions + [active[0]] * (horizon - len(actions))


def dp_ucb(table: Table, noise: Sequence[Sequence[float]], epsilon: float, beta: float) -> list[int]:
    """UCB1 from a binary tree over rounds with one sum an arm; the width by bisection of Chernoff's exponent."""
    horizon, n_arms = len(table), len(table[0])
    scale = horizon.bit_length() / epsilon
    played = [[0.0] * n_arms for _ in range(horizon)]
    nodes: dict[tuple[int, int], list[float]] = {}
    draws = iter(noise)
    pulls, total = [0] * n_arms, [0.0] * n_arms
    actions: list[int] = []
    for t in range(1, horizon + 1):
        level = beta * math.log(t)
        m = (t - 1).bit_count()

        def exponent(q: float, m: int = m) -> float:
            s = math.sqrt(1 + (q / m) ** 2)
            return m * (s - 1 - math.log((s + 1) / 2))

        width = 0.0
        if m and level > 0:
            width = float(bisect(lambda q: exponent(q) - level, 0.0, 1e4, xtol=1e-13, rtol=1e-13))  # noqa: B023
        index = [
            (total[a] + scale * width) / pulls[a] + math.sqrt(level / (2 * pulls[a])) if pulls[a] else math.inf
            for a in range(n_arms)
        ]
        chosen = index.index(max(index))
        actions.append(chosen)
        pulls[chosen] += 1
        played[t - 1][chosen] = table[t - 1][chosen]
        length = t & -t
        drawn = next(draws)
        exact = [sum(played[i][a] for i in range(t - length, t)) for a in range(n_arms)]
        nodes[t - length, t] = [exact[a] + scale * drawn[a] for a in range(n_arms)]
        total, stop = [0.0] * n_arms, t
        while stop:
            start = stop - (stop & -stop)
            total = [x + y for x, y in zip(total, nodes[start, stop], strict=True)]
            stop = start
    return actions
