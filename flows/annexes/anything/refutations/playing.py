"""One case played: each of its audits through real runs of the code, in the packages that the case pins.

Each set of pinned packages is installed once, in a virtual environment of the data folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from threadpoolctl import threadpool_limits

from bandana.audits.claims import ClaimError, parse
from bandana.audits.evidence import to_bytes
from bandana.audits.outcome import Effort
from bandana.flows.annexes.anything.files import RELEASE
from bandana.flows.annexes.anything.given_pairs import on_pair
from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.flows.annexes.anything.pairs.outcome import ReleaseOutcome
from bandana.flows.annexes.anything.pairs.stages import audit_subject
from bandana.flows.annexes.anything.pairs.subject import Subject
from bandana.flows.annexes.anything.refutations.campaign import FAILED
from bandana.flows.annexes.anything.refutations.case import Case, Planned
from bandana.flows.annexes.anything.refutations.serving import claim_of, served
from bandana.flows.folder.store import write_whole
from bandana.flows.keys.provenance import Making, about_audits
from bandana.flows.texts.json_text import JsonObject
from bandana.flows.texts.mistakes import SpecError

_DELTA = 1e-5
_ANSWER = 300.0
_INSTALLED = "installed.json"


@dataclass(frozen=True)
class Played:
    """One audit that was made.

    Attributes:
      entry: for machines: what was audited, in which packages, and the outcome.
      evidence: the file's bytes; None where nothing was audited.
    """

    entry: JsonObject
    evidence: bytes | None


def play(case: Case, folder: Path, environments: Path, *, confidence: float, seed: int) -> Iterator[Played]:
    """Makes all audits of a case, one after the other.

    Args:
      case: what is audited.
      folder: of the case.
      environments: folder of the virtual environments.
      confidence: of each bound.
      seed: root of the campaign's seeds; each audit has seeds of its own.

    Raises:
      SpecError: packages cannot be installed.
    """
    for audit in case.planned:
        python = python_with(case.packages[audit.packages], environments)
        entry = {
            "mechanism": audit.mechanism,
            "role": audit.role,
            "release": audit.release,
            "parameters": audit.parameters,
            "packages": case.packages[audit.packages],
            "pair": audit.pair,
        }
        began, own = time.monotonic(), int.from_bytes(sha256(f"{seed} {folder.name} {audit.name}".encode()).digest()[:4])
        try:
            outcome, evidence = _audited(audit, python, folder, confidence, own % 2**31)
        except (BrokenSubject, ClaimError) as error:
            yield Played(entry | {"verdict": FAILED, "claim": audit.claim, "reasons": [str(error)]}, None)
            continue
        facts = outcome.entry(audit.name) | {
            "seconds": round(time.monotonic() - began, 1),
            "evidence_sha256": sha256(evidence).hexdigest(),
        }
        yield Played(entry | facts, evidence)


def _audited(audit: Planned, python: Path, folder: Path, confidence: float, seed: int) -> tuple[ReleaseOutcome, bytes]:
    """One audit and its evidence."""
    making = Making()
    claim = on_pair(parse(claim_of(python, folder, audit), relation="pair", source=audit.mechanism))
    effort = Effort(audit.runs, confidence, _DELTA, 1, seed)
    with threadpool_limits(1), served(python, folder, audit, _ANSWER) as program:
        caller = program.caller(audit.data, audit.neighbor, seed)
        subject = Subject(caller, audit.data, audit.neighbor, audit.pair or "the given pair")
        outcome = audit_subject(subject, claim.stated, effort, audit.seconds)
    who = {"kind": RELEASE, "name": f"{folder.name}: {audit.name}"}
    record = outcome.recorded(claim, who, about_audits("one given pair of data sets", (), seed))
    return outcome, to_bytes(replace(record, provenance=making.record(is_anonymous=True)))


def python_with(packages: Sequence[str], folder: Path) -> Path:
    """The interpreter of a virtual environment that holds these packages alone.

    Args:
      packages: every package that is needed, pinned; pip adds none.
      folder: which holds the environments.

    Raises:
      SpecError: a package cannot be installed; the message ends with pip's last line.
    """
    wanted = sorted(packages)
    words = json.dumps([sys.version.split()[0], *wanted])
    first = packages[0].partition("==")[0] if packages else "none"
    place = folder / f"{first}-{sha256(words.encode()).hexdigest()[:12]}"
    python = place / "bin" / "python"
    if (place / _INSTALLED).is_file():
        return python
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    _install([sys.executable, "-m", "venv", *([] if wanted else ["--without-pip"]), str(place)])
    if wanted:
        _install([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *wanted])
    write_whole(place / _INSTALLED, words.encode())
    return python


def _install(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip() or "no message").split("\n")[-1]
        raise SpecError(f"packages: {' '.join(command[-3:])}: {last}")
