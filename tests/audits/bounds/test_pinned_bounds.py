"""Every bound says today what it said when `tests/data/pinned_bounds.json` was written, on any processor."""

import json

import pytest

from tests.pinned_bounds import PLACE, said


def test_every_bound_says_what_it_said():
    pinned, now = json.loads(PLACE.read_text(encoding="utf-8")), said()
    assert list(now) == list(pinned)
    changed = {
        name: (pinned[name], value)
        for name, value in now.items()
        if value != pytest.approx(pinned[name], rel=1e-5, abs=1e-9)
    }
    assert not changed, "say in CHANGELOG.md which bounds changed, then python -m tests.pinned_bounds"
