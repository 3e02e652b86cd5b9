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

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from bandana.algorithms.environments.episodes import EpisodeTable, Table
from bandana.algorithms.environments.tables import ContextTable, DataSet, RewardTable
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray, Record
from bandana.algorithms.run import run
from bandana.audits.bounds import one_run
from bandana.audits.bounds.evalues import EProcess, GaussianClaims
from bandana.audits.bounds.samples import block_cuts
from bandana.audits.claims import Quantity
from bandana.privacy_core import Carried, GaussianDP, Interval, LiveLedger, Mechanism, PureDP, ReproducibleNoise, Span
from bandana.privacy_core.checks import at_least, positive, probability

BoolArray = NDArray[np.bool_]
LEAST = 100
"""Fewer canaries than this certify nothing worth the run."""
CERTAIN = 1e9
"""The score of a canary that betrays itself: finite, so that evidence can hold it as a number."""
_CUTS = (1.0, 1.5, 2.0, 2.25, 2.5, 2.75, 3.0)
_PILOT = 64
_BUFFER = 4096


# --- bounds ---------------------------------------------------------------------------------------------------------


def _guesses(scores: FloatArray, is_in: BoolArray, n_guesses: int) -> int:
    """How many of the `n_guesses` most confident guesses are right; of equal scores the earlier are guessed."""
    most = np.argsort(-np.abs(scores), kind="stable")[:n_guesses]
    return int(((scores[most] > 0) == is_in[most]).sum())


def _mu(scores: FloatArray, is_in: BoolArray, level: float, *, n_guesses: int) -> float:
    at_least("n_guesses", n_guesses, 1)
    n_right = _guesses(scores, is_in, n_guesses)
    return one_run.mu_lower(len(scores), min(n_guesses, len(scores)), n_right, level)


def _epsilon(scores: FloatArray, is_in: BoolArray, level: float, *, n_guesses: int, delta: float) -> float:
    at_least("n_guesses", n_guesses, 1)
    n_right = _guesses(scores, is_in, n_guesses)
    return one_run.epsilon_lower(len(scores), min(n_guesses, len(scores)), n_right, delta, level)


def _sequential(scores: FloatArray, is_in: BoolArray, level: float, *, delta: float, around: float) -> float:
    return one_run.sequential_epsilon_lower(scores, is_in, delta, level, _grid(around))


def _sequential_mu(scores: FloatArray, is_in: BoolArray, level: float, *, around: float) -> float:
    process = EProcess(GaussianClaims(_grid(around)), is_tossed=True)
    for start, stop in block_cuts(len(scores)):
        block, side = scores[start:stop], is_in[start:stop]
        process.update(block[~side], block[side])
    return process.lower(level)


def _grid(around: float) -> FloatArray:
    """Which values are tested, up to 32 in increasing order; fine near what is claimed."""
    fine = positive("around", around) * np.arange(0.4, 2.5, 0.01)
    return np.unique(np.concatenate([np.geomspace(1e-3, 32, 80), fine[fine <= 32]]))


class Method(NamedTuple):
    """One way from scores and coins to a bound."""

    function: Callable[..., float]
    """(scores, is_in, level, **parameters) -> bound."""
    source: str
    """Whose idea it is."""
    assumption: str
    """What must hold beyond fair coins."""


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "one-run-mu": Method(
            _mu, "Mahloujifar, Melis, Chaudhuri (2024), Algorithms 1 and 3", "the mechanism is mu-GDP for some mu"
        ),
        "one-run-epsilon": Method(_epsilon, "Steinke, Nasr, Jagielski (2023), Theorem 5.2", "none on the mechanism"),
        "one-run-sequential": Method(
            _sequential,
            "Steinke, Nasr, Jagielski (2023) for the coins; Grünwald, de Heide, Koolen (2024) for the bets",
            "each canary has a release of its own, made before the next coin is tossed, and private given all before",
        ),
        "one-run-sequential-mu": Method(
            _sequential_mu,
            "Steinke, Nasr, Jagielski (2023) for the coins; Waudby-Smith and Ramdas (2023) for the bets",
            "as for one-run-sequential, and the mechanism is mu-GDP for some mu",
        ),
    }
)
"""name -> method. Parameters: `one-run-mu` n_guesses; `one-run-epsilon` n_guesses and delta; `one-run-sequential` delta and
around, the epsilon near which its grid is fine; `one-run-sequential-mu` around."""


