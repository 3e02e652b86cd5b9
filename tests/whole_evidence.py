"""Evidence that follows from its own scores, as far as the core reads it; the annex `compliance` compares all of it."""

import pytest

from bandana.audits.evidence import read, recompute, to_bytes


def assert_follows_from_its_scores(path):
    """The file is whole, says nothing beside its outcome, and each of its bounds is that of its scores."""
    found = read(path)
    assert found.sha256 == found.sha256_found
    assert to_bytes(found.outcome) == path.read_bytes()
    for bound in found.outcome.bounds:
        assert recompute(bound, found.outcome.scores[bound.scores]) == pytest.approx(bound.lower, rel=1e-9, abs=1e-12), bound
