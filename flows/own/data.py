"""A user's own file: read once in a run, known by its content, and never played under the key of another content.

Keys are shown: in MLflow, in reports, in logs. Whoever knows all rows of a private file but one could try out that one on a
hash of the file. So a private file is known by an HMAC of its content, with a random secret that lies in the data folder and
nowhere else: without the secret nothing can be tried out. A copy of the data folder holds the secret too, and finds its
results again. Seeds do not depend on the secret: the same file gives the same numbers in every data folder.
"""

from __future__ import annotations

import hmac
import os
import secrets
import tempfile
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, Protocol, Self, TypeVar

from bandana.flows.keys.content import content_key
from bandana.flows.own.code import check_allowed
from bandana.flows.texts.mistakes import SpecError

SECRET = "secret"
"""Name of the secret's file in a data folder."""
_LENGTH = 32
_MOST_HELD, _MOST_BYTES = 4, 2 << 30


class Pin(NamedTuple):
    """The content that a user's file had when a run began."""

    digest: str
    """A hash of a public file, an HMAC of a private one."""
    secret: Path
    """Where the secret of the HMAC lies."""


class OwnFile(Protocol):
    """A user's file of data, as a spec names it; see `bandana.flows.problems.data_files.DataFileSpec`."""

    @property
    def path(self) -> Path:
        """Place of the file."""

    @property
    def shows_values(self) -> bool:
        """True if its rows are public."""

    @property
    def pin(self) -> Pin | None:
        """Content that a run plays on; None before it began."""

    def with_pin(self, pin: Pin) -> Self:
        """The same, bound to a content."""


class _Environment(Protocol):
    def pinned(self, secret: Path, *, makes_secret: bool) -> Self:
        """The same, bound to the present content of its file."""


class _Spec(Protocol):
    @property
    def environment(self) -> Sequence[_Environment]:
        """Environments of the experiment."""

    def model_copy(self, *, update: Mapping[str, object]) -> Self:
        """The same with other fields."""


Bound = TypeVar("Bound", bound=OwnFile)
Pinned = TypeVar("Pinned", bound=_Spec)


class _Held(NamedTuple):
    """A file's content, and how the file looked when it was read."""

    content: bytes
    looks: tuple[int, ...]


_HELD: OrderedDict[tuple[Path, Pin], _Held] = OrderedDict()


def pinned(spec: Pinned, root: Path, *, makes_secret: bool = True) -> Pinned:
    """The spec, its files bound to their present content: whatever plays it later plays that content or fails.

    A spec that is bound already stays as it is, so that all steps of a run work on one content.

    Args:
      spec: the experiment.
      root: the data folder, whose secret private files are known by.
      makes_secret: whether the secret is made where it is missing; else private files stay unbound without one.

    Raises:
      SpecError: a file cannot be read, or the secret is damaged.
    """
    items = [item.pinned(root / SECRET, makes_secret=makes_secret) for item in spec.environment]
    is_bound = all(item is given for item, given in zip(items, spec.environment, strict=True))
    return spec if is_bound else spec.model_copy(update={"environment": items})


def bound(item: Bound, place: Path, *, makes_secret: bool) -> Bound:
    """The item, bound to the present content of its file; see `pinned`. `place` is where the data folder's secret lies."""
    is_without_secret = not makes_secret and not item.shows_values and not os.path.exists(place)
    if is_without_secret or (item.pin is not None and item.pin.secret == place):
        return item
    held = _read(item)
    secret = b"" if item.shows_values else _secret_of(place, is_made=True)
    pinned = item.with_pin(Pin(_digest(item, held.content, secret), place))
    assert pinned.pin is not None
    _hold(item.path, pinned.pin, held)
    return pinned


