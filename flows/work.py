"""The work itself, as plain functions of a block or a cell: no orchestration, no tracking."""

from __future__ import annotations

from typing import Any

import numpy as np

from algorithms.observers import RegretCurve, log_grid
from algorithms.run import run
from audits.audit import AuditResult, Effort, accounted_mu, audit
from audits.controls import CONTROLS
from audits.summary import summarize
from flows.plan import Block, Cell, Environment
from flows.store import Store, code_version, content_key
from privacy_core import LiveLedger, ReproducibleNoise

BENCHMARK, AUDIT = "benchmark", "audit"


def benchmark_block(block: Block, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Regret curves and the privacy spent, of one block of replicates; from the store if they are there.

    Returns:
      arrays: `grid` (n_grid,) rounds; `regret` (n_reps, n_grid); `mu_spent` (n_grid,), infinite for a non-private run,
      by the first replicate's ledger. description: the noise source, and mu over all replicates (null if infinite).
    """
    if (found := store.load(BENCHMARK, block.key)) is not None:
        return found
    cell, environment = block.cell, Environment(block.cell.spec)
    stream = environment.stream(block.reward_seed)
    grid = log_grid(cell.spec.horizon)
    ledger = LiveLedger(block.n_reps, ReproducibleNoise(block.noise_seed), n_records=cell.spec.horizon)
    regret = RegretCurve(environment.means, grid, block.n_reps)
    run(cell.algorithm(), stream, ledger, horizon=cell.spec.horizon, observers=[regret])
    spent = [accounted_mu(tuple(ledger.worst_record(before=int(t), rep=0).items())) for t in grid]
    total = accounted_mu(tuple(ledger.worst_record().items()))
    arrays = {"grid": grid, "regret": regret.curve, "mu_spent": np.array(spent)}
    description = {"noise": ledger.noise.name, "mu": total if np.isfinite(total) else None}
    store.save(BENCHMARK, block.key, arrays, description)
    return arrays, description


def audit_key(cell: Cell) -> str:
    """Content key of a cell's audit."""
    return content_key({**cell.identity(), "audit": cell.spec.audit.model_dump(mode="json"), "code": code_version()})


def audit_cell(cell: Cell, store: Store) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """One audit with its controls; from the store if it is there.

    Returns:
      arrays: the evidence, the test half's scores on both sides of the sharpest bound. description: the audit's entry in
      the report.
    """
    if (found := store.load(AUDIT, audit_key(cell))) is not None:
        return found
    environment = Environment(cell.spec)
    asked = cell.spec.audit
    effort = Effort(asked.replays, asked.confidence, asked.delta, asked.examples, cell.spec.seed)
    assert cell.entry.probes is not None
    result: AuditResult = audit(
        cell.algorithm(),
        cell.claim(),
        CONTROLS.get(cell.entry.name, ()),
        environment.audit_table(),
        cell.entry.probes(environment.n_actions),
        effort,
    )
    about = {
        "label": cell.name,
        "algorithm": cell.entry.name,
        "calibration": cell.settings.calibration,
        "privacy_model": cell.entry.privacy_model,
        "parameters": cell.parameters(),
    }
    rounds = f"{asked.rounds} rounds x {environment.n_actions} arms of {environment.describe()['name']}"
    description = summarize(result, about, rounds, ReproducibleNoise.name)
    data, neighbor = result.measurement.best
    arrays = {"scores_data": data, "scores_neighbor": neighbor}
    store.save(AUDIT, audit_key(cell), arrays, description)
    return arrays, description
