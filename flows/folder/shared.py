"""Stores that machines share without a disk in common, such as `s3://bucket/prefix`; annexes add them at `stores`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from bandana.flows.annex import plugged, plugs_at

ADDRESS = "address"
"""File of a data folder that holds the address of its results, where they lie in a shared store."""
LOCAL = "BANDANA_LOCAL"
"""Environment variable: the folder for what stays on this machine beside a shared store; None: the default data folder."""
_ANY = re.compile(r"([a-z][a-z0-9+]*):/+(.*)", re.DOTALL)  # a path keeps one of the two slashes
_PLACE = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)


def address_in(named: str) -> str | None:
    """Address of a shared store, without a slash at its end; None for a folder.

    Raises:
      SpecError: nothing is known to lie at such an address, or a name in it is not allowed.
    """
    if (parts := _ANY.fullmatch(named)) is None:
        return None
    scheme, place = parts[1], parts[2].rstrip("/")
    if scheme not in (known := plugs_at("stores")) or not _PLACE.fullmatch(place):
        from bandana.flows.texts.mistakes import SpecError  # only here: `bandana list` opens a folder, and starts at once

        forms = " or ".join(f"{name}://BUCKET/PREFIX" for name in known) or "no address here"
        raise SpecError(f"--data: {named[:200]!r} must be a folder or {forms}, in letters, digits, '.', '-' and '_'")
    return f"{scheme}://{place}"


def local_part(named: str, default: str) -> Path:
    """The folder that is named; of a store, one for what stays here: journals, reports and MLflow, and copies of results."""
    address = address_in(named)
    return Path(named) if address is None else Path(os.environ.get(LOCAL) or default, address.replace("://", "/"))


def files_at(address: str) -> Any:
    """The `Files` of a shared store; MissingExtra: it needs packages that are not installed."""
    return plugged("stores")[address.partition("://")[0]](address)
