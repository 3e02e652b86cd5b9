"""Releases of diffprivlib as their tutorial audits them: a count, and a histogram under two relations."""

import pytest
from own_cases import example

from bandana.audits.outcome import Verdict
from bandana.flows.annexes.anything.foreign.frozen import examine as examine_frozen
from bandana.flows.annexes.anything.outputs.calls import inspect_call
from bandana.flows.annexes.anything.pairs.release import draw, examine
from bandana.privacy_core import PureDP

DATA, REMOVED, REPLACED = [0, 1, 1], [0, 1], [0, 0, 1]


@pytest.fixture(scope="module")
def releases():
    pytest.importorskip("sklearn")
    try:
        return example("diffprivlib_releases")
    except ModuleNotFoundError as error:
        pytest.skip(f"diffprivlib is not installed: {error}")


def audited(release, neighbor, n_runs):
    caller = inspect_call(release, DATA, neighbor, 0)
    assert caller.seed == "random_state"
    assert caller.is_repeatable
    return examine(draw(caller, DATA, neighbor, n_runs, 0, 300.0), PureDP(1.0), confidence=0.999)


def test_a_mechanism_is_a_priced_primitive(releases):
    found = examine_frozen(lambda data, seed: releases.count(data, seed), DATA, REMOVED, PureDP(1.0), 0)
    assert not found.findings
    assert found.accounted == 1


@pytest.mark.slow
def test_a_histogram_keeps_its_claim_if_a_record_is_removed_and_not_if_one_is_replaced(releases):
    """The first is refuted with probability at most 0.001. The second costs 2; 4,000 runs measured 1.5."""
    assert audited(releases.histogram, REMOVED, 4000).verdict is Verdict.NOT_REFUTED
    assert audited(releases.histogram, REPLACED, 4000).verdict is Verdict.FAIL
