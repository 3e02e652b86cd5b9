"""The seeds of an audit, and the events that one replay of it charges."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm
from bandana.algorithms.run import run
from bandana.privacy_core import Event, LiveLedger, Participation, ReproducibleNoise


def derive(
    algorithm: Algorithm, table: Table, seed: int, n_reps: int = 1024, users: Participation | None = None
) -> tuple[tuple[Event, int], ...]:
    """The events on the worst record over `n_reps` live runs; with `users`, those that dominate what the worst user pays."""
    root = np.random.SeedSequence(seed)
    ledger = LiveLedger(n_reps, ReproducibleNoise(root), n_records=table.n_users)
    run(algorithm, table, ledger, coins=Coins(root, n_reps))
    return tuple(sorted(ledger.worst_record(users=users).items(), key=repr))
