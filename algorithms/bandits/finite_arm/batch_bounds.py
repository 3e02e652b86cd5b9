r"""Bounds on the regret of DP-KLUCB and DP-IMED at any horizon, with all constants.

The paper's Theorem 2 is about T to infinity: (1 + growth) sum_a D_a log(T) / d_epsilon(mu_a, mu*) + o(log T) at beta = 1.
Here is a bound that holds at every T. Units are those of the range's width; D_a are the gaps, arm 1 is a best one with mean
mu*, n_k and N_k are an arm's rounds and its (weighted) rewards after release k = 0, 1, ..., and

    tail(k, g) = min over h of exp(-(1 - h) g) prod_j 1 / (1 - (1 - h)^2 w_jk^2)

bounds the probability of N_k d_epsilon(p, mu) >= g on one side of an arm's mean mu (see `GrowingBatches`); without noise it
is e^-g. An arm's k-th mean is a function of its own rewards and noise, whenever they are drawn, so each term is one tail
bound. Let mu_a < y < mu*. Pulls of arm a are at most n_(k+1), k the last release after which a likely batch begins, and
those of unlikely batches: after release k its mean is above y with probability at most tail(k, N_k d_epsilon(y, mu_a))
(mirrored).

DP-KLUCB. While the mean is at most y, the index is at least mu* only if N_k d_epsilon(y, mu*) <= beta log T: likely. Else
the best arm's index is below mu*, in a round t >= n_j + n_k + K - 1 after its release j: probability at most
sum_j tail(j, beta log(n_j + n_k + K - 1)).

DP-IMED. Let y < z < mu*. If p* >= z, and the arm's mean is at most y, its index is at least N_k d_epsilon(y, z) + log N_k,
and that of the arm of p* at most log T: likely where N_k d_epsilon(y, z) + log N_k <= log T. If p* < z, then the best arm's
mean is below z and its index is at most N_j d_epsilon(p, z) + log N_j, so arm a is chosen only while N_k <= N_j exp(N_j
d_epsilon(p, z)): in all at most R N_j exp(N_j d_epsilon(p, z)) pulls, R = max n_(k+1) / N_k. With Y = N_j d_epsilon(p, mu*)
and r = d_epsilon(0, z) / d_epsilon(0, mu*) the exponent is at most r Y: d_epsilon(p, q) is the integral of min(epsilon,
logit q - logit u) over u from p to q, and the ratio of two of these falls in u. As Y >= g = N_j d_epsilon(z, mu*),
integrating the tail gives an expectation of at most

    R N_j C exp(-(1 - h - r) g) (1 + r / (1 - h - r)),      C the product in tail(j, .), for every h < 1 - r.

Every y, z and h gives a bound; the least on a grid is taken.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.finite_arm.batches_numba import batch_length, weight
from bandana.algorithms.bandits.finite_arm.growing_batches import BatchedKLUCB, GrowingBatches
from bandana.algorithms.bandits.finite_arm.regret_bounds import largest_regret
from bandana.algorithms.lower_bounds.divergences import bernoulli_kl, private_kl
from bandana.algorithms.protocol import FloatArray

_SHARES = np.geomspace(1e-3, 0.999, 60)
"""Values of h."""
_PLACES = np.linspace(0.02, 0.98, 33)
"""Where y lies between an arm's mean and the best, as a share; z lies between y and the best at the same shares."""


class Schedule(NamedTuple):
    """Batches of one arm, none of which depends on data.

    Attributes:
      pulls: (n_releases,) rounds up to each release.
      size: (n_releases,) the weighted number of rewards.
      log_factor: (n_releases, n_shares) logarithm of the product in the tail, for each of the shares.
      shares: (n_shares,) values of h.
    """

    pulls: FloatArray
    size: FloatArray
    log_factor: FloatArray
    shares: FloatArray

    def log_tail(self, exponent: FloatArray) -> FloatArray:
        """(n_releases, ...) logarithm of tail(k, exponent[k])."""
        bounds = self.log_factor[(slice(None), *(None,) * (exponent.ndim - 1))] - (1 - self.shares) * exponent[..., None]
        return np.asarray(np.minimum(bounds.min(axis=-1), 0.0))


def schedule_of(algorithm: GrowingBatches, rounds: float) -> Schedule:
    """The batches of an arm that is played for so many rounds, and one more."""
    lengths, pulls = [1], [1]
    while pulls[-1] < rounds:
        lengths.append(int(batch_length(pulls[-1], algorithm.growth)))
        pulls.append(pulls[-1] + lengths[-1])
    length, epsilon = np.array(lengths, dtype=float), algorithm.epsilon
    last = np.tri(len(length))
    if algorithm.weighted:
        raw = np.array([weight(n, epsilon) for n in length])
        last *= raw / raw[:, None]
    shares = np.zeros(1) if math.isinf(epsilon) else _SHARES
    factor = np.zeros((len(length), 1))
    if math.isfinite(epsilon):
        factor = np.stack([-np.log1p(-(((1 - h) * last) ** 2)).sum(axis=1) for h in shares], axis=1)
    return Schedule(np.array(pulls, dtype=float), last @ length, factor, shares)


