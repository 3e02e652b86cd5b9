"""Builders of CAPRI: the non-private twin, joint and local privacy, with printed or tight noise."""

from __future__ import annotations

import math

import numpy as np

from bandana.algorithms.bandits.capri.capri import REFUSE, ProjectedElimination
from bandana.algorithms.bandits.capri.gathering import EachAlone, Gathering, Together
from bandana.algorithms.bandits.capri.projection import drawn_coins, epoch_lengths
from bandana.algorithms.bandits.capri.widths import ExactWidth, PrintedWidth, Width
from bandana.algorithms.papers.pavlovic import printed_sd
from bandana.algorithms.rkhs.features import exact_on
from bandana.algorithms.rkhs.kernels import Kernel
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import ApproxDP, Exact, Gaussian, Interval, calibrate
from bandana.privacy_core.checks import at_least, failure_of, non_negative, positive

_UP = 1 + 1e-12
"""Not below the paper's noise: rounded up by one part in 1e12."""


def capri(
    pool: Pool,
    kernel: Kernel,
    horizon: int,
    reward_range: Interval,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    norm_bound: float = 1.0,
    beta_scale: float = 1.0,
    error_scale: float = 1.0,
    strangers: str = REFUSE,
    seed: int = 0,
) -> ProjectedElimination:
    """The non-private twin, with the intervals of `tight`; arguments as of `capri_joint`."""
    width = _exact_width(horizon, reward_range, failure, norm_bound, error_scale)
    gathering = Together(Exact())
    return _built(pool, kernel, horizon, reward_range, gathering, width, ridge, beta_scale, strangers, seed)


def capri_joint(
    pool: Pool,
    kernel: Kernel,
    horizon: int,
    epsilon: float,
    delta: float,
    reward_range: Interval,
    calibration: str,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    norm_bound: float = 1.0,
    beta_scale: float = 1.0,
    error_scale: float = 1.0,
    strangers: str = REFUSE,
    seed: int = 0,
) -> ProjectedElimination:
    """CAPRI with (epsilon, delta)-joint differential privacy.

    Args:
      pool: the contexts and their law. Where the generator of contexts is a public offline data set, its law is their
        frequencies there.
      kernel: of the points; k(w, w) at most 1.
      horizon: T, at least 2.
      epsilon: above 0.
      delta: in (0, 1).
      reward_range: declared range of a reward.
      calibration: `printed` (beta_1 of eq. 7), `printed-lemma-6-6` (that of Lemma 6.6, the same noise) or `tight`.
      ridge: tau.
      failure: probability that some interval fails; None: 1 / horizon.
      norm_bound: of f, in the kernel's space.
      beta_scale: factor on all widths.
      error_scale: factor on all parts of them but that of the privacy noise. They are made for any function of the norm and
        for all points at once; below 1 nothing is proved of them. Where noise is the larger
        part, as it is in early epochs, a small `beta_scale` drops good actions, this one does not.
      strangers: `refuse` or `nearest`.
      seed: of the public coins.

    Raises:
      ValueError: an argument out of its range; the message names it.
    """
    return _private(
        pool, kernel, horizon, epsilon, delta, reward_range, calibration, ridge, failure, norm_bound, beta_scale,
        error_scale, strangers, seed, is_local=False,
    )  # fmt: skip


def capri_local(
    pool: Pool,
    kernel: Kernel,
    horizon: int,
    epsilon: float,
    delta: float,
    reward_range: Interval,
    calibration: str,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    norm_bound: float = 1.0,
    beta_scale: float = 1.0,
    error_scale: float = 1.0,
    strangers: str = REFUSE,
    seed: int = 0,
) -> ProjectedElimination:
    """CAPRI with (epsilon, delta)-local differential privacy: each message has the noise that joint privacy gives an epoch.

    An epoch's noise grows with sqrt(T_r). The factors log T of `printed` have no reason here. Arguments as of `capri_joint`.
    """
    return _private(
        pool, kernel, horizon, epsilon, delta, reward_range, calibration, ridge, failure, norm_bound, beta_scale,
        error_scale, strangers, seed, is_local=True,
    )  # fmt: skip


