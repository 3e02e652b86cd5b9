"""The secret that Bandana's Prefect servers ask for, and the only web origins that they answer.

Whoever reaches Prefect's API can have a shell script run as the user who serves flows. The loopback interface keeps other
machines away; it keeps away neither other users of this machine nor the pages that a browser on it shows.
"""

from __future__ import annotations

import base64
import os
import secrets
import stat
import tempfile
from pathlib import Path

from bandana.flows.folder.turns import alone_in

_USER = "bandana"
CLIENT = "PREFECT_API_AUTH_STRING"
_SERVER = "PREFECT_SERVER_API_AUTH_STRING"


def draw() -> str:
    """A new login, user:password, with 256 random bits."""
    return f"{_USER}:{secrets.token_urlsafe(32)}"


def authorization(login: str) -> str:
    """The HTTP header Authorization of a login, user:password, after RFC 7617."""
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def server_settings(login: str, port: int) -> dict[str, str]:
    """Settings of a Prefect server that answers nobody without the login, and web pages of its own origin only.

    They go through the environment, which only processes of the same user can read; a command line is open to everybody.
    Prefect's CSRF tokens stay off: they protect credentials that a browser adds by itself, and this one is never a cookie.
    The server listens on `port` of the loopback interface.
    """
    return {
        _SERVER: login,
        "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": f"http://127.0.0.1:{port},http://localhost:{port}",
        "PREFECT_SERVER_CORS_ALLOWED_METHODS": "GET,POST,PUT,PATCH,DELETE",
    }


def keep(path: Path) -> str:
    """Reads the login from a file that only its owner can read, so that it outlives a restart.

    A new one is drawn if there is none, or if somebody else may read or write the file. Its folder is created where missing.

    Raises:
      SpecError: the file system stores no modes, so that nothing can be kept secret there.
    """
    with alone_in(path.parent):  # two commands that start at once agree on one login
        kept = _read(path)
        if kept is None:
            _write(path, draw())
            kept = _read(path)
    if kept is None:
        from bandana.flows.texts.mistakes import SpecError  # here: a temporary server starts before specs are imported

        raise SpecError(
            f"{path} can be read by other users whatever its mode: "
            "choose a data folder (--data) on a file system that stores modes"
        )
    return kept


def _read(path: Path) -> str | None:
    """The login in the file; None if it holds none, or holds no secret."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(descriptor, encoding="ascii", errors="replace") as file:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
        text = file.read().strip() if is_ours else ""
    return text if text and text.isascii() and text.isprintable() else None


def _write(path: Path, login: str) -> None:
    descriptor, name = tempfile.mkstemp(dir=path.parent)  # with mode 0600
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(login + "\n")
    os.replace(name, path)