def bound(name: str, scores: ArrayLike, is_in: ArrayLike, level: float, **parameters: Any) -> float:
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
      ValueError: no such method, a parameter that is missing or that it does not take, scores that are NaN or too few, coins
        that are not one bool a score, level or a parameter out of range.
    """
    if name not in METHODS:
        raise ValueError(f"name must be one of {', '.join(METHODS)}, got {name!r}")
    taken = list(inspect.signature(METHODS[name].function).parameters)[3:]
    if set(parameters) != set(taken):
        raise ValueError(f"{name} takes the parameters {', '.join(taken)}; got {', '.join(parameters) or 'none'}")
    values, coins = np.asarray(scores, dtype=float), np.asarray(is_in)
    if values.ndim != 1 or values.shape != coins.shape or coins.dtype != bool:
        raise ValueError(f"is_in must hold a bool for each score, got {coins.dtype} {coins.shape} for scores {values.shape}")
    if len(values) < LEAST:
        raise ValueError(f"scores must hold at least {LEAST} canaries, got {len(values)}")
    if np.isnan(values).any():
        raise ValueError(f"scores must hold no NaN, got {int(np.isnan(values).sum())} among {len(values)}")
    return METHODS[name].function(values, coins, probability("level", level), **parameters)


@lru_cache(maxsize=256)
def n_guesses_for(n_canaries: int, claim: GaussianDP | PureDP, level: float) -> int:
    r"""How many coins to guess, from the claim alone.

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


# --- the run --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunBound:
    """One lower confidence bound.

    Attributes:
      method: name in `METHODS`.
      quantity: what is bounded.
      parameters: of the method.
      level: probability with which it exceeds the truth, at most.
      lower: the bound.
    """

    method: str
    quantity: Quantity
    parameters: Mapping[str, Any]
    level: float
    lower: float


@dataclass(frozen=True)
class OneRun:
    """What one run shows.

    Attributes:
      scores: (m,) one a canary, as single precision keeps them; larger where "in" is likelier, never infinite.
      is_in: (m,) bool, the coins.
      records: (m,) where the canaries stand, increasing.
      is_local: whether each release was taken to read one record (fast path).
      n_parted: replicates that heard the same answers and yet acted otherwise: decisions were made from values that were not
        released. From there on they score nothing.
      bounds: they hold together but with the level that was asked for.
    """

    scores: FloatArray
    is_in: BoolArray
    records: IntArray
    is_local: bool
    n_parted: int
    bounds: tuple[RunBound, ...]


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
    tables = _Tables.of(data, in_, records, is_in, is_local)
    heard = _Heard(tables, ReproducibleNoise(for_noise))
    run(algorithm, tables, heard, observers=[heard])
    scores = heard.scores().astype(np.float32).astype(np.float64)
    bounds = _bounds(scores, is_in, claim, delta, level, is_sequential=is_local and heard.is_prompt)
    return OneRun(scores, is_in, records, is_local, int(heard.parted.sum()), bounds)


def _bounds(
    scores: FloatArray, is_in: BoolArray, claim: GaussianDP | PureDP, delta: float, level: float, *, is_sequential: bool
) -> tuple[RunBound, ...]:
    mu, epsilon = Quantity("mu"), Quantity("epsilon", delta)
    is_pure = isinstance(claim, PureDP)
    share = level / ((1 if is_pure else 2) * (2 if is_sequential else 1))
    n_guesses = n_guesses_for(len(scores), claim, share)
    asked: list[tuple[str, Quantity, dict[str, Any]]] = [
        ("one-run-mu", mu, {"n_guesses": n_guesses}),
        ("one-run-epsilon", epsilon, {"n_guesses": n_guesses, "delta": delta}),
    ]
    if is_sequential:
        near = claim.epsilon if isinstance(claim, PureDP) else claim.epsilon_at(delta)
        asked.append(("one-run-sequential", epsilon, {"delta": delta, "around": max(near, 1e-3)}))
        asked.append(("one-run-sequential-mu", mu, {"around": claim.gdp().mu}))
    return tuple(
        RunBound(name, quantity, parameters, share, bound(name, scores, is_in, share, **parameters))
        for name, quantity, parameters in asked
        if not (is_pure and quantity == mu)
    )


