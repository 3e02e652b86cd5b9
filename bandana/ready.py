"""Ready specs, the benchmark, cases and examples, installed with the product: what pages name works in an empty folder.

`python -m bandana.ready` copies them into the current folder, to read and to change.
"""

from __future__ import annotations

import shutil
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


def copy(target: Path) -> list[str]:
    """Copies both folders into a folder, and says in a line each what was done; one that is there already stays as it is."""
    done = {name: (target / name).exists() for name in FOLDERS}
    for name in [name for name, is_there in done.items() if not is_there]:
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    return [f"{name}: {'is there, and stays as it is' if is_there else 'copied'}" for name, is_there in done.items()]


if __name__ == "__main__":
    print(*copy(Path.cwd()), sep="\n")
