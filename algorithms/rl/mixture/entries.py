"""Catalog entries for episodes in a linear-mixture Markov decision process."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, Kind, Parameter, declared
from bandana.algorithms.problem import MIXTURE
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.mixture.calibrations import READINGS, calibrations
from bandana.algorithms.rl.mixture.forms import VTR
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.privacy_core import TrustModel

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


def _form(trust: TrustModel, guarantee: str, is_plus: bool, algorithm: str, theorem: str, appendix: str = "") -> Form:
    is_pure = guarantee == "pure"
    names = tuple(calibrations(is_plus, trust is TrustModel.JOINT, is_pure))
    claim = f"{'epsilon' if is_pure else '(epsilon, delta)'}-{trust} DP: {_WHAT[trust]}"
    source = f"{_LUYO}, {algorithm}, {theorem}{appendix}"
    return Form(source, _LUYO, trust, guarantee, names, claim, _WHOSE[trust], theorem)


_JOINT, _LOCAL = TrustModel.JOINT, TrustModel.LOCAL
_FORMS = (
    Form(f"{_AYOUB}, UCRL-VTR, a regression for each step", _AYOUB),
    _form(_JOINT, "approximate", False, "Algorithm 1", "Corollary 5"),
    _form(_LOCAL, "approximate", False, "Algorithm 1", "Corollary 6"),
    _form(_JOINT, "pure", False, "Algorithm 1", "Remark 1", ", Appendix C.4"),
    _form(_LOCAL, "pure", False, "Algorithm 1", "Remark 1", ", Appendix C.4"),
)
_PLUS_FORMS = (
    Form(f"{_ZHOU}, UCRL-VTR+", _ZHOU),
    _form(_JOINT, "approximate", True, "Algorithm 3", "Corollary 10"),
    _form(_LOCAL, "approximate", True, "Algorithm 3", "Corollary 11"),
    _form(_JOINT, "pure", True, "Algorithm 3", "Remark 6"),
    _form(_LOCAL, "pure", True, "Algorithm 3", "Remark 6"),
)


def _bound(
    build: Callable[[Settings], UCRLVTR], paper: str, settings: Settings, means: FloatArray | None, grid: IntArray
) -> RegretBound | None:
    """The regret bound, with the constants of the algorithm that is built; None where none is proved."""
    algorithm = build(settings)
    if algorithm.why_unproved is not None:
        return None
    shift, n = algorithm.shift(int(grid[-1])), algorithm.targets.n_blocks
    width = (
        "W_h the printed width at the end"
        if algorithm.is_published
        else "W_h = S_h sqrt(2 log(2 B n / failure) + d log((t R_h^2 / d + b_h) / a')) + C_w sqrt(b_h) + g_h / sqrt(a_h) at "
        f"its largest, B = {algorithm.n_blocks}"
    )
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{paper}, with constants: sum over steps of D_h + max(D_h, 2 s v_h W_h) sqrt(t d log(1 + t R_h^2 / (a_h d)) / "
        "log 2), plus sqrt(t sum D_(h+1)^2 log(1 / failure) / 2), and at most D_1 t, D_h the range of values, v_h the "
        f"largest deviation that a sample is divided by. Here {width}; d = {algorithm.model.dimension}, C_w = "
        f"{algorithm.model.parameter_bound:.3g}, s = {algorithm.beta_scale:g}, v = {algorithm.largest_deviation.max():.3g}, "
        f"R = {algorithm.regressor_bounds[:n].max():.3g}, a = {shift.least[:n].max():.3g} and b = "
        f"{shift.largest[:n].max():.3g} at most at the end. Exceeded with probability at most {2 * algorithm.failure:.3g}",
    )


def _entry(is_plus: bool, form: Form) -> Entry:
    trust, is_pure = form.trust, form.guarantee == "pure"
    build = built_by(VTR, is_plus=is_plus, trust=trust)
    paper = form.paper if trust is None else f"{_LUYO}, Theorem {'9' if is_plus else '7'}"
    return form.entry(
        "ucrl-vtr-plus" if is_plus else "ucrl-vtr", "rl/mixture", build, _EPISODE, plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS if is_pure else _PARAMETERS, bound=partial(_bound, build, paper),
        audit_shape=_PLUS_AUDIT_SHAPE if is_plus else _PURE_AUDIT_SHAPE if is_pure else _AUDIT_SHAPE,
        parts={} if trust is None else calibrations(is_plus, trust is TrustModel.JOINT, is_pure),
    )  # fmt: skip


ENTRIES = (*map(partial(_entry, False), _FORMS), *map(partial(_entry, True), _PLUS_FORMS))
