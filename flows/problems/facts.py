"""Public facts of an environment: a root of keys, since blocks are played with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bandana.algorithms.problem import Problem
    from bandana.flows.problems.environment import Environment, EnvironmentFields


def problem_of(environment: Environment[EnvironmentFields]) -> Problem:
    """Public facts of the environment, at the spec's horizon."""
    return environment.problem(environment.setting.horizon)
