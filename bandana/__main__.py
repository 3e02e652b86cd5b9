"""The command `bandana`, also as `python -m bandana`."""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> None:
    """Checks the system and reads `bandana.toml` before anything else is imported, then runs the command."""
    from bandana.flows.folder.system import OtherSystemError, check_system

    try:
        check_system()
    except OtherSystemError as error:
        _refuse(error)
    from bandana.configuration import ConfigurationError, apply

    try:
        apply()
    except ConfigurationError as error:
        _refuse(error)
    from bandana.flows.cli import main as command

    command()


def _refuse(error: Exception) -> NoReturn:
    sys.stderr.write(f"error: {error}\n")
    raise SystemExit(2) from None


if __name__ == "__main__":
    main()
