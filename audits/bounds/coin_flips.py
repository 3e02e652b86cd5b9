r"""The sharpest test of (epsilon, delta)-DP at a fixed number of replays: exact, given where the scores fell.

Toss a fair coin for each of m replays: the neighbor or the data. Given where its score z fell, the coin is known to be
heads with probability q/(p + q). Under epsilon-DP that is at most rho = E/(1 + E), E = e^epsilon, wherever z fell, and
tails is at most as likely: whoever guesses the coin from the score is right with probability at most rho, given all
scores, independently over the replays. So a weighted count of right guesses is dominated by a weighted sum of coins of
bias rho, whose law is known exactly; weights may depend on all scores. With weights |log q/p| - epsilon this is the
likelihood ratio against the closest pair that the claim allows, the Neyman-Pearson test.

Under (epsilon, delta)-DP the guess is right with probability at most rho + (1 - rho) t(z), with mean t at most delta: as
if each coin were given away with probability t(z). How many are is Binomial(m, delta) at most; but given the scores it is
not, for the law of the scores may tell. An exponential bound in that number closes the gap, with a constant that was chosen
on other replays (`Guesses.is_refuted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, ndtri

from bandana.algorithms.protocol import FloatArray, IntArray
from bandana.audits.bounds.bound import ASSUMES_NOTHING, REQUIRED, WANTS_RATIOS, Bound, QuantityKind
from bandana.audits.bounds.samples import LARGEST, checked_sides, learn_ratio, split
from bandana.privacy_core.checks import at_least, probability

_LEVELS = 16
"""Weights are whole numbers up to this."""
_SMALLEST = 1e-9
"""Log ratios that are not larger are no reason to guess."""
_MISSES = 4.0
"""Standard deviations of the number of heads that both sides have replays for."""
_TRAIN_SHARE = 0.1
"""Share of both sides that weights are designed on."""
_CLOSE = 5e-6
_ROUNDING = 1e-9
"""Largest error of the sums of the exact test: 1e6 logarithms, each right to 1e-16."""
_turns_from_one = lru_cache(maxsize=8)(lambda size: np.expm1(2j * np.pi / size * np.arange(size)))
"""(size,) complex e^(iw) - 1 at w = 2 pi k / size, without cancellation: the counts multiply its errors. To be read only."""


@dataclass(frozen=True)
class Design:
    """Weights of guesses, learned on other replays than those that are counted.

    Attributes:
      start: a score whose log ratio is no larger than this, in either direction, is not guessed.
      reach: from `start` up to `start + reach` weights grow linearly, beyond they stay; at 0 all weights are equal.
      predicted: the epsilon that the other replays let hope for.
      tilt: the rate of the exponential bound on the number of coins given away; 0 at delta 0.
    """

    start: float
    reach: float
    predicted: float
    tilt: float

    def weights(self, log_ratio: FloatArray) -> IntArray:
        """Whole numbers from 0, no guess, to 16; same shape."""
        excess = np.minimum(np.abs(log_ratio), LARGEST + self.start) - self.start
        if not self.reach:
            return np.where(excess > 0, _LEVELS, 0)
        return np.ceil(np.clip(excess / self.reach, 0, 1) * _LEVELS - 1e-6).astype(np.int64)


def design(log_ratio: FloatArray, delta: float, level: float, n_tosses: int) -> Design:
    """The weights that promise the largest epsilon, if the log ratios are what they say.

    Args:
      log_ratio: (n,) pooled log ratios of both sides, of other replays than those that will be counted.
      delta: of the claim, at least 0.
      level: of the test.
      n_tosses: how many replays will be counted.
    """
    size = np.minimum(np.abs(log_ratio), LARGEST)
    size = np.sort(size[size > _SMALLEST])[::-1]
    scale = n_tosses / len(log_ratio)
    goal = -float(ndtri(level))
    best = Design(0.0, 1.0, 0.0, 0.0)
    low, high = 0.0, float(size[0]) if len(size) else 0.0
    for _ in range(14):  # the promise falls as epsilon grows
        epsilon = (low + high) / 2
        reach = _best_reach(size, epsilon, delta, scale, n_tosses, goal)
        if reach is None:
            high = epsilon
        else:
            low, best = epsilon, reach
    return best


def _best_reach(size: FloatArray, epsilon: float, delta: float, scale: float, n_tosses: int, goal: float) -> Design | None:
    """The reach with the largest promised deviation, if that is at least `goal`."""
    guessed = size[size > epsilon]
    if len(guessed) < 2:
        return None
    excess = guessed - epsilon
    wrong = float(expit(-epsilon))  # 1 - rho, which may be too small for a difference
    reaches = np.quantile(excess, 1 - np.geomspace(1 / len(excess), 1, 24))
    reaches = np.append(np.unique(reaches[reaches > max(0.01 * excess[0], _SMALLEST)]), 0.0)
    weights = np.array([np.minimum(excess / reach, 1) if reach else np.ones(len(excess)) for reach in reaches])
    right = scale * (weights * (wrong - expit(-guessed))).sum(axis=1)
    spread = np.sqrt(scale * wrong * (1 - wrong) * (weights**2).sum(axis=1))
    promised = (right - n_tosses * delta * wrong) / spread
    i = int(np.argmax(promised))
    if promised[i] < goal:
        return None
    hazard = math.exp(-(goal**2) / 2) / math.sqrt(2 * math.pi) / float(0.5 * math.erfc(goal / math.sqrt(2)))
    return Design(epsilon, float(reaches[i]), epsilon, hazard * wrong / float(spread[i]) if delta else 0.0)


class Guesses:
    """Weighted guesses of tossed replays, and the exact test of a claim on them.

    Args:
      data: log ratios of the replays that came up tails.
      neighbor: log ratios of those that came up heads.
      plan: how they are weighted.
      n_tosses: how many coins were tossed; replays that are missing here were not guessed, whatever their side.
    """

    def __init__(self, data: FloatArray, neighbor: FloatArray, plan: Design, n_tosses: int) -> None:
        self.plan, self.n_tosses = plan, n_tosses
        weights = [plan.weights(scores) for scores in (data, neighbor)]
        self.count = np.bincount(np.concatenate(weights), minlength=_LEVELS + 1).astype(float)
        self.count[0] = 0
        used = np.flatnonzero(self.count)
        divisor = int(np.gcd.reduce(used)) if len(used) else 1  # on the smallest lattice
        self.levels, self.count = used / divisor, self.count[used]
        self.right = int(weights[0][data < 0].sum() + weights[1][neighbor > 0].sum()) // divisor

    def is_refuted(self, epsilon: float, delta: float, level: float) -> bool:
        r"""True if (epsilon, delta)-DP is refuted.

        Guarantee: if it holds, this is true with probability at most `level`. Monotone: what is refuted stays so for a
        smaller epsilon or delta. So at most `level` is also the probability that a claim that holds lies below the largest
        epsilon that is refuted.

        Proof: let z be all scores, J the guesses given away, T the weighted count of right ones, and f_z(i)(t) the
        probability that T reaches t if the i largest weights are right for sure and the others with probability rho,
        independently. Then P(T >= t | z, J) <= f_z(|J|)(t): a larger weight given away for a smaller one, or one more,
        only adds to T. We refute iff f_z(i)(T) <= A e^(theta i) for all i; the left side falls in T, so this is
        T >= c(z), and

            P(refute) <= E f_z(|J|)(c(z)) <= A E e^(theta |J|) <= A (1 - delta + delta e^theta)^m = level

        by the choice of A, for the m replays are independent, and each coin is given away with probability at most delta:
        t(z) = (q - E p)_+ / (p + q) where heads is guessed has mean at most delta/2 under the density (p + q)/2, and so
        has the same for tails. theta = `plan.tilt` comes from other replays. Little is lost: log f is almost concave in i,
        and theta is its slope near i = m delta, where the two curves meet.
        """
        return self._objection(epsilon, *self._allowances(delta, level)) is None

    def epsilon_lower(self, delta: float, level: float) -> float:
        """The largest epsilon that is refuted, to 1e-5; 0 if none is.

        Few numbers of guesses given away decide: those that have objected are checked first, and all only for the answer.
        """
        given, allowed = self._allowances(delta, level)
        if self._objection(0.0, given, allowed) is not None:
            return 0.0
        right, total = self.right, float(self.count @ self.levels)
        high = min(LARGEST, math.log(right / (total - right))) if right < total else LARGEST
        checked = [self._objection(self.plan.predicted, given, allowed) or 0]

        def excess(epsilon: float) -> float:
            """The largest excess of the bound over what is allowed; above 0 where too few guesses are right."""
            if epsilon >= high:
                return 1.0
            log_f = np.minimum(self._log_hoeffding(epsilon, given[checked]), self._log_tails(epsilon, given[checked]))
            return float(np.max(log_f - allowed[checked]))

        while True:
            low = 0.0 if excess(0.0) >= 0 else max(0.0, float(brentq(excess, 0.0, high, xtol=_CLOSE)) - _CLOSE)
            if (objection := self._objection(low, given, allowed)) is None:
                return low
            checked, high = sorted({*checked, objection}), low

    def _allowances(self, delta: float, level: float) -> tuple[FloatArray, FloatArray]:
        """Numbers of guesses given away, increasing, and the log probability that f may have at each."""
        tilt, guessed = self.plan.tilt, float(self.count.sum())
        if delta == 0:
            return np.zeros(1), np.array([math.log(level)])
        if not tilt > 0:
            return np.zeros(1), np.array([-math.inf])
        log_a = math.log(level) - self.n_tosses * math.log1p(delta * math.expm1(tilt))
        given = _to_look_at(self.n_tosses * delta, tilt, min(guessed, math.ceil(-log_a / tilt)))
        # f grows in i: what holds at the larger of two with the smaller one's allowance holds between them
        return given, np.append(log_a, log_a + tilt * (given[:-1] + 1))

    def _objection(self, epsilon: float, given: FloatArray, allowed: FloatArray) -> int | None:
        """The place of a number given away at which f exceeds what is allowed; None if there is none."""
        if self.right <= expit(epsilon) * float(self.count @ self.levels):
            return 0  # too few right guesses to refute anything, without a closer look
        hoeffding = self._log_hoeffding(epsilon, given)
        is_open = np.flatnonzero((allowed < 0) & (hoeffding > allowed))
        if not len(is_open):
            return None
        worst = is_open[[int(np.argmax((hoeffding - allowed)[is_open]))]]  # the one that decides most often
        for places in (worst, is_open)[: len(is_open)]:
            excess = self._log_tails(epsilon, given[places]) - allowed[places]
            if excess.max() > 0:
                return int(places[np.argmax(excess)])
        return None

    def _after(self, given: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, levels) guesses left and (n,) what they must reach, when the largest `given` are right for sure."""
        larger = np.cumsum(self.count[::-1])[::-1] - self.count
        taken = np.clip(given[:, None] - larger, 0, self.count)
        return self.count - taken, self.right - taken @ self.levels

    def _log_hoeffding(self, epsilon: float, given: FloatArray) -> FloatArray:
        """(n,) a bound on log f(i)(T) for each i of (n,)."""
        left, need = self._after(given)
        most = left @ self.levels
        bound = -2 * np.maximum(need - float(expit(epsilon)) * most, 0) ** 2 / np.maximum(left @ self.levels**2, 1)
        return np.where(need > most, -np.inf, bound)

    def _log_tails(self, epsilon: float, given: FloatArray) -> FloatArray:
        """(n,) log f(i)(T) for each i of (n,), increasing.

        The law lives on whole numbers; on an interval of `size` of them around the mean that holds all but 2 e^-30 of it
        (Bernstein), its tail is a sum over `size` frequencies w of the characteristic function, whose absolute value is at
        most exp(-rho (1 - rho) sum n_k (1 - cos k w)): frequencies at which that is below e^-40 are left out.
        """
        rho, levels = float(expit(epsilon)), self.levels
        left, need = self._after(given)
        mean = rho * (left @ levels)
        linear, variance = 30 * float(levels[-1]) / 3, rho * (1 - rho) * float(left[0] @ levels**2)
        radius = linear + math.sqrt(linear**2 + 60 * variance)
        size = 2 ** math.ceil(math.log2(2 * radius + 4))
        whole = np.zeros(size)
        whole[levels.astype(int)] = left[-1]
        damping = left[-1].sum() - np.fft.rfft(whole).real
        kept = np.flatnonzero(rho * (1 - rho) * damping < 40)
        from_one = _turns_from_one(size)
        turns = np.outer(levels.astype(np.int64), kept) % size
        one_guess = np.log1p(rho * from_one)[turns] if turns.size > size else np.log1p(rho * from_one[turns])
        # einsum and not @: the threads of a BLAS wait for each other where cores are shared, and cost more than they win
        law = np.exp(np.einsum("gl,lf->gf", left, one_guess))
        low = np.ceil(mean).astype(np.int64) - size // 2
        first = need.astype(np.int64)
        n_above = np.clip(low + size - first, 0, size)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = from_one[np.outer(-first, kept) % size] - from_one[np.outer(-first - n_above, kept) % size]
            steps /= -from_one[-kept]
        steps[:, 0] = n_above
        twice = np.where((kept == 0) | (2 * kept == size), 1.0, 2.0)
        return np.asarray(np.log(np.clip(np.einsum("gf,f->g", (law * steps).real, twice) / size + _ROUNDING, _ROUNDING, 1)))


