"""Data of a spec: one class for each kind of environment."""

from __future__ import annotations

from typing import Any

from bandana.flows.spec import episodes, finite_arms, kernel, linear
from bandana.flows.spec.environment import Environment
from bandana.flows.spec.environment_specs import EnvironmentSpec
from bandana.flows.spec.finite_arms import read_table
from bandana.flows.spec.spec import Spec

__all__ = ["Environment", "environment_of", "environments_of", "read_table"]
_CLASSES = {**finite_arms.CLASSES, **linear.CLASSES, **kernel.CLASSES, **episodes.CLASSES}


def environment_of(spec: Spec, item: EnvironmentSpec) -> Environment[Any]:
    """An environment of a spec."""
    return _CLASSES[type(item)](spec, item)


def environments_of(spec: Spec) -> list[Environment[Any]]:
    """Every environment of a spec, in the order of the file."""
    return [environment_of(spec, item) for item in spec.environment]
