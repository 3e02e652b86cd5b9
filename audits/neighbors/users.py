"""Pairs of data sets that differ in all records of one user, and the least private one of them.

A user has several records, as a declared participation allows: as near to each other as may be, from an early, a late or
a probed record on, or spread over the whole run. All of them go from one end of the range to the other, or once far outside
of it. What users bring stays as it is: it changes in one record at a time, in the deterministic audit's other cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.audits.neighbors.candidates import even_rewards
from bandana.audits.neighbors.neighbor import Context, Others
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.neighbors.worst_pair import WorstPair, losses_of, visible_mu
from bandana.privacy_core import Participation

_SEED = 0x7573_6572
_FEW = 64
_BEYOND = 4.0


def placements(users: Participation, n_records: int, probes: Sequence[int] = ()) -> tuple[tuple[int, ...], ...]:
    """Records that one user may have, the most that fit, each set once.

    Args:
      users: which records may be one user's.
      n_records: of the data set.
      probes: records that some user shall begin with.
    """
    near = users.separation
    most = min(users.most, 1 + (n_records - 1) // near)
    latest = n_records - 1 - (most - 1) * near
    spread = max(near, (n_records - 1) // max(1, most - 1))
    starts = [(min(start, latest), near) for start in (0, *probes, 1, n_records // 2, latest)] + [(0, spread)]
    return tuple(
        dict.fromkeys(tuple(range(start, start + most * step, step)[:most]) for start, step in starts if start >= 0)
    )


def user_pairs(table: Table, users: Participation, probes: Sequence[int]) -> tuple[Pair, ...]:
    """The data set with each user's rewards lowest, and highest; at last a user whose rewards leave the range."""
    span = table.reward_range
    owned = placements(users, table.n_users, probes)
    pairs = [Pair.of_user(table, records, Change(span.low, span.high)) for records in owned]
    outlier = Change(span.low, span.high + _BEYOND * span.width)
    return (*pairs, Pair.of_user(table, owned[0], outlier))


def find(algorithm: Algorithm, table: Table, users: Participation, probes: Sequence[int], seed: int) -> WorstPair:
    """The pair whose releases tell most: every placement in every context of `even_rewards` and in the table's own.

    The loss of a pair is that of a few replays which choose nothing else, as `bandana.audits.neighbors.worst_pair` has it.

    Args:
      algorithm: what to audit.
      table: data that is tried as a context too.
      users: which records may be one user's.
      probes: records that some user begins with.
      seed: of contexts and replays.
    """
    span = table.reward_range
    contexts = {context: table.with_rewards(even) for context, even in even_rewards(table.rewards.shape, span, seed).items()}
    contexts[Context(span.low, span.high, Others.TABLE)] = table
    changes = (Change(span.low, span.high), Change(span.high, span.low))
    tried = [
        Pair.of_user(data, records, change, context)
        for context, data in contexts.items()
        for records in placements(users, table.n_users, probes)
        for change in changes
    ]
    seeds = np.random.SeedSequence(seed, spawn_key=(_SEED,)).spawn(len(tried))
    played = [losses_of(algorithm, pair, _FEW, child) for pair, child in zip(tried, seeds, strict=True)]
    mus = [visible_mu(losses.mu) for losses in played]
    worst = max(range(len(tried)), key=lambda i: round(mus[i], 9) if math.isfinite(mus[i]) else math.inf)
    return WorstPair(tried[worst], mus[worst], *played[worst].pure)
