"""Options of a command in groups, each a dataclass: the command takes the groups, its user types the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any, get_type_hints


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of groups one that Typer reads option by option, in the order of the groups and of their fields.

    Args:
      command: each parameter is annotated with a dataclass of fields as Typer wants them; no name occurs in two groups.
    """
    groups = get_type_hints(command)
    del groups["return"]
    types: dict[str, object] = {}
    parameters = []
    for group in groups.values():
        types |= get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=types[field.name]))

    @wraps(command)
    def flat(**given: object) -> None:
        command(**{name: group(**{each.name: given[each.name] for each in fields(group)}) for name, group in groups.items()})

    shown: Any = flat
    shown.__signature__, shown.__annotations__ = inspect.Signature(parameters), types
    return flat


def helps(*groups: type) -> dict[str, str]:
    """Help texts of the options of some groups, by the names of their fields."""
    hints = [get_type_hints(group, include_extras=True) for group in groups]
    return {name: getattr(hint.__metadata__[0], "help", "") for each in hints for name, hint in each.items()}
