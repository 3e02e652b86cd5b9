"""Pools of points on which kernel bandits are hardest to keep private."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from bandana.algorithms.rkhs.kernels import SquaredExponential
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core.checks import one_of

_TURN = 0.1
_APART = np.pi / 6


POOL_KERNEL, SMOOTH = SquaredExponential(0.5), SquaredExponential(2.0)


def worst_pool(name: str, n_actions: int, dimension: int, lengthscale: float = SMOOTH.lengthscale) -> Pool:
    """The pool that is called so: `extrapolating`, `turned` or `crossed`; see the functions of these names.

    Args:
      name: of the pool.
      n_actions: of each context.
      dimension: of the points.
      lengthscale: of the kernel.
    """
    makers: dict[str, Callable[[int, int], Pool]] = {
        "extrapolating": partial(extrapolating_pool, lengthscale=lengthscale),
        "turned": turned_pool,
        "crossed": crossed_pool,
    }
    return makers[one_of("name", name, tuple(makers))](n_actions, dimension)


def extrapolating_pool(n_actions: int, dimension: int, lengthscale: float = SMOOTH.lengthscale) -> Pool:
    """Three contexts that the generator draws, on one side of the origin, and one that it never draws, on the other side.

    A neighbor may have that one, and smooth functions learned on the others determine it most: there
    the sensitivity is largest. It is the nearest to all vectors that canaries change to, and few users are at it.

    Args:
      n_actions: of each context.
      dimension: of the points.
      lengthscale: of the kernel; distances are in proportion to it while points fit into the unit ball.
    """
    middle, axes = np.ones(dimension) / np.sqrt(dimension), np.eye(dimension)
    aside = [0.3 * (1 + a // dimension / 2) * (axes[a % dimension] - middle / np.sqrt(dimension)) for a in range(n_actions)]
    drawn = [-reach * middle + np.array(aside) for reach in (0.2, 0.4, 0.6)]
    points = np.array([0.72 * middle + np.array(aside) / 2, *drawn])
    return Pool(points * min(1.0, lengthscale / SMOOTH.lengthscale), np.array([0.0, 1.0, 1.0, 1.0]) / 3)


def crossed_pool(n_actions: int, dimension: int) -> Pool:
    """Two contexts on the unit circle, around the two axes between which canaries change; only the first is drawn.

    A record that changes its context plays another point, so that counts change, all later users choose among the points
    of which one was played more or less, and these are so far apart, 60 degrees from the first to the last, that a count
    decides. On a pool that takes all that canaries bring for one context no count ever changes.

    Args:
      n_actions: of each context.
      dimension: of the points, at least 2.
    """
    turned = np.array([[0.0], [np.pi / 2]]) + np.linspace(-_APART, _APART, n_actions)
    points = np.zeros((2, n_actions, dimension))
    points[..., 0], points[..., 1] = np.cos(turned), np.sin(turned)
    return Pool(points, np.array([1.0, 0.0]))


def turned_pool(n_actions: int, dimension: int) -> Pool:
    """Four contexts on the unit circle: those of canaries (`ContextTable.changes`), drawn alike.

    Where features are those of a kernel on a pool, points far from the pool have hardly any, and move no matrix.
    """
    starts = np.array([0.0, np.pi / 12, 5 * np.pi / 12, np.pi / 2])
    turned = starts[:, None] + _TURN * np.arange(n_actions)
    points = np.zeros((len(starts), n_actions, dimension))
    points[..., 0], points[..., 1] = np.cos(turned), np.sin(turned)
    return Pool(points, np.full(len(starts), 1 / len(starts)))
