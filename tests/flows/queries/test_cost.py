"""What a spec will cost: compiling is not what its rounds cost."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from small_spec import SMALL

from bandana.flows.plan.plan import cells_of
from bandana.flows.queries import cost
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
        return None, 5.0 if horizon == 2048 and is_first else 1e-3  # it jumps over phases: flat

    monkeypatch.setattr(cost, "played", trial)
    assert cost.block_seconds(_cell(10**6)) == pytest.approx(1e-3, rel=0.01)


def test_a_long_trial_is_repeated_once_and_a_short_one_three_times(monkeypatch):
    for times, expected in (([0.9, 0.4, 0.1], 0.4), ([0.03, 0.02, 0.01, 0.05], 0.01)):
        left = list(times)
        monkeypatch.setattr(cost, "played", lambda cell, horizon, n_reps, left=left: (None, left.pop(0)))
        assert cost._shortest(_cell(), 10, 1) == expected


def test_time_in_which_other_work_runs_is_not_counted(monkeypatch):
    monkeypatch.setattr(cost, "run", lambda *given, **named: time.sleep(0.3))
    assert cost.played(_cell(), 10, 1)[1] < 0.15
    assert cost.replay_seconds(_audited()[0]) * 8 < 0.15


def _audited():
    text = SMALL.replace("epsilon: [1]", "epsilon: [1, 2]")
    return [cell for cell in cells_of(parse_spec(text, "small.yaml", Path())) if cell.is_private]


class _Journal:
    def __init__(self, *events):
        self.read = lambda: list(events)


def test_of_many_cells_one_level_of_a_calibration_tells_for_all(monkeypatch):
    text = SMALL.replace("epsilon: [1]", "epsilon: [1, 2, 4]")
    cells = cells_of(parse_spec(text, "small.yaml", Path()))
    tried = []
    monkeypatch.setattr(cost, "block_seconds", lambda cell: tried.append(cell) or float(len(tried)))
    assert list(cost.block_paces(cells).values()) == [1.0 + place for place in range(len(cells))]
    tried.clear()
    paces = cost.block_paces(cells, 100)
    forms = [(cell.entry.label, cell.settings.calibration) for cell in cells]
    assert len(tried) == len(set(forms)) < len(cells)
    for cell, form in zip(cells, forms, strict=True):
        assert paces[cell.name] == pytest.approx(1.0 + list(dict.fromkeys(forms)).index(form))
    tried.clear()
    assert list(cost.block_paces(cells, 1).values()) == pytest.approx([1.0] * len(cells))
    assert len(tried) == 1


def test_an_audit_takes_as_long_as_its_runs_and_one_trial_tells_for_all_levels(monkeypatch):
    tried = []
    cells = _audited()
    assert len({cell.entry.label for cell in cells}) < len(cells), "several levels of one algorithm"
    monkeypatch.setattr(cost, "replay_seconds", lambda cell: tried.append(cell.entry.label) or 1e-3)
    slow = cost.audits_seconds(cells)
    assert sorted(set(tried)) == sorted(tried)
    monkeypatch.setattr(cost, "replay_seconds", lambda cell: 1e-6)
    quick = cost.audits_seconds(cells)
    assert set(slow) == set(quick) == {cell.name for cell in cells}
    assert all(slow[name] > 10 * quick[name] for name in slow)


def test_an_audit_of_the_same_size_takes_as_long_as_the_last_one(monkeypatch):
    monkeypatch.setattr(cost, "replay_seconds", lambda cell: 1e-3)
    first, second, *_ = cells = _audited()
    event = {"event": "audit done", "cell": first.name, "replays": first.audit.replays, "seconds": 77.0}
    found = cost.audits_seconds(cells, _Journal(event))
    assert found[first.name] == 77.0
    assert found[second.name] != 77.0
    assert cost.audits_seconds(cells, _Journal({**event, "replays": 3}))[first.name] != 77.0
    assert cost.audits_seconds(cells, _Journal({**event, "seconds": 0.1}))[first.name] != 77.0, "it was in the store"


def test_a_trial_of_replays_plays_what_the_audit_replays():
    assert 0 < cost.replay_seconds(_audited()[0]) < 1
