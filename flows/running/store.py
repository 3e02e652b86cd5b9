"""Finished work, by content key: written whole or not at all, so that a rerun continues where a killed run stood."""

from __future__ import annotations

import io
import json
import os
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bandana.audits.contents import read_description
from bandana.flows.keys.content import canonical
from bandana.flows.running import scratch
from bandana.flows.running.settings import is_anonymous

_ENDING = ".npz"
_UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError)
"""What reading a missing or damaged file raises; its result is computed again, and the file overwritten."""


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also if the machine stops or the disk is full."""
    with _written_beside(path, content) as temporary:
        os.replace(temporary, path)


def write_first(path: Path, content: bytes, is_whole: Callable[[Path], bool]) -> bool:
    """Writes a file as `write_whole` does and returns whether it did: of two processes, the first one's whole file stays."""
    with _written_beside(path, content) as temporary:
        try:
            os.link(temporary, path)
            return True
        except OSError:  # it is there, or the file system knows no links
            if path.exists() and is_whole(path):
                return False
        os.replace(temporary, path)
        return True


@contextmanager
def _written_beside(path: Path, content: bytes) -> Iterator[Path]:
    """A file of that content in the same folder, which is gone afterwards unless it was moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(scratch.SUFFIX, scratch.prefix(path.name), path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def link(source: Path, target: Path) -> None:
    """Gives a file a second name; a copy where the file system knows no links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{scratch.prefix(target.name)}{threading.get_ident()}{scratch.SUFFIX}")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
        os.replace(temporary, target)
    except OSError:
        write_whole(target, source.read_bytes())
    finally:
        temporary.unlink(missing_ok=True)


class Store:
    """Arrays and their description under a key.

    Attributes:
      is_anonymous: whether results that are computed for it leave out user and host; it travels with the store to workers
        of other machines, which have another environment.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.is_anonymous = is_anonymous()

    def path(self, kind: str, key: str) -> Path:
        """Where a result lies."""
        return self._folder / kind / f"{key}{_ENDING}"

    def sizes(self, kind: str) -> dict[str, int]:
        """Key -> bytes of every result of a kind."""
        try:
            with os.scandir(self._folder / kind) as found:
                return {file.name[: -len(_ENDING)]: file.stat().st_size for file in found if file.name.endswith(_ENDING)}
        except FileNotFoundError:
            return {}

    def load(self, kind: str, key: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The arrays and the description, or None where there is no whole file."""
        try:
            with np.load(self.path(kind, key)) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except _UNREADABLE:
            return None
        return arrays, json.loads(bytes(arrays.pop("description")).decode())

    def describe(self, kind: str, key: str) -> dict[str, Any] | None:
        """The description alone, or None where there is no whole file; arrays are not read."""
        try:
            return read_description(self.path(kind, key))
        except _UNREADABLE:
            return None

    def save(self, kind: str, key: str, arrays: Mapping[str, np.ndarray], description: Mapping[str, Any]) -> Path:
        """Writes a result, unless another process stored it meanwhile; the same content gives the same bytes."""
        buffer = io.BytesIO()
        text = np.frombuffer(canonical(description).encode(), dtype=np.uint8)
        np.savez(buffer, allow_pickle=False, description=text, **arrays)
        path = self.path(kind, key)
        write_first(path, buffer.getvalue(), lambda _: self.load(kind, key) is not None)
        return path
