"""Environments of gymnasium with small discrete spaces, whose transition probabilities are known."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
from pydantic import Field

from bandana.algorithms.environments.mdp_instances import Instance, tabular
from bandana.algorithms.problem import LINEAR_MDP
from bandana.flows.problems.environment import Classes
from bandana.flows.problems.episodes import Episodes, EpisodesSpec
from bandana.flows.texts.fields import Scalar, Steps
from bandana.flows.texts.mistakes import SpecError

_MOST = 512
"""States times actions: one feature for each is kept as a matrix."""


class GymnasiumSpec(EpisodesSpec):
    """An environment of gymnasium whose states and actions are few, and whose transition probabilities it knows."""

    problem_kind = LINEAR_MDP
    is_shipped = False
    kind: Literal["gymnasium"]
    id: str = Field(description="Name in gymnasium, such as FrozenLake-v1.")
    steps: Steps = Field(20, description="Steps in each episode; one that ends sooner waits in a state that pays nothing.")
    options: dict[str, Scalar] = Field({}, description="What `gymnasium.make` is called with.")


class _Gymnasium(Episodes[GymnasiumSpec]):
    @cached_property
    def instance(self) -> Instance:
        item = self.item
        try:
            import gymnasium
        except ImportError:
            raise SpecError(
                f"{item.where}environment.kind: gymnasium is not installed: pip install 'bandana-dp[gymnasium]'"
            ) from None
        try:
            made: Any = gymnasium.make(item.id, **item.options).unwrapped
        except Exception as error:  # gymnasium and what it loads raise errors of their own
            lines = str(error).splitlines()
            shown = lines[0] if lines else item.id
            raise SpecError(f"{item.where}environment.id: {type(error).__name__}: {shown}") from error
        table = getattr(made, "P", None)
        if table is None:
            raise SpecError(
                f"{item.where}environment.id: {item.id} knows no transition probabilities (it has no attribute P), and "
                "regret is counted with them; FrozenLake-v1 does"
            )
        n_states, n_actions = len(table), len(table[0])
        if (n_states + 1) * n_actions > _MOST:
            raise SpecError(
                f"{item.where}environment.id: {item.id} has {n_states} states and {n_actions} actions; states times actions "
                f"must be at most {_MOST}"
            )
        transitions, rewards = law_of(table)
        start = np.append(np.asarray(made.initial_state_distrib, dtype=float), 0.0)
        shape = (item.steps, *transitions.shape)
        names = (*(f"state {state}" for state in range(n_states)), "ended")
        return tabular(np.broadcast_to(transitions, shape), np.broadcast_to(rewards, shape[:3]), start, names)

    @property
    def _origin(self) -> str:
        return (
            f"{self.item.id} of gymnasium, for {self.item.steps} steps, with a feature for each state and action; rewards "
            "are moved to [0, 1] by one shift and scale."
        )


def law_of(table: Any) -> tuple[np.ndarray, np.ndarray]:
    """Transitions and mean rewards of a table of gymnasium's toy-text environments.

    Args:
      table: state -> action -> list of (probability, next state, reward, whether the episode ends).

    Returns:
      (n_states + 1, n_actions, n_states + 1) transitions, the last state being the end; (n_states + 1, n_actions) mean
      rewards, moved to [0, 1] by one shift and scale: what pays least pays 0, and what pays most 1. The end pays what 0 is
      moved to.
    """
    n_states, n_actions = len(table), len(table[0])
    transitions, rewards = np.zeros((n_states + 1, n_actions, n_states + 1)), np.zeros((n_states + 1, n_actions))
    transitions[n_states, :, n_states] = 1.0
    least, most = 0.0, 0.0
    for state in range(n_states):
        for action in range(n_actions):
            for probability, after, reward, has_ended in table[state][action]:
                transitions[state, action, n_states if has_ended else after] += probability
                rewards[state, action] += probability * reward
                least, most = min(least, reward), max(most, reward)
    width = most - least or 1.0
    return transitions, (rewards - least) / width


CLASSES: Classes = {GymnasiumSpec: _Gymnasium}
