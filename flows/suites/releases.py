"""The audit of a release on a given pair: its function and data sets loaded, run in a child process, and what came out."""

from __future__ import annotations

import ast
import csv
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from bandana.audits.claims import ClaimError, parse
from bandana.audits.external.foreign import frozen
from bandana.audits.external.releases.audit import Samples, draw, examine
from bandana.audits.external.releases.calls import BrokenRelease, inspect_call
from bandana.audits.external.releases.encoding import NotEncodable, is_numeric
from bandana.audits.external.releases.outcome import ReleaseOutcome
from bandana.audits.outcome import MIN_REPLAYS
from bandana.flows.running import child
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.suites import own
from bandana.privacy_core import Guarantee

_ENDINGS = (".npy", ".csv", ".json")


@dataclass(frozen=True)
class ReleaseRequest:
    """What a user asks for; each field is an option of `bandana audit`.

    Attributes:
      claim: such as `approx(epsilon=1, delta=1e-5)`.
      mechanism: FILE.py:NAME of a release, a function of (data, seed); empty for samples.
      data: a data set: a file (.npy, .csv, .json) or a Python literal.
      neighbor: its neighbor.
      samples: files with outputs of both sides, in place of a mechanism.
      replays: runs on each side, at most.
      seconds: for all runs.
      confidence: of the bound.
      seed: root of all seeds.
      timeout: seconds for one call of the function.
      memory: gigabytes that it may use; None: three quarters of this machine's.
    """

    claim: str
    mechanism: str = ""
    data: str = ""
    neighbor: str = ""
    samples: tuple[Path, Path] | None = None
    replays: int = 100_000
    seconds: float = 60.0
    confidence: float = 0.95
    seed: int = 0
    timeout: float = 120.0
    memory: float | None = None


@dataclass(frozen=True)
class ReleaseAudited:
    """An audit that is done: how the subject is called, what was found, and what the user should know beside it."""

    label: str
    outcome: ReleaseOutcome
    note: str


def audit_release(request: ReleaseRequest) -> ReleaseAudited:
    """Audits the function or the samples that a request names.

    Raises:
      SpecError: a mistake in the request, the files or the function; one line.
    """
    stated = _guarantee(request.claim)
    if not 0 < request.confidence < 1:
        raise SpecError(f"--confidence must lie strictly between 0 and 1, got {request.confidence!r}")
    limits = child.limits(request.timeout, request.memory)
    if not (request.seconds > 0 and math.isfinite(request.seconds)):
        raise SpecError(f"--seconds must be a finite number above 0, got {request.seconds!r}")
    if request.samples is None and request.replays < MIN_REPLAYS:
        raise SpecError(f"--replays must be at least {MIN_REPLAYS}, got {request.replays}: fewer certify nothing")
    if request.seed < 0:
        raise SpecError(f"--seed must be at least 0, got {request.seed}")
    if request.samples is not None:
        return _audit_samples(request, request.samples, stated)
    data, neighbor = read_data("--data", request.data), read_data("--neighbor", request.neighbor)
    path, name, source, tree = own.read(request.mechanism, "--mechanism")

    def work() -> ReleaseOutcome:
        with child.one_call():
            function = own.named(path, name, source, tree, "--mechanism")
        with own.blamed_on(path, "--mechanism"):
            caller = inspect_call(function, data, neighbor, request.seed, child.one_call)
            found = frozen.examine(caller.tried, data, neighbor, stated, request.seed)
            samples = draw(caller, data, neighbor, request.replays, request.seed, request.seconds)
            return replace(examine(samples, stated, confidence=request.confidence, seed=request.seed), frozen=found)

    returned = child.run(work, limits, f"--mechanism: {path.name}:{name}")
    note = f"{path.name}:{name} {returned.printed}" if returned.printed else ""
    return ReleaseAudited(f"{path.name}:{name}", returned.value, note)


def _audit_samples(request: ReleaseRequest, places: tuple[Path, Path], stated: Guarantee) -> ReleaseAudited:
    sides = [read_data("--samples", str(place)) for place in places]
    for place, side in zip(places, sides, strict=True):
        if not isinstance(side, list) and not (is_numeric(side) and np.ndim(side)):
            raise SpecError(f"--samples: {place} must hold one output a row, or a list of outputs")
    try:
        outcome = examine(
            Samples(sides[0], sides[1]), stated, confidence=request.confidence, seed=request.seed, shuffled=True
        )
    except (BrokenRelease, NotEncodable) as error:
        raise SpecError(f"--samples: {error}") from error
    return ReleaseAudited(" against ".join(place.name for place in places), outcome, "")


def _guarantee(text: str) -> Guarantee:
    """The guarantee that a claim states; a given pair needs no neighboring relation."""
    try:
        return parse(text, relation=None if "relation" in text else "record").stated
    except ClaimError as error:
        raise SpecError(f"--claim: {error}") from error


def read_data(option: str, text: str) -> Any:
    """A data set from a file, or from a Python literal.

    Args:
      option: its name, for messages.
      text: a path that ends in .npy, .csv or .json, or a literal such as `[0, 1, 1]`.

    Returns:
      an array of .npy; an array of a .csv of numbers, with or without a line of names, else its lines as dictionaries
      (lists, without names); what a .json or a literal says.

    Raises:
      SpecError: neither of these; the message says what to change.
    """
    path = Path(text)
    if path.suffix.lower() not in _ENDINGS:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise SpecError(
                f"{option}: must be a file (.npy, .csv, .json) or a Python literal such as [0, 1, 1], got {text!r}"
            ) from error
    try:
        match path.suffix.lower():
            case ".npy":
                return np.load(path, allow_pickle=False)
            case ".json":
                return json.loads(path.read_text(encoding="utf-8"))
        return _csv(path)
    except (OSError, ValueError) as error:  # what is no JSON, no UTF-8 or no NumPy file
        raise SpecError(f"{option}: {path} cannot be read: {error}") from error


def _csv(path: Path) -> Any:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise ValueError("it is empty")
    if wrong := [place for place, row in enumerate(rows, start=1) if len(row) != len(rows[0])]:
        raise ValueError(f"line {wrong[0]} has {len(rows[wrong[0] - 1])} fields, the first has {len(rows[0])}")
    names, rest = (None, rows) if _as_numbers(rows[:1]) is not None else (rows[0], rows[1:])
    numbers = _as_numbers(rest)
    if numbers is not None and len(rest):
        return numbers[:, 0] if numbers.shape[1] == 1 else numbers
    if names is None or len(rows) == 1 or len(names) == 1:
        return [row[0] if len(row) == 1 else row for row in rows]
    return [dict(zip(names, row, strict=True)) for row in rest]


def _as_numbers(rows: list[list[str]]) -> np.ndarray | None:
    try:
        return np.array([[float(field) for field in row] for row in rows], dtype=float)
    except ValueError:
        return None
