"""Options of a command in groups, each a dataclass: the command takes the groups, its user types the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from dataclasses import MISSING, fields
from functools import wraps
from typing import Annotated, Any, get_type_hints

import typer


def _show_all(context: typer.Context, is_asked: bool) -> None:
    if is_asked:
        for parameter in context.command.params:
            parameter.hidden = False  # type: ignore[attr-defined]
        typer.echo(context.get_help())
        raise typer.Exit


HelpAll = Annotated[bool, typer.Option("--help-all", callback=_show_all, is_eager=True, help="Show rarer options too.")]


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Makes a command of groups one that Typer reads option by option, in the order of the groups and of their fields.

    Args:
      command: each parameter is annotated with a dataclass, whose fields are annotated as Typer wants parameters to be.
        No name occurs in two groups. A group's `PANEL` names its panel in the help, its `RARE` the options that only
        `--help-all` shows.
    """
    groups = get_type_hints(command)
    del groups["return"]
    types: dict[str, object] = {}
    parameters, has_rare = [], False
    for group in groups.values():
        rare, panel = getattr(group, "RARE", ()), getattr(group, "PANEL", None)
        has_rare = has_rare or bool(rare)
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            hint, default = hints[field.name], inspect.Parameter.empty if field.default is MISSING else field.default
            option = copy(hint.__metadata__[0])
            option.rich_help_panel, option.hidden = panel or option.rich_help_panel, field.name in rare
            types[field.name] = Annotated[hint.__origin__, option]
            parameters.append(_parameter(field.name, types[field.name], default))

    @wraps(command)
    def flat(help_all: bool = False, **given: object) -> None:
        command(**{name: group(**{each.name: given[each.name] for each in fields(group)}) for name, group in groups.items()})

    if has_rare:
        parameters, types = [*parameters, _parameter("help_all", HelpAll, False)], {**types, "help_all": HelpAll}
    shown: Any = flat
    shown.__signature__, shown.__annotations__ = inspect.Signature(parameters), types
    return flat


def _parameter(name: str, annotation: object, default: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def helps(*groups: type) -> dict[str, str]:
    """Help texts of the options of some groups, by the names of their fields."""
    hints = [get_type_hints(group, include_extras=True) for group in groups]
    return {name: getattr(hint.__metadata__[0], "help", "") for each in hints for name, hint in each.items()}
