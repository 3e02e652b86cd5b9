"""Catalog lines of episodes in a linear-mixture Markov decision process."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from bandana.algorithms.entry import Entry, RegretBound, Settings, first_user, record_claim
from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, Kind, Parameter, declared
from bandana.algorithms.problem import MIXTURE
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.mixture.calibrations import READINGS, calibrations
from bandana.algorithms.rl.mixture.forms import VTR
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.privacy_core import ApproxDP, PureDP, TrustModel

_AYOUB = "Ayoub, Jia, Szepesvari, Wang and Yang (2020), Model-based reinforcement learning with value-targeted regression"
_ZHOU = (
    "Zhou, Gu and Szepesvari (2021), Nearly minimax optimal reinforcement learning for linear mixture Markov decision "
    "processes"
)
_LUYO = (
    "Luyo, Garcelon, Lazaric and Pirotta (2021), Differentially private exploration in reinforcement learning with linear "
    "representation"
)
_EPISODE = "one user's episode (states, actions and rewards of all its steps)"
_WHAT = {
    TrustModel.JOINT: "the other users' actions and the final policy, replace one episode",
    TrustModel.LOCAL: "a user's message, replace the episode",
}
_WHOSE = {TrustModel.JOINT: "the actions of all other users and the final policy", TrustModel.LOCAL: "a user's messages"}
_PARAMETERS = declared(
    FAILURE,
    BETA_SCALE,
    Parameter("ridge", "Regularizer lambda of the regression, in units of the squared bound on a feature.", 1.0),
)
_PURE_PARAMETERS = _PARAMETERS | declared(
    Parameter(
        "reading", "Sensitivities that the printed noise is scaled for; the claim needs those in L1.", READINGS[-1],
        Kind.CHOICE, READINGS,
    )
)  # fmt: skip
_AUDIT_SHAPE, _PURE_AUDIT_SHAPE, _PLUS_AUDIT_SHAPE = (2, 3), (2, 6), (2, 2)
"""In many dimensions L1 and L2 sensitivities part; in few the floor of the weights is near what they are in few episodes."""
_PLUS = "ucrl-vtr-plus"


class _Form(NamedTuple):
    """One row of the table: an algorithm under one trust model with one guarantee, and where it is published."""

    algorithm: str
    trust: TrustModel | None
    guarantee: str | None
    source: str
    theorem: str = ""


_FORMS = (
    _Form("ucrl-vtr", None, None, f"{_AYOUB}, UCRL-VTR, a regression for each step"),
    _Form("ucrl-vtr", TrustModel.JOINT, "approximate", f"{_LUYO}, Algorithm 1, Corollary 5", "Corollary 5"),
    _Form("ucrl-vtr", TrustModel.LOCAL, "approximate", f"{_LUYO}, Algorithm 1, Corollary 6", "Corollary 6"),
    _Form("ucrl-vtr", TrustModel.JOINT, "pure", f"{_LUYO}, Algorithm 1, Remark 1, Appendix C.4", "Remark 1"),
    _Form("ucrl-vtr", TrustModel.LOCAL, "pure", f"{_LUYO}, Algorithm 1, Remark 1, Appendix C.4", "Remark 1"),
    _Form(_PLUS, None, None, f"{_ZHOU}, UCRL-VTR+"),
    _Form(_PLUS, TrustModel.JOINT, "approximate", f"{_LUYO}, Algorithm 3, Corollary 10", "Corollary 10"),
    _Form(_PLUS, TrustModel.LOCAL, "approximate", f"{_LUYO}, Algorithm 3, Corollary 11", "Corollary 11"),
    _Form(_PLUS, TrustModel.JOINT, "pure", f"{_LUYO}, Algorithm 3, Remark 6", "Remark 6"),
    _Form(_PLUS, TrustModel.LOCAL, "pure", f"{_LUYO}, Algorithm 3, Remark 6", "Remark 6"),
)


def _built(form: _Form, settings: Settings) -> UCRLVTR:
    problem, given = settings.problem, settings.parameters
    assert isinstance(problem.model, MixtureModel)
    vtr = VTR(
        problem.model, problem.known_horizon, problem.reward_range, form.algorithm == _PLUS,
        given["ridge"], given["failure"], given["beta_scale"],
    )  # fmt: skip
    if form.trust is None:
        return vtr.twin()
    assert isinstance(settings.privacy, ApproxDP | PureDP)
    reading = (given["reading"],) if form.guarantee == "pure" else ()
    return vtr.private(settings.privacy, form.trust, settings.parts, *reading)


def _bound(form: _Form, settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    """The regret bound, with the constants of the algorithm that is built; None where none is proved."""
    algorithm = _built(form, settings)
    if algorithm.why_unproved is not None:
        return None
    shift, n = algorithm.shift(int(grid[-1])), algorithm.targets.n_blocks
    paper = f"{_LUYO}, Theorem {'9' if form.algorithm == _PLUS else '7'}"
    source = paper if form.trust is not None else _ZHOU if form.algorithm == _PLUS else _AYOUB
    width = (
        "W_h the printed width at the end"
        if algorithm.is_published
        else "W_h = S_h sqrt(2 log(2 B n / failure) + d log((t R_h^2 / d + b_h) / a')) + C_w sqrt(b_h) + g_h / sqrt(a_h) at "
        f"its largest, B = {algorithm.n_blocks}"
    )
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{source}, with constants: sum over steps of D_h + max(D_h, 2 s v_h W_h) sqrt(t d log(1 + t R_h^2 / (a_h d)) / "
        "log 2), plus sqrt(t sum D_(h+1)^2 log(1 / failure) / 2), and at most D_1 t, D_h the range of values, v_h the "
        f"largest deviation that a sample is divided by; {width}; d = {algorithm.model.dimension}, C_w = "
        f"{algorithm.model.parameter_bound:.3g}, s = {algorithm.beta_scale:g}, v = {algorithm.largest_deviation.max():.3g}, "
        f"R = {algorithm.regressor_bounds[:n].max():.3g}, a = {shift.least[:n].max():.3g} and b = "
        f"{shift.largest[:n].max():.3g} at most at the end; exceeded with probability at most {2 * algorithm.failure:.3g}",
    )


def _entry(form: _Form) -> Entry:
    algorithm, trust, guarantee, source, _ = form
    is_plus, is_pure = algorithm == _PLUS, guarantee == "pure"
    audit_shape = _PLUS_AUDIT_SHAPE if is_plus else _PURE_AUDIT_SHAPE if is_pure else _AUDIT_SHAPE
    bound = partial(_bound, form)
    if trust is None:
        return Entry(
            algorithm, "rl/mixture", "none", None, (), "none: the non-private twin", source, partial(_built, form),
            (MIXTURE,), _PARAMETERS, audit_shape=audit_shape, bound=bound,
        )  # fmt: skip
    parts = calibrations(is_plus, trust is TrustModel.JOINT, is_pure)
    return Entry(
        name=algorithm,
        family="rl/mixture",
        privacy_model=str(trust),
        guarantee=guarantee,
        calibrations=tuple(parts),
        claim=f"{'epsilon' if is_pure else '(epsilon, delta)'}-{trust} DP: {_WHAT[trust]}",
        source=source,
        build=partial(_built, form),
        plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS if is_pure else _PARAMETERS,
        promise=record_claim(trust, _WHOSE[trust], form.theorem, _LUYO, _EPISODE),
        probes=first_user,
        audit_shape=audit_shape,
        bound=bound,
        parts=parts,
    )


ENTRIES = tuple(_entry(form) for form in _FORMS)
