"""Provenance of a result: when, by which versions on which machine, from which code, and by whom unless that is left out.

It is stored inside each result, under a key of its own: comparisons of results leave it out, and a report shows what is
stored, never what is installed where it is rendered.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Literal

from pydantic import TypeAdapter

from bandana.audits import documents
from bandana.audits.documents.provenance import Maker, NotRecorded, ReportProvenance
from bandana.audits.outcome import Setup
from bandana.audits.reporting import origin
from bandana.flows.annex import DEVICE
from bandana.flows.keys import checkout, machine
from bandana.flows.keys.identity import MadeBy
from bandana.flows.keys.versions import versions
from bandana.privacy_core import ReproducibleNoise

Kind = Literal["blocks", "audits"]
Record = documents.provenance.Provenance

_MAKERS = ("python", "bandana", "numpy", "scipy", "numba", "llvmlite", "hypothesis", "dp-accounting", "causaldata",
           "statsmodels", "scikit-learn")  # fmt: skip
"""Packages that compute numbers or bring data; what draws reports and tracks runs changes no number."""
_TIMES: tuple[Literal["began", "ended"], ...] = ("began", "ended")
_RECORDS = TypeAdapter(Record)


class Making:
    """One computation, from the moment at which this object is made until `record` is called."""

    def __init__(self) -> None:
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        checkout.sources()  # as they are now: a long computation sees them edited
        checkout.checkout()

    def record(self, *, is_anonymous: bool) -> dict[str, object]:
        """The provenance of what was computed since, as a `Record`; an anonymous one leaves out user and host.

        Times are in UTC; `ended` is by a clock that does not jump, and never before `began`.
        """
        ended = self._began + timedelta(seconds=time.monotonic() - self._clock)
        code = checkout.checkout()
        return {
            "began": self._began.isoformat(timespec="milliseconds"),
            "ended": ended.isoformat(timespec="milliseconds"),
            "versions": dict(sorted((_versions() | _device()).items())),
            "system": machine.system(),
            "processor": machine.processor(),
            "target": machine.target(),
            "features": list(machine.features()),
            "blas": [each.model_dump() for each in machine.blas()],
            "sources": checkout.sources(),
            "commit": None if code is None else code.commit,
            "is_clean": None if code is None else code.is_clean,
            "user": None if is_anonymous else user(),
            "host": None if is_anonymous else socket.gethostname(),
        }


def user() -> str:
    """Who runs this process, as the operating system names them: the number where the account has no name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


@cache
def _versions() -> dict[str, str]:
    return versions(*_MAKERS)


def _device() -> dict[str, str]:
    """Device that replays run on, where one is named."""
    device = os.environ.get(DEVICE)
    return {"torch": f"{versions('torch')['torch']} on {device}"} if device else {}


def read(stored: object) -> Record | None:
    """A stored provenance, in one order whatever the file's is; None where nothing that can be read was recorded."""
    if not isinstance(stored, dict):
        return None
    try:
        record = _RECORDS.validate_python({name: stored.get(name) for name in Record.__annotations__}, strict=True)
        has_offsets = all(datetime.fromisoformat(record[name]).tzinfo is not None for name in _TIMES)
    except ValueError:
        return None
    return {**record, "versions": dict(sorted(record["versions"].items()))} if has_offsets else None


def shown(stored: object, *, is_anonymous: bool) -> Record | None:
    """A stored provenance as reports and MLflow show it: without user and host where those are left out, also if stored."""
    record = read(stored)
    return {**record, "user": None, "host": None} if record is not None and is_anonymous else record


def summary(records: Iterable[tuple[Kind, Record | None]]) -> ReportProvenance:
    """The field `provenance` of a report's document: who made its results, each maker once.

    Args:
      records: of each block and each audit that the report shows.

    Returns:
      `began` of the first and `ended` of the last, None where nothing is recorded; `makers`, those of most results first,
      with how many `blocks` and `audits` each; `not_recorded`, how many there are of which nothing is known.
    """
    makers: dict[str, Maker] = {}
    unknown: NotRecorded = {"blocks": 0, "audits": 0}
    for kind, record in records:
        if record is None:
            unknown[kind] += 1
            continue
        key = json.dumps({name: value for name, value in record.items() if name not in _TIMES}, sort_keys=True)
        maker = makers.setdefault(key, {"blocks": 0, "audits": 0, **record})
        maker[kind] += 1
        maker["began"] = min((maker["began"], record["began"]), key=datetime.fromisoformat)
        maker["ended"] = max((maker["ended"], record["ended"]), key=datetime.fromisoformat)
    # Whoever made most stands first; equal ones in the order of time, so that no order of files shows.
    listed = sorted(makers.values(), key=lambda made: (-made["blocks"] - made["audits"], made["began"], json.dumps(made)))
    began = min((maker["began"] for maker in listed), key=datetime.fromisoformat, default=None)
    ended = max((maker["ended"] for maker in listed), key=datetime.fromisoformat, default=None)
    return {"began": began, "ended": ended, "makers": listed, "not_recorded": unknown}


def tags(kind: str, made: ReportProvenance, records: Iterable[Record | None]) -> dict[str, str]:
    """Tags of a benchmark, audit or suite in MLflow: several values of one fact are joined.

    Args:
      kind: benchmark, audit or suite.
      made: the `summary` of the records.
      records: of each block and each audit.
    """
    if not made["makers"]:
        return {}
    texts = {f"made.{kind}.{name}": str(made[name]) for name in _TIMES}
    texts[f"made.{kind}.seconds"] = f"{seconds(records):.3f}"
    return texts | {f"made.{kind}.{term.replace(' ', '-')}": "; ".join(values) for term, values in origin.facts(made)}


def seconds(records: Iterable[Record | None]) -> float:
    """Seconds that a computation took, by the clock: pauses do not count, such as the time between a kill and its rerun.

    It is the length of the union of the spans from `began` to `ended`: what is computed side by side counts once.
    """
    spans = sorted(
        tuple(datetime.fromisoformat(record[name]) for name in _TIMES) for record in records if record is not None
    )
    total, covered = timedelta(0), None
    for began, ended in spans:
        start = began if covered is None else max(began, covered)
        total += max(ended - start, timedelta(0))
        covered = ended if covered is None else max(covered, ended)
    return total.total_seconds()


def about_audits(table: str, probes: tuple[int, ...], seed: int, made: MadeBy | None = None) -> Setup:
    """Facts that a reader needs to repeat an audit: the table that is replayed, probes, seeds, and what computes it.

    The last is that of `identity.made_by`, or None for the whole product.
    """
    return Setup(table, probes, seed, ReproducibleNoise.name, checkout.sources() if made is None else made["code"])
