r"""Small Markov decision processes on which one replaced episode moves a release by the full sensitivity.

What an episode adds to the sums of value-targeted regression is x x^T and y x for each step, where x is the sum over s' of
phi(s'|s, a) V(s'), of norm V_max at most, and y = V(s') <= V_max; in least-squares value iteration x = phi(s, a). Which pair
of records is worst depends on the noise: x' = -x for GOE noise, a product of -1/2 for noise of one variance in all entries
(and about that where matrices and vectors have noise of their own), and for Laplace noise, whose sensitivity is an L1 norm,
vectors with many coordinates. So each state's features are one such direction, and a canary that is in one state for a whole
episode, and in another one in the neighbor, has the least favorable pair at every step.

In truth transitions of opposite features cannot both be distributions: no kernel has these features. Privacy may not depend
on it: it holds for all data, and an algorithm that knows a model knows no more than its features.
"""

from __future__ import annotations

import math

import numpy as np

from bandana.algorithms.mdp.models import LinearModel, MixtureModel
from bandana.algorithms.protocol import FloatArray

N_STATES, HORIZON = 3, 3
_TURN = math.pi / 4
_FINE = 181


def directions(dimension: int, is_pure: bool) -> FloatArray:
    """(3, d) unit vectors, two of them least favorable: the first and the last, or the first two for one variance.

    Args:
      dimension: d, at least 2.
      is_pure: whether the noise is Laplace's.
    """
    axes = np.eye(dimension)[:2]
    if not is_pure:  # on either side of (1, 1): x x^T - x' x'^T is diagonal, which noise of one variance hides least
        mine, side = (np.array([math.cos(turn), math.sin(turn)]) @ axes for turn in (-math.pi / 12, 7 * math.pi / 12))
        return np.stack([mine, side, -mine])
    mine, theirs = _widest_in_l1(dimension)
    side = axes[1] - mine[1] * mine
    return np.stack([mine, -mine / 2 + math.sqrt(0.75) * side / np.linalg.norm(side), theirs])


def _widest_in_l1(dimension: int) -> tuple[FloatArray, FloatArray]:
    """Unit vectors x, x' that move the upper triangle of x x^T together with x itself most, in L1.

    x = p cos t + q sin t and x' = -p cos t + q sin t with p and q constant on the first half of the coordinates and on the
    second: those of `bandana.privacy_core.noise.sensitivities.pair_l1_witness`.
    """
    k = dimension // 2
    halves = np.repeat([1 / math.sqrt(k), 1 / math.sqrt(dimension - k)], [k, dimension - k])
    is_first = np.arange(dimension) < k
    angles = np.linspace(0, math.pi / 2, _FINE)
    best = (0.0, halves, halves)
    for a in angles:
        p = halves * np.where(is_first, math.cos(a), math.sin(a))
        q = halves * np.where(is_first, math.sin(a), -math.cos(a))
        x, other = (np.cos(angles)[:, None] * sign * p + np.sin(angles)[:, None] * q for sign in (1, -1))
        rows, columns = np.triu_indices(dimension)
        moved = np.abs(x[:, rows] * x[:, columns] - other[:, rows] * other[:, columns]).sum(axis=1)
        moved += np.abs(x - other).sum(axis=1)
        at = int(moved.argmax())
        if moved[at] > best[0]:
            best = (float(moved[at]), x[at], other[at])
    return best[1], best[2]


def _features(dimension: int, n_actions: int, is_pure: bool, n_states: int) -> FloatArray:
    """(n_states, n_actions, d): the first action has the state's direction, the others are turned to the last axis."""
    first, side, last = directions(dimension, is_pure)
    along = np.stack([first, *[side] * (n_states - 2), last][:n_states])
    aside = np.eye(dimension)[-1] - along[:, -1:] * along
    aside /= np.maximum(np.linalg.norm(aside, axis=1, keepdims=True), 1e-9)
    turns = _TURN * np.arange(n_actions)[:, None] / max(n_actions - 1, 1)
    return np.asarray(np.cos(turns) * along[:, None] + np.sin(turns) * aside[:, None])


def mixture_bed(
    dimension: int,
    n_actions: int,
    is_pure: bool,
    n_states: int = N_STATES,
    horizon: int = HORIZON,
    parameter_bound: float = 1.0,
) -> MixtureModel:
    """In each state the first action earns 1, so that values are largest wherever users are.

    The next states' shares of a feature are the same in all states, and uneven between actions. States between the first and
    the last are alike.
    """
    uneven = np.append(0.5, np.full(n_states - 1, 0.5 / max(n_states - 1, 1))) if n_states > 1 else np.ones(1)
    shares = np.stack([np.roll(uneven, action) for action in range(n_actions)])
    features = shares[:, :, None] * _features(dimension, n_actions, is_pure, n_states)[:, :, None, :]
    rewards = np.broadcast_to(np.linspace(1.0, 0.0, n_actions), (horizon, n_states, n_actions))
    return MixtureModel(features, rewards, parameter_bound)


def linear_bed(
    dimension: int, n_actions: int, is_pure: bool, n_states: int = N_STATES, horizon: int = HORIZON
) -> LinearModel:
    """States between the first and the last are alike."""
    return LinearModel(_features(dimension, n_actions, is_pure, n_states), horizon)


def bed_like(model: MixtureModel | LinearModel, is_pure: bool) -> MixtureModel | LinearModel:
    """A bed of the same kind and shape as a model: what is promised holds for each, and on this one faults show."""
    shape = model.dimension, model.n_actions, is_pure, model.n_states, model.horizon
    if isinstance(model, MixtureModel):
        return mixture_bed(*shape, model.parameter_bound)
    return linear_bed(*shape)
