"""The audit of a live policy passes the product, and catches each planted fault for its own reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from bandana.algorithms import catalog
from bandana.flows.annexes.live.audit import (
    Person,
    Subject,
    Tape,
    _compared,
    audit,
    eventful,
    first_violation,
    persons_of,
    play,
)
from bandana.flows.annexes.live.faults import FAULTS
from bandana.flows.annexes.live.router import deploy, deployable, example, router_of, why_not
from bandana.privacy_core import ScriptedLedger
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


ENTRIES = [
    (entry, calibration)
    for entry in catalog.known() if entry.is_private and not entry.stated and not why_not(entry)
    for calibration in entry.calibrations
]  # fmt: skip
PAGE = Path(__file__).parents[4] / "docs/how-to/ab-test.md"


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


TREE = {"algorithm": "dp-ucb", "claim": "pure(epsilon=1, relation=reward)", "n_actions": 2, "n_asks": 256}


@pytest.mark.parametrize("name", ["noise redrawn after a crash", "state restored after a release"])
def test_noise_that_was_seen_and_is_not_stored_is_caught_where_it_fits_into_the_claim(name):
    """A node of a tree costs a ninth of the claim, so that a second draw exceeds no budget in a short script."""
    violation, n_pairs = first_violation(FAULTS[name], deploy(router_of("", TREE)), 12)
    assert "noisy outputs that were seen are not accounted for" in violation
    assert n_pairs == 0


def test_a_release_that_was_lost_read_those_who_had_entered_when_it_was_made():
    """Redrawn noise names another arm, so that another person enters at the place that the lost release had read."""
    deployed = deploy(router_of("", TREE))
    persons, data = persons_of(deployed.router, 26), Tape()
    play(Subject(), deployed, persons, data)
    assert any(data.order[place] != person for readers in data.readers for place, person in readers.items())
    neighbor = Tape(ScriptedLedger(1, data.releases, keeps_values=True), 1)
    play(Subject(), deployed, [persons[0], Person(1, ((0.9, 1.0),)), *persons[2:]], neighbor)
    hidden = Tape(ScriptedLedger(1, data.releases, keeps_values=True), 1)
    play(Subject(), deployed, persons, hidden)
    hidden.releases, hidden.readers = data.releases, data.readers
    assert _compared(hidden, neighbor, 1) == ""
    hidden.readers = [data.order] * len(data.readers)
    assert "allowed are 0" in _compared(hidden, neighbor, 1)


def test_a_script_without_releases_is_played_with_short_batches():
    deployed = deploy(router(TREE, algorithm="dp-se"))
    changed, (note,) = eventful(deployed, 12)
    assert note.startswith("0 releases lie in so short a script, so it is played at horizon 8, failure 0.1, length_scale")
    assert changed.claim == deployed.claim
    short = Tape()
    play(Subject(), changed, persons_of(changed.router, 12), short)
    assert len(short.releases) >= 2
    assert eventful(deploy(router(ARMS)), 12)[1] == ()


@pytest.mark.slow
def test_the_page_lists_every_entry_that_can_be_deployed():
    table = PAGE.read_text("utf-8").partition("| calibrations | entries |\n|---|---|\n")[2].partition("\n\n")[0]
    listed = {
        (label, calibration)
        for line in table.splitlines()
        for label in line.split("`")[1::2] for calibration in line.split("|")[1].strip().split(", ")
    }  # fmt: skip
    assert listed == {(entry.label, calibration) for entry, calibration, reason in deployable() if not reason}


@pytest.mark.nightly
@pytest.mark.parametrize(("entry", "calibration"), ENTRIES, ids=lambda part: getattr(part, "label", part))
def test_every_entry_that_can_be_deployed_passes_with_all_faults_caught(entry, calibration):
    """In `make test`: one entry, with each fault for its reason."""
    reason = {(one.label, name): reason for one, name, reason in deployable()}[entry.label, calibration]
    if reason:
        pytest.skip(reason)
    verdict = audit(example(entry, calibration), FAULTS)
    assert verdict.verdict == "PASS", verdict


@pytest.mark.slow
def test_contexts_and_wait():
    verdict = audit(router(VECTORS, wait=50), {"id": FAULTS["an id that encodes the reward"]}, 10)
    assert verdict.verdict == "PASS", verdict
    assert "wait was cut from 50 to 3" in verdict.caveats
