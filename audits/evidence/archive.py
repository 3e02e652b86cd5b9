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
import math
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bandana.algorithms.protocol import FloatArray
from bandana.audits import claims
from bandana.audits.bounds import methods, one_run_methods
from bandana.audits.claims import Quantity, text_of
from bandana.audits.contents import Description
from bandana.audits.coverage import Coverage
from bandana.audits.evidence import kinds
from bandana.audits.outcome import DETERMINISTIC, ONE_RUN, Effort, Outcome, StatedBound, TriedControl
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

SCHEMA, _OLD = "bandana/evidence/3", "bandana/evidence/2"
_RENAMED = {"flaw": "noise_finding", "doubts": "caveats"}
_RENAMED_IN_COUNTEREXAMPLE = {
    "told": "summary", "price": "cost", "brought": "covariates", "replaced_brought": "replaced_covariates",
}  # fmt: skip
"""Old names, which files of the version before hold."""
_DIGITS, _SHOWN, _MOST_BYTES = 64, 200, 2 << 30
_SIDES = ("data", "neighbor")
TEST = "test_"
"""Beginning of the names of scores at the test budget."""
_EVENTS: dict[str, Callable[..., Event]] = {
    "Gaussian": GaussianEvent,
    "NearlyGaussian": NearlyGaussianEvent,
    "Laplace": LaplaceEvent,
    "Concentrated": ConcentratedEvent,
    "NonPrivate": NonPrivateEvent,
    "Pure": PureEvent,
    "BoundedRange": BoundedRangeEvent,
    "Response": ResponseEvent,
}


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
    text = json.dumps(_plain(description), sort_keys=True, allow_nan=False)
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


def describe(outcome: Outcome) -> dict[str, object]:
    """All of an outcome but its scores; every number that `verify` recomputes is stated."""
    claim = outcome.claim
    return {
        "schema": SCHEMA,
        "subject": dict(outcome.subject),
        "claim": {
            "text": text_of(claim.stated),
            "statement": claim.statement,
            "theorem": claim.theorem,
            "source": claim.source,
            "unit": claim.unit,
            "mu": claim.gaussian.mu,
        },
        "effort": asdict(outcome.effort),
        "failure": outcome.failure,
        "bounds": [asdict(bound) for bound in outcome.bounds],
        "events": None
        if outcome.events is None
        else [
            {"event": type(event).__name__.removesuffix("Event"), **asdict(event), "count": count}
            for event, count in outcome.events
        ],
        "counterexample": outcome.counterexample,
        "noise_finding": outcome.noise_finding,
        "controls": [asdict(control) for control in outcome.controls],
        "power": outcome.power,
        "caveats": list(outcome.caveats),
        "about": dict(outcome.about),
        "provenance": None if outcome.provenance is None else dict(outcome.provenance),
        "numbers": [
            {"quantity": asdict(quantity), **asdict(three)} for quantity, three in outcome.numbers.items()
        ],
        "inequalities": outcome.inequalities,
        "verdict": outcome.verdict.value,
        "reasons": list(outcome.reasons),
        "coverage": None if outcome.coverage is None else outcome.coverage.describe(),
        "at_test_budget": None if outcome.at_test_budget is None else describe(outcome.at_test_budget),
    }  # fmt: skip


def described(outcome: Outcome) -> Description:
    """The description as it is read from a file: JSON's own types."""
    plain: Description = json.loads(json.dumps(_plain(describe(outcome))))
    return plain


