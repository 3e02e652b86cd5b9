"""Catalog entries for linear bandits whose users bring their own actions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bandana.algorithms.bandits.contextual.batched import BATCHED
from bandana.algorithms.bandits.contextual.greedy import GREEDY
from bandana.algorithms.bandits.contextual.lin_priv import LIN_PRIV
from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, LinUCBSettings
from bandana.algorithms.bandits.contextual.logistic_ucb import LOGISTIC
from bandana.algorithms.bandits.contextual.oful import PARTS, adar_oful, oful
from bandana.algorithms.bandits.contextual.regression_policies import POLICIES
from bandana.algorithms.entry import AS_KNOWN, AZIZE_BASU, Bound, Entry, Form, RegretBound, Settings, built_by, of_rewards
from bandana.algorithms.epochs import EPOCHS, in_epochs, one_epoch, proved_in_epochs
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, RIDGE, SWITCH, declared
from bandana.algorithms.problem import CONTEXTUAL
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression.noisy_sums import parts_of, structure_of
from bandana.privacy_core import Structure, TrustModel


def changing_regularizers(build: Callable[[Settings], LinUCB], source: str) -> Bound:
    """The bound of LinUCB or of GP-UCB, its constants those of the algorithm that is built."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        algorithm = build(settings)
        if algorithm.beta_scale < 1:
            return None
        _, least, largest = algorithm.shift(int(grid[-1]))
        floor, n = algorithm.regularizers
        constants = f"d = {algorithm.n_features}, n = {n}, a' = {'a_t' if floor is None else format(floor, '.3g')}, "
        constants += f"R = {algorithm.reward_scale:g}, B = {algorithm.parameter_bound:g}"
        if (e := algorithm.inaccuracy) > 0:
            error = f"means that are linear but for e = {e:.2g} add 2 e t, and e min(sqrt t, t / sqrt a_t) to W"
            constants = f"{error}; {constants}"
        return RegretBound(
            algorithm.regret_bound(grid),
            f"{source}, with constants: D + max(D, 2 s W) sqrt(t d log(1 + t / (a d)) / log 2), W = R sqrt(2 log(2 n / "
            f"failure) + d log((t / d + b_t) / a')) + B sqrt(b_t) + g_t / sqrt(a_t) at its largest, and at most D t, D the "
            f"range's width, for any contexts and |theta| <= B. Here {constants}, s = {algorithm.beta_scale:g}, a_t = "
            f"{least:.3g} and b_t = {largest:.3g} at the end. Exceeded with probability at most {algorithm.failure:.3g}",
        )

    return bound


_OFUL = "Abbasi-Yadkori, Pal and Szepesvari (2011), Improved algorithms for linear stochastic bandits"
_SHARIFF_SHEFFET = "Shariff and Sheffet (2018), Differentially private contextual linear bandits"
_ZHENG = "Zheng, Cai, Huang, Li and Wang (2020), Locally differentially private (contextual) bandits learning"
_RECORD = "one user's record (contexts and rewards)"
_WIDTH = declared(FAILURE, BETA_SCALE, RIDGE, EPOCHS)
_SWITCHING = declared(FAILURE, BETA_SCALE, RIDGE, SWITCH)
_AUDIT_SHAPE = (3, 3)


_oful = built_by(oful)
_adar_oful = built_by(adar_oful)


def _structure(trust: TrustModel | None, settings: Settings) -> Structure | None:
    return structure_of(trust, settings.parts, settings.problem.known_horizon)


