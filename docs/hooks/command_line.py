"""Every command with its arguments and options, read from the command line itself."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.main import get_command

from bandana.flows.cli import app

_HEAD = """# Command line

Generated from the commands themselves; `bandana COMMAND --help` prints the same. Exit codes are the same for
all commands: 0 success, 1 a failure or an audit that did not pass, 2 an error in the command or in the spec.
"""


def markdown() -> str:
    """The page."""
    parts = [_HEAD]
    for name, command in commands():
        parts += [f"## {name}", _prose(command.help), f"```text\n{_usage(name, command)}\n```", *_tables(command)]
    return "\n\n".join(part for part in parts if part) + "\n"


def commands() -> Iterator[tuple[str, Any]]:
    """Each command that does something, with its full name, in the order of `bandana --help`."""
    yield from _below("bandana", get_command(app))


def _below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield name, command
        return
    for word, child in command.commands.items():
        if not child.hidden:
            yield from _below(f"{name} {word}", child)


def _prose(text: str | None) -> str:
    """A docstring's text without the indentation that it has in the code."""
    return "\n".join(line.strip() for line in (text or "").splitlines()).strip()


def _usage(name: str, command: Any) -> str:
    words = [_place(p) for p in command.params if p.param_type_name == "argument"]
    return " ".join([name, *words, "[OPTIONS]"])


def named(argument: Any) -> str:
    """What an argument is called, as in SPEC."""
    return str(argument.metavar or argument.name).strip("[].").upper()


def _place(argument: Any) -> str:
    name = named(argument)
    several = "..." if argument.nargs == -1 else ""
    return f"{name}{several}" if argument.required else f"[{name}]{several}"


def _tables(command: Any) -> list[str]:
    shown = [p for p in command.params if not getattr(p, "hidden", False)]
    arguments = [p for p in shown if p.param_type_name == "argument"]
    options = [p for p in shown if p.param_type_name == "option"]
    parts = []
    if arguments:
        rows = [f"| `{named(p)}` | {_meaning(p)} |" for p in arguments]
        parts.append("\n".join(["| argument | meaning |", "|---|---|", *rows]))
    kinds = get_type_hints(inspect.unwrap(command.callback))
    rows = [f"| {_flags(p)} | {_value(p, kinds.get(p.name))} | {_meaning(p)} |" for p in options]
    if rows:
        parts.append("\n".join(["| option | value | meaning |", "|---|---|---|", *rows]))
    return parts


def _flags(option: Any) -> str:
    return ", ".join(f"`{flag}`" for flag in [*option.opts, *option.secondary_opts])


def _value(option: Any, kind: Any) -> str:
    """What is written after the option."""
    if option.is_flag:
        return ""
    if option.metavar:
        return str(option.metavar)
    several = ", several times" if getattr(option, "multiple", False) else ""
    return _words(kind) + several


def _words(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    inner = [part for part in get_args(kind) if part is not NoneType]
    if inner:
        return _words(inner[0])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    return {int: "whole number", float: "number", str: "text", Path: "path"}.get(kind, "text")


def _meaning(parameter: Any) -> str:
    text = str(getattr(parameter, "help", None) or "").replace("|", "\\|")
    default = parameter.default
    shown = getattr(parameter, "show_default", False)
    if isinstance(shown, str):
        return f"{text} Default: `{shown}`."
    is_plain = isinstance(default, int | float | str) and not isinstance(default, bool)
    return f"{text} Default: `{default}`." if shown is not False and is_plain else text
