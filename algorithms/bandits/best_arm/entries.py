"""Catalog lines of best-arm identification."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from bandana.algorithms.bandits.best_arm.halving import Halving, dp_bai, gaussian_bai, sequential_halving
from bandana.algorithms.bandits.best_arm.top_two import (
    SAMPLING,
    TopTwo,
    adap_tt,
    adar_tt,
    dp_tt,
    gaussian_tt,
    top_two,
    transport_top_two,
)
from bandana.algorithms.claim import Claim, claim_of
from bandana.algorithms.entry import Entry, Settings, calibration_of, first_user, pure_of, renyi_of
from bandana.algorithms.parameters import Kind, Parameter, declared
from bandana.algorithms.problem import FINITE
from bandana.privacy_core import Relation

_AZIZE = "Azize, Jourdan, Al Marjani and Basu (2023), On the complexity of DP best-arm identification with fixed confidence"
_JOURDAN = "Jourdan and Degenne (2023), Non-asymptotic analysis of a UCB-based Top Two algorithm, TTUCB"
_OPTIMAL = "Jourdan and Azize (2025), Optimal best arm identification under differential privacy"
_CHEN = "Chen, Karthik, Chee and Tan (2024), Fixed-budget differentially private best arm identification"
_KARNIN = "Karnin, Koren and Somekh (2013), Almost optimal exploration in multi-armed bandits, sequential halving"
_AS_GAUSSIAN = "with Gaussian noise as in AdaR-UCB"
_SHORT = 0.75
"""A lead, in units of the range, that ends a test in audits after an arm's second episode: some of their runs then stop."""

_TEST = declared(
    Parameter("error", "Largest probability of recommending a wrong arm.", 0.05, Kind.SHARE),
    Parameter("sampling", "Whether a leader and its challenger are pulled, or all arms equally often.", SAMPLING[0],
              Kind.CHOICE, SAMPLING),
    Parameter("growth", "Factor, above 1, between an arm's pulls after an episode and before it.", 2.0),
    Parameter("share", "Share of the leader's rounds that go to the leader.", 0.5, Kind.SHARE),
    Parameter("beta_scale", "Factor on the stopping thresholds; the error is proved at 1 and above.", 1.0),
)  # fmt: skip
_BUDGET = declared(
    Parameter("budget", "Rounds that the test may take.", None, Kind.COUNT, otherwise="the horizon"),
)  # fmt: skip


def _exact(build: Callable[..., TopTwo]) -> Callable[[Settings], TopTwo]:
    """A test without noise."""

    def built(settings: Settings) -> TopTwo:
        problem = settings.problem
        return build(
            problem.n_actions, reward_range=problem.reward_range, horizon=problem.known_horizon, **settings.parameters
        )

    return built


def _gaussian(build: Callable[..., TopTwo]) -> Callable[[Settings], TopTwo]:
    """A test with Gaussian noise."""

    def built(settings: Settings) -> TopTwo:
        problem, privacy = settings.problem, renyi_of(settings)
        return build(
            problem.n_actions, privacy.alpha, privacy.epsilon, reward_range=problem.reward_range,
            horizon=problem.known_horizon, **settings.parameters,
        )  # fmt: skip

    return built


_top_two, _transport_top_two = _exact(top_two), _exact(transport_top_two)
_adar_tt, _gaussian_tt = _gaussian(adar_tt), _gaussian(gaussian_tt)


def _adap_tt(settings: Settings) -> TopTwo:
    problem = settings.problem
    return adap_tt(
        problem.n_actions, pure_of(settings).epsilon, reward_range=problem.reward_range, horizon=problem.known_horizon,
        calibration=calibration_of(settings), **settings.parameters,
    )  # fmt: skip


def _dp_tt(settings: Settings) -> TopTwo:
    problem, epsilon = settings.problem, pure_of(settings).epsilon
    return dp_tt(
        problem.n_actions, epsilon, reward_range=problem.reward_range, horizon=problem.known_horizon, **settings.parameters
    )


def _budget(settings: Settings) -> int:
    """Number of rounds that the test may play: the parameter `budget`, or the whole horizon."""
    horizon, asked = settings.problem.known_horizon, settings.parameters["budget"]
    if asked is not None and asked > horizon:
        raise ValueError(f"budget must be at most the horizon ({horizon}), got {asked}")
    n_actions = settings.problem.n_actions
    if asked is None and horizon < (least := n_actions * (n_actions - 1).bit_length()):
        raise ValueError(f"horizon must be at least {least}, a pull of every arm in every phase, got {horizon}")
    return horizon if asked is None else int(asked)


def _halving(settings: Settings) -> Halving:
    problem = settings.problem
    return sequential_halving(problem.n_actions, problem.reward_range, _budget(settings))


def _dp_bai(settings: Settings) -> Halving:
    problem, epsilon = settings.problem, pure_of(settings).epsilon
    return dp_bai(problem.n_actions, epsilon, problem.reward_range, _budget(settings), calibration_of(settings))


