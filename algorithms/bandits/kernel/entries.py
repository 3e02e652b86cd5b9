"""Catalog entries for Gaussian-process bandits: on features of a kernel, and on finite pools, by counts and sums."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from bandana.algorithms.bandits.contextual.entries import changing_regularizers
from bandana.algorithms.bandits.kernel.gp_ucb import READINGS, GPUCBSettings
from bandana.algorithms.bandits.kernel.pooled_forms import NOISE_ON, PooledSettings
from bandana.algorithms.bandits.kernel.pooled_gp_ucb import PooledGPUCB
from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.epochs import EPOCHS, ONE, in_epochs, one_epoch, proved_in_epochs
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, NORM_BOUND, RIDGE, Kind, Parameter, declared
from bandana.algorithms.problem import KERNEL, POOLED
from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.algorithms.regression.noisy_sums import parts_of
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
_EVERY = Parameter(
    "every", "Rounds between two looks at what was released; decisions in between are made from the last one.", 1,
    Kind.COUNT, is_later=True,
)  # fmt: skip
_NOISE_ON = Parameter(
    "noise_on", "Where noise falls with one public decision set: on sums of points, or on each user's reward, which has "
    "less where points are played few times each.", NOISE_ON[0], Kind.CHOICE, NOISE_ON, is_later=True,
)  # fmt: skip
_POOLED_PARAMETERS = declared(RIDGE, FAILURE, NORM_BOUND, BETA_SCALE, EPOCHS, _EVERY)
_AUDIT_SHAPE = (3, 2)
_FEW = 4


def _features(settings: Settings) -> FeatureMap:
    """Features by quadrature; on a pool with a kernel that has no product spectrum, those of the pool's points."""
    kernel, d, pool = settings.problem.kernel, settings.problem.dimension, settings.problem.pool
    n_features = settings.parameters[_N_FEATURES.name]
    assert kernel is not None
    assert d is not None
    if pool is not None and isinstance(kernel, Matern) and d > 1:
        return projected_on(kernel, pool.points.reshape(-1, d), n_features)
    return feature_map(kernel, d, n_features)


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


_GP_UCB = (
    Form(f"{_SRINIVAS}, on features of the kernel", _SRINIVAS),
    Form(
        f"{_DUBEY}, Algorithms 1 and 2, Lemma 2", _DUBEY, TrustModel.JOINT, "approximate", ("printed", "tight"),
        "(epsilon, delta)-joint DP: the actions of all other users, replace one record (decision set and reward)",
        "the actions of all other users", "Lemma 2",
    ),
    Form(
        f"{_DUBEY}, Algorithm 3, Lemma 5", _DUBEY, TrustModel.LOCAL, "approximate", ("printed", "tight"),
        "(epsilon, delta)-local joint DP of a user's messages, replace one record (decision set and reward)",
        "a user's messages", "Lemma 5",
    ),
)  # fmt: skip


def _gp_ucb_entry(form: Form) -> Entry:
    build = built_by(GPUCBSettings, feature_map=_features, trust=form.trust)
    shape: dict[str, Any] = {}
    if form.trust is not None:
        parts = {calibration: parts_of(calibration, form.trust) for calibration in form.calibrations}
        shape = {"audit_shape": _AUDIT_SHAPE, "parts": parts}
    return form.entry(
        "gp-ucb", "bandits/kernel", in_epochs(build, True), _RECORD, plays_on=(KERNEL, POOLED), in_audit=_with_few_features,
        audit_pool="turned",
        parameters=_PARAMETERS | (declared(_READING) if form.trust is TrustModel.JOINT else {}),
        bound=proved_in_epochs(changing_regularizers(build, form.paper)), **shape,
    )  # fmt: skip


def _as_played_each_round(settings: Settings) -> Settings:
    return one_epoch(settings).with_parameters(every=1)


def _bound_on_pool(
    build: Callable[[Settings], PooledGPUCB], settings: Settings, means: FloatArray | None, grid: IntArray
) -> RegretBound | None:
    """The bound of GP-UCB on a pool, its constants those of the algorithm that is built."""
    algorithm = build(settings)
    if algorithm.beta_scale < 1:
        return None
    gain, stale = algorithm.growth(grid[-1:].astype(float))[0], 1 + (algorithm.every - 1) / algorithm.ridge
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{_DUBEY}, Theorem 3, with constants: D + max(D, 2 s W) sqrt(r t G / log 2), W = {algorithm.shown_width}, and at "
        f"most D t, D = 2 R the range's width, for any decision sets and a function of norm at most B. Here G = {gain:.4g} "
        f"at the end, twice the maximum information gain of the n = {len(algorithm.gram)} points; r = {stale:g}, lambda = "
        f"{algorithm.ridge:g}, B = {algorithm.norm_bound:g}, s = {algorithm.beta_scale:g}. Exceeded with probability at "
        f"most {algorithm.failure:.3g}",
    )


_POOLED = (
    Form(f"{_SRINIVAS}, on a finite set", _SRINIVAS),
    Form(
        f"the claim of {_DUBEY}, Definition 6, kept by noisy counts and sums of a finite pool's points", _DUBEY,
        TrustModel.JOINT, "approximate", ("tight",),
        "(epsilon, delta)-joint DP: the actions of all other users, replace one record (decision set and reward)",
        "the actions of all other users", "Definition 6",
    ),
    Form(
        f"the claim of {_DUBEY}, Definition 7, kept by noisy counts and sums of a finite pool's points", _DUBEY,
        TrustModel.LOCAL, "approximate", ("tight",),
        "(epsilon, delta)-local DP of a user's message, replace one record (decision set and reward)",
        "a user's message", "Definition 7",
    ),
)  # fmt: skip


def _pooled_entry(form: Form) -> Entry:
    build = built_by(PooledSettings, trust=form.trust)
    return form.entry(
        "gp-ucb-pool", "bandits/kernel", in_epochs(build, True), _RECORD, plays_on=(POOLED,),
        in_audit=_as_played_each_round, audit_pool="crossed",
        parameters=_POOLED_PARAMETERS | (declared(_NOISE_ON) if form.trust is TrustModel.JOINT else {}),
        bound=proved_in_epochs(partial(_bound_on_pool, build)),
    )  # fmt: skip


ENTRIES = (*map(_gp_ucb_entry, _GP_UCB), *map(_pooled_entry, _POOLED))
