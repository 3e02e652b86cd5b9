"""Public facts of an environment: a root of keys, since blocks are played with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bandana.algorithms.problem import Problem
    from bandana.flows.problems.kinds import Environment


def problem_of(environment: Environment[Any]) -> Problem:
    """Public facts of the environment, at the spec's horizon."""
    return environment.problem(environment.setting.horizon)
