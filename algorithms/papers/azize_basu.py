"""Azize and Basu, Renyi Differentially Private Bandits: AdaR-UCB, AdaR-GOPE, AdaR-OFUL.

The data are rewards; a neighbor replaces one. Each reward enters one released sum (with OFUL, one block of a running
sum), so by the one-touch lemma (`docs/privacy.md`) the whole run costs what one release costs: mu = sensitivity / sd, and
the Renyi divergence alpha mu^2 / 2 holds at every order alpha. The papers' noise meets its claim with equality.
"""

from __future__ import annotations

import math

from bandana.algorithms.papers.printed import (
    ALPHA,
    RENYI_DELTA,
    RENYI_EPSILON,
    UP,
    Calibration,
    Choice,
    Claim,
    Parameter,
    gaussian_choice,
    whole,
)
from bandana.privacy_core.checks import positive
from bandana.privacy_core.guarantees import GaussianDP, RenyiDP
from bandana.privacy_core.sensitivities import factorization_norm

_SOURCE = "Azize and Basu, Renyi Differentially Private Bandits"
_PROMISE = "all actions are (alpha, epsilon)-RDP, one reward replaced"


def reward_sum_sd(alpha: float, epsilon: float, width: float) -> float:
    r"""Noise on a sum of rewards of range `width`: N(0, alpha width^2 / (2 epsilon)).

    Replacing a reward moves its sum by at most the width of the range, actions and contexts being public (with OFUL by the
    width times \|a\| <= 1). So mu = width / sd = sqrt(2 epsilon / alpha), and alpha mu^2 / 2 = epsilon: equality.

    Args:
      alpha: Renyi order.
      epsilon: Renyi divergence bound.
      width: of the reward range.

    Source: Azize and Basu, Theorem 2 (Mironov 2017, Corollary 3).
    """
    return width * math.sqrt(alpha / (2 * epsilon))


def most_updates(dimension: int, horizon: int, switch: float, ridge: float) -> int:
    r"""How often AdaR-OFUL can update its estimate: d ln(1 + T / (lambda d)) / ln(1 + C), rounded down.

    det V_T <= (lambda + T / d)^d for actions of norm at most 1, det V_0 = lambda^d, and each update needs a factor 1 + C.

    Args:
      dimension: d.
      horizon: T.
      switch: C.
      ridge: lambda.

    Source: Azize and Basu, Algorithm 4, line 6; the proof of Theorem 10 has the same bound up to constants.
    """
    return max(1, math.floor(dimension * math.log1p(horizon / (ridge * dimension)) / math.log1p(switch)))


