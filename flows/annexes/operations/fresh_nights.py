"""The part of a night with a seed of its own: replays whose evidence multiplies over nights, one entry a night and cell.

The fixed-seed audit tells whether anything changed; here every night is new evidence about the same claim. Why its e-values
may be multiplied, whatever is killed or repeated, is proved in `bandana.flows.annexes.operations.evidence_of_nights`.

An entry is a file of its own, written whole and never again: `suites/NAME/fresh/CELL-PROCESS/NIGHT.json`. Beside it lies
what was recorded before the first replay, the seed and the nights to learn from.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run

from bandana.audits.bounds.samples import BINS
from bandana.audits.searches.request import Request
from bandana.flows.annexes.operations.evidence_of_nights import Night, NightlyClaims, Together, bet, holds, replayed
from bandana.flows.cells import own_replays, replays
from bandana.flows.cells.audits import audit_facts
from bandana.flows.folder.settings import DataFolder
from bandana.flows.folder.store import write_first
from bandana.flows.keys.content import content_key
from bandana.flows.keys.identity import key_of
from bandana.flows.plan.cells import Cell
from bandana.flows.plan.keys import audit_code
from bandana.flows.plan.plan import Plan
from bandana.flows.texts.json_text import JsonObject

FRESH = "fresh"
_SCHEMA = "bandana-night/1"


@dataclass(frozen=True)
class Accumulated:
    """Result of all nights for a cell, as pages show it.

    Attributes:
      label: of the cell.
      quantity: what is bounded, in words.
      claimed: what the source promises of it.
      lower: anytime-valid lower bound from all nights.
      n_nights: nights of this process, the first of which only taught.
      n_replays: of these, on each side.
      log10_evidence: decimal logarithm of the evidence against the claimed value after each night, from 0.
      log10_enough: where it refutes the claim.
      is_refuted: whether it ever did.
      pair: the two data sets, in words.
    """

    label: str
    quantity: str
    claimed: float
    lower: float
    n_nights: int
    n_replays: int
    log10_evidence: tuple[float, ...]
    log10_enough: float
    is_refuted: bool
    pair: str


def night_of_run() -> str:
    """The night that the present flow run stands for: when it was due, also where it is run again."""
    due = flow_run.scheduled_start_time or datetime.now(UTC)
    return f"{due:%Y-%m-%dT%H-%M-%S}"


def add_tonight(plan: Plan, folder: DataFolder) -> list[JsonObject]:
    """The step `fresh` of the suite flow: `add_night` for the night that the flow run stands for."""
    return add_night(plan.private, folder, night_of_run())


def add_night(cells: Sequence[Cell], folder: DataFolder, night: str) -> list[JsonObject]:
    """Replays a suite's private cells with the night's own seed, and returns what all nights say, see `Accumulated`.

    The failure probability of the suite's confidence is split evenly between the cells.
    """
    return [
        asdict(result)
        for cell in cells
        if (result := _replay_night(cell, folder, night, (1 - cell.audit.confidence) / len(cells), cell.title)) is not None
    ]


@task(name="fresh-night", task_run_name="tonight: {label}", cache_policy=NO_CACHE, persist_result=False)
def _replay_night(cell: Cell, folder: DataFolder, night: str, level: float, label: str) -> Accumulated | None:
    return accumulate(cell, folder, night, level)


def accumulate(cell: Cell, folder: DataFolder, night: str, level: float) -> Accumulated | None:
    """Adds a night to a cell's process, once; None where the claim promises no number that replays can bound.

    Args:
      cell: a private cell.
      folder: the data folder.
      night: its name, which sorts as nights follow one another.
      level: probability with which a claim that holds is ever refuted, at most.
    """
    audit = cell.audit
    subject = own_replays.subject_of_own(cell) if cell.entry.stated else replays.subject_of_cell(cell)
    request = Request(subject.trial, replays.effort_of(cell), level)
    if not 0 < request.claimed < math.inf:
        return None
    claims = NightlyClaims(request.main, request.claimed)
    facts = {"asked": audit_facts(cell), "quantity": str(claims.quantity), "values": claims.values.tolist(), "bins": BINS}
    place = folder.suite(cell.spec.name) / FRESH / f"{cell.slug}-{key_of(facts, audit_code(cell)).replace('-', '')[:32]}"
    # The pair on which a few replays of the fixed seed show most: no night's own replays choose it.
    pair = request.canaries[request.shown.index(max(request.shown))]
    if _night(place / f"{night}.json", claims) is None:
        begun = _begin(place, night, claims)
        known = dict(_nights(place, claims))
        past = [known[name] for name in begun["after"] if name in known]
        seen = bet(claims, past, *replayed(subject.trial.algorithm, pair, audit.replays, int(begun["seed"], 16)))
        _keep(place, night, seen, claims, {"cell": cell.name, "pair": pair.description, **begun})
    together = Together(claims, [earlier for _, earlier in _nights(place, claims)], level)
    return Accumulated(
        label=cell.name,
        quantity=str(claims.quantity),
        claimed=claims.claimed,
        lower=together.lower,
        n_nights=len(together.nights),
        n_replays=together.n_replays,
        log10_evidence=tuple((together.log_wealth / math.log(10)).tolist()),
        log10_enough=-math.log10(level),
        is_refuted=together.is_refuted,
        pair=pair.description,
    )


def _begin(place: Path, night: str, claims: NightlyClaims) -> JsonObject:
    """Facts settled before the first replay, now or when this night was begun: its seed, and whom it learns from."""
    path = place / f"{night}.begun"
    if _begun(path) is None:
        facts = {"seed": secrets.token_hex(16), "after": [name for name, _ in _nights(place, claims)]}
        write_first(path, json.dumps(facts).encode(), lambda there: _begun(there) is not None)
    begun = _begun(path)
    assert begun is not None
    return begun


def _begun(path: Path) -> JsonObject | None:
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        int(facts["seed"], 16)
        return {"seed": facts["seed"], "after": list(facts["after"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _keep(place: Path, night: str, seen: Night, claims: NightlyClaims, about: JsonObject) -> None:
    held = np.flatnonzero(seen.counts.any(axis=0))
    entry = {
        "schema": _SCHEMA,
        "night": night,
        "ended": datetime.now(UTC).isoformat(timespec="milliseconds"),
        **about,
        "quantity": str(claims.quantity),
        "claimed": claims.claimed,
        "values": claims.values.tolist(),
        "n_replays": seen.n_replays,
        "log_e": seen.log_e.tolist(),
        "bins": [[int(b), *map(int, seen.counts[:, b]), float(seen.sums[b])] for b in held],
    }
    whole = json.dumps(entry | {"sha256": content_key(entry)}, allow_nan=False).encode() + b"\n"
    path = place / f"{night}.json"
    write_first(path, whole, lambda there: _night(there, claims) is not None)


def _nights(place: Path, claims: NightlyClaims) -> list[tuple[str, Night]]:
    """Name and content of every whole entry, in the order in which they ended; damaged ones are left out."""
    rows = [(read[0], path.stem, read[1]) for path in place.glob("*.json") if (read := _night(path, claims)) is not None]
    return [(name, night) for _, name, night in sorted(rows, key=lambda item: item[:2])]


def _night(path: Path, claims: NightlyClaims) -> tuple[str, Night] | None:
    """When an entry ended, and the entry; None where there is no whole one."""
    try:
        entry = json.loads(path.read_text(encoding="utf-8"))
        if entry.pop("sha256") != content_key(entry) or entry["schema"] != _SCHEMA:
            return None
        counts, sums = np.zeros((2, BINS)), np.zeros(BINS)
        for place, data, neighbor, total in entry["bins"]:
            counts[:, place], sums[place] = (data, neighbor), total
        night = Night(int(entry["n_replays"]), np.array(entry["log_e"], dtype=float), counts, sums)
        return (str(entry["ended"]), night) if holds(night, claims) else None
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
