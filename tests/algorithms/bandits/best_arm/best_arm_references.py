"""AdaP-TT and DP-BAI in plain Python, one run, round by round, from their pseudocode.

`noise` yields the noise on a sum of rewards, one a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

Table = Sequence[Sequence[float]]
Found = tuple[list[int], int, int]
"""Actions, recommended arm, rounds after which the test stopped (0: it did not)."""


def doubling(k: int) -> int:
    """Length of the k-th episode, from 1."""
    return 1 if k <= 2 else 2 ** (k - 2)


def adap_tt(table: Table, noise: Iterator[float], b: float, error: float) -> Found:
    """The printed calibration: the last episode alone, Laplace scale b."""
    horizon, n_arms = len(table), len(table[0])
    z = math.pi**2 / 6
    k, mean, pulls, leads, own = ([0] * n_arms for _ in range(5))
    actions: list[int] = []

    def is_sure(i: int, j: int) -> bool:
        n, m = doubling(k[i]), doubling(k[j])
        half = math.log((n_arms - 1) * z**2 * k[i] ** 2 * k[j] ** 2 / error) / 2
        c = 2 * (half + math.log(half)) + 2 * math.log(4 + math.log(n)) + 2 * math.log(4 + math.log(m))
        c += (1 / n + 1 / m) * b**2 * math.log(2 * n_arms * z * max(k[i], k[j]) ** 2 / error) ** 2
        return (mean[i] - mean[j]) ** 2 / (2 * (1 / n + 1 / m)) >= c

    while True:
        arm, leader = (k.index(0), None) if 0 in k else _choose(k, mean, pulls, leads, own, b, len(actions))
        length = doubling(k[arm] + 1)
        if leader is not None:
            leads[leader] += length
            own[leader] += length if leader == arm else 0
        total = 0.0
        for _ in range(length):
            if len(actions) == horizon:
                return actions, mean.index(max(mean)), 0
            total += table[len(actions)][arm]
            actions.append(arm)
        k[arm] += 1
        pulls[arm] += length
        mean[arm] = (total + next(noise)) / length
        best = mean.index(max(mean))
        if 0 not in k and all(is_sure(best, j) for j in range(n_arms) if j != best):
            stopped = len(actions)
            return actions + [best] * (horizon - stopped), best, stopped


def _choose(
    k: list[int], mean: list[float], pulls: list[int], leads: list[int], own: list[int], b: float, t: int
) -> tuple[int, int]:
    n = [doubling(each) for each in k]
    index = [mean[a] + math.sqrt(math.log(t) / (2 * n[a])) + b * math.log(t) / n[a] for a in range(len(k))]
    leader = index.index(max(index))
    if own[leader] <= (leads[leader] + 1) / 2:
        return leader, leader
    cost = [max(mean[leader] - mean[a], 0.0) / math.sqrt(1 / pulls[leader] + 1 / pulls[a]) for a in range(len(k))]
    cost[leader] = math.inf
    return cost.index(min(cost)), leader


def dp_bai(table: Table, noise: Iterator[float]) -> Found:
    """Halving, the last phase alone; the whole table is the budget."""
    budget, left = len(table), list(range(len(table[0])))
    n_phases = math.ceil(math.log2(len(left)))
    actions: list[int] = []
    while len(left) > 1:
        n, mean = budget // (n_phases * len(left)), {}
        for arm in left:
            total = sum(table[len(actions) + i][arm] for i in range(n))
            actions += [arm] * n
            mean[arm] = (total + next(noise)) / n
        left = sorted(sorted(left, key=lambda arm: -mean[arm])[: math.ceil(len(left) / 2)])
    return actions + left * (budget - len(actions)), left[0], len(actions)
