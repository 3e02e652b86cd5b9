"""Catalog entries for best-arm identification."""

from __future__ import annotations

from collections.abc import Callable
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
from bandana.algorithms.entry import AS_KNOWN, Entry, Form, Settings, built_by, of_rewards
from bandana.algorithms.parameters import Kind, Parameter, declared
from bandana.algorithms.problem import FINITE

_AZIZE = "Azize, Jourdan, Al Marjani and Basu (2023), On the complexity of DP best-arm identification with fixed confidence"
_JOURDAN = "Jourdan and Degenne (2023), Non-asymptotic analysis of a UCB-based Top Two algorithm, TTUCB"
_OPTIMAL = "Jourdan and Azize (2025), Optimal best arm identification under differential privacy"
_CHEN = "Chen, Karthik, Chee and Tan (2024), Fixed-budget differentially private best arm identification"
_KARNIN = "Karnin, Koren and Somekh (2013), Almost optimal exploration in multi-armed bandits, sequential halving"
_AS_GAUSSIAN = "with Gaussian noise as in AdaR-UCB"
_SHORT = 0.75
"""A lead, in units of the range, at which audits stop a test after an arm's second episode: some of their runs then stop."""

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


def _budget(settings: Settings) -> int:
    """Number of rounds that the test may play: the parameter `budget`, or the whole horizon."""
    horizon, budget = settings.problem.known_horizon, settings.parameters["budget"]
    if budget is not None and budget > horizon:
        raise ValueError(f"budget must be at most the horizon ({horizon}), got {budget}")
    n_actions = settings.problem.n_actions
    if budget is None and horizon < (least := n_actions * (n_actions - 1).bit_length()):
        raise ValueError(f"horizon must be at least {least}, a pull of every arm in every phase, got {horizon}")
    return horizon if budget is None else int(budget)


def _confidence(name: str, build: Callable[..., TopTwo], form: Form) -> Entry:
    """A test of fixed confidence; in audits its thresholds are so low that some short runs stop."""
    built = built_by(build)

    def stopping_early(settings: Settings) -> Settings:
        return settings.with_parameters(beta_scale=built(settings).rules.scale_of(_SHORT))

    return form.entry(
        name, "bandits/best_arm", built, plays_on=(FINITE,), parameters=_TEST, in_audit=stopping_early
    )  # fmt: skip


def _all_rounds(settings: Settings) -> Settings:
    """An audit's few rounds are the budget."""
    return settings.with_parameters(budget=None)


def _fixed_budget(build: Callable[..., Halving], form: Form) -> Entry:
    return form.entry(
        "dp-bai", "bandits/best_arm", built_by(build, budget=_budget), plays_on=(FINITE,), parameters=_BUDGET,
        in_audit=_all_rounds, audit_shape=(4, 2),  # two phases
    )  # fmt: skip


_of_time = partial(of_rewards, whose="all actions, the recommendation and the stopping time")
_of_arm = partial(of_rewards, whose="all actions and the recommendation")
_LEMMA = "one-touch lemma, as for AdaR-UCB's Theorem 4"
_BOTH = (AS_KNOWN, "tight")
_BAI = f"{_CHEN}, DP-BAI, on arms without features"
ENTRIES = (
    _confidence("adap-tt", top_two, Form(f"{_JOURDAN}, in growing episodes")),
    _confidence("adap-tt", adap_tt, _of_time(f"{_AZIZE}, AdaP-TT", "pure", "privacy theorem of AdaP-TT", _AZIZE, _BOTH)),
    _confidence("adap-tt", adar_tt, _of_time(f"{_AZIZE}, AdaP-TT, {_AS_GAUSSIAN}", "renyi", _LEMMA, _AZIZE)),
    _confidence("dp-tt", transport_top_two, Form(f"{_OPTIMAL}, without noise")),
    _confidence("dp-tt", dp_tt, _of_time(f"{_OPTIMAL}, DP-TT", "pure", "one-touch lemma, as for AdaP-TT", _OPTIMAL)),
    _confidence("dp-tt", gaussian_tt, _of_time(f"{_OPTIMAL}, DP-TT, {_AS_GAUSSIAN}", "renyi", _LEMMA, _OPTIMAL)),
    _fixed_budget(sequential_halving, Form(_KARNIN)),
    _fixed_budget(dp_bai, _of_arm(_BAI, "pure", "privacy proposition of DP-BAI", _CHEN, _BOTH)),
    _fixed_budget(gaussian_bai, _of_arm(f"{_BAI}, {_AS_GAUSSIAN}", "renyi", _LEMMA, _CHEN)),
)
