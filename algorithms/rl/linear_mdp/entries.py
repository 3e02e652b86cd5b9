"""Catalog entries for linear Markov decision processes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial

from bandana.algorithms.entry import Form, RegretBound, Settings, built_by
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, SWITCH, Kind, Parameter, declared
from bandana.algorithms.problem import LINEAR_MDP
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.linear_mdp.batched_lsvi import UNIT, BatchedLSVI
from bandana.algorithms.rl.linear_mdp.forms import LSVI, PARTS, PURE_PARTS, SCHEMES
from bandana.algorithms.rl.linear_mdp.regret_bound import is_proved, regret_bound, switching_factor
from bandana.privacy_core import TrustModel

_LUYO = (
    "Luyo, Garcelon, Lazaric and Pirotta, Differentially Private Exploration in Reinforcement Learning with Linear "
    "Representation"
)
_JIN = "Jin, Yang, Wang and Jordan (2020), Provably efficient reinforcement learning with linear function approximation"
_WHOSE = "the actions of all other users and the final policy"
_RECORD = "one user's episode (states, actions and rewards)"
_PARAMETERS = declared(
    FAILURE,
    BETA_SCALE,
    Parameter("ridge", "Regularizer lambda of the regression over the dimension; the paper's is 1.", 1.0),
    Parameter(
        "batches", "When the policy is updated: evenly, ever more rarely, or as the determinant grows.", None, Kind.CHOICE,
        SCHEMES, "static for `printed`; for `tight` static or determinant, whose proved bound is smaller; else determinant",
    ),
    Parameter(
        "n_batches", "Number of batches: one more than there are, or may be, updates.", None, Kind.COUNT,
        otherwise="the scheme's own",
    ),
    SWITCH,
)  # fmt: skip
_AUDIT_SHAPE = (2, 3)
_LEAST_BATCHES, _MOST_BATCHES, _AUDIT_BONUS, _AUDIT_SWITCH = 4, 16, 2.0, 1e-9
"""In audits."""


def _lsvi(settings: Settings) -> BatchedLSVI:
    problem = settings.problem
    if problem.reward_range.low < UNIT.low or problem.reward_range.high > UNIT.high:
        raise ValueError(f"LSVI-UCB is made for rewards in [0, 1], got the range {problem.reward_range}: scale them")
    algorithm: BatchedLSVI = built_by(LSVI)(settings)
    return algorithm


def _in_audit(settings: Settings) -> Settings:
    """Batches of eight users or fewer, and a bonus of about twice what can be earned.

    Of so few users the printed formula makes one batch, and nothing would be released. The noise depends on the number of
    batches, as a claim is split among releases; what is promised does not. A vector moves as far as its noise is made for
    where values are largest, which is what optimism makes them; but far larger bonuses hide all that is learned. Of so few
    users no determinant doubles; with any growth as enough, most updates that are paid for are made.
    """
    batches = min(_MOST_BATCHES, max(_LEAST_BATCHES, settings.problem.known_horizon // 8))
    settings = settings.with_parameters(n_batches=batches, beta_scale=1.0, switch=_AUDIT_SWITCH)
    algorithm = _lsvi(settings)
    bonus = float(algorithm.widths(1).min()) / math.sqrt(algorithm.regularizer(1).added)
    return settings.with_parameters(beta_scale=_AUDIT_BONUS * algorithm.episode_length / bonus)


def _bound(paper: str, settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """The bound of static batches or of determinants, its constants those of the algorithm that is built."""
    algorithm = _lsvi(settings)
    if not is_proved(algorithm):
        return None
    n, scale = algorithm.schedule.looks[0], algorithm.beta_scale
    if algorithm.width is not None:
        text = (
            "eq. (22) with H^2 n for the first batch: H^2 n + 2 sqrt(2 k H^3 log(3/failure)) + H floor(d H n log(1 + "
            "k/(d lambda)) / (2 log 4 - 2)) + 8 s beta H sqrt(2 d k log(1 + k/(lambda + c_K))), and at most H^2 k. Here "
            f"beta = {algorithm.width:.3g}"
        )
    else:
        spread = switching_factor(algorithm)
        text = (
            f"Lemma 25 with a width of our own{'' if spread == 1 else ', for updates by determinants'}: sum_h cap_h n (1 + "
            "G/log 2) + sum_h max(cap_h, sqrt(8 c) s W_h) sqrt(k G/log 2) + sqrt(k sum_h cap_h^2 log(1/failure) / 2), G = d "
            f"log(1 + k/(a d)), c = {spread:.3g}, and at most k sum_h cap_h"
        )
    constants = f"n = {n}, s = {scale:g}. Exceeded with probability at most {2 * algorithm.failure:.3g}"
    return RegretBound(regret_bound(algorithm, grid), f"{paper}, {text}, {constants}")


_FORMS = (
    Form(f"{_JIN}, in batches", _JIN),
    Form(
        f"{_LUYO}, Algorithm 2, Theorem 8", _LUYO, TrustModel.JOINT, "approximate", ("printed", "tight"),
        "(epsilon, delta)-joint DP: the actions of all other users and the final policy, replace one episode",
        _WHOSE, "Theorem 8",
    ),
    Form(
        f"{_LUYO}, Algorithm 2, Remark 2, Appendix E.3", _LUYO, TrustModel.JOINT, "pure", ("printed", "tight"),
        "epsilon-joint DP: the actions of all other users and the final policy, replace one episode",
        _WHOSE, "Remark 2 and Appendix E.3",
    ),
)  # fmt: skip

_PARTS: Mapping[str | None, Mapping[str, Mapping[str, str]]] = {None: {}, "approximate": PARTS, "pure": PURE_PARTS}

ENTRIES = tuple(
    form.entry(
        "lsvi-ucb", "rl/linear_mdp", _lsvi, _RECORD, plays_on=(LINEAR_MDP,), parameters=_PARAMETERS, in_audit=_in_audit,
        audit_shape=_AUDIT_SHAPE, bound=partial(_bound, form.paper), parts=_PARTS[form.guarantee],
    )
    for form in _FORMS
)  # fmt: skip
