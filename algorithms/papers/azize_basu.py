"""Azize and Basu, Renyi Differentially Private Bandits: the noise of AdaR-UCB, AdaR-GOPE and AdaR-OFUL.

The data are rewards; a neighbor replaces one. Each reward enters one released sum (with OFUL, one block of a running
sum), so by the one-touch lemma (`docs/privacy.md`) the whole run costs what one release costs: mu = sensitivity / sd, and
the Renyi divergence alpha mu^2 / 2 holds at every order alpha. The papers' noise meets its claim with equality.

AdaR-UCB, eq. (6): the mean of the last episode gets N(0, alpha / (2 epsilon (N/2)^2)), N pulls in all; on the sum of its N/2
rewards that is `reward_sum_sd`. An arm's first pull has N = 1 and one sample where N/2 says half of one: its noise is twice
what is needed. The proof of Theorem 4 uses the true length, and takes an expectation over episode boundaries that "have the
same law" for both reward sequences; after the changed reward they have not, and an expectation bounds no Renyi divergence.
The one-touch lemma gives the same number. Each noisy mean is read up to K (1 + log2(T / K)) times: its noise must be drawn
once and kept.

AdaR-GOPE, Algorithm 3: N_a ~ N(0, 2 alpha / epsilon) on each action's reward sum, and AdaR-OFUL, Algorithm 4: Y_m ~ N(0,
(2 alpha / epsilon) I) on each block, |R| <= 1 (Assumption 1). The width of [-1, 1] is 2: exact. The proof of Theorem 7
says "the L2 sensitivity is 1" and its noise uses 2, which is right; both theorems are headed "for rewards in [0, 1]",
where half the noise does.
"""

from __future__ import annotations

import math


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
    r"""Number of updates that AdaR-OFUL can make at most: d ln(1 + T / (lambda d)) / ln(1 + C), rounded down.

    det V_T <= (lambda + T / d)^d for actions of norm at most 1, det V_0 = lambda^d, and each update needs a factor 1 + C.

    Args:
      dimension: d.
      horizon: T.
      switch: C.
      ridge: lambda.

    Source: Azize and Basu, Algorithm 4, line 6; the proof of Theorem 10 has the same bound up to constants.
    """
    return max(1, math.floor(dimension * math.log1p(horizon / (ridge * dimension)) / math.log1p(switch)))
