"""Which software made a number."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from platform import python_version


def versions(*names: str) -> dict[str, str]:
    """Name -> version of each distribution, and of python itself."""
    return {name: python_version() if name == "python" else _version(name) for name in names}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
