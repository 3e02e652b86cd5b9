"""Catalog lines of bandits with finitely many arms that randomize, with coins of the loop."""

from __future__ import annotations

from typing import Any

from bandana.algorithms.bandits.finite_arm.exp3 import adversarial_bound, exp3
from bandana.algorithms.bandits.finite_arm.thompson import dp_thompson, thompson
from bandana.algorithms.entry import Claim, Entry, RegretBound, Settings, pure_of, renyi_of, reward_claim
from bandana.algorithms.parameters import Parameter, declared
from bandana.algorithms.protocol import FloatArray, IntArray

_HU_HEGDE = "Hu and Hegde (2022), Near-optimal Thompson sampling-based algorithms for private stochastic bandits"
_ASI = "Asi, Raman and Talwar (2025), Faster rates for private adversarial bandits"
_RATE = declared(Parameter("rate_scale", "Factor on the rate of learning; the bound on regret is least at 1.", 1.0))
_SPREAD = declared(Parameter("spread", "Factor on the standard deviation of a draw; 1 is the posterior's own.", 1.0))


def _thompson(settings: Settings) -> Any:  # an `Algorithm` whose `act` takes coins, which the protocol cannot say
    return thompson(settings.problem.n_actions, settings.problem.reward_range, settings.parameters["spread"])


def _dp_thompson(settings: Settings) -> Any:
    problem, privacy = settings.problem, renyi_of(settings)
    return dp_thompson(
        problem.n_actions, privacy.alpha, privacy.epsilon, problem.reward_range, settings.parameters["spread"]
    )  # fmt: skip


def _exp3(settings: Settings) -> Any:
    problem, epsilon = settings.problem, None if settings.privacy is None else pure_of(settings).epsilon
    return exp3(
        problem.n_actions, epsilon, problem.reward_range, problem.known_horizon, settings.parameters["rate_scale"]
    )  # fmt: skip


def _against_any_losses(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _exp3(settings)
    return RegretBound(
        adversarial_bound(algorithm, grid),
        f"our bound for EXP3 in the batches of {_ASI}: expected regret against the best arm, whatever the rewards are, B "
        f"(log K / rate + rate N K (1/2 + 4 b^2 / 3) / (1 - mix) + mix N), N = t / B rounded up, B = {algorithm.length}, b "
        f"= {algorithm.noise:.3g}, rate = {algorithm.rate:.3g}, mix = {algorithm.mix:.3g}, K = {algorithm.n_actions}",
    )


def _exp3_claim(settings: Settings) -> Claim:
    return reward_claim(settings, "the conversion's privacy, by the one-touch lemma (docs/privacy.md)", _ASI)


def _first(n_actions: int) -> tuple[int, ...]:
    """Also the second batch's first record, if batches are of one round."""
    return (0, 1)


def _claim(settings: Settings) -> Claim:
    return reward_claim(settings, "one-touch lemma (docs/privacy.md), in place of Theorem 3", _HU_HEGDE)


def _first_batch_and_next(n_actions: int) -> tuple[int, ...]:
    """Also the first round whose arm was drawn: a batch of one round."""
    return (0, n_actions)


ENTRIES = (
    Entry(
        name="dp-thompson",
        family="bandits/finite_arm",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin, in batches",
        source="Karbasi, Mirrokni and Shadravan (2021), Parallelizing Thompson sampling, with a Gaussian posterior",
        build=_thompson,
        parameters=_SPREAD,
    ),
    Entry(
        name="dp-thompson",
        family="bandits/finite_arm",
        privacy_model="central",
        guarantee="renyi",
        calibrations=("tight",),
        claim="(alpha, epsilon)-RDP of all actions, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"after {_HU_HEGDE}, Algorithm 2, with Gaussian noise in batches",
        build=_dp_thompson,
        parameters=_SPREAD,
        promise=_claim,
        probes=_first_batch_and_next,
    ),
    Entry(
        name="dp-exp3",
        family="bandits/finite_arm",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin, EXP3 round by round",
        source="Auer, Cesa-Bianchi, Freund and Schapire (2002), The nonstochastic multiarmed bandit problem, without mixing",
        build=_exp3,
        parameters=_RATE,
        bound=_against_any_losses,
    ),
    Entry(
        name="dp-exp3",
        family="bandits/finite_arm",
        privacy_model="central",
        guarantee="pure",
        calibrations=("tight",),
        claim="epsilon-DP of all actions, replace one reward",
        source=f"{_ASI}, their conversion with EXP3",
        build=_exp3,
        parameters=_RATE,
        promise=_exp3_claim,
        probes=_first,
        bound=_against_any_losses,
    ),
)
