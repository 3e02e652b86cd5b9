"""Seeds whose noise was drawn on private rows that have no book: a second run from one of them is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bandana.flows.texts.mistakes import BookError

FOLDER = "books/seeds"
"""Place in a data folder, one file for each data set."""


def append(path: Path, row: object) -> None:
    """Appends a JSON line to a file of its owner alone; when this returns, it is on disk."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, (json.dumps(row) + "\n").encode())
        os.fsync(handle)
    finally:
        os.close(handle)


def claim(folder: Path, digest: str, seed: str, key: str, name: str) -> None:
    """Notes that a block draws noise from a seed; the same block may draw it again, such as after a kill.

    Of two runs at once the first line in the file wins, and both read it after they wrote theirs.

    Args:
      folder: of these notes.
      digest: what the data folder knows the data set by.
      seed: hash of the seed of the noise.
      key: of the block.
      name: of the data set, for the message.

    Raises:
      BookError: another block drew from the seed, and the difference of both shows exact values.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{digest}.jsonl"
    append(path, [seed, key])
    for line in path.read_text(encoding="utf-8").splitlines():
        known, owner = json.loads(line)
        if known == seed:
            if owner != key:
                raise BookError(
                    f"another run over {name}, of other rounds or other code, drew noise from the same seed, and the "
                    "difference of two such runs shows exact values: choose another seed, or noise: secure"
                )
            return


def seed_of(folder: Path, digest: str, key: str) -> str | None:
    """The seed that a block noted for a data set; None if it noted none."""
    try:
        lines = (folder / f"{digest}.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    return next((seed for seed, owner in map(json.loads, lines) if owner == key), None)
