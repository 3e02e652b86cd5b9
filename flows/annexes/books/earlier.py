"""Runs over a private data set that came before its book: found by the rows that they played, whatever their file is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bandana.audits.contents import PROVENANCE
from bandana.flows.annexes.books.bookkeeping import seeds, spending
from bandana.flows.annexes.books.bookkeeping.known import DataSet, Earlier
from bandana.flows.annexes.books.bookkeeping.spending import Charge
from bandana.flows.folder.store import BENCHMARK, Store
from bandana.flows.keys.content import content_key
from bandana.flows.plan.cells import REPRODUCIBLE
from bandana.flows.texts.json_text import JsonObject
from bandana.privacy_core import Event, GaussianEvent, PureEvent


def earlier_runs(data: DataSet, root: Path, relation: str) -> Earlier:
    """The runs that the data folder noted, and those that earlier versions left in its store.

    A run whose result is stored is charged what it drew; one that was killed, its claim.

    Args:
      data: the rows, as they are now.
      root: the data folder.
      relation: neighboring relation of results that earlier versions stored, which do not say it.
    """
    store = Store(root / "results")
    charges: list[Charge] = []
    unprotected: list[str] = []
    noted: set[str] = set()
    drawn: set[str] = set()
    for digest, body in data.noted_runs():
        key, events = body["key"], body.pop("events")
        noted.add(key)
        if body["seed"] is not None and key in drawn:
            continue  # the same noise again
        drawn.add(key)
        described = store.describe(BENCHMARK, key)
        paid = None if events is None else spending.read(events) if described is None else _drawn(described, body)
        if paid is None:
            unprotected.append(key)
        else:
            start, stop = data.span_in(digest, *body.pop("records"))
            charges.append(Charge(paid, start, stop, {**body, "is_earlier": True}))
    for key in sorted(set(store.sizes(BENCHMARK)) - noted):
        described = store.describe(BENCHMARK, key) or {}
        of = described.get(PROVENANCE, {}).get("of")
        place = None if of is None else _digest_in(of["environment"], data)
        if place is None:
            continue
        paid = None if place == _PUBLIC else _drawn(described, {"replications": of["n_reps"]})
        if paid is None:
            unprotected.append(key)
            continue
        first, is_cut = (of["environment"].get("rows") or [0])[0], of["environment"].get("beyond_visits") == "drop"
        start, stop = data.span_in(place, first, None if is_cut else first + of["horizon"])
        cell = " ".join(str(of[name]) for name in ("algorithm", "privacy_model", "calibration") if of[name])
        facts = {"suite": "before the book", "cell": cell, "block": of["block"], "key": key,
                 "replications": of["n_reps"], "relation": relation, "trust": of["privacy_model"],
                 "noise": of.get("noise", REPRODUCIBLE), "seed": seeds.seed_of(root / seeds.FOLDER, place, key),
                 "is_earlier": True}  # fmt: skip
        charges.append(Charge(paid, start, stop, facts))
    return Earlier(tuple(charges), tuple(dict.fromkeys(unprotected)))


_PUBLIC = ""
"""Stands for the digest of rows that were declared public."""


def _digest_in(environment: JsonObject, data: DataSet) -> str | None:
    """Digest by which the data folder knows the rows of a stored result; None: they are other rows."""
    if environment.get("path") == content_key(data.content.hex()):
        return _PUBLIC
    digest = environment.get("content")
    return digest if digest is not None and data.is_same(digest) else None


def _drawn(described: JsonObject, body: JsonObject) -> Mapping[Event, int] | None:
    """Events that each replicate of a stored result drew; None: it was without noise."""
    event: Event | None
    if described["pure"] is not None:
        event = PureEvent(described["pure"]) if described["pure"] else None
    elif described["mu"] is not None:
        event = GaussianEvent(1 / described["mu"]) if described["mu"] else None
    else:
        return None
    return {} if event is None else {event: body["replications"]}
