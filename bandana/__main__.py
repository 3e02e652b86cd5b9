"""The command `bandana`, also as `python -m bandana`."""

from __future__ import annotations

import sys


def main() -> None:
    """Checks the system and reads `bandana.toml` before anything else is imported, then runs the command."""
    from bandana.configuration import ConfigurationError, apply
    from bandana.flows.folder.system import OtherSystemError, check_system

    try:
        check_system()
        apply()
    except (OtherSystemError, ConfigurationError) as error:
        sys.stderr.write(f"error: {error}\n")
        raise SystemExit(2) from None
    from bandana.flows.cli import main as command

    command()


if __name__ == "__main__":
    main()
