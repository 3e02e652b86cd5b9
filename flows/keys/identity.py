"""Identity of a stored result: its facts, the code that makes it, and the libraries that this code runs on.

A key has two halves of 32 hex digits. The first stands for what was asked: algorithm, parameters, environment, data, seed.
The second stands for how it was computed: the code that the result depends on, and the minor versions of Python, NumPy,
SciPy and Numba. Results with an equal first half and another second half answer the same question by other means.
"""

from __future__ import annotations

import platform
import re
import socket
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypedDict

from bandana.flows.keys.closure import Code, Name
from bandana.flows.keys.content import content_key
from bandana.flows.keys.own_files import own_files

LIBRARIES = ("numpy", "scipy", "numba")
_HALF = 32
_KEY = re.compile(f"[0-9a-f]{{{_HALF}}}-[0-9a-f]{{{_HALF}}}")
CODE = Code()
"""The installed product."""


class MadeBy(TypedDict):
    """Facts on what computes a result."""

    code: str
    """SHA-256 of all that its roots depend on."""
    libraries: dict[str, str]
    """Minor versions, see `libraries`."""


def libraries() -> dict[str, str]:
    """Minor versions of what the numbers are computed with, as they are imported: a patch release changes no number."""
    versions = {"python": platform.python_version()} | {name: str(import_module(name).__version__) for name in LIBRARIES}
    return {name: ".".join(version.split(".")[:2]) for name, version in versions.items()}


def made_by(roots: Iterable[Name]) -> MadeBy:
    """Facts on what computes a result, by the definitions that it starts from.

    Roots that are paths are files of a user, see `bandana.flows.keys.own_files`.
    """
    ours = frozenset(roots)
    files = sorted(root.module for root in ours if root.module.endswith(".py"))
    if not files:
        return {"code": CODE.closure(ours).digest, "libraries": libraries()}
    own = [own_files(Path(file)) for file in files]
    ours = frozenset(root for root in ours if root.module not in files).union(*(each.uses for each in own))
    digests = [CODE.closure(ours).digest, *sorted(each.digest for each in own)]
    return {"code": content_key(digests), "libraries": libraries()}


def key_of(facts: Mapping[str, object], made: Mapping[str, object]) -> str:
    """The key of the answer to what was asked, by what computes it (see `made_by`)."""
    return f"{content_key(facts)[:_HALF]}-{content_key(made)[:_HALF]}"


def asked_of(key: str) -> str:
    """The half of a key that stands for what was asked."""
    return key.partition("-")[0]


def is_key(text: str) -> bool:
    """True if a text is a key with two halves; older ones had one of 64 digits, of which nothing can be told."""
    return _KEY.fullmatch(text) is not None


class OtherCodeError(RuntimeError):
    """Raised where a worker would answer the same question by other means than the command that asks."""


def check_same(wanted: str, own: str) -> None:
    """Checks in a worker that its own key of a result is the one that is asked for.

    Raises:
      OtherCodeError: the worker runs other code, or other versions of libraries.
    """
    if wanted != own:
        raise OtherCodeError(
            f"a worker on {socket.gethostname()} has other code or other library versions than this command: install the "
            "same releases of Bandana, NumPy, SciPy and Numba there, and edit no code during a run"
        )