def _private(
    pool: Pool, kernel: Kernel, horizon: int, epsilon: float, delta: float, reward_range: Interval, calibration: str,
    ridge: float, failure: float | None, norm_bound: float, beta_scale: float, error_scale: float, strangers: str, seed: int,
    *, is_local: bool,
) -> ProjectedElimination:  # fmt: skip
    at_least("horizon", horizon, 2)
    promise, half = ApproxDP(positive("epsilon", epsilon), delta), reward_range.width / 2
    if calibration == "tight":
        multiplier = calibrate(promise)
        width: Width = _exact_width(horizon, reward_range, failure, norm_bound, error_scale)
    elif calibration in ("printed", "printed-lemma-6-6"):
        multiplier = printed_sd(epsilon, delta, horizon, 1.0, 1.0, "natural") / 2 * _UP
        bound = max(half, positive("norm_bound", norm_bound))
        share = failure_of(failure, horizon)
        beta, readings = printed_betas(epsilon, delta, horizon, _n_points(pool), share, bound, positive("ridge", ridge))
        width = PrintedWidth(beta, readings[calibration], is_local, non_negative("error_scale", error_scale))
    else:
        raise ValueError(f"calibration must be 'printed', 'printed-lemma-6-6' or 'tight', got {calibration!r}")
    mechanism = Gaussian(2 * half, multiplier)
    gathering = EachAlone(mechanism) if is_local else Together(mechanism)
    return _built(pool, kernel, horizon, reward_range, gathering, width, ridge, beta_scale, strangers, seed)


def printed_betas(
    epsilon: float, delta: float, horizon: int, n_points: int, failure: float, bound: float, ridge: float
) -> tuple[float, dict[str, float]]:
    """Beta of Lemma 6.6, and beta_1 as eq. (7) (`printed`) and as Lemma 6.6 print it, at failure / (|W| T log T).

    Args:
      epsilon: of the claim.
      delta: of the claim.
      horizon: T.
      n_points: |W|.
      failure: the paper's delta.
      bound: B.
      ridge: tau.

    Source: Pavlovic, Salgia and Zhao, eq. (7) and Lemma 6.6.
    """
    log_t = math.log(horizon)
    share = failure / (n_points * horizon * log_t)
    rounds = math.log(168 * horizon / share)
    beta = bound * (90 * math.sqrt(rounds) + 52 * math.sqrt(rounds * math.log(12 / share) / ridge))
    beta += 3 * bound * math.sqrt(2 * math.log(6 / share)) + math.sqrt(24 * ridge)
    noise = math.sqrt(math.log(1.25 * log_t / delta)) * log_t / epsilon
    return beta, {
        "printed": noise * math.sqrt(8 * bound * math.log(log_t * n_points / failure)),
        "printed-lemma-6-6": noise * 8 * bound * math.log(3 / share),
    }


def _n_points(pool: Pool) -> int:
    return int(pool.points.shape[0] * pool.points.shape[1])


def _exact_width(
    horizon: int, reward_range: Interval, failure: float | None, norm_bound: float, error_scale: float
) -> ExactWidth:
    at_least("horizon", horizon, 2)
    return ExactWidth(
        reward_range.width / 2,
        positive("norm_bound", norm_bound),
        failure_of(failure, horizon),
        len(epoch_lengths(horizon)),
        non_negative("error_scale", error_scale),
    )


def _built(
    pool: Pool, kernel: Kernel, horizon: int, reward_range: Interval, gathering: Gathering, width: Width, ridge: float,
    beta_scale: float, strangers: str, seed: int,
) -> ProjectedElimination:  # fmt: skip
    points = pool.points.reshape(_n_points(pool), -1)
    features = np.ascontiguousarray(exact_on(kernel, points)(points))
    coins = drawn_coins(pool, horizon, seed)
    return ProjectedElimination(pool, features, reward_range, horizon, gathering, width, coins, ridge, beta_scale, strangers)
