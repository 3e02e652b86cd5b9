"""DP-KLUCB and DP-IMED in plain Python, round by round, with the divergence as it is defined."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy.optimize import bisect, minimize_scalar


def kl(p: float, q: float) -> float:
    """Divergence of two Bernoulli laws."""
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def d(p: float, q: float, epsilon: float) -> float:
    """inf over r in [p, q] of epsilon (r - p) + kl(r, q), for p <= q, by search."""
    if q >= 1:
        return epsilon * (1 - p)
    found = minimize_scalar(
        lambda r: epsilon * (r - p) + kl(r, q), bounds=(p, q), method="bounded", options={"xatol": 1e-13}
    )
    return float(min(found.fun, kl(p, q), epsilon * (q - p)))


def batches(
    table: Sequence[Sequence[float]], noise: Sequence[float], epsilon: float, growth: float, weighted: bool, is_imed: bool
) -> list[int]:
    """Actions on a table of rewards in [0, 1]; `noise` holds standard Laplace draws, one a batch."""
    horizon, n_arms = len(table), len(table[0])
    draws, actions = iter(noise), list[int]()
    kept: list[list[tuple[int, float]]] = [[] for _ in range(n_arms)]  # an arm's batches: length and noisy sum

    def estimate(a: int) -> tuple[float, float]:
        last = 0.25 + 2 / (epsilon**2 * kept[a][-1][0])
        weights = [last / (0.25 + 2 / (epsilon**2 * n)) if weighted else 1.0 for n, _ in kept[a]]
        size = sum(w * n for w, (n, _) in zip(weights, kept[a], strict=True))
        mean = sum(w * s for w, (_, s) in zip(weights, kept[a], strict=True)) / size
        return min(max(mean, 0.0), 1.0), size

    def choice() -> int:
        if new := [a for a in range(n_arms) if not kept[a]]:
            return new[0]
        found = [estimate(a) for a in range(n_arms)]
        if is_imed:
            best = max(p for p, _ in found)
            index = [n * d(p, best, epsilon) + math.log(n) for p, n in found]
            return index.index(min(index))
        keys = []
        for p, n in found:
            budget = math.log(len(actions) + 1) / n
            if epsilon * (1 - p) <= budget:
                keys.append((1.0, budget + epsilon * p))
            else:
                keys.append((bisect(lambda q: d(p, q, epsilon) - budget, p, 1.0, xtol=1e-14), 0.0))  # noqa: B023
        return keys.index(max(keys))

    while len(actions) < horizon:
        a = choice()
        length = max(1, math.ceil(growth * sum(n for n, _ in kept[a])))
        rewards = [row[a] for row in table[len(actions) : len(actions) + length]]
        actions += [a] * len(rewards)
        if len(rewards) == length:
            kept[a].append((length, sum(rewards) + next(draws) / epsilon))
    return actions
