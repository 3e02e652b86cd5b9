"""What is left of honest evidence that is compared with its scores alone: all that takes the algorithm."""

from bandana.flows.annexes.compliance.evidence.recompute import FAULTS, POWER, SEARCHES, SETTING
from bandana.flows.annexes.compliance.evidence.standalone import PARTLY, exit_code

NEED_THE_ALGORITHM = (SEARCHES, FAULTS, POWER, SETTING)


def left_out(reason):
    """The parts of evidence that take the algorithm, with the reason why it was not run."""
    return (f"{', '.join(NEED_THE_ALGORITHM)} ({reason})",)


def assert_partly_compared(found, *before, after=(), reason="needs the algorithm"):
    """Nothing differs, and exactly these parts were not compared: the named ones, and those that take the algorithm."""
    assert not found.is_refused, found.differences
    assert found.not_compared == (*before, *left_out(reason), *after)
    assert not found.is_verified
    assert exit_code(found) == PARTLY
