"""Evidence that stands alone: one file from which anybody recomputes an audit's bounds, without rerunning the algorithm.

The file is a NumPy archive: the scores that the bounds were taken from, float32, and a description in JSON with the claim,
the effort, every bound with its method, parameters and share of the failure probability, the worst record's events, the
planted faults and seeds, at the claimed and at the test budget; and how it came to be, under a key of its own. Its last
64 bytes are the SHA-256 of all bytes before, in hexadecimal (a zip comment, which readers of archives pass over). A changed
byte shows in the hash; a number that is wrong under a right hash shows when it is computed anew.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.protocol import FloatArray
from bandana.audits import claims
from bandana.audits.bounds import methods, one_run_methods
from bandana.audits.claims import Quantity, text_of
from bandana.audits.contents import Description
from bandana.audits.evidence.fields import Json, Kind, from_json, load_fields, plain, types_of
from bandana.audits.outcome import ONE_RUN, Numbers, Outcome, StatedBound, Verdict
from bandana.privacy_core import (
    BoundedRangeEvent,
    ConcentratedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NearlyGaussianEvent,
    NonPrivateEvent,
    PureEvent,
    ResponseEvent,
)

SCHEMA = "bandana/evidence/4"
_DIGITS, _SHOWN, _MOST_BYTES = 64, 200, 2 << 30
_SIDES = ("data", "neighbor")
TEST = "test_"
"""Beginning of the names of scores at the test budget."""
_EVENTS: Mapping[str, Kind] = {
    kind.__name__.removesuffix("Event"): kind
    for kind in (
        GaussianEvent, NearlyGaussianEvent, LaplaceEvent, ConcentratedEvent, NonPrivateEvent, PureEvent, BoundedRangeEvent,
        ResponseEvent,
    )
}  # fmt: skip


@dataclass(frozen=True)
class StatedClaim:
    """The claim as a file has it: its text says the promise, and whether its statement names the assumption of GDP."""

    text: str
    covers: str
    names_assumption: bool
    theorem: str
    source: str
    unit: str
    mu: float


@dataclass(frozen=True)
class StatedNumbers(Numbers):
    """The three numbers of a quantity."""

    quantity: Quantity


_OTHERS: Mapping[str, Kind] = {
    "schema": str,
    "claim": StatedClaim,
    "events": tuple[Description, ...] | None,
    "numbers": tuple[StatedNumbers, ...],
    "searched": int,
    "verdict": Verdict,
    "at_test_budget": Description | None,
}
"""Fields of a file beside those of an outcome, with their types."""
_SHARED = ("schema", "subject", "effort", "about", "provenance", "at_test_budget")
"""Fields that the audit at the test budget has in common with that at the claimed budget, and so does not state."""


class UnusableEvidence(ValueError):  # noqa: N818  (it says what the file is)
    """A file from which nothing can be recomputed; the message says why."""


@dataclass(frozen=True)
class Evidence:
    """Contents of an evidence file.

    Attributes:
      outcome: the audit, with its scores.
      stated: the numbers and the verdict that the file states, as they are written.
      sha256: of the file, as it states it.
      sha256_found: of the bytes that are there.
    """

    outcome: Outcome
    stated: Description
    sha256: str
    sha256_found: str


def to_bytes(outcome: Outcome) -> bytes:
    """The evidence file; the same outcome gives the same bytes.

    Raises:
      ClaimError: the claim has no written form.
    """
    arrays = {
        f"{prefix}{name}_{side}": np.asarray(scores, dtype=np.float32)
        for prefix, part in parts(outcome)
        for name, pair in part.scores.items()
        for side, scores in zip(_SIDES, pair, strict=True)
    }
    return seal(describe(outcome), arrays)


def parts(outcome: Outcome) -> list[tuple[str, Outcome]]:
    """The audit at the claimed budget, and the one at the test budget, with the prefix of its scores."""
    inner = outcome.at_test_budget
    return [("", outcome)] + ([(TEST, inner)] if inner is not None else [])


def seal(description: Mapping[str, object], arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """An archive of a description and arrays, with its hash at the end."""
    text = json.dumps(plain(description), sort_keys=True, allow_nan=False)
    buffer = io.BytesIO()
    ordered = {name: arrays[name] for name in sorted(arrays)}
    np.savez_compressed(buffer, allow_pickle=False, description=np.frombuffer(text.encode(), dtype=np.uint8), **ordered)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"0" * _DIGITS
    content = buffer.getvalue()[:-_DIGITS]
    return content + hashlib.sha256(content).hexdigest().encode()


def write(path: Path, outcome: Outcome) -> str:
    """Writes the evidence file and returns its SHA-256."""
    content = to_bytes(outcome)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content[-_DIGITS:].decode()


def describe(outcome: Outcome) -> dict[str, Json]:
    """All of an outcome but its scores, in JSON's own types; every number that `verify` recomputes is stated."""
    claim, inner = outcome.claim, outcome.at_test_budget
    text, mu = text_of(claim.stated), claim.gaussian.mu
    stated = StatedClaim(text, claim.covers, bool(claim.assumption), claim.theorem, claim.source, claim.unit, mu)
    own = {
        "schema": SCHEMA,
        "claim": stated,
        "events": None if outcome.events is None else [
            {"event": type(event).__name__.removesuffix("Event"), **plain(event), "count": count}
            for event, count in outcome.events
        ],
        "numbers": [{"quantity": quantity, **plain(three)} for quantity, three in outcome.numbers.items()],
        "searched": outcome.effort.examples,
        "verdict": outcome.verdict,
        "at_test_budget": inner and {name: value for name, value in describe(inner).items() if name not in _SHARED},
    }
    described: dict[str, Json] = plain({**{name: getattr(outcome, name) for name in _kept()}, **own})
    return described


