"""Ready specs, the benchmark, cases and examples, installed with the product: what pages name works in an empty folder."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent
FOLDERS = ("experiments", "examples")
"""Folders of the repository that are installed below the package."""


def place(path: Path) -> Path:
    """A file or folder of the user's, or else the installed one of that name, which is said on standard error.

    Args:
      path: as it was given, relative to the current folder; `smoke` also names the ready spec `experiments/smoke.yaml`.

    Returns:
      The path itself if something lies there, or nothing of that name is installed.
    """
    if path.is_absolute() or ".." in path.parts or path.exists():
        return path
    inside = path if path.parts[:1] and path.parts[0] in FOLDERS else Path("experiments", path)
    for installed in (ROOT / inside, ROOT / f"{inside}.yaml"):
        if installed.is_file() or (installed.is_dir() and inside == path):
            _say(f"{path}: not in this folder; read from the installed {installed}")
            return installed
    return path


@cache
def _say(line: str) -> None:
    """Writes a line to standard error, once a process."""
    print(line, file=sys.stderr)


def specs() -> list[str]:
    """Names of the ready specs, in order."""
    return sorted(path.stem for path in (ROOT / FOLDERS[0]).glob("*.yaml"))


def lines() -> list[str]:
    """What `bandana list` says of them."""
    return ["Ready specs, for `bandana check NAME` and `bandana run NAME`:", ", ".join(specs())]