def _in_table(algorithm: Algorithm, data: Table, neighbor: ArrayLike | Table) -> Table:
    """The rows of canaries that are in, checked."""
    span, own = data.reward_range, algorithm.reward_range
    if data.n_actions != algorithm.n_actions:
        raise ValueError(f"data must have the algorithm's {algorithm.n_actions} arms, got {data.n_actions}")
    if span.low < own.low or span.high > own.high:
        raise ValueError(f"data must lie in the algorithm's range {own}, as a canary that is clipped is none; got {span}")
    brought = data.brought
    if isinstance(neighbor, DataSet):
        rows, brought = neighbor.rewards, neighbor.brought
        if isinstance(data, ContextTable) and neighbor.brought is not None and (data.features != neighbor.brought).any():
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
    in_ = data.with_rows(rows, brought)
    same = (in_.rewards == data.rewards).reshape(data.n_users, -1).all(axis=1) & ~_brings_another(data, in_)
    if same.any():
        raise ValueError(f"neighbor must differ from data in every row, got the same in row {int(np.argmax(same))}")
    return in_


def _brings_another(data: DataSet, other: DataSet) -> BoolArray:
    """(n_users,) who brings something else."""
    mine, theirs = data.brought, other.brought
    if mine is None or theirs is None:
        return np.zeros(data.n_users, dtype=bool)
    return np.asarray((mine != theirs).reshape(data.n_users, -1).any(axis=1))


def _is_local(algorithm: Algorithm, data: Table, seed: np.random.SeedSequence) -> bool:
    """Whether in the first rounds of a run with noise of its own each release reads one record."""
    ledger = LiveLedger(1, ReproducibleNoise(seed), keeps_transcript=True)
    run(algorithm, data, ledger, horizon=min(data.n_users, max(_PILOT, 8 * data.n_actions)))
    return all(
        release.carried is None and int(release.records.stop[0] - release.records.start[0]) == 1
        for release in ledger.transcript
    )


T = TypeVar("T", bound=DataSet)


class _Tables(Generic[T]):
    """A stream in which every replicate has a table of its own: the mixed one, then all "out" sides, then all "in" sides.

    Args:
      mixed: where the coins decide.
      out: rows of canaries that are out.
      in_: rows of canaries that are in.
      rest: what the sides hold beside their own canary; None where a side holds all canaries alike.
      records: (n_pairs,) whose canary a pair of sides differs in; all of them where `rest` is None.

    Attributes:
      is_hidden: (n_users,) whose own actions may differ between the tables: canaries' that bring something else when in.
    """

    def __init__(self, mixed: T, out: T, in_: T, rest: T | None, records: IntArray) -> None:
        self.mixed, self.out, self.in_, self.rest, self.records = mixed, out, in_, rest, records
        self.n_users, self.n_actions, self.reward_range = mixed.n_users, mixed.n_actions, mixed.reward_range
        self.n_pairs = 1 if rest is None else len(records)
        self.is_hidden = np.zeros(mixed.n_users, dtype=bool)
        self.is_hidden[records] = _brings_another(out, in_)[records]

    @staticmethod
    def of(data: Table, in_: Table, records: IntArray, is_in: BoolArray, is_local: bool) -> _Streams:
        """Both paths' tables; `in_` holds the rows of canaries that are in.

        Where releases read many records the other canaries are half way between in and out, as far as rewards go: what they
        bring is what they bring when they are out.
        """
        mixed, rest = data.rewards.copy(), data.rewards.copy()
        mixed[records[is_in]] = in_.rewards[records[is_in]]
        rest[records] = (data.rewards[records] + in_.rewards[records]) / 2
        brought = None if data.brought is None or in_.brought is None else data.brought.copy()
        if brought is not None and in_.brought is not None:
            brought[records[is_in]] = in_.brought[records[is_in]]
        parts = data.with_rows(mixed, brought), data, in_, None if is_local else data.with_rewards(rest), records
        if isinstance(data, EpisodeTable):
            return _EpisodeTables(*parts)  # type: ignore[arg-type]
        return (_ContextTables if isinstance(data, ContextTable) else _ArmTables)(*parts)  # type: ignore[arg-type]

    def clipped(self, reward_range: Interval) -> Self:
        """All tables, clipped; they lie in the algorithm's range, so that nothing changes."""
        rest = None if self.rest is None else self.rest.clipped(reward_range)
        mixed, out, in_ = (table.clipped(reward_range) for table in (self.mixed, self.out, self.in_))
        return type(self)(mixed, out, in_, rest, self.records)

    def _sides(self) -> tuple[tuple[T, slice], ...]:
        """Tables, and whose replicates they answer; a side's own rows are not among them where there is a rest."""
        k = self.n_pairs
        out, in_ = (self.out, self.in_) if self.rest is None else (self.rest, self.rest)
        return (self.mixed, slice(0, 1)), (out, slice(1, k + 1)), (in_, slice(k + 1, 2 * k + 1))