def _plain(value: object) -> object:
    """JSON's own types; an infinity is a word."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else str(float(value))
    return int(value) if isinstance(value, np.integer) else value


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
        stated = kinds.from_json(bytes(arrays.pop("description")).decode())
    except Exception as error:  # whatever a damaged archive makes its readers say
        raise UnusableEvidence(f"{path}: {_damage(tail.decode(), sha256)}it cannot be read: {_in_a_line(error)}") from error
    version = stated.get("schema") if isinstance(stated, dict) else None
    if version not in (SCHEMA, _OLD):
        raise UnusableEvidence(f"{path}: holds {_in_a_line(repr(version))}, this version reads {SCHEMA!r} and {_OLD!r}")
    try:
        stated = _renamed(stated) if version == _OLD else stated
        kinds.check(stated)
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


def _renamed(stated: Description) -> Description:
    """The description in a file of the version before, under today's names."""
    renamed = {"coverage": None, **{_RENAMED.get(key, key): value for key, value in stated.items()}, "schema": SCHEMA}
    renamed["counterexample"] = _renamed_keys(renamed["counterexample"])
    for control in renamed["controls"]:
        for key in ("expected", "caught_by"):
            control[key] = [DETERMINISTIC if name == "structural" else name for name in control[key]]
    renamed["at_test_budget"] = None if renamed["at_test_budget"] is None else _renamed(renamed["at_test_budget"])
    return renamed


def _renamed_keys(value: object) -> object:
    """A counterexample, or a part of one, under today's names."""
    if isinstance(value, dict):
        return {_RENAMED_IN_COUNTEREXAMPLE.get(key, key): _renamed_keys(item) for key, item in value.items()}
    return [_renamed_keys(item) for item in value] if isinstance(value, list) else value


def _damage(stated: str, actual: str) -> str:
    return "" if stated == actual else "its SHA-256 is not that of its bytes, and "


def _outcome(stated: Description, arrays: Mapping[str, FloatArray], prefix: str = "") -> Outcome:
    inner = stated["at_test_budget"]
    if not prefix and inner is not None:
        inner = _outcome(inner, arrays, TEST)
    mine = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(TEST) == (prefix == TEST)}
    scores = {
        name.removesuffix("_data"): (_checked(name, mine), _checked(name.removesuffix("data") + "neighbor", mine))
        for name in sorted(mine)
        if name.endswith("_data")
    }
    bounds = [_bound(item) for item in stated["bounds"]]
    if unknown := {bound.scores for bound in bounds} - {*scores}:
        raise ValueError(f"there are no scores named {', '.join(sorted(map(str, unknown)))}")
    events = None
    if stated["events"] is not None:
        events = tuple((_event(item), int(item["count"])) for item in stated["events"])
    claim = stated["claim"]
    parsed = claims.parse(claim["text"], source=claim["source"], is_published=True)
    return Outcome(
        subject=stated["subject"],
        claim=replace(parsed, statement=claim["statement"], theorem=claim["theorem"], unit=claim["unit"]),
        effort=Effort(**stated["effort"]),
        failure=float(stated["failure"]),
        bounds=tuple(bounds),
        scores=scores,
        events=events,
        counterexample=stated["counterexample"],
        noise_finding=stated["noise_finding"],
        controls=tuple(_control(item) for item in stated["controls"]),
        power=float(stated["power"]),
        caveats=tuple(stated["caveats"]),
        about=stated["about"],
        provenance=stated.get("provenance"),
        coverage=Coverage.of(stated.get("coverage")),
        at_test_budget=inner,
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


def _bound(item: Description) -> StatedBound:
    numbers = {name: float(item[name]) for name in ("level", "lower")}
    return StatedBound(**{**item, **numbers, "quantity": Quantity(**item["quantity"])})


def _control(item: Description) -> TriedControl:
    names = {name: tuple(item[name]) for name in ("expected", "caught_by")}
    numbers = {name: float(item[name]) for name in ("measured", "limit")}
    return TriedControl(**{**item, **names, **numbers})


def _event(item: Description) -> Event:
    kind = _EVENTS[item["event"]]
    parameters = {name: float(value) for name, value in item.items() if name not in ("event", "count")}
    if kind is ResponseEvent:
        parameters["n_options"] = int(parameters["n_options"])
    return kind(**parameters)


def recompute(bound: StatedBound, scores: tuple[FloatArray, FloatArray]) -> float:
    """The bound, from its scores alone.

    Raises:
      ValueError: no such method, or scores from which it cannot be taken.
    """
    if bound.view == ONE_RUN:
        return one_run_methods.bound(bound.method, scores[0], scores[1].astype(bool), bound.level, **bound.parameters)
    return methods.bound(bound.method, *scores, bound.level, **bound.parameters)