def content_of(item: OwnFile) -> tuple[bytes, str]:
    """The file's content and its digest: SHA-256 of a public file, an HMAC of a private one.

    Raises:
      SpecError: the file cannot be read, or is another one than when the run began.
    """
    pin = item.pin
    if pin is None:
        content = _read(item).content
        return content, _digest(item, content, _passing_secret())
    if (held := _HELD.get((item.path, pin))) is None:
        held = _read(item)
        _check(item, held.content)
        _hold(item.path, pin, held)
    return held.content, pin.digest


def rows_key(pin: Pin) -> bytes:
    """Key of the hashes that the data folder knows rows by; empty where it has no secret, and so knows none."""
    return hmac.digest(_secret_of(pin.secret, is_made=False), b"rows", "sha256") if pin.secret.exists() else b""


def check_unchanged(item: OwnFile) -> None:
    """Checks once more that a pinned file is what was played; it is read again only if it looks otherwise.

    Raises:
      SpecError: it is another one than when the run began.
    """
    if item.pin is None:
        return
    held = _HELD.get((item.path, item.pin))
    now = _read(item) if held is None or _looks(item) != held.looks else held
    if now is not held:
        _check(item, now.content)
        _hold(item.path, item.pin, now)


def _check(item: OwnFile, content: bytes) -> None:
    assert item.pin is not None
    secret = b"" if item.shows_values else _secret_of(item.pin.secret, is_made=False)
    if not hmac.compare_digest(_digest(item, content, secret), item.pin.digest):
        raise SpecError(f"environment.path: {item.path} changed while the run played it; run again")


def _digest(item: OwnFile, content: bytes, secret: bytes) -> str:
    return content_key(content.hex()) if item.shows_values else hmac.new(secret, content, sha256).hexdigest()


def _read(item: OwnFile) -> _Held:
    check_allowed(f"environment.path: {item.path}")
    try:
        if item.path.exists() and not item.path.is_file():  # a device or a pipe may never end
            raise SpecError(f"environment.path: {item.path} is not a regular file")
        with item.path.open("rb") as file:
            looks = _looks_of(about := os.fstat(file.fileno()))
            if about.st_size > _MOST_BYTES:
                raise SpecError(f"environment.path: {item.path} has more than {_MOST_BYTES:,} bytes: take fewer rows")
            return _Held(file.read(), looks)
    except OSError as error:
        raise SpecError(f"environment.path: {item.path} cannot be read: {error}") from error


def _looks(item: OwnFile) -> tuple[int, ...] | None:
    try:
        return _looks_of(item.path.stat())
    except OSError:
        return None


def _looks_of(about: os.stat_result) -> tuple[int, ...]:
    return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


def _hold(path: Path, pin: Pin, held: _Held) -> None:
    _HELD[path, pin] = held
    while len(_HELD) > _MOST_HELD:
        _HELD.popitem(last=False)


@cache
def _passing_secret() -> bytes:
    """A secret of this process alone, used without a data folder: its keys find nothing, and nothing is kept under them."""
    return secrets.token_bytes(_LENGTH)


def _secret_of(place: Path, *, is_made: bool) -> bytes:
    """The data folder's secret; made once, by whoever comes first."""
    if is_made and not place.exists():
        _make(place)
    for pause in (0.01, 0.1, 1.0, 0.0):
        try:
            secret = place.read_bytes()
        except OSError as error:
            raise SpecError(f"{place}: the data folder's secret cannot be read: {error}") from error
        if len(secret) == _LENGTH:
            return secret
        time.sleep(pause)  # somebody may be writing it
    raise SpecError(
        f"{place}: the data folder's secret is damaged; restore it from a copy, or delete it, if no file has a budget book: "
        "results on private files are then computed again"
    )


def _make(place: Path) -> None:
    """Writes a new secret, whole, readable by its owner alone; of two at once one wins and both read it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)  # of mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(_LENGTH))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            try:
                os.link(temporary, place)
            except FileExistsError:
                raise
            except OSError:  # a file system without links
                with open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(Path(temporary).read_bytes())
    finally:
        Path(temporary).unlink(missing_ok=True)