def _gaussian_bai(settings: Settings) -> Halving:
    problem, privacy = settings.problem, renyi_of(settings)
    return gaussian_bai(problem.n_actions, privacy.alpha, privacy.epsilon, problem.reward_range, _budget(settings))


def _claim(whose: str, theorem: str, source: str) -> Callable[[Settings], Claim]:
    def promise(settings: Settings) -> Claim:
        assert settings.privacy is not None
        stated = replace(settings.privacy, relation=Relation.REPLACE_REWARD)
        return claim_of(stated, whose, theorem, source, "one reward (one round)")

    return promise


def _stopping_early(build: Callable[[Settings], TopTwo]) -> Callable[[Settings], Settings]:
    """Settings with thresholds so low that some of an audit's short runs stop; no noise depends on them."""

    def found(settings: Settings) -> Settings:
        return settings.with_parameters(beta_scale=build(settings).rules.scale_of(_SHORT))

    return found


def _all_rounds(settings: Settings) -> Settings:
    """An audit's few rounds are the budget."""
    return settings.with_parameters(budget=None)


_TIME = "all actions, the recommendation and the stopping time"
_ARM = "all actions and the recommendation"
_entry = partial(Entry, family="bandits/best_arm", plays_on=(FINITE,))
_fixed_confidence = partial(_entry, name="adap-tt", parameters=_TEST)
_by_costs = partial(_entry, name="dp-tt", parameters=_TEST)
_fixed_budget = partial(
    _entry, name="dp-bai", parameters=_BUDGET, in_audit=_all_rounds, audit_shape=(4, 2)  # two phases
)  # fmt: skip
_twin = {"privacy_model": "none", "guarantee": None, "calibrations": ()}
_private = {"privacy_model": "central", "probes": first_user}

ENTRIES = (
    _fixed_confidence(
        **_twin,
        claim="none: the non-private twin",
        source=f"{_JOURDAN}, in growing episodes",
        build=_top_two,
        in_audit=_stopping_early(_top_two),
    ),
    _fixed_confidence(
        **_private,
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-DP of {_TIME}, replace one reward",
        source=f"{_AZIZE}, AdaP-TT",
        build=_adap_tt,
        in_audit=_stopping_early(_adap_tt),
        promise=_claim(_TIME, "privacy theorem of AdaP-TT", _AZIZE),
    ),
    _fixed_confidence(
        **_private,
        guarantee="renyi",
        calibrations=("tight",),
        claim=f"(alpha, epsilon)-RDP of {_TIME}, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{_AZIZE}, AdaP-TT, {_AS_GAUSSIAN}",
        build=_adar_tt,
        in_audit=_stopping_early(_adar_tt),
        promise=_claim(_TIME, "one-touch lemma, as for AdaR-UCB's Theorem 4", _AZIZE),
    ),
    _by_costs(
        **_twin,
        claim="none: the non-private twin",
        source=f"{_OPTIMAL}, without noise",
        build=_transport_top_two,
        in_audit=_stopping_early(_transport_top_two),
    ),
    _by_costs(
        **_private,
        guarantee="pure",
        calibrations=("tight",),
        claim=f"epsilon-DP of {_TIME}, replace one reward",
        source=f"{_OPTIMAL}, DP-TT",
        build=_dp_tt,
        in_audit=_stopping_early(_dp_tt),
        promise=_claim(_TIME, "one-touch lemma, as for AdaP-TT", _OPTIMAL),
    ),
    _by_costs(
        **_private,
        guarantee="renyi",
        calibrations=("tight",),
        claim=f"(alpha, epsilon)-RDP of {_TIME}, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{_OPTIMAL}, DP-TT, {_AS_GAUSSIAN}",
        build=_gaussian_tt,
        in_audit=_stopping_early(_gaussian_tt),
        promise=_claim(_TIME, "one-touch lemma, as for AdaR-UCB's Theorem 4", _OPTIMAL),
    ),
    _fixed_budget(
        **_twin,
        claim="none: the non-private twin",
        source=_KARNIN,
        build=_halving,
    ),
    _fixed_budget(
        **_private,
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-DP of {_ARM}, replace one reward",
        source=f"{_CHEN}, DP-BAI, on arms without features",
        build=_dp_bai,
        promise=_claim(_ARM, "privacy proposition of DP-BAI", _CHEN),
    ),
    _fixed_budget(
        **_private,
        guarantee="renyi",
        calibrations=("tight",),
        claim=f"(alpha, epsilon)-RDP of {_ARM}, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{_CHEN}, DP-BAI, on arms without features, {_AS_GAUSSIAN}",
        build=_gaussian_bai,
        promise=_claim(_ARM, "one-touch lemma, as for AdaR-UCB's Theorem 4", _CHEN),
    ),
)
