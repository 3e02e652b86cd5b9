"""Virtual environments of the pinned packages of cases: each set is installed once, in the data folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from bandana.flows.folder.store import write_whole
from bandana.flows.texts.mistakes import SpecError

_DONE = "installed.json"


def python_with(packages: Sequence[str], folder: Path) -> Path:
    """The interpreter of an environment that holds these packages alone.

    Args:
      packages: every package that is needed, pinned; pip adds none.
      folder: which holds the environments.

    Raises:
      SpecError: a package cannot be installed; the message ends with pip's last line.
    """
    wanted = sorted(packages)
    words = json.dumps([sys.version.split()[0], *wanted])
    first = packages[0].partition("==")[0] if packages else "none"
    place = folder / f"{first}-{sha256(words.encode()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if (place / _DONE).is_file():
        return python
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    _run([sys.executable, "-m", "venv", *([] if wanted else ["--without-pip"]), str(place)])
    if wanted:
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *wanted])
    write_whole(place / _DONE, words.encode())
    return python


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").split("\n")[-1]
        raise SpecError(f"packages: {' '.join(command[-3:])}: {last}")
