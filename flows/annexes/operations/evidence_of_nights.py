r"""Evidence that adds up over nights: an e-process whose blocks are nights, each with replays of a seed of its own.

Night k replays both sides of one pair of neighbors n times, with a seed that is drawn that night and by nothing before it.
For each value v of the claim's parameter, e-pairs (e_P, e_Q) with E_P[e_P] + E_Q[e_Q] <= 2 under the claim (see
`bandana.audits.bounds.evalues`) are chosen from the replays of the nights before, and the night's e-value is

    E_k(v) = prod_i e_P(X_i) e_Q(Y_i),    i = 1, ..., n.

**Why the product over nights is evidence.** Let F be all that was known when night k began. The pair of neighbors, n and
the e-pairs are functions of F (the choice is *predictable*), and the X_i and Y_i are independent of F and of one another,
because the seed is fresh. So, if the claim with the value v holds,

    E[E_k(v) | F] = prod_i E_P[e_P] E_Q[e_Q] <= prod_i ((E_P[e_P] + E_Q[e_Q]) / 2)^2 <= 1,

and W_k(v) = E_1(v) ... E_k(v) is a nonnegative supermartingale that starts at 1. By Ville's inequality (1939) it ever
reaches 1 / level with probability at most `level`, however many nights there are and whenever somebody looks. The claims
are nested: the largest value refuted with all before it is an anytime-valid lower bound on the true one, `lower_of`.

**Why seeds must be fresh.** With a fixed seed every night makes the same replays: given the past, E_k(v) is a known number
and no variable of mean 1, so that a night with E_k(v) > 1 could be repeated until any claim is refuted. That is why the
fixed-seed audit, which guards against changes, counts once and never adds up.

**Repeated and interrupted nights.** A night's seed is recorded before the first replay. A night that was killed is replayed
with the recorded seed, and gives the E_k that it would have given: nobody can draw again because an outcome was bad. A night
that is asked for twice has one entry: it enters the product once. Two nights that overlap bet from the same past; given that
past they are independent, so the product of both still has mean at most 1.

The null hypothesis is about one code: a version that plays or scores in another way begins a process of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bandana.algorithms.protocol import Algorithm, FloatArray
from bandana.audits.bounds.evalues import ApproxClaims, Claims, EProcess, GaussianClaims, RenyiClaims, lower_of
from bandana.audits.bounds.samples import BINS
from bandana.audits.claims import Quantity
from bandana.audits.neighbors.pairs import Pair
from bandana.audits.replays.attacks import likelihood_ratio
from bandana.audits.replays.replay import replay_both
from bandana.privacy_core.checks import positive, probability

_SHARES = (*np.linspace(0.02, 0.96, 48), 0.97, 0.98, 0.99, 0.995, 1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 2.0, 3.0)
"""Values that are tested, as shares of the claimed one, which is among them."""
_RHO_ORDER = 2.0


@dataclass(frozen=True)
class NightlyClaims:
    """The claims that nights bet against: one quantity at increasing values.

    Attributes:
      quantity: what is bounded.
      claimed: what the source promises of it; above 0, and finite.
    """

    quantity: Quantity
    claimed: float

    def __post_init__(self) -> None:
        positive("claimed", self.claimed)

    @property
    def values(self) -> FloatArray:
        """(n_claims,) the values, increasing."""
        return self.claimed * np.array(_SHARES)

    @property
    def tested(self) -> Claims:
        """The same as e-pairs; rho-zCDP is tested by the divergence of order 2, which it bounds by 2 rho."""
        match self.quantity.name:
            case "mu":
                return GaussianClaims(self.values)
            case "epsilon":
                return ApproxClaims(self.values, self.quantity.delta)
            case "rho":
                return RenyiClaims(_RHO_ORDER, _RHO_ORDER * self.values)
        return RenyiClaims(self.quantity.alpha, self.values)


@dataclass(frozen=True)
class Night:
    """Record of one night, as later nights and readers need it.

    Attributes:
      n_replays: on each side.
      log_e: (n_claims,) logarithm of the night's e-value against each claim; final, never computed again.
      counts: (2, bins) how many log-likelihood ratios of the data set, and of its neighbor, fell into each bin.
      sums: (bins,) of the ratios in each bin.
    """

    n_replays: int
    log_e: FloatArray
    counts: FloatArray
    sums: FloatArray


class _Continued(EProcess):
    """Bets of one night: it has learned from other nights, and its wealth starts at 1."""

    def __init__(self, claims: Claims, past: Sequence[Night]) -> None:
        super().__init__(claims)
        if past:
            self._counts = np.sum([night.counts for night in past], axis=0)
            self._sums = np.sum([night.sums for night in past], axis=0)

    @property
    def learned(self) -> tuple[FloatArray, FloatArray]:
        return self._counts, self._sums


def bet(claims: NightlyClaims, past: Sequence[Night], data: FloatArray, neighbor: FloatArray) -> Night:
    """One night's bets on its scores, chosen from nights that were over when it began; a first night only teaches.

    Args:
      claims: what is tested.
      past: the nights before.
      data: (n,) log-likelihood ratios of replays of the data set, in nats.
      neighbor: (n,) the same of the neighbor.

    Raises:
      ValueError: unusable scores, such as NaN.
    """
    alone = _Continued(claims.tested, ())
    alone.update(data, neighbor)
    process = _Continued(claims.tested, past)
    return Night(len(data), process.update(data, neighbor), *alone.learned)


def replayed(algorithm: Algorithm, pair: Pair, n_replays: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """(n_replays,) exact log-likelihood ratios of the transcripts of each side, in nats."""
    data, neighbor = np.random.SeedSequence(seed).spawn(2)
    first, second = (likelihood_ratio(side) for side in replay_both(algorithm, pair, n_replays, (data, neighbor)))
    return first, second


@dataclass(frozen=True)
class Together:
    """All nights of one process.

    Attributes:
      claims: what is tested.
      nights: in the order in which they ended.
      level: probability with which a claim that holds is ever refuted, at most.
    """

    claims: NightlyClaims
    nights: Sequence[Night]
    level: float

    def __post_init__(self) -> None:
        probability("level", self.level)

    @property
    def history(self) -> FloatArray:
        """(n_nights + 1, n_claims) logarithm of the wealth against each claim, from the start."""
        won = [night.log_e for night in self.nights]
        return np.cumsum([np.zeros(len(self.claims.values)), *won], axis=0)

    @property
    def lower(self) -> float:
        """Anytime-valid lower bound on the quantity, from all nights."""
        return lower_of(self.claims.values, self.history, self.level)

    @property
    def log_wealth(self) -> FloatArray:
        """(n_nights + 1,) logarithm of the evidence against the claimed value, from the start."""
        return np.asarray(self.history[:, int(np.argmin(np.abs(self.claims.values - self.claims.claimed)))])

    @property
    def is_refuted(self) -> bool:
        """Says whether the evidence against the claimed value ever reached 1 / level."""
        return bool(self.log_wealth.max() >= -math.log(self.level))

    @property
    def n_replays(self) -> int:
        """On each side, over all nights."""
        return sum(night.n_replays for night in self.nights)


def holds(night: Night, claims: NightlyClaims) -> bool:
    """Says whether a stored night has the shapes that these claims need."""
    return (
        night.log_e.shape == claims.values.shape
        and night.counts.shape == (2, BINS)
        and night.sums.shape == (BINS,)
        and not np.isnan(night.log_e).any()
        and bool(night.counts.sum(axis=1).tolist() == [night.n_replays] * 2)
    )
