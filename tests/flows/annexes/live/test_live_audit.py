"""The audit of a live policy passes the product, and catches each planted fault for its own reason."""

from __future__ import annotations

import pytest

from bandana.flows.annexes.live.audit import Subject, audit, first_violation
from bandana.flows.annexes.live.faults import FAULTS
from bandana.flows.annexes.live.router import deploy, router_of
from tests.flows.annexes.live.live_worlds import ARMS, VECTORS

WORDS = {
    "a reward told twice counts twice": "moves by 2, allowed are 1",
    "noise redrawn after a crash": "compose to more than the claim",
    "state restored after a release": "compose to more than the claim",
    "a timestamp in a released row": "Laplace at",
    "rewards shift a batch's boundary": "another schedule",
    "an id that encodes the reward": "others see",
    "batches count answers": "another schedule",
}


def router(settings, **more):
    return router_of("unused.db", {**settings, **more})


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_caught_for_its_reason(name):
    deployed = deploy(router(ARMS, n_actions=2))
    assert WORDS[name] in first_violation(FAULTS[name], deployed, 12)[0]


def test_the_product_passes():
    verdict = audit(router(ARMS, n_actions=2), {}, 8)
    assert (verdict.verdict, verdict.violation) == ("PASS", "")
    assert verdict.n_pairs > 40


def test_times_of_answers_are_private_unless_records_enter_on_arrival():
    """With `arrival` the claim is on values alone; held against times too, the same code fails."""
    on_arrival = deploy(router(ARMS, n_actions=2, enters="arrival"))
    assert first_violation(Subject(), on_arrival, 8)[0] == ""
    pretending = deploy(router(ARMS, n_actions=2))
    object.__setattr__(pretending, "router", pretending.router)

    class Eager(Subject().policy):
        """Lets records enter on arrival, although the settings say deadline."""

        def _due(self, session, progress, n_asked, now):
            named = progress.named
            return session.waiting(
                named.action, 1, before=n_asked + 1 - self.router.wait, asked_by=now - self.router.deadline, or_told=True
            )

    assert first_violation(Subject(Eager), pretending, 8)[0]


def test_a_missed_fault_makes_it_inconclusive():
    assert audit(router(ARMS, n_actions=2), {"none": Subject()}, 5).verdict == "INCONCLUSIVE"


@pytest.mark.slow
def test_contexts_and_wait():
    verdict = audit(router(VECTORS, wait=50), {"id": FAULTS["an id that encodes the reward"]}, 10)
    assert verdict.verdict == "PASS", verdict
    assert "wait was cut from 50 to 3" in verdict.caveats
