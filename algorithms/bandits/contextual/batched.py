r"""LinUCB in batches whose users send shuffled bits: the shuffle model of privacy.

Source: Chowdhury and Zhou (2022), Shuffle private linear contextual bandits, with sums of vectors from shuffled bits (Cheu,
Joseph, Mao and Peng 2022); Garcelon, Chaudhuri, Perchet and Pirotta (2022), Privacy amplification via shuffling for linear
contextual bandits, the same by amplification of local noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.bandits.contextual.lin_ucb import LinUCB, Model
from bandana.algorithms.bandits.contextual.offers import Sensitive
from bandana.algorithms.entry import Entry, Form, RegretBound, Settings, built_by
from bandana.algorithms.parameters import BETA_SCALE, FAILURE, RIDGE, Kind, Parameter, declared
from bandana.algorithms.problem import CONTEXTUAL, Problem
from bandana.algorithms.protocol import FloatArray, IntArray, Record
from bandana.algorithms.public_coins import uniform
from bandana.privacy_core import Exact, Interval, JointGaussian, Ledger, PhaseSum, PhaseTotal, ShuffledBits, TrustModel
from bandana.privacy_core.checks import at_least, failure_of
from bandana.privacy_core.noise.matrices import GOE, packing
from bandana.privacy_core.noise.shuffled import bits_for

BATCH = Parameter("batch", "Users of a batch, whose messages are mixed.", None, Kind.COUNT, otherwise="horizon^(3/5)")
LEVELS = Parameter("levels", "Steps of 1 that an entry off the diagonal is rounded to.", 32, Kind.COUNT)
NAME = "linucb-batched"
_DITHER = 0x6469_7468


@dataclass(frozen=True)
class Encoding:
    r"""The free entries of (x x^T, y x) as whole numbers from 0, and back.

    Entry v of least value l is floor((v - l) / h + u), u a public coin in [0, 1): of mean (v - l) / h, in one of the two
    nearest whole numbers. The step h is 1 / levels, and sqrt 2 times that on the diagonal, so that noise of one size on all
    counts is GOE noise on the matrix. Entries lie in [0, 1] on the diagonal, in [-1/2, 1/2] off it (|x_i x_j| <= |x|^2 / 2),
    and in [-Y, Y] in the vector.

    Sensitivity: replacing (x, y) moves the entries by at most S levels in units of their steps, S that of `JointGaussian`
    with the GOE and one deviation for matrix and vector. Given the coins, rounding down adds e - e' with e, e' in [0, 1) to
    each of the m differences, at most sqrt m in L2 and less than 1 in each; so S levels + sqrt m, and 1 + the most steps
    that one entry ranges over.

    Attributes:
      dimension: d.
      value_bound: Y.
      levels: steps of 1.
    """

    dimension: int
    value_bound: float
    levels: int

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
        """Places of the free entries, which free entry stands in each place, steps, and least values."""
        d = self.dimension
        pick, mirror, weights = packing(d, d + 1, GOE, 1.0)
        rows, columns = np.divmod(pick, d + 1)
        least = np.where(columns == d, -self.value_bound, np.where(rows == columns, 0.0, -0.5))
        return pick, mirror, weights / self.levels, least

    @property
    def n_coordinates(self) -> int:
        """M = d (d + 1) / 2 + d."""
        return len(self._layout[0])

    @property
    def sensitivity_l2(self) -> float:
        """L2 norm of the largest change of the counts."""
        return JointGaussian(1.0, self.value_bound, 1.0).sensitivity * self.levels + math.sqrt(self.n_coordinates)

    @property
    def most(self) -> int:
        """The largest change of one count."""
        return math.ceil(max(1.0, 2 * self.value_bound) * self.levels) + 1

    def encode(self, statistic: FloatArray, user: IntArray) -> FloatArray:
        """(n_reps, m) whole numbers of the statistics (n_reps, d, d + 1) of users (n_reps,)."""
        pick, _, step, least = self._layout
        dither = uniform(_DITHER, user[:, None], np.arange(len(pick)))
        return np.asarray(np.floor((statistic.reshape(len(user), -1)[:, pick] - least) / step + dither))

    def decode(self, counts: FloatArray, n_users: int) -> FloatArray:
        """(n_reps, d, d + 1) sums over so many users of which these are the counts (n_reps, m)."""
        _, mirror, step, least = self._layout
        free = counts * step + n_users * least
        return np.asarray(free[:, mirror].reshape(len(counts), self.dimension, self.dimension + 1))


@dataclass(frozen=True)
class ProblemWithDropouts(Problem):
    """Public facts of a problem in which some users get an action and then do not answer.

    Attributes: those of `Problem`, and
      dropout: share of users who do not answer, at least 0 and below 1.
    """

    dropout: float = 0.0


@dataclass(frozen=True)
class BatchedLinUCB(LinUCB):
    r"""LinUCB whose model changes after every B users: the sums of a batch leave the shuffler as noisy counts of ones.

    After k batches, V, theta and the width are those of `PrivateRidge`, with k in place of t in its bounds on the noise.

    Unit of privacy: one user's record, contexts and reward. Protected: what the shuffler passes on to the server, and all
    that follows from it; the users' own actions depend on their contexts and are seen by nobody else. Claim: (epsilon,
    delta)-DP of the shuffled bits, for neighbors that replace one record, if all users follow the protocol. It implies
    joint DP, and not central DP, in which the own action is seen too; that follows where a reward alone is replaced.
    Sensitivity: see `Encoding`; a record enters one batch, which is released once, and the phases end at public rounds, so
    that a record pays for one release of `ShuffledBits`. A last batch that is not full is not released. Public: T, B, d,
    the range, the coins that round, and who answers. Cost: O(n_actions d^2) a round, O(d^3) a batch.

    Dropouts: `n_silent` users of each batch, evenly spaced, send nothing: neither their value nor a fair bit. Only the bits
    of the others hide a record: N = b (B - n_silent), for which b is chosen. With a b for B users the claim would be false.
    It is to those who answer; who does must not depend on data, as the number of bits shows it.

    Noise: on an entry off the diagonal, k batches hold k N fair bits of weight 1 / levels, and k B roundings, each within
    an interval of that length: sub-Gaussian with the variance proxy v = k (N + B) / (4 levels^2) (Hoeffding's lemma; for
    fair bits it is the variance). With probability 1 - failure/2, at all k <= M = T / B,

        |N_k| <= sqrt(2 v (d + 1) log(2 d / p)),     |n_k| <= sqrt(v (d + 2 sqrt(d l) + 2 l)),

    with p = failure/(4 M) and l = log(1/p): the first as the entries' patterns E_ij + E_ji, and sqrt 2 E_ii, have squares
    that add up to (d + 1) I (Tropp 2012, Theorem 3.6, with E exp(s X A) <= exp(s^2 v A^2 / 2)), the second by Hsu, Kakade
    and Zhang (2012), Theorem 1.

    Departures from the papers: bits are accounted for exactly and jointly over the coordinates (`ShuffledBits`), where
    Chowdhury and Zhou count each coordinate at its largest change; entries of matrix and vector share one encoding; the
    regularizer is that of LinUCB here. Without noise, at B = 1, this is LinUCB.

    Attributes: those of `LinUCB`, and
      batch: B.
      encoding: of a record's statistic; None: it is added up as it is, for the non-private twin.
      dropout: share of each batch, rounded down, that does not answer.
    """

    batch: int = 1
    encoding: Encoding | None = None
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("batch", self.batch, 1)
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout!r}")

    @property
    def n_silent(self) -> int:
        """Users of each batch who do not answer."""
        return int(self.dropout * self.batch)

    @property
    def n_answers(self) -> int:
        """Users of each batch who answer."""
        return self.batch - self.n_silent

    @property
    def most_updates(self) -> int:
        """M, number of full batches, at least 1: the model changes after each."""
        return max(1, self.horizon // self.batch)

    def init(self, n_reps: int) -> tuple[Sensitive, Model]:
        """The states before the first round."""
        sensitive, model = super().init(n_reps)
        if self.encoding is None:
            return sensitive, model
        return Sensitive(self.sums.init(n_reps, (self.encoding.n_coordinates,))), model

    def absorb(self, sensitive: Sensitive, released: Model, record: Record, ledger: Ledger) -> tuple[Sensitive, Model]:
        """Adds the record's statistic to the batch; after the last user of it releases the sums, and solves for theta."""
        value, place = JointGaussian.statistic(*self.contribution(record)), int(released.clock[0]) % self.batch
        if self.encoding is not None:
            value = self.encoding.encode(value, record.user) * record.n_records[:, None]
        if (place + 1) * self.n_silent // self.batch > place * self.n_silent // self.batch:
            value = np.zeros_like(value)
        state = self.sums.add(sensitive.sum, value, record.n_records)
        np.add(released.clock, record.n_records, out=released.clock)
        step = int(released.clock[0])
        if step % self.batch == 0:
            state, noisy, _ = self.sums.close(state, ledger)
            statistic = noisy if self.encoding is None else self.encoding.decode(noisy, step // self.batch * self.n_answers)
            self._learn(released, statistic, step // self.batch)
        return Sensitive(state), released

    def _noise(self, step: int) -> tuple[float, float]:
        """Bounds on the norms of the noise after so many batches."""
        if step == 0 or self.encoding is None:
            return 0.0, 0.0
        d, share = self.n_features, self.failure / (4 * self.most_updates)
        variance = step * (4 * self.sums.noise_deviation(1) ** 2 + self.n_answers) / (2 * self.encoding.levels) ** 2
        log = math.log(1 / share)
        matrix = math.sqrt(2 * variance * (d + 1) * math.log(2 * d / share))
        return matrix, math.sqrt(variance * (d + 2 * math.sqrt(d * log) + 2 * log))

    def regret_bound(self, horizon: ArrayLike) -> FloatArray:
        r"""Regret that is exceeded with probability at most `failure`, at every horizon; all constants are explicit.

        As for `LinUCB`, with A_t = sum over s < t of x_s x_s^T + a I, a the least a_k after a release, and V >= A at the
        start of a batch, A that of its first user. A batch in which the determinant at most doubles has |x_t|^2_(V^-1) <=
        2 |x_t|^2_(A_t^-1) for its users (Abbasi-Yadkori et al. 2011, Lemma 12); at most log2(det A_T / a^d) batches more
        than double it, at D B each, and the first, in which nothing is known, costs as much. With W_T the largest bound on
        w / s,

            R_T <= D B (2 + G_T / log 2) + max(D, 2 sqrt 2 s W_T) sqrt(T G_T / log 2),    G_T = d log(1 + T / (a d)),

        and R_T <= D T.

        Args:
          horizon: numbers of rounds, at most the algorithm's, any shape, which the regret has too, in units of reward.

        Raises:
          ValueError: `beta_scale` is below 1, or there are dropouts: then nothing is proved.
        """
        if self.beta_scale < 1 or self.n_silent:
            raise ValueError(f"the bound needs a beta_scale of at least 1 and no dropouts, got {self.beta_scale!r}")
        rounds, d = np.asarray(horizon, dtype=float), self.n_features
        steps = np.arange(self.most_updates + 1)
        _, least, largest = self.regression.regularizer(steps)
        width = np.maximum.accumulate(self.regression.radius(d * np.log(steps * self.batch / d + largest), steps))
        widest = width[np.minimum(rounds.astype(np.int64) // self.batch, self.most_updates)]
        growth = d * np.log1p(rounds / (d * least[1:].min()))
        span, log = self.reward_range.width, math.log(2)
        cost = np.maximum(span, 2 * math.sqrt(2) * self.beta_scale * widest) * np.sqrt(rounds * growth / log)
        return np.asarray(np.minimum(span * rounds, span * self.batch * (2 + growth / log) + cost))


def batched_lin_ucb(
    n_actions: int,
    dimension: int,
    horizon: int,
    reward_range: Interval,
    *,
    batch: int | None = None,
    levels: int = 32,
    ridge: float = 1.0,
    failure: float | None = None,
    beta_scale: float = 1.0,
) -> BatchedLinUCB:
    """The non-private twin: LinUCB on exact sums, whose model changes after every batch; arguments as in `LinUCBSettings`.

    Args: as in `LinUCBSettings`, and
      batch: B; None: T^(3/5), as in the paper.
      levels: of the private form; the twin has none.
    """
    half = reward_range.width / 2
    size = min(horizon, math.ceil(horizon**0.6)) if batch is None else batch
    return BatchedLinUCB(
        n_actions, dimension, reward_range, horizon, PhaseTotal(PhaseSum(Exact())), ridge, failure_of(failure, horizon),
        half, half, 0.0, 0.0, beta_scale=beta_scale, batch=size,
    )  # fmt: skip


def shuffled(twin: BatchedLinUCB, promise: Any, levels: int) -> BatchedLinUCB:
    """The form whose batches leave a shuffler, with as many bits as the promise needs."""
    encoding = Encoding(twin.context_dimension, twin.reward_range.width / 2, levels)
    bits: ShuffledBits = bits_for(promise, encoding.sensitivity_l2, encoding.most, encoding.n_coordinates, twin.n_answers)
    return replace(twin, sums=PhaseTotal(PhaseSum(bits)), encoding=encoding)


_CHOWDHURY_ZHOU = "Chowdhury and Zhou (2022), Shuffle private linear contextual bandits"


def _batched(settings: Settings) -> BatchedLinUCB:
    twin: BatchedLinUCB = replace(built_by(batched_lin_ucb)(settings), dropout=getattr(settings.problem, "dropout", 0.0))
    return twin if settings.privacy is None else shuffled(twin, settings.privacy, settings.parameters["levels"])


def _bound(settings: Settings, means: FloatArray | None, grid: IntArray) -> RegretBound | None:
    algorithm = _batched(settings)
    if algorithm.beta_scale < 1 or algorithm.n_silent:
        return None
    _, least, largest = algorithm.shift(algorithm.most_updates)
    return RegretBound(
        algorithm.regret_bound(grid),
        f"{_CHOWDHURY_ZHOU}, with constants: D B (2 + G / log 2) + max(D, 2 sqrt 2 s W) sqrt(t G / log 2), G = d log(1 + "
        f"t / (a d)), W = R sqrt(2 log(2 n / failure) + d log((t / d + b_k) / a')) + C sqrt(b_k) + g_k / sqrt(a_k) at its "
        f"largest, and at most D t, D the range's width, for any contexts and |theta| <= C. Here d = "
        f"{algorithm.n_features}, B = {algorithm.batch}, R = C = {algorithm.reward_scale:g}, s = {algorithm.beta_scale:g}, "
        f"a_k = {least:.3g} and b_k = {largest:.3g} at the end. Exceeded with probability at most {algorithm.failure:.3g}",
    )


def _four_batches(settings: Settings) -> Settings:
    """Batches of a sixteenth of the rounds."""
    return settings.with_parameters(batch=max(1, settings.problem.known_horizon // 16))


_FORMS = (
    Form(f"{_CHOWDHURY_ZHOU}, without noise", _CHOWDHURY_ZHOU),
    Form(
        f"{_CHOWDHURY_ZHOU}, vector sums", _CHOWDHURY_ZHOU, TrustModel.SHUFFLE, "approximate", ("tight",),
        "(epsilon, delta)-DP of the bits that leave the shuffler, replace one record (contexts and rewards)",
        "the bits that leave the shuffler", "privacy theorem of the vector sum",
    ),
)  # fmt: skip
BATCHED: tuple[Entry, ...] = tuple(
    form.entry(
        NAME, "bandits/contextual", _batched, "one user's record (contexts and rewards)",
        plays_on=(CONTEXTUAL,), parameters=declared(FAILURE, BETA_SCALE, RIDGE, BATCH, LEVELS), bound=_bound,
        audit_shape=(3, 3), in_audit=_four_batches,
    )
    for form in _FORMS
)  # fmt: skip
"""LinUCB in batches under shuffle privacy, and its twin."""
