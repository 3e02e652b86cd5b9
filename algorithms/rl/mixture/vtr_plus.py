r"""UCRL-VTR+: value-targeted regression with samples weighted by how certain they are, private and not.

Sources: Luyo, Garcelon, Lazaric and Pirotta, "Differentially private exploration in reinforcement learning with linear
representation", Algorithm 3, Theorem 9, Corollaries 10 and 11. Zhou, Gu and Szepesvari (2021), "Nearly minimax optimal
reinforcement learning for linear mixture Markov decision processes", for UCRL-VTR+.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bandana.algorithms.protocol import FloatArray, Record
from bandana.algorithms.rl.mixture import bernstein, value_targets_numba
from bandana.algorithms.rl.mixture.targets import Targets
from bandana.algorithms.rl.mixture.vtr import UCRLVTR, Released


class Squares(NamedTuple):
    """Targets regressed to learn variances: (V - c)^2 less its own center; each is (n,), n the number of `Targets`."""

    center: tuple[float, ...]
    norm_bound: tuple[float, ...]
    value_bound: tuple[float, ...]
    floor: tuple[float, ...]
    """Least s^2: m^2 / d, or its proxy."""
    top: tuple[float, ...]
    """Largest."""
    spread: tuple[float, ...]
    """Half the range of the values where s^2 bounds proxies, 0 where it bounds variances."""


def printed_squares(targets: Targets, dimension: int) -> Squares:
    """The squares of the algorithm box, of values in [0, H]: squares in [0, H^2], a floor of H^2 / d, no top."""
    squares = tuple(bound**2 for bound in targets.value_bound)
    zeros = (0.0,) * len(squares)
    return Squares(zeros, squares, squares, tuple(s / dimension for s in squares), (math.inf,) * len(squares), zeros)


def centered_squares(targets: Targets, dimension: int) -> Squares:
    """Squares in [0, m^2], measured from m^2 / 2, of values at most m from the middle; variances are at most m^2."""
    squares = tuple(bound**2 for bound in targets.value_bound)
    half = tuple(s / 2 for s in squares)
    reach = [norm / value for norm, value in zip(targets.norm_bound, targets.value_bound, strict=True)]
    norms = tuple(h * r for h, r in zip(half, reach, strict=True))
    return Squares(half, norms, half, tuple(s / dimension for s in squares), squares, (0.0,) * len(squares))


def with_proxies(squares: Squares, targets: Targets, dimension: int) -> Squares:
    """The same, with bounds on proxies for s^2: from that of a d-th of the largest variance to that of the largest."""
    tops = tuple(spread**2 for spread in targets.spread)
    floors = tuple(value_targets_numba.proxy(spread**2 / dimension, spread) for spread in targets.spread)
    return squares._replace(floor=floors, top=tops, spread=targets.spread)


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
    floor m^2 / d, m the bound on |y|; or the `proxy` of such a bound. Plans are made from the weighted regression alone.
    Blocks 0, ..., n - 1 are the weighted ones, n, ..., 2 n - 1 those of squares.

    Privacy: as `UCRLVTR`. The weights are functions of the user's own episode and of released values, and as s^2 is never
    below the floor, |x| / s and |y| / s are bounded for every neighbor, by sqrt(d) as printed. Cost an episode: twice that
    of the regressions of `UCRLVTR`, planning the same.

    Widths: those of squares as in `UCRLVTR`, u lying within half its range. With proxies y / s is 1-sub-Gaussian, and the
    width of the weighted regression that of `UCRLVTR` too. With variances it is the smaller one of two radii: that of y / s
    being sqrt(d) sub-Gaussian at most, and Bernstein's (`bernstein`), by which the variance of y / s, at most 1, counts, and
    its range, up to 2 sqrt(d), only until all directions were seen or hidden by noise; all three bounds of a step have an
    equal part of half the failure. s^2 is large enough as long as w was in both ellipsoids when s was chosen: by induction
    over episodes the samples before the first s that is too small are all that the bound needs, and it keeps the next s from
    being the first. So one width serves for plans and for s^2. As printed, widths are beta-hat and beta-tilde, and it is
    beta-check for s^2.

    Departures from Algorithm 3, whose box (as printed) adds D^2 and f to both Gram matrices and both vectors, though D^1, f
    are the noise of the weighted pair and D^2, g that of the squares, and drops the square in E, in the estimated variance
    and in the regression of squares: these are as Zhou et al. have them. In `tight` variances are also cut at m^2, which no
    variable within m of a number exceeds.

    Regret: `regret_bound` holds with v_h the largest s. It is not of the form of Theorem 9, which bounds the sum of s^2 by
    that of the true variances: (H^2/d + 3H) T plus 7 beta-check H^2 sqrt(2 d H T log(1 + K/lambda)), T = KH, and more. That
    is below the 3 H^2 T of the largest s only from T of about 98 beta-check^2 d H log K / (3 - 1/d - 3/H)^2 on, which is 1e9
    steps at d = 3 and H = 4 without noise.

    Attributes:
      squares: the second regressions.
    """

    squares: Squares = field(kw_only=True)

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
        if self.is_published:
            return np.full(self.n_blocks, self.ridge)
        return super().ridges

    @property
    def noise_scale(self) -> FloatArray:
        """(n_blocks,) how sub-Gaussian y / s and u are."""
        weighted = np.array(self.targets.spread) / np.sqrt(self.squares.floor)
        if self._has_proxies:
            weighted[:] = 1.0
        highest = np.array(self.targets.value_bound) ** 2
        return np.concatenate([weighted, highest / 2])

    def contribution(self, released: Released, record: Record) -> FloatArray:
        """(n_reps, n_blocks, d, d + 1) of the record, within the bounds that the noise is made for."""
        if record.states is None:
            raise ValueError("this algorithm learns from episodes, and the stream has none")
        n, d = self.targets.n_blocks, self.model.dimension
        out = np.empty((len(record.user), 2 * n, d, d + 1))
        value_targets_numba.contribute_weighted(
            self.model.features, self._aims, self._levels, released.estimate, released.inverse, self._check_width(released),
            np.ascontiguousarray(released.width[:, n:]), released.values, record.states, record.actions, out,
        )  # fmt: skip
        return out

    @property
    def _has_proxies(self) -> bool:
        return self.squares.spread[0] > 0

    @property
    def _radius_failure(self) -> float:
        """Two thirds where a third is for Bernstein's radii."""
        return self.failure if self._has_proxies else self.failure * 2 / 3

    @property
    def largest_deviation(self) -> FloatArray:
        """(n,) the largest s: each part of it is cut at m^2."""
        most = 3 * np.array(self.targets.value_bound) ** 2
        return np.asarray(np.sqrt(np.minimum(most, self.squares.top)))

    def radius(self, log_det: FloatArray, inverse: FloatArray, step: int) -> FloatArray:
        """(n_reps, n_blocks) widths of the weighted regressions and of the squares."""
        width = super().radius(log_det, inverse, step)
        if self.is_published or self._has_proxies:
            return width
        n, d, ridge = self.targets.n_blocks, self.model.dimension, self.regression
        floor, times = ridge.regularizers
        shift = ridge.regularizer(step)
        floor = np.where(np.isnan(floor), shift.least, floor)
        union = np.log(2 * self.n_blocks * times / self._radius_failure)
        by_noise = self.model.parameter_bound * np.sqrt(shift.largest) + ridge.bounds(step)[1] / np.sqrt(shift.least)
        chance = width[:, :n] - by_noise[:n]
        growth = log_det - d * np.log(floor)
        bernstein.shorten(chance, union, growth, inverse, self._largest_product, bernstein.CHOICES, bernstein.BALL)
        width[:, :n] = chance + by_noise[:n]
        return width

    @cached_property
    def _spreads(self) -> FloatArray:
        """(n_blocks,) how far y / s and u can lie from their means."""
        s = self.squares
        return np.concatenate([2 * np.array(self.targets.spread) / np.sqrt(s.floor), np.add(s.value_bound, s.center)])

    @cached_property
    def _largest_product(self) -> FloatArray:
        """(n,) the bound on |x| / s times how far y / s can lie from its mean."""
        n = self.targets.n_blocks
        return np.asarray(self.regressor_bounds[:n] * self._spreads[:n])

    def _check_width(self, released: Released) -> FloatArray:
        """(n_reps, n) of the weighted regressions, where variances are still unknown: as printed it is another one."""
        n = self.targets.n_blocks
        if not self.is_published:
            return np.ascontiguousarray(released.width[:, :n])
        check = self.beta_scale * self.published(int(released.clock[0]), is_check=True)[:n]
        return np.tile(check, (len(released.clock), 1))

    def published(self, step: int, is_check: bool = False) -> FloatArray:
        r"""(n_blocks,) the beta-hat and beta-tilde of eqs. 6 and 7 before episode step + 1, or beta-check and beta-tilde.

        With X on |x / s| or |z|, Y on how far y / s or u lies from its mean, and l = log(24 (step + 1)^2 H / p),

            3 (C_w + 1) sqrt(lambda + U) + 8 v sqrt(d log(1 + K X^2 / (d lambda)) l) + 4 Y l,

        v = 1 for beta-hat, Y for the others: Theorem 4.1 of Zhou and others. As printed X = Y = sqrt d, or H^2.
        """
        n, d = self.targets.n_blocks, self.model.dimension
        log = math.log(24 * (step + 1) ** 2 * self.episode_length / self.failure)
        deviation = self._spreads.copy()
        if not is_check:
            deviation[:n] = 1.0
        growth = np.log1p(self.horizon * self.regressor_bounds**2 / (d * self.ridge))
        chance = 8 * deviation * np.sqrt(d * growth * log) + 4 * self._spreads * log
        return np.asarray(self._published_noise + chance)

    @cached_property
    def _levels(self) -> tuple[FloatArray, ...]:
        s = self.squares
        columns = (s.center, s.norm_bound, s.value_bound, s.floor, s.top, s.spread)
        return tuple(np.array(column) for column in columns)
