"""Lower bounds for users who bring their own actions, rewards linear in them or with log-odds that are."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy, Reach
from bandana.algorithms.lower_bounds.two_problems import worst_of_groups
from bandana.privacy_core import Interval


def minimax_bound(grid: ArrayLike, dimension: int, reward_range: Interval, privacy: Privacy) -> LowerBound:
    r"""On the worst problem in d dimensions, for all algorithms of the class, at each horizon T.

    The class: rewards in the range, of mean middle + <theta, x>, |x| <= 1, |theta| at most half the width, any public order
    of users. The problem: T / d users bring e_i and -e_i, for each i; theta_i = +-s in units of half the width, s <= 1 /
    sqrt d, rewards are the two ends of the range. The gap is s times the width, and `two_problems` says the rest:

        d (s / 2) sum over t < T / d of max(e^(-t k) / 2, w_t),  at the best s,  in units of the width.

    Without privacy that is of order d sqrt T, here with its constant; epsilon-joint-DP adds (log 2) d / epsilon,
    mu-joint-GDP 0.8 d / mu, and epsilon-LDP divides d sqrt T by tanh(epsilon / 2). Public contexts and
    a replaced reward alone (AdaR-OFUL) are covered: no context is changed. The proof is ours; He, Zhang and Zhang (2022), A
    reduction from linear contextual bandits lower bounds to estimations lower bounds, study the same question.

    Args:
      grid: (n_grid,) numbers of rounds.
      dimension: d.
      reward_range: of rewards.
      privacy: of the class of algorithms, joint or stronger; a record or its reward is replaced.
    """
    width = reward_range.width
    return LowerBound(
        worst_of_groups(grid, dimension, 1 / math.sqrt(dimension), width, privacy),
        f"all algorithms, {privacy}, on the worst problem in d = {dimension} dimensions with |theta| at most half the width "
        "of the range and contexts in any order: two signs of each coordinate to be distinguished, with all constants",
        Reach.WORST_PROBLEM,
    )


def logistic_bound(grid: ArrayLike, dimension: int, logit_bound: float, width: float, privacy: Privacy) -> LowerBound:
    r"""The same for means sigma(<theta, x>) in units of the range's width, |theta| <= S.

    The problem is that of `minimax_bound`: with theta_i = +-z, z <= S / sqrt d, the two means of a user of group i are (1 +-
    tanh(z / 2)) / 2, so that s = tanh(z / 2), and everything else stays.

    Args:
      grid: (n_grid,) numbers of rounds.
      dimension: d.
      logit_bound: S.
      width: of the reward range.
      privacy: of the class of algorithms, joint or stronger; a record or its reward is replaced.
    """
    most = math.tanh(logit_bound / math.sqrt(dimension) / 2)
    return LowerBound(
        worst_of_groups(grid, dimension, most, width, privacy),
        f"all algorithms, {privacy}, on the worst problem with logistic means in d = {dimension} dimensions with |theta| at "
        f"most {logit_bound:g} and contexts in any order: two signs of each coordinate to be distinguished, with all "
        "constants",
        Reach.WORST_PROBLEM,
    )
