"""The kinds of environments that a spec may name."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from bandana.flows.spec import episodes, finite_arms, kernel, linear
from bandana.flows.spec.environment import Environment, EnvironmentFields, Experiment
from bandana.flows.spec.finite_arms import read_table

__all__ = ["Environment", "EnvironmentSpec", "environment_of", "environments_of", "read_table"]
_CLASSES = {**finite_arms.CLASSES, **linear.CLASSES, **kernel.CLASSES, **episodes.CLASSES}
if TYPE_CHECKING:
    EnvironmentSpec = EnvironmentFields
else:
    EnvironmentSpec = Annotated[reduce(or_, _CLASSES), Field(discriminator="kind")]


def environment_of(spec: Experiment, item: EnvironmentFields) -> Environment[Any]:
    """An environment of a spec."""
    return _CLASSES[type(item)](spec, item)


def environments_of(spec: Experiment) -> list[Environment[Any]]:
    """Every environment of a spec, in the order of the file."""
    return [environment_of(spec, item) for item in spec.environment]
