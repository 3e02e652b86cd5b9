"""A virtual environment of the libraries in `requirements.txt`, installed by plain pip, or named with the reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")


def requirements() -> list[str]:
    """The pinned libraries, in the order in which they are installed."""
    lines = (line.split("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def python_of(folder: Path) -> Path:
    """The interpreter of the environment."""
    return folder / "bin" / "python"


def install(folder: Path, say: Callable[[str], None]) -> dict[str, str]:
    """Makes the environment where it is not there, and installs what is missing, within the product's own constraints.

    Returns:
      Library -> why it did not install.
    """
    python = python_of(folder)
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    missing = {}
    for requirement in requirements():
        name, _, wanted = requirement.partition("==")
        if _version(python, name) == wanted:
            continue
        say(f"installing {requirement}")
        command = [
            str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
            "-c", str(ROOT / "constraints.txt"), requirement,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if line.lower().startswith("error")]
            missing[requirement] = (errors or done.stderr.splitlines() or ["pip said nothing"])[-1][:200]
    return missing


def _version(python: Path, name: str) -> str:
    code = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    return subprocess.run([str(python), "-c", code, name], capture_output=True, text=True).stdout.strip()
