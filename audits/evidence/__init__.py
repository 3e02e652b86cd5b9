"""Evidence that stands alone: one file from which anybody recomputes an audit's bounds, without rerunning the algorithm."""

from bandana.audits.evidence.archive import Evidence, UnusableEvidence, describe, read, recompute, seal, to_bytes, write

__all__ = ["Evidence", "UnusableEvidence", "describe", "read", "recompute", "seal", "to_bytes", "write"]
