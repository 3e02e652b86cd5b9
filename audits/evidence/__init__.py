"""Evidence that stands alone: one file from which anybody recomputes an audit's bounds, without rerunning the algorithm."""

from bandana.audits.evidence.archive import Evidence, UnusableEvidence, describe, read, seal, to_bytes, write
from bandana.audits.evidence.lines import Line, Verification
from bandana.audits.evidence.recompute import recompute, verify

__all__ = [
    "Evidence",
    "Line",
    "UnusableEvidence",
    "Verification",
    "describe",
    "read",
    "recompute",
    "seal",
    "to_bytes",
    "verify",
    "write",
]
