"""Private bandits and reinforcement learning whose privacy is tested.

Nothing heavy is imported before it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bandana.flows.annexes.anything.api import Audit, audit
    from bandana.flows.api.result import Difference, Result
    from bandana.flows.api.run import load, run
    from bandana.flows.api.tables import catalog
    from bandana.flows.texts.mistakes import SpecError

__version__ = "1.0.0"

_NAMES: dict[str, str] = {
    "run": "bandana.flows.api.run",
    "load": "bandana.flows.api.run",
    "catalog": "bandana.flows.api.tables",
    "Result": "bandana.flows.api.result",
    "Difference": "bandana.flows.api.result",
    "SpecError": "bandana.flows.texts.mistakes",
}
"""Public name -> the module of the core that defines it."""

_MODULES = ("live",)
"""Modules of annexes that are imported when they are used."""

__all__ = ["Audit", "Difference", "Result", "SpecError", "__version__", "audit", "catalog", "load", "run"]


def __getattr__(name: str) -> Any:
    if name not in (*__all__, *_MODULES):
        raise AttributeError(f"module 'bandana' has no attribute {name!r}")
    from bandana.flows.folder.system import check_system

    check_system()
    from bandana.configuration import apply

    apply()
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    from bandana.flows.annex import plugs_at
    from bandana.layers import EXTRAS, demand

    if (place := plugs_at("names").get(name)) is None:
        raise AttributeError(f"bandana.{name}: the annex that has it is not installed")
    if name in EXTRAS:
        demand(name)
    module, _, attribute = place.partition(":")  # this name alone: others may need extras that are not installed
    return getattr(import_module(module), attribute) if attribute else import_module(module)


def __dir__() -> list[str]:
    return [*__all__]
