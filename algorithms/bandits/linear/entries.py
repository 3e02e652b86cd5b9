"""Catalog entries for bandits whose arms have known features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bandana.algorithms.bandits.linear.phased_elimination import (
    PARTS,
    PhasedElimination,
    adar_gope,
    adar_gope_pure,
    gope,
    theorem_8_bound,
)
from bandana.algorithms.entry import AZIZE_BASU, Bound, Entry, Form, RegretBound, Settings, built_by, fitting, of_rewards
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, declared
from bandana.algorithms.problem import LINEAR
from bandana.algorithms.protocol import FloatArray, IntArray


def _failure(settings: Settings) -> float:
    return float(settings.parameters["failure"])


_gope = built_by(gope, delta=_failure)
_adar_gope = built_by(adar_gope, delta=_failure)
_adar_gope_pure = built_by(adar_gope_pure, delta=_failure)


def _short_phases(build: Callable[[Settings], PhasedElimination]) -> Callable[[Settings], Settings]:
    """Settings with phases of which several fit into the rounds of an audit."""

    def first(chosen: Settings) -> int:
        algorithm = build(chosen)
        return int(algorithm.plan(1, np.ones(algorithm.n_actions, dtype=bool)).counts.sum())

    return lambda settings: fitting(settings.with_parameters(failure=0.1), "beta_scale", first)


def _phase_bound(build: Callable[[Settings], PhasedElimination], source: str) -> Bound:
    """A regret bound with the calibration's own phase lengths."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        given = settings.parameters
        if given["beta_scale"] < 1:
            return None
        return RegretBound(
            build(settings).regret_bound(grid),
            f"{source}, summed over the phases with their own lengths: a round of phase l costs at most min(1, 4 * 2^-l) "
            f"times the range's width. Exceeded with probability at most {given['failure']:.3g}, beta_scale = "
            f"{given['beta_scale']:g}",
        )

    return bound


def _theorem_8(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    given, problem = settings.parameters, settings.problem
    if settings.calibration != "printed" or given["beta_scale"] != 1:
        return _phase_bound(_adar_gope, f"{AZIZE_BASU}, proof of Theorem 8")(settings, means, grid)
    alpha, epsilon = settings.level().values()
    assert problem.features is not None
    n, d, failure = len(problem.features), len(problem.features[0]), given["failure"]
    return RegretBound(
        theorem_8_bound(grid, n, d, alpha, epsilon, failure, problem.reward_range),
        f"{AZIZE_BASU}, Theorem 8, with the constants of its proof in units of half the range's width: 4 d (d + 1) + 48 "
        f"sqrt(g t L) + 16 g l sqrt(2 (alpha / epsilon) d (d + 1) L), L = log(4 K l (l + 1) / failure) at phase l, g = "
        f"1.001 d; at most 2 t. Here d = {d}, K = {n}, alpha = {alpha:g}, epsilon = {epsilon:g}. "
        f"Exceeded with probability at most {failure:.3g}",
    )


def _entry(name: str, form: Form, build: Callable[[Settings], PhasedElimination], bound: Bound, **more: Any) -> Entry:
    return form.entry(
        name, "bandits/linear", build, plays_on=(LINEAR,), parameters=declared(FAILURE, BETA_SCALE),
        in_audit=_short_phases(build), bound=bound, **more,
    )  # fmt: skip


ENTRIES = (
    _entry(
        "gope", Form("Lattimore and Szepesvari (2018), Bandit Algorithms, chapter 22"), _gope,
        _phase_bound(_gope, "Lattimore and Szepesvari (2018), proof of Theorem 22.1"),
    ),
    _entry(
        "adar-gope",
        of_rewards(f"{AZIZE_BASU}, Algorithm 3 and Theorem 7", "renyi", "Theorem 7", AZIZE_BASU, ("printed", "tight")),
        _adar_gope, _theorem_8, parts=PARTS,
    ),
    _entry(
        "adar-gope",
        of_rewards(f"{AZIZE_BASU}, Algorithm 3 with Laplace noise, Discussion 2", "pure", "Discussion 2", AZIZE_BASU),
        _adar_gope_pure,
        _phase_bound(_adar_gope_pure, f"{AZIZE_BASU}, Discussion 2 with the constants that it leaves open"),
    ),
)  # fmt: skip
