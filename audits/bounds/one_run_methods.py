"""Lower bounds from the scores of many canaries in one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from bandana.algorithms.protocol import BoolArray, FloatArray
from bandana.audits.bounds import one_run
from bandana.audits.bounds.bound import ASSUMES_NOTHING, REQUIRED, Bound, QuantityKind
from bandana.audits.bounds.evalues import ApproxClaims, GaussianClaims
from bandana.audits.claims import Quantity
from bandana.privacy_core import GaussianDP, PureDP
from bandana.privacy_core.checks import at_least, positive, probability

_CUTS = (1.0, 1.5, 2.0, 2.25, 2.5, 2.75, 3.0)


def _guessed(scores: FloatArray, is_in: BoolArray, n_guesses: int) -> tuple[int, int, int]:
    """Counts canaries, guesses, and right guesses.

    The most confident guesses count; of equal scores the earlier ones.
    """
    most = np.argsort(-np.abs(scores), kind="stable")[: at_least("n_guesses", n_guesses, 1)]
    return len(scores), len(most), int(((scores[most] > 0) == is_in[most]).sum())


def _mu(scores: FloatArray, is_in: BoolArray, level: float, *, n_guesses: int) -> float:
    return one_run.mu_lower(*_guessed(scores, is_in, n_guesses), level)


def _epsilon(scores: FloatArray, is_in: BoolArray, level: float, *, n_guesses: int, delta: float) -> float:
    return one_run.epsilon_lower(*_guessed(scores, is_in, n_guesses), delta, level)


def _sequential(scores: FloatArray, is_in: BoolArray, level: float, *, delta: float, around: float) -> float:
    return one_run.sequential_lower(scores, is_in, ApproxClaims(_grid(around), delta), level)


def _sequential_mu(scores: FloatArray, is_in: BoolArray, level: float, *, around: float) -> float:
    return one_run.sequential_lower(scores, is_in, GaussianClaims(_grid(around)), level)


def _grid(around: float) -> FloatArray:
    """Lists the values to test, up to 32 in increasing order; fine near what is claimed."""
    fine = positive("around", around) * np.arange(0.4, 2.5, 0.01)
    return np.unique(np.concatenate([np.geomspace(1e-3, 32, 80), fine[fine <= 32]]))


_OWN_RELEASE = "Each canary has a release of its own, made before the next coin is tossed, and private given all before."
_MU = Bound(
    "one-run-mu",
    QuantityKind.MU,
    _mu,
    {"n_guesses": REQUIRED},
    theorem="Mahloujifar, Melis, Chaudhuri (2024), Algorithms 1 and 3",
    assumption="The mechanism is mu-GDP for some mu.",
    words="Number of correct guesses, among the most confident ones, of which canaries were included, limited by the "
    "trade-off curve of µ (Mahloujifar, Melis, Chaudhuri 2024).",
)
_EPSILON = Bound(
    "one-run-epsilon",
    QuantityKind.EPSILON,
    _epsilon,
    {"n_guesses": REQUIRED, "delta": REQUIRED},
    theorem="Steinke, Nasr, Jagielski (2023), Theorem 5.2",
    assumption=ASSUMES_NOTHING,
    words="Number of correct guesses, among the most confident ones, of which canaries were included, limited by coins of "
    "bias exp(ε)/(1 + exp(ε)), up to δ (Steinke, Nasr, Jagielski 2023).",
)
_SEQUENTIAL = Bound(
    "one-run-sequential",
    QuantityKind.EPSILON,
    _sequential,
    {"delta": REQUIRED, "around": REQUIRED},
    theorem="Steinke, Nasr, Jagielski (2023) for the coins; Grünwald, de Heide, Koolen (2024) for the bets",
    assumption=_OWN_RELEASE,
    words="A bet on each canary's coin before the next is tossed (Grünwald, de Heide, Koolen 2024). Assumes a separate "
    "release for each canary, private given all earlier ones, as under local privacy.",
)
_SEQUENTIAL_MU = Bound(
    "one-run-sequential-mu",
    QuantityKind.MU,
    _sequential_mu,
    {"around": REQUIRED},
    theorem="Steinke, Nasr, Jagielski (2023) for the coins; Waudby-Smith and Ramdas (2023) for the bets",
    assumption=_OWN_RELEASE + " The mechanism is mu-GDP for some mu.",
    words="The same for µ (Waudby-Smith and Ramdas 2023).",
)

METHODS: Mapping[str, Bound] = MappingProxyType(
    {bound.name: bound for bound in (_MU, _EPSILON, _SEQUENTIAL, _SEQUENTIAL_MU)}
)
"""Name -> bound, from scores and coins of canaries in one run. `around` is the value near which the grid is fine."""


def bound(name: str, scores: ArrayLike, is_in: ArrayLike, level: float, **parameters: float) -> float:
    """The lower confidence bound that a method draws from one run.

    Args:
      name: of `METHODS`.
      scores: (m,) one a canary, in the order of the records, larger where "in" is likelier; m >= 100.
      is_in: (m,) bool, the coins.
      level: probability of a bound that is too large.
      **parameters: as the method demands, fixed before the run.

    Returns:
      mu or epsilon, at least 0. The same arguments give the same number.

    Raises:
      ValueError: no such method, a parameter that is missing or that it does not take, unusable scores or coins (see
        `one_run.checked_coins`), level or a parameter out of range.
    """
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    values, coins = one_run.checked_coins(scores, is_in)
    return METHODS[name](values, coins, probability("level", level), **parameters)


@lru_cache(maxsize=256)
def n_guesses_for(n_canaries: int, claim: GaussianDP | PureDP, level: float) -> int:
    r"""Computes the number of coins to guess, from the claim alone.

    Few guesses are surer, and many are more evidence. If every canary had a Gaussian release of its own at the claimed mu,
    a score over mu would be x ~ N(+-mu/2, 1); where |x| > t is guessed, m (Phi(mu/2 - t) + Phi(-mu/2 - t)) coins are, and
    m Phi(mu/2 - t) of them rightly. Of some t the one with the largest bound on mu is taken; the best one for epsilon is
    mostly the same. Under a pure claim scores of a Laplace release are +-epsilon with probability (1 + e^-epsilon)/2, all
    equally sure: nearly so many are guessed.

    Args:
      n_canaries: m, at least 1.
      claim: what the algorithm promises.
      level: probability of a bound that is too large.

    Returns:
      at least 1, at most m.
    """
    m = at_least("n_canaries", n_canaries, 1)
    if isinstance(claim, PureDP):
        return max(1, int(0.475 * m * (1 + math.exp(-claim.epsilon))))
    best = (-1.0, 1)
    for cut in _CUTS:
        right, wrong = (m * float(ndtr(sign * claim.mu / 2 - cut)) for sign in (1, -1))
        n = max(1, int(right + wrong))
        best = max(best, (one_run.mu_lower(m, n, int(right), level), n))
    return best[1]


class OneRunPlan(NamedTuple):
    """One bound that is taken from one run; see `StatedBound` for the fields."""

    method: str
    quantity: Quantity
    parameters: dict[str, float]
    level: float


def plan(
    n_canaries: int, claim: GaussianDP | PureDP, delta: float, level: float, *, is_sequential: bool
) -> tuple[OneRunPlan, ...]:
    """The bounds that are taken from one run, all fixed from the claim before it.

    Args:
      n_canaries: at least 1.
      claim: what the algorithm promises of one record; a pure one has no bound on mu.
      delta: at which epsilon is bounded; 0 for a pure claim.
      level: probability with which some of the bounds is too large, split evenly.
      is_sequential: whether each canary was scored before the next coin was tossed.
    """
    mu, epsilon = Quantity("mu"), Quantity("epsilon", delta)
    is_pure = isinstance(claim, PureDP)
    share = level / ((1 if is_pure else 2) * (2 if is_sequential else 1))
    n_guesses = n_guesses_for(n_canaries, claim, share)
    planned = [
        OneRunPlan("one-run-mu", mu, {"n_guesses": n_guesses}, share),
        OneRunPlan("one-run-epsilon", epsilon, {"n_guesses": n_guesses, "delta": delta}, share),
    ]
    if is_sequential:
        near = claim.epsilon if isinstance(claim, PureDP) else claim.epsilon_at(delta)
        planned.append(OneRunPlan("one-run-sequential", epsilon, {"delta": delta, "around": max(near, 1e-3)}, share))
        planned.append(OneRunPlan("one-run-sequential-mu", mu, {"around": claim.gdp().mu}, share))
    return tuple(one for one in planned if not (is_pure and one.quantity == mu))
