"""A release of a case as a program that runs in the case's own packages, and answers as long as it is audited."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile

from bandana.flows.annexes.anything.outputs.calls import BrokenSubject
from bandana.flows.annexes.anything.programs import Program
from bandana.flows.annexes.anything.refutations.case import PROGRAM, STATED, Planned

WORKER = Path(__file__).with_name("worker.py")


def command(python: Path, folder: Path, audit: Planned) -> list[str]:
    """The command that keeps the line protocol for one audit; `bandana audit-release exec:...` runs it too."""
    return [str(python), str(WORKER), str(folder / PROGRAM), audit.release, json.dumps(audit.parameters)]


def claim_of(python: Path, folder: Path, audit: Planned) -> str:
    """The claim in words: as written in the case, or as the library states it.

    Raises:
      BrokenSubject: the library states none; the message ends with the last line of its errors.
    """
    if audit.claim != STATED:
        return audit.claim
    done = subprocess.run(
        [*command(python, folder, audit), "--state"], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise BrokenSubject(f"{audit.name}: states no claim: {done.stderr.strip().split(chr(10))[-1]}")
    return done.stdout.strip().split("\n")[-1]


@contextmanager
def served(python: Path, folder: Path, audit: Planned, seconds: float) -> Iterator[Program]:
    """Starts the program; it ends with the block.

    Args:
      python: of the case's packages.
      folder: of the case.
      audit: which release, at which parameters.
      seconds: that one answer may take.

    Raises:
      BrokenSubject: it ends before it answers; the message ends with the last line of its errors.
    """
    with TemporaryFile() as errors:
        process = subprocess.Popen(
            [*command(python, folder, audit), "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
        )
        assert process.stdout is not None
        try:
            port = process.stdout.readline().strip()
            if not port.isdigit():
                process.wait()
                errors.seek(0)
                last = errors.read().decode("utf-8", "replace").strip().split("\n")[-1]
                raise BrokenSubject(f"{audit.name}: its program does not start: {last[:300]}")
            yield Program(words=(audit.name,), address=("127.0.0.1", int(port)), seconds=seconds)
        finally:
            process.kill()
            process.communicate()
