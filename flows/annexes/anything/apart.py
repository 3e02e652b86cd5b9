"""A process that loads a function from its file, and makes first calls of it: its arguments are FILE NAME DESCRIPTOR."""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from bandana.flows.annexes.anything.pairs.first_calls import serve
from bandana.flows.own.code import OwnObject


def main(file: str, name: str, descriptor: str) -> NoReturn:
    """Serves the function; a file that cannot be loaded ends the process, and with it the connection, without a word."""
    sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (it stays open)
    try:
        function = OwnObject(Path(file), name).load()
    except BaseException:
        os._exit(70)
    serve(function, Connection(int(descriptor)))


if __name__ == "__main__":
    main(*sys.argv[1:])
