r"""The exact privacy curve of a Gaussian: delta(epsilon), epsilon(delta), and the mu that both allow.

A mu-GDP mechanism satisfies (epsilon, delta)-DP exactly for

    delta(epsilon) = Phi(a) - e^epsilon Phi(b),   a = mu/2 - epsilon/mu,   b = a - mu.

Since e^epsilon phi(b) = phi(a), the difference is phi-weighted and can be taken between scaled complementary
error functions, erfcx(x) = e^(x^2) erfc(x), which neither under- nor overflow:

    delta = e^(-a^2/2)/2 * [erfcx(-a/sqrt 2) - erfcx(-b/sqrt 2)].

For small mu the two terms agree to many digits. Then the difference is taken as one positive integral,
(2/sqrt pi) int e^(-t^2 - 2xt) (1 - e^(-2ht)) dt (Gauss-Laguerre, where x is large), or from the Taylor series of
erfcx, whose derivatives obey f' = 2 x f - 2/sqrt pi and f^(n+1) = 2 x f^(n) + 2 n f^(n-1).

Source: Balle and Wang (2018), Theorem 8; Dong, Roth, Su (2022), Corollary 2.13.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, roots_laguerre

from bandana.privacy_core.checks import non_negative, positive, probability

_SQRT2 = math.sqrt(2.0)
_SOLVER: dict[str, Any] = {"xtol": 1e-300, "rtol": 8.9e-16, "maxiter": 500}
_NODES, _WEIGHTS = roots_laguerre(64)


def _erfcx_drop(x: float, step: float) -> float:
    """erfcx(x) - erfcx(x + step), accurate to about 1e-13 even where the two agree to many digits."""
    if step > 1.0:
        return float(erfcx(x) - erfcx(x + step))
    if x > 4.0:
        t = _NODES / (2 * x)
        return float(_WEIGHTS @ (np.exp(-t * t) * -np.expm1(-2 * step * t))) / (x * math.sqrt(math.pi))
    if step > 0.05:
        return float(erfcx(x) - erfcx(x + step))
    previous = float(erfcx(x))
    current = 2 * x * previous - 2 / math.sqrt(math.pi)
    total, power = 0.0, 1.0
    for n in range(1, 13):
        power *= step / n
        total -= power * current
        previous, current = current, 2 * x * current + 2 * n * previous
    return total


def log_delta(mu: float, epsilon: float) -> float:
    """Logarithm of the smallest delta at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
      mu: GDP parameter, above 0.
      epsilon: in nats, at least 0.

    Returns:
      log delta; relative error of delta below 1e-12 for mu >= 1e-6, down to delta = 1e-205.
    """
    positive("mu", mu)
    non_negative("epsilon", epsilon)
    a = mu / 2 - epsilon / mu
    if a > 1:
        return math.log(float(ndtr(a)) - 0.5 * math.exp(-a * a / 2) * float(erfcx((mu - a) / _SQRT2)))
    drop = _erfcx_drop(-a / _SQRT2, mu / _SQRT2)
    # Where the drop underflows, its bound 1: the other term is then beyond 1e200, and delta 0 in floating point.
    return -a * a / 2 - math.log(2.0) + (math.log(drop) if drop > 0 else 0.0)


def delta_of(mu: float, epsilon: float) -> float:
    """The smallest delta at which a mu-GDP mechanism is (epsilon, delta)-DP; see `log_delta`."""
    return math.exp(log_delta(mu, epsilon))


def epsilon_of(mu: float, delta: float) -> float:
    """The smallest epsilon >= 0 at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
      mu: GDP parameter, above 0.
      delta: strictly between 0 and 1.

    Returns:
      epsilon in nats; 0 if delta is at least the total variation distance 2 Phi(mu/2) - 1.
    """
    positive("mu", mu)
    target = math.log(probability("delta", delta))
    if log_delta(mu, 0.0) <= target:
        return 0.0
    # The concentrated-DP tail bound, an upper bound on the root (Bun and Steinke 2016, Prop. 1.3).
    high = mu * mu / 2 + mu * math.sqrt(-2 * target)
    return float(brentq(lambda epsilon: log_delta(mu, epsilon) - target, 0.0, high, **_SOLVER))


def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu for which every mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
      epsilon: in nats, at least 0.
      delta: strictly between 0 and 1.

    Returns:
      mu, rounded down by one part in 1e12, so that the pair is never exceeded.
    """
    non_negative("epsilon", epsilon)
    target = math.log(probability("delta", delta))
    low, high = 1e-12, 1.0
    while log_delta(high, epsilon) < target:
        low, high = high, 2 * high
    while log_delta(low, epsilon) > target:
        low /= 1e3
    root = float(brentq(lambda mu: log_delta(mu, epsilon) - target, low, high, **_SOLVER))
    return root * (1 - 1e-12)
