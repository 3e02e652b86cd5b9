"""A book's chain: what was removed, edited, reordered or cut off is found."""

from datetime import UTC, datetime, timedelta

import pytest

from bandana.flows.annexes.books.bookkeeping.chain import CHARGED, OPENED, SETTLED, check_chain, check_head, following
from bandana.flows.texts.mistakes import BookError

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)


def chain(n_entries=6):
    found = []
    for i in range(n_entries):
        kind = OPENED if i == 0 else (CHARGED, SETTLED)[i % 2]
        found.append(following(found, kind, {"place": i, "epsilon": i / 7}, NOON + timedelta(seconds=i)))
    return found


def test_an_honest_chain_is_whole():
    entries = chain()
    check_chain(entries)
    check_chain([])
    assert [entry.facts["place"] for entry in entries] == list(range(6))
    assert len({entry.hash for entry in entries}) == 6


CHANGES = {
    "removed": lambda entries, i: entries[:i] + entries[i + 1 :],
    "removed and renumbered": lambda entries, i: [
        entry._replace(number=k) for k, entry in enumerate(entries[:i] + entries[i + 1 :], 1)
    ],
    "twice": lambda entries, i: [*entries[: i + 1], *entries[i:]],
    "swapped": lambda entries, i: [*entries[:i], entries[i + 1], entries[i], *entries[i + 2 :]],
    "edited": lambda entries, i: [*entries[:i], entries[i]._replace(body='{"place":9}'), *entries[i + 1 :]],
    "redated": lambda entries, i: [*entries[:i], entries[i]._replace(time=entries[0].time + "0"), *entries[i + 1 :]],
    "other kind": lambda entries, i: [*entries[:i], entries[i]._replace(kind="forgiven"), *entries[i + 1 :]],
    "resealed alone": lambda entries, i: [
        *entries[:i], following(entries[:i], entries[i].kind, {"place": 9}, NOON + timedelta(seconds=i)), *entries[i + 1 :],
    ],
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("place", range(5))
def test_what_was_changed_is_found(change, place):
    with pytest.raises(BookError, match=r"entry \d"):
        check_chain(CHANGES[change](chain(), place))


@pytest.mark.parametrize("kept", [1, 3, 5])
def test_a_cut_tail_is_whole_and_found_by_a_hash_kept_elsewhere(kept):
    entries = chain()
    cut = entries[:kept]
    check_chain(cut)
    with pytest.raises(BookError, match=rf"ends with entry {kept}, but the report saw entry 6 \({entries[5].hash[:12]}\)"):
        check_head(cut, 6, entries[5].hash, "the report")
    check_head(entries, kept, entries[kept - 1].hash, "the report")


def test_a_tail_that_was_written_anew_is_found():
    entries = chain()
    forged = entries[:3]
    while len(forged) < 6:
        forged.append(following(forged, CHARGED, {"epsilon": 0.0}, NOON + timedelta(seconds=len(forged))))
    check_chain(forged)
    with pytest.raises(BookError, match="has another entry 6, but the report saw"):
        check_head(forged, 6, entries[5].hash, "the report")


def test_a_clock_that_goes_backwards():
    entries = chain()
    with pytest.raises(
        BookError, match=r"clock here shows 2026-11-23 11:00 UTC, before the last entry of 2026-11-23 12:00: set it"
    ):
        following(entries, CHARGED, {}, NOON - timedelta(hours=1))
    late = following(entries, CHARGED, {}, NOON - timedelta(minutes=1))  # clocks of two machines differ a little
    assert late.time == entries[-1].time
