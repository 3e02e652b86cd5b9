"""The kinds of environments that a spec may name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Protocol

from pydantic import Field

from bandana.flows.annex import plugged
from bandana.flows.problems import (
    classification,
    episodes,
    finite_arms,
    functions,
    gymnasium_environments,
    kernel,
    linear,
    logged_data,
    real_arms,
    sphere,
    tabular,
)
from bandana.flows.problems import own as own_environments
from bandana.flows.problems.environment import Classes, Environment, EnvironmentFields, Setting

__all__ = ["Environment", "EnvironmentSpec", "environment_of", "environments_of"]
CLASSES: Classes = reduce(or_, plugged("environments").values(), {
    **finite_arms.CLASSES, **real_arms.CLASSES, **linear.CLASSES, **sphere.CLASSES, **classification.CLASSES,
    **kernel.CLASSES, **functions.CLASSES, **episodes.CLASSES, **tabular.CLASSES, **own_environments.CLASSES,
    **gymnasium_environments.CLASSES, **logged_data.CLASSES})  # fmt: skip
if TYPE_CHECKING:
    EnvironmentSpec = EnvironmentFields
else:
    EnvironmentSpec = Annotated[reduce(or_, CLASSES), Field(discriminator="kind")]


class Experiment(Protocol):
    """A spec, as environments know it."""

    @property
    def setting(self) -> Setting:
        """The part that all environments know."""

    @property
    def environment(self) -> Sequence[EnvironmentFields]:
        """Environments, in the order of the file."""


def environment_of(spec: Experiment, item: EnvironmentFields) -> Environment[EnvironmentFields]:
    """An environment of a spec."""
    return CLASSES[type(item)](spec.setting, item)


def environments_of(spec: Experiment) -> list[Environment[EnvironmentFields]]:
    """Every environment of a spec, in the order of the file."""
    return [environment_of(spec, item) for item in spec.environment]
