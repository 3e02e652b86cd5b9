"""Finished work, by content key: written whole or not at all, so that a rerun continues where a killed run stood."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tempfile
import threading
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import algorithms
import audits
import privacy_core
from flows import scratch

_PACKAGES = (privacy_core, algorithms, audits)
_NOT_COMPUTATION = "reporting"


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def content_key(value: Any) -> str:
    """SHA-256 of the canonical JSON, 64 hex digits."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


@cache
def code_version() -> str:
    """SHA-256 over the sources that numbers depend on: results of other code are never reused."""
    digest = hashlib.sha256()
    for package in _PACKAGES:
        root = Path(package.__path__[0])
        for path in sorted(root.rglob("*.py")):
            if _NOT_COMPUTATION not in path.parts:
                digest.update(str(path.relative_to(root)).encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, also if the machine stops or the disk is full."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(scratch.SUFFIX, scratch.prefix(path.name), path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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
    """Arrays and their description under a key."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, kind: str, key: str) -> Path:
        """Where a result lies."""
        return self._folder / kind / f"{key}.npz"

    def load(self, kind: str, key: str) -> tuple[dict[str, np.ndarray], dict[str, Any]] | None:
        """The arrays and the description, or None where there is no whole file."""
        try:
            with np.load(self.path(kind, key)) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, zipfile.BadZipFile, EOFError, KeyError):
            return None  # a damaged file: computed again, and overwritten
        return arrays, json.loads(bytes(arrays.pop("description")).decode())

    def save(self, kind: str, key: str, arrays: Mapping[str, np.ndarray], description: Mapping[str, Any]) -> Path:
        """Writes a result; the same content gives the same bytes."""
        buffer = io.BytesIO()
        text = np.frombuffer(canonical(description).encode(), dtype=np.uint8)
        np.savez(buffer, allow_pickle=False, description=text, **arrays)
        path = self.path(kind, key)
        write_whole(path, buffer.getvalue())
        return path
