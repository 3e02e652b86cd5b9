"""Small linear-mixture MDPs: convex mixtures of d known transition kernels, and data sets of episodes in them."""

from __future__ import annotations

import numpy as np

from bandana.algorithms.environments.episodes import EpisodeTable
from bandana.algorithms.mdp.models import MixtureModel
from bandana.algorithms.rl.mixture.calibrations import calibrations
from bandana.algorithms.rl.mixture.forms import VTR
from bandana.privacy_core import ApproxDP, Interval, PureDP, TrustModel

UNIT = Interval(0.0, 1.0)
FORMS = (
    *("joint printed", "joint tree", "joint tight", "local printed", "local tight"),
    *("pure joint printed", "pure joint tight", "pure local printed", "pure local tight"),
)


def mixture(n_states=3, n_actions=2, horizon=3, d=3, seed=0, is_sparse=True, concentration=0.3):
    """Features phi_i(s'|s, a) = p_i(s'|s, a) / sqrt d, parameters sqrt d times weights; if sparse the last pays."""
    rng = np.random.default_rng(seed)
    kernels = rng.dirichlet(np.full(n_states, concentration), (d, n_states, n_actions))
    parameters = rng.dirichlet(np.full(d, 0.5), horizon) * np.sqrt(d)
    rewards = np.zeros((horizon, n_states, n_actions)) if is_sparse else rng.random((horizon, n_states, n_actions))
    if is_sparse:
        rewards[-1, 0] = 1.0
    return MixtureModel(np.moveaxis(kernels, 0, -1) / np.sqrt(d), rewards, float(np.sqrt(d))), parameters


def episode_table(model, n_users, seed=0):
    """Every tree of uniformly drawn next states."""
    rng = np.random.default_rng(seed)
    shape = n_users, model.horizon, model.n_states, model.n_actions
    first = rng.integers(model.n_states, size=n_users)
    return EpisodeTable(first, rng.integers(model.n_states, size=shape), rng.integers(2, size=shape), UNIT)


def vtr(name, model, horizon, epsilon=1.0, reading="l1-constants", parts=None, **settings):
    """The form of UCRL-VTR that a name of `FORMS` stands for, at delta 1e-5, other `parts` replaced, or the `twin`."""
    built = VTR(model, horizon, UNIT, **settings)
    if name == "twin":
        return built.twin()
    *pure, trust, calibration = name.split()
    promise = PureDP(epsilon) if pure else ApproxDP(epsilon, 1e-5)
    known = calibrations(built.is_plus, trust == "joint", bool(pure))
    return built.private(promise, TrustModel(trust), known[calibration] | (parts or {}), reading)
