"""Entries of a budget book, each sealed with the hash of the one before: what was removed, edited or reordered is found."""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from bandana.flows.keys.content import canonical, content_key

FIRST = "0" * 64
"""Stands for the hash before the first entry."""
OPENED, CHARGED, SETTLED, EXTENDED = "opened", "charged", "settled", "extended"
"""Kinds of entries: the book begins; noise is about to be drawn; what was drawn, in place of what was charged for it; rows
were added to the data set."""
CLOCK_SLACK = timedelta(minutes=5)
"""How far the clocks of machines that share a book may differ."""


class BookError(RuntimeError):
    """A budget book that cannot be used, or a run that it refuses; the message is one line, and nothing was drawn."""


class Entry(NamedTuple):
    """One entry, as it is stored."""

    number: int
    """1, 2, ..."""
    time: str
    """UTC, in ISO form."""
    kind: str
    body: str
    """JSON."""
    previous: str
    """Hash of the entry before."""
    hash: str

    @property
    def facts(self) -> dict[str, Any]:
        """The body."""
        found: dict[str, Any] = json.loads(self.body)
        return found


def seal(number: int, time: str, kind: str, body: str, previous: str) -> str:
    """Hash of an entry, 64 hex digits."""
    return content_key([number, time, kind, body, previous])


def following(entries: Sequence[Entry], kind: str, body: dict[str, Any], now: datetime) -> Entry:
    """The entry that comes after the given ones.

    Raises:
      BookError: the clock stands before the last entry, by more than the clocks of several machines differ.
    """
    previous, time = FIRST, now
    if entries:
        previous, last = entries[-1].hash, datetime.fromisoformat(entries[-1].time)
        if now < last - CLOCK_SLACK:
            raise BookError(
                f"the clock here shows {now:%Y-%m-%d %H:%M} UTC, before the last entry of {last:%Y-%m-%d %H:%M}: set it"
            )
        time = max(now, last)
    number, text, shown = len(entries) + 1, canonical(body), time.astimezone(UTC).isoformat(timespec="microseconds")
    return Entry(number, shown, kind, text, previous, seal(number, shown, kind, text, previous))


def check_chain(entries: Sequence[Entry]) -> None:
    """Checks every seal, and that no entry is missing in between.

    A tail that was cut off leaves a whole chain: it is found by a hash that is kept elsewhere, see `check_head`.

    Raises:
      BookError: the first entry that is not what was written.
    """
    previous = FIRST
    for place, entry in enumerate(entries, start=1):
        if entry.number != place:
            raise BookError(f"entry {place} is missing or out of order: the book was changed; restore it from a copy")
        if not hmac.compare_digest(entry.hash, seal(*entry[:5])) or entry.previous != previous:
            raise BookError(f"entry {place} was changed after it was written; restore the book from a copy")
        if (entry.kind == OPENED) != (place == 1) or entry.kind not in (OPENED, CHARGED, SETTLED, EXTENDED):
            raise BookError(f"entry {place} is of the kind {entry.kind!r}, which does not belong there")
        previous = entry.hash


def check_head(entries: Sequence[Entry], number: int, seal_seen: str, seen_by: str) -> None:
    """Checks that an entry which somebody saw is still there.

    Raises:
      BookError: the book ends before it, or has another entry in its place.
    """
    if number > len(entries) or not hmac.compare_digest(entries[number - 1].hash, seal_seen):
        found = f"ends with entry {len(entries)}" if number > len(entries) else f"has another entry {number}"
        raise BookError(
            f"it {found}, but {seen_by} saw entry {number} ({seal_seen[:12]}): it was cut or replaced; restore it"
        )
