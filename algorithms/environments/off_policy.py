r"""Value of a policy on logged data: inverse propensity scores, their self-normalized form, and doubly robust.

A log holds n independent rounds (x_i, a_i, p_i, r_i): a context, the action that was taken, the probability with which it
was taken there, and its reward. With the weight w_i = pi(a_i | x_i) / p_i of a policy pi and a model q of mean rewards,

    IPS    mean of w_i r_i,
    SNIPS  sum of w_i r_i over sum of w_i,
    DR     mean of sum_a pi(a | x_i) q(x_i, a) + w_i (r_i - q(x_i, a_i)).

IPS and DR are unbiased, and SNIPS is consistent, if the propensities are true, positive wherever the policy acts, and no
unseen cause drives both action and reward; DR needs q fitted on other rounds, and is right for any q then. Intervals are
normal approximations over rounds (for SNIPS by the delta method), for a policy that does not depend on these rounds: they
are too narrow where few rounds have nearly all the weight, which `effective` shows.

Source: Horvitz and Thompson (1952); Swaminathan and Joachims (2015); Dudik, Langford and Li (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from bandana.algorithms.protocol import FloatArray, IntArray

IPS, SNIPS, DR = "ips", "snips", "dr"


@dataclass(frozen=True, eq=False)
class Log:
    """Logged rounds.

    Attributes:
      contexts: (n, p); p may be 0.
      actions: (n,) in [0, n_actions).
      propensities: (n,) in (0, 1], of the actions that were taken.
      rewards: (n,)
      n_actions: number of actions.
    """

    contexts: FloatArray
    actions: IntArray
    propensities: FloatArray
    rewards: FloatArray
    n_actions: int

    def __len__(self) -> int:
        return len(self.actions)

    def rows(self, chosen: IntArray) -> Log:
        """The log of some rounds."""
        return Log(
            self.contexts[chosen], self.actions[chosen], self.propensities[chosen], self.rewards[chosen], self.n_actions
        )


class Estimate(NamedTuple):
    """A policy's mean reward a round.

    Attributes:
      value: the estimate.
      low: lower end of the interval.
      high: upper end of the interval.
    """

    value: float
    low: float
    high: float


def estimates(log: Log, policy: FloatArray, predicted: FloatArray, confidence: float = 0.95) -> dict[str, Estimate]:
    """The policy's value by each estimator; see the module's text for what is assumed.

    Args:
      log: rounds that neither the policy nor the model was fitted on.
      policy: (n, n_actions) probabilities of the actions in each round's context.
      predicted: (n, n_actions) the model's mean rewards there.
      confidence: of each interval.

    Raises:
      ValueError: shapes disagree, a row of the policy is no distribution, or there are fewer than two rounds.
    """
    shape = (len(log), log.n_actions)
    if policy.shape != shape or predicted.shape != shape:
        raise ValueError(f"policy and predicted must be of shape {shape}, got {policy.shape} and {predicted.shape}")
    if len(log) < 2:
        raise ValueError(f"an interval needs at least 2 rounds, got {len(log)}")
    if policy.min() < 0 or np.abs(policy.sum(axis=1) - 1).max() > 1e-9:
        raise ValueError("each row of policy must be a distribution over the actions")
    weights = weights_of(log, policy)
    rows = np.arange(len(log))
    gained = weights * log.rewards
    robust = (policy * predicted).sum(axis=1) + weights * (log.rewards - predicted[rows, log.actions])
    results = {IPS: _mean(gained, confidence), DR: _mean(robust, confidence)}
    if (total := float(weights.sum())) > 0:
        ratio = float(gained.sum()) / total
        terms = weights * (log.rewards - ratio) / weights.mean()
        half = _half_width(terms, confidence)
        results[SNIPS] = Estimate(ratio, ratio - half, ratio + half)
    return results


def weights_of(log: Log, policy: FloatArray) -> FloatArray:
    """(n,) pi(a_i | x_i) / p_i."""
    return np.asarray(policy[np.arange(len(log)), log.actions] / log.propensities)


def effective(weights: FloatArray) -> float:
    """Kish's effective number of rounds, (sum w)^2 / sum w^2; 0 where the policy takes no logged action."""
    square = float((weights**2).sum())
    return float(weights.sum()) ** 2 / square if square else 0.0


def _mean(terms: FloatArray, confidence: float) -> Estimate:
    value, half = float(terms.mean()), _half_width(terms, confidence)
    return Estimate(value, value - half, value + half)


def _half_width(terms: FloatArray, confidence: float) -> float:
    return float(ndtri((1 + confidence) / 2) * terms.std(ddof=1) / np.sqrt(len(terms)))
