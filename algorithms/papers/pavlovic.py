r"""Pavlovic, Salgia, Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections: CAPRI.

A record is a pair (context, reward), |y| <= B; a neighbor replaces one. An epoch releases h = M^{-1/2} K_{S,W} y plus
noise, where M = K_{SR} K_{RS} + tau K_{SS} is made of points that are drawn without the data. With v(w) = M^{-1/2} k_S(w)
a record adds y v(w), and s(w) = \|v(w)\|. Each user is in one epoch, so by the one-touch lemma (`docs/privacy.md`) the
run costs what one epoch does.
"""

from __future__ import annotations

import math

from bandana.algorithms.papers.printed import (
    DELTA,
    EPSILON,
    UP,
    Calibration,
    Choice,
    Claim,
    Parameter,
    gaussian_choice,
    whole,
)
from bandana.privacy_core.checks import positive
from bandana.privacy_core.guarantees import ApproxDP, GaussianDP

_SOURCE = "Pavlovic, Salgia and Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections"


def printed_sd(epsilon: float, delta: float, horizon: int, reward_bound: float, sigma_max: float, reading: str) -> float:
    r"""sigma_0 of eqs. (5) and (8): sigma_max (4 B log T / epsilon) sqrt(log(1.25 log T / delta)).

    It is sqrt 2 times the classical Gaussian mechanism at (epsilon / log T, delta / log T), sensitivity 2 B sigma_max: a
    share for each of about log T epochs, although no user is in two of them.

    Args:
      epsilon: of the claim.
      delta: of the claim.
      horizon: T.
      reward_bound: B.
      sigma_max: the paper's bound on the norm s(w), eq. (6).
      reading: `natural`, `base-10` (what log means), or `unrooted` (Lemma 6.6 defines sigma_max without the square root
        that eq. (6) has, which puts sigma_max^2 in its place).
    """
    log_t = math.log10(horizon) if reading == "base-10" else math.log(horizon)
    largest = sigma_max**2 if reading == "unrooted" else sigma_max
    return largest * 4 * reward_bound * log_t / epsilon * math.sqrt(math.log(1.25 * log_t / delta))


def _capri(
    reading: str, *, epsilon: float, delta: float, horizon: int,
    reward_bound: float, s_max: float, sigma_max: float | None,
) -> tuple[Claim, Choice, tuple[Choice, ...]]:  # fmt: skip
    r"""Joint: noise once an epoch on the sum. Local: the same noise on every user's message, T_r of which add up (eq. 4).

    Exact sensitivity: y v(w) - y' v(w') has norm at most 2 B s_max, attained by w = w', y = B, y' = -B. The paper bounds
    s(w) by sigma_max >= s_max: sigma(w)^2 = s(w)^2 + \|(I - P) phi(w)\|^2 / tau. So mu = 2 B s_max / sigma_0, which at
    s_max = sigma_max is epsilon / (2 log T sqrt(log(1.25 log T / delta))) whatever B is. Local: each user sends one
    message, the same mu; there the factors log T have no reason at all.

    Where the print is wrong: Lemmas 6.6 and 7.1 miss the square root (reading `unrooted`; the claim then fails once
    sigma_max is small). The maximum must run over all contexts that a neighbor may bring, not over the support of the
    generator. K_SS is singular as soon as S repeats a point.

    If rewards lie in [0, B], subtracting B/2 first halves the sensitivity.
    """
    bound = s_max if sigma_max is None else sigma_max
    if bound < s_max:
        raise ValueError(f"sigma_max must be at least s_max = {s_max!r}, got {bound!r}")
    sd = printed_sd(epsilon, delta, horizon, reward_bound, bound, reading)
    mu = GaussianDP.from_epsilon_delta(epsilon, delta).mu
    sensitivity = 2 * reward_bound * s_max
    tight = UP * sensitivity / mu
    return (
        ApproxDP(epsilon, delta),
        gaussian_choice("printed", (sd,), sensitivity / sd),
        (
            gaussian_choice("the same, exact sensitivity", (tight,), sensitivity / tight),
            gaussian_choice("rewards in [0, B], centered", (tight / 2,), sensitivity / tight),
        ),
    )


_READINGS = {
    "natural": "log is the natural logarithm, sigma_max is eq. (6)",
    "base-10": "log is the decimal logarithm",
    "unrooted": "sigma_max as in Lemma 6.6, without the square root of eq. (6)",
}
_PARAMETERS = (
    EPSILON,
    DELTA,
    Parameter("horizon", "T, rounds", 100_000, whole(10)),
    Parameter("reward_bound", "B, rewards lie in [-B, B]", 1.0, positive),
    Parameter("s_max", "largest norm s(w) of a record's projected feature", 1.0, positive),
    Parameter("sigma_max", "the paper's bound on it, eq. (6); as s_max if not given", None, positive),
)

CAPRI_JOINT = Calibration(
    name="capri-joint",
    promise="the other users' actions are (epsilon, delta)-DP, one context and reward replaced",
    source=_SOURCE,
    statement="eqs. (5) and (8), Theorems 4.1 and 6.7, JDP",
    readings=_READINGS,
    quantities=("projected sum of an epoch, each coordinate",),
    parameters=_PARAMETERS,
    evaluate=_capri,
)

CAPRI_LOCAL = Calibration(
    name="capri-local",
    promise="each user's message is (epsilon, delta)-DP, context and reward replaced",
    source=_SOURCE,
    statement="eqs. (5) and (8), Theorems 4.1 and 6.7, LDP",
    readings=_READINGS,
    quantities=("a user's message, each coordinate",),
    parameters=_PARAMETERS,
    evaluate=_capri,
)
