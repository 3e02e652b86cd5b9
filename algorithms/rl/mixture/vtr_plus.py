r"""UCRL-VTR+: value-targeted regression with samples weighted by how certain they are, private and not.

Sources: Luyo, Garcelon, Lazaric and Pirotta, "Differentially private exploration in reinforcement learning with linear
representation", Algorithm 3, Theorem 9, Corollaries 10 and 11. Zhou, Gu and Szepesvari (2021), "Nearly minimax optimal
reinforcement learning for linear mixture Markov decision processes", for UCRL-VTR+.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.protocol import FloatArray, Record
from bandana.algorithms.rl.mixture import value_targets_numba
from bandana.algorithms.rl.mixture.targets import Targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR, Released


class Squares(NamedTuple):
    """What is regressed to learn variances: (V - c)^2 less its own center; each is (n,), n the number of `Targets`."""

    center: tuple[float, ...]
    norm_bound: tuple[float, ...]
    value_bound: tuple[float, ...]
    floor: tuple[float, ...]
    """Least variance that a sample is taken to have: m^2 / d."""
    top: tuple[float, ...]
    """Largest."""


def printed_squares(targets: Targets, dimension: int) -> Squares:
    """The squares of the algorithm box, of values in [0, H]: squares in [0, H^2], a floor of H^2 / d, no top."""
    squares = tuple(bound**2 for bound in targets.value_bound)
    return Squares(
        (0.0,) * len(squares), squares, squares, tuple(s / dimension for s in squares), (math.inf,) * len(squares)
    )


def centered_squares(targets: Targets, dimension: int) -> Squares:
    """Squares in [0, m^2], measured from m^2 / 2, of values at most m from the middle; variances are at most m^2."""
    squares = tuple(bound**2 for bound in targets.value_bound)
    half = tuple(s / 2 for s in squares)
    reach = [norm / value for norm, value in zip(targets.norm_bound, targets.value_bound, strict=True)]
    norms = tuple(h * r for h, r in zip(half, reach, strict=True))
    return Squares(half, norms, half, tuple(s / dimension for s in squares), squares)


def bounds_of(targets: Targets, squares: Squares) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """(2 n,) bounds on |x| and on |y|: of the weighted regressions, over the root of the floor, then of the squares."""
    roots = [math.sqrt(floor) for floor in squares.floor]
    norms = tuple(norm / root for norm, root in zip(targets.norm_bound, roots, strict=True))
    values = tuple(value / root for value, root in zip(targets.value_bound, roots, strict=True))
    return norms + squares.norm_bound, values + squares.value_bound


@dataclass(frozen=True)
class UCRLVTRPlus(UCRLVTR):
    r"""UCRL-VTR+: as `UCRLVTR`, with two regressions for each step, weighted ones that plan and ones of squares that weigh.

    With x_h, y_h as there, z = phi_((V_(h+1) - c)^2 - c2)(s_h, a_h) and u = (V_(h+1)(s_(h+1)) - c)^2 - c2, a user sends

        (x x^T, y x) / s^2   and   (z z^T, u z),

    where s^2 is an upper confidence bound on the variance of y given what was released (`contribute_weighted`), at least the
    floor m^2 / d, m the bound on |y|. Plans are made from the weighted regression alone. Blocks 0, ..., n - 1 are the
    weighted ones, n, ..., 2 n - 1 those of squares.

    Privacy: as `UCRLVTR`. The weights are functions of the user's own episode and of released values, and as s^2 is never
    below the floor, |x| / s and |y| / s are bounded for every neighbor, by sqrt(d) as printed. Cost an episode: twice that
    of the regressions of `UCRLVTR`, planning the same.

    Widths of `tight`: the self-normalized bound for each regression, y / s being sqrt(d) sub-Gaussian at most, u half its
    range. Variances enter the weights, not the width: Bernstein's bound for vectors (Zhou et al., Theorem 4.1), which the
    paper uses, has 8 sqrt(d log(1 + K) log(4 k^2 H / p)) + 4 sqrt(d) log(4 k^2 H / p), larger up to d of about a thousand.

    Departures from Algorithm 3, whose box (as printed) adds D^2 and f to both Gram matrices and both vectors, though D^1, f
    are the noise of the weighted pair and D^2, g that of the squares, and drops the square in E, in the estimated variance
    and in the regression of squares: these are as Zhou et al. have them. In `tight` variances are also cut at m^2, which no
    variable within m of a number exceeds.

    Attributes:
      squares: the second regressions.
      published: the noise's bounds (U_1, U_2) for the widths of Corollaries 10 and 11; None: the widths above.
    """

    squares: Squares = field(kw_only=True)
    published: tuple[float, float] | None = None

    @property
    def n_blocks(self) -> int:
        """Number of regressions: two a step."""
        return 2 * self.targets.n_blocks

    @property
    def regressor_bounds(self) -> FloatArray:
        """(n_blocks,) R, of the weighted x and of z."""
        return np.array(bounds_of(self.targets, self.squares)[0])

    @property
    def ridges(self) -> FloatArray:
        """(n_blocks,) lambda as printed, lambda R^2 else."""
        if self.published is not None:
            return np.full(self.n_blocks, self.ridge)
        return super().ridges

    @property
    def noise_scale(self) -> FloatArray:
        """(n_blocks,) how sub-Gaussian y / s and u are."""
        weighted = np.array(self.targets.spread) / np.sqrt(self.squares.floor)
        highest = np.array(self.targets.value_bound) ** 2
        return np.concatenate([weighted, highest / 2])

    def contribution(self, released: Released, record: Record) -> FloatArray:
        """(n_reps, n_blocks, d, d + 1) of the record, within the bounds that the noise is made for."""
        if record.states is None:
            raise ValueError("this algorithm learns from episodes, and the stream has none")
        n, d = self.targets.n_blocks, self.model.dimension
        out = np.empty((len(record.user), 2 * n, d, d + 1))
        steps, center, norm, value = self._aims
        square, square_norm, square_value, floor, top = self._levels
        check = self._check_width(released)
        value_targets_numba.contribute_weighted(
            self.model.features, steps, center, norm, value, square, square_norm, square_value, value, floor, top,
            released.estimate, released.inverse, check, np.ascontiguousarray(released.width[:, n:]), released.values,
            record.states, record.actions, out,
        )  # fmt: skip
        return out

    def radius(self, log_det: FloatArray, step: int) -> FloatArray:
        """(n_reps, n_blocks) widths of the weighted regressions and of the squares."""
        if self.published is None:
            return super().radius(log_det, step)
        n, (weighted, squares) = self.targets.n_blocks, self._published(step)[:2]
        return np.broadcast_to(np.repeat([weighted, squares], n), log_det.shape)

    def _check_width(self, released: Released) -> FloatArray:
        """(n_reps, n) of the weighted regressions, where variances are still unknown: as printed it is another one."""
        n = self.targets.n_blocks
        if self.published is None:
            return np.ascontiguousarray(released.width[:, :n])
        check = self.beta_scale * self._published(int(released.clock[0]))[2]
        return np.full((len(released.clock), n), check)

    def _published(self, step: int) -> tuple[float, float, float]:
        """The beta-hat, beta-tilde and beta-check of Corollaries 10 and 11 before episode step + 1."""
        assert self.published is not None
        k, d, length, ridge = self.horizon, self.model.dimension, self.episode_length, self.ridge
        log = math.log(24 * (step + 1) ** 2 * length / self.failure)
        parts = [3 * (self.model.parameter_bound + 1) * math.sqrt(ridge + upsilon) for upsilon in self.published]
        spread = math.sqrt(math.log1p(k / ridge) * log)
        squares = length**2 * (8 * math.sqrt(d * math.log1p(k * length**4 / (d * ridge)) * log) + 4 * log)
        weighted = parts[0] + 4 * math.sqrt(d) * log
        return weighted + 8 * math.sqrt(d) * spread, parts[1] + squares, weighted + 8 * d * spread

    @cached_property
    def _levels(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
        s = self.squares
        return np.array(s.center), np.array(s.norm_bound), np.array(s.value_bound), np.array(s.floor), np.array(s.top)

    def regret_bound(self, horizon: ArrayLike) -> Any:
        """Raises ValueError: Theorem 9 hides its constants, and its widths are Bernstein's."""
        raise ValueError("no regret bound with constants is proved for UCRL-VTR+")
