r"""The search for the pair of data sets on which an algorithm is least private, by what its releases must give away.

A canary may stand anywhere, take any value, and be surrounded by any data; audits need a pair that is as bad as possible,
and as many replays as they can get on it. So the search looks at no test statistic. It scripts a few replays on the other
side, as the deterministic audit does, and takes from every release what its noise leaves of the canary: a Gaussian
release whose exact value moves by d standard deviations contributes d^2 to mu^2, a Laplace one |change| / scale to epsilon,
and an output that the neighbor cannot produce, or a schedule or action that it would not choose, is an infinite loss. None
of it depends on the noise that was drawn but through what the algorithm decided from it: few replays are enough.

All candidates are played at once, as replicates of one batch. Decisions that are close are decided by one reward; so every
arm has earned the same in most of the data tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from bandana.algorithms.coins import Coins
from bandana.algorithms.environments.data_sets import Change
from bandana.algorithms.environments.episodes import Table
from bandana.algorithms.observers import ActionLog
from bandana.algorithms.protocol import Algorithm, FloatArray, IntArray
from bandana.algorithms.run import run
from bandana.audits.neighbors.candidates import Candidate, early_probes, even_rewards, reward_changes
from bandana.audits.neighbors.neighbor import Context, Others
from bandana.audits.neighbors.pairs import Pair, actions_differ
from bandana.privacy_core import (
    BoundedEvent,
    Interval,
    LiveLedger,
    Mechanism,
    Release,
    ReproducibleNoise,
    ScriptedLedger,
    is_selection,
)
from bandana.privacy_core.checks import at_least

Tables = Mapping[Context, Table]
_SEED = 0x7061_6972
"""Key of all seeds of this module: no audit's replays share one."""
_FEW, _MORE = 64, 256
_KEPT = 8
_CELLS = 1 << 20
_RATE = 1e-4
_EQUAL = 1e-9
_MOST_STEPS = 16


class LossLedger(ScriptedLedger):
    """A scripted ledger that keeps what the noise of each release leaves of the difference between both sides.

    Attributes:
      mu_squared: (n_reps,) sum of squared changes in standard deviations, infinite where an output is impossible.
      epsilon: (n_reps,) sum of what releases of pure DP may lose at most, or what selections lose, in nats.
      squares: (n_reps,) sum of the squares of what each selection, and each coordinate of Laplace noise, adds to it.
    """

    def __init__(self, n_reps: int, transcript: list[Release]) -> None:
        super().__init__(n_reps, transcript)
        self.mu_squared, self.epsilon, self.squares = np.zeros((3, n_reps))

    def _compare(
        self, call: int, there: slice | IntArray, reps: slice | IntArray, mechanism: Mechanism, value: FloatArray
    ) -> None:
        recorded = self._transcript[call]
        exact = recorded.value[there]
        ratio = mechanism.log_density_ratio(recorded.output[there], exact, value)
        is_lost = np.isneginf(ratio)
        moved = mechanism.change(exact, value) > 0
        if not (is_lost | moved).any():
            return
        # At its own exact value an output is e^(d^2/2) times likelier than on a side that is d deviations away; with Laplace
        # noise, e^(d/scale) times. So the mechanism itself says what it leaves, also one that declares another price.
        # What a selection leaves is what its outcome tells: some replays show the largest loss.
        peak = np.abs(ratio) if is_selection(mechanism) else -mechanism.log_density_ratio(exact, exact, value)
        peak = np.where(moved, peak, 0.0)
        peak = np.where(is_lost, np.inf, peak)
        if isinstance(mechanism.event, BoundedEvent):
            self.epsilon[reps] += peak
            each = peak[:, None] if is_selection(mechanism) else mechanism.whiten(exact - value) / mechanism.scale
            self.squares[reps] += np.square(each).sum(axis=1)
        else:
            self.mu_squared[reps] += 2 * peak


class Losses(NamedTuple):
    """The analytic privacy loss of each replay; each (..., n_replays)."""

    mu: FloatArray
    """The loss as a mu: that of the Gaussian releases, and of the smallest GDP claim that pure releases allow."""
    epsilon: FloatArray
    """The loss as a pure epsilon: infinite where a Gaussian release tells."""
    squares: FloatArray
    """Sum of the squares of the parts that add up to epsilon."""

    @property
    def pure(self) -> tuple[float, int]:
        """The largest epsilon of one pair's replays, and how many equal parts with that sum have its sum of squares."""
        worst = int(np.argmax(np.round(self.epsilon, 9)))
        epsilon, squares = float(self.epsilon[worst]), float(self.squares[worst])
        return epsilon, math.ceil(epsilon**2 / squares - 1e-6) if math.isfinite(epsilon) and squares else 1


