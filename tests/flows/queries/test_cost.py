"""What a spec will cost: compiling is not what its rounds cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_spec import SMALL

from bandana.flows.queries import cost
from bandana.flows.spec.plan import cells_of
from bandana.flows.spec.spec import parse_spec


def _cell(horizon=500):
    text = SMALL.replace("horizon: 500", f"horizon: {horizon}")
    return cells_of(parse_spec(text, "small.yaml", Path()))[0]


def test_a_trial_that_compiles_is_not_carried_on_to_the_horizon(monkeypatch):
    """Kernels of a first release compile in the first trial that is long enough to hold one."""
    seen = []

    def trial(cell, horizon, n_reps):
        is_first = (horizon, n_reps) not in seen
        seen.append((horizon, n_reps))
        return 5.0 if horizon == 2048 and is_first else 1e-3  # it jumps over phases: flat

    monkeypatch.setattr(cost, "_trial", trial)
    assert cost.block_seconds(_cell(10**6)) == pytest.approx(1e-3, rel=0.01)


def test_a_long_trial_is_repeated_once_and_a_short_one_three_times(monkeypatch):
    for times, expected in (([0.9, 0.4, 0.1], 0.4), ([0.03, 0.02, 0.01, 0.05], 0.01)):
        left = list(times)
        monkeypatch.setattr(cost, "_trial", lambda cell, horizon, n_reps, left=left: left.pop(0))
        assert cost._shortest(_cell(), 10, 1) == expected
