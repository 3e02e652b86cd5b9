r"""Lower bounds for users who bring points of [-1, 1]^d, rewards smooth in a kernel: any points, or those of a public pool.

Rewards are the two ends of the range, of mean middle + f(x), f of norm at most B, half the range's width, in the space of
the kernel k. Take g pairs of points (x_i, x_i') and all 2^g sign patterns; f(x_i) = s_i, f(x_i') = -s_i with s_i = +-s, in
units of B. With z = (x_1, x_1', x_2, ...), K = k(z, z) and P the 2g x g matrix of entries 1 and -1, the function of least
norm with these values is k(., z) K^+ P s, of squared norm s^T P^T K^+ P s (Aronszajn 1950). That is at most s^2 g l, l the
largest eigenvalue of P^T K^+ P, so that every pattern is allowed where

    s <= min(1, 1 / sqrt(g l)).

A user who brings pair i has two actions, and the gap is s times the width: `two_problems` says the rest. It is of order
sqrt(g T) without privacy, adds (log 2) g / epsilon under epsilon-joint-DP, and every set of pairs gives a bound: the largest
of those that are tried is returned. Rates for isotropic kernels, without constants, are in Scarlett, Bogunovic and Cevher
(2017), Lower bounds on regret for noisy Gaussian process bandit optimization; the proof here is ours and complete.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.lower_bounds.lower_bound import LowerBound, Privacy, Reach
from bandana.algorithms.lower_bounds.two_problems import summed_errors, worst_of_groups
from bandana.algorithms.protocol import FloatArray
from bandana.algorithms.rkhs.kernels import Kernel, gram
from bandana.algorithms.rkhs.pool import Pool
from bandana.privacy_core import Interval

_GROUPS = (1, 2, 4, 8, 16, 32)
_LATTICE = 400
"""Points of [-1, 1]^d from which far ones are picked, at most about so many."""
_RANK = 1e-9
"""Eigenvalues of a Gram matrix below this share of the largest are rounding."""
_N_SPREADS = 60


def minimax_bound(
    grid: ArrayLike, kernel: Kernel, dimension: int, reward_range: Interval, privacy: Privacy
) -> LowerBound | None:
    """On the worst function and order of users, who bring any points of [-1, 1]^d, at each number of rounds.

    Args:
      grid: (n_grid,) numbers of rounds.
      kernel: of the points.
      dimension: d.
      reward_range: of rewards.
      privacy: of the class of algorithms, joint or stronger; a record or its reward is replaced.

    Returns:
      None where the kernel distinguishes no pair of points.
    """
    bounds = []
    for pairs in _pairs(dimension):
        if (spread := most_spread(kernel, pairs)) > 0:
            bounds.append(worst_of_groups(grid, len(pairs), spread, reward_range.width, privacy))
    if not bounds:
        return None
    text = f"users who bring any points of [-1, 1]^{dimension}, in any order"
    return LowerBound(np.max(bounds, axis=0), _words(text, kernel, privacy), Reach.WORST_PROBLEM)


def pooled_bound(grid: ArrayLike, kernel: Kernel, pool: Pool, reward_range: Interval, privacy: Privacy) -> LowerBound | None:
    r"""On the worst function, users' contexts drawn from the pool by its law, at each number of rounds.

    Pair i lies in a context of its own, of probability p_i, which N_i of T users bring, binomial of mean m = T p_i. The
    summed errors S(n) of `two_problems` are concave with S(0) = 0, so that E S(N_i) >= S(m) E min(N_i, m) / m, and
    E min(N_i, m) = m - E |N_i - m| / 2 >= m - sqrt(m) / 2 by Jensen: at least (1 - 1 / (2 sqrt m)) S(m). Contexts arrive
    independently of everything else, so that a context's users meet the same choice as if they came alone.

    Args: as in `minimax_bound`, and
      pool: contexts with their law, and the points of the actions in each.

    Returns:
      None where the kernel distinguishes no pair of points.
    """
    rounds, bounds = np.asarray(grid, dtype=float), []
    order = np.argsort(-pool.law, kind="stable")
    order = order[pool.law[order] > 0]
    pairs = np.array([_farthest(kernel, points) for points in pool.points[order]])
    for groups in sorted({min(g, len(order)) for g in (*_GROUPS, len(order))}):
        if (most := most_spread(kernel, pairs[:groups])) > 0:
            spreads = most * np.geomspace(1e-5, 1.0, _N_SPREADS)  # the best s counts
            total = np.zeros((len(rounds), _N_SPREADS))
            for chance, count in zip(*np.unique(pool.law[order[:groups]], return_counts=True), strict=True):
                mean = rounds * chance
                share = np.maximum(0.0, 1 - 0.5 / np.sqrt(np.maximum(mean, 1e-12)))
                total += count * share[:, None] * summed_errors(mean[:, None], spreads, privacy)
            bounds.append(np.asarray((reward_range.width * spreads / 2 * total).max(axis=1)))
    if not bounds:
        return None
    text = f"users whose contexts are drawn from the pool of {pool.n_contexts}"
    return LowerBound(np.max(bounds, axis=0), _words(text, kernel, privacy), Reach.WORST_PROBLEM)


def most_spread(kernel: Kernel, pairs: ArrayLike) -> float:
    """The largest s for which all sign patterns on the pairs are functions of norm at most 1; 0 where there is none.

    Args:
      kernel: of the points.
      pairs: (g, 2, d) points.
    """
    pairs = np.asarray(pairs, dtype=float)
    points = pairs.reshape(-1, pairs.shape[-1])
    signs = np.kron(np.eye(len(pairs)), np.array([[1.0], [-1.0]]))
    values, vectors = np.linalg.eigh(gram(kernel, points, points))
    kept = values > _RANK * values[-1]
    inside = vectors[:, kept].T @ signs
    if not np.allclose(vectors[:, kept] @ inside, signs, atol=1e-6):
        return 0.0  # no function of the space has these values, or rounding hides it
    largest = float(np.linalg.eigvalsh(inside.T @ (inside / values[kept, None]))[-1])
    return min(1.0, 1 / math.sqrt(len(pairs) * largest))


def _pairs(dimension: int) -> Iterator[FloatArray]:
    """Sets of pairs (g, 2, d) to try: opposite points on the axes, and the first of a lattice that lie far apart."""
    axes = np.eye(dimension)
    yield from (np.stack([axes[:g], -axes[:g]], axis=1) for g in _GROUPS if g <= dimension)
    side = max(2, math.floor(_LATTICE ** (1 / dimension)))
    axis = np.linspace(-1.0, 1.0, side)
    n_axes = min(dimension, math.floor(math.log2(_LATTICE)))
    lattice = np.zeros((side**n_axes, dimension))
    lattice[:, :n_axes] = np.stack(np.meshgrid(*[axis] * n_axes, indexing="ij"), axis=-1).reshape(-1, n_axes)
    picked = [0]
    nearest = ((lattice - lattice[0]) ** 2).sum(axis=1)
    while len(picked) < min(2 * _GROUPS[-1], len(lattice)):
        picked.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, ((lattice - lattice[picked[-1]]) ** 2).sum(axis=1))
    yield from (lattice[picked[: 2 * g]].reshape(g, 2, dimension) for g in _GROUPS if 2 * g <= len(picked))


def _farthest(kernel: Kernel, points: FloatArray) -> FloatArray:
    """(2, d) the two actions of a context whose values differ most for a function of norm 1."""
    inner = gram(kernel, points, points)
    own = np.diag(inner)
    first, second = np.unravel_index(int(np.argmax(own[:, None] + own - 2 * inner)), inner.shape)
    return points[[first, second]]


def _words(who: str, kernel: Kernel, privacy: Privacy) -> str:
    return (
        f"all algorithms, {privacy}, on the worst function of norm at most half the width of the range in the space of the "
        f"kernel ({kernel}), {who}: pairs of points with two values each to be distinguished, with all constants"
    )
