"""The code that makes numbers: a hash of its sources, and the git commit that they were checked out from, if any."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from bandana import algorithms, audits, flows, privacy_core

_PATIENCE = 10.0  # seconds for one answer of git
_GIT = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
"""Git that only reads: it takes no lock, writes no index and starts no hook or monitor that a repository names."""


class Checkout(NamedTuple):
    """Where the code comes from.

    Attributes:
      commit: hash of the commit that is checked out.
      is_clean: whether every source is that of the commit, and there is none beside them.
    """

    commit: str
    is_clean: bool


@cache
def sources() -> str:
    """SHA-256 over all sources of the product, 64 hex digits: shown beside numbers, and part of no key."""
    digest = hashlib.sha256()
    for folder in _folders():
        for path in sorted(folder.rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{folder.name}/{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


@cache
def checkout() -> Checkout | None:
    """The commit of the package's sources; None where they are in no git checkout, or git does not answer."""
    return read(_folders())


def read(folders: Sequence[Path]) -> Checkout | None:
    """The commit of folders of one checkout.

    They must hold tracked files: an environment inside a foreign checkout is not its code.
    """
    first = folders[0]
    names = [os.path.relpath(folder, first) for folder in folders]
    if not _ask(first, "ls-files", "--", *names):
        return None
    output = _ask(first, "status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--", *names)
    lines = (output or "").splitlines()
    commit = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), "")
    if not commit or not set(commit) <= set("0123456789abcdef"):
        return None  # nothing was committed yet
    return Checkout(commit, all(line.startswith("#") for line in lines))


def _ask(where: Path, *words: str) -> str | None:
    """Answer of git; None where it is missing, fails or takes too long."""
    # A hook that runs us has set GIT_DIR and more, which name its own repository.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [*_GIT, *words], cwd=where, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", timeout=_PATIENCE, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def _folders() -> list[Path]:
    return [Path(package.__path__[0]).resolve() for package in (privacy_core, algorithms, audits, flows)]
