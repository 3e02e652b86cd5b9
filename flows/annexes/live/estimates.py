r"""Means of arms from released sums, with intervals that hold at all times at once.

Only releases that sum the rewards of one arm count, each record once. For an arm with mean mu let S be the sum of its noisy
sums, N the number of their rewards and m the number of releases. Rewards lie in a range of width w, an arm is chosen before
its reward is drawn, and batches end by earlier releases; so given the past each reward's exponential moment is at most
exp(l mu + l^2 w^2 / 8) (Hoeffding's lemma), and the noise of a release has psi(l) = l^2 s^2 / 2 for Gaussian and
-log(1 - b^2 l^2) for Laplace noise, |l| < 1 / b. Discrete noise on a grid has no larger moments at the same scale: for the
Gaussian by Canonne, Kamath and Steinke (2020), Corollary 17; for the Laplace its moment is 1 / (1 - sinh(l/2)^2 /
sinh(1/2b)^2), and sinh(x) / x grows. Hence for every l

    exp(l (S - N mu) - l^2 w^2 N / 8 - m psi(l))

is a nonnegative supermartingale that starts at 1, and so is its mean over a fixed set of l, half of them negative. It ever
reaches 1 / alpha with probability at most alpha (Ville). The interval holds the mu at which it has not: whenever one looks,
and however often, all of them hold together with probability 1 - alpha. The mean is that of the rewards as they entered:
clipped, and `missing` where nobody answered. Privacy: post-processing of releases.

Source: Howard, Ramdas, McAuliffe, Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence sequences, Lemma 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq

from bandana.algorithms.protocol import FloatArray
from bandana.flows.annexes.live.policy import Policy
from bandana.privacy_core.checks import probability

_LAMBDAS = np.geomspace(1e-4, 8.0, 60)
_WIDER = 1 + 2.0**-11
"""Factor by which secure noise is drawn larger, at most."""
_GRID = 2.0**-13
"""Steps of the grid in scales of the noise, at most: a sum is rounded by at most half of one."""


class ArmMean(NamedTuple):
    """Private mean reward of an arm; NaN, and the whole range, where nothing was released."""

    arm: int
    n_rewards: int
    mean: float
    low: float
    high: float


class Effect(NamedTuple):
    """Difference of two arms' means, with an interval that holds at all times."""

    effect: float
    low: float
    high: float


def arm_means(policy: Policy, alpha: float = 0.05) -> list[ArmMean]:
    """Means of all arms; with probability 1 - alpha each arm's own intervals hold at all times.

    Raises:
      ValueError: alpha is no probability.
    """
    probability("alpha", alpha)
    (low, high), rows = policy.router.reward_range, policy.releases()
    return [_mean_of(rows, arm, low, high, alpha) for arm in range(policy.router.n_actions)]


def effect(policy: Policy, arm: int, control: int, alpha: float = 0.05) -> Effect:
    """Mean of an arm minus that of the control; with probability 1 - alpha all intervals hold, whenever one stops.

    Each arm's intervals may fail with probability alpha / 2.
    """
    means = arm_means(policy, alpha / 2)
    treated, other = means[arm], means[control]
    return Effect(treated.mean - other.mean, treated.low - other.high, treated.high - other.low)


def _mean_of(rows: Sequence[dict[str, object]], arm: int, low: float, high: float, alpha: float) -> ArmMean:
    total, n_rewards, stop, scales = 0.0, 0, 0, list[tuple[str, float]]()
    for row in rows:
        values, start = json.loads(str(row["output"])), int(str(row["start"]))
        is_sum = isinstance(values, float) and row["mechanism"] in ("Laplace", "Gaussian")
        if row["arm"] != arm or start < stop or not is_sum:
            continue
        stop = int(str(row["stop"]))
        total, n_rewards = total + values, n_rewards + stop - start
        scales.append((str(row["mechanism"]), float(str(row["scale"])) * _WIDER))
    if not n_rewards:
        return ArmMean(arm, 0, math.nan, low, high)
    moment = _log_moments(scales, n_rewards, high - low)
    rounded = sum(scale for _, scale in scales) * _GRID / 2

    def evidence(distance: float) -> float:
        """Log of the supermartingale at a mean that lies so far from S / N, over its limit."""
        both = np.concatenate([_LAMBDAS, -_LAMBDAS]) * distance * n_rewards - np.tile(moment, 2)
        return float(np.logaddexp.reduce(both)) - math.log(2 * len(_LAMBDAS)) + math.log(alpha)

    most = 1.0
    while evidence(most) < 0 and most < 1e12:
        most *= 2
    width = float(brentq(evidence, 0.0, most)) + rounded / n_rewards
    mean = total / n_rewards
    return ArmMean(arm, n_rewards, mean, min(max(mean - width, low), high), max(min(mean + width, high), low))


def _log_moments(scales: Sequence[tuple[str, float]], n_rewards: int, width: float) -> FloatArray:
    """(n_lambdas,) what is subtracted from l (S - N mu); infinite where the noise has no such moment."""
    moment = _LAMBDAS**2 * width**2 * n_rewards / 8
    for mechanism, scale in scales:
        square = (_LAMBDAS * scale) ** 2
        if mechanism == "Gaussian":
            moment = moment + square / 2
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                moment = moment + np.where(square < 1, -np.log1p(-np.minimum(square, 1.0)), math.inf)
    return np.asarray(moment)
