"""The audit of a release on a given pair: its function and data sets loaded, run in a child process, and what came out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bandana.algorithms.entry import Claim
from bandana.audits.claims import ClaimError, parse, split_pair
from bandana.audits.outcome import MIN_REPLAYS, Effort, Outcome
from bandana.flows.annexes.anything import programs
from bandana.flows.annexes.anything.data_sets import read_data
from bandana.flows.annexes.anything.files import RELEASE, Loaded, apart, blamed_on, named, read
from bandana.flows.annexes.anything.foreign import frozen
from bandana.flows.annexes.anything.given_pairs import Given, on_pair, read_claim
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject, ManyRuns, inspect_call, is_numeric
from bandana.flows.annexes.anything.own_reports import ReportRequest, write_evidence
from bandana.flows.annexes.anything.pairs.neighbors import most_telling, n_records, one_more_or_less, taken, without_users
from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome
from bandana.flows.annexes.anything.pairs.release import Samples, examine
from bandana.flows.annexes.anything.pairs.stages import audit_subject
from bandana.flows.annexes.anything.pairs.starts import Anew
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.flows.folder.settings import is_anonymous
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.results.audit_report import write_document
from bandana.flows.running import child
from bandana.flows.texts.mistakes import SpecError
from bandana.privacy_core import Relation

_WRITING = 3.0
"""Seconds, of all that an audit may take, for evidence and report."""


@dataclass(frozen=True)
class ReleaseRequest:
    """Request of a user; each field is an option of `bandana audit`.

    Attributes:
      claim: such as `approx(epsilon=1, delta=1e-5)`.
      mechanism: FILE.py:NAME of a release, a function of (data, seed); exec:COMMAND or tcp:HOST:PORT; empty for samples.
      data: a data set: a file (.npy, .csv, .json) or a Python literal.
      neighbor: its neighbor.
      pair: both, in place of `data` and `neighbor`; the claim may name them too.
      users: whose each record is, a file or a Python list, for a claim with relation=user.
      samples: files with outputs of both sides, in place of a mechanism.
      replays: runs on each side, at most.
      seconds: for all of it.
      confidence: of the bound.
      seed: root of all seeds.
      timeout: seconds for one call of the function.
      memory: gigabytes that it may use; None: three quarters of this machine's.
    """

    claim: str
    mechanism: str = ""
    data: str = ""
    neighbor: str = ""
    pair: tuple[str, str] | None = None
    users: str = ""
    samples: tuple[Path, Path] | None = None
    replays: int = 100_000
    seconds: float = 60.0
    confidence: float = 0.95
    seed: int = 0
    timeout: float = 120.0
    memory: float | None = None


@dataclass(frozen=True)
class ReleaseAudited:
    """An audit that is done.

    Attributes:
      loaded: what was audited.
      outcome: what was found.
      record: the same as evidence and reports keep it.
      note: what the user should know beside it.
    """

    loaded: Loaded
    outcome: ReleaseOutcome
    record: Outcome
    note: str


def audit_release(request: ReleaseRequest) -> ReleaseAudited:
    """Audits the function or the samples that a request names.

    Raises:
      SpecError: a mistake in the request, the files or the function; one line.
    """
    claim, (data, neighbor) = _claim(request)
    users = _users(request.users) if claim.relation is Relation.USER else []
    try:
        replays = request.replays if request.samples is None else max(request.replays, MIN_REPLAYS)
        effort = Effort(replays, request.confidence, 1e-5, 1, request.seed)
    except ValueError as error:
        raise SpecError(f"--{error}") from error
    limits = child.limits(request.timeout, request.memory)
    if not (request.seconds > 0 and math.isfinite(request.seconds)):
        raise SpecError(f"--seconds must be a finite number above 0, got {request.seconds!r}")
    if request.seed < 0:
        raise SpecError(f"--seed must be at least 0, got {request.seed}")
    if request.samples is not None:
        return _audit_samples(request, request.samples, claim)
    making, begun = Making(), time.monotonic()
    loaded, made = _subject(request.mechanism, limits.seconds)
    audited = request.seconds - min(_WRITING, 0.1 * request.seconds)

    def work() -> ReleaseOutcome:
        with child.one_call():
            function = made()
        starts = Anew() if isinstance(function, ManyRuns) else apart(function, loaded.path, loaded.name)
        with blamed_on(loaded.path, "mechanism"):
            subject, search = _searched_or_given(function, claim, data, neighbor, users, request)
            fixed = frozen.examine(subject.caller.tried, subject.data, subject.neighbor, claim.stated, request.seed)
            left = max(0.0, audited - (time.monotonic() - begun))
            return replace(audit_subject(subject, claim.stated, effort, left, search, starts, child.beside), frozen=fixed)

    returned = child.run(work, limits, f"mechanism: {loaded.label}")
    note = f"{loaded.label} {returned.printed}" if returned.printed else ""
    return _audited(loaded, request, claim, returned.value, making, note)


def _subject(mechanism: str, seconds: float) -> tuple[Loaded, Callable[[], object]]:
    """Subject of the audit, and what makes it a function, in the process that calls it."""
    if mechanism.startswith((programs.COMMAND, programs.ADDRESS)):
        program = programs.named(mechanism, seconds)
        return Loaded(RELEASE, None, Path(mechanism.partition(":")[0]), program.name, ""), lambda: program
    path, name, source, _ = read(mechanism, "mechanism")
    return Loaded(RELEASE, None, path, name, source), lambda: named(path, name, "mechanism")


def _audited(
    loaded: Loaded, request: ReleaseRequest, claim: Claim, found: ReleaseOutcome, making: Making, note: str
) -> ReleaseAudited:
    replayed = found.search or "one given pair of data sets"
    record = found.recorded(claim, loaded.words, about_audits(replayed, (), request.seed))
    return ReleaseAudited(loaded, found, replace(record, provenance=making.record(is_anonymous=is_anonymous())), note)


def write_release(audited: ReleaseAudited, request: ReleaseRequest, folder: Path) -> dict[str, Path]:
    """Writes the evidence and the report of an audit into a folder; kind -> where it lies."""
    place, document = write_evidence(audited.loaded, audited.record, ReportRequest(request.claim, 1, request.seed), folder)
    return {"evidence": place, **write_document(document, place.with_name(place.name.removesuffix(".evidence.npz")))}


def _audit_samples(request: ReleaseRequest, places: tuple[Path, Path], claim: Claim) -> ReleaseAudited:
    making = Making()
    sides = [read_data("--samples", str(place)) for place in places]
    for place, side in zip(places, sides, strict=True):
        if not isinstance(side, list) and not (is_numeric(side) and np.ndim(side)):
            raise SpecError(f"--samples: {place} must hold one output a row, or a list of outputs")
    try:
        outcome = examine(
            Samples(sides[0], sides[1]), claim.stated, confidence=request.confidence, seed=request.seed, shuffled=True
        )
    except BrokenSubject as error:
        raise SpecError(f"--samples: {error}") from error
    loaded = Loaded(RELEASE, None, places[0], f"{places[0].stem}-against-{places[1].stem}", "")
    return _audited(loaded, request, claim, outcome, making, "")


def _searched_or_given(
    function: object, claim: Claim, data: object, neighbor: object, users: list[Hashable], request: ReleaseRequest
) -> tuple[Subject, str]:
    """The two data sets to run on, and how they were found, in words; empty where both are given."""
    if claim.relation is Relation.GIVEN_PAIR:
        caller = inspect_call(function, data, neighbor, request.seed, child.one_call)
        return Subject(caller, data, neighbor, "the given pair"), ""
    smaller = taken(data, range(n_records(data) - 1))
    caller = inspect_call(function, data, smaller, request.seed, child.one_call)

    def against(other: object) -> Subject:
        return Subject(caller, data, other)

    if claim.relation is Relation.USER:
        tried = without_users(against, data, users, request.seed)
    else:
        tried = one_more_or_less(against, data, request.seed)
    return most_telling(tried, request.replays, request.seed, request.seconds)


def _claim(request: ReleaseRequest) -> tuple[Claim, Given]:
    """Claim of a request, and the two data sets, or one whose neighbors are searched for.

    Samples are outputs, whose data sets nobody needs.
    """
    pair, options = request.pair, ("--pair", "--pair")
    if request.samples is not None:
        pair = ("[0]", "[1]")
    elif request.data and request.neighbor:
        if pair is not None:
            raise SpecError("--pair: not with --data and --neighbor, which name the pair")
        pair, options = (request.data, request.neighbor), ("--data", "--neighbor")
    try:
        if pair is None and split_pair(request.claim)[1] is None:
            return _searched(request)
        claim, given = read_claim(request.claim, pair, options=options)
        assert given is not None
        if request.users:
            raise SpecError("--users: only with relation=user, for which neighbors are searched")
        return on_pair(claim), given
    except ClaimError as error:
        raise SpecError(f"--claim: {error}") from error


def _searched(request: ReleaseRequest) -> tuple[Claim, Given]:
    """A claim whose neighbors are searched for, and the data set."""
    claim = parse(request.claim, relation=None if "relation" in request.claim else "pair")
    if claim.relation not in (Relation.ADD_REMOVE, Relation.USER) or not request.data or request.neighbor:
        raise SpecError(
            "a release needs --data and --neighbor, --pair, or pair=(A, B) in the claim: two files or literals; "
            "with relation=add-remove or relation=user in the claim, --data alone"
        )
    if (claim.relation is Relation.USER) is not bool(request.users):
        raise SpecError(
            "--users: relation=user needs whose each record is, a file or a Python list, and no other claim does"
        )
    return claim, (read_data("--data", request.data), None)


def _users(text: str) -> list[Hashable]:
    """Whose each record is."""
    users = read_data("--users", text)
    users = users.tolist() if isinstance(users, np.ndarray) else users
    if not isinstance(users, list | tuple) or any(isinstance(user, list | dict) for user in users):
        raise SpecError("--users: must be one number or name for each record")
    return list(users)
