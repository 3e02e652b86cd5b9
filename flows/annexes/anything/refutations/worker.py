"""Runs one release of a case, in the packages that the case pins; it needs the standard library only.

    python worker.py PROGRAM.py RELEASE PARAMETERS            # the line protocol, on standard input and output
    python worker.py PROGRAM.py RELEASE PARAMETERS --serve    # the same for each connection to the port that it prints
    python worker.py PROGRAM.py RELEASE PARAMETERS --state    # the claim that the library itself makes

PARAMETERS is a JSON object. The program defines RELEASE(data, seed, **parameters), and `state` of (release, **parameters).
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import IO


def load(place: str) -> ModuleType:
    """The module of a case's program."""
    spec = importlib.util.spec_from_file_location("program", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    with contextlib.redirect_stdout(sys.stderr):
        spec.loader.exec_module(module)
    return module


def plain(value: object) -> object:
    """A value of NumPy as JSON's own type."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


def answer(release: Callable[..., object], parameters: dict[str, object], lines: Iterator[str], out: IO[str]) -> None:
    """Reads the data set and seeds, and writes a line for each seed; an exception is an output, as everybody sees it."""
    data = json.loads(next(lines))
    for line in lines:
        try:
            output = release(data, int(line), **parameters)
        except Exception as error:
            output = f"raised {type(error).__name__}"
        out.write(json.dumps(output, default=plain) + "\n")
    out.flush()


def serve(release: Callable[..., object], parameters: dict[str, object]) -> None:
    """Answers one connection after the other, until standard input is closed."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        print(server.getsockname()[1], flush=True)
        threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
        while True:
            connection, _ = server.accept()
            ended = contextlib.suppress(ConnectionError, StopIteration)
            with ended, connection, connection.makefile("r") as lines, connection.makefile("w") as out:
                answer(release, parameters, lines, out)


def main(place: str, name: str, text: str, *mode: str) -> None:
    """Runs the mode that the command names."""
    warnings.filterwarnings("ignore")
    module, parameters = load(place), json.loads(text)
    if "--state" in mode:
        print(module.state(name, **parameters))
        return
    release = getattr(module, name)
    if "--serve" in mode:
        serve(release, parameters)
    else:
        answer(release, parameters, sys.stdin, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
