"""What the tests of the beds and of their planted faults share: one look at a bed, by each of the three audits."""

from __future__ import annotations

import math

from bandana.algorithms.protocol import Algorithm
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.outcome import DETERMINISTIC, MU, NOISE, SAMPLING, Effort
from bandana.audits.plan import plan_bounds
from bandana.audits.replays.attacks import ACTIONS, TRANSCRIPT
from bandana.audits.replays.measure import measure
from bandana.audits.searches import deterministic, noise
from bandana.audits.testbeds.blocks import Trial

EXAMPLES = 60


def effort(replays: int, seed: int = 1) -> Effort:
    return Effort(replays=replays, confidence=0.95, delta=1e-5, examples=EXAMPLES, seed=seed)


def measured(
    trial: Trial,
    algorithm: Algorithm,
    replays: int,
    pairs: tuple[Pair, ...] | None = None,
    seed: int = 1,
    enough: float = math.inf,
    views: tuple[str, ...] = (TRANSCRIPT,),
) -> float:
    """The largest lower bound on mu, over all pairs of the trial or over those given."""
    asked = effort(replays, seed)
    plan = tuple(
        planned for planned in plan_bounds(trial.claim, asked.delta) if planned.quantity == MU and planned.view in views
    )
    return measure(algorithm, trial.pairs if pairs is None else pairs, asked, plan, enough=enough).lower(MU)


def catches(trial: Trial, algorithm: Algorithm, audit: str, replays: int) -> bool:
    """Whether the named audit finds the algorithm at fault."""
    if audit == SAMPLING:
        both = (TRANSCRIPT, ACTIONS)
        return measured(trial, algorithm, replays, enough=trial.claim.mu, views=both) > trial.claim.mu
    if audit == DETERMINISTIC:
        found = deterministic.search(algorithm, trial.table.reward_range, trial.claim, EXAMPLES, shrinks=False)
        return found is not None
    assert audit == NOISE
    return noise.examine(algorithm, trial.table) is not None
