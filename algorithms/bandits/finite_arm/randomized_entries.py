"""Catalog entries for bandits with finitely many arms that randomize, with coins of the loop."""

from __future__ import annotations

from functools import partial

from bandana.algorithms.bandits.finite_arm.exp3 import adversarial_bound, exp3
from bandana.algorithms.bandits.finite_arm.thompson import dp_thompson, thompson
from bandana.algorithms.entry import Form, RegretBound, Settings, built_by, first_user_and_first_choice, of_rewards
from bandana.algorithms.parameters import Parameter, declared
from bandana.algorithms.protocol import FloatArray, IntArray

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
ENTRIES = (
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
