"""Test problems of the catalog's own audits: a problem and data for each kind of algorithm, at a budget of about mu = 1."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bandana.algorithms.claim import per_record
from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.environments.episodes import Table, random_episodes
from bandana.algorithms.environments.linear import fan_arms
from bandana.algorithms.environments.tables import ContextTable, random_table, sphere_table
from bandana.algorithms.environments.worst_mdps import HORIZON, N_STATES, linear_bed, mixture_bed
from bandana.algorithms.environments.worst_pools import POOL_KERNEL, SMOOTH, worst_pool
from bandana.algorithms.problem import CONTEXTUAL, EPISODIC, KERNEL, LINEAR, MIXTURE, POOLED, Problem
from bandana.audits.seeds import derive
from bandana.privacy_core import ZCDP, ApproxDP, Guarantee, Interval, Participation, PureDP, RenyiDP
from bandana.privacy_core.accounting.accountant import accounted_mu

UNIT = Interval(0.0, 1.0)
_TRIES, _FEW, _STEPS = 3, 64, 8
_SAMPLES: dict[str, Guarantee] = {
    "renyi": RenyiDP(2.0, 1.0), "pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-5), "zcdp": ZCDP(0.5),
}  # fmt: skip


def bed_of(entry: Entry, rounds: int, seed: int, n_actions: int | None = None) -> tuple[Problem, Table]:
    """A small problem that the algorithm plays on, and fair coins at both ends of the range as its rewards.

    Args:
      entry: the algorithm.
      rounds: users of the data set; in episodes an eighth of it, as each has several steps.
      seed: of the rewards and of contexts.
      n_actions: None for those of the entry's own audit.
    """
    n, d = entry.audit_shape
    n = n if n_actions is None else n_actions
    kind = entry.plays_on[0]
    if kind == CONTEXTUAL:
        return Problem(n, UNIT, rounds, dimension=d), sphere_table(rounds, n, d, UNIT, np.random.SeedSequence(seed))
    if kind == KERNEL:
        table: Table = sphere_table(rounds, n, d, UNIT, np.random.SeedSequence(seed))
        return Problem(n, UNIT, rounds, dimension=d, kernel=POOL_KERNEL), table
    if kind == POOLED:
        pool = worst_pool(entry.audit_pool, n, d)
        drawn = pool.drawn(rounds, np.random.Generator(np.random.SFC64(seed)))
        table = ContextTable(pool.points[drawn], random_table(rounds, n, UNIT, seed).rewards, UNIT)
        return Problem(n, UNIT, rounds, dimension=d, kernel=SMOOTH, pool=pool), table
    if kind in EPISODIC:
        model = (mixture_bed if kind == MIXTURE else linear_bed)(d, n, entry.guarantee == "pure")
        episodes = max(1, rounds // _STEPS)
        return Problem(n, UNIT, episodes, model=model), random_episodes(episodes, HORIZON, N_STATES, n, UNIT, seed)
    features = tuple(tuple(row) for row in fan_arms(n).tolist()) if kind == LINEAR else None
    return Problem(n, UNIT, rounds, features), random_table(rounds, n, UNIT, seed)


def at_test_budget(entry: Entry, settings: Settings, table: Table) -> Settings:
    """Settings for replays at which the ledger itself composes to about mu = 1, or pure epsilon to the like.

    A calibration that draws more noise than its claim needs hides small faults at a claim of mu = 1: it is audited at a
    claim so much weaker that its noise is that of a tight one.

    Args:
      entry: a private algorithm.
      settings: at the replays' horizon.
      table: what is replayed.
    """
    scaled = entry.at_test_budget(settings)
    for _ in range(_TRIES):
        spent = spent_mu(entry, entry.in_audit(scaled), table)
        if isinstance(scaled.privacy, PureDP) or not 0 < spent < NEAR_TEST_BUDGET[0]:
            break
        scaled = replace(scaled, privacy=_weakened(scaled.privacy, 1 / spent))
    return entry.in_audit(scaled)


def at_user_test_budget(entry: Entry, settings: Settings, table: Table, users: Participation) -> tuple[Settings, Guarantee]:
    """Settings for replays at which a user pays about mu = 1 by the ledger, and what is promised to a user there.

    A user whose records are spread pays less than group privacy allows; the claim is then so much weaker.

    Args:
      entry: a private algorithm.
      settings: at the replays' horizon.
      table: what is replayed.
      users: which records may be one user's.
    """
    promised, times = entry.at_test_budget(settings).privacy, entry.times_for(settings, users)
    for _ in range(_TRIES):
        assert promised is not None
        algorithm = entry.in_audit(replace(settings, privacy=per_record(promised, users, times)))
        spent = spent_mu(entry, algorithm, table, users)
        if isinstance(promised, PureDP) or not 0 < spent < NEAR_TEST_BUDGET[0]:
            break
        promised = _weakened(promised, 1 / spent)
    assert promised is not None
    return algorithm, promised


def spent_mu(entry: Entry, settings: Settings, table: Table, users: Participation | None = None) -> float:
    """The mu that the ledgers of a few short runs compose to, for one record, or with `users` for one of these."""
    return accounted_mu(derive(entry.build(settings), table, seed=0, n_reps=_FEW, users=users))


def _weakened(privacy: Guarantee | None, factor: float) -> Guarantee:
    """The level at which Gaussian noise of the same formula is so many times smaller."""
    match privacy:
        case RenyiDP(alpha=alpha, epsilon=epsilon):
            return RenyiDP(alpha, epsilon * factor**2)
        case ApproxDP(epsilon=epsilon, delta=delta):
            return ApproxDP(epsilon * factor, delta)
    raise ValueError(f"privacy must be a RenyiDP or an ApproxDP, got {privacy!r}")


def bed_settings(entry: Entry, problem: Problem, calibration: str | None, privacy: Guarantee | None = None) -> Settings:
    """Settings for replays on the problem; without a level, at a claim of about mu = 1."""
    if entry.promise is None:
        return entry.in_audit(entry.settings(problem))
    assert entry.guarantee is not None
    settings = entry.settings(problem, calibration, privacy or _SAMPLES[entry.guarantee])
    return entry.in_audit(settings if privacy is not None else entry.at_test_budget(settings))


def is_near_test_budget(entry: Entry, settings: Settings, table: Table) -> bool:
    """True if small faults show at the claim as it is: neither it nor what the ledger spends is far from mu = 1."""
    assert entry.promise is not None
    claimed = entry.promise(settings).gaussian.mu
    is_pure = isinstance(settings.privacy, PureDP)
    low, high = NEAR_TEST_BUDGET
    return low <= claimed <= high and (is_pure or spent_mu(entry, settings, table) >= low * (1 - 1e-9))


NEAR_TEST_BUDGET = (0.5, 2.0)
"""Claims whose main quantity lies here show faults by themselves; all others are audited at 1, too."""
