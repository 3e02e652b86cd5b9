"""The audit of a release on a given pair: its function and data sets loaded, run in a child process, and what came out."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

import numpy as np

from bandana.algorithms.entry import Claim
from bandana.audits.claims import ClaimError, split_pair
from bandana.audits.external.foreign import frozen
from bandana.audits.external.releases.audit import Samples, draw, examine
from bandana.audits.external.releases.calls import BrokenRelease, inspect_call
from bandana.audits.external.releases.encoding import NotEncodable, is_numeric
from bandana.audits.external.releases.outcome import ReleaseOutcome
from bandana.audits.external.releases.record import recorded
from bandana.audits.outcome import MIN_REPLAYS, Outcome
from bandana.flows.keys.provenance import Making
from bandana.flows.running import child
from bandana.flows.running.settings import is_anonymous
from bandana.flows.spec.mistakes import SpecError
from bandana.flows.suites import own
from bandana.flows.suites.audit_report import write_document
from bandana.flows.suites.data_sets import read_data
from bandana.flows.suites.given_pairs import Given, on_pair, read_claim
from bandana.flows.suites.own import RELEASE, Loaded
from bandana.flows.suites.work import about_audits

_REPLAYED = "one given pair of data sets"


@dataclass(frozen=True)
class ReleaseRequest:
    """What a user asks for; each field is an option of `bandana audit`.

    Attributes:
      claim: such as `approx(epsilon=1, delta=1e-5)`.
      mechanism: FILE.py:NAME of a release, a function of (data, seed); empty for samples.
      data: a data set: a file (.npy, .csv, .json) or a Python literal.
      neighbor: its neighbor.
      pair: both, in place of `data` and `neighbor`; the claim may name them too.
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
    pair: tuple[str, str] | None = None
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

    @property
    def label(self) -> str:
        """How the subject is called."""
        return self.loaded.label


def audit_release(request: ReleaseRequest) -> ReleaseAudited:
    """Audits the function or the samples that a request names.

    Raises:
      SpecError: a mistake in the request, the files or the function; one line.
    """
    given = (request.data, request.neighbor) if request.data or request.neighbor else request.pair
    claim, pair = _claim(request, given)
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
        return _audit_samples(request, request.samples, claim)
    data, neighbor = pair
    making = Making()
    path, name, source, tree = own.read(request.mechanism, "--mechanism")

    def work() -> ReleaseOutcome:
        with child.one_call():
            function = own.named(path, name, source, tree, "--mechanism")
        with own.blamed_on(path, "--mechanism"):
            caller = inspect_call(function, data, neighbor, request.seed, child.one_call)
            found = frozen.examine(caller.tried, data, neighbor, claim.stated, request.seed)
            samples = draw(caller, data, neighbor, request.replays, request.seed, request.seconds)
            return replace(examine(samples, claim.stated, confidence=request.confidence, seed=request.seed), frozen=found)

    returned = child.run(work, limits, f"--mechanism: {path.name}:{name}")
    note = f"{path.name}:{name} {returned.printed}" if returned.printed else ""
    loaded = Loaded(RELEASE, None, path, name, source)
    return _audited(loaded, request, claim, returned.value, making, note)


def _audited(
    loaded: Loaded, request: ReleaseRequest, claim: Claim, found: ReleaseOutcome, making: Making, note: str
) -> ReleaseAudited:
    subject = {"kind": loaded.kind, "name": loaded.label}
    if loaded.source:
        subject["source sha256"] = sha256(loaded.source.encode()).hexdigest()
    record = recorded(found, claim, subject, about_audits(_REPLAYED, (), request.seed))
    return ReleaseAudited(loaded, found, replace(record, provenance=making.record(is_anonymous=is_anonymous())), note)


def write_release(audited: ReleaseAudited, request: ReleaseRequest, folder: Path) -> dict[str, Path]:
    """Writes the evidence and the report of an audit into a folder; kind -> where it lies."""
    own_request = own.Request(audited.label, request.claim, rounds=1, seed=request.seed)
    place, document = own.write_evidence(audited.loaded, audited.record, own_request, folder)
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
    except (BrokenRelease, NotEncodable) as error:
        raise SpecError(f"--samples: {error}") from error
    loaded = Loaded(RELEASE, None, places[0], f"{places[0].stem}-against-{places[1].stem}", "")
    return _audited(loaded, request, claim, outcome, making, "")


def _claim(request: ReleaseRequest, pair: tuple[str, str] | None) -> tuple[Claim, Given]:
    """What a request claims, and the two data sets; samples are outputs, whose data sets nobody needs."""
    try:
        if request.samples is not None:
            pair = ("[0]", "[1]")
        if pair is None and split_pair(request.claim)[1] is None:
            raise SpecError(
                "--mechanism needs --data and --neighbor, --pair, or pair=(A, B) in the claim: two data sets, files or "
                "Python literals"
            )
        options = ("--pair", "--pair") if pair is request.pair else ("--data", "--neighbor")
        claim, given = read_claim(request.claim, pair, options=options)
        assert given is not None
        return on_pair(claim), given
    except ClaimError as error:
        raise SpecError(f"--claim: {error}") from error
