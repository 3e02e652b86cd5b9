"""New files and folders for their owner alone, whatever the umask; a folder that a group may write is shared on purpose."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def is_shared(folder: Path) -> bool:
    """True if a group may write a folder, which people arrange on purpose; a public one such as `/tmp` does not count."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_IWGRP) and not mode & stat.S_ISVTX


def make_folder(folder: Path) -> None:
    """Creates a folder, and those above it that are missing, with mode 0700; below a shared one, as the umask says."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(0o777 if is_shared(folder.parent) else 0o700, exist_ok=True)


def mode_in(folder: Path) -> int:
    """The mode to create a file with: 0600; in a shared folder, 0666 less the umask."""
    return 0o666 if is_shared(folder) else 0o600


def umask_in(folder: Path) -> int:
    """The umask of a program that writes there, as `subprocess.Popen` takes it; -1, our own, in a shared folder."""
    return -1 if is_shared(folder) else 0o077


def make_file(path: Path) -> None:
    """Creates an empty file where there is none; what is there stays as it is."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, mode_in(path.parent)))