class _ArmTables(_Tables[RewardTable]):
    """Such a stream of arms."""

    def respond(self, user: IntArray, n_records: IntArray, actions: IntArray) -> FloatArray:
        """See `Stream.respond`."""
        sides = self._sides()
        answers = [table.respond(user[part], n_records[part], actions[part]) for table, part in sides]
        if self.rest is None:
            return np.concatenate(answers)
        for answer, table, (_, part) in zip(answers[1:], (self.out, self.in_), sides[1:], strict=True):
            first, count, played = user[part], n_records[part], actions[part]
            holds = (first <= self.records) & (self.records < first + count)
            place = (self.records, played)
            own = table.rewards[place] - self.rest.rewards[place]
            answer += np.where(holds, own, 0.0)
        return np.concatenate(answers)


class _ContextTables(_ArmTables):
    """The same where users have contexts: all tables share them."""

    @property
    def context_dimension(self) -> int:
        """That of the tables."""
        assert isinstance(self.mixed, ContextTable)
        return self.mixed.context_dimension

    def contexts(self, user: IntArray) -> FloatArray:
        """See `ContextualStream.contexts`."""
        assert isinstance(self.mixed, ContextTable)
        return self.mixed.contexts(user)


class _EpisodeTables(_Tables[EpisodeTable]):
    """Such a stream of episodes."""

    def __init__(
        self, mixed: EpisodeTable, out: EpisodeTable, in_: EpisodeTable, rest: EpisodeTable | None, records: IntArray
    ) -> None:
        super().__init__(mixed, out, in_, rest, records)
        self.n_states, self.episode_length = mixed.n_states, mixed.episode_length

    def first(self, user: IntArray) -> IntArray:
        """See `EpisodicStream.first`."""
        return self._asked(lambda table, part: table.first(user[part]), user)

    def advance(self, user: IntArray, step: int, states: IntArray, actions: IntArray) -> tuple[IntArray, FloatArray]:
        """See `EpisodicStream.advance`."""

        def answer(table: EpisodeTable, part: slice | IntArray, which: int) -> NDArray[Any]:
            return table.advance(user[part], step, states[part], actions[part])[which]

        after, rewards = (self._asked(partial(answer, which=which), user) for which in (0, 1))
        return after, rewards

    def _asked(self, ask: Callable[[EpisodeTable, slice | IntArray], NDArray[Any]], user: IntArray) -> NDArray[Any]:
        """(n_reps,) what each replicate's own table answers."""
        found = np.concatenate([ask(table, part) for table, part in self._sides()])
        for start, table in ((1, self.out), (1 + self.n_pairs, self.in_)) if self.rest is not None else ():
            own = start + np.flatnonzero(self.records == user[start : start + self.n_pairs])
            found[own] = ask(table, own)
        return found


_Streams = _ArmTables | _EpisodeTables


class _Asked(NamedTuple):
    """A release of the live replicate, to be heard by those that come later."""

    mechanism: Mechanism
    span: list[int]
    """First record, one past the last, and the first that is carried."""
    output: FloatArray


