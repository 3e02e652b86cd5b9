"""Catalog lines of kernel bandits with stochastic contexts: CAPRI."""

from __future__ import annotations

from typing import Any

from bandana.algorithms.bandits.capri.capri import NEAREST
from bandana.algorithms.bandits.capri.forms import capri, capri_joint, capri_local
from bandana.algorithms.entry import Entry, Settings, first_user, level_of, record_claim
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, NORM_BOUND, RIDGE, Parameter, declared
from bandana.algorithms.problem import POOLED
from bandana.algorithms.protocol import Algorithm
from bandana.privacy_core import TrustModel

_CAPRI = "Pavlovic, Salgia and Zhao, Differential Privacy in Kernelized Contextual Bandits via Random Projections"
_RECORD = "one user's record (context and reward)"
_CALIBRATIONS = ("printed", "printed-lemma-6-6", "tight")
_ERROR_SCALE = Parameter(
    "error_scale", "Factor on the parts of widths that are not privacy noise; the theorem requires 1.", 1.0
)
_PARAMETERS = declared(RIDGE, FAILURE, NORM_BOUND, BETA_SCALE, _ERROR_SCALE)
_AUDIT_SHAPE = (2, 2)
_NARROW = {"tight": 0.05, "printed": 1e-4, "printed-lemma-6-6": 1e-4}


def _given(settings: Settings) -> dict[str, Any]:
    """What every builder takes. A record may hold any context: one outside the pool is taken for the nearest."""
    problem = settings.problem
    shape = {"pool": problem.pool, "kernel": problem.kernel, "horizon": problem.known_horizon}
    return {**shape, "reward_range": problem.reward_range, "strangers": NEAREST, **settings.parameters}


def _capri(settings: Settings) -> Algorithm:
    return capri(**_given(settings))


def _capri_joint(settings: Settings) -> Algorithm:
    return capri_joint(**_given(settings), **level_of(settings))


def _capri_local(settings: Settings) -> Algorithm:
    return capri_local(**_given(settings), **level_of(settings))


def _eliminating(settings: Settings) -> Settings:
    """Settings with widths so short that the few rounds of a replay drop actions."""
    return settings.with_parameters(failure=0.1, beta_scale=_NARROW[settings.calibration or "tight"])


ENTRIES = (
    Entry(
        name="capri",
        family="bandits/capri",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin",
        source=f"{_CAPRI}, Algorithm 1 without noise",
        build=_capri,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        in_audit=_eliminating,
    ),
    Entry(
        name="capri",
        family="bandits/capri",
        privacy_model="joint",
        guarantee="approximate",
        calibrations=_CALIBRATIONS,
        claim="(epsilon, delta)-joint DP: the actions of all other users, replace one record (context and reward)",
        source=f"{_CAPRI}, Algorithm 1",
        build=_capri_joint,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        promise=record_claim(
            TrustModel.JOINT, "the actions of all other users", "Theorems 4.1 and 6.7, JDP", _CAPRI, _RECORD
        ),
        probes=first_user,
        in_audit=_eliminating,
        audit_shape=_AUDIT_SHAPE,
    ),
    Entry(
        name="capri",
        family="bandits/capri",
        privacy_model="local",
        guarantee="approximate",
        calibrations=_CALIBRATIONS,
        claim="(epsilon, delta)-local DP of a user's message, replace one record (context and reward)",
        source=f"{_CAPRI}, Algorithm 1, local",
        build=_capri_local,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        promise=record_claim(TrustModel.LOCAL, "a user's message", "Theorems 4.1 and 6.7, LDP", _CAPRI, _RECORD),
        probes=first_user,
        in_audit=_eliminating,
        audit_shape=_AUDIT_SHAPE,
    ),
)
