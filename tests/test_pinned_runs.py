"""Every calibration of the catalog plays what it played when `tests/data/pinned_runs.json` was written, on any processor."""

import json

import pytest

from tests.pinned_runs import PLACE, played


def test_every_run_is_what_it_was():
    pinned, now = json.loads(PLACE.read_text(encoding="utf-8")), played()
    assert list(pinned) == list(now), "python -m tests.pinned_runs"
    changed = [
        name
        for name, (digest, *numbers) in now.items()
        if digest != pinned[name][0] or numbers != pytest.approx(pinned[name][1:], rel=1e-8, abs=1e-8)
    ]
    assert not changed, "say in CHANGELOG.md whose numbers changed, then python -m tests.pinned_runs"