def batch_bound(algorithm: GrowingBatches, horizon: ArrayLike, means: ArrayLike) -> FloatArray:
    """A bound on the expected regret of DP-KLUCB, DP-IMED and their twins; see the module.

    Args:
      algorithm: one of them. For DP-KLUCB at beta = 1 the bound is seldom below the largest gap times the horizon.
      horizon: numbers of rounds, any shape, which the regret has too, in units of reward.
      means: (n_arms,) mean rewards.
    """
    rounds = np.asarray(horizon, dtype=float)
    span = algorithm.reward_range
    mu = np.clip((np.asarray(means, dtype=float) - span.low) / span.width, 0.0, 1.0)
    best = float(mu.max())
    low = mu[mu < best]
    schedule = schedule_of(algorithm, rounds.max(initial=1.0))
    late = _late_index(algorithm, schedule) if isinstance(algorithm, BatchedKLUCB) else None
    flat = rounds.ravel()
    pulls = np.empty((len(flat), len(low)))
    for arm, mean in enumerate(low.tolist()):
        tries = [_pulls(algorithm, schedule, flat, mean, y, best, late) for y in mean + (best - mean) * _PLACES]
        pulls[:, arm] = np.min(tries, axis=0)
    pulls = np.minimum(pulls, flat[:, None])
    return largest_regret(rounds, best - low, pulls.reshape(*rounds.shape, len(low))) * span.width


def _divergence(p: ArrayLike, q: ArrayLike, epsilon: float) -> FloatArray:
    return bernoulli_kl(p, q) if math.isinf(epsilon) else private_kl(p, q, epsilon)


def _late_index(algorithm: BatchedKLUCB, schedule: Schedule) -> FloatArray:
    """(n_releases,) the probability that the best arm's index is below its mean when a batch begins after release k."""
    earliest = schedule.pulls[:, None] + schedule.pulls + algorithm.n_actions - 1
    return np.asarray(np.exp(schedule.log_tail(algorithm.beta * np.log(earliest))).sum(axis=0))


def _pulls(
    algorithm: GrowingBatches, schedule: Schedule, rounds: FloatArray, mean: float, y: float, best: float,
    late: FloatArray | None,
) -> FloatArray:  # fmt: skip
    """(n_rounds,) a bound on the expected pulls of an arm with that mean."""
    size, epsilon = schedule.size, algorithm.epsilon
    unlikely = np.exp(schedule.log_tail(size * float(_divergence(1 - y, 1 - mean, epsilon))))
    if late is not None:
        assert isinstance(algorithm, BatchedKLUCB)
        needed = size * float(_divergence(y, best, epsilon)) / algorithm.beta
        return _counted(schedule, rounds, needed, unlikely + late)
    tries = []
    for z in y + (best - y) * _PLACES[::4]:
        needed = size * float(_divergence(y, z, epsilon)) + np.log(size)
        tries.append(_counted(schedule, rounds, needed, unlikely) + _best_low(schedule, rounds, z, best, epsilon))
    return np.asarray(np.min(tries, axis=0))


def _counted(schedule: Schedule, rounds: FloatArray, needed: FloatArray, unlikely: FloatArray) -> FloatArray:
    """(n_rounds,) pulls of likely batches, those with needed[k] <= log T, and the expected ones of later batches."""
    pulls = schedule.pulls
    longer = np.append(pulls[1:], np.inf)
    begun = pulls < rounds[:, None]
    is_likely = begun & (needed <= np.log(rounds)[:, None])
    last = np.where(is_likely, np.arange(len(pulls)), -1).max(axis=1)
    likely = np.where(last < 0, 1.0, longer[last])
    is_later = begun & (np.arange(len(pulls)) > last[:, None])
    length = np.where(np.isfinite(longer), longer - pulls, 0.0)
    return np.asarray(likely + (is_later * (length * unlikely)).sum(axis=1))


def _best_low(schedule: Schedule, rounds: FloatArray, z: float, best: float, epsilon: float) -> FloatArray:
    """(n_rounds,) a bound on the expected pulls of another arm while the best one's mean is below z and the largest."""
    size, pulls = schedule.size, schedule.pulls
    whole, apart = float(_divergence(0.0, best, epsilon)), float(_divergence(z, best, epsilon))
    ratio = 0.0 if math.isinf(whole) else float(_divergence(0.0, z, epsilon)) / whole
    slack = 1 - schedule.shares - ratio
    known = slack > 0
    if math.isinf(apart):
        return np.zeros(len(rounds))
    if not known.any():
        return np.full(len(rounds), np.inf)
    most = (pulls[1:] / size[:-1]).max(initial=1.0)
    each = schedule.log_factor[:, known] - slack[known] * (size * apart)[:, None] + np.log1p(ratio / slack[known])
    expected = most * size * np.exp(each.min(axis=1))
    return np.asarray(np.where(pulls < rounds[:, None], expected, 0.0).sum(axis=1))
