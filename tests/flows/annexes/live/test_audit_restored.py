"""A snapshot that may be restored renumbers persons, which is no violation."""

from __future__ import annotations

from bandana.flows.annexes.live.audit import Subject, first_violation
from bandana.flows.annexes.live.router import deploy, router_of


def test_a_restored_store_hides_the_same_person():
    """`dp-se` releases nothing in so short a script, so the store goes back to its snapshot."""
    settings = {"algorithm": "dp-se", "claim": "pure(epsilon=1, relation=reward)", "n_actions": 2, "n_asks": 256}
    assert first_violation(Subject(), deploy(router_of("unused.db", settings)), 9) == ("", 61)
