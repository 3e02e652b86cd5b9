"""The systems that Bandana runs on: others are refused in one line, before anything that only Linux has is imported."""

from __future__ import annotations

import sys

_NAMES = {"darwin": "macOS", "win32": "Windows", "cygwin": "Cygwin"}


class OtherSystemError(RuntimeError):
    """This system is not Linux."""


def check_system() -> None:
    """Checks that this is Linux.

    Own code runs in forked children with a limit of memory, and what a command starts ends with it, by `/proc` and by the
    signal that Linux sends when a parent dies. Neither was ever run on another system.

    Raises:
      OtherSystemError: it is another system; the message is one line.
    """
    if sys.platform != "linux":
        name = _NAMES.get(sys.platform, sys.platform)
        raise OtherSystemError(
            f"Bandana runs on Linux, and this is {name}: use it in a Linux container or a virtual machine"
        )