def _self_normalized(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _oful(settings) if settings.privacy is None else _adar_oful(settings)
    if algorithm.beta_scale < 1:
        return None
    d, q = algorithm.context_dimension, max(algorithm.noise_norms)
    numbers = (
        f"G = d log(1 + t / (lambda d)), d = {d}, lambda = {algorithm.ridge:g}, C = {algorithm.switch:g}, R = "
        f"{algorithm.reward_scale:g}, B = {algorithm.parameter_bound:g}, s = {algorithm.beta_scale:g}, q = {q:.3g} at the "
        f"end, failure = {algorithm.failure:.3g}"
    )
    if algorithm.least_share is not None:
        return RegretBound(
            algorithm.theorem_10_formula(grid),
            f"{AZIZE_BASU}, Theorem 10: stated by the paper, its assumption fails. 2 s sqrt(1 + C) ((R sqrt(2 log(1 / "
            "failure) + G) + B sqrt lambda) sqrt(2 t G) + gamma sqrt(2 (1 + C) (1 + lambda) G^2 / log(1 + C))), "
            f"gamma = 2 q / sqrt(lambda_0), lambda_0 = {algorithm.least_share:.3g}. Here {numbers}",
        )
    of = f"{_OFUL}, Theorem 4" if settings.privacy is None else f"{AZIZE_BASU}, Theorem 10, proved without its assumption"
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{of}: max(D, 2 s sqrt(1 + C) W) sqrt(t G / log 2), W = R sqrt(2 log(1 / failure) + G) + B sqrt lambda + q / sqrt "
        f"lambda, and at most D t, D the range's width, for any contexts and |theta| <= B. Here {numbers}. Exceeded with "
        f"probability at most {(1 if settings.privacy is None else 2) * algorithm.failure:.3g}",
    )


_LIN_UCB = (
    Form(f"{_OFUL}, OFUL in every round", _OFUL),
    Form(
        f"{_SHARIFF_SHEFFET}, Gaussian variant", _SHARIFF_SHEFFET, TrustModel.JOINT, "approximate",
        ("printed", "tree", "tight"),
        "(epsilon, delta)-joint DP: the actions of all other users, replace one record (contexts and rewards)",
        "the actions of all other users", "privacy theorem of Algorithm 2",
    ),
    Form(
        _ZHENG, _ZHENG, TrustModel.LOCAL, "approximate", (AS_KNOWN, "tight"),
        "(epsilon, delta)-local DP of a user's messages, replace one record (contexts and rewards)",
        "a user's messages", "privacy theorem of contextual linear bandits",
    ),
)  # fmt: skip


def _lin_ucb_entry(form: Form) -> Entry:
    build = built_by(LinUCBSettings, trust=form.trust)
    shape: dict[str, Any] = {}
    if form.trust is not None:
        parts = {name: parts_of(name, form.trust, form.calibrations[0]) for name in form.calibrations}
        shape = {"audit_shape": _AUDIT_SHAPE, "parts": parts}
    return form.entry(
        "linucb", "bandits/contextual", in_epochs(build), _RECORD, plays_on=(CONTEXTUAL,), parameters=_WIDTH,
        in_audit=one_epoch, structure=partial(_structure, form.trust),
        bound=proved_in_epochs(changing_regularizers(build, form.paper)), **shape,
    )  # fmt: skip


_OF_REWARDS = "(alpha, epsilon)-RDP of all actions, replace one reward, contexts public; mu = sqrt(2 epsilon / alpha)"
_entry = partial(
    Form.entry, family="bandits/contextual", plays_on=(CONTEXTUAL,), parameters=_SWITCHING, bound=_self_normalized
)
ENTRIES = (
    _entry(
        Form(f"{_OFUL}, rarely switching OFUL", claim="none: the non-private twin of adar-oful"), name="oful", build=_oful
    ),
    _entry(
        of_rewards(
            f"{AZIZE_BASU}, Algorithm 4 and Theorem 9", "renyi", "Theorem 9", AZIZE_BASU, ("printed", "tight"),
            claim=_OF_REWARDS,
        ),
        name="adar-oful", build=_adar_oful, audit_shape=_AUDIT_SHAPE, parts=PARTS,
    ),
    LIN_PRIV,
    *map(_lin_ucb_entry, _LIN_UCB),
    *GREEDY,
    *BATCHED,
    *LOGISTIC,
    *POLICIES,
)  # fmt: skip
