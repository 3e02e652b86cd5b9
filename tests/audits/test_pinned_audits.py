"""Small audits say what they said when `tests/data/pinned_audits.json` was written, on any processor."""

import json

import pytest

from tests.pinned_audits import AUDITED, PLACE, said

LAPLACE = 0.02
"""Room for bounds from scores with atoms, which the last digit splits in one order or another."""


@pytest.fixture(scope="module")
def both():
    """What is kept, and what is said now."""
    return json.loads(PLACE.read_text(encoding="utf-8")), said()


@pytest.mark.parametrize("name", AUDITED)
def test_every_audit_says_what_it_said(both, name):
    pinned, now = (each[name] for each in both)
    assert now["words"] == pinned["words"], "say in CHANGELOG.md what changed, then python -m tests.pinned_audits"
    assert now["numbers"] == pytest.approx(pinned["numbers"], rel=1e-7, abs=1e-7)
    has_atoms = "Laplace" in str(pinned["words"])
    assert now["bounds"] == pytest.approx(pinned["bounds"], rel=LAPLACE if has_atoms else 1e-5, abs=1e-7)
