r"""LinPriv: linear bandits with private rewards under pure DP, the reward sums from a binary tree over all rounds.

Source: Neel and Roth (2018), Mitigating bias in adaptive data gathering via differential privacy, LinPriv, a form of OFUL
(Abbasi-Yadkori, Pal and Szepesvari 2011); Azize and Basu, Remark 3 and Appendix D.3, who correct its regret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.bandits.contextual.oful import RarelySwitchingOFUL, Released
from bandana.algorithms.entry import RegretBound, Settings, built_by, of_rewards
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, RIDGE, declared
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression.noisy_sums import UP
from bandana.algorithms.regression.norms import laplace_norm, laplace_sum_norm
from bandana.privacy_core import Interval, Laplace, Relation, Tree, TreeSum
from bandana.privacy_core.checks import failure_of, positive

_ALWAYS = 1e-9
"""A growth of the determinant by so little is due in every round, and costs the regret bound nothing."""


@dataclass(frozen=True)
class LinPriv(RarelySwitchingOFUL):
    r"""OFUL that updates its estimate in every round, on noisy running sums from a binary tree.

    See `RarelySwitchingOFUL` for estimate and width; q_t is a bound on the norm of the noise of the t-th running sum, that
    of the m nodes which make it up, m the number of binary digits 1 of t: it fails in some round with probability `failure`.

    Unit of privacy: one reward (one round). Public: all contexts, hence, given the actions, the Gram matrix. Claim:
    epsilon-DP of all actions, central model. Sensitivity: replacing one reward moves y x by at most the width of the range
    times |x|_1 <= sqrt d in L1, as a longer x is shortened to norm 1. A record lies in at most L = floor(log2 T) + 1 nodes,
    each released with Laplace noise of multiplier L / epsilon: exactly epsilon, as pure privacy composes. Cost a round:
    O(n_actions d^2 + d^3).

    Departures from the paper: its arms have parameters of their own and one regression each, K in all, where here all
    vectors share theta; with one sum for all, K is not in the cost of privacy. The width is exact, of the nodes that are
    summed, with the actual least eigenvalue. Rewards are centered on the middle of their range.
    """

    def is_due(self, released: Released) -> np.ndarray:
        """(n_reps,) in every round."""
        return np.ones(len(released.clock), dtype=bool)


def lin_priv(
    n_actions: int,
    dimension: int,
    horizon: int,
    epsilon: float,
    reward_range: Interval,
    *,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> LinPriv:
    """LinPriv with total privacy epsilon-DP.

    Args: as in `LinUCBSettings`, and
      epsilon: above 0.
      failure: of each part of the width; None: 1 / horizon.
    """
    failure, half = failure_of(failure, horizon), reward_range.width / 2
    multiplier = Tree(horizon).n_nodes / positive("epsilon", epsilon) * UP
    mechanism = Laplace(reward_range.width * math.sqrt(dimension), multiplier, Relation.REPLACE_REWARD)
    each = failure / horizon
    norms = [laplace_sum_norm(dimension, m, each) for m in range(1, horizon.bit_length() + 1)]
    norms[0] = min(norms[0], laplace_norm(dimension, each))
    of_step = (0.0, *(mechanism.scale * norms[t.bit_count() - 1] for t in range(1, horizon + 1)))
    return LinPriv(
        n_actions, dimension, reward_range, horizon, TreeSum(mechanism, horizon), ridge, _ALWAYS, failure, half, half,
        of_step, beta_scale=beta_scale,
    )  # fmt: skip


_NEEL_ROTH = "Neel and Roth (2018), Mitigating bias in adaptive data gathering via differential privacy"


_lin_priv = built_by(lin_priv)


def _bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _lin_priv(settings)
    if algorithm.beta_scale < 1:
        return None
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{_NEEL_ROTH}, as Azize and Basu, Appendix D.3, correct it, with constants: max(D, 2 s W) sqrt(t G / log 2), W = R "
        f"sqrt(2 log(1 / failure) + G) + B sqrt lambda + q / sqrt lambda, and at most D t, D the range's width, for any "
        f"contexts and |theta| <= B. Here G = d log(1 + t / (lambda d)), d = {algorithm.context_dimension}, lambda = "
        f"{algorithm.ridge:g}, R = {algorithm.reward_scale:g}, B = {algorithm.parameter_bound:g}, s = "
        f"{algorithm.beta_scale:g}, q = {max(algorithm.noise_norms):.3g}, failure = {algorithm.failure:.3g}. "
        f"Exceeded with probability at most {2 * algorithm.failure:.3g}",
    )


LIN_PRIV = of_rewards(
    f"{_NEEL_ROTH}, LinPriv, with an exact width", "pure", "privacy theorem of LinPriv", _NEEL_ROTH,
    claim="epsilon-DP of all actions, replace one reward, contexts public",
).entry(
    "lin-priv", "bandits/contextual", _lin_priv, plays_on=(CONTEXTUAL,), parameters=declared(FAILURE, BETA_SCALE, RIDGE),
    audit_shape=(3, 3), bound=_bound,
)  # fmt: skip
"""The pure-DP baseline beside AdaR-OFUL."""
