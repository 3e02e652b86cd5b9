"""Catalog lines of Gaussian-process bandits on features of a kernel."""

from __future__ import annotations

from typing import Any

from bandana.algorithms.bandits.contextual.entries import changing_regularizers
from bandana.algorithms.bandits.kernel.gp_ucb import GPUCB, READINGS, gp_ucb, gp_ucb_joint, gp_ucb_local
from bandana.algorithms.entry import Entry, Settings, first_user, level_of, record_claim
from bandana.algorithms.epochs import EPOCHS, ONE, in_epochs, proved_in_one
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, NORM_BOUND, RIDGE, Kind, Parameter, declared
from bandana.algorithms.problem import KERNEL, POOLED, Problem
from bandana.algorithms.rkhs.features import FeatureMap, feature_map, projected_on
from bandana.algorithms.rkhs.kernels import Additive, Kernel, Linear, Matern
from bandana.privacy_core import TrustModel

_SRINIVAS = "Srinivas, Krause, Kakade and Seeger (2010), Gaussian process optimization in the bandit setting"
_DUBEY = "Dubey (2021), No-regret algorithms for private Gaussian process bandit optimization"
_RECORD = "one user's record (decision set and reward)"
_N_FEATURES = Parameter("n_features", "Largest number of features of the kernel.", 100, Kind.COUNT)
_READING = Parameter(
    "reading", "Formula of the printed noise: the paper has five, of which its proof requires the last.", READINGS[-1],
    Kind.CHOICE, READINGS,
)  # fmt: skip
_PARAMETERS = declared(FAILURE, BETA_SCALE, RIDGE, NORM_BOUND, _N_FEATURES, EPOCHS)
_AUDIT_SHAPE = (3, 2)
_FEW = 4


def _given(settings: Settings) -> dict[str, Any]:
    """What every builder takes."""
    problem, asked = settings.problem, dict(settings.parameters)
    found = _features(problem, asked.pop("n_features"))
    shape = {"n_actions": problem.n_actions, "feature_map": found, "horizon": problem.known_horizon}
    return {**shape, "reward_range": problem.reward_range, **asked}  # of which `reading`, where it has several


def _features(problem: Problem, n_features: int) -> FeatureMap:
    """Features by quadrature; on a pool with a kernel that has no product spectrum, those of the pool's points."""
    kernel, d, pool = problem.kernel, problem.dimension, problem.pool
    assert kernel is not None
    assert d is not None
    if pool is not None and isinstance(kernel, Matern) and d > 1:
        return projected_on(kernel, pool.points.reshape(-1, d), n_features)
    return feature_map(kernel, d, n_features)


def _gp_ucb(settings: Settings) -> GPUCB:
    return gp_ucb(**_given(settings))


def _gp_ucb_joint(settings: Settings) -> GPUCB:
    return gp_ucb_joint(**_given(settings), **level_of(settings))


def _gp_ucb_local(settings: Settings) -> GPUCB:
    return gp_ucb_local(**_given(settings), **level_of(settings))


def _with_few_features(settings: Settings) -> Settings:
    """Fewer features: a round costs their third power. Of the noise only the local one as printed knows their number."""
    kernel, d = settings.problem.kernel, settings.problem.dimension
    assert kernel is not None
    assert d is not None
    few = max(_FEW, _fewest(kernel, d))
    return settings.with_parameters(n_features=min(settings.parameters["n_features"], few), epochs=ONE)


def _fewest(kernel: Kernel, dimension: int) -> int:
    """Features of the smallest map that is not constant along a coordinate: two frequencies along each."""
    if isinstance(kernel, Linear):
        return dimension
    if isinstance(kernel, Additive):
        return len(kernel.groups) << max(len(group) for group in kernel.groups)
    return 1 << dimension


ENTRIES = (
    Entry(
        name="gp-ucb",
        family="bandits/kernel",
        privacy_model="none",
        guarantee=None,
        calibrations=(),
        claim="none: the non-private twin",
        source=f"{_SRINIVAS}, on features of the kernel",
        build=in_epochs(_gp_ucb),
        plays_on=(KERNEL, POOLED),
        parameters=_PARAMETERS,
        in_audit=_with_few_features,
        bound=proved_in_one(changing_regularizers(_gp_ucb, _SRINIVAS)),
    ),
    Entry(
        name="gp-ucb",
        family="bandits/kernel",
        privacy_model="joint",
        guarantee="approximate",
        calibrations=("printed", "tight"),
        claim="(epsilon, delta)-joint DP: the actions of all other users, replace one record (decision set and reward)",
        source=f"{_DUBEY}, Algorithms 1 and 2, Lemma 2",
        build=in_epochs(_gp_ucb_joint),
        plays_on=(KERNEL, POOLED),
        parameters=_PARAMETERS | declared(_READING),
        promise=record_claim(TrustModel.JOINT, "the actions of all other users", "Lemma 2", _DUBEY, _RECORD),
        probes=first_user,
        in_audit=_with_few_features,
        audit_shape=_AUDIT_SHAPE,
        bound=proved_in_one(changing_regularizers(_gp_ucb_joint, _DUBEY)),
    ),
    Entry(
        name="gp-ucb",
        family="bandits/kernel",
        privacy_model="local",
        guarantee="approximate",
        calibrations=("printed", "tight"),
        claim="(epsilon, delta)-local joint DP of a user's messages, replace one record (decision set and reward)",
        source=f"{_DUBEY}, Algorithm 3, Lemma 5",
        build=in_epochs(_gp_ucb_local),
        plays_on=(KERNEL, POOLED),
        parameters=_PARAMETERS,
        promise=record_claim(TrustModel.LOCAL, "a user's messages", "Lemma 5", _DUBEY, _RECORD),
        probes=first_user,
        in_audit=_with_few_features,
        audit_shape=_AUDIT_SHAPE,
        bound=proved_in_one(changing_regularizers(_gp_ucb_local, _DUBEY)),
    ),
)
