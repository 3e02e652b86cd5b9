"""Private bandits and reinforcement learning that prove their privacy.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_NAMES: dict[str, str] = {}
"""Public name -> the module that defines it."""

__all__ = ["__version__", *_NAMES]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("bandana")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'bandana' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
