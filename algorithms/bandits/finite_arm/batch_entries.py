"""Catalog lines of bandits with finitely many arms that forget nothing."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bandana.algorithms.bandits.finite_arm.batch_bounds import batch_bound
from bandana.algorithms.bandits.finite_arm.growing_batches import (
    PARTS,
    BatchedIMED,
    BatchedKLUCB,
    GrowingBatches,
    dp_imed,
    dp_klucb,
)
from bandana.algorithms.entry import Bound, Claim, Entry, RegretBound, Settings, pure_of, reward_claim
from bandana.algorithms.parameters import Parameter, declared
from bandana.algorithms.protocol import FloatArray, IntArray

_SOURCE = "Azize, Wu, Honda and others (2025), Optimal regret of bandits under differential privacy"
_BETA = Parameter("beta", "Exploration: the index is as large as beta log t permits; 1 in the paper.", 1.0)
_GROWTH = Parameter("growth", "Rounds of a batch, over those of its arm before; the paper's alpha is 1 + growth.", 1.0)


def _epsilon(settings: Settings) -> float | None:
    return None if settings.privacy is None else pure_of(settings).epsilon


def _dp_klucb(settings: Settings) -> BatchedKLUCB:
    problem, given = settings.problem, settings.parameters
    return dp_klucb(
        problem.n_actions, _epsilon(settings), problem.reward_range, PARTS["printed"], given["growth"], given["beta"]
    )


def _dp_imed(settings: Settings) -> BatchedIMED:
    problem, parts = settings.problem, settings.parts or PARTS["printed"]
    return dp_imed(problem.n_actions, _epsilon(settings), problem.reward_range, parts, settings.parameters["growth"])


def _claim(settings: Settings) -> Claim:
    return reward_claim(settings, "Proposition 2", _SOURCE)


def _in_batches(build: Callable[[Settings], GrowingBatches], likely: str) -> Bound:
    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        if means is None:
            return None
        algorithm = build(settings)
        told = "".join(f", {name} = {value:g}" for name, value in {**settings.parameters, **settings.level()}.items())
        return RegretBound(
            batch_bound(algorithm, grid, means),
            f"our bound at any horizon for {_SOURCE}, whose Theorem 2 is asymptotic; expected regret: pulls of arm a up to "
            f"the batch after its last release k with {likely}, y between the means, and batches that an unlikely mean or "
            f"index begins; K = {algorithm.n_actions}{told}",
        )

    return bound


def _first_pull_and_first_index(n_actions: int) -> tuple[int, ...]:
    """Also the first round whose arm was chosen by an index."""
    return (0, n_actions)


_twin = partial(
    Entry, family="bandits/finite_arm", privacy_model="none", guarantee=None, calibrations=(),
    claim="none: the non-private twin, in the same batches",
)  # fmt: skip
_pure = partial(
    Entry, family="bandits/finite_arm", privacy_model="central", guarantee="pure", promise=_claim,
    claim="epsilon-DP of all actions, replace one reward", probes=_first_pull_and_first_index,
)  # fmt: skip
_klucb: dict[str, Any] = {
    "name": "dp-klucb", "build": _dp_klucb, "parameters": declared(_BETA, _GROWTH),
    "bound": _in_batches(_dp_klucb, "N_k d(y, best) <= beta log t"),
}  # fmt: skip
_imed: dict[str, Any] = {
    "name": "dp-imed", "build": _dp_imed, "parameters": declared(_GROWTH),
    "bound": _in_batches(_dp_imed, "N_k d(y, z) + log N_k <= log t, z between y and the best mean"),
}  # fmt: skip

ENTRIES = (
    _twin(**_klucb, source="Garivier and Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits, in batches"),
    _pure(**_klucb, calibrations=("printed",), source=f"{_SOURCE}, DP-KLUCB and Proposition 2"),
    _twin(**_imed, source="Honda and Takemura (2015), Non-asymptotic analysis of a new bandit algorithm, IMED, in batches"),
    _pure(**_imed, calibrations=("printed", "tight"), parts=PARTS, source=f"{_SOURCE}, DP-IMED and Proposition 2"),
)
