"""Cost of a spec, before it runs: a short trial of each algorithm on this machine, and what audits took before.

An estimate, not a promise: it tells minutes from hours. It counts processor time, the least of a few trials, so that other
work on this machine does not change it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.tables import random_table
from bandana.algorithms.protocol import EpisodicStream, Stream
from bandana.algorithms.run import run
from bandana.flows.folder.journal import Journal
from bandana.flows.plan.cells import Cell
from bandana.flows.problems.kinds import environment_of
from bandana.privacy_core import LiveLedger, ReproducibleNoise

DAY = 86400.0
"""Seconds of work beyond which a command asks whether it is meant."""
_QUICK, _ANY = 10**10, 2 * 10**7
"""Rounds, over all replications, that take less than a day: of algorithms that jump over phases, and of any."""
_ENOUGH = 0.1  # seconds of one trial: longer ones tell no more
_FIRST_HORIZON, _GROWTH = 256, 8
_FIRST_OF_KERNELS = 32
"""Rounds that take milliseconds, and cost the same each."""
_FEW, _LEAST = 8, 1e-6
"""Replicates of a trial; and seconds that each takes at least, where trials differ by less than they are measured."""
_SEED = 1
_AUDIT_FLOOR, _RUNS = 4.0, 25
"""Seconds of an audit of any size on one core; runs of its algorithm for each replay, over both budgets, pairs and faults.

