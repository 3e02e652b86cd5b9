"""A block of replicates as a plain function: no orchestration, no tracking, and nothing of audits is imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.observers import log_grid
from algorithms.run import run
from audits.contents import PROVENANCE
from flows.plan import Block
from flows.provenance import Making
from flows.store import Store
from privacy_core import LiveLedger, PureDP, ReproducibleNoise, account
from privacy_core.accounting import accounted_mu

BENCHMARK = "benchmark"


def benchmark_block(block: Block, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Regret curves and the privacy spent, of one block of replicates; from the store if they are there.

    Returns:
      arrays: `grid` (n_grid,) rounds; `regret` (n_reps, n_grid); `mu_spent` (n_grid,), infinite for a non-private run,
      by the first replicate's ledger. description: the noise source, mu over all replicates (null if infinite), the
      epsilon of pure DP (null if there is none), and the provenance.
    """
    if (found := store.load(BENCHMARK, block.key)) is not None:
        return found
    making = Making()
    cell, environment = block.cell, block.cell.environment
    stream = environment.stream(block.reward_seed)
    grid = log_grid(cell.spec.horizon)
    ledger = LiveLedger(block.n_reps, ReproducibleNoise(block.noise_seed), n_records=cell.spec.horizon)
    regret = environment.regret(stream, grid, block.n_reps)
    run(cell.algorithm(), stream, ledger, horizon=cell.spec.horizon, observers=[regret])
    spent = [accounted_mu(tuple(ledger.worst_record(before=int(t), rep=0).items())) for t in grid]
    worst = ledger.worst_record()
    total, derived = accounted_mu(tuple(worst.items())), account(worst)
    arrays = {"grid": grid, "regret": regret.curve, "mu_spent": np.array(spent)}
    description = {
        "noise": ledger.noise.name,
        "mu": total if np.isfinite(total) else None,
        "pure": derived.epsilon if isinstance(derived, PureDP) else None,
        PROVENANCE: making.record(is_anonymous=store.is_anonymous),
    }
    store.save(BENCHMARK, block.key, arrays, description)
    return arrays, description


def is_played(block: Block, store: Store) -> bool:
    """Whether the block's result lies in the store; a damaged one is found, and computed again, when it is read."""
    return store.path(BENCHMARK, block.key).exists()
