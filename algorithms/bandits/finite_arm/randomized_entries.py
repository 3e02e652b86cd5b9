"""Catalog lines of bandits with finitely many arms that randomize, with coins of the loop."""

from __future__ import annotations

from typing import Any

from bandana.algorithms.bandits.finite_arm.thompson import dp_thompson, thompson
from bandana.algorithms.entry import Claim, Entry, Settings, renyi_of, reward_claim
from bandana.algorithms.parameters import Parameter, declared

_HU_HEGDE = "Hu and Hegde (2022), Near-optimal Thompson sampling-based algorithms for private stochastic bandits"
_SPREAD = declared(Parameter("spread", "Factor on the standard deviation of a draw; 1 is the posterior's own.", 1.0))


def _thompson(settings: Settings) -> Any:  # an `Algorithm` whose `act` takes coins, which the protocol cannot say
    return thompson(settings.problem.n_actions, settings.problem.reward_range, settings.parameters["spread"])


def _dp_thompson(settings: Settings) -> Any:
    problem, privacy = settings.problem, renyi_of(settings)
    return dp_thompson(
        problem.n_actions, privacy.alpha, privacy.epsilon, problem.reward_range, settings.parameters["spread"]
    )  # fmt: skip


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
)
