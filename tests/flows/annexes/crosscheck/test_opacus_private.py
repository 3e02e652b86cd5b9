"""Opacus's private parts are as `opacus_private` uses them; these tests fail with a version in which they are not."""

import pytest

from bandana.privacy_core import GaussianDP

DELTA = 1e-5


def test_the_interval_ends_where_opacus_s_own_epsilon_lies_and_holds_the_truth():
    from opacus.accountants.prv import PRVAccountant  # torch takes seconds, which no other test needs while it is collected

    from bandana.flows.annexes.crosscheck.opacus_private import prv_interval

    accountant = PRVAccountant()
    accountant.history = [(2.0, 1.0, 4)]
    low, high = prv_interval(accountant.history, DELTA, eps_error=0.01, delta_error=DELTA / 1000)
    assert high == accountant.get_epsilon(DELTA, eps_error=0.01)
    assert low < GaussianDP(1.0).epsilon(DELTA) < high
    assert high - low == pytest.approx(0.02, rel=0.1)
