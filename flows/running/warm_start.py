"""A process that has imported what workers need, and from which they are forked: each starts in milliseconds.

It imports while the command itself still imports and while its server starts, so that nobody waits for it. It is forked from
where one thread runs: nothing but imports has happened there.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sequence
from multiprocessing import forkserver

_METHOD = "forkserver"
_COMMANDS = "bandana.flows.cli"  # a worker runs the main module again, which imports them
_modules: list[str] = []


def warm_up(modules: Sequence[str]) -> None:
    """Starts the process; call when the settings of Prefect stand in the environment, which workers inherit.

    Where forking is not safe, or Prefect stands already with settings that may be others, it does nothing: workers are then
    started as fresh interpreters. A module that does not exist is silently left out.
    """
    if sys.platform != "linux" or _modules or "prefect" in sys.modules:
        return
    _modules.extend(modules)
    multiprocessing.get_context(_METHOD).set_forkserver_preload([_COMMANDS, *modules])
    forkserver.ensure_running()


def start_method() -> str:
    """Method by which workers are started: forked from the warm process if there is one."""
    return _METHOD if _modules else "spawn"
