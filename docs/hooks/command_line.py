"""Every command with its arguments and options, read from the command line itself."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from typer.main import get_command

from bandana.flows.cli import app

_HEAD = """# Command line

Generated from the commands themselves; `bandana COMMAND --help` prints the same, rarer options with `--help-all`.
Exit codes are the same for all commands: 0 success, 1 a failure or an audit that did not pass, 2 an
error in the command or in the spec.
"""

_SEVERAL = 4
"""Commands that must share an option, value and meaning included, for it to be listed once."""


def markdown() -> str:
    """The page."""
    by_name = dict(commands())
    rows = {name: _option_rows(command) for name, command in by_name.items()}
    counted = Counter(row for options in rows.values() for row in options.values())
    shared = [row for row in counted if counted[row] >= _SEVERAL]
    listed = [f"| [`{name}`](#{name.replace(' ', '-')}) | {_first(command.help)} |" for name, command in by_name.items()]
    parts = [_HEAD, "\n".join(["| command | what it does |", "|---|---|", *listed])]
    parts += ["## Shared options", _options(shared)]
    for name, command in by_name.items():
        own = [row for row in rows[name].values() if row not in shared]
        also = [flags for flags, row in rows[name].items() if row in shared]
        parts += [f"## {name}", _prose(command.help), f"```text\n{_usage(name, command)}\n```", _arguments(command)]
        parts.append(_options(own) if own else "")
        parts.append(f"Also {', '.join(also)}: [shared options](#shared-options)." if also else "")
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


def _first(text: str | None) -> str:
    """A docstring's first sentence, for the table of commands."""
    return _prose(text).partition("\n\n")[0].replace("\n", " ").partition(". ")[0].removesuffix(".").replace("|", "\\|")


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


def _shown(command: Any, kind: str) -> list[Any]:
    return [p for p in command.params if p.param_type_name == kind]  # rare ones too, which `--help` leaves out


def _arguments(command: Any) -> str:
    rows = [f"| `{named(p)}` | {_meaning(p)} |" for p in _shown(command, "argument")]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) if rows else ""


def _option_rows(command: Any) -> dict[str, str]:
    """Each option's row of a table, by its flags."""
    kinds = get_type_hints(inspect.unwrap(command.callback))
    return {
        _flags(p): f"| {_flags(p)} | {_value(p, kinds.get(p.name))} | {_meaning(p)} |" for p in _shown(command, "option")
    }


def _options(rows: list[str]) -> str:
    return "\n".join(["| option | value | meaning |", "|---|---|---|", *rows])


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
