"""Contents of a result, apart from who computed it and when: two computations that found the same have one hash of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Description = Mapping[str, Any]
"""A JSON object; its schema says which value is of which kind."""
DESCRIPTION, PROVENANCE = "description", "provenance"


def read_description(path: Path) -> Description:
    """The description of a result or of evidence; its arrays are not read.

    Raises:
      OSError, ValueError, KeyError, zipfile.BadZipFile: the file is missing or damaged.
    """
    with np.load(path, allow_pickle=False) as archive:
        return dict(json.loads(bytes(archive[DESCRIPTION]).decode()))


def numbers_sha256(path: Path) -> str:
    """SHA-256 of a file's arrays and description without its provenance, 64 hex digits.

    Raises:
      OSError, ValueError, KeyError, zipfile.BadZipFile: the file is missing or damaged.
    """
    with np.load(path, allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return digest(arrays, json.loads(bytes(arrays.pop(DESCRIPTION)).decode()))


def digest(arrays: Mapping[str, NDArray[np.generic]], description: Description) -> str:
    """SHA-256 of arrays and a description without its provenance.

    Args:
      arrays: name -> array; its bytes count in C order.
      description: JSON's own types.
    """
    sha256 = hashlib.sha256()
    content = {name: value for name, value in description.items() if name != PROVENANCE}
    sha256.update(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        array = arrays[name]
        sha256.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        sha256.update(array.tobytes())
    return sha256.hexdigest()
