"""Catalog entries for bandits with finitely many arms that forget nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bandana.algorithms.bandits.finite_arm.batch_bounds import batch_bound
from bandana.algorithms.bandits.finite_arm.growing_batches import (
    PARTS,
    GrowingBatches,
    dp_imed,
    dp_klucb,
)
from bandana.algorithms.entry import (
    Bound,
    Entry,
    Form,
    RegretBound,
    Settings,
    built_by,
    first_user_and_first_choice,
    of_rewards,
)
from bandana.algorithms.parameters import Parameter, declared
from bandana.algorithms.protocol import FloatArray, IntArray

_SOURCE = "Azize, Wu, Honda and others (2025), Optimal regret of bandits under differential privacy"
_BETA = Parameter("beta", "Exploration: the index is as large as beta log t permits; 1 in the paper.", 1.0)
_GROWTH = Parameter("growth", "Rounds of a batch, over those of its arm before; the paper's alpha is 1 + growth.", 1.0)


def _estimator(settings: Settings) -> Mapping[str, str]:
    """Options of the calibration; those of the twin do not matter."""
    return settings.parts or PARTS["printed"]


def _as_printed(_settings: Settings) -> Mapping[str, str]:
    """Options of the printed calibration, the only one."""
    return PARTS["printed"]


_dp_klucb = built_by(dp_klucb, parts=_as_printed)
_dp_imed = built_by(dp_imed, parts=_estimator)


def _in_batches(build: Callable[[Settings], GrowingBatches], likely: str) -> Bound:
    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        if means is None:
            return None
        algorithm = build(settings)
        constants = "".join(f", {name} = {value:g}" for name, value in {**settings.parameters, **settings.level()}.items())
        return RegretBound(
            batch_bound(algorithm, grid, means),
            f"our bound at any horizon for {_SOURCE}, whose Theorem 2 is asymptotic; expected regret: pulls of arm a up to "
            f"the batch after its last release k with {likely}, y between the means, and batches that an unlikely mean or "
            f"index begins; K = {algorithm.n_actions}{constants}",
        )

    return bound


_TWIN = partial(Form, claim="none: the non-private twin, in the same batches")
_PURE = partial(of_rewards, guarantee="pure", theorem="Proposition 2", paper=_SOURCE)


def _entry(name: str, build: Callable[[Settings], GrowingBatches], likely: str, form: Form, *own: Parameter) -> Entry:
    more: dict[str, Any] = {} if form.trust is None else {"probes": first_user_and_first_choice}
    more |= {"parts": PARTS} if len(form.calibrations) > 1 else {}
    return form.entry(
        name, "bandits/finite_arm", build, parameters=declared(*own, _GROWTH), bound=_in_batches(build, likely), **more
    )


_klucb = partial(_entry, "dp-klucb", _dp_klucb, "N_k d(y, best) <= beta log t")
_imed = partial(_entry, "dp-imed", _dp_imed, "N_k d(y, z) + log N_k <= log t, z between y and the best mean")
ENTRIES = (
    _klucb(_TWIN("Garivier and Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits, in batches"), _BETA),
    _klucb(_PURE(f"{_SOURCE}, DP-KLUCB and Proposition 2", calibrations=("printed",)), _BETA),
    _imed(_TWIN("Honda and Takemura (2015), Non-asymptotic analysis of a new bandit algorithm, IMED, in batches")),
    _imed(_PURE(f"{_SOURCE}, DP-IMED and Proposition 2", calibrations=("printed", "tight"))),
)
