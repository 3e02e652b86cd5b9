"""The audit without statistics: it finds each planted fault, says why, and finds nothing in an honest run."""

import pytest

from algorithms.catalog import find
from audits.controls import CONTROLS
from audits.sensitivity import Case, examine, search
from privacy_core import GaussianDP, Interval, RenyiDP

UNIT = Interval(0.0, 1.0)
ENTRY = find("adar-ucb")
CLAIM = GaussianDP(1.0)


def _honest(calibration="printed", n_actions=2):
    return ENTRY.build(ENTRY.settings(n_actions, UNIT, 3.1, calibration, RenyiDP(2.0, 1.0)))


@pytest.mark.parametrize("calibration", ["printed", "tight"])
@pytest.mark.parametrize("n_actions", [2, 5])
def test_an_honest_algorithm_has_no_counterexample(calibration, n_actions):
    assert search(_honest(calibration, n_actions), UNIT, CLAIM, max_examples=200) is None


REASONS = {
    "noise-redrawn": "compose to",
    "no-forgetting": "exact value moved",
    "noise-for-N": "times its sensitivity",
    "one-noise-for-all-arms": "compose to",
    "first-pull-exact": "without noise",
    "not-clipped": "times its sensitivity",
}


@pytest.mark.parametrize("control", CONTROLS["adar-ucb"], ids=lambda control: control.name)
def test_each_fault_is_found_for_its_own_reason(control):
    found = search(control.plant(_honest()), UNIT, CLAIM, max_examples=100)
    assert found is not None
    assert REASONS[control.name] in str(found)


def test_a_counterexample_is_shrunk_to_something_a_person_can_read():
    found = search(CONTROLS["adar-ucb"][2].plant(_honest()), UNIT, CLAIM, max_examples=100)
    assert found is not None
    assert len(found.case.rewards) == 4
    assert all(reward == 0 for row in found.case.rewards for reward in row)


def test_a_decision_from_values_that_were_not_released_is_found():
    class Peeking(type(_honest())):
        def absorb(self, sensitive, released, record, ledger):
            sensitive, released = super().absorb(sensitive, released, record, ledger)
            released.mean[:, 0] += 100 * (record.rewards[:, 0] > 0)
            return sensitive, released

    honest = _honest()
    peeking = Peeking(**{name: getattr(honest, name) for name in honest.__dataclass_fields__})
    case = Case(tuple((0.0, 0.0) for _ in range(12)), 0, (1.0, 1.0), 0)
    assert examine(honest, case, UNIT, CLAIM) is None
    found = examine(peeking, case, UNIT, CLAIM)
    assert found is not None
    assert "not released" in found.reason