def _adar_ucb(reading: str, *, alpha: float, epsilon: float, delta: float) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Eq. (6) in units of the episode's reward sum, rewards in [0, 1].

    The mean of the last episode gets N(0, alpha / (2 epsilon (N/2)^2)), N pulls in all: on the sum of its N/2 rewards
    that is sqrt(alpha / (2 epsilon)), exact. An arm's first pull has N = 1 and one sample where N/2 says half of one: its
    noise is twice what is needed, mu half; the proof of Theorem 4 uses the true length. The run's mu is that of the other
    episodes.

    The proof takes an expectation over episode boundaries that "have the same law" for both reward sequences; after the
    changed reward they have not, and an expectation bounds no Renyi divergence. The one-touch lemma gives the same number.
    Each noisy mean is read up to K (1 + log2(T / K)) times: its noise must be drawn once and kept.
    """
    sd = reward_sum_sd(alpha, epsilon, 1.0)
    tight = UP / GaussianDP.from_renyi(alpha, epsilon).mu
    return (
        RenyiDP(alpha, epsilon),
        gaussian_choice("printed", (sd, 2 * sd), 1 / sd),
        (gaussian_choice("the same, first pull as one sample", (tight, tight), 1 / tight),),
    )


def _adar_gope(reading: str, *, alpha: float, epsilon: float, delta: float) -> tuple[Claim, Choice, tuple[Choice, ...]]:
    """Algorithm 3, step 4: N_a ~ N(0, 2 alpha / epsilon) on each action's reward sum, |R| <= 1 (Assumption 1).

    The width of [-1, 1] is 2: exact. The proof of Theorem 7 says "the L2 sensitivity is 1" and its noise uses 2, which is
    right; its theorem is headed "for rewards in [0, 1]", where half the noise does. Each reward is in one phase.
    """
    sd = reward_sum_sd(alpha, epsilon, 2.0)
    tight = UP / GaussianDP.from_renyi(alpha, epsilon).mu
    return (
        RenyiDP(alpha, epsilon),
        gaussian_choice("printed", (sd,), 2 / sd),
        (
            gaussian_choice("the same, rewards in [-1, 1]", (2 * tight,), 1 / tight),
            gaussian_choice("rewards in [0, 1]", (tight,), 1 / tight),
        ),
    )


def _adar_oful(
    reading: str, *, alpha: float, epsilon: float, delta: float,
    dimension: int, horizon: int, switch: float, ridge: float,
) -> tuple[Claim, Choice, tuple[Choice, ...]]:  # fmt: skip
    """Algorithm 4, lines 7 and 8: the running sum of A_s R_s plus Y_1 + ... + Y_l, Y_m ~ N(0, (2 alpha / epsilon) I).

    Differences of consecutive releases are block sums plus fresh Y_l: one reward is in one of them, which moves by at
    most 2 (|R| <= 1, |a| <= 1), so mu = 2 / sqrt(2 alpha / epsilon): exact. The theorem is headed "for rewards in [0,
    1]": half does.

    The noise of the estimate grows like sqrt(l) with the update l. A square-root factorization of the same running sum over
    at most L updates (`most_updates`, no function of the data) has deviation (sum of c_k^2) 2 / mu instead.
    """
    sd = reward_sum_sd(alpha, epsilon, 2.0)
    tight = UP / GaussianDP.from_renyi(alpha, epsilon).mu
    updates = most_updates(dimension, horizon, switch, ridge)
    growth = math.sqrt(updates)
    last = factorization_norm(updates) * 2 * tight
    return (
        RenyiDP(alpha, epsilon),
        gaussian_choice("printed", (sd, sd * growth), 2 / sd),
        (
            gaussian_choice("the same, rewards in [-1, 1]", (2 * tight, 2 * tight * growth), 1 / tight),
            gaussian_choice("rewards in [0, 1]", (tight, tight * growth), 1 / tight),
            gaussian_choice("factorized sum, rewards in [-1, 1]", (None, last), 2 * factorization_norm(updates) / last),
        ),
    )


ADAR_UCB = Calibration(
    name="adar-ucb",
    promise=_PROMISE,
    source=_SOURCE,
    statement="Algorithm 2, eq. (6), Theorem 4",
    readings={"printed": "as printed; rewards in [0, 1]"},
    quantities=("reward sum of an episode", "an arm's first pull"),
    parameters=(ALPHA, RENYI_EPSILON, RENYI_DELTA),
    evaluate=_adar_ucb,
)

ADAR_GOPE = Calibration(
    name="adar-gope",
    promise=_PROMISE,
    source=_SOURCE,
    statement="Algorithm 3, Theorem 7",
    readings={"printed": "as printed; rewards in [-1, 1] (Assumption 1)"},
    quantities=("reward sum of an action in a phase",),
    parameters=(ALPHA, RENYI_EPSILON, RENYI_DELTA),
    evaluate=_adar_gope,
)

ADAR_OFUL = Calibration(
    name="adar-oful",
    promise=_PROMISE,
    source=_SOURCE,
    statement="Algorithm 4, Theorem 9",
    readings={"printed": "as printed; rewards in [-1, 1], actions of norm at most 1 (Assumption 1)"},
    quantities=("one block, each coordinate", "running sum after the last update, each coordinate"),
    parameters=(
        ALPHA, RENYI_EPSILON, RENYI_DELTA,
        Parameter("dimension", "d, of the actions", 5, whole(1)),
        Parameter("horizon", "T, rounds", 100_000, whole(1)),
        Parameter("switch", "C, an update when the determinant has grown by 1 + C", 1.0, positive),
        Parameter("ridge", "lambda", 1.0, positive),
    ),
    evaluate=_adar_oful,
)  # fmt: skip