@cache
def _kept() -> Mapping[str, Kind]:
    """Fields of an outcome that a file holds as they are, with their types."""
    others = ("claim", "scores", "events", "at_test_budget")
    return {name: kind for name, kind in types_of(Outcome).items() if name not in others}


def read(path: Path) -> Evidence:
    """Reads an evidence file.

    Raises:
      UnusableEvidence: no such file, no evidence, damaged so that it cannot be read, or of another version.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UnusableEvidence(f"{path}: cannot be read: {error.strerror or error}") from error
    tail = content[-_DIGITS:]
    if not content.startswith(b"PK") or len(tail) < _DIGITS or not set(tail) <= set(b"0123456789abcdef"):
        raise UnusableEvidence(f"{path}: is no evidence file: it must be a NumPy archive that ends with its SHA-256")
    sha256 = hashlib.sha256(content[:-_DIGITS]).hexdigest()
    try:
        check_size(content)
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        stated = from_json(bytes(arrays.pop("description")).decode())
    except Exception as error:  # whatever a damaged archive makes its readers say
        raise UnusableEvidence(f"{path}: {_damage(tail.decode(), sha256)}it cannot be read: {_in_a_line(error)}") from error
    version = stated.get("schema") if isinstance(stated, dict) else None
    if version != SCHEMA:
        words = f"{path}: holds {_in_a_line(repr(version))}, this version reads {SCHEMA!r}"
        raise UnusableEvidence(f"{words}: verify it with the version that made it")
    try:
        outcome = _outcome(stated, arrays)
        _check_names(outcome, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        what = _in_a_line(f"lacks {error}" if isinstance(error, KeyError) else error)
        raise UnusableEvidence(f"{path}: {_damage(tail.decode(), sha256)}its description cannot be used: {what}") from error
    return Evidence(outcome, stated, tail.decode(), sha256)


def check_size(content: bytes, most: int = _MOST_BYTES) -> None:
    """Refuses an archive that unpacks to more than `most` bytes, before anything is unpacked.

    Raises:
      ValueError: it does.
      zipfile.BadZipFile: it is no archive.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if (size := sum(item.file_size for item in archive.infolist())) > most:
            raise ValueError(f"it unpacks to {size:,} bytes, more than {most:,}")


def _in_a_line(words: object) -> str:
    """The first 200 characters of an error, which may repeat all that a file holds, in one line."""
    text = "".join(character if character.isprintable() else " " for character in str(words))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _damage(stated: str, actual: str) -> str:
    return "" if stated == actual else "its SHA-256 is not that of its bytes, and "


def _outcome(stated: object, arrays: Mapping[str, FloatArray], shared: Description | None = None) -> Outcome:
    prefix, place = (TEST, "at_test_budget") if shared else ("", "")
    kinds = {name: kind for name, kind in {**_kept(), **_OTHERS}.items() if not shared or name not in _SHARED}
    part = {**load_fields(kinds, stated, place), **(shared or {})}
    events, claim, inner = part["events"], part["claim"], part["at_test_budget"]
    mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(TEST) == (prefix == TEST)}
    scores = {
        name.removesuffix("_data"): (_checked(name, mine), _checked(name.removesuffix("data") + "neighbor", mine))
        for name in sorted(mine)
        if name.endswith("_data")
    }
    if unknown := {bound.scores for bound in part["bounds"]} - {*scores}:
        raise ValueError(f"there are no scores named {', '.join(sorted(unknown))}")
    if events is None and part["coverage"] is None:
        raise ValueError("a function's evidence must say what its verdict covers: coverage is null")
    parsed = claims.parse(claim.text, source=claim.source, is_published=True)
    return Outcome(
        claim=replace(
            parsed,
            covers=claim.covers,
            assumption=parsed.assumption if claim.names_assumption else "",
            theorem=claim.theorem,
            unit=claim.unit,
        ),
        scores=scores,
        events=None if events is None else tuple(_event(item, f"events[{place}]") for place, item in enumerate(events)),
        at_test_budget=inner and _outcome(inner, arrays, {**{name: part[name] for name in _SHARED}, "at_test_budget": None}),
        **{name: part[name] for name in _kept()},
    )


def _check_names(outcome: Outcome, arrays: Mapping[str, FloatArray]) -> None:
    """Refuses an array that is no score of either budget."""
    scores = {f"{prefix}{name}_{side}" for prefix, part in parts(outcome) for name in part.scores for side in _SIDES}
    if unknown := sorted({*arrays} - scores):
        raise ValueError(f"nothing reads its array {unknown[0]!r}")


def _checked(name: str, arrays: Mapping[str, FloatArray]) -> FloatArray:
    scores = arrays[name]
    if scores.dtype != np.float32 or scores.ndim != 1:
        raise ValueError(f"{name} must be float32 along one axis, got {scores.dtype} of shape {scores.shape}")
    return scores.astype(np.float64)


def _event(item: Description, place: str) -> tuple[Event, int]:
    kind = _EVENTS[item["event"]]
    given = load_fields({**types_of(kind), "event": str, "count": int}, item, place)
    return kind(**{name: given[name] for name in types_of(kind)}), given["count"]


def recompute(bound: StatedBound, scores: tuple[FloatArray, FloatArray]) -> float:
    """The bound, from its scores alone.

    Raises:
      ValueError: no such method, or scores from which it cannot be taken.
    """
    if bound.view == ONE_RUN:
        return one_run_methods.bound(bound.method, scores[0], scores[1].astype(bool), bound.level, **bound.parameters)
    return methods.bound(bound.method, *scores, bound.level, **bound.parameters)
