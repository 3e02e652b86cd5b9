"""The product as users get it: the wheel of this checkout, in environments that hold nothing else of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("python3.12", "python3.13")
"""Interpreters that the product is for, beside the one that runs the tests."""
_NOT_OURS = ("pip", "setuptools", "pkg_resources", "_distutils_hack")
_NOT_KEPT = ("BANDANA_", "PREFECT_", "MLFLOW_", "PYTHON")


def run(
    *command: object, cwd: Path = ROOT, check: bool = False, seconds: float = 1800, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; its words may be paths, and text is captured."""
    variables = {**os.environ, "COLUMNS": "200", **environment}
    words = [*map(str, command)]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=seconds, env=variables, check=check)


def wheel_of(folder: Path) -> Path:
    """Builds the wheel in a folder, from a copy: the folders of the product are links.

    Raises:
      subprocess.CalledProcessError: it cannot be built.
    """
    source = folder / "source"
    source.mkdir(parents=True)
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "bandana", source / "bandana", ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder / "dist", source, check=True)
    return next((folder / "dist").glob("*.whl"))


def pins_of(folder: Path) -> Path:
    """The versions of the lock file, as a file of constraints."""
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    place = folder / "pins.txt"
    place.write_text("\n".join(line.split()[0] for line in lines if "==" in line and line[0] != "#"), encoding="utf-8")
    return place


def python_of(name: str) -> str | None:
    """Where an interpreter is, by its name such as python3.13, or its path; None if this machine has none that starts."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    beside = sorted(versions.glob(f"{Path(name).name.removeprefix('python')}.*/bin/{Path(name).name}"))
    for place in filter(None, [shutil.which(name), *map(str, beside)]):
        if subprocess.run([place, "-c", "import ssl"], capture_output=True, check=False).returncode == 0:
            return place
    return None


def environment(folder: Path, python: str = sys.executable) -> Path:
    """The interpreter of a new virtual environment, which holds pip alone."""
    run(python, "-m", "venv", folder, check=True, PYTHONPATH="")
    return folder / "bin" / "python"


def install(python: Path, *words: object, pins: Path | None = None) -> None:
    """Installs with the environment's own pip; all packages as wheels.

    Raises:
      RuntimeError: pip refuses; the message is pip's.
    """
    held = ("-c", pins) if pins else ()
    done = run(python, "-m", "pip", "install", "-q", *held, *words, cwd=python.parent)
    if done.returncode:
        raise RuntimeError(done.stderr)


def packages_of(python: Path) -> list[Path]:
    """What lies in the environment beside pip and its like."""
    (place,) = python.parents[1].glob("lib/*/site-packages")
    return [path for path in place.iterdir() if not path.name.startswith(_NOT_OURS)]


def bytes_of(places: Sequence[Path]) -> int:
    """Bytes of files and folders."""
    return sum(file.lstat().st_size for path in places for file in (path, *path.rglob("*")) if file.is_file())


def words_of_a_user(python: Path) -> dict[str, str]:
    """The environment variables of a user who has activated this environment, without settings of ours or of Python."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_KEPT)}
    return kept | {"PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(python.parents[1])}