def losses(
    algorithm: Algorithm, contexts: Tables, tried: Sequence[Candidate], n_replays: int, seed: int, stage: int
) -> Losses:
    """The analytic privacy loss of some replays of each candidate.

    Half of the replays are recorded on the data set and scripted on the neighbor, half the other way round.

    Args:
      algorithm: what to audit.
      contexts: context -> table, all of one shape.
      tried: candidates, each with a context among these.
      n_replays: of each candidate, at least 2.
      seed: of the search.
      stage: a number for each call in one search, so that no seed is used twice.
    """
    at_least("n_replays", n_replays, 2)
    names, tables = list(contexts), list(contexts.values())
    context = np.repeat([names.index(candidate.context) for candidate in tried], n_replays)
    record = np.repeat([candidate.record for candidate in tried], n_replays)
    is_hidden = np.repeat([candidate.change.covariates is not None for candidate in tried], n_replays)
    canaries, places = _canaries(contexts, tried)
    data, neighbor = np.repeat(places, n_replays, axis=0).T
    on_neighbor = np.tile(np.arange(n_replays) % 2, len(tried)).astype(bool)
    here, there = np.where(on_neighbor, neighbor, data), np.where(on_neighbor, data, neighbor)
    table = tables[0]
    size = max(n_replays, _CELLS // (table.n_users * (table.rewards[0].size // table.n_actions)))
    starts = range(0, len(context), size)
    seeds = np.random.SeedSequence(seed, spawn_key=(_SEED, stage)).spawn(len(starts))
    parts = []
    for start, child in zip(starts, seeds, strict=True):
        rows = slice(start, start + size)
        first, second = (table.stack(tables, context[rows], record[rows], canaries, side[rows]) for side in (here, there))
        hidden = np.where(is_hidden[rows], record[rows], -1)
        parts.append(_losses_between(algorithm, first, second, len(hidden), child, hidden))
    return Losses(*(np.concatenate(part).reshape(len(tried), n_replays) for part in zip(*parts, strict=True)))


def losses_of(algorithm: Algorithm, pair: Pair, n_reps: int, seed: np.random.SeedSequence) -> Losses:
    """The losses of some replays of one pair; each (n_reps,)."""
    return _losses_between(algorithm, pair.data, pair.neighbor, n_reps, seed, pair.hidden_record)


def _losses_between(
    algorithm: Algorithm, data: Table, neighbor: Table, n_reps: int, seed: np.random.SeedSequence, hidden: IntArray | int
) -> Losses:
    """Losses, (n_reps,), of replays recorded on the data, scripted on the neighbor; actions on `hidden` do not count."""
    coins = Coins(seed, n_reps)
    live = LiveLedger(n_reps, ReproducibleNoise(seed), keeps_transcript=True, n_records=data.n_users)
    actions, shadow = ActionLog(), ActionLog()
    run(algorithm, data, live, observers=[actions], coins=coins)
    scripted = LossLedger(n_reps, live.transcript)
    run(algorithm, neighbor, scripted, observers=[shadow], coins=coins)
    scripted.finish()
    is_lost = (scripted.diverged >= 0) | actions_differ(actions, shadow, hidden)
    mu = np.where(is_lost, np.inf, np.sqrt(scripted.mu_squared + (2 * ndtri(expit(scripted.epsilon))) ** 2))
    epsilon = np.where(is_lost | (scripted.mu_squared > 0), np.inf, scripted.epsilon)
    return Losses(mu, epsilon, scripted.squares)


def _canaries(contexts: Tables, tried: Sequence[Candidate]) -> tuple[Table, IntArray]:
    """The records that canaries are, as rows of a table, and (n_candidates, 2) the rows on the data set and its neighbor."""
    rows: dict[tuple[float, bytes], tuple[float, NDArray[np.generic] | None]] = {}
    places = []
    for candidate in tried:
        for reward, covariates in contexts[candidate.context].rows(candidate.record, candidate.change):
            key = reward, b"" if covariates is None else covariates.tobytes()
            rows.setdefault(key, (reward, covariates))
            places.append(key)
    order, first = {key: place for place, key in enumerate(rows)}, next(iter(contexts.values()))
    rewards = np.array([reward for reward, _ in rows.values()])
    all_covariates = [covariates for _, covariates in rows.values() if covariates is not None]
    span = Interval(min(first.reward_range.low, rewards.min()), max(first.reward_range.high, rewards.max()))
    table = first.with_rows(
        np.broadcast_to(rewards.reshape(-1, *[1] * (first.rewards.ndim - 1)), (len(rewards), *first.rewards.shape[1:])),
        np.stack(all_covariates) if all_covariates else None,
        span,
    )
    return table, np.array([order[key] for key in places]).reshape(-1, 2)


def visible_mu(mus: FloatArray) -> float:
    r"""The mu that a threshold on the exact log-likelihood ratio shows, where a replay's loss is one of these by chance.

    Given a loss m that the outputs tell, the log ratio is N(-m^2/2, m^2) on the data set and N(m^2/2, m^2) on the neighbor;
    the answer is the largest Phi^-1(1 - FPR) - Phi^-1(FNR) over the thresholds of the mixture, neither rate counted below
    1e-4. If all losses are m it is m. It is what a bound on mu will see, so it ranks pairs by it: an average of losses would
    be infinite if one in a thousand is, or, capped, would depend on the cap.

    Args:
      mus: (n_replays,) losses of at least 0, possibly infinite.

    Returns:
      infinite if all are; else at most 7.44 where the rates' floor is reached.
    """
    values, counts = np.unique(mus, return_counts=True)
    if np.isinf(values).all():
        return math.inf
    if len(values) == 1:
        return float(values[0])
    share = counts / counts.sum()
    # Below 1e-6 and beyond 1e3 standard deviations there is nothing to see, and nothing more.
    m = np.where(values < 1e-6, 0.0, np.minimum(values, 1e3))
    some = m > 0
    reach = float((m[some] ** 2 / 2 + 3 * m[some])[np.isfinite(values[some])].max(initial=1.0))
    thresholds = np.append(np.linspace(-reach, reach, 402), 0.0)[:, None]
    safe = np.where(some, m, 1.0)
    fpr = np.where(some, ndtr(-(thresholds + safe**2 / 2) / safe), thresholds <= 0) @ share
    fnr = np.where(some, ndtr((thresholds - safe**2 / 2) / safe), thresholds > 0) @ share
    seen = -ndtri(np.clip(fpr, _RATE, 1 - _RATE)) - ndtri(np.clip(fnr, _RATE, 1 - _RATE))
    return float(max(0.0, seen.max()))


@dataclass(frozen=True)
class WorstPair:
    """The least private pair that was found.

    Attributes:
      pair: the two data sets.
      mu_analytic: its privacy loss as `visible_mu` has it, from replays that chose nothing.
      epsilon_analytic: the largest pure loss of those replays, infinite where noise that holds the canary is not Laplace.
      n_parts: of how many equal parts that seems to consist.
    """

    pair: Pair
    mu_analytic: float
    epsilon_analytic: float
    n_parts: int


class _Search:
    """State of one search."""

    def __init__(self, algorithm: Algorithm, contexts: dict[Context, Table], seed: int) -> None:
        self.algorithm, self.contexts, self.seed = algorithm, contexts, seed
        self.seen: dict[Candidate, float] = {}
        self._stage = 0

    def play(self, tried: Sequence[Candidate], n_replays: int) -> Losses:
        """Plays the candidates with seeds of their own."""
        needed = {candidate.context: self.contexts[candidate.context] for candidate in tried}
        self._stage += 1
        return losses(self.algorithm, needed, tried, n_replays, self.seed, self._stage)

    def look(self, tried: Iterable[Candidate], n_replays: int) -> list[tuple[float, Candidate]]:
        """The candidates with their losses, worst first; of equal ones the earlier first."""
        tried = list(dict.fromkeys(tried))
        if not tried:
            return []
        losses = self.play(tried, n_replays)
        ranked = [(visible_mu(row), candidate) for row, candidate in zip(losses.mu, tried, strict=True)]
        self.seen.update({candidate: mu for mu, candidate in ranked})
        return sorted(ranked, key=lambda item: -round(item[0] / _EQUAL) if math.isfinite(item[0]) else -math.inf)


def find(algorithm: Algorithm, table: Table, probes: Sequence[int], seed: int, private_records: bool = False) -> WorstPair:
    """Searches canary positions, values and contexts for the pair with the largest analytic privacy loss.

    First every context is tried with a canary from lowest to highest at every probe, and canaries outside the range or with
    other covariates, with 64 replays each; the best eight again with 256. Then the best one is improved, coordinate by
    coordinate: positions 1, 2, 4 and so on records away, up to those tried next to it; other values, and other states of
    an episode; other contexts.

    Args:
      algorithm: what to audit.
      table: data that is tried as a context too; all contexts have its length and its declared range.
      probes: positions that are tried besides early and late ones, each in [0, table.n_users).
      seed: of the contexts and the pilot; the same seed finds the same pair. Pilot replays serve no bound.
      private_records: whether a record is covariates and rewards; canaries then have other contexts or episodes too.

    Returns:
      the pair; the first of those that are equally bad: early canaries, as more of what follows may depend on them.

    Raises:
      ValueError: a probe out of range.
    """
    rounds, span = table.n_users, table.reward_range
    if any(not 0 <= probe < rounds for probe in probes):
        raise ValueError(f"probes must lie in [0, {rounds}), got {tuple(probes)}")
    contexts = {context: table.with_rewards(even) for context, even in even_rewards(table.rewards.shape, span, seed).items()}
    first = next(iter(contexts))
    contexts[Context(span.low, span.high, Others.TABLE)] = table
    late = {rounds // 2, 3 * rounds // 4, max(rounds - 2, 0), rounds - 1}
    positions = sorted({*early_probes(rounds, table.n_actions), *probes, *late})
    plain, *others = reward_changes(span)
    if private_records:
        others += table.changes()
    state = _Search(algorithm, contexts, seed)
    tried = [Candidate(record, plain, context) for record in positions for context in contexts]
    tried += [Candidate(record, change, first) for change in others for record in positions[:3]]
    ranked = [candidate for _, candidate in state.look(tried, _FEW)]
    kept = state.look(ranked[:_KEPT], _MORE)[:1]
    # From the best change of covariates too, though another one looks better: they are improved one by one.
    moved = [one for one in ranked if one.change.covariates is not None and table.near(one.change)][:1]
    kept += state.look([candidate for candidate in moved if candidate != kept[0][1]], _MORE)
    best = max((_improve(state, start, positions, [plain, *others]) for start in kept), key=lambda each: each[0])[1]
    final = Losses(*(loss[0] for loss in state.play([best], _MORE)))
    return WorstPair(best.pair(state.contexts[best.context]), visible_mu(final.mu), *final.pure)


def _improve(
    state: _Search, best: tuple[float, Candidate], positions: list[int], changes: list[Change]
) -> tuple[float, Candidate]:
    """Coordinate ascent from the best candidate, until nothing near it is worse."""
    place = positions.index(best[1].record)
    around = positions[max(place - 1, 0) : place + 2]
    ladder = [2**power for power in range((around[-1] - around[0]).bit_length())]
    n_users = next(iter(state.contexts.values())).n_users
    for _ in range(_MOST_STEPS):
        at = best[1]
        near = [replace(at, record=record) for step in ladder for record in (at.record - step, at.record + step)]
        near = [one for one in near if 0 <= one.record < n_users]
        near += [replace(at, change=change) for change in changes]
        if at.change.covariates is not None:
            near += [replace(at, change=change) for change in state.contexts[at.context].near(at.change)]
        near += [replace(at, context=context) for context in _near(state, at.record)]
        fresh = [one for one in near if one not in state.seen]
        ranked = state.look([one for _, one in state.look(fresh, _FEW)[:_KEPT]], _MORE)
        if not ranked or ranked[0][0] <= best[0] + _EQUAL:
            return best
        best = ranked[0]
    return best


def _near(state: _Search, record: int) -> list[Context]:
    """The contexts, and those that change where the canary stands: the others high before and low after it, or so."""
    tables = state.contexts
    first = next(iter(tables.values()))
    span, shape = first.reward_range, first.rewards.shape
    before = (np.arange(shape[0]) < record).reshape(-1, *[1] * (len(shape) - 1))
    best_first = np.where(np.arange(shape[-1]) == 0, span.high, span.low)
    changing = {
        Context(span.low, span.high, Others.RISING, record): np.where(before, span.low, span.high),
        Context(span.low, span.high, Others.FALLING, record): np.where(before, span.high, span.low),
        Context(span.low, span.high, Others.FIRST_ARM): best_first,
    }
    known = list(tables)
    for context, rewards in changing.items():
        if context not in tables:
            tables[context] = first.with_rewards(np.broadcast_to(rewards, shape), span)
            known.append(context)
    return known
