"""Catalog lines of bandits whose arms have known features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bandana.algorithms.bandits.linear.phased_elimination import (
    PARTS,
    PhasedElimination,
    adar_gope,
    adar_gope_pure,
    gope,
    theorem_8_bound,
)
from bandana.algorithms.entry import (
    AZIZE_BASU,
    Bound,
    Claim,
    Entry,
    RegretBound,
    Settings,
    first_user,
    fitting,
    pure_of,
    renyi_of,
    reward_claim,
)
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, declared
from bandana.algorithms.problem import LINEAR
from bandana.algorithms.protocol import FloatArray, IntArray


def _features(settings: Settings) -> tuple[tuple[float, ...], ...]:
    assert settings.problem.features is not None
    return settings.problem.features


def _gope(settings: Settings) -> PhasedElimination:
    given = settings.parameters
    return gope(_features(settings), settings.problem.reward_range, given["failure"], given["beta_scale"])


def _adar_gope(settings: Settings) -> PhasedElimination:
    privacy, given = renyi_of(settings), settings.parameters
    return adar_gope(
        _features(settings), privacy.alpha, privacy.epsilon, settings.problem.reward_range, settings.parts,
        given["failure"], given["beta_scale"],
    )  # fmt: skip


def _adar_gope_pure(settings: Settings) -> PhasedElimination:
    given, problem = settings.parameters, settings.problem
    return adar_gope_pure(
        _features(settings), pure_of(settings).epsilon, problem.reward_range, given["failure"], given["beta_scale"]
    )


def _short_phases(build: Callable[[Settings], PhasedElimination]) -> Callable[[Settings], Settings]:
    """Settings with phases of which several fit into the rounds of an audit."""

    def first(chosen: Settings) -> int:
        algorithm = build(chosen)
        return int(algorithm.plan(1, np.ones(algorithm.n_actions, dtype=bool)).counts.sum())

    return lambda settings: fitting(settings.with_parameters(failure=0.1), "beta_scale", first)


def _claim(theorem: str) -> Callable[[Settings], Claim]:
    return lambda settings: reward_claim(settings, theorem, AZIZE_BASU)


def _phase_bound(build: Callable[[Settings], PhasedElimination], source: str) -> Bound:
    """A regret bound with the calibration's own phase lengths."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        given = settings.parameters
        if given["beta_scale"] < 1:
            return None
        return RegretBound(
            build(settings).regret_bound(grid),
            f"{source}, summed over the phases with their own lengths: a round of phase l costs at most min(1, 4 * 2^-l) "
            f"times the range's width; exceeded with probability at most {given['failure']:.3g}, beta_scale = "
            f"{given['beta_scale']:g}",
        )

    return bound


def _theorem_8(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    given, problem = settings.parameters, settings.problem
    if settings.calibration != "printed" or given["beta_scale"] != 1:
        return _phase_bound(_adar_gope, f"{AZIZE_BASU}, proof of Theorem 8")(settings, means, grid)
    privacy, features = renyi_of(settings), _features(settings)
    d, failure = len(features[0]), given["failure"]
    return RegretBound(
        theorem_8_bound(
            grid, len(features), d, privacy.alpha, privacy.epsilon, failure, problem.reward_range
        ),
        f"{AZIZE_BASU}, Theorem 8, with the constants of its proof in units of half the range's width: 4 d (d + 1) + 48 "
        f"sqrt(g t L) + 16 g l sqrt(2 (alpha / epsilon) d (d + 1) L), L = log(4 K l (l + 1) / failure) at phase l, g = "
        f"1.001 d; at most 2 t; d = {d}, K = {len(features)}, alpha = {privacy.alpha:g}, epsilon = {privacy.epsilon:g}; "
        f"exceeded with probability at most {failure:.3g}",
    )  # fmt: skip


_linear = partial(Entry, family="bandits/linear", plays_on=(LINEAR,), parameters=declared(FAILURE, BETA_SCALE))
_adar = partial(_linear, name="adar-gope", privacy_model="central", probes=first_user)

ENTRIES = (
    _linear(
        name="gope",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin",
        source="Lattimore and Szepesvari (2018), Bandit Algorithms, chapter 22",
        build=_gope,
        in_audit=_short_phases(_gope),
        bound=_phase_bound(_gope, "Lattimore and Szepesvari (2018), proof of Theorem 22.1"),
    ),
    _adar(
        guarantee="renyi",
        calibrations=("printed", "tight"),
        claim="(alpha, epsilon)-RDP of all actions, replace one reward; as GDP, mu = sqrt(2 epsilon / alpha)",
        source=f"{AZIZE_BASU}, Algorithm 3 and Theorem 7",
        build=_adar_gope,
        promise=_claim("Theorem 7"),
        parts=PARTS,
        in_audit=_short_phases(_adar_gope),
        bound=_theorem_8,
    ),
    _adar(
        guarantee="pure",
        calibrations=("tight",),
        claim="epsilon-DP of all actions, replace one reward",
        source=f"{AZIZE_BASU}, Algorithm 3 with Laplace noise, Discussion 2",
        build=_adar_gope_pure,
        promise=_claim("Discussion 2"),
        in_audit=_short_phases(_adar_gope_pure),
        bound=_phase_bound(_adar_gope_pure, f"{AZIZE_BASU}, Discussion 2 with the constants that it leaves open"),
    ),
)
