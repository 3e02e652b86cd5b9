r"""Evidence against a claim of privacy: e-processes that may be watched at any time, and the sharpest test at a fixed size.

A claim says which pairs (P, Q) of output laws two neighbors may have. An e-pair for it is two functions >= 0 with
E_P[e_P(X)] + E_Q[e_Q(Y)] <= 2 for every pair that the claim allows. Then e_P(X) e_Q(Y) has mean at most 1 for
independent X and Y (the product of two means is at most the square of their average), and so has e_L(Z), where a fair
coin L says from which side Z comes. The product over the replays, with each e-pair chosen from replays before, is a
nonnegative supermartingale that starts at 1: it reaches 1/alpha, ever, with probability at most alpha (Ville 1939).
Whoever watches it may stop when they like.

The best e-pair is the density ratio to the claim's closest pair, the reverse information projection (Grünwald, de
Heide, Koolen 2024). For (epsilon, delta) it is known in closed form; elsewhere we bet on contrasts that the claim
bounds. All e-pairs here are functions of one score, the log-likelihood ratio log q/p in nats, or of any score, with the
ratio learned from the replays before.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from bandana.algorithms.protocol import FloatArray
from bandana.audits.bounds.bound import ASSUMES_NOTHING, REQUIRED, WANTS_RATIOS, Bound, QuantityKind
from bandana.audits.bounds.coin_flips import design
from bandana.audits.bounds.divergence_bounds import plan_renyi
from bandana.audits.bounds.means import Moments
from bandana.audits.bounds.samples import (
    LARGEST,
    RATIO_EDGES,
    block_cuts,
    checked_sides,
    count,
    edges_of,
    log_odds,
    ratio_middles,
)
from bandana.audits.bounds.tradeoff_bounds import design_contrast
from bandana.privacy_core.checks import non_negative, order, probability

_SAFE = 0.98
"""No bet risks more than this share of the wealth."""


class Claims(Protocol):
    """One kind of claim at increasing values of its parameter, and the e-pairs that test each."""

    @property
    def values(self) -> FloatArray:
        """(n_claims,) the parameter, increasing: each claim implies those after it."""
        ...

    def pairs(self, log_ratio: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithms of e_P and e_Q, each (n_claims, bins), chosen from past replays.

        Args:
          log_ratio: (bins,) not falling, the log-likelihood ratio log q/p that the past gives to a bin of scores.
          counts: (2, bins) past replays of the data set and of its neighbor; some on each side.
        """
        ...


