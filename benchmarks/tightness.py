"""What share of the true privacy loss the bounds certify, at 95 % confidence, and how long they take."""

from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from bandana.audits.bounds.methods import bound
from bandana.privacy_core import GaussianDP
from benchmarks.result import Result, fastest

LEVEL, DELTA = 0.05, 1e-5
MU = GaussianDP.from_epsilon_delta(1.0, DELTA).mu
SMALL, LARGE = 10**5, 10**6
REPEATS = {SMALL: 51, LARGE: 15}

Pair = tuple[np.ndarray, np.ndarray]


def gaussian(mu: float) -> Callable[[int, int], Pair]:
    def draw(n: int, seed: int) -> Pair:
        noise = np.random.Generator(np.random.SFC64(seed)).standard_normal((2, n))
        return mu * noise[0] - mu**2 / 2, mu * noise[1] + mu**2 / 2

    return draw


def laplace(n: int, seed: int) -> Pair:
    """Epsilon 1; the ratio is clipped and not a difference of distances, whose last bits would tell the sides."""
    noise = np.random.Generator(np.random.SFC64(seed)).laplace(0, 1, (2, n))
    return np.clip(2 * noise[0] - 1, -1, 1), np.clip(2 * noise[1] + 1, -1, 1)


CASES: tuple[tuple[str, str, dict[str, Any], Callable[[int, int], Pair], float, dict[int, float]], ...] = (
    ("mu, Gaussian of (1, 1e-5)", "mu-curve", {}, gaussian(MU), MU, {SMALL: 0.95, LARGE: 0.98}),
    ("mu, Gaussian of mu 1", "mu-curve", {}, gaussian(1.0), 1.0, {SMALL: 0.98}),
    ("mu by all thresholds at once, Gaussian of mu 1", "mu-band", {}, gaussian(1.0), 1.0, {SMALL: 0.95}),
    ("epsilon, Gaussian of (1, 1e-5)", "epsilon-coins", {"delta": DELTA}, gaussian(MU), 1.0, {SMALL: 0.70, LARGE: 0.84}),
    (
        "epsilon with a learned ratio, Gaussian of (1, 1e-5)", "epsilon-coins", {"delta": DELTA, "is_learned": True},
        gaussian(MU), 1.0, {SMALL: 0.68, LARGE: 0.83},
    ),
    (
        "epsilon at any time, Gaussian of (1, 1e-5)", "epsilon-e-process", {"delta": DELTA}, gaussian(MU), 1.0,
        {SMALL: 0.65, LARGE: 0.81},
    ),
    ("pure epsilon, Laplace of epsilon 1", "epsilon-coins", {"delta": 0.0}, laplace, 1.0, {SMALL: 0.98, LARGE: 0.99}),
    ("pure epsilon of one event, Laplace of epsilon 1", "pure-event", {}, laplace, 1.0, {SMALL: 0.97, LARGE: 0.98}),
    ("Renyi divergence of order 2, Gaussian of mu 1", "renyi", {"alpha": 2.0}, gaussian(1.0), 1.0, {SMALL: 0.92}),
    ("rho of zCDP, Gaussian of mu 1", "rho", {}, gaussian(1.0), 0.5, {SMALL: 0.95}),
    (
        "delta at epsilon 1, Gaussian of mu 1", "hockey-stick", {"epsilon": 1.0}, gaussian(1.0), GaussianDP(1.0).delta(1.0),
        {SMALL: 0.93},
    ),
)  # fmt: skip


def measure() -> list[Result]:
    results = []
    for name, method, parameters, draw, truth, limits in CASES:
        for n, limit in limits.items():
            found = [bound(method, *draw(n, seed), LEVEL, **parameters) / truth for seed in range(REPEATS[n])]
            results.append(Result(f"bound on {name}, n = {n:.0e}, median", median(found), limit, "of the truth", ">="))
    for name, method, parameters, draw, _, _ in CASES:
        sides = draw(LARGE, 0)
        seconds = fastest(lambda: bound(method, *sides, LEVEL, **parameters), 2)  # noqa: B023  (called at once)
        results.append(Result(f"seconds it takes: {name}, n = {LARGE:.0e}", seconds, 5.0, "s"))
    return results
