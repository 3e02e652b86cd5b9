"""Catalog entries for kernel bandits with stochastic contexts: CAPRI."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bandana.algorithms.bandits.capri.capri import ProjectedElimination
from bandana.algorithms.bandits.capri.forms import CAPRI, PARTS, WIDTH
from bandana.algorithms.bandits.capri.regret_bound import least_probability, regret_bound
from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.papers.pavlovic import least_horizon
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, NORM_BOUND, RIDGE, Parameter, declared
from bandana.algorithms.problem import POOLED
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import TrustModel

_PAVLOVIC = "Pavlovic, Salgia and Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections"
_RECORD = "one user's record (context and reward)"
_ERROR_SCALE = Parameter(
    "error_scale", "Factor on the parts of widths that are not privacy noise; the theorem requires 1.", 1.0
)
_PARAMETERS = declared(RIDGE, FAILURE, NORM_BOUND, BETA_SCALE, _ERROR_SCALE)
_NARROW = {"exact": 0.05, "printed": 1e-4, "lemma-6-6": 1e-4}


def _proved(
    build: Callable[[Settings], ProjectedElimination], settings: Settings, means: FloatArray | None, grid: IntArray
) -> RegretBound | None:
    """The elimination argument with exact widths; None for printed ones, or scaled below 1, of which nothing is proved."""
    algorithm, given = build(settings), settings.parameters
    values = regret_bound(algorithm, grid)
    if values is None:
        return None
    p = least_probability(algorithm.pool.law, algorithm.n_actions)
    needed = least_horizon(p, algorithm.ridge, given["failure"], len(algorithm.features))
    return RegretBound(
        values,
        f"{_PAVLOVIC}, the argument of Theorem 6.7 with exact widths: after an epoch a round costs at most 4 times the "
        "longest half-width that it can have, and at most the largest gap; least probability of a point "
        f"{p:.3g}, |f| <= {given['norm_bound']:g}, contexts drawn by the pool's law. Exceeded with probability at most "
        f"{2 * given['failure']:.3g}. The theorem's own constants need T_0 = {needed:.3g} rounds",
    )


def _eliminating(settings: Settings) -> Settings:
    """Settings with widths so short that the few rounds of a replay drop actions."""
    return settings.with_parameters(failure=0.1, beta_scale=_NARROW[settings.parts.get(WIDTH, "exact")])


_FORMS = (
    Form(f"{_PAVLOVIC}, Algorithm 1 without noise", _PAVLOVIC),
    Form(
        f"{_PAVLOVIC}, Algorithm 1", _PAVLOVIC, TrustModel.JOINT, "approximate", tuple(PARTS),
        "(epsilon, delta)-joint DP: the actions of all other users, replace one record (context and reward)",
        "the actions of all other users", "Theorems 4.1 and 6.7, JDP",
    ),
    Form(
        f"{_PAVLOVIC}, Algorithm 1, local", _PAVLOVIC, TrustModel.LOCAL, "approximate", tuple(PARTS),
        "(epsilon, delta)-local DP of a user's message, replace one record (context and reward)",
        "a user's message", "Theorems 4.1 and 6.7, LDP",
    ),
)  # fmt: skip


def _entry(form: Form) -> Entry:
    build = built_by(CAPRI, trust=form.trust)
    return form.entry(
        "capri", "bandits/capri", build, _RECORD, plays_on=(POOLED,), parameters=_PARAMETERS, in_audit=_eliminating,
        bound=partial(_proved, build), parts={} if form.trust is None else PARTS,
    )  # fmt: skip


ENTRIES = tuple(map(_entry, _FORMS))
