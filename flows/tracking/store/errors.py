"""Errors of MLflow, its databases and the disk, as one sentence with an advice; and which of it passes by itself."""

from __future__ import annotations

import errno
import os
import re
import time
import urllib.error
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Any

from bandana.flows.tracking.store.address import URI_VARIABLE, TrackingAddress

PAUSES = (1.0, 4.0, 10.0)  # seconds before a failed call is tried again; then the error is told
_LENGTH = 240
_FORBIDDEN = re.compile(r"\b403\b|permission_denied|permission denied")
_REFUSED = re.compile(r"\b(401|403)\b|permission_denied|unauthenticated")
_KERNEL = re.compile(r"\[Errno -?\d+\] [A-Za-z ,]+|too many \d+ error responses|[Rr]ead timed out|error code \d+")
_FULL = ("disk is full", "disk full", "no space left")
_AWAY = (
    "connection refused", "connection reset", "connection aborted", "connection already closed", "connection timed out",
    "connection broken", "incompleteread",
    "could not connect", "failed to establish", "max retries", "name or service not known", "name resolution",
    "read timed out", "remote end closed", "server closed the connection", "ssl connection has been closed",
    "terminating connection", "timeout expired", "no route to host",
    "the database system is", "service unavailable", "bad gateway", "gateway time",
)  # fmt: skip
_STRANGERS = ("password authentication failed", "no pg_hba.conf entry", "does not exist", "no password supplied")
_KEPT = "finished work is kept; run the same command again to continue"


class TrackingError(RuntimeError):
    """MLflow cannot be written or read; the message says what to do."""


class Patient:
    """An object whose methods wait out a short outage: a server that restarts, a network that stutters, a locked file.

    Only what passes by itself is tried again, never a mistake of the caller. Every call must be safe to repeat.
    """

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._inner, name)

        def call(*arguments: object, **options: object) -> Any:
            for pause in PAUSES:
                try:
                    return method(*arguments, **options)
                except Exception as error:
                    if not is_passing(error):
                        raise
                time.sleep(pause)
            return method(*arguments, **options)

        return call


def is_passing(error: BaseException) -> bool:
    """True if the same call may succeed in a moment."""
    text = str(error).lower()
    if any(hint in text for hint in (*_FULL, *_STRANGERS)) or _REFUSED.search(text):
        return False
    if isinstance(error, TimeoutError | ConnectionError):
        return True
    return any(hint in text for hint in (*_AWAY, "database is locked"))


def advice(error: BaseException, address: TrackingAddress, root: Path, suite: str | None = None) -> str | None:
    """Says what went wrong with the store at an address, and what to do, or None for an error that is a mistake in the code.

    The default store lies in the folder `root` of this machine; `suite` names the experiment that was asked for.
    """
    from_disk = isinstance(error, OSError) and not isinstance(error, urllib.error.URLError | ConnectionError | TimeoutError)
    number = error.errno if isinstance(error, OSError) else None
    text, words = str(error).lower(), address.mask(_first_line(error))
    place = {"sqlite": "the database", "postgresql": "PostgreSQL at", "http": "the MLflow server"}[address.kind]
    named = f"{place} {address.shown}"
    if number in (errno.ENOSPC, errno.EDQUOT) or any(hint in text for hint in _FULL):
        disk = f"the disk that holds {root}" if address.kind == "sqlite" or from_disk else f"the disk of {named}"
        return f"{disk} is full: free some space and run again; finished work is kept"
    if "database is locked" in text:
        return (
            f"{named} is locked by another program: wait for it, or close what holds it open "
            "(a copy, a backup, a database browser), and run again"
        )
    if "lock timeout" in text:
        return f"{named}: another writer holds this suite and does not end; look for it, or run again later"
    if any(hint in text for hint in ("not a database", "malformed", "file is encrypted")):
        return (
            f"{named} is damaged or is no SQLite file: move it away and run again; "
            "finished results are kept in the data folder and are logged anew"
        )
    if any(hint in text for hint in ("out-of-date database schema", "can't locate revision")):
        return f"{named} is of another MLflow: run `mlflow db upgrade` on it, or update MLflow"
    if any(hint in text for hint in ("readonly database", "unable to open database")) or (
        from_disk and number in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)
    ):
        return f"{root} cannot be written ({words}): choose another data folder, or change its permissions"
    if address.kind == "postgresql" and any(hint in text for hint in _STRANGERS):
        return f"{named} denies access ({words}): check user, password and database in {URI_VARIABLE}"
    if address.kind == "http" and suite is not None and _FORBIDDEN.search(text):
        return (
            f"{named} denies {address.user or 'this user'} access to the experiment {suite!r} ({words}): EDIT is missing; "
            f"its owner or an administrator grants it with: {grant(address, suite)}"
        )
    if address.kind == "http" and _REFUSED.search(text):
        return (
            f"{named} denies access ({words}): set MLFLOW_TRACKING_USERNAME and "
            "MLFLOW_TRACKING_PASSWORD, or have this host added to the server's --allowed-hosts"
        )
    if isinstance(error, urllib.error.URLError | TimeoutError | ConnectionError) or any(hint in text for hint in _AWAY):
        return f"{named} does not answer ({words}): start it, or check the address; {_KEPT}"
    if from_disk or type(error).__module__.split(".")[0] in ("mlflow", "sqlalchemy", "sqlite3", "psycopg2", "psycopg"):
        return f"MLflow at {address.shown} failed: {words}"
    return None


def grant(address: TrackingAddress, suite: str) -> str:
    """The command with which an experiment's owner lets this user write to it; it reads the owner's own login."""
    user = address.user or os.environ.get("MLFLOW_TRACKING_USERNAME") or "USER"
    return f"{URI_VARIABLE}={quote(address.shown)} bandana share {quote(suite)} {quote(user)} --may EDIT"


def _first_line(error: BaseException) -> str:
    text = str(error).strip()
    if match := _KERNEL.search(text):  # what a chain of network libraries wraps in half a page
        return match[0]
    line = (text.splitlines() or [type(error).__name__])[0]
    return line if len(line) <= _LENGTH else f"{line[:_LENGTH]}..."
