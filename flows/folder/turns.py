"""Taking turns: what several commands write in one folder, each writes alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bandana.flows.folder.private_files import make_folder


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Waits until no other thread or process is alone in the folder, which is created where missing; whoever dies lets go.

    The folder itself is locked, so no file is left behind.
    """
    make_folder(folder)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
