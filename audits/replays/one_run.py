r"""The view `one_run`: many canaries in a single run, each put in or left out by a fair coin of the auditor's.

One run, no replays: what an owner can afford who cannot run an algorithm a hundred thousand times. It is strong where every
record has a noisy release of its own, as under local privacy, where a run of T users is T canaries. Where many records share
one noisy sum it is valid and weak, for every canary hides behind the coins of all others.

**How scores are made.** Some replicates of a batch hear the answers that one live run gets, each over a table of its own:
the scripted replay of `bandana.audits.replays.replay`, in the same pass. A canary's score is the log density ratio of all
that was released between two such tables, in which the canary is in and out.

**Why a score may not know the other coins.** A guess must be a function of what was released. With Y = noisy(b_1 xor b_2)
and the other coin known, both guesses are right at once or wrong at once: no binomial bounds their number. So the tables
hold none of the coins that were tossed. Where each release reads one record (fast path), one pair of tables, all out and
all in, gives every score at once: the run's actions are those that were played, so that a record's exact value is that of
its row under the arm played on it. Elsewhere (general path) each canary has a pair of tables in which the other canaries
lie half way between in and out; two replicates a canary, at most `max_canaries` of them.

**What the bounds rest on.** One-run bounds on epsilon and mu take guesses from the whole output (Steinke, Nasr, Jagielski
2023; Mahloujifar, Melis, Chaudhuri 2024), on either path. The sequential ones need each score before the next coin is
tossed, and a promise that holds for each message given all before, as a local one does: they are offered on the fast path
only, and only where every message was released in its own round. Each bound is a function of scores, coins and
parameters: `bound` takes it anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.data_sets import DataSet
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.protocol import Algorithm, BoolArray, FloatArray, IntArray, Record
from bandana.algorithms.run import run
from bandana.audits.bounds.one_run import LEAST
from bandana.audits.bounds.one_run_methods import bound, plan
from bandana.audits.neighbors.neighbor import Canaries
from bandana.audits.outcome import GUESSED_COINS, ONE_RUN, StatedBound
from bandana.privacy_core import GaussianDP, LiveLedger, Mechanism, PureDP, ReproducibleNoise, is_selection, without_noise
from bandana.privacy_core.checks import at_least, probability
from bandana.privacy_core.ledger import Reads

CERTAIN = 1e9
"""The score of a canary that betrays itself: finite, so that evidence can hold it as a number."""
_PILOT = 64
_BUFFER = 4096


@dataclass(frozen=True)
class OneRun:
    """Result of an audit by one run.

    Attributes:
      scores: (m,) one a canary, as single precision keeps them; larger where "in" is likelier, never infinite.
      is_in: (m,) bool, the coins.
      records: (m,) where the canaries stand, increasing.
      is_local: whether each release was taken to read one record (fast path).
      n_parted: replicates that got the same answers and yet acted otherwise: decisions were made from values that were not
        released. From there on they score nothing.
      bounds: they hold together but with the level that was asked for.
    """

    scores: FloatArray
    is_in: BoolArray
    records: IntArray
    is_local: bool
    n_parted: int
    bounds: tuple[StatedBound, ...]


def examine(
    algorithm: Algorithm,
    data: Table,
    neighbor: ArrayLike | Table,
    seed: int,
    *,
    claim: GaussianDP | PureDP,
    delta: float,
    level: float = 0.05,
    max_canaries: int = 256,
) -> OneRun:
    """One run with a canary in every record, or in some, and what it certifies.

    Args:
      algorithm: what to audit.
      data: its rows are those of canaries that are out.
      neighbor: rewards of those that are in, (n_users, ..., n_actions), or (..., n_actions) one row for all; or a table of
        them, whose users may live through other episodes.
      seed: of the coins, of the noise, and of a short pilot, each with a child of its own.
      claim: what the algorithm promises of one record: numbers of guesses and grids are fixed from it beforehand.
      delta: at which epsilon is bounded; a pure claim is held against delta 0 whatever it is.
      level: probability with which some of the bounds is too large, split evenly.
      max_canaries: how many canaries, at most, where releases read more than one record.

    Returns:
      scores, coins and bounds: mu (not under a pure claim) and epsilon from guesses, and on the fast path both from bets on
      one coin after the other.

    Raises:
      ValueError: a table that is not of the algorithm's range or number of arms, rows of another shape or out of range, a
        canary that changes nothing, fewer than 100 canaries, or delta or level out of range.

    Guarantee: with probability at least 1 - level all bounds are below the truth, if the coins are fair and the scores
    functions of what was released. They are by construction, whatever the algorithm declares.
    """
    probability("level", level)
    delta = 0.0 if isinstance(claim, PureDP) else probability("delta", delta)
    in_ = _in_table(algorithm, data, neighbor)
    for_coins, for_noise, for_pilot = np.random.SeedSequence(seed).spawn(3)
    is_local = _is_local(algorithm, data, for_pilot)
    n_canaries = data.n_users if is_local else min(at_least("max_canaries", max_canaries, 1), data.n_users)
    if n_canaries < LEAST:
        raise ValueError(
            f"one run needs at least {LEAST} canaries, got {n_canaries}: data must have at least as many rounds, not "
            f"{data.n_users}, and max_canaries must be as large where releases read more than one record"
        )
    records = np.unique(np.linspace(0, data.n_users - 1, n_canaries).round().astype(np.int64))
    is_in = np.random.Generator(np.random.SFC64(for_coins)).integers(0, 2, len(records)).astype(bool)
    is_hidden = np.zeros(data.n_users, dtype=bool)
    is_hidden[records] = data.moved(in_)[records]
    tables = data.one_run(in_, records, is_in, is_local)
    ledger = _SharedAnswers(1 if is_local else len(records), is_local, is_hidden, ReproducibleNoise(for_noise))
    # One run: all that are compared with the live replicate decide by its coins.
    run(algorithm, tables, ledger, observers=[ledger], coins=Coins(for_noise, ledger.n_reps, is_shared=True))
    scores = ledger.scores().astype(np.float32).astype(np.float64)
    canaries = Canaries(len(records), data.n_users)
    bounds = _bounds(scores, is_in, canaries, claim, delta, level, is_sequential=is_local and ledger.is_prompt)
    return OneRun(scores, is_in, records, is_local, int(ledger.parted.sum()), bounds)


def _bounds(
    scores: FloatArray,
    is_in: BoolArray,
    canaries: Canaries,
    claim: GaussianDP | PureDP,
    delta: float,
    level: float,
    *,
    is_sequential: bool,
) -> tuple[StatedBound, ...]:
    bounds = []
    for name, quantity, parameters, share in plan(len(scores), claim, delta, level, is_sequential=is_sequential):
        lower = bound(name, scores, is_in, share, **parameters)
        bounds.append(StatedBound(ONE_RUN, GUESSED_COINS, canaries, quantity, name, parameters, share, lower, ONE_RUN))
    return tuple(bounds)


def _in_table(algorithm: Algorithm, data: Table, neighbor: ArrayLike | Table) -> Table:
    """The rows of canaries that are in, checked."""
    span, own = data.reward_range, algorithm.reward_range
    if data.n_actions != algorithm.n_actions:
        raise ValueError(f"data must have the algorithm's {algorithm.n_actions} arms, got {data.n_actions}")
    if span.low < own.low or span.high > own.high:
        raise ValueError(f"data must lie in the algorithm's range {own}, as a canary that is clipped is none; got {span}")
    covariates = data.covariates
    if isinstance(neighbor, DataSet):
        rows, covariates = neighbor.rewards, neighbor.covariates
        if not data.rewards_may_be_public and data.moved(neighbor).any():
            raise ValueError(
                "neighbor must bring the contexts of data: only rewards are canaries where users bring contexts"
            )
    else:
        rows = np.asarray(neighbor, dtype=float)
    if rows.shape not in (data.rewards.shape, data.rewards.shape[1:]):
        raise ValueError(f"neighbor must be of shape {data.rewards.shape} or {data.rewards.shape[1:]}, got {rows.shape}")
    rows = np.broadcast_to(rows, data.rewards.shape)
    wrong = ~((rows >= span.low) & (rows <= span.high))
    if wrong.any():
        raise ValueError(f"neighbor must hold rewards in {span}, the range of data; got {float(rows[wrong][0])!r}")
    in_ = data.with_rows(rows, covariates)
    same = (in_.rewards == data.rewards).reshape(data.n_users, -1).all(axis=1) & ~data.moved(in_)
    if same.any():
        raise ValueError(f"neighbor must differ from data in every row, got the same in row {int(np.argmax(same))}")
    return in_


def _is_local(algorithm: Algorithm, data: Table, seed: np.random.SeedSequence) -> bool:
    """Says whether in the first rounds of a run with noise of its own each release reads one record."""
    ledger = LiveLedger(1, ReproducibleNoise(seed), keeps_transcript=True)
    run(algorithm, data, ledger, horizon=min(data.n_users, max(_PILOT, 8 * data.n_actions)), coins=Coins(seed, 1))
    return all(
        release.carried is None and int(release.records.stop[0] - release.records.start[0]) == 1
        for release in ledger.transcript
    )


class _LiveRelease(NamedTuple):
    """A release of the live replicate, replayed to those that come later."""

    mechanism: Mechanism
    span: list[int]
    """First record, one past the last, and the first that is carried."""
    output: FloatArray


class _SharedAnswers:
    """The ledger of a batch whose first replicate is live; the others hear its answers, and are scored in pairs.

    A replicate parts where it plays, or asks for, anything else than the live one; from there on it gets its exact values
    back and scores nothing. Releases may come for the whole batch at once or replicate by replicate.
    """

    def __init__(self, n_pairs: int, is_local: bool, is_hidden: BoolArray, noise: ReproducibleNoise) -> None:
        self.n_pairs, self.n_reps = n_pairs, 1 + 2 * n_pairs
        self.parted = np.zeros(self.n_reps, dtype=bool)
        self.is_prompt = True
        self._is_local = is_local
        self._live = LiveLedger(self.n_reps, noise, n_records=len(is_hidden))
        self._scores = np.zeros(len(is_hidden) if is_local else self.n_pairs)
        self._script: dict[int, _LiveRelease] = {}
        self._made = np.zeros(self.n_reps, dtype=np.int64)
        self._is_in_step = True
        self._kept: dict[tuple[int, int], FloatArray] = {}
        self._waiting: list[tuple[int, FloatArray, FloatArray, FloatArray]] = []
        self._mechanism: Mechanism | None = None
        self._played = 0
        self._is_hidden, self._last = is_hidden, len(is_hidden) - 1

    def observe(self, record: Record) -> None:
        """Sees who acts otherwise than the live replicate.

        A canary's own actions do not count where its states differ between the tables: no claim hides them from itself.
        """
        self._played = int(record.user[0] + record.n_records[0])
        differs = (record.actions != record.actions[0]).any(axis=1) & ~self._is_hidden[np.minimum(record.user, self._last)]
        differs |= (record.user != record.user[0]) | (record.n_records != record.n_records[0])
        if differs.any():
            self.parted |= differs

    def release(self, mechanism: Mechanism, value: FloatArray, **reads: Unpack[Reads]) -> FloatArray:
        """Releases through the live ledger and keeps what one-run scores need."""
        records, reps, carried = reads["records"], reads.get("reps"), reads.get("carried")
        # A copy: a foreign mechanism may answer with the value's own memory.
        output = np.array(self._live.release(mechanism, value, **reads))
        begins = records.start if carried is None else carried.start
        spans = np.stack([records.start, records.stop, begins], axis=1)
        if not self.parted.any() and (reps is None or len(reps) == self.n_reps):
            rows: slice | IntArray = slice(None)
        else:
            ids = np.arange(self.n_reps) if reps is None else reps
            rows = np.flatnonzero(~self.parted[ids])
            if not len(rows):
                return without_noise(mechanism, value)
            if not np.array_equal(ids[rows], np.flatnonzero(~self.parted)):
                rows = np.empty(0, dtype=np.int64)
        if self._is_in_step and len(same := spans[rows]) and (same == same[0]).all():
            self._all_at_once(mechanism, value, spans[0].tolist(), rows, output)
        else:
            self._one_by_one(mechanism, value, spans, reps, output)
        return output

    def _all_at_once(
        self, mechanism: Mechanism, value: FloatArray, span: list[int], rows: slice | IntArray, output: FloatArray
    ) -> None:
        """One release of all replicates that have not parted; they stand in `rows`, the live one first."""
        k, live = self.n_pairs, output[0].copy()
        self._made += 1
        if isinstance(rows, slice):
            output[1:] = live
            self._score(mechanism, span, slice(None), output[1 : k + 1], value[1 : k + 1], value[k + 1 :])
            return
        output[:] = without_noise(mechanism, value)
        output[rows] = live
        place = np.full(self.n_reps, -1)
        place[~self.parted] = rows
        sides = place[1:].reshape(2, k)
        pairs = np.flatnonzero((sides >= 0).all(axis=0))
        if len(pairs):
            replayed = np.broadcast_to(live, (len(pairs), *live.shape))
            self._score(mechanism, span, pairs, replayed, value[sides[0, pairs]], value[sides[1, pairs]])

    def _one_by_one(
        self, mechanism: Mechanism, value: FloatArray, spans: IntArray, reps: IntArray | None, output: FloatArray
    ) -> None:
        """Matches each replicate's next release with the live one's of the same number; answers into `output`."""
        self._is_in_step = False
        for row, rep in enumerate((np.arange(self.n_reps) if reps is None else reps).tolist()):
            turn = int(self._made[rep])
            self._made[rep] += 1
            span = spans[row].tolist()
            if rep == 0:
                self._script[turn] = _LiveRelease(mechanism, span, output[row].copy())
                continue
            release = self._script.get(turn)
            same = release is not None and release.mechanism == mechanism and release.span == span
            self.parted[rep] |= not same
            if release is None or self.parted[rep]:
                output[row] = without_noise(mechanism, value[row : row + 1])[0]
                continue
            output[row] = release.output
            pair, is_in_side = (rep - 1) % self.n_pairs, rep > self.n_pairs
            partner = self._kept.pop((turn, pair), None)
            if partner is None:
                self._kept[turn, pair] = value[row].copy()
            else:
                out, in_ = (partner, value[row]) if is_in_side else (value[row], partner)
                parts = (part[None] for part in (release.output, out, in_))
                self._score(mechanism, span, slice(pair, pair + 1), *parts)

    def _score(
        self,
        mechanism: Mechanism,
        span: list[int],
        pairs: slice | IntArray,
        output: FloatArray,
        out: FloatArray,
        in_: FloatArray,
    ) -> None:
        """Adds what one release tells of some pairs; on the fast path, of the record that it reads."""
        if not self._is_local:
            self._scores[pairs] += _log_ratio(mechanism, output, out, in_)
            return
        start, stop, begins = span
        if stop - start != 1 or begins != start:
            return
        self.is_prompt &= stop == self._played
        # One call for many messages: a mechanism's overhead is larger than its arithmetic.
        if mechanism is not self._mechanism or len(self._waiting) >= _BUFFER:
            self._flush()
            self._mechanism = mechanism
        self._waiting.append((start, output[0].copy(), out[0].copy(), in_[0].copy()))

    def _flush(self) -> None:
        if self._mechanism is not None and self._waiting:
            owners, *parts = zip(*self._waiting, strict=True)
            ratio = _log_ratio(self._mechanism, *(np.stack(part) for part in parts))
            np.add.at(self._scores, np.array(owners), ratio)
            self._waiting.clear()

    def scores(self) -> FloatArray:
        """(m,) one a canary: what its releases tell, within +-`CERTAIN`.

        On the general path a table on which the run would have gone another way is out of the question; where both sides of
        a canary are, nothing is known.
        """
        self._flush()
        scores = self._scores
        if not self._is_local:
            short = self._made < self._made[0]
            lost = (self.parted | short)[1:].reshape(2, self.n_pairs)
            scores = np.where(lost[0] ^ lost[1], np.where(lost[0], CERTAIN, -CERTAIN), np.where(lost[0], 0.0, scores))
        return np.clip(scores, -CERTAIN, CERTAIN)


def _log_ratio(mechanism: Mechanism, output: FloatArray, out: FloatArray, in_: FloatArray) -> FloatArray:
    """(n_rows,) log p(output | in_) - log p(output | out), within +-`CERTAIN`.

    A value without noise has no density: there a ratio says only that the values differ, and the nearer one is taken.
    """
    ratio = np.asarray(mechanism.log_density_ratio(output, out, in_), dtype=float)
    if not np.isfinite(ratio).all() and not is_selection(mechanism):
        back = np.asarray(mechanism.log_density_ratio(output, in_, out), dtype=float)
        with np.errstate(invalid="ignore"):
            nearer = np.sign(mechanism.change(output, out) - mechanism.change(output, in_))
        ratio = np.where(np.isneginf(ratio) & np.isneginf(back), CERTAIN * nearer, ratio)
    return np.asarray(np.clip(np.nan_to_num(ratio, nan=0.0), -CERTAIN, CERTAIN))
