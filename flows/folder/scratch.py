"""Files that are being written: under a name that tells whose they are, so that those of the dead can be cleared away."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import socket
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path

_OURS = re.compile(r"\..*\.(?P<machine>[0-9a-f]{12})-(?P<pid>[0-9]+)\.[A-Za-z0-9_]*\.part")
_LONG_AGO = 24 * 3600.0  # seconds: nothing is being written for so long


def prefix(name: str) -> str:
    """Prefix of the names of this process's unfinished files; they end in `SUFFIX`."""
    return f".{name}.{machine()}-{os.getpid()}."


SUFFIX = ".part"


def sweep(folders: Iterable[Path]) -> list[Path]:
    """Removes, and returns, what dead processes left unfinished below the folders.

    Files of a process that lives stay. Those of other machines, whose processes are not known here, stay until they are old.
    """
    removed = left_over(folders)
    for path in removed:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return removed


def left_over(folders: Iterable[Path]) -> list[Path]:
    """Files that dead processes left unfinished below the folders."""
    paths = [
        Path(place) / name
        for folder in folders
        for place, inside, files in os.walk(folder)
        for name in (*inside, *files)
        if name.endswith(SUFFIX)
    ]
    return [path for path in paths if _is_left_over(path)]


def _is_left_over(path: Path) -> bool:
    owner = _OURS.fullmatch(path.name)
    if owner is None:
        return False
    if owner["machine"] == machine() and not is_alive(int(owner["pid"])):
        return True
    try:
        return time.time() - path.stat().st_mtime > _LONG_AGO
    except OSError:
        return False  # its writer finished it


@cache
def machine() -> str:
    """Machine that shares our process numbers: a host since it started, or a container."""
    facts = [socket.gethostname()]
    try:
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text())
        facts.append(str(os.stat("/proc/self/ns/pid").st_ino))
    except OSError:
        pass  # a system without them has no containers either
    return hashlib.sha256(" ".join(facts).encode()).hexdigest()[:12]


def is_alive(pid: int) -> bool:
    """True if a process of this machine lives; one of which the system does not tell may."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    try:  # one that ended and whose parent did not look yet writes no more
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return True