def _to_look_at(expected: float, tilt: float, most: float) -> FloatArray:
    """Numbers of guesses given away from 0 to `most`: all near the expected one, few elsewhere."""
    reach = max(1.0, 0.02 / tilt) * np.cumsum(1.25 ** np.arange(32))
    picks = np.concatenate([[0, most, expected], expected - reach, expected + reach])
    return np.unique(np.round(np.clip(picks, 0, most)))


def toss(n: int, seed: int, held_out: tuple[FloatArray, FloatArray]) -> tuple[int, int, int]:
    """Tosses fair coins for the number of replays of each side: (of the data, of the neighbor, coins).

    As many coins are tossed as n replays a side have room for in all but 6e-5 of the cases, in which nothing is taken.
    Which replay belongs to which coin does not matter, for replays of one side are alike. The coins are
    drawn from the seed and from the held-out replays, which say nothing on the others: a seed that everybody leaves at 0
    would else be everybody's same luck.

    Args:
      n: replays on each side.
      seed: of the coins, at least 0.
      held_out: replays of both sides that are not counted.
    """
    n_tosses = max(0, math.floor((math.sqrt(2 * n + _MISSES**2 / 4) - _MISSES / 2) ** 2))
    digest = blake2b(b"".join(np.ascontiguousarray(scores, dtype="<f8").tobytes() for scores in held_out), digest_size=16)
    entropy = [at_least("seed", seed, 0), int.from_bytes(digest.digest(), "little")]
    heads = int(np.random.Generator(np.random.SFC64(np.random.SeedSequence(entropy))).binomial(n_tosses, 0.5))
    return (0, 0, n_tosses) if max(heads, n_tosses - heads) > n else (n_tosses - heads, heads, n_tosses)