class _Heard:
    """The ledger of a batch whose first replicate is live; the others hear its answers, and are scored in pairs.

    A replicate parts where it plays, or asks for, anything else than the live one; from there on it gets its exact values
    back and scores nothing. Releases may come for the whole batch at once or replicate by replicate.
    """

    def __init__(self, tables: _Streams, noise: ReproducibleNoise) -> None:
        self.n_pairs, self.n_reps = tables.n_pairs, 1 + 2 * tables.n_pairs
        self.parted = np.zeros(self.n_reps, dtype=bool)
        self.is_prompt = True
        self._is_local = tables.rest is None
        self._live = LiveLedger(self.n_reps, noise, n_records=tables.n_users)
        self._scores = np.zeros(tables.n_users if self._is_local else self.n_pairs)
        self._script: dict[int, _Asked] = {}
        self._made = np.zeros(self.n_reps, dtype=np.int64)
        self._is_in_step = True
        self._kept: dict[tuple[int, int], FloatArray] = {}
        self._waiting: list[tuple[int, FloatArray, FloatArray, FloatArray]] = []
        self._mechanism: Mechanism | None = None
        self._played = 0
        self._is_hidden, self._last = tables.is_hidden, tables.n_users - 1

    def observe(self, record: Record) -> None:
        """Sees who acts otherwise than the live replicate.

        A canary's own actions do not count where its states differ between the tables: no claim hides them from itself.
        """
        self._played = int(record.user[0] + record.n_records[0])
        differs = (record.actions != record.actions[0]).any(axis=1) & ~self._is_hidden[np.minimum(record.user, self._last)]
        differs |= (record.user != record.user[0]) | (record.n_records != record.n_records[0])
        if differs.any():
            self.parted |= differs

    def release(
        self,
        mechanism: Mechanism,
        value: FloatArray,
        *,
        records: Span,
        reps: IntArray | None = None,
        carried: Carried | None = None,
    ) -> FloatArray:
        """See `Ledger.release`."""
        # A copy: a foreign mechanism may answer with the value's own memory.
        output = np.array(self._live.release(mechanism, value, records=records, reps=reps, carried=carried))
        begins = records.start if carried is None else carried.start
        spans = np.stack([records.start, records.stop, begins], axis=1)
        if not self.parted.any() and (reps is None or len(reps) == self.n_reps):
            rows: slice | IntArray = slice(None)
        else:
            ids = np.arange(self.n_reps) if reps is None else reps
            rows = np.flatnonzero(~self.parted[ids])
            if not len(rows):
                return np.array(value)
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
        output[:] = value
        output[rows] = live
        place = np.full(self.n_reps, -1)
        place[~self.parted] = rows
        sides = place[1:].reshape(2, k)
        pairs = np.flatnonzero((sides >= 0).all(axis=0))
        if len(pairs):
            heard = np.broadcast_to(live, (len(pairs), *live.shape))
            self._score(mechanism, span, pairs, heard, value[sides[0, pairs]], value[sides[1, pairs]])

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
                self._script[turn] = _Asked(mechanism, span, output[row].copy())
                continue
            asked = self._script.get(turn)
            same = asked is not None and asked.mechanism == mechanism and asked.span == span
            self.parted[rep] |= not same
            if asked is None or self.parted[rep]:
                output[row] = value[row]
                continue
            output[row] = asked.output
            pair, is_in_side = (rep - 1) % self.n_pairs, rep > self.n_pairs
            partner = self._kept.pop((turn, pair), None)
            if partner is None:
                self._kept[turn, pair] = value[row].copy()
            else:
                out, in_ = (partner, value[row]) if is_in_side else (value[row], partner)
                heard = (part[None] for part in (asked.output, out, in_))
                self._score(mechanism, span, slice(pair, pair + 1), *heard)

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
        found = self._scores
        if not self._is_local:
            short = self._made < self._made[0]
            lost = (self.parted | short)[1:].reshape(2, self.n_pairs)
            found = np.where(lost[0] ^ lost[1], np.where(lost[0], CERTAIN, -CERTAIN), np.where(lost[0], 0.0, found))
        return np.clip(found, -CERTAIN, CERTAIN)


def _log_ratio(mechanism: Mechanism, output: FloatArray, out: FloatArray, in_: FloatArray) -> FloatArray:
    """(n_rows,) log p(output | in_) - log p(output | out), within +-`CERTAIN`.

    A value without noise has no density: there a ratio says only that the values differ, and the nearer one is taken.
    """
    ratio = np.asarray(mechanism.log_density_ratio(output, out, in_), dtype=float)
    if not np.isfinite(ratio).all():
        back = np.asarray(mechanism.log_density_ratio(output, in_, out), dtype=float)
        with np.errstate(invalid="ignore"):
            nearer = np.sign(mechanism.change(output, out) - mechanism.change(output, in_))
        ratio = np.where(np.isneginf(ratio) & np.isneginf(back), CERTAIN * nearer, ratio)
    return np.asarray(np.clip(np.nan_to_num(ratio, nan=0.0), -CERTAIN, CERTAIN))
