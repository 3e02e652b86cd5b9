"""`benchmarks.live_kills` kills many processes; here a few, and what it looks for is planted."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from bandana.flows.annexes.live.api import open_router
from bandana.flows.annexes.live.policy import World
from bandana.flows.annexes.live.router import router_of
from bandana.flows.annexes.live.secrecy import Secrecy, packed
from bandana.flows.annexes.live.store import Store
from benchmarks import live_kills


@pytest.fixture
def killed(tmp_path, monkeypatch):
    monkeypatch.setenv("BANDANA_DATA", str(tmp_path / "data"))
    place, oracle = tmp_path / "router.db", tmp_path / "oracle"
    policy = open_router(router_of(place, live_kills.SETTINGS), Store(str(place)), Secrecy(None), World())
    policy.store.close()
    n_killed = sum(
        live_kills.kill_some(policy, place, oracle, [2 * turn, 2 * turn + 1], 3.0, last)
        for turn, last in enumerate((9, 30, 53))
    )
    assert n_killed == 6
    return place, oracle


def planted(place, statement, **values):
    with Store(str(place)).session() as session:
        session._connection.execute(text(statement), values)


@pytest.mark.slow
def test_what_was_lost_or_doubled_is_seen(killed):
    honest = live_kills.compared(*killed)
    assert (honest.lost, honest.twice, honest.uncharged) == (0, 0, 0)
    assert honest.n_releases > 3
    assert honest.acknowledged > 5
    planted(killed[0], "UPDATE live_records SET reward = :blob WHERE reward IS NOT NULL", blob=b"\x00" + packed(0.4))
    assert live_kills.compared(*killed).lost > 0
    planted(killed[0], "UPDATE live_policies SET releases = releases + 1")
    assert live_kills.compared(*killed).uncharged == 1
    planted(killed[0], "UPDATE live_policies SET releases = releases - 1")
    planted(killed[0], "UPDATE live_releases SET start = start - 1 WHERE start > 0")
    with pytest.raises(Exception, match="budget"):
        live_kills.compared(*killed)
