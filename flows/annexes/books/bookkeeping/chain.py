"""Entries of a budget book, each sealed with the hash of the one before: what was removed, edited or reordered is found."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from bandana.flows.keys.content import canonical, content_key
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import BookError

FORMAT = "bandana/book/1"
FIRST = "0" * 64
"""Stands for the hash before the first entry."""
OPENED, CHARGED, SETTLED, EXTENDED = "opened", "charged", "settled", "extended"
"""Kinds of entries: the book begins; noise is about to be drawn; what was drawn, in place of what was charged for it; rows
were added to the data set."""
CHECKPOINT, REPAIRED = "checkpoint", "repaired"
"""Kinds of entries: what those before add up to; a clock was ahead, and time goes on from here."""
_KINDS = (OPENED, CHARGED, SETTLED, EXTENDED, CHECKPOINT, REPAIRED)
CLOCK_SLACK = timedelta(minutes=5)
"""Distance by which the clocks of machines that share a book may differ."""
LONG_REST = timedelta(days=400)
"""A book that has rested for longer is more likely to meet a clock that is ahead."""


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
    def facts(self) -> JsonObject:
        """The body."""
        facts: JsonObject = json.loads(self.body)
        return facts


def seal(number: int, time: str, kind: str, body: str, previous: str) -> str:
    """Hash of an entry, 64 hex digits."""
    return content_key([number, time, kind, body, previous])


def following(entries: Sequence[Entry], kind: str, body: JsonObject, now: datetime) -> Entry:
    """The entry that comes after the given ones.

    Raises:
      BookError: the clock stands before the last entry, by more than the clocks of several machines differ.
    """
    number, previous, time = 1, FIRST, now
    if entries:
        last = entries[-1]
        number, previous, shown = last.number + 1, last.hash, time_of(last)
        if kind != REPAIRED:
            if now + CLOCK_SLACK < shown:
                raise BookError(
                    f"the clock here shows {now:%Y-%m-%d %H:%M} UTC, before the last entry of {shown:%Y-%m-%d %H:%M}: set "
                    "it; if it is right, run `bandana book repair BOOK`"
                )
            time = max(now, shown)
    text, stated = canonical(body), time.astimezone(UTC).isoformat(timespec="microseconds")
    return Entry(number, stated, kind, text, previous, seal(number, stated, kind, text, previous))


def time_of(entry: Entry) -> datetime:
    """The time of an entry.

    Raises:
      BookError: it states none.
    """
    try:
        time = datetime.fromisoformat(entry.time)
        if time.utcoffset() is None:
            raise ValueError("it has no zone")
    except ValueError as error:
        raise BookError(f"entry {entry.number}: its time is no date in UTC: {entry.time[:40]!r}") from error
    return time


def last_in_time(entries: Sequence[Entry], now: datetime) -> int:
    """Number of the last entry that no clock which was ahead dated: all after it lie ahead of the time that is given.

    Returns:
      The last entry's number if none is ahead, 0 if all are.
    """
    for entry in reversed(entries):
        if time_of(entry) <= now + CLOCK_SLACK:
            return entry.number
    return 0


def clock_notes(entries: Sequence[Entry], now: datetime) -> list[str]:
    """Notes on what the times of a chain tell of clocks that were ahead, one line each; none where nothing is odd."""
    notes, trusted = [], len(entries)
    for place in range(len(entries) - 1, -1, -1):
        entry = entries[place]
        if entry.kind == REPAIRED:
            notes.append(f"entry {entry.number}, a repair: {entry.facts['note']}")
            trusted = min(trusted, int(entry.facts["after"]))
        elif 0 < place < trusted and (rest := time_of(entry) - time_of(entries[place - 1])) > LONG_REST:
            notes.append(
                f"entry {entry.number} lies {rest.days:,} days after the one before it: a clock may have been ahead"
            )
    notes.reverse()
    if (after := last_in_time(entries, now)) != entries[-1].number:
        notes.append(
            f"the clock here shows {now:%Y-%m-%d %H:%M} UTC, and the entries after {after} are dated ahead of it, the last "
            f"one {entries[-1].time[:10]}: set the clock, or if it is right, run `bandana book repair BOOK`"
        )
    return notes


def check_seal(entry: Entry) -> None:
    """Checks that an entry is what was written, by its own hash.

    Raises:
      BookError: it is not.
    """
    number, *texts = entry
    if type(number) is not int or not all(isinstance(text, str) for text in texts):
        raise BookError(
            f"entry {str(number)[:20]} has a field that is no text: the book was changed; restore it from a copy"
        )
    if entry.hash != seal(*entry[:5]):
        raise BookError(f"entry {number} was changed after it was written; restore the book from a copy")


def check_chain(entries: Sequence[Entry], since: int = 1) -> None:
    """Checks every seal, that no entry is missing in between, and that time goes forward, but where it was repaired.

    A tail that was cut off leaves a whole chain: it is found by a hash that is kept elsewhere, see `check_head`.

    Args:
      entries: of the chain, in order.
      since: number of the first of them; entries before it are not checked.

    Raises:
      BookError: the first entry that is not what was written.
    """
    before: Entry | None = None
    for place, entry in enumerate(entries, start=since):
        if entry.number != place:
            raise BookError(f"entry {place} is missing or out of order: the book was changed; restore it from a copy")
        check_seal(entry)
        if entry.previous != (FIRST if before is None else before.hash) and (before is not None or since == 1):
            raise BookError(f"entry {place} was changed after it was written; restore the book from a copy")
        if (entry.kind == OPENED) != (place == 1) or entry.kind not in _KINDS:
            raise BookError(f"entry {place} is of the kind {entry.kind[:40]!r}, which does not belong there")
        if before is not None and entry.kind != REPAIRED and time_of(entry) < time_of(before):
            raise BookError(f"entry {place} is dated {entry.time[:19]}, before the entry before it: the book was changed")
        before = entry
    if before is not None:
        time_of(before)


def check_head(entries: Sequence[Entry], number: int, seal_seen: str, seen_by: str) -> None:
    """Checks that an entry which somebody saw is still there.

    Args:
      entries: by rising number; some may be left out.
      number: of the entry that was seen.
      seal_seen: its hash.
      seen_by: who saw it, for the message.

    Raises:
      BookError: the book ends before it, or has another entry in its place.
    """
    place, last = bisect_left(entries, number, key=lambda entry: entry.number), entries[-1].number if entries else 0
    if entries[place : place + 1] and entries[place].number == number and entries[place].hash == seal_seen:
        return
    words = f"ends with entry {last}" if number > last else f"has another entry {number}"
    raise BookError(f"it {words}, but {seen_by} saw entry {number} ({seal_seen[:12]}): it was cut or replaced; restore it")