@dataclass(frozen=True)
class ApproxClaims:
    r"""(epsilon, delta)-DP at each of some epsilons.

    With E = e^epsilon and r = q/(p + q): s_1 = clip((r(1 + E) - E)/E, 0, nu_1), s_2 the same with 1 - r and nu_2, and

        e_P = eta - E s_1 + s_2,   e_Q = eta + s_1 - E s_2,   eta = 1 - delta (nu_1 + nu_2)/2.

    Validity: Q(A) <= E P(A) + delta for the events A = {s_1 > t}, 0 <= t < nu_1, so integrated over t, E_Q s_1 - E E_P s_1
    <= delta nu_1; in the same way E_P s_2 - E E_Q s_2 <= delta nu_2. The sum of the means is then at most 2 eta +
    delta (nu_1 + nu_2) = 2, whatever r and the caps nu. Nonnegative, for eta >= E nu_1 and E nu_2.

    The caps are those with which the past would have grown most: s_1 and s_2 live on disjoint bins, and log eta is
    linear in both caps up to order delta^2, so each is found by itself, over all bins at once.

    Attributes:
      values: (n_claims,) the epsilons, increasing, at least 0.
      delta: at least 0, below 1.
    """

    values: FloatArray
    delta: float

    def __post_init__(self) -> None:
        _increasing("epsilons", self.values)
        non_negative("delta", self.delta)
        if self.delta >= 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta!r}")

    def pairs(self, log_ratio: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the e-pairs against each (epsilon, delta)-DP claim, each (n_claims, bins)."""
        grow = np.exp(self.values)[:, None]
        r = expit(log_ratio)
        pooled = counts.sum(axis=0)
        data, neighbor = pooled * (1 - r), pooled * r
        one = self._tilt(grow, r, data, neighbor)
        other = self._tilt(grow, (1 - r)[::-1], neighbor[::-1], data[::-1])[:, ::-1]
        eta = 1 - self.delta * (one[:, -1:] + other[:, :1]) / 2
        return np.log(eta - grow * one + other), np.log(eta + one - grow * other)

    def _tilt(self, grow: FloatArray, r: FloatArray, data: FloatArray, neighbor: FloatArray) -> FloatArray:
        """(n_claims, bins) s_1 with the cap under which these counts would have grown most."""
        tilt = np.zeros((len(grow), len(r)))
        start = int(np.searchsorted(r, expit(self.values[0]), side="right"))  # below, no claim's s is above 0
        if start == len(r):
            return tilt
        n = (data.sum() + neighbor.sum()) / 2
        r, data, neighbor = r[start:], data[start:], neighbor[start:]
        s = np.clip(r * (1 + 1 / grow) - 1, 0, _SAFE * (1 - self.delta) / grow)
        up, down = np.log1p(s), np.log1p(-grow * s)
        gain = neighbor * up + data * down
        before = np.cumsum(gain, axis=1) - gain
        above = np.cumsum(np.stack([data, neighbor])[:, ::-1], axis=1)[:, ::-1]
        growth = before + above[1] * up + above[0] * down - n * self.delta * s
        cap = np.take_along_axis(s, np.argmax(growth, axis=1)[:, None], axis=1)
        tilt[:, start:] = np.minimum(s, cap)
        return tilt


def _increasing(name: str, values: FloatArray) -> None:
    is_one_axis = np.ndim(values) == 1 and len(values)
    if not is_one_axis or not np.isfinite(values).all() or not values[0] >= 0 or (np.diff(values) <= 0).any():
        raise ValueError(f"{name} must be finite, of at least 0 and increasing along one axis, got {values!r}")


_TYPICAL_LEVEL = 0.05
"""Bets are sized for refutations at about this level; they are valid at every one."""


def _bets(
    gain: FloatArray, loss: FloatArray, limit: FloatArray, promise: Moments, counts: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Logarithms of 1 + b(gain - c - limit) and 1 - b(loss - c), each (n_claims, bins), c the promised mean of the loss.

    Their means add to at most 2 where E gain - E loss <= limit. The bet b is of the size that wins most at a claim that
    about twice the past's number of replays can refute, and never risks more than nearly all.
    """
    bet = math.sqrt(2 * -math.log(_TYPICAL_LEVEL) / (promise.variance * counts.sum()))
    centre = promise.data_mean
    most = _SAFE / np.maximum(centre + limit, max(float(loss.max()) - centre, 1e-300))
    b = np.minimum(bet, most)[:, None]
    return np.log1p(b * (gain - centre - limit[:, None])), np.log1p(-b * (loss - centre))


class EProcess:
    """Bets against claims while replays come in.

    Every block is bet on with e-pairs chosen from the blocks before it; the first one is only learned from.

    Args:
      claims: what is tested.
      is_learned: whether scores are of any scale, larger where the neighbor is likelier, and their ratio is learned;
        otherwise they are log-likelihood ratios in nats.
      is_tossed: whether a fair coin chose each replay's side. Otherwise each block holds equally many of both.

    Guarantee: for every alpha, the probability that a claim that holds is ever refuted at alpha is at most alpha,
    however the number of blocks is decided on. Assumes: the replays are independent; or, of tossed ones, that the claim
    holds for each given all before. Scores of a block may not depend on later blocks.
    """

    def __init__(self, claims: Claims, *, is_learned: bool = False, is_tossed: bool = False) -> None:
        self.claims, self.is_learned, self.is_tossed = claims, is_learned, is_tossed
        self.history: list[FloatArray] = [np.zeros(len(claims.values))]
        self._edges: FloatArray | None = None if is_learned else RATIO_EDGES
        self._counts = np.zeros((2, 0))
        self._sums = np.zeros(0)

    def update(self, data: ArrayLike, neighbor: ArrayLike) -> FloatArray:
        """Bets on one more block.

        Args:
          data: (n,) scores of replays of the data set.
          neighbor: (m,) scores of the neighbor, m = n unless sides were tossed.

        Returns:
          (n_claims,) the logarithm of the wealth against each claim.
        """
        first, second = checked_sides(data, neighbor, 0, is_paired=not self.is_tossed)
        pooled = np.concatenate([first, second])
        if self._edges is None:
            self._edges = edges_of(pooled)
        if not self._counts.shape[1]:
            self._counts, self._sums = np.zeros((2, len(self._edges) + 1)), np.zeros(len(self._edges) + 1)
        places = np.searchsorted(self._edges, pooled, side="right")
        block = np.stack(
            [np.bincount(part, minlength=len(self._edges) + 1) for part in (places[: len(first)], places[len(first) :])]
        ).astype(float)
        wealth = self.history[-1]
        if (self._counts.sum(axis=1) > 0).all():
            held = np.flatnonzero((self._counts + block).any(axis=0))
            log_data, log_neighbor = self.claims.pairs(self._log_ratio()[held], self._counts[:, held])
            won = np.einsum("cb,b->c", log_data, block[0, held]) + np.einsum("cb,b->c", log_neighbor, block[1, held])
            wealth = wealth + won
        self.history.append(wealth)
        self._counts = self._counts + block
        if not self.is_learned:
            self._sums += np.bincount(places, np.clip(pooled, -LARGEST, LARGEST), minlength=len(self._sums))
        return wealth

    def _log_ratio(self) -> FloatArray:
        if self.is_learned:
            return log_odds(self._counts)
        seen = self._counts.sum(axis=0)
        return np.where(seen > 0, self._sums / np.maximum(seen, 1), ratio_middles())

    def lower(self, level: float) -> float:
        """The largest value refuted at `level` together with all before it; 0 if the first is not.

        Guarantee: the claims are nested, so with probability at least 1 - level no claim that holds is refuted before the
        first that holds is, and that one is not: the smallest value that holds is then above this. No correction for the
        number of claims is needed, and a search that leaves some out would lose the guarantee.
        """
        return lower_of(self.claims.values, np.array(self.history), level)


def lower_of(values: FloatArray, history: FloatArray, level: float) -> float:
    """`EProcess.lower` computed from (n_claims,) values and (n_blocks, n_claims) log wealths."""
    refuted = history.max(axis=0) >= -math.log(probability("level", level))
    first = len(refuted) if refuted.all() else int(np.argmin(refuted))
    return float(values[first - 1]) if first else 0.0


@dataclass(frozen=True)
class GaussianClaims:
    """mu-GDP at each of some mu, by bets on the contrast of thresholds that the past found most telling.

    Validity: if the claim holds, E_Q g - E_P h <= limit(mu) (`tradeoff_bounds.Contrast`); then e_Q = 1 + b(g - c - limit)
    and e_P = 1 - b(h - c) have means that add to at most 2. The likelihood ratio of two Gaussians would be no e-pair: it is
    not bounded, and mu-GDP allows rare outputs with any ratio.

    Attributes:
      values: (n_claims,) the mus, increasing, at least 0.
    """

    values: FloatArray

    def __post_init__(self) -> None:
        _increasing("mus", self.values)

    def pairs(self, log_ratio: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the e-pairs against each Gaussian DP claim, each (n_claims, bins)."""
        bins = np.arange(float(counts.shape[1]))
        contrast = design_contrast(bins[1:] - 0.5, counts, _TYPICAL_LEVEL, counts.sum() / 2)
        if contrast is None:
            nothing = np.zeros((len(self.values), len(bins)))
            return nothing, nothing
        limit = contrast.limit(np.maximum(self.values, 1e-9))
        log_neighbor, log_data = _bets(contrast.gain(bins), contrast.loss(bins), limit, contrast.promise, counts)
        return log_data, log_neighbor


@dataclass(frozen=True)
class RenyiClaims:
    r"""Renyi divergence of one order at most rho, both ways, at each of some rho.

    Validity: for x = p/q and any L > 0, x^alpha >= alpha x L^(alpha - 1) - (alpha - 1) L^alpha, for the power is convex and
    the right side its tangent at L. So E_P[alpha L^(alpha - 1)] - E_Q[(alpha - 1) L^alpha] <= E_Q[(p/q)^alpha] <=
    e^((alpha - 1) rho), a contrast with a limit, to bet on as on any. L is the ratio that the past gives, capped
    where the promised bound is largest; the direction, P against Q or the other, is the past's choice too.

    Attributes:
      alpha: the order, above 1.
      values: (n_claims,) the rhos, increasing, at least 0.
    """

    alpha: float
    values: FloatArray

    def __post_init__(self) -> None:
        order("alpha", self.alpha)
        _increasing("rhos", self.values)

    def pairs(self, log_ratio: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Logarithms of the e-pairs against each Renyi DP claim, each (n_claims, bins)."""
        plan = plan_renyi(log_ratio, counts, self.alpha, counts.sum() / 2)
        gain, loss = plan.values(log_ratio)
        limit = np.exp(np.minimum((self.alpha - 1) * self.values, 700)) * plan.unit
        log_gain, log_loss = _bets(gain, loss, limit, plan.promise, counts)
        return (log_gain, log_loss) if plan.sign < 0 else (log_loss, log_gain)


def epsilon_lower(data: ArrayLike, neighbor: ArrayLike, delta: float, level: float, *, is_learned: bool = False) -> float:
    """Anytime-valid lower bound on epsilon at the given delta; assumes nothing about the mechanism.

    Args: as in `divergence_bounds.renyi_lower`, and
      delta: at least 0, below 1.
      is_learned: scores are of any scale, larger where the neighbor is likelier.

    Returns:
      epsilon, at least 0; where a side betrays itself in every replay it grows like log n.

    Raises:
      ValueError: unusable scores (see `samples.checked_sides`), or delta or level out of range.

    Guarantee: with probability at least 1 - level the mechanism is not (epsilon, delta)-DP for any smaller epsilon; see
    `EProcess`. For a fixed number of replays `coin_flips.epsilon_lower` is sharper.
    """

    def guess(ratio: FloatArray, counts: FloatArray, n: int) -> float:
        pooled = np.repeat(ratio, np.minimum(counts.sum(axis=0), 10**6).astype(int))
        return design(pooled, delta, level, 2 * n).predicted

    return _lower(data, neighbor, lambda grid: ApproxClaims(grid, delta), guess, level, is_learned)


def mu_lower(data: ArrayLike, neighbor: ArrayLike, level: float, *, is_learned: bool = False) -> float:
    """Anytime-valid lower bound on mu, for a mechanism that is mu-GDP for some mu.

    Arguments and errors are as for `epsilon_lower`.

    Returns:
      mu, at least 0.

    Guarantee: with probability at least 1 - level every mu for which the mechanism is mu-GDP is at least this.
    """

    def guess(ratio: FloatArray, counts: FloatArray, n: int) -> float:
        contrast = design_contrast(np.arange(1.0, len(ratio)) - 0.5, counts, level, n)
        return contrast.predicted if contrast else 0.0

    return _lower(data, neighbor, GaussianClaims, guess, level, is_learned)


def _lower(
    data: ArrayLike,
    neighbor: ArrayLike,
    claims: Callable[[FloatArray], Claims],
    guess: Callable[[FloatArray, FloatArray, int], float],
    level: float,
    is_learned: bool,
) -> float:
    """Bets on growing blocks, on a grid that is fine around what the first block lets hope for."""
    data, neighbor = checked_sides(data, neighbor)
    probability("level", level)
    cuts = block_cuts(len(data))
    first = slice(*cuts[0])
    edges = edges_of(np.concatenate([data[first], neighbor[first]])) if is_learned else RATIO_EDGES
    counts = np.stack([count(edges, s[first]) for s in (data, neighbor)]).astype(float)
    ratio = log_odds(counts) if is_learned else ratio_middles()
    process = EProcess(claims(_grid(guess(ratio, counts, len(data)))), is_learned=is_learned)
    for start, stop in cuts:
        process.update(data[start:stop], neighbor[start:stop])
    return process.lower(level)


def _grid(guess: float) -> FloatArray:
    """Values in (0, 32], dense around a guess from the first block, which is not bet on: the sequence may depend on it."""
    coarse = np.geomspace(1e-3, 32, 48)
    if not guess > 0:
        return coarse
    near, nearer = np.arange(0.4, 1.6, 0.02), np.arange(0.8, 1.2, 0.004)
    grid = np.unique(np.concatenate([coarse, guess * near, guess * nearer]))
    return np.asarray(grid[np.diff(grid, prepend=0.0) > 1e-9 * grid])


EPSILON_E_PROCESS = Bound(
    "epsilon-e-process",
    QuantityKind.EPSILON,
    epsilon_lower,
    {"delta": REQUIRED, "is_learned": False},
    theorem="Grünwald, de Heide, Koolen (2024); Waudby-Smith and Ramdas (2023)",
    assumption=ASSUMES_NOTHING + WANTS_RATIOS,
    words="A bet against the claim, without expected gain if the claim holds; it may be checked at any time (Grünwald, de "
    "Heide, Koolen 2024).",
)