Measured by `python -m benchmarks.audit_cost DATA --quick` on audits of the quick benchmark.
"""
_SCORED = 1.5e-6
"""Seconds that a replay takes beside its run."""
_SLOWEST = 100
"""Time of the slowest replays over that of arms, about."""
_EXAMPLES = 200
"""Cases of the deterministic audit that fit in the floor."""
_MANY = 512  # replicates of a trial of replays


def may_take_days(work: Iterable[tuple[Sequence[Cell], Sequence[str]]], workers: int) -> bool:
    """True if it is worth the seconds to measure how long it takes: a rough count of rounds and replays says so.

    Args:
      work: cells, and the steps on them.
      workers: that share it.
    """
    quick, other, audits = 0, 0, 0.0
    for cells, steps in work:
        for cell in cells if "benchmark" in steps else ():
            rounds = cell.spec.replications * cell.spec.horizon
            is_quick = cell.settings.problem.dimension is None and not cell.entry.stated
            quick, other = quick + rounds * is_quick, other + rounds * (not is_quick)
        efforts = [cell.audit for cell in cells if cell.is_private] if "audit" in steps else []
        audits += sum(seconds_of_audit(each.replays, each.examples) for each in efforts)
    return max(quick / _QUICK, other / _ANY, audits * _SLOWEST / DAY) > workers


def block_paces(cells: Sequence[Cell], most: int | None = None) -> dict[str, float]:
    """Cell's name -> seconds of a full block on one core.

    Args:
      cells: in the order of the spec, in which neighbors are mostly forms of one algorithm.
      most: how many are measured, one for all levels of a calibration on an environment; the others are as quick as the last
        one before them, a replicate and round. None: all.
    """

    def kind(cell: Cell) -> tuple[str, ...]:
        return (cell.name,) if most is None else (cell.entry.label, cell.settings.calibration or "", cell.environment.label)

    firsts: dict[tuple[str, ...], Cell] = {}
    for cell in cells:
        firsts.setdefault(kind(cell), cell)
    stride = 1 if most is None else -(-len(firsts) // max(1, most))
    paces: dict[tuple[str, ...], float] = {}
    pace = 0.0
    for place, (form, cell) in enumerate(firsts.items()):
        if place % stride == 0:
            pace = block_seconds(cell) / (cell.spec.block_size * cell.spec.horizon)
        paces[form] = pace
    return {cell.name: paces[kind(cell)] * cell.spec.block_size * cell.spec.horizon for cell in cells}


def block_seconds(cell: Cell) -> float:
    """Seconds that a full block takes on one core, by growing trials and the slope of their times.

    The horizon grows until a trial is long enough to measure, then time is carried on to the cell's horizon with the last
    slope: linear for an algorithm that looks at each round, flat for one that jumps over phases.
    """
    goal = cell.spec.horizon
    horizon = min(_FIRST_OF_KERNELS if cell.settings.problem.kernel is not None else _FIRST_HORIZON, goal)
    few = min(_FEW, cell.spec.block_size)
    played(cell, horizon, few)  # compiles, and fills caches
    before, now = 0.0, _shortest(cell, horizon, few)
    while horizon < goal and now < _ENOUGH:
        horizon, before = min(goal, horizon * _GROWTH), now
        now = _shortest(cell, horizon, few)
    slope = 1.0 if before == 0 else min(2.0, max(0.0, math.log(now / before, _GROWTH)))
    one = min(now, _shortest(cell, horizon, 1))
    each = max(_LEAST, (now - one) / max(1, few - 1))
    return float((one + each * (cell.spec.block_size - 1)) * (goal / horizon) ** slope)


def audits_seconds(cells: Iterable[Cell], journal: Journal | None = None) -> dict[str, float]:
    """Cell's name -> seconds that its audit takes on one core: as the last one of that size did, else by a trial.

    A run of the audit's own size is tried once for each algorithm and environment, whatever the level of privacy.

    Args:
      cells: private ones.
      journal: of the suite, which knows how long its audits took.
    """
    took = {e["cell"]: e for e in journal.read() if e["event"] == "audit done"} if journal is not None else {}
    paces: dict[tuple[str, str], float] = {}
    seconds = {}
    for cell in cells:
        effort, last = cell.audit, took.get(cell.name, {})
        if last.get("replays") == effort.replays and last["seconds"] > _AUDIT_FLOOR / 2:  # shorter ones were in the store
            seconds[cell.name] = float(last["seconds"])
            continue
        kind = cell.entry.label, cell.environment.label
        if kind not in paces:
            paces[kind] = replay_seconds(cell)
        seconds[cell.name] = seconds_of_audit(effort.replays, effort.examples, paces[kind])
    return seconds


def seconds_of_audit(replays: int, examples: int, pace: float = _SCORED) -> float:
    """Seconds that an audit takes on one core, whose runs take `pace` seconds a replicate; else as long as those of arms."""
    return _AUDIT_FLOOR * max(1.0, examples / _EXAMPLES) + _RUNS * replays * (_SCORED + pace)


def replay_seconds(cell: Cell) -> float:
    """Seconds of a run on what the audit replays, a replicate: of many side by side, where few are not slow already."""
    table = cell.environment.audit_table()

    def tried(n_reps: int) -> float:
        seed = np.random.SeedSequence(_SEED)
        ledger = LiveLedger(n_reps, ReproducibleNoise(seed), keeps_transcript=True, n_records=table.n_users)
        algorithm = cell.entry.build(cell.in_audit())
        start = time.thread_time()
        run(algorithm, table, ledger, coins=Coins(seed, n_reps))
        return time.thread_time() - start

    tried(_FEW)  # compiles, and fills caches
    few = tried(_FEW)
    return few / _FEW if few > _ENOUGH else min(tried(_MANY) for _ in range(3)) / _MANY


def _shortest(cell: Cell, horizon: int, n_reps: int) -> float:
    """The least disturbed of some trials. A long one is repeated once: a release that shorter runs had not, compiles."""
    first = played(cell, horizon, n_reps)[1]
    return min(first, *(played(cell, horizon, n_reps)[1] for _ in range(1 if first > _ENOUGH else 3)))


def played(cell: Cell, horizon: int, n_reps: int) -> tuple[LiveLedger, float]:
    """The ledger of a cell's first rounds, played on no private rows, and the processor seconds that they took."""
    spec = cell.spec.model_copy(update={"horizon": horizon})
    tried = replace(cell, spec=spec, environment=environment_of(spec, cell.environment.item))
    seed = np.random.SeedSequence(_SEED)
    stream, ledger = _stream(tried), LiveLedger(n_reps, ReproducibleNoise(seed), n_records=horizon)
    algorithm = tried.algorithm()
    start = time.thread_time()
    run(algorithm, stream, ledger, horizon=horizon, coins=Coins(seed, n_reps))
    return ledger, time.thread_time() - start


def _stream(cell: Cell) -> Stream | EpisodicStream:
    """Environment of a trial: no private rows, on which every release must be charged, but rewards drawn at random."""
    environment = cell.environment
    if environment.plays_private_rows:
        return random_table(cell.spec.horizon, environment.n_actions, environment.reward_range, _SEED)
    return environment.stream(np.random.SeedSequence(_SEED))
