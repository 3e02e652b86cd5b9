"""Plays a block of replicates: regret curves and the privacy spent. Nothing is stored here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bandana.algorithms.observers import log_grid
from bandana.algorithms.run import run
from bandana.privacy_core import LiveLedger, PureDP, ReproducibleNoise, account
from bandana.privacy_core.accounting import accounted_mu

if TYPE_CHECKING:
    from bandana.flows.spec.plan import Block


def play(block: Block) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Plays every replicate of the block.

    Returns:
      arrays: `grid` (n_grid,) rounds; `regret` (n_reps, n_grid); `mu_spent` (n_grid,), infinite for a non-private run,
      by the first replicate's ledger. description: the noise source, mu over all replicates (null if infinite), and the
      epsilon of pure DP (null if there is none).
    """
    cell = block.cell
    environment, horizon = cell.environment, cell.spec.horizon
    algorithm = cell.entry.build(cell.settings)
    stream = environment.stream(block.reward_seed)
    grid = log_grid(horizon)
    ledger = LiveLedger(block.n_reps, ReproducibleNoise(block.noise_seed), n_records=horizon)
    regret = environment.regret(stream, grid, block.n_reps)
    run(algorithm, stream, ledger, horizon=horizon, observers=[regret])
    spent = [accounted_mu(tuple(ledger.worst_record(before=int(t), rep=0).items())) for t in grid]
    worst = ledger.worst_record()
    total, derived = accounted_mu(tuple(worst.items())), account(worst)
    arrays = {"grid": grid, "regret": regret.curve, "mu_spent": np.array(spent)}
    description = {
        "noise": ledger.noise.name,
        "mu": total if np.isfinite(total) else None,
        "pure": derived.epsilon if isinstance(derived, PureDP) else None,
    }
    return arrays, description
