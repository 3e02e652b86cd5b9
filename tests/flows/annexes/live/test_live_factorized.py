"""Live policies on factorized sums: secure noise and several processes in one sequence of rows."""

from __future__ import annotations

import pytest

from bandana.flows.annexes.live.ledgers import NotingLedger
from bandana.flows.annexes.live.policy import World
from bandana.flows.annexes.live.router import deploy, router_of
from bandana.flows.annexes.live.states import decode, encode
from tests.flows.annexes.live.live_worlds import VECTORS, Clock, opened, told, world

TIGHT = {**VECTORS, "calibration": "tight"}


def vectors(number):
    return [[1.0, 0.0], [0.0, 1.0], [0.6, number % 3 / 4]]


def test_linucb_asks_and_tells_with_secure_noise(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", World(clock=clock), TIGHT)
    told(policy, lambda number, action: float(action == 1), clock, 5, context=vectors)
    again = opened(tmp_path / "a.db", World(clock=clock), TIGHT)
    told(again, lambda number, action: 1.0, clock, 3, context=vectors)
    told(policy, lambda number, action: 0.0, clock, 3, context=vectors)
    assert policy.privacy().n_releases == again.privacy().n_releases == 10
    assert policy.privacy().noise.startswith("secure")
    assert policy.privacy().accounted == again.privacy().accounted, "a record pays once for all rows"
    assert policy.privacy().accounted.endswith("-GDP")


def test_processes_that_take_turns_draw_what_one_would(tmp_path):
    """Rows of a sequence go on in whatever process: each knows the ledger's sequence from the store."""
    shown = []
    for n_processes in (1, 2):
        clock, number = Clock(), 0
        own = world(clock)
        place = tmp_path / f"{n_processes}.db"
        policies = [opened(place, own, TIGHT) for _ in range(n_processes)]
        actions = []
        for number in range(12):
            policy = policies[number % n_processes]
            choice = policy.ask(vectors(number))
            assert policy.tell(choice.id, float(choice.action == 1)) == "kept"
            actions.append(choice.action)
            clock.now += 11
        with policies[0].store.session() as session:
            shown.append((actions, [dict(row) for row in session.releases()]))
    rows, others = ([{**row, "policy": ""} for row in each[1]] for each in shown)
    assert shown[0][0] == shown[1][0]
    assert rows == others
    assert len(rows) == 11


def test_a_row_of_another_process_is_refused_out_of_its_turn(tmp_path):
    clock = Clock()
    policy = opened(tmp_path / "a.db", world(clock), TIGHT)
    told(policy, lambda number, action: 1.0, clock, 4, context=vectors)
    with policy.store.session() as session:
        rows = session.releases()
    ledger = NotingLedger(policy.deployed.ledger())
    with pytest.raises(ValueError, match="carried records must be those that entered"):
        ledger.charge([rows[0], rows[2]])


def test_the_state_of_fixed_point_comes_back():
    deployed = deploy(router_of("unused.db", TIGHT))
    sums = deployed.algorithm.sums
    state = sums.init(1, (2, 3))
    state.memory.fixed[:] = [[[2**200, -(3**90)]]]
    assert decode(encode((state,)))[0].memory.fixed == [[[2**200, -(3**90)]]]
