r"""Lower confidence bounds on means of bounded numbers: by betting for every sample size, by Berry-Esseen for large ones.

Both answer for a contrast E g(Y) - E h(X) between the neighbor's replays Y and the data's X. What a claim of privacy
says about all tests at once, it says about such contrasts; this module turns samples into a bound on one of them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandana.algorithms.protocol import FloatArray
from bandana.privacy_core.checks import probability

_LARGEST_BET = 0.9
"""A bet loses at most this share of the wealth: one sample can then never end the game."""
_SPARE = 0.02
"""Share of the failure probability that Berry-Esseen spends on each of the three moments that it must know."""


class Moments(NamedTuple):
    """Knowledge of a contrast from other samples: only bets depend on it, never validity.

    Attributes:
      data_mean: of h(X).
      variance: of g(Y) - h(X), above 0.
    """

    data_mean: float
    variance: float


def betting_lower(
    gain: FloatArray, loss: FloatArray, gain_range: float, loss_range: float, moments: Moments, level: float
) -> float:
    r"""Lower confidence bound on E gain - E loss, by one bet a pair; valid for every number of samples.

    Args:
      gain: (n,) independent, identically distributed, in [0, gain_range].
      loss: (n,) the same, in [0, loss_range], independent of `gain`.
      gain_range: above 0.
      loss_range: at least 0; 0 for a bound on one mean, with `loss` of zeros.
      moments: from other samples.
      level: probability with which the bound lies above the truth, at most.

    Returns:
      a number in [-loss_range, gain_range].

    Guarantee: P(bound > E gain - E loss) <= level, whatever the distributions.

    Proof: let c = `moments.data_mean`, D the candidate, bet b. e = (1 + b(gain - c - D)) (1 - b(loss - c)) is not
    negative, for b is small enough. Its factors are independent with means that add to 2 + b(E gain - E loss - D), at
    most 2 if D is at least the truth; so their product has mean at most 1, as has the product over the pairs, and by
    Markov that one reaches 1/level with probability at most `level`. It falls in D: the D for which it does are those below
    the bound. Source: Waudby-Smith and Ramdas (2023), section 4, for one mean; the contrast by the mean of the factors.
    """
    probability("level", level)
    n = len(gain)
    # The bound lies about sqrt(2 log(1/level) variance / n) below the mean: this bet makes that the closest.
    bet = math.sqrt(2 * math.log(1 / level) / (n * max(moments.variance, 1e-300)))
    centre = min(max(moments.data_mean, 0.0), loss_range)
    bet = min(bet, _LARGEST_BET / max(loss_range - centre, centre + gain_range))
    (gains, n_gain), (losses, n_loss) = _tally(gain), _tally(loss)
    target = -math.log(level) - float(n_loss @ np.log1p(-bet * (losses - centre)))

    def is_refuted(contrast: float) -> bool:
        return float(n_gain @ np.log1p(bet * (gains - centre - contrast))) >= target

    low, high = -loss_range, gain_range
    if not is_refuted(low):
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def _tally(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distinct values with their counts: thresholds leave few."""
    if len(values) > 1000 and len(np.unique(values[:1000])) > 500:
        return values, np.ones(len(values))
    distinct, counts = np.unique(values, return_counts=True)
    return distinct, counts.astype(float)


def berry_esseen_lower(gain: FloatArray, loss: FloatArray, gain_range: float, loss_range: float, level: float) -> float:
    r"""Lower confidence bound on E gain - E loss for many samples, almost as sharp as the normal approximation.

    Args: as for `betting_lower`.

    Returns:
      a number in [-loss_range, gain_range], the lower end where n is too small for the theorem to say anything.

    Guarantee: P(bound > E gain - E loss) <= level, whatever the distributions.

    Proof: the n differences d are independent, alike, in an interval of length R = gain_range + loss_range. With
    probability at least 1 - 3 b, b = 0.02 level: |mean - E d| <= R sqrt(log(2/b) / 2n) (Hoeffding), and
    the true deviation s lies between S -+ R sqrt(2 log(1/b) / (n - 1)), S the sample's (Maurer and Pontil 2009,
    Theorem 10). Then |d - E d| <= r := the farther end of the interval + that radius, so E|d - E d|^3 <= r s^2 and
    t := r / s bounds the third moment's ratio. By Berry-Esseen P(sqrt n (mean - E d) > z s) <= 1 - Phi(z) + err,
    err = 0.33554 (t + 0.415) / sqrt n (Shevtsova 2011). The bound is mean - z S_upper / sqrt n
    with 1 - Phi(z) = level - 3 b - err_upper; on the event above its z S_upper is at least the z s of the true moments.
    """
    probability("level", level)
    difference = gain - loss
    n, span = len(difference), gain_range + loss_range
    mean, deviation = float(difference.mean()), float(difference.std(ddof=1)) if n > 1 else 0.0
    share = _SPARE * level
    near = span * math.sqrt(math.log(2 / share) / (2 * n))
    radius = span * math.sqrt(2 * math.log(1 / share) / max(n - 1, 1))
    farthest = min(span, max(gain_range - mean, mean + loss_range) + near)
    if deviation <= radius:
        return -loss_range
    ratio = farthest / (deviation - radius)
    tail = level - 3 * share - 0.33554 * (max(ratio, 1.0) + 0.415) / math.sqrt(n)
    if tail <= 0:
        return -loss_range
    return max(-loss_range, mean + float(ndtri(min(tail, 0.5))) * (deviation + radius) / math.sqrt(n))


def contrast_lower(
    gain: FloatArray, loss: FloatArray, gain_range: float, loss_range: float, moments: Moments, level: float
) -> float:
    """The sharper of the two bounds, chosen by `moments` and the number of samples, never by what they say here.

    Args and guarantee: as for `betting_lower`.
    """
    n, deviation = len(gain), math.sqrt(moments.variance)
    span = gain_range + loss_range
    radius = span * math.sqrt(2 * math.log(1 / (_SPARE * level)) / max(n - 1, 1))
    ratio = 0.8 * span / max(deviation - radius, 1e-300)
    tail = level * (1 - 3 * _SPARE) - 0.33554 * (ratio + 0.415) / math.sqrt(n)
    promised = -float(ndtri(tail)) * (deviation + radius) if deviation > radius and tail > 0 else math.inf
    if promised < deviation * math.sqrt(2 * math.log(1 / level)):
        return berry_esseen_lower(gain, loss, gain_range, loss_range, level)
    return betting_lower(gain, loss, gain_range, loss_range, moments, level)
