"""Exact planning in a finite Markov decision process, by backward induction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, IntArray


class Plan(NamedTuple):
    """Values of the best policy, or of a given one."""

    values: FloatArray
    """(horizon + 1, n_states), V_h(s); the last row is 0."""
    action_values: FloatArray
    """(horizon, n_states, n_actions), Q_h(s, a)."""

    @property
    def gaps(self) -> FloatArray:
        """(horizon, n_states, n_actions), V_h(s) - Q_h(s, a): what an action costs, if all later ones follow the policy."""
        return np.asarray(self.values[:-1, :, None] - self.action_values)


def plan(transitions: FloatArray, rewards: FloatArray, policy: IntArray | FloatArray | None = None) -> Plan:
    """Values of the best policy (ties do not matter), or of the given one.

    Args:
      transitions: (horizon, n_states, n_actions, n_states)
      rewards: (horizon, n_states, n_actions)
      policy: (horizon, n_states) actions, or (horizon, n_states, n_actions) their probabilities; None: the best actions.
    """
    horizon, n_states, _ = rewards.shape
    values = np.zeros((horizon + 1, n_states))
    action_values = np.empty_like(rewards)
    for step in range(horizon - 1, -1, -1):
        action_values[step] = rewards[step] + transitions[step] @ values[step + 1]
        if policy is not None and policy.ndim == 3:
            values[step] = (policy[step] * action_values[step]).sum(axis=1)
            continue
        chosen = action_values[step].argmax(axis=1) if policy is None else policy[step]
        values[step] = action_values[step][np.arange(n_states), chosen]
    return Plan(values, action_values)
