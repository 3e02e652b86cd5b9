"""Finished work, by content key: written whole or not at all, so that a rerun continues where a killed run stood.

A result ends with the SHA-256 of its bytes, as evidence does: what a disk or a copy changed is found and computed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bandana.audits.contents import DESCRIPTION
from bandana.flows.folder import scratch
from bandana.flows.folder.private_files import make_folder
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.folder.shared import ADDRESS, files_at
from bandana.flows.keys.content import canonical
from bandana.flows.texts.json_text import JsonObject

BENCHMARK = "benchmark"
"""Kind of the results that are blocks of replicates."""
_ENDING = ".npz"
_DIGITS, _END = 64, b"PK\x05\x06"
"""Length of a SHA-256 in hexadecimal, and how the last 22 bytes of a zip archive without a comment begin."""
_UNREADABLE = (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError)
"""Errors that reading a missing or damaged file raises; its result is computed again, and the file overwritten."""


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
    make_folder(path.parent)
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
    make_folder(target.parent)
    temporary = target.with_name(f"{scratch.prefix(target.name)}{threading.get_ident()}{scratch.SUFFIX}")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
        os.replace(temporary, target)
    except OSError:
        write_whole(target, source.read_bytes())
    finally:
        temporary.unlink(missing_ok=True)


class Files:
    """Finished files by name, `KIND/FILE`, in a folder: the first whole one stays. Annexes have other makes (`stores`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def sizes(self, kind: str) -> dict[str, int]:
        """Bytes of every file of a kind, by its name without the kind."""
        try:
            with os.scandir(self.folder / kind) as files:
                return {file.name: file.stat().st_size for file in files}
        except FileNotFoundError:
            return {}

    def has(self, name: str) -> bool:
        """True if the file is there; another make may overlook one that another machine wrote a moment ago."""
        return self.fetch(name).exists()

    def fetch(self, name: str) -> Path:
        """Place of the file on this machine, brought here if need be; nothing lies there if nobody wrote it."""
        return self.folder / name

    def put_first(self, name: str, content: bytes, is_whole: Callable[[Path], bool]) -> bool:
        """Writes the file and returns whether it did, see `write_first`."""
        return write_first(self.folder / name, content, is_whole)


class Store:
    """Arrays and their description under a key.

    Attributes:
      is_anonymous: whether results that are computed for it leave out user and host; it travels with the store to workers
        of other machines, which have another environment.
    """

    def __init__(self, folder: Path) -> None:
        address = folder.parent / ADDRESS
        self._files: Files = files_at(address.read_text("utf-8")) if address.exists() else Files(folder)
        self.is_anonymous = is_anonymous()

    def path(self, kind: str, key: str) -> Path:
        """Where a result lies on this machine, or would; one of a shared store is brought here."""
        return self._files.fetch(f"{kind}/{key}{_ENDING}")

    def has(self, kind: str, key: str) -> bool:
        """True if a result is there; a damaged one is found, and computed again, when it is read."""
        return self._files.has(f"{kind}/{key}{_ENDING}")

    def keep(self, kind: str, key: str, content: bytes, is_whole: Callable[[Path], bool]) -> bool:
        """Stores a result's bytes and returns whether it did: of two processes, the first one's whole file stays."""
        return self._files.put_first(f"{kind}/{key}{_ENDING}", content, is_whole)

    def sizes(self, kind: str) -> dict[str, int]:
        """Key -> bytes of every result of a kind."""
        ended = self._files.sizes(kind).items()
        return {name.removesuffix(_ENDING): size for name, size in ended if name.endswith(_ENDING)}

    def describe(self, kind: str, key: str) -> JsonObject | None:
        """The description alone, or None where there is no whole file."""
        stored = self.load(kind, key, is_told=False)
        return None if stored is None else stored[1]

    def load(self, kind: str, key: str, is_told: bool = True) -> tuple[dict[str, np.ndarray], JsonObject] | None:
        """The arrays and the description, or None where there is no whole file; a damaged one is told of."""
        path = self.path(kind, key)
        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            if not _is_whole(content):
                raise ValueError("its bytes are not those that were written")
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            return arrays, json.loads(bytes(arrays.pop(DESCRIPTION)).decode())
        except _UNREADABLE as error:
            if is_told:
                words = " ".join(str(error).split())[:200]
                sys.stderr.write(f"warning: {path} is damaged ({words}); it is computed again\n")
            return None

    def save(self, kind: str, key: str, arrays: Mapping[str, np.ndarray], description: Mapping[str, object]) -> Path:
        """Writes a result, unless another process stored it meanwhile; the same content gives the same bytes."""
        buffer = io.BytesIO()
        text = np.frombuffer(canonical(description).encode(), dtype=np.uint8)
        np.savez(buffer, allow_pickle=False, description=text, **arrays)
        # The SHA-256 of all bytes before is the comment of the zip archive, which readers of archives pass over.
        content = buffer.getvalue()[:-2] + _DIGITS.to_bytes(2, "little")
        sealed = content + hashlib.sha256(content).hexdigest().encode()
        self.keep(kind, key, sealed, lambda _: self.describe(kind, key) is not None)
        return self.path(kind, key)


def _is_whole(content: bytes) -> bool:
    """True if a result's bytes are those that were written; one of an earlier version has no hash, and counts as whole.

    No change of a single bit, and no cut, turns a result with a hash into one without.
    """
    if content[-22:-18] == _END and content[-2:] == b"\0\0":
        return True
    return hashlib.sha256(content[:-_DIGITS]).hexdigest().encode() == content[-_DIGITS:]
