"""Catalog entries for bandits with finitely many arms that play in batches: of indices, or with coins of the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from bandana.algorithms.bandits.finite_arm.batch_bounds import batch_bound
from bandana.algorithms.bandits.finite_arm.exp3 import adversarial_bound, exp3
from bandana.algorithms.bandits.finite_arm.growing_batches import (
    PARTS,
    GrowingBatches,
    dp_imed,
    dp_klucb,
    gaussian_imed,
    gaussian_klucb,
)
from bandana.algorithms.bandits.finite_arm.thompson import dp_thompson, thompson
from bandana.algorithms.entry import (
    AS_KNOWN,
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
    return settings.parts or PARTS[AS_KNOWN]


def _as_known(_settings: Settings) -> Mapping[str, str]:
    """Options of the calibration `as-known`, the only one."""
    return PARTS[AS_KNOWN]


_dp_klucb = built_by(dp_klucb, parts=_as_known)
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
_GAUSSIAN = partial(
    of_rewards, guarantee="renyi", theorem="one-touch lemma (docs/privacy.md), in place of Proposition 2", paper=_SOURCE
)
_gaussian = partial(Form.entry, family="bandits/finite_arm", probes=first_user_and_first_choice)
INDICES = (
    _klucb(_TWIN("Garivier and Cappe (2011), The KL-UCB algorithm for bounded stochastic bandits, in batches"), _BETA),
    _klucb(_PURE(f"{_SOURCE}, DP-KLUCB and Proposition 2", calibrations=(AS_KNOWN,)), _BETA),
    _imed(_TWIN("Honda and Takemura (2015), Non-asymptotic analysis of a new bandit algorithm, IMED, in batches")),
    _imed(_PURE(f"{_SOURCE}, DP-IMED and Proposition 2", calibrations=(AS_KNOWN, "tight"))),
    _gaussian(
        _GAUSSIAN(f"after {_SOURCE}, DP-KLUCB, with Gaussian noise"), name="dp-klucb", build=built_by(gaussian_klucb),
        parameters=declared(_BETA, _GROWTH),
    ),
    _gaussian(
        _GAUSSIAN(f"after {_SOURCE}, DP-IMED, with Gaussian noise"), name="dp-imed", build=built_by(gaussian_imed),
        parameters=declared(_GROWTH),
    ),
)  # fmt: skip


_HU_HEGDE = "Hu and Hegde (2022), Near-optimal Thompson sampling-based algorithms for private stochastic bandits"
_ASI = "Asi, Raman and Talwar (2025), Faster rates for private adversarial bandits"
_RATE = declared(Parameter("rate_scale", "Factor on the rate of learning; the bound on regret is least at 1.", 1.0))
_SPREAD = declared(Parameter("spread", "Factor on the standard deviation of a draw; 1 is the posterior's own.", 1.0))


_exp3 = built_by(exp3)


def _against_any_losses(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _exp3(settings)
    return RegretBound(
        adversarial_bound(algorithm, grid),
        f"our bound for EXP3 in the batches of {_ASI}: expected regret against the best arm, whatever the rewards are, B "
        f"(log K / rate + rate N K (1/2 + 4 b^2 / 3) / (1 - mix) + mix N), N = t / B rounded up, B = {algorithm.length}, b "
        f"= {algorithm.noise:.3g}, rate = {algorithm.rate:.3g}, mix = {algorithm.mix:.3g}, K = {algorithm.n_actions}",
    )


def _first_two(n_actions: int) -> tuple[int, ...]:
    """Also the second batch's first record, if batches are of one round."""
    return (0, 1)


_thompson = partial(Form.entry, name="dp-thompson", family="bandits/finite_arm", parameters=_SPREAD)
_exp3_entry = partial(
    Form.entry, name="dp-exp3", family="bandits/finite_arm", build=_exp3, parameters=_RATE, bound=_against_any_losses
)
RANDOMIZED = (
    _thompson(
        Form(
            "Karbasi, Mirrokni and Shadravan (2021), Parallelizing Thompson sampling, with a Gaussian posterior",
            claim="none: the non-private twin, in batches",
        ),
        build=built_by(thompson),
    ),
    _thompson(
        of_rewards(
            f"after {_HU_HEGDE}, Algorithm 2, with Gaussian noise in batches", "renyi",
            "one-touch lemma (docs/privacy.md), in place of Theorem 3", _HU_HEGDE,
        ),
        build=built_by(dp_thompson), probes=first_user_and_first_choice,
    ),
    _exp3_entry(
        Form(
            "Auer, Cesa-Bianchi, Freund and Schapire (2002), The nonstochastic multiarmed bandit problem, without mixing",
            claim="none: the non-private twin, EXP3 round by round",
        )
    ),
    _exp3_entry(
        of_rewards(
            f"{_ASI}, their conversion with EXP3", "pure",
            "the conversion's privacy, by the one-touch lemma (docs/privacy.md)", _ASI,
        ),
        probes=_first_two,
    ),
)  # fmt: skip
ENTRIES = INDICES + RANDOMIZED
