"""Catalog lines of Gaussian-process bandits on finite pools, which need counts and sums and no features."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bandana.algorithms.bandits.kernel.pooled_gp_ucb import (
    PooledGPUCB,
    pooled_gp_ucb,
    pooled_gp_ucb_joint,
    pooled_gp_ucb_local,
)
from bandana.algorithms.entry import Bound, Entry, RegretBound, Settings, approx_of, first_user, record_claim
from bandana.algorithms.epochs import EPOCHS, in_epochs, one_epoch, proved_in_one
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, NORM_BOUND, RIDGE, declared
from bandana.algorithms.problem import POOLED
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.privacy_core import TrustModel

_SRINIVAS = "Srinivas, Krause, Kakade and Seeger (2010), Gaussian process optimization in the bandit setting"
_DUBEY = "Dubey (2021), No-regret algorithms for private Gaussian process bandit optimization"
_RECORD = "one user's record (decision set and reward)"
_PARAMETERS = declared(RIDGE, FAILURE, NORM_BOUND, BETA_SCALE, EPOCHS)
_AUDIT_SHAPE = (2, 2)


def _given(settings: Settings) -> dict[str, Any]:
    """What every builder takes. A record may hold any decision set: one outside the pool is taken for the nearest."""
    problem = settings.problem
    shape = {"pool": problem.pool, "kernel": problem.kernel, "horizon": problem.known_horizon}
    return {**shape, "reward_range": problem.reward_range, "is_strict": False, **settings.parameters}


def _private(settings: Settings) -> dict[str, Any]:
    privacy = approx_of(settings)
    return {**_given(settings), "epsilon": privacy.epsilon, "delta": privacy.delta}


def _twin(settings: Settings) -> PooledGPUCB:
    return pooled_gp_ucb(**_given(settings))


def _joint(settings: Settings) -> PooledGPUCB:
    return pooled_gp_ucb_joint(**_private(settings))


def _local(settings: Settings) -> PooledGPUCB:
    return pooled_gp_ucb_local(**_private(settings))


def _bound_of(build: Callable[[Settings], PooledGPUCB], source: str) -> Bound:
    def bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
        algorithm = build(settings)
        if algorithm.beta_scale < 1:
            return None
        return RegretBound(
            algorithm.regret_bound(grid),
            f"{source}, with constants: D + max(D, 2 s W) sqrt(t n log(1 + t / (lambda n)) / log 2), W = R sqrt(2 log(2 / "
            "failure) + n log(1 + (t / n + 2 q) / lambda)) + sqrt(lambda) B + min(B, R) sqrt(2 q n) + R q sqrt n, and at "
            f"most D t, D = 2 R the range's width, for any decision sets and a function of norm at most B; n = "
            f"{len(algorithm.gram)} points, lambda = {algorithm.ridge:g}, B = {algorithm.norm_bound:g}, s = "
            f"{algorithm.beta_scale:g}, q = {algorithm.bound(algorithm.horizon):.3g} at the end; exceeded with probability "
            f"at most {algorithm.failure:.3g}",
        )

    return bound


ENTRIES = (
    Entry(
        name="gp-ucb-pool",
        family="bandits/kernel",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin",
        source=f"{_SRINIVAS}, on a finite set",
        build=in_epochs(_twin),
        in_audit=one_epoch,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        audit_shape=_AUDIT_SHAPE,
        bound=proved_in_one(_bound_of(_twin, _SRINIVAS)),
    ),
    Entry(
        name="gp-ucb-pool",
        family="bandits/kernel",
        privacy_model="joint",
        guarantee="approximate",
        calibrations=("tight",),
        claim="(epsilon, delta)-joint DP: the actions of all other users, replace one record (decision set and reward)",
        source=f"the claim of {_DUBEY}, Definition 6, kept by noisy counts and sums of a finite pool's points",
        build=in_epochs(_joint),
        in_audit=one_epoch,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        promise=record_claim(TrustModel.JOINT, "the actions of all other users", "Definition 6", _DUBEY, _RECORD),
        probes=first_user,
        audit_shape=_AUDIT_SHAPE,
        bound=proved_in_one(_bound_of(_joint, _SRINIVAS)),
    ),
    Entry(
        name="gp-ucb-pool",
        family="bandits/kernel",
        privacy_model="local",
        guarantee="approximate",
        calibrations=("tight",),
        claim="(epsilon, delta)-local DP of a user's message, replace one record (decision set and reward)",
        source=f"the claim of {_DUBEY}, Definition 7, kept by noisy counts and sums of a finite pool's points",
        build=in_epochs(_local),
        in_audit=one_epoch,
        plays_on=(POOLED,),
        parameters=_PARAMETERS,
        promise=record_claim(TrustModel.LOCAL, "a user's message", "Definition 7", _DUBEY, _RECORD),
        probes=first_user,
        audit_shape=_AUDIT_SHAPE,
        bound=proved_in_one(_bound_of(_local, _SRINIVAS)),
    ),
)
