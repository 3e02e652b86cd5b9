"""The ledger of a live policy: its charges are rows of the store, so that every process refuses by the same book."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np

from bandana.privacy_core import Carried, Event, Ledger, LiveLedger, Mechanism, NoiseSource, PrivacyCurve, Relation, Span
from bandana.privacy_core.accounting.factorization import BufferedFactorization, factorize
from bandana.privacy_core.arrays import FloatArray
from bandana.privacy_core.ledger import Reads

Wrap = Callable[[LiveLedger], Ledger]
"""Ledger -> one that stands before it, for audits."""


class Released(NamedTuple):
    """One release of a transaction, as its public row holds it: no time, and nothing that was not released."""

    mechanism: str
    cost: str
    """Its event, in JSON."""
    start: int
    stop: int
    scale: float
    """Scale of the noise in each coordinate of weight 1."""
    output: str
    """Noisy values, in JSON."""
    arm: int | None
    """Arm of all records that it reads; None where they are of several, or where persons bring contexts."""


@dataclass(frozen=True, eq=False)
class _Paid:
    """A release that was made: what is left of its mechanism is its cost, by which the ledger knows it again."""

    event: Event
    relation: Relation | None
    scale: float

    def __eq__(self, other: object) -> bool:
        names = ("event", "relation", "scale")
        return all(getattr(other, name, None) == getattr(self, name) for name in names)

    __hash__ = None  # type: ignore[assignment]

    def draw(self, noise: NoiseSource, value: FloatArray) -> FloatArray:
        """The value: nothing is drawn again."""
        return value


class NotingLedger:
    """The door of one process to the policy's ledger.

    Args:
      ledger: without charges.
      wrap: what stands before it.
    """

    def __init__(self, ledger: LiveLedger, wrap: Wrap | None = None) -> None:
        self.ledger, self.n_reps, self.n_charged = ledger, 1, 0
        self._door: Ledger = ledger if wrap is None else wrap(ledger)
        self.made: list[Released] = []
        """Releases since the last transaction."""
        self.arm, self.since = -1, 0
        """Arm of the record that enters, and the first record of those of this arm alone up to it."""

    def charge(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Enters charges of other processes, which the store holds."""
        for row in rows:
            cost = json.loads(str(row["cost"]))
            curve = PrivacyCurve.from_dict({"records": [[{**cost["event"], "count": 1}]], **cost["scope"]})
            ((event, _),) = curve.books[0]
            relation = Relation(cost["relation"]) if cost["relation"] else None
            span = Span(np.array([row["start"]]), np.array([row["stop"]]))
            paid, carried = _Paid(event, relation, row["scale"]), None  # type: ignore[arg-type]
            if sequence := cost.get("sequence"):
                label, first, *factors = sequence
                carried = Carried(label, np.array([first]), factorize(*factors), lambda: np.zeros(1))
            self.ledger.release(paid, np.zeros(1), records=span, carried=carried)  # type: ignore[arg-type]
            self.n_charged += 1

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the ledger, which refuses before it draws, and notes the public row."""
        output = self._door.release(mechanism, value, **reads)
        curve = PrivacyCurve.of({mechanism.event: 1}).to_dict()
        event = {name: part for name, part in curve.pop("records")[0][0].items() if name != "count"}
        relation = mechanism.relation.value if mechanism.relation else None
        cost = json.dumps({"event": event, "scope": curve, "relation": relation, **_sequence(reads.get("carried"))})
        start, stop = int(reads["records"].start[0]), int(reads["records"].stop[0])
        arm = self.arm if self.arm >= 0 and start >= self.since else None
        text = json.dumps(np.asarray(output)[0].tolist())
        self.made.append(Released(type(mechanism).__name__, cost, start, stop, float(mechanism.scale), text, arm))
        return output

    def committed(self) -> list[Released]:
        """The releases that the transaction stored; they count as charged from here on."""
        made, self.made = self.made, []
        self.n_charged += len(made)
        return made


def _sequence(carried: Carried | None) -> dict[str, object]:
    """Label, first record, steps and buffers of a row's sequence, by which another process goes on with it."""
    if carried is None or carried.columns is None:
        return {}
    factors = carried.columns
    n_buffers = len(factors.theta) if isinstance(factors, BufferedFactorization) else None
    return {"sequence": [carried.label, int(carried.start[0]), factors.n_steps, n_buffers]}
