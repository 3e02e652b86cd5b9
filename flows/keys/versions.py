"""Versions of the software that made a number."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, version
from platform import python_version


def versions(*names: str) -> dict[str, str]:
    """Name -> version of each distribution, and of python itself.

    A module that is imported says itself which version it is: what is installed now may be another one, and what lies first
    on the path need not be what was installed.
    """
    return {name: python_version() if name == "python" else _version(name) for name in names}


def _version(name: str) -> str:
    loaded = getattr(sys.modules.get(name), "__version__", None)
    if isinstance(loaded, str):
        return loaded
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
