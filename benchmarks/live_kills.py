"""Processes that ask and tell on one live policy are killed at random moments: nothing is drawn twice or lost.

    python -m benchmarks.live_kills [KILLS]

Two processes share a SQLite store. Half of the kills come after a random time, half at a random transaction just before or
just after its commit. An oracle file takes a line before each record enters, and after each acknowledged reward.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandana.flows.annexes.live.api import open_router
from bandana.flows.annexes.live.ledgers import NotingLedger
from bandana.flows.annexes.live.policy import Policy, World
from bandana.flows.annexes.live.router import router_of
from bandana.flows.annexes.live.secrecy import Secrecy, hashed, number
from bandana.flows.annexes.live.store import RECORDS, Store

SETTINGS: dict[str, Any] = {
    "algorithm": "dp-imed", "claim": "pure(epsilon=1, relation=reward)", "n_actions": 3, "deadline": 0, "wait": 6,
    "book": "kills", "budget": {"epsilon": 1.01},
}  # fmt: skip


class Outcome(NamedTuple):
    """What was seen after some kills."""

    n_asked: int
    n_releases: int
    acknowledged: int
    """Rewards whose `tell` returned `kept`."""
    lost: int
    """Acknowledged ones that neither wait in the store nor entered with their value."""
    twice: int
    """Records that lie in two releases."""
    uncharged: int
    """Releases that the ledger of a new process does not know."""


class _Watched(Policy):
    oracle = -1

    def _entered(self, session: Any, progress: Any, row: Any) -> Any:
        reward = None if row["reward"] is None else number(row["reward"][1:])
        write(self.oracle, {"entered": row["number"], "place": progress.n_entered, "reward": reward})
        return super()._entered(session, progress, row)


def write(oracle: int, line: dict[str, Any]) -> None:
    """One line, which survives the kill."""
    os.write(oracle, (json.dumps(line) + "\n").encode())


def work(deployed: Any, place: Path, oracle: Path, seed: int, last: int) -> None:
    """Asks and tells until it is killed: by itself at the `last` point that transactions reach, if that is above 0."""
    draws, left = np.random.Generator(np.random.SFC64(seed)), [last]

    def reached(_: str) -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    policy = _Watched(deployed, Store(str(place)), Secrecy(None), World(reached=reached))
    policy.oracle = os.open(oracle, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    waiting = []
    while True:
        waiting.append(policy.ask())
        if len(waiting) > draws.integers(1, 5):
            choice, reward = waiting.pop(int(draws.integers(len(waiting)))), int(draws.integers(0, 9)) / 8
            if policy.tell(choice.id, reward) == "kept":
                write(policy.oracle, {"kept": choice.id, "reward": reward})


def kill_some(policy: Policy, place: Path, oracle: Path, seeds: Sequence[int], seconds: float, last: int) -> int:
    """Starts one process a seed, kills them after so many seconds, and counts the kills."""
    children = []
    for seed in seeds:
        if (pid := os.fork()) == 0:
            try:
                work(policy.deployed, place, oracle, seed, last)
            finally:
                os._exit(1)
        children.append(pid)
    time.sleep(seconds)
    for pid in children:
        os.kill(pid, signal.SIGKILL)
    statuses = [os.waitpid(pid, 0)[1] for pid in children]
    if wrong := [status for status in statuses if not os.WIFSIGNALED(status)]:
        raise RuntimeError(f"{len(wrong)} processes ended by themselves, which none should")
    return len(statuses)


def compared(place: Path, oracle: Path) -> Outcome:
    """The store against the oracle, as a new process sees it."""
    policy = open_router(None, Store(str(place)), Secrecy(None), World())
    rows, counts = policy.releases(), policy.counts()
    with policy.store.session() as session:
        records: dict[Any, Any] = {row["id"]: row for row in session.everything()[RECORDS.name]}
    entered: dict[int, Any] = {}
    kept: dict[str, float] = {}
    for text in oracle.read_text().splitlines() if oracle.exists() else []:
        line = json.loads(text)
        if "kept" in line:
            kept[hashed(line["kept"])] = line["reward"]
        else:
            entered[line["entered"]] = line["reward"]  # the last try is the one that was stored
    lost = 0
    for id_, reward in kept.items():
        record = records.get(id_)
        if record is None:
            lost += 1
        elif record["entered"]:
            lost += entered[record["number"]] != reward
        else:
            lost += record["reward"] is None or number(record["reward"][1:]) != reward
    read = np.zeros(counts["entered"] + 1, dtype=int)
    for row in rows:
        read[row["start"] : row["stop"]] += 1
    ledger = NotingLedger(policy.deployed.ledger())
    ledger.charge(rows)  # which refuses what exceeds the claim
    uncharged = abs(counts["releases"] - ledger.n_charged)
    return Outcome(counts["asked"], len(rows), len(kept), lost, int((read > 1).sum()), uncharged)


def main(n_kills: int, seed: int = 1) -> int:
    """Kills that many processes, two at once, and prints what was seen; the exit code is 1 if anything was wrong."""
    draws, done = np.random.Generator(np.random.SFC64(seed)), 0
    with tempfile.TemporaryDirectory() as name:
        os.environ["BANDANA_DATA"] = f"{name}/data"
        place, oracle = Path(name) / "router.db", Path(name) / "oracle"
        policy = open_router(router_of(place, SETTINGS), Store(str(place)), Secrecy(None), World())
        policy.store.close()
        outcome = compared(place, oracle)
        while done < n_kills:
            last = int(draws.integers(1, 40)) if draws.random() < 0.5 else -1
            seeds, moment = draws.integers(0, 2**31, 2).tolist(), float(draws.uniform(0.02, 0.6))
            done += kill_some(policy, place, oracle, seeds, moment, last)
            if done % 20 < 2 or done >= n_kills:
                outcome = compared(place, oracle)
                print(f"{done:5} killed; {outcome}", flush=True)
                if outcome.lost or outcome.twice or outcome.uncharged:
                    return 1
    print(f"{done} processes killed: no reward lost, no release drawn twice, no charge missing")
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
