"""AdaP-TT, DP-TT and DP-BAI in plain Python, one run, round by round, from their pseudocode.

`noise` yields the noise on a sum of rewards, one a release.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache

Table = Sequence[Sequence[float]]
Found = tuple[list[int], int, int]
"""Actions, recommended arm, rounds after which the test stopped (0: it did not)."""


def doubling(k: int) -> int:
    """Length of the k-th episode, from 1."""
    return 1 if k <= 2 else 2 ** (k - 2)


def adap_tt(table: Table, noise: Iterator[float], b: float, error: float) -> Found:
    """`as-known`: the last episode alone, Laplace scale b."""
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


def dp_tt(table: Table, noise: Iterator[float], b: float, error: float) -> Found:
    """Test by transport costs or by differences at Laplace scale b, all episodes weighed; minima and maxima over grids."""
    horizon, n_arms = len(table), len(table[0])
    k_max = 1
    while 2**k_max <= horizon:  # an arm's first k episodes take 2^(k - 1) rounds
        k_max += 1
    comparisons = 2 * (n_arms - 1) * k_max**2 / error
    needed = 1.0
    for _ in range(200):  # (1 + c) exp(-c) = 1 / comparisons
        needed = math.log(comparisons * (1 + needed))
    sums: list[list[float]] = [[] for _ in range(n_arms)]
    leads, own = [0] * n_arms, [0] * n_arms
    actions: list[int] = []

    while True:
        arm, leader = min(range(n_arms), key=lambda a: len(sums[a])), None
        if all(sums):
            mean = [estimate(each, b) for each in sums]
            best = mean.index(max(mean))
            cost = [math.inf if a == best else transport(sums[best], sums[a], b) for a in range(n_arms)]
            is_sure = [
                cost[a] >= needed or differs(sums[best], sums[a], b, math.log(comparisons))
                for a in range(n_arms)
                if a != best
            ]
            if all(is_sure):
                stopped = len(actions)
                return actions + [best] * (horizon - stopped), best, stopped
            pulls = [2 ** (len(each) - 1) for each in sums]
            index = [cost[a] + math.log(pulls[a]) for a in range(n_arms)]
            leader = best
            arm = best if own[best] <= (leads[best] + 1) / 2 else index.index(min(index))
        length = doubling(len(sums[arm]) + 1)
        if leader is not None:
            leads[leader] += length
            own[leader] += length if leader == arm else 0
        total = 0.0
        for _ in range(length):
            if len(actions) == horizon:
                return actions, -1, 0
            total += table[len(actions)][arm]
            actions.append(arm)
        sums[arm].append(total + next(noise))


@cache
def weights(k: int, b: float) -> list[float]:
    """What the sums of k episodes weigh in an arm's estimate: inverse to 1 / (4n) + 2 (b / n)^2, for means of n rewards."""
    precision = [1 / (1 / (4 * n) + 2 * (b / n) ** 2) for n in map(doubling, range(1, k + 1))]
    return [each / sum(precision) / doubling(e + 1) for e, each in enumerate(precision)]


def estimate(sums: Sequence[float], b: float) -> float:
    """An arm's estimate from the noisy sums of its episodes."""
    return sum(w * s for w, s in zip(weights(len(sums), b), sums, strict=True))


def grid_of_tilts(limit: float) -> list[float]:
    """From 0 to the limit, closer at both ends."""
    return [0.0] + [limit * 1.05**-i for i in range(200)] + [limit * (1 - 0.5 * 1.3**-i) for i in range(40)]


@cache
def tilts(k: int, b: float) -> list[tuple[float, list[tuple[int, float]], float]]:
    """Each tilt of k episodes, with what it makes of a reward of each of them, and the exponent of their noise."""
    w = weights(k, b)
    limit = (1 - 1e-6) / (b * max(w)) if b else 12 / max(w)
    return [
        (
            tilt,
            [(doubling(e + 1), math.expm1(each * tilt)) for e, each in enumerate(w)],
            -sum(math.log1p(-((b * each * tilt) ** 2)) for each in w),
        )
        for tilt in grid_of_tilts(min(limit, 12 / max(w)))
    ]


def tells(sums: Sequence[float], b: float, u: float) -> float:
    """How surely a mean is above u: the largest exponent of Chernoff's bound."""
    x, most = estimate(sums, b), 0.0
    for tilt, rewards, of_noise in tilts(len(sums), b):
        exponent = sum(n * math.log1p(u * moved) for n, moved in rewards) + of_noise
        most = max(most, tilt * x - exponent)
    return most


def least(function: Callable[[float], float], n_steps: int) -> float:
    """The smallest value of a convex function on [0, 1], by golden sections."""
    golden = (math.sqrt(5) - 1) / 2
    left, right = 0.0, 1.0
    first, second = 1 - golden, golden
    at_first, at_second = function(first), function(second)
    for _ in range(n_steps):
        if at_first < at_second:
            right, second, at_second = second, first, at_first
            first = right - golden * (right - left)
            at_first = function(first)
        else:
            left, first, at_first = first, second, at_second
            second = left + golden * (right - left)
            at_second = function(second)
    return min(at_first, at_second)


def transport(high: Sequence[float], low: Sequence[float], b: float) -> float:
    """Least sum, over a mean u, of what tells that the first arm's is above it and the second's below."""
    if estimate(high, b) <= estimate(low, b):
        return 0.0
    turned = [doubling(e + 1) - s for e, s in enumerate(low)]

    def both(u: float) -> float:
        return tells(high, b, u) + tells(turned, b, 1 - u)

    return least(both, 34)  # the sum is convex


def differs(high: Sequence[float], low: Sequence[float], b: float, level: float) -> bool:
    """Whether the difference of two estimates is certain, by Chernoff's and Hoeffding's bounds."""
    w, v = weights(len(high), b), weights(len(low), b)
    lead, most = estimate(high, b) - estimate(low, b), max(w + v)
    for tilt in grid_of_tilts((1 - 1e-6) / (b * most)):
        exponent = 0.0
        for each in (w, v):
            for e, weight in enumerate(each):
                exponent += (tilt * weight) ** 2 * doubling(e + 1) / 8 - math.log1p(-((b * weight * tilt) ** 2))
        if tilt and lead >= (level + exponent) / tilt:
            return True
    return False


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
