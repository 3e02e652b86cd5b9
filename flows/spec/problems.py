"""What algorithms are told of an environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bandana.algorithms.problem import Problem
    from bandana.flows.spec.environment_kinds import Environment


def problem_of(environment: Environment[Any]) -> Problem:
    """What algorithms are told of the environment, at the spec's horizon."""
    return environment.problem(environment.spec.horizon)
