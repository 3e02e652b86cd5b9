"""Plays a block of replicates: regret curves and the privacy spent. Nothing is stored here."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from bandana.algorithms.coins import Coins
from bandana.algorithms.decision import decision
from bandana.algorithms.entry import Entry, Settings
from bandana.algorithms.observers import log_grid
from bandana.algorithms.problem import CONTEXTUAL, FINITE, KERNEL, LINEAR
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.run import run
from bandana.flows.texts.json_text import JsonObject
from bandana.privacy_core import (
    Guarantee,
    LiveLedger,
    NoiseSource,
    NoNoise,
    Participation,
    PrivacyCurve,
    PureDP,
    ReproducibleNoise,
    SecureNoise,
    account,
)  # fmt: skip
from bandana.privacy_core.accounting.accountant import accounted_mu

if TYPE_CHECKING:
    from bandana.flows.plan.cells import Block

_MOST = 2**62


def play(block: Block, reserved: Guarantee | None = None) -> tuple[dict[str, np.ndarray], JsonObject]:
    """Plays every replicate of the block.

    Args:
      block: what to play.
      reserved: what a replicate may spend; a release beyond it is refused before noise is drawn. None: no limit.

    Returns:
      arrays: `grid` (n_grid,) rounds; `regret` (n_reps, n_grid); `mu_spent` (n_grid,), infinite for a non-private run,
      by the first replicate's ledger; of a test `recommended` and `stopped`, see `decision`. description: the noise source,
      mu over all replicates (null if infinite), and the epsilon of pure DP (null if there is none), and where the
      environment declares users who return, the same of the worst user; with `reserved`, `events` that the worst record paid
      in all replicates.

    Raises:
      BudgetExceeded: the algorithm would spend more than `reserved`.
    """
    cell = block.cell
    environment, horizon = cell.environment, cell.spec.horizon
    stream = environment.stream(block.reward_seed)
    grid = log_grid(horizon)
    if cell.is_expected:
        lost = environment.reference_curves(stream, grid, block.n_reps)[cell.entry.name]
        curves = {"grid": grid, "regret": lost, "mu_spent": np.full(len(grid), np.inf)}
        curves |= environment.reference_policy(cell.entry.name, block.n_reps)
        return curves, {"noise": NoNoise.name, "mu": None, "pure": None}
    ledger = LiveLedger(block.n_reps, _noise(block), reserved, n_records=horizon)
    regret = environment.regret(stream, grid, block.n_reps)
    algorithm, labels = with_coins(cell.entry, cell.settings, block.coin_seed, block.n_reps)
    coins = Coins(block.coin_seed, block.n_reps)
    _, released = run(algorithm, stream, ledger, horizon=horizon, observers=[regret], labels=labels, coins=coins)
    arrays = {"grid": grid, "regret": regret.curve, "mu_spent": _spent(ledger, grid, None)}
    arrays |= environment.final_policy(algorithm, released, labels, coins)
    if (decided := decision(algorithm, released, labels)) is not None:
        arrays |= {"recommended": decided.arm, "stopped": decided.stopped}
    description: JsonObject = {"noise": ledger.noise.name, **_paid(ledger, None, is_private=cell.entry.is_private)}
    if (users := environment.item.users) is not None:
        arrays["user_mu_spent"] = _spent(ledger, grid, users)
        by_user = _paid(ledger, users, is_private=cell.entry.is_private)
        description |= {f"user_{name}": value for name, value in by_user.items()}
    if reserved is not None:
        paid = ledger.composed_record()
        description["events"] = PrivacyCurve.of(paid).to_dict()["records"][0] if paid else []
    return arrays, description


def _spent(ledger: LiveLedger, grid: IntArray, users: Participation | None) -> FloatArray:
    """(n_grid,) mu that the first replicate's worst record, or user, has paid so far: it never falls, and often stays."""

    @cache
    def at(place: int) -> float:
        return accounted_mu(tuple(ledger.worst_record(before=int(grid[place]), rep=0, users=users).items()))

    spent, start = np.empty(len(grid)), 0
    while start < len(grid):
        stop = bisect_right(range(len(grid)), at(start), lo=start, key=at)
        spent[start:stop] = at(start)
        start = stop
    return spent


def _paid(ledger: LiveLedger, users: Participation | None, *, is_private: bool) -> dict[str, float | None]:
    """Mu over all replicates of the worst record, or user, and the epsilon of pure DP; null where there is none."""
    worst = ledger.worst_record(users=users)
    # Where nothing is claimed, what lies in the ledger says nothing: exact values may decide beside it.
    mu, pure = accounted_mu(tuple(worst.items())) if is_private else np.inf, account(worst)
    return {"mu": mu if np.isfinite(mu) else None, "pure": pure.epsilon if isinstance(pure, PureDP) else None}


def _noise(block: Block) -> NoiseSource:
    match block.cell.noise:
        case "none":
            return NoNoise()
        case "secure":
            return SecureNoise()
    return ReproducibleNoise(block.noise_seed)


def with_coins(
    entry: Entry, settings: Settings, seed: np.random.SeedSequence, n_reps: int
) -> tuple[Algorithm, IntArray | None]:
    """The algorithm of a block with its public coins, and the labels under which it meets the stream's actions.

    Nobody's data enter coins, so they cost no privacy. They are drawn once for each replicate, the same for every cell on an
    environment: no result hangs on which action is listed first, and replications share no coins.

    An algorithm that knows its actions beforehand gets the permutation as its `preference` among ties, if it has that field;
    one that draws from a public stream gets a key for each replicate as `coins`. Any other meets its actions in a
    permuted order, see `bandana.algorithms.run.run`.

    Returns:
      the algorithm; (n_reps, n_actions) permutations, or None where the algorithm knows its actions.
    """
    algorithm = entry.build(settings)
    generator = np.random.Generator(np.random.SFC64(seed))
    order = generator.permuted(np.tile(np.arange(algorithm.n_actions), (n_reps, 1)), axis=1)
    own: dict[str, IntArray] = {"preference": order, "coins": generator.integers(0, _MOST, n_reps)}
    known: list[str] = [field.name for field in fields(algorithm)] if is_dataclass(algorithm) else []
    taken = {name: own[name] for name in known if name in own}
    if taken:
        algorithm = replace(algorithm, **taken)  # type: ignore[type-var]
    return algorithm, order if is_relabeled(entry, settings) and "preference" not in taken else None


def is_relabeled(entry: Entry, settings: Settings) -> bool:
    """True if an algorithm knows nothing of single actions beforehand, so that any order of them is as good."""
    kind = settings.problem.kind
    return kind in (FINITE, CONTEXTUAL, KERNEL) or (kind == LINEAR and FINITE in entry.plays_on and not entry.knows_actions)
