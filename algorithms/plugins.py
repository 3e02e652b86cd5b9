"""Additions of installed packages to the product: algorithms and environments that their entry points name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NamedTuple

ALGORITHMS, ENVIRONMENTS = "bandana.algorithms", "bandana.environments"
"""Groups of entry points."""


class Found(NamedTuple):
    """Object that an entry point names.

    Attributes:
      name: of the entry point.
      package: the distribution that has it.
      thing: what was loaded; None if that failed.
      error: why it could not be loaded, in one line; empty if it was.
    """

    name: str
    package: str
    thing: Any
    error: str

    def broken(self, error: str) -> Found:
        """The same, which cannot be used."""
        return self._replace(thing=None, error=error)

    def __str__(self) -> str:
        return f"{self.name} of the package {self.package} cannot be used: {self.error}"


@cache
def loaded(group: str) -> tuple[Found, ...]:
    """Everything of a group, sorted by package and name; what cannot be loaded says so and breaks nothing else."""
    return tuple(sorted(_loaded(group), key=lambda point: (point.package, point.name)))


def _loaded(group: str) -> Iterator[Found]:
    for point in entry_points(group=group):
        plugin = Found(point.name, point.dist.name if point.dist is not None else point.module.partition(".")[0], None, "")
        try:
            yield plugin._replace(thing=point.load())
        except (Exception, SystemExit) as error:
            lines = str(error).splitlines()
            yield plugin.broken(f"{point.value}: {type(error).__name__}" + (f": {lines[0]}" if lines else ""))


@cache
def packages() -> frozenset[str]:
    """Top-level names of the modules in which entry points lie: their code is traced as the product's own is."""
    points = [*entry_points(group=ALGORITHMS), *entry_points(group=ENVIRONMENTS)]
    return frozenset(point.module.partition(".")[0] for point in points) - {"bandana"}
