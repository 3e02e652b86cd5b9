"""Catalog lines of episodes in a linear-mixture Markov decision process."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bandana.algorithms.entry import Claim, Entry, RegretBound, Settings, approx_of, calibration_of, claim_of, pure_of
from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.problem import MIXTURE
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.rl.mixture.forms import ucrl_vtr, ucrl_vtr_joint, ucrl_vtr_local
from bandana.algorithms.rl.mixture.forms_plus import (
    ucrl_vtr_plus,
    ucrl_vtr_plus_joint,
    ucrl_vtr_plus_local,
    ucrl_vtr_plus_pure_joint,
    ucrl_vtr_plus_pure_local,
)
from bandana.algorithms.rl.mixture.forms_pure import READINGS, ucrl_vtr_pure_joint, ucrl_vtr_pure_local
from bandana.algorithms.rl.mixture.vtr import UCRLVTR
from bandana.algorithms.rl.mixture.vtr_plus import UCRLVTRPlus
from bandana.privacy_core import Relation, TrustModel

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
_JOINT_WHAT = "the other users' actions and the final policy, replace one episode"
_LOCAL_WHAT = "a user's message, replace the episode"
_PARAMETERS = {"failure": None, "beta_scale": 1.0, "ridge": 1.0}
_PURE_PARAMETERS = {**_PARAMETERS, "reading": float(len(READINGS))}
_AUDIT_SHAPE, _PURE_AUDIT_SHAPE, _PLUS_AUDIT_SHAPE = (2, 3), (2, 6), (2, 2)
"""In many dimensions L1 and L2 sensitivities part; in few the floor of the weights is near what they are in few episodes."""


def _given(settings: Settings) -> dict[str, Any]:
    """What every builder takes."""
    problem, asked = settings.problem, dict(settings.parameters)
    assert isinstance(problem.model, MixtureModel)
    asked.pop("reading", None)
    return {"model": problem.model, "horizon": problem.known_horizon, "reward_range": problem.reward_range, **asked}


def _private(settings: Settings) -> dict[str, Any]:
    privacy = approx_of(settings)
    level = {"epsilon": privacy.epsilon, "delta": privacy.delta}
    return {**_given(settings), **level, "calibration": calibration_of(settings)}


def _pure(settings: Settings) -> dict[str, Any]:
    level = {"epsilon": pure_of(settings).epsilon, "calibration": calibration_of(settings)}
    return {**_given(settings), **level, "reading": _reading(settings)}


def _reading(settings: Settings) -> str:
    number = settings.parameters["reading"]
    if number not in range(1, len(READINGS) + 1):
        told = ", ".join(f"{i} ({name})" for i, name in enumerate(READINGS, start=1))
        raise ValueError(f"reading must be one of {told}; got {number!r}")
    return READINGS[int(number) - 1]


def _vtr(settings: Settings) -> UCRLVTR:
    return ucrl_vtr(**_given(settings))


def _vtr_joint(settings: Settings) -> UCRLVTR:
    return ucrl_vtr_joint(**_private(settings))


def _vtr_local(settings: Settings) -> UCRLVTR:
    return ucrl_vtr_local(**_private(settings))


def _vtr_pure_joint(settings: Settings) -> UCRLVTR:
    return ucrl_vtr_pure_joint(**_pure(settings))


def _vtr_pure_local(settings: Settings) -> UCRLVTR:
    return ucrl_vtr_pure_local(**_pure(settings))


def _plus(settings: Settings) -> UCRLVTRPlus:
    return ucrl_vtr_plus(**_given(settings))


def _plus_joint(settings: Settings) -> UCRLVTRPlus:
    return ucrl_vtr_plus_joint(**_private(settings))


def _plus_local(settings: Settings) -> UCRLVTRPlus:
    return ucrl_vtr_plus_local(**_private(settings))


def _plus_pure_joint(settings: Settings) -> UCRLVTRPlus:
    return ucrl_vtr_plus_pure_joint(**_pure(settings))


def _plus_pure_local(settings: Settings) -> UCRLVTRPlus:
    return ucrl_vtr_plus_pure_local(**_pure(settings))


def _joint(theorem: str) -> Any:
    def promise(settings: Settings) -> Claim:
        assert settings.privacy is not None
        stated = replace(settings.privacy, relation=Relation.REPLACE_RECORD, trust=TrustModel.JOINT)
        return claim_of(stated, "the actions of all other users and the final policy", theorem, _LUYO, _EPISODE)

    return promise


def _local(theorem: str) -> Any:
    def promise(settings: Settings) -> Claim:
        assert settings.privacy is not None
        stated = replace(settings.privacy, relation=Relation.REPLACE_RECORD, trust=TrustModel.LOCAL)
        return claim_of(stated, "a user's messages", theorem, _LUYO, _EPISODE)

    return promise


def _bound(build: Any, source: str) -> Any:
    """Makes the regret bound of UCRL-VTR, with the constants of the algorithm that is built; none for the printed width."""

    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        algorithm = build(settings)
        if algorithm.beta_scale < 1 or algorithm.constant_width is not None:
            return None
        shift = algorithm.shift(int(grid[-1]))
        return RegretBound(
            algorithm.regret_bound(grid),
            f"{source}, with constants: sum over steps of D_h + max(D_h, 2 s W_h) sqrt(t d log(1 + t R_h^2 / (a_h d)) / "
            "log 2), plus sqrt(t sum D_(h+1)^2 log(1 / failure) / 2), W_h = S_h sqrt(2 log(2 B n / failure) + d log((t R_h^2"
            " / d + b_h) / a')) + C_w sqrt(b_h) + g_h / sqrt(a_h) at its largest, and at most D_1 t, D_h the range of "
            f"values; d = {algorithm.model.dimension}, B = {algorithm.targets.n_blocks}, C_w = "
            f"{algorithm.model.parameter_bound:.3g}, s = {algorithm.beta_scale:g}, R = "
            f"{max(algorithm.targets.norm_bound):.3g}, a = {shift.least.max():.3g} and b = {shift.largest.max():.3g} at "
            f"most at the end; exceeded with probability at most {2 * algorithm.failure:.3g}",
        )

    return bound


def _first(n_actions: int) -> tuple[int, ...]:
    return (0,)


ENTRIES = (
    Entry(
        name="ucrl-vtr",
        family="mixture_mdp",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin of ucrl-vtr-joint, ucrl-vtr-local and their pure forms",
        source=f"{_AYOUB}, UCRL-VTR, a regression for each step",
        build=_vtr,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        audit_shape=_AUDIT_SHAPE,
        bound=_bound(_vtr, _AYOUB),
    ),
    Entry(
        name="ucrl-vtr-joint",
        family="mixture_mdp",
        privacy_model="joint",
        guarantee="approximate",
        calibrations=("printed", "tree", "tight"),
        claim=f"(epsilon, delta)-joint DP: {_JOINT_WHAT}",
        source=f"{_LUYO}, Algorithm 1, Corollary 5",
        build=_vtr_joint,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        promise=_joint("Corollary 5"),
        probes=_first,
        audit_shape=_AUDIT_SHAPE,
        bound=_bound(_vtr_joint, f"{_LUYO}, Theorem 7"),
    ),
    Entry(
        name="ucrl-vtr-local",
        family="mixture_mdp",
        privacy_model="local",
        guarantee="approximate",
        calibrations=("printed", "tight"),
        claim=f"(epsilon, delta)-local DP: {_LOCAL_WHAT}",
        source=f"{_LUYO}, Algorithm 1, Corollary 6",
        build=_vtr_local,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        promise=_local("Corollary 6"),
        probes=_first,
        audit_shape=_AUDIT_SHAPE,
        bound=_bound(_vtr_local, f"{_LUYO}, Theorem 7"),
    ),
    Entry(
        name="ucrl-vtr-pure-joint",
        family="mixture_mdp",
        privacy_model="joint",
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-joint DP: {_JOINT_WHAT}",
        source=f"{_LUYO}, Algorithm 1, Remark 1, Appendix C.4",
        build=_vtr_pure_joint,
        plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS,
        promise=_joint("Remark 1"),
        probes=_first,
        audit_shape=_PURE_AUDIT_SHAPE,
        bound=_bound(_vtr_pure_joint, f"{_LUYO}, Theorem 7"),
    ),
    Entry(
        name="ucrl-vtr-pure-local",
        family="mixture_mdp",
        privacy_model="local",
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-local DP: {_LOCAL_WHAT}",
        source=f"{_LUYO}, Algorithm 1, Remark 1, Appendix C.4",
        build=_vtr_pure_local,
        plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS,
        promise=_local("Remark 1"),
        probes=_first,
        audit_shape=_PURE_AUDIT_SHAPE,
        bound=_bound(_vtr_pure_local, f"{_LUYO}, Theorem 7"),
    ),
    Entry(
        name="ucrl-vtr-plus",
        family="mixture_mdp",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin of ucrl-vtr-plus-joint, ucrl-vtr-plus-local and their pure forms",
        source=f"{_ZHOU}, UCRL-VTR+",
        build=_plus,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        audit_shape=_PLUS_AUDIT_SHAPE,
    ),
    Entry(
        name="ucrl-vtr-plus-joint",
        family="mixture_mdp",
        privacy_model="joint",
        guarantee="approximate",
        calibrations=("printed", "tree", "tight"),
        claim=f"(epsilon, delta)-joint DP: {_JOINT_WHAT}",
        source=f"{_LUYO}, Algorithm 3, Corollary 10",
        build=_plus_joint,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        promise=_joint("Corollary 10"),
        probes=_first,
        audit_shape=_PLUS_AUDIT_SHAPE,
    ),
    Entry(
        name="ucrl-vtr-plus-local",
        family="mixture_mdp",
        privacy_model="local",
        guarantee="approximate",
        calibrations=("printed", "tight"),
        claim=f"(epsilon, delta)-local DP: {_LOCAL_WHAT}",
        source=f"{_LUYO}, Algorithm 3, Corollary 11",
        build=_plus_local,
        plays_on=(MIXTURE,),
        parameters=_PARAMETERS,
        promise=_local("Corollary 11"),
        probes=_first,
        audit_shape=_PLUS_AUDIT_SHAPE,
    ),
    Entry(
        name="ucrl-vtr-plus-pure-joint",
        family="mixture_mdp",
        privacy_model="joint",
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-joint DP: {_JOINT_WHAT}",
        source=f"{_LUYO}, Algorithm 3, Remark 6",
        build=_plus_pure_joint,
        plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS,
        promise=_joint("Remark 6"),
        probes=_first,
        audit_shape=_PLUS_AUDIT_SHAPE,
    ),
    Entry(
        name="ucrl-vtr-plus-pure-local",
        family="mixture_mdp",
        privacy_model="local",
        guarantee="pure",
        calibrations=("printed", "tight"),
        claim=f"epsilon-local DP: {_LOCAL_WHAT}",
        source=f"{_LUYO}, Algorithm 3, Remark 6",
        build=_plus_pure_local,
        plays_on=(MIXTURE,),
        parameters=_PURE_PARAMETERS,
        promise=_local("Remark 6"),
        probes=_first,
        audit_shape=_PLUS_AUDIT_SHAPE,
    ),
)