def epsilon_lower(
    data: ArrayLike, neighbor: ArrayLike, delta: float, level: float, *, seed: int = 0, is_learned: bool = False
) -> float:
    """Lower confidence bound on epsilon at the given delta; assumes nothing about the mechanism.

    Args:
      data: (n,) log-likelihood ratios log q/p of replays of the data set, infinite where the neighbor (or the data)
        cannot produce the output; n >= 100.
      neighbor: (n,) the same of the neighbor.
      delta: at least 0, below 1; 0 for pure DP.
      level: probability of a bound that is too large.
      seed: of the auditor's coins. Fix it before looking: the best of several seeds is no bound.
      is_learned: scores are of any scale, larger where the neighbor is likelier; the ratio is learned on held-out replays.

    Returns:
      epsilon in nats, at least 0. Where a side betrays itself in every replay, about log(n / log(1/level)): it grows with n.

    Raises:
      ValueError: unusable scores (see `samples.checked_sides`), or delta or level out of range.

    Guarantee: with probability at least 1 - level the mechanism is not (epsilon, delta)-DP for any smaller epsilon. Assumes:
      replays are independent and alike. Exact at every n: see `Guesses.is_refuted` for the proof; the probability is that
      of replays and coins together.
    """
    return guess(data, neighbor, delta, level, seed=seed, is_learned=is_learned).epsilon_lower(delta, level)


