"""What `bandana verify` shows: each number that an evidence file states beside the one that was computed anew."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from bandana.audits.contents import numbers_sha256
from bandana.audits.evidence import UnusableEvidence, Verification, read, verify
from bandana.audits.reporting import origin
from bandana.flows.keys import provenance
from bandana.flows.spec.mistakes import SpecError

WIDTH = 150


def check(path: Path) -> Verification:
    """Recomputes an evidence file.

    Raises:
      SpecError: nothing can be recomputed from it.
    """
    try:
        return verify(path)
    except UnusableEvidence as error:
        raise SpecError(str(error)) from error


def render(verification: Verification) -> Table:
    """The table of all lines."""
    table = Table("what", "stated", "recomputed", "ok")
    for line in verification.lines:
        table.add_row(line.what, line.stated, line.recomputed, {True: "yes", False: "NO", None: "-"}[line.is_ok])
    return table


def told(path: Path) -> list[str]:
    """How the evidence came to be, and the hash of its numbers, which are the same whoever computes them again.

    Raises:
      UnusableEvidence: see `bandana.audits.evidence.read`.
    """
    made = origin.lines(provenance.read(read(path).outcome.provenance))
    return [*made, f"numbers   SHA-256 {numbers_sha256(path)}, without the lines above"]


def conclude(path: Path, verification: Verification) -> str:
    """One sentence on whether the evidence holds."""
    n_checked = sum(line.is_ok is not None for line in verification.lines)
    if verification.is_verified:
        return f"{path.name}: verified, {n_checked} lines recomputed and none differs"
    names = "; ".join(line.what for line in verification.differences)
    return f"{path.name}: NOT verified, {len(verification.differences)} of {n_checked} lines differ: {names}"
