"""Builds a user's own algorithm: what plays a block of a benchmark, and what an audit replays."""

from __future__ import annotations

import inspect
from typing import Any

from bandana.algorithms.entry import Settings
from bandana.algorithms.problem import Problem
from bandana.algorithms.protocol import Algorithm
from bandana.flows.spec.own_code import OwnObject, is_factory


def build(code: OwnObject, settings: Settings) -> Algorithm:
    """What the user's class or function makes of the problem and the parameters; an instance with its fields replaced.

    Raises:
      OwnCodeError: the file cannot be loaded, or does not take what it is given; see `OwnObject.made`.
    """
    found: Algorithm = code.made(settings.parameters, offered(settings.problem))
    return found


def offered(problem: Problem) -> dict[str, Any]:
    """Public facts of a problem under every name that a class or function may ask for; None where there is no such thing."""
    facts = {
        name: getattr(problem, name)
        for name in ("n_actions", "reward_range", "horizon", "features", "dimension", "kernel", "pool", "model")
    }
    model = problem.model
    return {
        "problem": problem,
        **facts,
        "n_arms": problem.n_actions,
        "context_dimension": problem.dimension,
        "n_states": None if model is None else model.n_states,
        "episode_length": None if model is None else model.horizon,
    }


def knows_actions(code: OwnObject) -> bool:
    """Whether it is shown the features of linear arms: then it must meet the actions in their own order."""
    found = code.load()
    return is_factory(found) and bool({"problem", "features"} & set(inspect.signature(found).parameters))
