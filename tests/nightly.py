"""Parameters of expensive tests: which of them `make test` plays, chosen by rule; `make test-all` plays all."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def first(n: int, values: Iterable[Any]) -> list[Any]:
    """All values as parameters; those after the first `n` are nightly.

    Args:
      n: how many `make test` keeps.
      values: tuples where there are several arguments; parameters that are made already keep their ids and marks.
    """
    return [value if index < n else _nightly(value) for index, value in enumerate(values)]


def one_of_each(values: Iterable[Any], group: Callable[[Any], Hashable], label: Callable[[Any], str]) -> list[Any]:
    """All values as parameters; one of each group is in `make test`, the others are nightly.

    A new value of a known kind joins a group, and one of a new kind makes a group of its own: no list is kept. Groups take
    turns: the first is represented by its first member, the second by its second, and so on.

    Args:
      values: of one argument, hashable.
      group: what the members of a group have in common.
      label: id of the parameter.
    """
    groups: dict[Hashable, list[Any]] = {}
    for value in (values := list(values)):
        groups.setdefault(group(value), []).append(value)
    shown = {members[turn % len(members)] for turn, members in enumerate(groups.values())}
    return [pytest.param(value, id=label(value), marks=() if value in shown else pytest.mark.nightly) for value in values]


def _nightly(value: Any) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, id=value.id, marks=(*value.marks, pytest.mark.nightly))
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.nightly)