def guess(
    data: ArrayLike, neighbor: ArrayLike, delta: float, level: float, *, seed: int = 0, is_learned: bool = False
) -> Guesses:
    """The guesses that `epsilon_lower` is taken from, all arguments as there; they also test one claim alone."""
    data, neighbor = checked_sides(data, neighbor)
    probability("level", level)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    (train, train_n), (test, test_n) = split(data, neighbor, _TRAIN_SHARE)
    n_data, n_neighbor, n_tosses = toss(len(test), seed, (train, train_n))
    if is_learned:
        ratio = learn_ratio(train, train_n)
        train, train_n, test, test_n = (ratio(scores) for scores in (train, train_n, test, test_n))
    plan = design(np.concatenate([train, train_n]), delta, level, n_tosses)
    return Guesses(test[:n_data], test_n[:n_neighbor], plan, n_tosses)


EPSILON_COINS = Bound(
    "epsilon-coins",
    QuantityKind.EPSILON,
    epsilon_lower,
    {"delta": REQUIRED, "seed": 0, "is_learned": False},
    theorem="Kairouz, Oh, Viswanath (2015) for the closest pair; Steinke, Nasr, Jagielski (2023) for guessed coins",
    assumption=ASSUMES_NOTHING + WANTS_RATIOS,
    words="A fair coin selects the data set of each score; the claim limits how many coins can be guessed correctly. The "
    "test is exact (Kairouz, Oh, Viswanath 2015; Steinke, Nasr, Jagielski 2023).",
)
